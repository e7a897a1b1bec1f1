"""Things to draw, for models that draw."""
