"""Games with a clock, played by keys and a mouse or by named actions."""
