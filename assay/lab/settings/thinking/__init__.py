"""Settings on how long to think, and when to stop."""
