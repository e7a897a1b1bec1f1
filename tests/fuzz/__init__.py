"""Fuzzing of every verifier: valid tasks (:mod:`fuzz.cases`), hostile responses, and what must hold of any verdict."""
