"""Where in a response the program stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

ALIASES: dict[str, tuple[str, ...]] = {
    "python": ("python", "py", "python3", "py3", "python2", "pypy", "pypy3", "ipython", "python3.11"),
    "c": ("c", "h"),
    "cpp": ("cpp", "c++", "cc", "cxx", "hpp", "c++17", "c++20", "c++14", "gnu++17", "gnu++20"),
    "javascript": ("javascript", "js", "node", "nodejs", "mjs", "jsx"),
    "bash": ("bash", "sh", "shell", "zsh"),
}
Blocks = Literal["last", "first", "all"]
_FENCE = re.compile(r"^[ \t]{0,8}(?:>[ ]?)?(`{3,}|~{3,})[ \t]*([^`\n]*)$", re.MULTILINE)
_THOUGHT = "</think>"
_ANSWER = re.compile(r"</?answer>")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the first word after its fence in lower case, its text, and whether it was closed."""

    tag: str
    text: str
    closed: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The program in a response; ``cut`` says that its block was never closed, as where a response was truncated."""

    source: str
    cut: bool = False


def fenced(text: str) -> list[Block]:
    """Return the fenced blocks of ``text`` in order, as CommonMark reads them; linear time."""
    blocks: list[Block] = []
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = match
            continue
        mark, info = match.groups()
        if mark[0] == opened[1][0] and len(mark) >= len(opened[1]) and not info.strip():
            blocks.append(Block(_tag(opened[2]), text[opened.end() + 1 : match.start()], True))
            opened = None
    if opened is not None:
        blocks.append(Block(_tag(opened[2]), text[opened.end() + 1 :], False))
    return blocks


def find_program(response: str, language: str = "python", blocks: Blocks = "last", defines: str = "") -> Found | None:
    """Return the program of ``response``, or ``None`` if there is none in ``language``.

    What stands after a ``</think>`` is searched before the rest. Complete blocks marked with the language come before
    complete ones without a mark, those before a last block that was never closed; where there is no fence at all, the
    ``<answer>``, else the whole text is the program.

    Args:
        blocks: of several such blocks the ``last``, the ``first``, or ``all`` of them one after the other.
        defines: a name; of several blocks, those that define it are preferred.
    """
    _, thought, after = response.rpartition(_THOUGHT)
    if thought and after.strip():
        found = _search(after, language, blocks, defines)
        if found is not None and (fenced(after) or not fenced(response)):
            return found
    return _search(response, language, blocks, defines)


def _search(text: str, language: str, wanted: Blocks, defines: str) -> Found | None:
    names = ALIASES.get(language, (language,))
    blocks = fenced(text)
    for kind in (
        [b for b in blocks if b.closed and b.tag in names],
        [b for b in blocks if b.closed and not b.tag],
        [b for b in blocks if not b.closed and (b.tag in names or not b.tag)],
    ):
        candidates = [b for b in kind if b.text.strip()]
        if not candidates:
            continue
        if wanted == "all":
            return Found("\n".join(b.text.rstrip("\n") for b in candidates) + "\n", not candidates[-1].closed)
        if defines:
            name = re.escape(defines)
            pattern = re.compile(rf"\b(?:def|class|function)[ \t]+{name}\b|\b{name}[ \t]*=(?!=)")
            defining = [b for b in candidates if pattern.search(b.text)]
            candidates[:] = defining or candidates
        chosen = candidates[0 if wanted == "first" else -1]
        return Found(_dedent(chosen.text), not chosen.closed)
    if blocks:
        return None
    pieces = _ANSWER.split(text)
    if len(pieces) >= 3 and pieces[-2].strip():
        return Found(pieces[-2].strip("\n"))
    return Found(text.strip("\n")) if text.strip() else None


def _tag(info: str) -> str:
    words = info.strip().strip("{}.").split()
    return words[0].lower().rstrip(":,") if words else ""


def _dedent(text: str) -> str:
    """A block inside a list item is indented as a whole; the body of a function that continues a prompt is not."""
    lines = [line for line in text.split("\n") if line.strip()]
    indent = min((len(line) - len(line.lstrip(" \t")) for line in lines), default=0)
    first = lines[0].lstrip() if lines else ""
    if indent and first.startswith(("def ", "class ", "import ", "from ", "#include", "@")):
        return "\n".join(line[indent:] for line in text.split("\n"))
    return text
