"""Where in a response the program stands."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from assay.verify.code.files import language_of, path_of

ALIASES: dict[str, tuple[str, ...]] = {
    "python": ("python", "py", "python3", "py3", "python2", "pypy", "pypy3", "ipython", "python3.11"),
    "c": ("c", "h"),
    "cpp": ("cpp", "c++", "cc", "cxx", "hpp", "c++17", "c++20", "c++14", "gnu++17", "gnu++20"),
    "javascript": ("javascript", "js", "node", "nodejs", "mjs", "jsx"),
    "bash": ("bash", "sh", "shell", "zsh"),
    "java": ("java", "java8", "java11", "java17", "java21"),
    "go": ("go", "golang"),
    "rust": ("rust", "rs"),
    "typescript": ("typescript", "ts", "tsx", "mts"),
}
Blocks = Literal["last", "first", "all"]
_FENCE = re.compile(
    r"^([ \t]{0,16}(?:>[ ]?[ \t]{0,16})?(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]{1,4})?)(`{3,}|~{3,})[ \t]*([^`\n]*)$",
    re.MULTILINE,
)
_BEFORE = re.compile(r"^\ufeff+", re.MULTILINE)
_THOUGHT = "</think>"
_LIKELY = r"(?:.*/)?(?:main|solution|program)\.[a-z]+"
_ANSWER = re.compile(r"</?answer>")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the first word after its fence in lower case, its text, whether it was closed, and all that
    stands after its fence."""

    tag: str
    text: str
    closed: bool
    info: str = ""

    @property
    def path(self) -> str:
        """What the block says it is called, or nothing."""
        return path_of(self.info, self.text)


@dataclass(frozen=True, slots=True)
class Found:
    """The program in a response, and the files beside it by their paths; ``cut`` says that a block of it was never
    closed, as where a response was truncated."""

    source: str
    cut: bool = False
    files: Mapping[str, str] = field(default_factory=dict)


def fenced(text: str) -> list[Block]:
    """Return the fenced blocks of ``text`` in order, as CommonMark reads them; linear time."""
    blocks: list[Block] = []
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = match
            continue
        before, mark, info = match.groups()
        # Further in than it was opened, a fence is part of the program: of a text in it, for one.
        inside = _width(before) > _width(opened[1]) + 3 or before.strip(" \t>")
        if mark[0] == opened[2][0] and len(mark) >= len(opened[2]) and not info.strip() and not inside:
            blocks.append(_block(opened, text[opened.end() + 1 : match.start()], True))
            opened = None
    if opened is not None:
        blocks.append(_block(opened, text[opened.end() + 1 :], False))
    return blocks


def _block(opened: re.Match[str], text: str, closed: bool) -> Block:
    before, _, info = opened.groups()
    return Block(_tag(info), _outside(text, before), closed, info.strip())


def _width(before: str) -> int:
    return len(before.expandtabs(4))


def _outside(text: str, before: str) -> str:
    """The text of a block without what a list or a quotation around it puts before each line."""
    if not before:
        return text
    lines = text.split("\n")
    if ">" in before:
        lines = [re.sub(r"^[ \t]{0,16}>[ ]?", "", line) for line in lines]
        before = before.partition(">")[2].removeprefix(" ")
    first = next((line for line in lines if line.strip()), "")
    width = min(_width(before), _width(first[: len(first) - len(first.lstrip(" \t"))]))
    return "\n".join(_without(line, width) for line in lines)


def _without(line: str, width: int) -> str:
    """``line`` without as much white space as is ``width`` columns wide."""
    taken = place = 0
    while taken < width and line[place : place + 1] in (" ", "\t"):
        taken += 4 - taken % 4 if line[place] == "\t" else 1
        place += 1
    return line[place:]


def find_program(
    response: str, language: str = "python", blocks: Blocks = "last", defines: str = "", main: str = ""
) -> Found | None:
    """Return the program of ``response``, or ``None`` if there is none in ``language``.

    What stands after a ``</think>`` is searched before the rest. Complete blocks marked with the language come before
    complete ones without a mark, those before a last block that was never closed; where there is no fence at all, the
    ``<answer>``, else the whole text is the program.

    Blocks that say what they are called (:func:`~assay.verify.code.files.path_of`) are files beside the program, a
    later one in place of an earlier one of the same name. The program is a block without a name; where there is none
    (or one that does not define what it has to, beside a file that does), the file ``main``, else the one called
    ``main``, ``solution`` or ``program``, else the last.

    Args:
        blocks: of several such blocks the ``last``, the ``first``, or ``all`` of them one after the other.
        defines: a name; of several blocks, those that define it are preferred.
        main: the path of the file that is the program, where several have names.
    """
    # A mark of byte order, which files may begin with, is no part of what is in them.
    response = _BEFORE.sub("", response) if "\ufeff" in response else response
    _, thought, after = response.rpartition(_THOUGHT)
    if thought and after.strip():
        found = _search(after, language, blocks, defines, main)
        if found is not None and (fenced(after) or not fenced(response)):
            return found
    return _search(response, language, blocks, defines, main)


def _search(text: str, language: str, wanted: Blocks, defines: str, main: str) -> Found | None:
    names = ALIASES.get(language, (language,))
    blocks = fenced(text)
    files = {path: block for block in blocks if (path := block.path)}
    if files:
        blocks = [block for block in blocks if not block.path]
        found = _among_files(files, _pick(blocks, names, wanted, defines), language, defines, main)
        if found is not None:
            return found
    found = _pick(blocks, names, wanted, defines)
    if found is not None or blocks or files:
        return found
    pieces = _ANSWER.split(text)
    if len(pieces) >= 3 and pieces[-2].strip():
        return Found(pieces[-2].strip("\n"))
    return Found(text.strip("\n")) if text.strip() else None


def _among_files(
    files: Mapping[str, Block], unnamed: Found | None, language: str, defines: str, main: str
) -> Found | None:
    """Return the program of a response that has ``files``, and maybe a program without a name."""
    cut = not all(block.closed for block in files.values())
    texts = {path: _dedent(block.text) for path, block in files.items()}
    own = [path for path in texts if language_of(path) == language]
    defining = [path for path in own if _defines(texts[path], defines)]
    if unnamed is not None and (not defining or not defines or _defines(unnamed.source, defines)):
        return Found(unnamed.source, unnamed.cut or cut, texts)
    likely = [path for path in defining or own if re.fullmatch(_LIKELY, path, re.IGNORECASE)]
    chosen = [path for path in own if path == main] or likely or defining or own
    if not chosen:
        return None
    source = texts.pop(chosen[-1])
    return Found(source, cut, texts)


def _defines(source: str, name: str) -> bool:
    word = re.escape(name)
    return not name or re.search(rf"\b(?:def|class|function)[ \t]+{word}\b|\b{word}[ \t]*=(?!=)", source) is not None


def _pick(blocks: Sequence[Block], names: Collection[str], wanted: Blocks, defines: str) -> Found | None:
    """Return the program among blocks without names."""
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
        candidates = [b for b in candidates if _defines(b.text, defines)] or candidates
        chosen = candidates[0 if wanted == "first" else -1]
        return Found(_dedent(chosen.text), not chosen.closed)
    return None


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
