"""Skills that a robot has, as sentences with gaps, and plans that are numbered lists of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

LONGEST = 300
"""Characters of a line, beyond which it is no skill."""
_GAP = re.compile(r"\[[^\[\]]*\]")
_NUMBERED = re.compile(r"(\d{1,4})[.)]\s+(\S.*)")


class Skill(NamedTuple):
    """One step: which sentence it is, what fills its first gap, and what its others; empty where it has none."""

    verb: int
    object: str
    target: str


class Line(NamedTuple):
    """A line of a plan: its number, ``None`` without one, and its skill, ``None`` where it is none."""

    number: int | None
    skill: Skill | None


@functools.lru_cache(256)
def _pattern(template: str) -> re.Pattern[str]:
    plain = " ".join(template.split()).rstrip(".")
    return re.compile("(.+?)".join(map(re.escape, _GAP.split(plain))) + r"\.?", re.IGNORECASE)


def read_skill(line: str, templates: Sequence[str], synonyms: Mapping[str, str] | None = None) -> Skill | None:
    """Return the skill that a line says; of several sentences that fit, the first.

    Case, blanks and a full stop do not matter; what fills a gap is replaced by its synonym, where it has one.

    Args:
        line: ``"Put the apple into the bowl."``.
        templates: such as ``"Put the [object] into the [location]."``.
        synonyms: by what is said, what it is called.
    """
    line = " ".join(line.split())
    if len(line) > LONGEST:
        return None
    for verb, template in enumerate(templates):
        found = _pattern(template).fullmatch(line)
        if found:
            filled = [" ".join(gap.lower().split()) for gap in found.groups()]
            first, *others = [(synonyms or {}).get(gap, gap) for gap in filled] or [""]
            return Skill(verb, first, " | ".join(others))
    return None


def read_plan(text: str, templates: Sequence[str], synonyms: Mapping[str, str] | None = None) -> list[Line]:
    """Return the lines of a plan, blank ones apart."""
    lines = []
    for line in text.splitlines():
        if line.strip():
            found = _NUMBERED.fullmatch(line.strip()[: 2 * LONGEST])
            said = found[2] if found else line
            lines.append(Line(int(found[1]) if found else None, read_skill(said, templates, synonyms)))
    return lines


def in_form(lines: Sequence[Line]) -> bool:
    """Whether a plan has lines, all of them skills, none twice, numbered from 1."""
    skills = [line.skill for line in lines]
    ordered = [line.number for line in lines] == [*range(1, len(lines) + 1)]
    return bool(lines) and ordered and None not in skills and len(set(skills)) == len(skills)


def numbered(lines: Sequence[str]) -> str:
    """Return a plan as it is to be written."""
    return "\n".join(f"{k}. {line}" for k, line in enumerate(lines, 1))
