"""What the other fields of an answer in JSON, in YAML or in ``key: value`` lines say of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from assay.verify.math.reconsidered import reconsidered
from assay.verify.math.withdrawal import HARD

_LINE = re.compile(
    r"^[ \t]{0,4}[\"']?([A-Za-z][A-Za-z_ -]{1,30})[\"']?[ \t]*:[ \t]*(\S.{0,300}?),?[ \t]*$", re.MULTILINE
)
_ANSWER = re.compile(
    r"(?:(?:my|the|final|correct|right|true|real|actual|best|chosen|selected)[ _-]?)*"
    r"(?:answer|choice|option|selection|letter|label|solution|result)",
    re.IGNORECASE,
)
_SOUND = re.compile(r"(?:is[ _-]?)?(?:correct|right|valid|true|verified|certain|sure|confident|final)", re.IGNORECASE)
_BAD = re.compile(r"(?:is[ _-]?)?(?:wrong|incorrect|false|invalid|guess\w*|retracted|withdrawn|joke)", re.IGNORECASE)
_VERDICT = re.compile(r"(?:status|verdict|correctness|validity|state|evaluation|judg\w+)", re.IGNORECASE)
_GOOD = re.compile(
    r"(?:correct|right|valid|true|ok|final|done|verified|complete\w*|success|pass(?:ed)?|confirmed|solved|accepted)",
    re.I,
)
_ROW = re.compile(
    r"\n[ \t]*\|[^\n]*\|[ \t*_]*(rejected|wrong|incorrect|false|eliminated|ruled out|"
    r"excluded|no|✗|❌)[ \t*_]*\|[ \t]*$",
    re.I,
)
"""The only row of a table."""
_TRUST = re.compile(r"(?:confidence|probability|certainty|likelihood|score)", re.IGNORECASE)
_LOW = re.compile(r"(?:very )?(?:low|none|zero|no|weak|poor|nil|unsure|uncertain)", re.IGNORECASE)


def disowned(response: str, chosen: Callable[[str], frozenset[str]], wanted: frozenset[str]) -> str | None:
    """Return the field that speaks against the answer or gives another one, ``None`` if there is none.

    Args:
        response: as written.
        chosen: the labels that a text by itself chooses.
        wanted: the labels of the answer.
    """
    if (
        response.startswith("|")
        and response.strip().count("\n") == 2
        and (row := _ROW.search(response.rstrip())) is not None
    ):
        return row[1]
    for key, value in _fields(response):
        said = str(value).strip(" \"'`")
        name = key.strip().replace("_", " ")
        if _ANSWER.fullmatch(name) and not chosen(said) <= wanted:
            return key
        if _SOUND.fullmatch(name) and said.lower() in ("false", "no", "0", "0.0", "none"):
            return key
        if _BAD.fullmatch(name) and said.lower() not in ("false", "no", "0", "none", ""):
            return key
        if _VERDICT.fullmatch(name) and not _GOOD.fullmatch(said):
            return key
        if _TRUST.fullmatch(name) and (_LOW.fullmatch(said) or _small(said)):
            return key
        if re.fullmatch(r"(?:note|comment|remark|caveat|warning|disclaimer|ps|edit|update)s?", name, re.I) and (
            reconsidered(said) or HARD.search(said)
        ):
            return key
    return None


def _small(said: str) -> bool:
    number = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]+)?)\s?(%?)", said)
    if number is None:
        return False
    value = float(number[1])
    return value < 50 if number[2] or value > 10 else value < 0.5


def _fields(response: str) -> Iterator[tuple[str, Any]]:
    text = response.strip()
    if "{" in text:
        start = text.find("{")
        try:
            found, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            yield from ((str(key), value) for key, value in found.items() if not isinstance(value, dict | list))
            return
    yield from _LINE.findall(text[-4000:])
