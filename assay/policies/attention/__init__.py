"""Attention over packed tokens, and over prompts that responses share."""
