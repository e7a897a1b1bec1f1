"""The documents of a task, and how their text is compared."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

_SAME = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032`\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\ufeff", ""),
    }
)


def plain_text(text: str) -> str:
    """Return ``text`` without Unicode's variants, kinds of quotes and dashes, case, and runs of white space."""
    return " ".join(unicodedata.normalize("NFKC", text.translate(_SAME)).translate(_SAME).casefold().split())


@functools.lru_cache(maxsize=512)
def plain_document(text: str) -> str:
    """:func:`plain_text` of a document, remembered for the other responses to its task."""
    return plain_text(text)


def read_documents(value: Any) -> dict[str, str] | None:
    """Return documents by identifier: of a mapping its keys, of a list "1", "2", ...; ``None`` if they are no texts.

    A document is text, or a mapping with ``text`` and perhaps ``id``.
    """
    if isinstance(value, str):
        value = [value]
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, list | tuple):
        pairs = [
            (item.get("id", i), item.get("text")) if isinstance(item, Mapping) else (i, item)
            for i, item in enumerate(value, 1)
        ]
    else:
        return None
    documents = {str(key).strip(): text for key, text in pairs}
    if not documents or len(documents) < len(pairs) or not all(isinstance(text, str) for text in documents.values()):
        return None
    return documents


_DOTS = r"(?:\.\s?\.\s?\.|\u2026)"
_ELLIPSIS = re.compile(rf"\[\s?{_DOTS}\s?\]|\(\s?{_DOTS}\s?\)|{_DOTS}")


def pieces_of(quote: str) -> list[str]:
    """Return the pieces of a quotation between its ellipses, in plain text, without a comma or full stop at the end."""
    pieces = (plain_text(piece).strip(" .,;:!?") for piece in _ELLIPSIS.split(quote))
    return [piece for piece in pieces if piece]


def holds(document: str, pieces: list[str]) -> bool:
    """Say whether the pieces stand in a plain document in this order, without overlap, each as whole words."""
    position = 0
    for piece in pieces:
        position = _find_words(document, piece, position)
        if position < 0:
            return False
        position += len(piece)
    return True


def _find_words(document: str, piece: str, position: int) -> int:
    # Inside a word is no quotation: "he art" does not quote "the article". Few tries, since each may be long.
    for _ in range(100):
        position = document.find(piece, position)
        if position < 0:
            return -1
        end = position + len(piece)
        inside = piece[0].isalnum() and position > 0 and document[position - 1].isalnum()
        if not inside and not (piece[-1].isalnum() and end < len(document) and document[end].isalnum()):
            return position
        position += 1
    return -1
