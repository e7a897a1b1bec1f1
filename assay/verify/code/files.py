"""Files in a response: blocks that say what they are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

LANGUAGE_OF = {
    "py": "python",
    "c": "c",
    "h": "c",
    **dict.fromkeys(("cpp", "cc", "cxx", "hpp", "hh"), "cpp"),
    "java": "java",
    "go": "go",
    "rs": "rust",
    **dict.fromkeys(("js", "mjs", "cjs"), "javascript"),
    "ts": "typescript",
    "sh": "bash",
}
"""The language of a file by the end of its name."""
DATA = ("txt", "json", "csv", "tsv", "toml", "yaml", "yml", "md", "xml", "html", "ini", "sql", "in", "out", "dat")
"""Other endings by which a word is taken for a path."""
MOST = 32
"""Files of one response; more are left out."""
LONGEST = 100
"""Characters of a path."""
_PATH = r"(?:\./)?[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*\.[A-Za-z][A-Za-z0-9]{0,9}"
_PLAIN = re.compile(_PATH)
_ATTRIBUTE = re.compile(rf"""(?:^|[\s{{])(?:title|file|filename|path|name)\s*[=:]\s*["']?({_PATH})["']?(?=[\s,}}]|$)""")
_COMMENT = re.compile(
    rf"[ \t]*(?:#+|//+|--|;+|/\*+|<!--)[ \t]*(?:(?:file|filename|path)[ \t]*:[ \t]*)?({_PATH})[ \t]*(?:\*+/|-->)?[ \t]*"
)


def path_of(info: str, text: str) -> str:
    """Return the path a fenced block says it has, or nothing.

    It may stand, in this order of precedence,

    - as an attribute after the fence: ```` ```python title="util.py" ````, or ``file``, ``filename``, ``path``,
      ``name``, with ``=`` or ``:``;
    - as a word after the fence: ```` ```util.py ````, ```` ```python src/util.py ````, ```` ```python:src/util.py ````;
    - as a comment that is the block's first line and says nothing else: ``# util.py``, ``// util.js``,
      ``/* util.c */``, ``# file: util.py``.

    A path is relative, of ASCII letters, digits, ``_``, ``-``, ``.`` and ``/``, with an ending; but for attributes an
    ending of a language or of data.
    """
    # Nothing that long is a fence's; a pattern need not read it.
    info = info[:1000]
    if match := _ATTRIBUTE.search(info):
        return _tidy(match[1])
    for word in info.split():
        bare = word.strip("{}\"'`,")
        for candidate in (bare, bare.partition(":")[2]):
            if _PLAIN.fullmatch(candidate) and _known(candidate):
                return _tidy(candidate)
    first = text.lstrip("\n").partition("\n")[0]
    if len(first) <= LONGEST + 40 and (match := _COMMENT.fullmatch(first)) and _known(match[1]):
        return _tidy(match[1])
    return ""


def language_of(path: str) -> str:
    """The language of a file, or nothing."""
    return LANGUAGE_OF.get(path.rpartition(".")[2].lower(), "")


def beside(files: Mapping[str, str], taken: Iterable[str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """Return those of a response's files that can be put beside the files already ``taken``, which stay as they are.

    Left out are those whose name is taken or ``reserved`` (a first folder too), that would have to be file and folder
    at once, and those beyond the first :data:`MOST`.
    """
    found: dict[str, str] = {}
    held, kept = set(taken), set(reserved)
    folders = {above for path in held for above in _above(path)}
    for path, text in files.items():
        above = _above(path)
        clash = path in held or path in folders or not held.isdisjoint(above)
        if clash or path.partition("/")[0] in kept or len(found) >= MOST:
            continue
        found[path] = text
        held.add(path)
        folders |= above
    return found


def _above(path: str) -> set[str]:
    """The folders a path is in."""
    pieces = path.split("/")
    return {"/".join(pieces[:count]) for count in range(1, len(pieces))}


def _known(path: str) -> bool:
    return bool(language_of(path)) or path.rpartition(".")[2].lower() in DATA


def _tidy(path: str) -> str:
    path = path.removeprefix("./")
    return path if len(path) <= LONGEST else ""
