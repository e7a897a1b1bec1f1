"""Settings in which a policy may read more than the question: what was said of an attempt, or the attempt itself."""
