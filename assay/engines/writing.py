"""Having a model write parts of a suite: asking an engine, and reading marked pieces of what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.engines.base import Engine, Request, Sampling

WRITING = Sampling(4096, 0.7)
"""How replies are drawn unless something else is asked for."""

_PATCH = re.compile(r"^<{7} SEARCH\n(.*?)^={7}\n(.*?)^>{7} REPLACE$", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:[-*•]|[0-9]{1,3}[.)])\s+")
_FENCED = re.compile(r"^\s*```[^\n`]*\n(.*?)\n?```\s*$", re.DOTALL)


def ask(engine: Engine, prompt: str, sampling: Sampling, seed: int) -> str:
    """Return one response of ``engine`` to ``prompt``."""
    [[episode]] = engine.generate([Request(prompt, 1, sampling, seed)])
    return episode.text


def pieces(text: str, tag: str) -> list[str]:
    """Return what stands between ``<tag>`` and ``</tag>``, in order, without a code fence around it."""
    found = re.findall(rf"<{re.escape(tag)}>(.*?)</{re.escape(tag)}>", text, re.DOTALL)
    return [_FENCED.sub(r"\1", piece).strip("\n") for piece in found]


def lines(text: str, tag: str) -> list[str]:
    """Return the lines of all pieces, without empty ones."""
    return [line.strip() for piece in pieces(text, tag) for line in piece.splitlines() if line.strip()]


def unlisted(line: str) -> str:
    """Return a line without the bullet or number of a list before it, which a space follows: ``-3`` stays."""
    return _ITEM.sub("", line).strip()


def shortened(text: str, most: int) -> str:
    """Return ``text``, of a longer one its beginning and end, in at most ``most`` characters and a mark."""
    if len(text) <= most:
        return text
    head = most - most // 3
    return f"{text[:head]}\n... [{len(text) - most} characters] ...\n{text[len(text) - most // 3 :]}"


def patched(source: str, patch: str) -> tuple[str, list[str]]:
    """Apply search-and-replace blocks to ``source``; return it and what is wrong with those that do not apply.

    A block is ``<<<<<<< SEARCH``, lines, ``=======``, lines, ``>>>>>>> REPLACE``; its search text has to occur exactly
    once in the source as the blocks before have left it.
    """
    faults = []
    blocks = _PATCH.findall(patch if patch.endswith("\n") else f"{patch}\n")
    if not blocks and patch.strip():
        faults.append("the patch holds no complete SEARCH/REPLACE block")
    for number, (search, new) in enumerate(blocks, 1):
        text = source if source.endswith("\n") else f"{source}\n"
        count = text.count(search) if search else 0
        if count == 1:
            source = text.replace(search, new)
        else:
            faults.append(f"patch {number}: its search text occurs {count} times")
    return source, faults


def listed(title: str, entries: Sequence[str]) -> str:
    """Return a section with a title and an entry each, or nothing without entries."""
    return "\n\n".join([f"## {title}", *entries]) + "\n\n" if entries else ""
