"""Settings whose answers no single string decides."""
