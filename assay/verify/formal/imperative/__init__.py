"""A small typed imperative language with contracts, a subset of Dafny: read, run, proved and changed."""
