"""When an answer is the reference."""
