"""Responses that only say again what the question says."""

from __future__ import annotations

import re
import unicodedata

from assay.types import Task


def echoes(response: str, task: Task) -> bool:
    """Say whether a response without a marker only repeats the question, or ends in a sentence of it."""
    question = task.question
    if len(question) > 20_000 or len(response) > 20_000:
        return False
    flat = " ".join(response.split()).casefold().rstrip(" .?!")
    asked = " ".join(question.split()).casefold()
    if (len(flat.split()) >= 5 and flat in asked) or flat == asked.rstrip(" .?!"):
        return True
    last = re.split(r"(?<=[.!?])\s+", flat)[-1]
    if len(last.split()) >= 5 and last in asked:
        return True
    sentences = re.split(r"(?<=[.!?])\s+", asked)
    return any(len(s.split()) >= 5 and s.rstrip(" .?!") in last for s in sentences)


def copies(text: str, question: str, accepted: tuple[str, ...]) -> bool:
    """Say whether an unmarked answer is a formula of the question, written alike, and no reference is."""
    if len(text) > 200 or len(question) > 20_000 or _OPERATOR.search(text) is None:
        return False
    said = _signature(text)
    return (
        len(said) >= 6
        and said in _signature(question)
        and not any(_signature(reference).endswith(said) for reference in accepted)
    )


_OPERATOR = re.compile(r"[-+*/^·×÷√²³⁴⁵⁶⁷⁸⁹]|\\(?:[dt]?frac|cdot|times|sqrt)")
_COMMAND = re.compile(r"\\[A-Za-z]+")


def _signature(text: str) -> str:
    """The letters, digits and signs of a formula, without commands, brackets and blanks."""
    bare = unicodedata.normalize("NFKC", _COMMAND.sub(" ", text)).replace("−", "-")
    return "".join(c for c in bare if c.isalnum() or c in "+-=")
