"""The forms in which a list of labels is asked for and read, strictly. Time is linear in the reply's length."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.errors import UsageError, nearest

Read = Callable[[str], list[str] | None]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a list of labels.

    Attributes:
        called: in words, for the judge.
        write: the list in this form.
        read: the labels of a text that is nothing but such a list; ``None`` of any other.
    """

    called: str
    write: Callable[[Sequence[str]], str]
    read: Read


def _texts(value: object) -> list[str] | None:
    if not isinstance(value, list) or not all(isinstance(x, str | int) and not isinstance(x, bool) for x in value):
        return None
    return [str(x).strip() for x in value]


def _json(text: str) -> list[str] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _texts(value["labels"] if isinstance(value, dict) and value.keys() == {"labels"} else value)


def _python(text: str) -> list[str] | None:
    try:
        return _texts(ast.literal_eval(text)) if text.startswith("[") else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _line(mark: str) -> Read:
    def read(text: str) -> list[str] | None:
        return None if "\n" in text or text.startswith("[") else [one.strip() for one in text.split(mark)]

    return read


def _lines(begin: str) -> Read:
    def read(text: str) -> list[str] | None:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return [line[len(begin) :].strip() for line in lines] if all(x.startswith(begin) for x in lines) else None

    return read


def _numbered(text: str) -> list[str] | None:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [line.removeprefix(f"{k}.") for k, line in enumerate(lines, 1) if line.startswith(f"{k}.")]
    return [one.strip() for one in found] if len(found) == len(lines) else None


def _xml(text: str) -> list[str] | None:
    if not (text.startswith("<labels>") and text.endswith("</labels>")):
        return None
    inner = text[len("<labels>") : -len("</labels>")].strip()
    rows = [row.strip() for row in inner.split("</label>")]
    ended = rows.pop() == ""
    return [row[len("<label>") :].strip() for row in rows] if ended and all(map(_opened, rows)) else None


def _opened(row: str) -> bool:
    return row.startswith("<label>") and "<" not in row[1:]


FORMS: dict[str, Form] = {
    "json": Form("a JSON list", lambda x: json.dumps(list(x)), _json),
    "python": Form("a Python list", lambda x: repr(list(x)), _python),
    "csv": Form("values separated by commas", ",".join, _line(",")),
    "comma": Form("values separated by a comma and a space", ", ".join, _line(", ")),
    "tsv": Form("values separated by tabs", "\t".join, _line("\t")),
    "pipe": Form("values separated by bars", "|".join, _line("|")),
    "yaml": Form("a YAML list", lambda x: "\n".join(f"- {one}" for one in x), _lines("- ")),
    "markdown": Form("a Markdown list", lambda x: "\n".join(f"* {one}" for one in x), _lines("* ")),
    "numbered": Form("a numbered list", lambda x: "\n".join(f"{k}. {one}" for k, one in enumerate(x, 1)), _numbered),
    "xml": Form("XML", lambda x: "\n".join(["<labels>", *(f"  <label>{one}</label>" for one in x), "</labels>"]), _xml),
}
"""The ten forms of Search-Gen-V (arXiv 2510.14660)."""


def form_of(name: str) -> Form:
    """Return a form by its name; raise UsageError if there is none such."""
    if name not in FORMS:
        raise UsageError(f"no form of labels is called {name!r}{nearest(name, FORMS)}")
    return FORMS[name]


def after_reasoning(reply: str) -> tuple[str, str] | None:
    """Return what stands within the one ``<reasoning>`` of a reply, and after it; ``None`` where tags do not fit.

    Of a reply without tags the first is empty and the second all of it. A fence around the second is taken off.
    """
    opened, closed = reply.count("<reasoning>"), reply.count("</reasoning>")
    if (opened, closed) == (0, 0):
        return "", _bare(reply)
    before, _, rest = reply.partition("<reasoning>")
    inside, _, after = rest.partition("</reasoning>")
    if (opened, closed) != (1, 1) or before.strip() or "</reasoning>" in before:
        return None
    return inside.strip(), _bare(after)


def _bare(text: str) -> str:
    text = text.strip()
    fenced = re.fullmatch(r"```[a-z]*\n([^`]*)\n?```", text)
    return fenced[1].strip() if fenced else text
