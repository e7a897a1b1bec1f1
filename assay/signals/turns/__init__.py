"""What only a model can tell of turns: how likely an answer is before and after them."""
