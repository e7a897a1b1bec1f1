"""Tasks whose prompts have pictures."""
