"""Rewards of who analyses proofs, and of who writes them with an analysis of their own."""
