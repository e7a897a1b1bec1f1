"""S108: rewards of single turns count only where the whole of a long task came to something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.shaping.gates import Cascade
from assay.types import Episode


@paper(
    "S108",
    "G-RA",
    arxiv="2508.10548",
    seams=["rollout", "verify", "reward"],
    essentials={
        "rewards of lower priority count only where those above them pass their gates": "test_the_cascade_by_hand",
        "immediate rewards add up over the turns of an episode": "test_turns",
        "direct accumulation prefers to go on without submitting, gated accumulation to submit": (
            "test_the_sum_prefers_to_spin_and_the_gate_to_submit"
        ),
        "completion, modification and resolution are measured": "test_completion",
        "behind a gate a policy learns to submit, from the sum it learns not to": "test_a_policy_learns_to_submit",
    },
    choices=(
        "gates are in a cascade, each level behind all above it; every gate is at 0 unless given",
        "turn rewards are summed without a discount; their values are the environment's",
    ),
    lacks="the software-engineering environment: no rollout here has turns, so turn rewards come from one of your own",
)
def gated(
    levels: Mapping[str, Any] | None = None,
    gates: Mapping[str, float] | None = None,
    turns: Sequence[str] = ("format", "tools"),
    discount: float = 1.0,
) -> Method:
    """GRPO where rewards of lower priority count only behind those of higher priority that passed their gates.

        R_i = r_1 + 1[r_1 > g_1] (r_2 + 1[r_2 > g_2] (r_3 + ...)),   r_1 the outcome,  r_k = sum over turns of r_kt

    Summed directly, many small rewards for well-formed turns outweigh the outcome, and the policy learns to go on for
    ever without submitting; behind the gate they are worth nothing unless it submits. Too low a gate lets that through,
    too high a gate leaves only the outcome.

    Args:
        levels: reward parts by name, highest priority first; by default ``outcome`` (the verdict's score) and then one
            :class:`TurnSum` for each of ``turns``.
        gates: thresholds by name, 0 where left out: here, the score of a response that submits nothing.
        turns: names of turn rewards, highest priority first, as rollouts put them into the turns' ``meta["rewards"]``.
        discount: of turn rewards, per turn.

    For how often episodes are completed, change anything and resolve the task see :func:`completion`.

    Source: "Stabilizing Long-term Multi-turn Reinforcement Learning with Gated Rewards" (arXiv 2508.10548); that gates
    are in a cascade, rather than all behind the first, is a reading.
    """
    if levels is None:
        levels = {"outcome": "verdict"} | {name: TurnSum(name, discount) for name in turns}
    return Method(reward=Cascade(levels, gates))


@part("reward", "turns")
class TurnSum:
    """R_i = sum_t discount^t r_it over the turns of a response, or the mean; 0 where no turn has such a reward.

    r_it is ``meta["rewards"][name]`` of the episode's t-th span of kind ``turn``. Values are finite. With
    ``placed`` they stand on the last tokens of their turns instead, where credit by returns can tell turns apart.

    Args:
        name: of the reward.
        discount: in (0, 1].
        reduce: ``sum`` or ``mean``.
        placed: on tokens.

    Raises:
        UsageError: ``discount`` out of range, or no name; when called, a reward that is no finite number.
    """

    def __init__(self, name: str, discount: float = 1.0, reduce: Literal["sum", "mean"] = "sum", placed: bool = False):
        if not name or not 0 < discount <= 1:
            raise UsageError(f"reward 'turns': needs a name, and a discount in (0, 1], not {discount:g}")
        self.name, self.discount, self.reduce, self.placed = name, discount, reduce, placed

    def __call__(self, batch: Batch) -> Reward:
        totals, tokens = torch.zeros_like(batch.rewards), torch.zeros(batch.mask.shape, dtype=batch.rewards.dtype)
        for i, episode in enumerate(batch.episodes):
            found = turn_rewards(episode, self.name)
            share = 1 / len(found) if self.reduce == "mean" and found else 1.0
            for t, (end, value) in enumerate(found):
                worth = share * self.discount**t * value
                totals[i] += worth
                tokens[i, end - 1] += worth
        if not bool(totals.isfinite().all()):
            row = int((~totals.isfinite()).nonzero()[0, 0])
            raise UsageError(f"reward 'turns': {self.name!r} of row {row} (task {batch.tasks[row].id}) is not finite")
        values = torch.zeros_like(totals) if self.placed else totals
        return Reward(values, tokens if self.placed else None, judged(batch), {self.name: totals})


def turn_rewards(episode: Episode, name: str) -> list[tuple[int, float]]:
    """Return where each turn that has a reward of this name ends, and the reward, in order."""
    spans = sorted((s for s in episode.spans if s.kind == "turn" and s.end > s.start), key=lambda s: s.end)
    return [(s.end, float(s.meta["rewards"][name])) for s in spans if name in s.meta.get("rewards", {})]


def completion(batch: Batch) -> dict[str, float]:
    """Return the shares of judged episodes that ``completed`` (``meta["submitted"]``), ``modified`` and ``resolved``.

    ``modified``: ``meta["modified"]``; ``resolved``: the verdict passed. Empty where nothing was judged.
    """
    pairs = [(e.meta, v) for e, v in zip(batch.episodes, batch.verdicts, strict=True) if v.passed is not None]
    if not pairs:
        return {}
    counts = {
        "completed": sum(bool(meta.get("submitted")) for meta, _ in pairs),
        "modified": sum(bool(meta.get("modified")) for meta, _ in pairs),
        "resolved": sum(v.passed is True for _, v in pairs),
    }
    return {name: count / len(pairs) for name, count in counts.items()}


LEVELS = {name: {"name": "part", "part": name} for name in ("outcome", "turns")}

claims(
    Claim(
        paper="S108",
        text="Where ten well-formed turns that submit nothing are paid more than three that submit, the sum of rewards "
        "teaches not to submit; behind a gate it teaches to submit.",
        setting="choices",
        evidence="construction",
        arms={
            "sum": {"name": "grpo", "reward": {"name": "weighted", "terms": LEVELS}},
            "gated": {"name": "S108", "reward": {"name": "S108", "levels": LEVELS}},
        },
        better="gated",
        baseline="sum",
        measure="right",
        options={
            # Go on for ten turns; submit after three.
            "choices": [[[1.0, False, {"outcome": 0.0, "turns": 1.0}]], [[1.0, True, {"outcome": 0.5, "turns": 0.3}]]],
            "steps": 100,
        },
        sweep={"lr": (0.1, 0.3, 1.0)},
    )
)
