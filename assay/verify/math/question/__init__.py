"""What a question says of its answer, and demands of it."""
