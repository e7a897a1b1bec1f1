"""Steps that a pattern in the text opens or closes, such as the words with which a new thought begins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from assay.errors import UsageError
from assay.signals.steps import Steps


@dataclass(frozen=True, slots=True)
class PatternSteps(Steps):
    """Steps as in :class:`~assay.signals.steps.Steps`, cut where ``pattern`` matches; ``by`` is not read.

    Args:
        pattern: a regular expression.
        where: a step ends ``before`` each match; ``after`` it; or after the last sentence before it (``sentence``: the
            last of . ! ? or a newline; before the match where there is none).
        first: characters from the beginning to the first match that counts.
        apart: characters from a cut to the next match that counts.

    Raises:
        UsageError: a pattern that is none, or a negative number.
    """

    pattern: str = r"\n\n"
    where: Literal["before", "after", "sentence"] = "after"
    first: int = 0
    apart: int = 0

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise UsageError(f"steps: the pattern {self.pattern!r} is no regular expression: {error}") from None
        if self.first < 0 or self.apart < 0:
            raise UsageError(f"steps: first {self.first} and apart {self.apart} must not be negative")

    def cuts(self, text: str) -> list[int]:
        """Return the places within ``text`` at which one step ends and the next begins."""
        kept: list[int] = []
        start = 0
        for match in re.finditer(self.pattern, text):
            if match.start() < self.first or (kept and match.start() - kept[-1] < self.apart):
                continue
            cut = match.end() if self.where == "after" else match.start()
            if self.where == "sentence":
                # Where no sentence has ended, find says -1.
                cut = max(text.rfind(mark, 0, cut) for mark in ".!?\n") + 1 or cut
            # White space alone is no step.
            if text[start:cut].strip() and text[cut:].strip():
                kept.append(cut)
                start = cut
        return kept
