# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Whether a text is of another language than English, also where its words occur in English: ``To 6.``, ``Chutei.``"""

from __future__ import annotations

import functools
import re

from assay.verify.math.english import plain_words
from assay.verify.math.foreign_doubt import foreign, prose
from assay.verify.math.foreign_words import closes, cue, cues
from assay.verify.math.frames import is_foreign
from assay.verify.math.harmless import bare, native

_OTHER_SCRIPT = re.compile(
    r"[\u0400-\u052f\u0590-\u06ff\u0750-\u077f\u0900-\u0fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[\u0370-\u03ff]{2}"
)
_ELIDED = re.compile(r"\b(?:[ldjnscm]|qu|all|dell|nell|dall|sull)['’](?!th\b)[a-zà-ÿ]{2}", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")


@functools.lru_cache(2048)
def abroad(text: str) -> bool:
    """Say whether ``text`` is surely no English."""
    said = prose(text)
    if _OTHER_SCRIPT.search(said) is not None:
        return True
    words = _WORD.findall(said)
    strange = [word for word in words if word.lower() not in plain_words()]
    if not strange:
        return False
    if foreign(text):
        if not said.isascii() or is_ours(said) or _ELIDED.search(said) is not None:
            return True
        return any(bare(word) in native() or cue(word) or closes(word) for word in strange)
    return is_foreign(text) and any(word[0].islower() for word in strange)


_APART = "".join(chr(code) if chr(code).islower() else " " for code in range(128))
"""Each character of ASCII in its place, those but small letters as blanks."""
_OURS = frozenset(
    "het een der das ist und nicht es est sont une uma gli che sono det inte jest nie les des el las los bir adalah "
    "bukan tidak que qui pas je na si mi il elle ich".split()
)


@functools.cache
def _marks() -> frozenset[str]:
    return frozenset(word for word in _OURS | ((native() | cues()) - plain_words()) if len(word) > 1)


@functools.lru_cache(1024)
def surely_english(text: str) -> bool:
    """Say, fast, that no part of ``text`` is :func:`abroad`; ``False`` tells nothing."""
    if not text.isascii() or ("'" in text and _ELIDED.search(text) is not None):
        return False
    said = text.lower()
    return (
        "kein" not in said
        and "mein" not in said
        and "j'" not in said
        and _marks().isdisjoint(said.translate(_APART).split())
    )


def is_ours(text: str) -> bool:
    """Say whether a word of ``text`` tells another language."""
    return is_foreign(f"the {text}")


__all__ = ["abroad", "surely_english"]
