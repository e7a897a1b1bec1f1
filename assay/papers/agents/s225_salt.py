"""S225: steps that trajectories of one task share get the mean of their advantages; others keep their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.turns.salt import Salt
from assay.method import Method


@paper(
    "S225",
    "SALT",
    arxiv="2510.20022",
    seams=["credit"],
    essentials={
        "trajectories of a task form a graph: states are nodes, steps are edges, shared ones are merged": (
            "test_the_worked_example"
        ),
        "a merged step gets the mean advantage of the trajectories that take it": "test_the_worked_example",
        "after they have parted trajectories merge again": "test_trajectories_come_together_again",
        "a step of one trajectory keeps its advantage": "test_without_anything_shared_it_is_its_base",
        "it stands on any group advantage, and needs the outcome alone": "test_any_group_credit_will_do",
        "actions that are nearly alike are merged": "test_actions_of_like_meaning",
        "the update of what is alike in merged steps stays as it was": "test_the_advantages_of_a_step_add_up",
        "it trains": "test_it_trains",
    },
    choices=(
        "a node is what the environment calls a state, else what it said last",
        "steps merge if the one before is the same too (window 1)",
        "actions are tool calls or the line that is the action; embeddings are compared only if asked (similar)",
    ),
)
def salt(
    base: Any = "grpo",
    window: int | None = 1,
    same: Literal["action", "text"] = "action",
    similar: float | None = None,
) -> Method:
    """GRPO whose advantages are averaged over the trajectories of the group that take the same step.

        A_it = mean of A_j over trajectories j with an edge equal to that of turn t of trajectory i

    Edges are equal from the same state by the same action to the same state, after the same ``window`` steps. What all
    do is neutral; where trajectories part, each step keeps what came of it. No more is sampled and nothing is learned;
    the graph takes no time. For episodes of several turns, so ``rollout`` is ``multi_turn`` with an environment; best
    one that tells its states.

    Args:
        base: the advantages of trajectories: ``grpo``, ``rloo`` or another credit of whole responses.
        window, same, similar: when steps are the same, see :class:`~assay.credit.turns.salt.Salt`.

    Source: SALT (arXiv 2510.20022). Its text leaves open what a node is and when actions are alike.
    """
    return Method(credit=Salt(base, window, same, similar=similar))


claims(
    CLAIM := Claim(
        paper="S225",
        text="Where turns begin with a thought of no consequence, advantages of steps that trajectories share let the "
        "policy learn from fewer rollouts than advantages of trajectories.",
        setting="environment",
        arms={"grpo": {"name": "grpo"}, "salt": {"name": "S225"}},
        better="salt",
        baseline="grpo",
        measure="area",
        options={
            "environment": {"name": "corridor", "rooms": 2, "moves": 2},
            "words": (("a", "b", "c", "d", "e", "f"), ("left", "right", "stop")),
            "tasks": (0,),
            "turns": 2,
            "prompts": 1,
            "steps": 200,
        },
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
    ),
    replace(
        CLAIM,
        name="mechanism",
        text="Where turns begin with a thought of no consequence, its logits are moved less if shared steps get the "
        "mean of their advantages.",
        measure="quiet",
        sweep={"lr": (0.3, 1.0, 3.0)},
    ),
)
