"""Pictures in rows of data, and their places in prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.media import MARK, Picture, marks
from assay.types import Message, Prompt


def pictures(value: Any, folder: Path | None, where: str) -> list[Picture]:
    """Return what a field holds: a picture, a list of them, or nothing.

    A picture is a path (from ``folder``), its encoded bytes, a ``PIL.Image``, or the table of ``bytes`` and ``path`` as
    which the ``datasets`` library stores one.

    Raises:
        UsageError: something else, or no file there; says where.
    """
    if value is None:
        return []
    return [_picture(one, folder, where) for one in (value if isinstance(value, list | tuple) else [value])]


def _picture(value: Any, folder: Path | None, where: str) -> Picture:
    if isinstance(value, Mapping) and {"bytes", "path"} & {*value}:
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return Picture(value)
    if isinstance(value, str):
        path = Path(value) if folder is None else folder / value
        if not path.is_file():
            raise UsageError(f"{where}: no picture {path}")
        return Picture(path)
    if hasattr(value, "save") and hasattr(value, "size"):
        return Picture.of(value)
    raise UsageError(f"{where} holds a {type(value).__name__}, not a picture: its path, its bytes, or a list of them")


def shown(prompt: Prompt, found: Sequence[Picture], where: str) -> Prompt:
    """Return a prompt with its pictures, as a chat; each stands at a :data:`assay.media.MARK` of a message's text.

    A prompt without marks has its pictures first, in its (last user) question.

    Raises:
        UsageError: more or fewer marks than pictures.
    """
    messages: list[Message] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    there = sum(message["content"].count(MARK) for message in messages)
    if not found and not there:
        return prompt
    if not there:
        last = max(i for i, message in enumerate(messages) if message["role"] == "user")
        messages[last] = {**messages[last], "content": marks(len(found)) + messages[last]["content"]}
    elif there != len(found):
        raise UsageError(f"{where}: the prompt has {there} marks {MARK!r} for {len(found)} pictures")
    rest = list(found)
    for i, message in enumerate(messages):
        if count := message["content"].count(MARK):
            messages[i] = {**message, "images": tuple(rest[:count])}
            rest = rest[count:]
    return tuple(messages)
