"""A rule first, and a model only where the rule may have been too strict."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback
from assay.verify.answer.place import marked
from assay.verify.answer.spans import Span
from assay.verify.base import Verifier, answer_place
from assay.verify.guard import judge
from assay.verify.kind import check_ready
from assay.verify.make import make_verifier
from assay.verify.text.text import references

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def plain_number(text: str) -> bool:
    """Whether a text is a number in decimal digits and nothing else: ``-3``, ``1e6``; not ``1/2``, ``1,000``."""
    return _NUMBER.fullmatch(text.strip()) is not None


def extracted(rule: Verifier, task: Task, response: str, unmarked: Fallback = "none") -> str:
    """Return the final answer of a response where the rule reads it, or else what ``unmarked`` says; empty for none."""
    place = answer_place(rule, task, response)
    if place is None and unmarked != "none":
        place = marked(response, fallback=unmarked)
    return "" if place is None else response[place.start : place.end].strip()


def asks_model(task: Task, answer: str) -> bool:
    """Whether a model is asked about an answer that the rule did not accept.

    It is not where nothing was extracted, nor where answer and every reference are plain numbers, on which the rule is
    final.
    """
    gold = references(task.reference)
    return bool(answer) and not (plain_number(answer) and gold and all(plain_number(r) for r in gold))


def either(rule: Verdict, model: Verdict | None) -> Verdict:
    """Return the verdict of both: right if one says so; else it abstains if one that was asked does; else wrong.

    A model that was not asked is ``None``. The parts are ``rule`` and ``model``.
    """
    said = {"rule": rule} | ({} if model is None else {"model": model})
    verdicts = [v.passed for v in said.values()]
    passed = True if True in verdicts else None if None in verdicts else False
    parts: dict[str, float | None] = {"rule": None, "model": None}
    parts.update((name, v.score) for name, v in said.items() if v.passed is not None)
    score = max((v.score for v in said.values() if v.passed is not None), default=0.0)
    words = "; ".join(f"{name}: {' '.join(v.feedback.split())}" for name, v in said.items() if v.feedback.strip())
    return Verdict(0.0 if passed is None else score, passed, parts, words)


@part("verify", "hybrid")
@dataclass(frozen=True, slots=True)
class Hybrid:
    """Right if the rule says so, or if not and a model does that is asked about the extracted answer alone.

    The model is asked only where the rule does not accept, something was extracted, and not both answer and reference
    are plain numbers (:func:`asks_model`). It abstains where a model that was asked does, and where the rule does and
    none was asked. The parts are ``rule`` and ``model``, ``None`` where that was not asked or abstains.

    Args:
        rule: a verifier: a name, a table or a callable.
        model: another, such as ``{name = "assay.rewards.judges.reference_judge:ReferenceJudge", judge = ...}``.
        unmarked: what is taken from a response without a mark: its last ``line``, the ``whole``, or ``none``.
        whole: show the model the whole response in place of the extracted answer.

    Raises:
        UsageError: when made, for a verifier that cannot be made.

    Source: "Pitfalls of Rule- and Model-based Verifiers" (arXiv 2505.22203) and its authors' code.
    """

    rule: Any
    model: Any
    unmarked: Fallback = "none"
    whole: bool = False
    _rule: Verifier = field(init=False, repr=False)
    _model: Verifier = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rule", make_verifier(self.rule))
        object.__setattr__(self, "_model", make_verifier(self.model))

    def __call__(self, task: Task, response: str) -> Verdict:
        rule = judge(self._rule, task, response, "rule")
        if rule.passed:
            return either(rule, None)
        answer = extracted(self._rule, task, response, self.unmarked)
        if not asks_model(task, answer):
            return either(rule, None)
        model = judge(self._model, task, response if self.whole else answer, "model")
        # Where the rule could not tell, the model does.
        return either(rule if rule.passed is not None or model.passed is None else replace(rule, passed=False), model)

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`: where the rule reads it."""
        return answer_place(self._rule, task, response)

    def ready(self) -> None:
        """Raise UsageError where this machine lacks what one of them needs."""
        check_ready(self._rule)
        check_ready(self._model)
