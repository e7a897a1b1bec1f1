"""Games and puzzles, each judged by its constraints, so that every valid answer is right."""
