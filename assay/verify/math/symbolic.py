"""The heavy path: math-verify and SymPy on answers our own reader does not know, in worker processes.

Run by :class:`assay.verify.isolate.workers.Workers`; time and memory are limited there.
"""

from __future__ import annotations


def prepare() -> None:
    """Import before the limits are set, so that the first answer is not charged for it."""
    import math_verify  # noqa: F401


def same(reference: str, answer: str) -> bool:
    """Say whether math-verify takes both for the same expression. No time limit of its own: the worker has one."""
    from math_verify import parse, verify

    gold = _parse(parse, reference)
    given = _parse(parse, answer)
    if not gold or not given or all(isinstance(g, str) for g in gold) or all(isinstance(g, str) for g in given):
        return False
    return bool(verify(gold, given, timeout_seconds=None))


def _parse(parse, text: str):  # type: ignore[no-untyped-def]
    return parse("$" + text.strip("$ ") + "$", parsing_timeout=None)
