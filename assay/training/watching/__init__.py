"""What a run tells of itself in numbers, and what in them is a sign that something is wrong."""
