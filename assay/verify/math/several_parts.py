"""Several answers to one question: ``(a) 28 cm, (b) 10 cm``, ``Anna 17, Ben 13``, ``quotient 7, remainder 5``.

Each part has a label. An answer may give the parts in any order and wording, under their labels, under what the
question calls them, or under their initials; between one label and the next it may hold one value only.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from assay.verify.math.foreign_doubt import unsure
from assay.verify.math.frames import cores
from assay.verify.math.harmless import bare
from assay.verify.math.latex import plain
from assay.verify.math.sentence import hedged
from assay.verify.math.spoken import in_digits

MAX_LENGTH = 700
MOST = 6
_STEM = 5
_PIECE = re.compile(
    r"\s*(?:and\s+)?(?:\(?(?P<mark>[a-h]|i{1,3}|[1-6])\)[:.]?\s*|"
    r"(?P<name>[A-Za-z][A-Za-z]{1,24}(?: [a-z]{2,12}){0,2})\s*"
    r"(?:=|:|\bis\b|\s)\s*|\$?(?P<letter>[a-z])\s?=\s?)(?P<value>[-+$\\€£0-9.√(πℝ−].{0,80}?)\s*"
)
_BETWEEN = re.compile(r"[;\n]|,\s?(?=\(?[A-Za-z$])|\s(?:and|&)\s(?=\(?[A-Za-z$])|(?<=\S)\s+(?=\([b-h1-6]\))")
_POINT = re.compile(r"\s*\$?(?:\\left)?\(([^(){}=]{1,60})(?:\\right)?\)\$?\s*")
_LETTERS = re.compile(r"\(\s?([a-z](?:\s?,\s?[a-z]){1,3})\s?\)")
_QUOTIENT = re.compile(
    r"([0-9]+)\s?,?\s?(?:and |with |with a |mit |con |avec |et |com |z |с )?(?:r|rem\.?|remainder|rest|reste|resto|"
    r"residuo|остаток|остатком|reszta|余|餘|あまり|余り|나머지)(?:\sof|\sde|\svon)?\s?:?\s?([0-9]+)",
    re.IGNORECASE,
)
_IS = r"\s?(?:=|:|is|are|equals?|vale|ist|est|è|é|es|равен|равно|равна|is equal to|为|是|等于)\s?"
_AGAINST = re.compile(
    r"\b(?:not|never|or|maybe|perhaps|wrong|incorrect|if|either|neither)\b|n't\b|[?？≠]", re.IGNORECASE
)
_BULLET = re.compile(r"^[ \t]*[-•–*][ \t]+(?=[*_(]*[^\W\d_])", re.MULTILINE)
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_TAIL = re.compile(r"[\s.;,*_|}\]\"']*(?:\b(?:and|und|et|y|e|while|whereas|but|и|then)\b)?[\s.;,:*_|{\[\"'(]*$")


@dataclass(frozen=True, slots=True)
class Part:
    """What a part is called, in a pattern, and its value."""

    label: re.Pattern[str]
    value: str


def same_several(reference: str, answer: str, question: str, agrees: Callable[[str, str], bool]) -> bool:
    """Say whether ``answer`` gives every part of ``reference`` under its label, and each only once or alike."""
    wanted = _parts_of(reference, question)
    if not wanted or len(answer) > MAX_LENGTH:
        return False
    if not _NUMBER.search(answer):
        answer = in_digits(answer)
    answer = _without_accents(plain(_BULLET.sub("", answer)))
    if _AGAINST.search(answer) or hedged(answer) or unsure(answer):
        return False
    if (divided := _QUOTIENT.search(answer)) is not None and _is_division(wanted):
        given = {"quotient": divided[1], "remainder": divided[2]}
        return all(agrees(part.value, given[name]) for part, name in zip(wanted, _division(wanted), strict=True))
    marks = sorted(
        (match.start(), match.end(), n) for n, part in enumerate(wanted) for match in part.label.finditer(answer)
    )
    if {n for _, _, n in marks} != set(range(len(wanted))):
        return False
    ends = [start for start, _, _ in marks[1:]] + [len(answer)]
    stated: dict[int, list[bool]] = {}
    for (_, begin, n), end in zip(marks, ends, strict=True):
        segment = _TAIL.sub("", answer[begin:end]).strip(" :=*_\"'|")
        if segment and (_NUMBER.search(segment) or end == len(answer) or not stated.get(n)):
            stated.setdefault(n, []).append(_holds(wanted[n].value, segment, agrees))
    return all(stated.get(n) and all(stated[n]) for n in range(len(wanted)))


def has_parts(reference: str, question: str) -> bool:
    """Say whether a reference names several parts."""
    return bool(_parts_of(reference, question))


def _holds(value: str, segment: str, agrees: Callable[[str, str], bool]) -> bool:
    """Say whether the one value of a segment is ``value``."""
    segment = segment.strip(" .,;")
    result = segment.rpartition("=")[2].strip() if "=" in segment else segment
    if agrees(value, result):
        return True
    return any(agrees(value, core.strip(" .,;*")) for core in (*cores(result), *cores(f"is {result}")))


def _without_accents(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


_SEVERAL = re.compile(r"[;\n,&]|\band\b|\s\(|\\\\")
"""What stands between two parts: without it there is but one."""


def _parts_of(reference: str, question: str) -> tuple[Part, ...]:
    return _parts(reference, question[-3000:]) if _SEVERAL.search(reference) else ()


@functools.lru_cache(2048)
def _parts(reference: str, question: str) -> tuple[Part, ...]:
    if len(reference) > 300 or not _NUMBER.search(reference):
        return ()
    point = _POINT.fullmatch(reference)
    if point is not None:
        return _coordinates(point[1], question)
    pieces = [piece for piece in _BETWEEN.split(plain(reference)) if piece.strip()]
    found = [_PIECE.fullmatch(piece.strip(" .")) for piece in pieces]
    if not 1 < len(found) <= MOST or not all(found):
        return ()
    matches = [match for match in found if match is not None]
    names = [bare(match["name"] or "").split()[-1:] for match in matches]
    initials = [name[0][0] for name in names if name]
    parts = []
    for match, name in zip(matches, names, strict=True):
        if match["mark"]:
            label = _marked(match["mark"], question)
        elif name:
            own = initials.count(name[0][0]) == 1
            label = _named(name[0], own)
        else:
            label = rf"(?<![\w\\]){match['letter']}{_IS}"
        parts.append(Part(re.compile(label, re.IGNORECASE), match["value"].strip(" $")))
    return tuple(parts) if len({part.label for part in parts}) == len(parts) else ()


def _coordinates(inside: str, question: str) -> tuple[Part, ...]:
    values = [value.strip() for value in re.split("[,;]", inside)]
    asked = _LETTERS.findall(question)
    names = [name.strip() for name in asked[-1].split(",")] if asked else []
    if len(names) != len(values) or len(set(names)) != len(names) or not all(values):
        return ()
    return tuple(Part(re.compile(rf"(?<![\w\\]){name}{_IS}"), value) for name, value in zip(names, values, strict=True))


def _named(name: str, by_initial: bool) -> str:
    ending = r"[^\W\d_]*" if len(name) >= _STEM else r"(?![^\W\d_])"
    label = rf"(?<![^\W\d_]){name[:_STEM]}{ending}"
    if by_initial:
        letter = rf"(?:{name[0]}|\\ell|ℓ)" if name[0] == "l" else name[0]
        label += rf"|(?<![^\W_\\]){letter}\s?="
    return label


def _marked(mark: str, question: str) -> str:
    label = rf"(?<![\w(])\(?{mark}[).:]\**:?"
    asked = re.search(
        rf"\({mark}\)\s(?:(?:the|its|their|find|compute|a|an|how|what|is|of)\s)*([^\W\d_]{{4,}})",
        question,
        re.IGNORECASE,
    )
    return label if asked is None else f"{label}|{_named(bare(asked[1]), False)}"


def _division(parts: tuple[Part, ...]) -> list[str]:
    return ["quotient" if part.label.search("quotient") else "remainder" for part in parts]


def _is_division(parts: tuple[Part, ...]) -> bool:
    return len(parts) == 2 and all(any(p.label.search(w) for p in parts) for w in ("quotient", "remainder"))
