"""Settings with a nano language model."""
