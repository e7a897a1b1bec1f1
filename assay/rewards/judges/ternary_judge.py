"""A language model as verifier that tells right, wrong, and what cannot be judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.rewards.judges.reference_judge import Unread
from assay.rewards.text.embedding import texts_of
from assay.tasks.judging.ternary import DIRECT, SHOWN, letter
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class TernaryJudge:
    r"""A verifier that asks a model for A, right, B, wrong, or C, invalid: nothing there can be judged.

        passed = 1[A];   parts["invalid"] = 1[C]

    B and C score 0 alike and stay apart in the verdict; with ``invalid = "abstain"`` C leaves the sample out of the
    update. It abstains if the judge failed, if the task has no reference, and from a reply without a letter unless
    ``unread`` is ``wrong``.

    Args:
        judge: an engine, or the specification of one.
        template: with ``{question}``, ``{reference}`` and ``{response}``.
        invalid: what C comes to: ``wrong`` or ``abstain``.
        unread: what a reply without a letter comes to.
        max_tokens: of the reply, which is greedy.

    Raises:
        UsageError: no engine, a template that does not show all three, another word than there is.

    Source: CompassVerifier (arXiv 2508.03686).
    """

    judge: Any
    template: str = DIRECT
    invalid: Unread = "wrong"
    unread: Unread = "abstain"
    max_tokens: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "judge", judge_of(self.judge, "the ternary judge"))
        if any(f"{{{name}}}" not in self.template for name in SHOWN):
            raise UsageError("the ternary judge: the template must show {question}, {reference} and {response}")
        if not {self.invalid, self.unread} <= {"wrong", "abstain"}:
            raise UsageError("the ternary judge: invalid and unread are 'wrong' or 'abstain'")

    def __call__(self, task: Task, response: str) -> Verdict:
        [verdict] = self.map([(task, response)])
        return verdict

    def map(self, pairs: Iterable[tuple[Task, str]]) -> list[Verdict]:
        """Judge many responses by one call of the judge."""
        pairs = list(pairs)
        rows = [i for i, (task, _) in enumerate(pairs) if texts_of(task)]
        replies = ask(self.judge, [self.question(*pairs[i]) for i in rows], Sampling(self.max_tokens, 0.0))
        said = {
            i: Verdict.abstain("the judge failed") if reply.stop == "error" else self._read(reply.text)
            for i, reply in zip(rows, replies, strict=True)
        }
        return [
            said[i] if i in said else Verdict.abstain(f"task {task.id} has no reference to compare with")
            for i, (task, _) in enumerate(pairs)
        ]

    def question(self, task: Task, response: str) -> str:
        """Return what the judge is asked."""
        shown = {"question": task.question, "reference": " / ".join(texts_of(task)), "response": response}
        return filled(self.template, **shown)

    def _read(self, reply: str) -> Verdict:
        found = letter(reply)
        if found is None:
            said = f"the judge said {reply.strip()[:40]!r}, none of A, B and C"
            return Verdict.abstain(said) if self.unread == "abstain" else Verdict.wrong(said)
        parts = {"invalid": float(found == "C")}
        if found == "C":
            passed = None if self.invalid == "abstain" else False
            return Verdict(0.0, passed, parts, "invalid: there is nothing that can be judged")
        return Verdict(float(found == "A"), found == "A", parts)
