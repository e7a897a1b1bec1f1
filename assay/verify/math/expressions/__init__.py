"""What an answer can be: exact expressions, sets, units."""
