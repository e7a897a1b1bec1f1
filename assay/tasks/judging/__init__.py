"""Tasks of judging an answer by a reference."""
