"""S104: the likelihood of a long reference, weighted towards the tokens that the reasoning makes a difference to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.registry import part
from assay.rewards.likelihood.reference import needed, told
from assay.select.chain import Chain
from assay.select.filters.key_spread import KeySpread
from assay.select.filters.reference_rank import ReferenceRank
from assay.signals.likelihood import ReferenceLikelihood
from assay.signals.likelihood_value import first
from assay.signals.likelihoods.reference_ranks import ReferenceRanks
from assay.signals.reasoning import ANSWER, Sections

FULL = "reference_likelihood"
BARE = "reference_likelihood_without"
Form = Literal["weights", "keys", "sum"]


@paper(
    "S104",
    "DRO with R3",
    arxiv="2506.13351",
    seams=["reward", "select", "curriculum"],
    essentials={
        "tokens of the reference weigh by how much their likelihood differs between the group's reasonings": (
            "test_the_worked_example"
        ),
        "the likelihood without the reasoning is subtracted": "test_in_a_language_model",
        "what follows an unlikely key token counts as unlikely, so that it cannot make up for it": (
            "test_what_follows_an_unlikely_key_token_counts_as_unlikely"
        ),
        "the length of the final answer is held to the reference's": "test_lengths",
        "prompts are left out whose reference no reasoning brings within reach": (
            "test_prompts_whose_reference_no_reasoning_brings_within_reach"
        ),
        "prompts are left out whose reference no reasoning makes a difference to": (
            "test_the_filter_drops_prompts_that_reasoning_makes_no_difference_to"
        ),
        "both filter all of the data before training, and again within it by the policy of then": (
            "test_the_data_is_filtered_before_training_and_within_it"
        ),
        "a share of what was learned from before is carried over": "test_a_share_is_carried_over",
        "where one token of many depends on the reasoning, the weights teach it better than the plain sum": (
            "test_a_policy_reasons_better_for_the_weights"
        ),
    },
    choices=(
        "w = sigma / sum sigma over the top share of tokens; the keys of the other form are that share, gamma 0.5",
        "the masked reasoning is none at all; a response without an answer is worth the worst beside it",
        "the loss is averaged over tokens; the paper's is Dr. GRPO's with scaled rewards",
        "length weight 0.1 and slope 1; ranks within 100 of the worst tenth; a quarter of the prompts dropped",
        "16 responses to each prompt of the data, before training and every 100 steps; a tenth stays anyway",
    ),
)
def dro(
    form: Form = "weights",
    top: float = 1.0,
    gamma: float = 0.5,
    length_weight: float = 0.1,
    length_slope: float = 1.0,
    drop: float = 0.25,
    within: float = 100,
    worst: float = 0.1,
    model: Literal["policy", "reference"] = "policy",
    open: str | None = None,
    close: str = "</answer>",
    over: Literal["data", "step"] = "data",
    tries: int = 16,
    every: int = 100,
    carry: float = 0.1,
    pool: int | None = None,
    kl_weight: float = 0.001,
) -> Method:
    """GRPO with the reasoning-reflection reward R3 in place of a verifier.

        sigma_j = std over the group's responses i of l_ij,  l_ij = log pi(y*_j | x, z_i, y*_<j)
        R_i = sum_j w_j (l_ij - l0_j) + length_weight (1 - length_slope | L - |y_i| | / L),   w_j = sigma_j / sum sigma

    l0 is l without the reasoning, L the reference's tokens, |y_i| those of the response's own answer. In a long
    reference few tokens depend on what was thought; in the plain sum (``form="sum"``, w = 1 / L) all others add noise.
    Left out are truncated responses; prompts of whose responses none has a mean rank of the ``worst`` share of the
    reference's tokens ``within`` the likeliest of the vocabulary; and the share ``drop`` of the other prompts with the
    least max_j sigma_j. Prompts are left out of all the data, before training and now and then in it.

    Args:
        form, top, gamma, length_weight, length_slope, model, open, close: see :class:`ReflectionReward`.
        drop: in [0, 1); 0 keeps all; see :class:`KeySpread`.
        within, worst: see :class:`~assay.select.filters.reference_rank.ReferenceRank`; ``within`` = infinity keeps all,
            and saves its pass.
        over: whether ``data`` is filtered by ``tries`` responses to each prompt, before the first step and ``every`` so
            many, a share ``carry`` of it staying anyway (see :class:`~assay.curriculum.sifted.Sifted`), or the prompts
            of each ``step`` by the responses that are learned from, which takes no further ones.
        tries, every, carry, pool: of the filters over data; an endless source needs a ``pool`` to take from it.
        kl_weight: of the divergence from the reference policy.

    A lagged scorer is not part of it.

    Source: Direct Reasoning Optimization (arXiv 2506.13351). Exact weights, the mixing weight, the slope of the length
    and the numbers of the filters are not given there; these are choices.
    """
    reward = ReflectionReward(form, top, gamma, length_weight, length_slope, model, open, close)
    filters: list[Any] = []
    if math.isfinite(within):
        filters.append(ReferenceRank(within, worst, ReferenceRanks(reward.likelihood)))
    if drop:
        filters.append(KeySpread(drop, reward.likelihood))
    objective = ClippedSurrogate(kl_weight=kl_weight)
    if over == "step" or not filters:
        return Method(reward=reward, select=Chain(["overlong", *filters]), objective=objective)
    sifted = {"name": "sifted", "filters": filters, "tries": tries, "every": every, "carry": carry, "pool": pool}
    return Method(reward=reward, select=Chain(["overlong"]), objective=objective, curriculum=sifted)


@part("reward", "reflection")
@dataclass(frozen=True, slots=True)
class ReflectionReward:
    """R_i = R3_i + length_weight r_i; R3 by ``form``, over the tokens j of the reference:

    - ``weights``: sum_j w_j (l_ij - l0_j), w_j proportional to sigma_j among the ``top`` share with the largest sigma;
    - ``sum``: the same with w_j = 1 / L;
    - ``keys``: sum_j w_j (l_ij + sum_{k < j, k key} log P_ik(j)), the key tokens being that share, and P_ik(j) = p_ik +
      (1 - p_ik) (1 - exp(-gamma (j - k))), p_ik = exp(l_ik): what follows an unlikely key token closely counts as
      unlikely too, so that it cannot make up for it. The likelihood without the reasoning does not enter it.

    sigma_j is the population's standard deviation over the prompt's responses with a likelihood; where all are 0, so is
    R3 but for ``sum``, and there is no key. A response that opens no answer has no likelihood: it is worth the least
    R3 of its siblings, and r = 1 - length_slope. Where no likelihood can be told there is no reward.

    Args:
        form, gamma: see above.
        top: share of the tokens, in (0, 1].
        length_weight: of r_i = 1 - length_slope | L - |y_i| | / L.
        length_slope: b.
        model: whose l: ``policy``, or ``reference``, as RL began.
        open, close: what answers stand between; without ``open`` the task's verifier is asked.

    Raises:
        UsageError: an option out of range.
    """

    form: Form = "weights"
    top: float = 1.0
    gamma: float = 0.5
    length_weight: float = 0.1
    length_slope: float = 1.0
    model: Literal["policy", "reference"] = "policy"
    open: str | None = None
    close: str = "</answer>"
    likelihood: ReferenceLikelihood = field(init=False, repr=False)
    without: ReferenceLikelihood = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.top <= 1 or self.gamma <= 0:
            raise UsageError(f"reward 'reflection': top {self.top:g} must be in (0, 1], gamma {self.gamma:g} above 0")
        full = ReferenceLikelihood("reasoning", self.open, self.close, model=self.model, name=FULL)
        object.__setattr__(self, "likelihood", full)
        object.__setattr__(self, "without", replace(full, after="nothing", name=BARE))

    @property
    def needs(self) -> frozenset[Any]:
        sections = {Sections(self.open, self.close)} if self.length_weight else set()
        return needed(self.likelihood) | {self.without, *sections}

    def __call__(self, batch: Batch) -> Reward:
        logs = first(batch.signals[FULL])
        bare = first(batch.signals[BARE])
        valid, absent = told(batch, logs, self.likelihood)
        valid = valid & (~bare.isnan()).any(-1)
        values = torch.zeros_like(batch.rewards)
        for group in batch.prompt_group.unique():
            rows = ((batch.prompt_group == group) & valid & ~absent).nonzero()[:, 0]
            if len(rows):
                width = int((~logs[rows[0]].isnan()).sum())
                found = self.reflect(logs[rows, :width], bare[rows, :width]).to(values.dtype)
                values[rows] = found
                values[(batch.prompt_group == group) & absent] = found.min()
        terms = {"r3": values, "opened": (~absent).to(values.dtype)}
        if self.length_weight:
            own = ((batch.signals["sections"] == ANSWER) & batch.mask).sum(-1)
            length = (~bare.isnan()).sum(-1).clamp(min=1)
            terms["length"] = (1 - self.length_slope * (length - own).abs() / length).to(values.dtype)
            values = values + self.length_weight * terms["length"]
        return Reward(torch.where(valid, values, 0), valid=valid, terms=terms)

    def reflect(self, logs: Float[Tensor, "G L"], bare: Float[Tensor, "G L"]) -> Float[Tensor, "G"]:
        """Return R3 of responses to one prompt, all with a likelihood."""
        sigma = logs.std(0, correction=0)
        count = max(1, round(self.top * len(sigma)))
        chosen = torch.zeros_like(sigma, dtype=torch.bool)
        chosen[sigma.argsort(descending=True, stable=True)[:count]] = True
        chosen &= sigma > 0
        if self.form == "sum":
            return (logs - bare).mean(-1)
        kept = torch.where(chosen, sigma, 0)
        told = logs - bare if self.form == "weights" else logs + repaired(logs.exp(), chosen, self.gamma)
        return (kept / kept.sum().clamp(min=1e-12) * told).sum(-1)


def repaired(p: Float[Tensor, "G L"], keys: Tensor, gamma: float) -> Float[Tensor, "G L"]:
    """Return sum_{k < j, k in keys} log P_k(j), see :class:`ReflectionReward`."""
    place = torch.arange(p.shape[1])
    behind = (place[None] > place[:, None]) & keys[:, None]  # [k, j]
    distance = (place[None] - place[:, None]).clamp(min=0).to(p.dtype)
    chance = p[:, :, None] + (1 - p[:, :, None]) * (1 - (-gamma * distance).exp())
    return torch.where(behind, chance.clamp(min=1e-30).log(), 0).sum(1)


def in_lab(form: str) -> dict[str, object]:
    """An arm of the setting ``references``."""
    return {
        "name": "S104",
        "reward": {"name": "reflection", "form": form, "length_weight": 0.0, "open": "=", "close": ""},
        "select": "all",
        "curriculum": "uniform",
    }


claims(
    Claim(
        paper="S104",
        text="Where 1 of 60 tokens of the reference depends on the reasoning and the others are noise, the weighted "
        "likelihood teaches better reasoning than the plain one.",
        setting="references",
        options={"length": 60, "letters": 2, "keys": 1, "noise": 0.5, "tasks": 1, "prompts": 1, "steps": 100},
        arms={form: in_lab(form) for form in ("weights", "sum")},
        better="weights",
        baseline="sum",
        measure="quality",
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
