"""Tasks of judging solutions that are on record, whole or step by step."""
