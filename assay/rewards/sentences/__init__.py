"""Rewards of sentences that a judge has labelled, and of who labels them."""
