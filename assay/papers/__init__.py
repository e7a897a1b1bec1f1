"""The published methods: one file per paper, and the index of all of them."""

from assay.papers.catalogue import PaperRow, State, find, make, paper, rows

__all__ = ["PaperRow", "State", "find", "make", "paper", "rows"]
