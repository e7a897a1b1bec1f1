"""S108: rewards of single turns count only where the whole of a long task came to something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.rewards.judged import judged
from assay.rewards.process.turns import TurnRewards
from assay.rewards.shaping.gates import Cascade
from assay.types import Verdict


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
        "in software engineering, who submits nothing or no change gets nothing for single turns": (
            "test_in_a_repository_only_a_change_that_is_submitted_opens_the_gate"
        ),
        "completion, modification and resolution are measured": "test_completion",
        "behind a gate a policy learns to submit, from the sum it learns not to": "test_a_policy_learns_to_submit",
    },
    choices=(
        "every gate is at 0 unless given; a change that is submitted is worth a half, and the tests the other half",
        "turn rewards are summed without a discount: by default 1 for a valid turn and 1 for a call that can be read",
        "environment repository in place of SWE-bench and kBench in containers",
    ),
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
        levels: reward parts by name, highest priority first; by default ``outcome``, see :class:`HandedIn`, and then
            one :class:`~assay.rewards.process.turns.TurnRewards` for each of ``turns``.
        gates: thresholds by name, 0 where left out: here, the score of a response that submits nothing.
        turns: names of turn rewards, highest priority first: ``valid`` and ``calls`` are told of every turn, others are
            the environment's.
        discount: of turn rewards, per turn.

    For how often episodes are completed, change anything and resolve the task see :func:`completion`.

    Source: "Stabilizing Long-term Multi-turn Reinforcement Learning with Gated Rewards" (arXiv 2508.10548), whose rule,
    as an implementation quotes it, is R^i = 0 where R^j <= the gate for any j of higher priority.
    """
    if levels is None:
        levels = {"outcome": HandedIn()} | {name: TurnRewards(name, discount, placed=False) for name in turns}
    return Method(reward=Cascade(levels, gates))


@dataclass(frozen=True, slots=True)
class HandedIn:
    """R_i = 1[submitted and modified] (1 + score) / 2 where the verdict's parts tell of both, else its score."""

    def __call__(self, batch: Batch) -> Reward:
        values = batch.rewards.new_tensor([self.worth(v) for v in batch.verdicts])
        return Reward(values, valid=judged(batch))

    def worth(self, verdict: Verdict) -> float:
        """Return what an episode of this verdict is worth."""
        told = [verdict.parts.get(name) for name in ("submitted", "modified")]
        if None in told:
            return verdict.score
        return (1 + verdict.score) / 2 if all(told) else 0.0


def completion(batch: Batch) -> dict[str, float]:
    """Return the shares of judged episodes that ``completed``, ``modified`` and ``resolved``.

    The first two are the verdict's parts ``submitted`` and ``modified``, the third is that it passed. Empty where
    nothing was judged.
    """
    verdicts = [v for v in batch.verdicts if v.passed is not None]
    if not verdicts:
        return {}
    counts = {
        "completed": sum(bool(v.parts.get("submitted")) for v in verdicts),
        "modified": sum(bool(v.parts.get("modified")) for v in verdicts),
        "resolved": sum(v.passed is True for v in verdicts),
    }
    return {name: count / len(verdicts) for name, count in counts.items()}


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
