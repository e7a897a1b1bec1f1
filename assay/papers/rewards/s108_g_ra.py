"""S108: rewards of single turns count only where the whole of a long task came to something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.rewards.process.turns import TurnRewards
from assay.rewards.shaping.gates import Cascade


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
        "turn rewards are summed without a discount: by default 1 for a valid turn and 1 for a call that can be read",
    ),
    lacks="the software-engineering environment that its rewards were tried in",
)
def gated(
    levels: Mapping[str, Any] | None = None,
    gates: Mapping[str, float] | None = None,
    turns: Sequence[str] = ("valid", "calls"),
    discount: float = 1.0,
) -> Method:
    """GRPO where rewards of lower priority count only behind those of higher priority that passed their gates.

        R_i = r_1 + 1[r_1 > g_1] (r_2 + 1[r_2 > g_2] (r_3 + ...)),   r_1 the outcome,  r_k = sum over turns of r_kt

    Summed directly, many small rewards for well-formed turns outweigh the outcome, and the policy learns to go on for
    ever without submitting; behind the gate they are worth nothing unless it submits. Too low a gate lets that through,
    too high a gate leaves only the outcome.

    Args:
        levels: reward parts by name, highest priority first; by default ``outcome`` (the verdict's score) and then one
            :class:`~assay.rewards.process.turns.TurnRewards` for each of ``turns``.
        gates: thresholds by name, 0 where left out: here, the score of a response that submits nothing.
        turns: names of turn rewards, highest priority first: ``valid`` and ``calls`` are told of every turn, others are
            the environment's.
        discount: of turn rewards, per turn.

    For how often episodes are completed, change anything and resolve the task see :func:`completion`.

    Source: "Stabilizing Long-term Multi-turn Reinforcement Learning with Gated Rewards" (arXiv 2508.10548); that gates
    are in a cascade, rather than all behind the first, is a reading.
    """
    if levels is None:
        levels = {"outcome": "verdict"} | {name: TurnRewards(name, discount, placed=False) for name in turns}
    return Method(reward=Cascade(levels, gates))


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
