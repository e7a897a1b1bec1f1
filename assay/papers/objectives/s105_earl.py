"""S105: hardware descriptions, rewarded in stages, learned at the tokens where the policy is undecided."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.policy_loss import Ratios
from assay.ops import masked_mean
from assay.types import NOTE, Task, Verdict

Functional = Literal["share", "all"]
Denominator = Literal["all", "gated"]


@paper(
    "S105",
    "EARL",
    arxiv="2511.12033",
    seams=["reward", "objective"],
    essentials={
        "a threshold for each response: a quantile of the entropies of its own tokens": "test_the_worked_example",
        "the gate keeps the policy gradient at tokens above it; the divergence holds every token": (
            "test_the_gate_stops_the_policy_gradient_and_not_the_divergence"
        ),
        "every response keeps the same share of its tokens, however sure the policy is of it": (
            "test_every_response_keeps_the_same_share_however_sure_it_is"
        ),
        "the reward of a circuit: whether it synthesises, its interface, the tests that it passes": (
            "test_rewards_of_circuits_judged_by_the_verilog_verifier"
        ),
        "a circuit that compiles and fails is worth more to its group than one that does not compile": (
            "test_stages_tell_wrong_circuits_apart_where_the_verdict_does_not"
        ),
        "in training only the decisions that the policy is unsure of are learned": (
            "test_in_training_only_uncertain_decisions_are_learned"
        ),
    },
    choices=(
        "a fifth of each response's tokens is kept (quantile 0.8); entropies are of the policy that sampled",
        "the weights of the stages: 0.2, 0.1 and 0.7; the divergence's: 0.001",
        "gated losses are divided by the number of all tokens",
        "tasks of other kinds than circuits are rewarded by their verdict",
    ),
)
def earl(
    quantile: float = 0.8,
    kl_weight: float = 1e-3,
    syntax: float = 0.2,
    interface: float = 0.1,
    function: float = 0.7,
    functional: Functional = "share",
    denominator: Denominator = "all",
) -> Method:
    """GRPO on the response's own uncertain tokens, with a reward in stages for circuits (verifier ``verilog``).

        g_it = 1[H_it >= quantile of {H_it over the response's tokens}]
        L = Agg(g_it l_it) + kl_weight Agg(KL_it),   l_it the clipped surrogate
        R = syntax 1[synthesises] + interface 1[name and ports match] + function (share of the tests passed)

    H_it is the entropy of the sampling policy at a token, before the step's first update. The threshold is one for each
    response, so that every response keeps the same share of its tokens, however sure the policy is of it as a whole.
    The gate is on the policy gradient alone: the divergence from the reference holds every token.

    Args:
        quantile: share of tokens held back, in [0, 1); 0 is GRPO.
        kl_weight: of the divergence from the policy that RL began with.
        syntax, interface, function: not negative, sum 1.
        functional: ``share`` of tests passed, or ``all`` of them (1 or 0).
        denominator: tokens that the gated loss is divided by: ``all``, or the ``gated`` ones.

    Source: EARL (arXiv 2511.12033). Its quantile and weights are not known; the defaults are choices.
    """
    return Method(
        reward=StagedReward(syntax, interface, function, functional),
        objective=EntropyGate(quantile=quantile, denominator=denominator, kl_weight=kl_weight),
    )


@dataclass(frozen=True, slots=True)
class StagedReward:
    """R_i = syntax 1[compiles] + interface 1[interface] + function f_i, from the parts of the verdict.

    ``compiles`` and ``interface`` are the verifier's parts of these names; f_i is the share of its other parts that
    score 1 (those it could not tell are left out), or with ``functional="all"`` 1 if the response passed; 0 where it
    does not compile. A verdict without the part ``compiles``, from another verifier, counts as its score. A sample
    whose verifier abstained has no reward.

    Raises:
        UsageError: weights negative, or not of sum 1.
    """

    syntax: float = 0.2
    interface: float = 0.1
    function: float = 0.7
    functional: Functional = "share"

    def __post_init__(self) -> None:
        weights = (self.syntax, self.interface, self.function)
        if min(weights) < 0 or abs(sum(weights) - 1) > 1e-9:
            raise UsageError(f"reward 'S105': syntax, interface and function {weights} must be >= 0 and of sum 1")

    @property
    def reads_more(self) -> str:
        """What :meth:`plain` looks for."""
        return "its stages are the parts of a circuit's verdict (verifier 'verilog'), and their verifier tells of none"

    def plain(self, task: Task, verdict: Verdict) -> bool:
        """Whether a verdict has no stages."""
        return "compiles" not in verdict.parts

    def __call__(self, batch: Batch) -> Reward:
        stages = torch.tensor([self._stages(v) for v in batch.verdicts], dtype=batch.rewards.dtype).reshape(-1, 3)
        valid = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        values = stages @ torch.tensor([self.syntax, self.interface, self.function], dtype=stages.dtype)
        return Reward(values, valid=valid, terms=dict(zip(("syntax", "interface", "function"), stages.T, strict=True)))

    def _stages(self, verdict: Verdict) -> tuple[float, float, float]:
        """Compiles, has the interface, does what it should: each in [0, 1]."""
        parts = dict(verdict.parts)
        if "compiles" not in parts:
            return verdict.score, verdict.score, verdict.score
        compiles, interface = (float(parts.pop(name, None) or 0.0) for name in ("compiles", "interface"))
        known = [v for name, v in parts.items() if v is not None and NOTE not in name]
        share = sum(v == 1 for v in known) / len(known) if known else float(bool(verdict.passed))
        works = share if self.functional == "share" else float(bool(verdict.passed))
        return compiles, interface, works if compiles else 0.0


@dataclass(frozen=True, slots=True)
class EntropyGate(ClippedSurrogate):
    """The clipped surrogate at tokens whose entropy reaches the quantile of their response, see :func:`earl`.

    With ``denominator="gated"`` the sum of gated losses is divided by the number of gated tokens of the mini-batch (for
    ``token_mean``; other aggregations are scaled by the same factor). Divergence, entropy bonus and everything else as
    in ``clip``, over all tokens.

    Args:
        quantile: in [0, 1).
        denominator: see above.

    Raises:
        UsageError: ``quantile`` out of range.
    """

    quantile: float = 0.8
    denominator: Denominator = "all"

    def __post_init__(self) -> None:
        ClippedSurrogate.__post_init__(self)
        if not 0 <= self.quantile < 1:
            raise UsageError(f"objective 'S105': quantile {self.quantile:g} is outside [0, 1)")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy", *ClippedSurrogate.needs.__get__(self)})

    def prepare(self, batch: Batch) -> None:
        """Count the gated tokens of a mini-batch before it is split."""
        kept = self.gate(batch).sum().to(batch.rewards.dtype)
        batch.signals["gated_tokens"] = kept.expand(len(batch)).clone()

    def gate(self, batch: Batch) -> Bool[Tensor, "N T"]:
        """Learnable tokens of active samples at or above their response's quantile of the entropy."""
        mask = batch.mask & batch.active[:, None]
        entropy = batch.signals["entropy"]
        return mask & (entropy >= row_quantile(entropy, mask, self.quantile))

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        loss, metrics = ClippedSurrogate.surrogate(self, r)
        gate = self.gate(r.batch).to(loss.dtype)
        metrics["gate/tokens"] = masked_mean(gate, r.mask)
        if self.denominator == "gated":
            counted = r.batch.signals.get("gated_tokens")
            kept = float(gate.sum()) if counted is None else float(counted[0]) if len(counted) else 0.0
            gate = gate * ((r.batch.totals or r.batch.count()).tokens / max(kept, 1.0))
        return gate * loss, metrics


def row_quantile(x: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"], q: float) -> Float[Tensor, "N 1"]:
    """Quantile of each row over ``mask``, interpolated linearly between neighbours; infinite for an empty row.

    Where the quantile falls on a member it is that member exactly, so that ``x >= quantile`` keeps it.
    """
    if x.shape[1] == 0:
        return x.new_full((len(x), 1), math.inf)
    ordered = torch.where(mask, x, math.inf).sort(-1).values
    # In float64 and rounded: 0.8 x 5 must be 4, not a little more, which would raise the threshold above its member.
    rank = (q * (mask.sum(-1, keepdim=True).double() - 1).clamp(min=0)).mul(1e9).round().div(1e9)
    low = rank.floor().long()
    share = (rank - low).to(x.dtype)
    below = ordered.gather(1, low)
    above = ordered.gather(1, (low + 1).clamp(max=x.shape[1] - 1))
    return torch.where(share > 0, below + share * (above - below), below)


claims(
    Claim(
        paper="S105",
        text="For programs, learning from the uncertain fifth of each response's tokens gives a better policy than "
        "learning from all of them.",
        setting="stack_programs",
        arms={"gated": {"name": "S105"}, "all tokens": {"name": "S105", "objective": {"quantile": 0.0}}},
        better="gated",
        baseline="all tokens",
        measure="after",
    ),
    Claim(
        paper="S105",
        name="mechanism",
        text="Learning from the uncertain fifth of the decisions of each response alone reaches right "
        "answers sooner than learning from all of them.",
        setting="unseen",
        arms={"gated": {"name": "S105"}, "all tokens": {"name": "S105", "objective": {"quantile": 0.0}}},
        better="gated",
        baseline="all tokens",
        measure="area",
        options={"branching": 2, "depth": 5, "right": 2, "smoothing": 0.1, "steps": 60},
        sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)},
        tuning=(1000, 1001),
    ),
)
