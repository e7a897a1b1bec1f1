"""The index of papers: what each brings, and what it claims. One file per paper fills it."""

from assay.catalogue.claim import Claim, claims
from assay.catalogue.papers import PaperRow, State, find, lacking, listed, make, paper, rows, short_names

__all__ = ["Claim", "PaperRow", "State", "claims", "find", "lacking", "listed", "make", "paper", "rows", "short_names"]
