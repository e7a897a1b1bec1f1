"""How far a critique makes the points that a person's critique of the same makes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError

EXTRACT = """Below is a critique of two answers. List the points that its verdict rests on, one in a sentence each, and
say which answer it is about. Leave out remarks on trifles, and what is said twice.

{critique}

Reply with a JSON list of texts and nothing else."""

MATCH = """Below are the points of a critique of two answers that can be trusted, and another critique of the same.

Points:
{points}

The other critique:
{critique}

List the arguments of the other critique, and for each the number of the point that it makes, about the same answer and
to the same effect, or null if it makes none. Reply with a JSON list and nothing else:
[{"argument": "...", "point": 1}, {"argument": "...", "point": null}]"""

_LIST = re.compile(r"\[.*\]", re.DOTALL)


@dataclass(slots=True)
class CorePoints:
    """Asks a model for the core points of people's critiques, once each, and which of them others make.

        P = m / C,   R = m / H,   F1 = 2 P R / (P + R),    0 where m = 0

    with H core points, C arguments of the other critique, and m of the points made by one of these: saying a point
    twice costs precision. An empty critique has F1 = 0 and asks nobody.

    Args:
        matcher: an engine, or the specification of one: an instruction-following model; greedy.
        max_tokens: of a reply.

    Raises:
        UsageError: no engine.

    Source: RM-NLHF (arXiv 2601.07349); the wording is a choice.
    """

    matcher: Any
    max_tokens: int = 1024
    _known: dict[str, list[str] | None] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.matcher is None:
            raise UsageError("core points of critiques need a matcher: give an engine, such as matcher = {name = ...}")
        self.matcher = judge_of(self.matcher, "core points of critiques")

    def points(self, critiques: Sequence[str]) -> list[list[str] | None]:
        """Return the core points of people's critiques; ``None`` where they cannot be had, to be asked for again."""
        new = [c for c in dict.fromkeys(critiques) if self._known.get(c) is None]
        for critique, reply in zip(new, self._asked([filled(EXTRACT, critique=c) for c in new]), strict=True):
            listed = _read(reply)
            good = bool(listed) and all(isinstance(x, str) and x.strip() for x in listed or ())
            self._known[critique] = listed if good else None
        return [self._known[c] for c in critiques]

    def f1(self, pairs: Sequence[tuple[Sequence[str], str]]) -> list[float | None]:
        """Return F1 of each (core points, critique); ``None`` where the matcher failed or cannot be read."""
        prompts = [filled(MATCH, points=_numbered(points), critique=text) for points, text in pairs if text.strip()]
        replies = iter(self._asked(prompts))
        return [_f1(next(replies), len(points)) if text.strip() else 0.0 for points, text in pairs]

    def _asked(self, prompts: Sequence[str]) -> list[str | None]:
        replies = ask(self.matcher, prompts, Sampling(self.max_tokens, 0.0))
        return [None if reply.stop == "error" else reply.text for reply in replies]


def f1(matched: int, human: int, model: int) -> float:
    """Return F1 of so many points matched, of those there are and of those that were made."""
    return 2 * matched / (human + model) if matched else 0.0


def _f1(reply: str | None, human: int) -> float | None:
    listed = _read(reply)
    if listed is None:
        return None
    made = set()
    for row in listed:
        point = row.get("point", 0) if isinstance(row, dict) else 0
        if isinstance(point, bool) or not (point is None or (isinstance(point, int) and 1 <= point <= human)):
            return None
        made.add(point)
    return f1(len(made - {None}), human, len(listed))


def _numbered(points: Sequence[str]) -> str:
    return "\n".join(f"{k}. {' '.join(point.split())}" for k, point in enumerate(points, 1))


def _read(reply: str | None) -> list[Any] | None:
    """Return the list in a reply; ``None`` where there is none."""
    found = None if reply is None else _LIST.search(reply)
    try:
        return list(json.loads(found[0])) if found else None
    except ValueError:
        return None
