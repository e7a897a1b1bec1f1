"""The verdict as reward, corrected by a model that is asked about what the rule did not accept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback
from assay.verify.guard import checked, judge
from assay.verify.hybrid import asks_model, either, extracted
from assay.verify.kind import KindVerifier
from assay.verify.make import make_verifier


@part("reward", "hybrid_judge")
@dataclass(frozen=True, slots=True)
class HybridJudge:
    """R_i = 1 if the verdict is right, or else if a model says so of the extracted answer; 0 if neither.

    The verdict of the task's own verifier is the rule; the model is asked about all of a batch together, where it is
    asked at all (:func:`assay.verify.hybrid.asks_model`). No reward where it abstains, or the rule failed. Terms: the
    rewards themselves, ``verifier``; ``asked``, ``rule`` and ``model``, zeros and ones; with an oracle ``oracle``, what
    that says, which is logged and pays nothing: while ``verifier`` rises and ``oracle`` does not, the model is hacked.

    Args:
        model: a verifier: a name, a table or a callable; one with a ``map`` over pairs is asked once for a batch.
        use: ``hybrid``; ``model``, which asks it about every response that has an answer and leaves the rule out; or
            ``rule``, which never does.
        oracle: a verifier that is believed, or none.
        unmarked: see :class:`assay.verify.hybrid.Hybrid`.

    Raises:
        UsageError: a verifier that cannot be made, or no model though one is to be asked.
    """

    model: Any = None
    use: Literal["hybrid", "model", "rule"] = "hybrid"
    oracle: Any = None
    unmarked: Fallback = "none"
    _model: Any = field(init=False, repr=False, default=None)
    _oracle: Any = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if self.model is None and self.use != "rule":
            raise UsageError(
                f"reward 'hybrid_judge' has no model to ask with use = {self.use!r}; name one, or use 'rule'"
            )
        for name, spec in (("_model", self.model), ("_oracle", self.oracle)):
            object.__setattr__(self, name, None if spec is None else make_verifier(spec))

    def __call__(self, batch: Batch) -> Reward:
        kinds, rows = KindVerifier(), list(zip(batch.tasks, batch.episodes, batch.verdicts, strict=True))
        answers = [extracted(kinds, t, e.text, self.unmarked) for t, e, _ in rows]
        if self.use == "model":
            wanted = [i for i, answer in enumerate(answers) if answer]
        else:
            open_ = [i for i, (_, _, v) in enumerate(rows) if v.passed is False and self.use == "hybrid"]
            wanted = [i for i in open_ if asks_model(rows[i][0], answers[i])]
        said = dict(zip(wanted, _together(self._model, [(rows[i][0], answers[i]) for i in wanted]), strict=True))
        nothing = Verdict.wrong("no answer")
        final = [
            said.get(i, nothing) if self.use == "model" else either(v, said.get(i)) for i, (_, _, v) in enumerate(rows)
        ]
        dtype = batch.rewards.dtype
        ones = lambda flags: torch.tensor([float(f) for f in flags], dtype=dtype)  # noqa: E731
        values = ones(v.passed is True for v in final)
        terms = {
            "verifier": values,
            "rule": ones(v.passed is True for _, _, v in rows),
            "asked": ones(i in said for i in range(len(rows))),
            "model": ones(i in said and said[i].passed is True for i in range(len(rows))),
        }
        if self._oracle is not None:
            told = _together(self._oracle, [(t, e.text) for t, e, _ in rows])
            terms["oracle"] = ones(v.passed is True for v in told)
        known = torch.tensor([v.passed is not None for v in final], dtype=torch.bool)
        return Reward(values, valid=judged(batch) & known, terms=terms)


def _together(verifier: Any, pairs: list[tuple[Task, str]]) -> list[Verdict]:
    if not pairs:
        return []
    together = getattr(verifier, "map", None)
    if together is not None:
        return [checked(v) for v in together(pairs)]
    return [judge(verifier, task, response) for task, response in pairs]
