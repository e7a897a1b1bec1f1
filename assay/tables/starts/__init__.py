"""A part of one's own to begin with, by seam: a file that works, and its test."""

from __future__ import annotations

from assay.errors import UsageError, nearest
from assay.registry import PACKAGES
from assay.tables.starts.answering import ANSWERING
from assay.tables.starts.base import Start
from assay.tables.starts.learning import LEARNING
from assay.tables.starts.watching import WATCHING

_ALL = LEARNING | ANSWERING | WATCHING
STARTS: dict[str, Start] = {seam: _ALL[seam] for seam in PACKAGES}
"""What ``assay new`` can begin: a part of every seam, in the order of the data flow."""


def started(seam: str, name: str) -> tuple[str, str]:
    """Return the code of a new part and of its test.

    Raises:
        UsageError: no such seam, or the name is no name of a Python file.
    """
    if seam not in STARTS:
        raise UsageError(f"no seam is called {seam!r}{nearest(seam, STARTS)}")
    if not name.isidentifier() or name != name.lower():
        raise UsageError(f"{name!r} is no name for a part: small letters, digits and _ as in my_{seam}")
    start, made = STARTS[seam], class_of(name)
    code = f'"""The {seam} {name}: `assay {used(seam, name)}`."""\n\n{start.code.lstrip()}'
    test = f'"""The {seam} {name} by numbers worked by hand."""\n\n{start.test.lstrip()}'
    return code.replace("CLASS", made), test.replace("CLASS", made).replace("FILE", name)


def used(seam: str, name: str) -> str:
    """Return the command, without its first word, that takes the part."""
    start = STARTS[seam]
    return start.use.replace("PART", f"{name}.py:{class_of(name)}{start.suffix}")


def class_of(name: str) -> str:
    """Return the name of a part's class."""
    return "".join(word.capitalize() for word in name.split("_"))
