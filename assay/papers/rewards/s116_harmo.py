"""S116: accuracy by rule or by model, length as right responses have it, and format, summed and only centred."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.method import Method
from assay.ops import group_count, group_mean
from assay.rewards.length.overlong import response_lengths
from assay.rewards.text.embedding import EmbeddingSimilarity
from assay.rewards.wrapped import Around, terms_of
from assay.types import Task
from assay.verify.text.format import Format


@paper(
    "S116",
    "HARMO",
    arxiv="2510.05283",
    seams=["verify", "reward", "credit"],
    essentials={
        "a rule judges what can be verified, a model what cannot": "test_open_ended_tasks_have_another_judge",
        "the similarity of embeddings can take the reward model's place": "test_similarity_to_a_reference",
        "a bounded length penalty measures against the right responses of the group, either way": (
            "test_lengths_by_hand"
        ),
        "accuracy, length and format are summed with equal weights": "test_three_terms_weigh_the_same",
        "advantages are centred and not divided by the deviation": ("test_a_constant_in_a_term_changes_no_advantage"),
        "a policy keeps the length that being right takes, and is right more often": (
            "test_a_policy_stays_right_on_what_takes_longer"
        ),
    },
    choices=(
        "penalty 0.5 and tolerance 0.25; an open-ended response of accuracy 0.5 or more is right for the length",
        "negative similarities count 0; the format is that of the tags think and answer",
    ),
    lacks="the paper's formula of the length penalty, which is ours here",
)
def harmo(
    open_ended: Any = None,
    good: float = 0.5,
    penalty: float = 0.5,
    tolerance: float = 0.25,
    tags: tuple[str, ...] = ("think", "answer"),
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> Method:
    """GRPO with a sum of accuracy, length and format, where a model judges what no rule can, and without the deviation.

        R_i = accuracy_i + length_i + format_i,   A_i = R_i - mean R
        length_i = -penalty min(1, max(0, |T_i - T*| / T* - tolerance)),   T* the mean length of the right responses

    accuracy is 1[right] for tasks that a rule can verify and the score of ``open_ended`` for those whose
    ``task.meta["verifiable"]`` is false. Departures from T* cost in both directions, because rewards of models drift
    to short answers; a group without a right response has no length term. format is 1 for a response that consists of
    the tags in order and nothing else. Without the division by the deviation no question weighs more for being easy or
    hard, and what is constant in a term does nothing.

    Args:
        open_ended: what gives the accuracy of open-ended responses, in [0, 1]: a reward part (of a reward model), or a
            function that embeds texts, for the cosine with the reference, see
            :class:`assay.rewards.text.embedding.EmbeddingSimilarity`; negative cosines count 0. By default the
            verdict's score.
        good: an open-ended response of at least this accuracy is right, for T*.
        penalty: the greatest, not negative.
        tolerance: relative departure that is free, not negative.
        tags: of the format; none for no format term.
        weights: of accuracy, length and format.

    Source: HARMO (arXiv 2510.05283) for the three terms, their equal weights and the centred advantage; the formula
    of the length is a choice that fits its description (bounded, tolerant, from the right responses).
    """
    return Method(
        reward=HybridReward(open_ended, good, penalty, tolerance, tags, weights), credit=GRPO(normalise=False)
    )


class HybridReward(Around):
    """R_i = w_1 accuracy_i + w_2 length_i + w_3 format_i, see :func:`harmo`; a term of the log each.

    Args:
        open_ended, good, penalty, tolerance, tags, weights: see there.

    Raises:
        UsageError: a negative penalty or tolerance, or not three weights.
    """

    def __init__(
        self,
        open_ended: Any,
        good: float,
        penalty: float,
        tolerance: float,
        tags: tuple[str, ...],
        weights: tuple[float, float, float],
    ):
        if penalty < 0 or tolerance < 0 or len(weights) != 3:
            raise UsageError(
                f"reward 'S116': penalty {penalty:g} and tolerance {tolerance:g} must not be negative, and there are "
                f"three weights, not {len(weights)}"
            )
        is_part = open_ended is None or isinstance(open_ended, str | dict) or _takes_batches(open_ended)
        quality = open_ended if is_part else EmbeddingSimilarity(open_ended)
        super().__init__({"open_ended": "verdict" if quality is None else quality})
        self.good, self.penalty, self.tolerance, self.weights = good, penalty, tolerance, tuple(weights)
        self.format = Format(tags=tuple(tags)) if tags else None

    def __call__(self, batch: Batch) -> Reward:
        found, dtype = self.found(batch), batch.rewards.dtype
        opened = torch.tensor([task.meta.get("verifiable") is False for task in batch.tasks], dtype=torch.bool)
        passed = torch.tensor([v.passed is True for v in batch.verdicts], dtype=torch.bool)
        told = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        quality, can = found["open_ended"].values.clamp(0, 1), found["open_ended"].valid
        valid = torch.where(opened, batch.valid if can is None else can, told)
        accuracy = torch.where(opened, quality, passed.to(dtype))
        right = valid & torch.where(opened, quality >= self.good, passed)
        length = self.length(batch, right)
        form = torch.tensor([self._formed(e.text) for e in batch.episodes], dtype=dtype)
        a, b, c = self.weights
        terms = {"accuracy": accuracy, "length": length, "format": form, **terms_of(found)}
        return Reward(a * accuracy + b * length + c * form, valid=valid, terms=terms)

    def length(self, batch: Batch, right: torch.Tensor) -> torch.Tensor:
        """Return the length term ``(N,)``, in [-penalty, 0]; 0 where no response to the prompt is right."""
        lengths = response_lengths(batch).to(batch.rewards.dtype)
        usual = group_mean(lengths, batch.prompt_group, right)
        departure = (lengths - usual).abs() / torch.where(usual > 0, usual, 1)
        some = (group_count(batch.prompt_group, right, lengths.dtype) > 0) & (usual > 0)
        return torch.where(some, -self.penalty * (departure - self.tolerance).clamp(0, 1), 0)

    def _formed(self, text: str) -> float:
        return float(self.format is not None and bool(self.format(Task("format", ""), text).passed))


def _takes_batches(value: Any) -> bool:
    # A part's call names its argument batch; an embedding function's does not.
    return list(inspect.signature(value).parameters) == ["batch"]


claims(
    Claim(
        paper="S116",
        text="Where a response of one token is right as often as a longer one on easy prompts, the length of right "
        "responses as yardstick keeps the policy accurate on hard ones better than a bonus for being short.",
        setting="lengths",
        arms={
            "short": {
                "name": "grpo",
                "credit": {"name": "grpo", "normalise": False},
                "reward": {"name": "weighted", "terms": {"verdict": "verdict", "length": "group_length"}},
            },
            "usual": {"name": "S116", "reward": {"name": "S116", "tags": ()}},
        },
        better="usual",
        baseline="short",
        measure="hard",
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
