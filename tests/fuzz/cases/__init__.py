"""The table of verifiers to be fuzzed, a module for each sort of answer."""

from fuzz.cases import answers, composed, critics, documents, drawings, formal, grounding, logic, pictures, programs
from fuzz.entry import ENTRIES, Case, Entry

__all__ = [
    "ENTRIES",
    "Case",
    "Entry",
    "answers",
    "composed",
    "critics",
    "documents",
    "drawings",
    "formal",
    "grounding",
    "logic",
    "pictures",
    "programs",
]
