"""Groups count by how hard they are and by how far their answers are apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError, nearest
from assay.ops import broadcast, group_mean, outcome
from assay.registry import part
from assay.rewards.outcome.vote import Ballot
from assay.types import Task, Verdict
from assay.verify.answer.options import options
from assay.verify.choice.read import read
from assay.verify.lists.ranking import read_ranking


def dispersion(answers: Sequence[Hashable], options: int | None) -> float:
    """Return delta in [0, 1] of a group's answers; those of nobody (``None``) are a kind of answer of their own.

        delta = H(shares of the answers) / log K           of K options, at most 1
        delta = (distinct answers - 1) / (answers - 1)     where answers are no options

    0 of fewer than two answers.
    """
    if len(answers) < 2:
        return 0.0
    counts = Counter(answers)
    if options is None:
        return (len(counts) - 1) / (len(answers) - 1)
    entropy = -sum(n / len(answers) * math.log(n / len(answers)) for n in counts.values())
    return min(entropy / math.log(options), 1.0)


def answered(task: Task, answer: str | None, verdict: Verdict) -> Hashable | None:
    """Return what an answer says: the one option it chooses where the task has options (``meta["options"]``), else its
    items in their order; ``None`` where it says nothing, or its verdict's part ``valid`` is 0."""
    if not answer or verdict.parts.get("valid") == 0:
        return None
    if "options" not in task.meta:
        return tuple(read_ranking(answer))
    chosen = read(answer, options(task.meta["options"])).chosen
    return next(iter(chosen)) if len(chosen) == 1 else None


@part("credit", "dispersion")
@dataclass(frozen=True, slots=True)
class Dispersion:
    """A_it = w (R_i - mean_g R),   w = ``scale`` d (1 - d) delta^``gamma``

    over the active samples of the group g, whose difficulty d is the mean of their rewards, within [0, 1], and delta
    the :func:`dispersion` of their answers. There is no division by the standard deviation. With ``gamma = 0`` the
    weight is by difficulty alone.

    Args:
        scale: lambda, above 0; 4 gives the weight 1 to d = 1/2 and delta = 1.
        gamma: at least 0.
        of: a term of the reward whose mean is d, where the reward has more in it than the task's; ``None`` for all of
            the reward.

    Raises:
        UsageError: an option out of range; when called, the reward has no such term.

    Source: Puzzle Curriculum GRPO (arXiv 2512.14944), equation 1 of its second version; the first has no delta.
    """

    scale: float = 4.0
    gamma: float = 0.5
    of: str | None = None
    _ballot: Ballot = field(default_factory=Ballot, init=False, repr=False, compare=False)

    group_relative = True

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.gamma < 0:
            raise UsageError(
                f"credit 'dispersion': scale {self.scale:g} must be above 0, and gamma {self.gamma:g} at least 0"
            )

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean", "normalisation": "difficulty and dispersion"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        means = group_mean(rewards, batch.group, batch.active)
        if self.of is not None and self.of not in batch.reward_terms:
            raise UsageError(
                f"credit 'dispersion': the reward has no term {self.of!r}{nearest(self.of, batch.reward_terms)}"
            )
        hard = means if self.of is None else group_mean(batch.reward_terms[self.of], batch.group, batch.active)
        return broadcast(self.weights(batch, hard) * (rewards - means), batch)

    def weights(self, batch: Batch, means: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
        """Return w of each sample's group, told the group's difficulty of each."""
        said = [answered(*each) for each in zip(batch.tasks, self._ballot.answers(batch), batch.verdicts, strict=True)]
        deltas = torch.zeros_like(means)
        for group in batch.group.unique():
            rows = (batch.group == group) & batch.active
            here = rows.nonzero()[:, 0].tolist()
            if here:
                task = batch.tasks[here[0]]
                known = len(task.meta["options"]) if "options" in task.meta else None
                deltas[rows] = dispersion([said[i] for i in here], known)
        d = means.clamp(0, 1)
        return self.scale * d * (1 - d) * deltas**self.gamma
