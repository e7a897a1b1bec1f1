"""How long a prompt a model's context may be given."""

CHARACTERS = 16
"""Characters of a prompt for each token of a model's context. Prose has about four to a token, so what is longer cannot
fit, and is refused before it is tokenised, which takes seconds a megabyte."""
