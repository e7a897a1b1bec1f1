"""What is estimated from who preferred what."""
