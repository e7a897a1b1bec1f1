"""Likelihoods of references and of their parts under a policy."""
