"""Facts about code that a checker tells: where it is wrong, where a name stands, what an edit changed."""
