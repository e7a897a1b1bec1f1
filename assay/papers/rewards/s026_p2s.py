"""S026: where no response is right, reward what leads towards a good chain of thought."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.ops import group_sum
from assay.registry import part
from assay.rollout.answer_guided import TEMPLATE
from assay.signals.likelihood import ReferenceLikelihood
from assay.signals.likelihoods.path_gains import PathGains
from assay.signals.reasoning import ANSWER, Sections


@paper(
    "S026",
    "P2S",
    arxiv="2601.20649",
    seams=["rollout", "reward"],
    essentials={
        "chains are written with the answer in sight; those without the form are dropped": (
            "test_chains_are_written_with_the_answer_in_sight"
        ),
        "the chain after which the reference is likeliest is the good one": "test_gains_in_a_language_model",
        "a step is worth the greatest rise in the likelihood of a suffix of it, against a masked prefix": (
            "test_gains_in_a_language_model"
        ),
        "the last step is worth the log-likelihood of the reference": "test_gains_in_a_language_model",
        "later steps weigh more, by a sigmoid": "test_the_worked_example",
        "-1 without the form, the outcome where a response is right, the path's reward elsewhere": (
            "test_which_reward_a_group_gets"
        ),
        "better reasoning is learned where hardly any response is right": "test_it_acts_in_training",
    },
    choices=(
        "slope 1, at most 4 steps, a quarter of the responses chains",
        "log-probabilities are means by token",
        "rewards are summed to one for a response",
        "no steps at the beginning for the form alone; the paper has some, and does not say how many",
    ),
)
def p2s(
    share: float = 0.25,
    most: int = 4,
    slope: float = 1.0,
    cold: int = 0,
    template: str = TEMPLATE,
    open: str | None = None,
    close: str = "</answer>",
) -> Method:
    """GRPO with a path-faithfulness reward for prompts none of whose responses is right.

        r_i = max_t [log pi(s_t | x, p_i) - log pi(s_t | x, mask_i)],  i < m,     r_m = log pi(y* | x, z)
        PFR = sum_i w_i r_i,   w_i proportional to sigmoid(slope (i - (m + 1) / 2)),  sum_i w_i = 1
        R = -1 without the form; the verdict's score if some response of the prompt is right; PFR otherwise

    p_i are the first i of m steps of the response's reasoning z, s_t what the chain o* has from its step t on. o* is
    the chain after which the reference y* is likeliest, of those written under a prompt that shows y*. See
    :class:`~assay.signals.likelihoods.path_gains.PathGains` and :class:`~assay.rollout.answer_guided.AnswerGuided`.

    Args:
        share: of a prompt's responses that are chains, which are not learned from.
        most: steps of a response.
        slope: of the weights; 0 for equal ones.
        cold: steps at the beginning that reward the form alone, 0 with it and -1 without.
        template: shows y* as ``{answer}``.
        open, close: what answers stand between, the form being to have both; without ``open`` the answer is where the
            task's verifier reads it, and the form is to have one.

    Source: P2S (arXiv 2601.20649), from notes on its whole text that agree with each other. Slope, number of steps and
    chains are not known, nor whether log-probabilities are per token, as they are here; these are choices.
    """
    likelihood = ReferenceLikelihood("reasoning", open, close)
    return Method(
        reward=PathFaithfulness(slope, cold, PathGains(likelihood, most)),
        rollout={"name": "answer_guided", "share": share, "template": template, "open": open},
    )


@part("reward", "path_faithfulness")
@dataclass(slots=True)
class PathFaithfulness:
    """R_i, see :func:`p2s`. A sample whose verifier abstained has no reward; one without a likelihood counts its PFR 0.

    Args:
        slope, cold: see there.
        gains: the signal.

    Raises:
        UsageError: ``cold`` negative.
    """

    slope: float = 1.0
    cold: int = 0
    gains: PathGains = field(default_factory=PathGains)
    _done: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.cold < 0:
            raise UsageError(f"reward 'path_faithfulness': cold {self.cold} must not be negative")

    @property
    def needs(self) -> frozenset[Any]:
        likelihood = self.gains.likelihood
        sections = {Sections(None, likelihood.close)} if likelihood.open is None else set()
        return frozenset({self.gains, *sections})

    def __call__(self, batch: Batch) -> Reward:
        dtype = batch.rewards.dtype
        judged = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        passed = torch.tensor([float(bool(v.passed)) for v in batch.verdicts], dtype=dtype)
        score = torch.tensor([v.score for v in batch.verdicts], dtype=dtype)
        formed = self.formed(batch)
        faithful = combined(batch.signals["path_gains"], self.slope).to(dtype)
        solved = group_sum(passed, batch.prompt_group, judged) > 0
        values = torch.where(solved, score, faithful)
        if self._done < self.cold:
            values = torch.zeros_like(values)
        self._done += 1
        values = torch.where(judged, torch.where(formed, values, -1), 0)
        terms = {"verdict": score, "faithful": faithful, "format": formed.to(dtype), "solved": solved.to(dtype)}
        return Reward(values, valid=judged, terms=terms)

    def formed(self, batch: Batch) -> Bool[Tensor, "N"]:
        """Whether a response has an answer; with ``open``, whether it opens one and closes it."""
        open_, close = self.gains.likelihood.open, self.gains.likelihood.close
        if open_ is None:
            return (batch.signals["sections"] == ANSWER).any(-1)
        parts = [e.text.rpartition(open_) for e in batch.episodes]
        return torch.tensor([bool(found) and close in after for _, found, after in parts], dtype=torch.bool)

    def state_dict(self) -> dict[str, Any]:
        return {"done": self._done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._done = int(state["done"])


def combined(gains: Float[Tensor, "N M"], slope: float) -> Float[Tensor, "N"]:
    """Return sum_i w_i r_i over the steps there are, see :func:`p2s`; 0 for none."""
    known = ~gains.isnan()
    m = known.sum(-1, keepdim=True)
    place = torch.arange(1, gains.shape[1] + 1)
    weights = torch.where(known, torch.sigmoid(slope * (place - (m + 1) / 2)), 0)
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)
    return torch.where(known, weights * gains.nan_to_num(0), 0).sum(-1)


LIKELIHOOD = {"open": "=", "close": ""}

claims(
    Claim(
        paper="S026",
        text="Where hardly any response is right, rewards for the path lead to more right answers than the outcome "
        "alone, at equal responses.",
        setting="references",
        options={
            "branching": 4,
            "depth": 2,
            "length": 2,
            "low": 0.02,
            "high": 0.3,
            "spread": 1.0,
            "alike": True,
            "insight": 2.0,
            "shown": True,
        },
        arms={
            "grpo": {"name": "grpo"},
            "p2s": {
                "name": "S026",
                "reward": {"name": "path_faithfulness", "gains": {"likelihood": LIKELIHOOD, "most": 4}},
                "rollout": {"name": "answer_guided", "template": "{question}/{answer}", "open": "="},
            },
        },
        better="p2s",
        baseline="grpo",
        measure="right/area",
        sweep={"lr": (0.3, 1.0, 3.0)},
    )
)
