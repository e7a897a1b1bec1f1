"""A work folder and a shell in the sandbox."""
