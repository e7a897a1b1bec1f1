"""Auditing what judges answers: labelled cases, attacks, and what they say of a verifier."""
