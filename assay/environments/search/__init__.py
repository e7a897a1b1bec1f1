"""A corpus that is searched for what a question or a claim needs."""
