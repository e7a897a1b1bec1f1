"""A household of rooms, doors, furniture and things, in text."""
