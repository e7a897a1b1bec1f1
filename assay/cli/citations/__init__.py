"""Claims and what they cite: checked, and models for it trained."""
