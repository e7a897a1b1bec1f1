"""Settings of several steps that lead to an answer."""
