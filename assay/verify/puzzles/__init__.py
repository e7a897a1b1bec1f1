"""Games and puzzles with checkers of their own."""
