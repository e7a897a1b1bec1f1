"""Parts of models computed in one pass each way."""
