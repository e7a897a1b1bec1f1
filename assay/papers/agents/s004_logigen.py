"""S004: tasks found forwards in databases whose rules cannot be broken, and rewards for the way to the goal's state."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.credit.turns.turn_group import TurnGroup
from assay.environments.shop.writing import Architect, Designer, Explorer
from assay.method import Method
from assay.rewards.outcome.verdict import VerdictReward
from assay.rewards.process.turns import TurnRewards
from assay.tasks.making.recipe import pipeline
from assay.tasks.making.work import Pipeline
from assay.verify.structured.state import Granularity

SHOP = "environments/test_shop.py::"


@pipeline("S004")
def written(n: int = 4, tries: int = 5, turns: int = 8) -> Pipeline:
    """Tasks whose domains, clients and talks models write: ``assay tasks make S004``.

    Seeds are words for services, each the prompt of a task::

        assay tasks make S004 --seeds services.jsonl --model MODEL --roles client=OTHER --out tasks.jsonl

    They are read with ``tasks.source.name=made`` and played in the environment ``shop``.

    Args:
        n: starts and clients of a domain.
        tries: of a domain; of a start as many.
        turns: of a talk.
    """
    steps = (("architect", Architect(tries)), ("designer", Designer(n, tries)), ("explorer", Explorer(turns)))
    return Pipeline("S004", steps)


@paper(
    "S004",
    "LOGIGEN",
    arxiv="2603.00540",
    seams=["tasks", "verify", "reward", "rollout"],
    essentials={
        "rules become constraints and triggers: preconditions abort with a code, side effects follow": (
            f"{SHOP}test_rules_refuse_and_have_effects"
        ),
        "tools create, read, update and delete, and say the rules": f"{SHOP}test_tools_say_the_rules",
        "every rule has let a call through and refused one": (
            f"{SHOP}test_every_rule_has_let_a_call_through_and_refused_one"
        ),
        "tasks are found forwards from a start at the edge, and tell nothing that only the goal knows": (
            f"{SHOP}test_tasks_hold"
        ),
        "what does not replay to the very goal is dropped": f"{SHOP}test_a_task_that_does_not_replay_is_dropped",
        "models write a domain's policy, tables and rules, each of which a probe shows to refuse and to let through": (
            "environments/test_shop_writing.py::test_a_domain_is_written_until_it_holds"
        ),
        "and starts at the edge of the rules with personas, whose talk with an adviser is played on the real tables": (
            "environments/test_shop_writing.py::test_a_talk_becomes_a_task"
        ),
        "states are facts, of cells or rows; D and Phi": "test_the_worked_states",
        "the same state is the same whatever led to it": f"{SHOP}test_the_order_of_actions_does_not_matter_to_the_key",
        "the terminal reward is Phi, clipped": "test_the_terminal_reward_is_dense",
        "a turn's is the difference of Phi, not clipped, and adds up": "test_the_worked_turns",
        "it is warmed up on plans that replay, then trained": "test_it_trains",
    },
    choices=(
        "without a model architect, set designer and explorer are generators over eight domains of six clauses",
        "Phi = 1 - D / D_0 in this form; of the paper only dense state rewards and the state difference are known",
        "a fact is a cell (table, key, column, value); whole rows with granularity = row",
        "advantages of turns compare returns of Phi by the turn's index",
    ),
)
def logigen(
    environment: str | dict[str, Any] | None = None,
    level: Literal["trajectory", "turn"] = "trajectory",
    granularity: Granularity = "cell",
    turns: int = 16,
    discount: float = 1.0,
) -> Method:
    """GRPO with a reward for how much nearer the tables are to the goal's than at the start.

        Phi(S) = 1 - D(S, S*) / max(1, D(S_0, S*));  R = clip(Phi(S_T), 0, 1), or r_t = Phi(S_{t+1}) - Phi(S_t)

    D is the number of facts in which two states differ, see :mod:`assay.verify.structured.state`; the r_t of a
    trajectory add up to Phi(S_T), as they are not clipped. Tasks and rollout are of the same environment, ``shop``::

        [tasks.source]
        name = "environment"
        environment = "shop"
        [method]
        name = "S004"
        [method.rollout]
        name = "multi_turn"
        environment = "shop"

    and the warm-up, where there is one, plays its tasks by the plans that were found.

    Args:
        environment: ``shop``, or a table with this name and options; without one a rollout has to be named.
        level: of reward and advantage: of the trajectory, or of each turn, which takes an environment with
            ``turn_rewards``.
        granularity: of the facts; of the environment made here.
        turns: of an episode, at most.
        discount: of later turns, at the level of turns.

    Source: LOGIGEN (arXiv 2603.00540). Its runs: 20,000 tasks in eight domains, a model of 32 billion parameters,
    supervised on trajectories that replay, then reinforced.
    """
    if environment is None:
        rollout: Any = "single_turn"
    else:
        named = {"name": environment} if isinstance(environment, str) else environment
        asked = {"granularity": granularity, "turn_rewards": level == "turn"}
        rollout = {"name": "multi_turn", "environment": {**asked, **named}, "turns": turns}
    if level == "trajectory":
        return Method(rollout=rollout, reward=VerdictReward(), credit=GRPO())
    return Method(rollout=rollout, reward=TurnRewards(), credit=TurnGroup("turn", "before", discount))


DONE = "It is done."
WORDS = (
    'delete_purchase(customer="C9580", product="P5448")',
    'update_purchase(customer="C9580", product="P9596", quantity=4)',
    'create_purchase(customer="C9580", product="P4418", quantity=1)',
    'create_purchase(customer="C9580", product="P2147", quantity=1)',
    'create_purchase(customer="C9580", product="P3273", quantity=1)',
    'delete_purchase(customer="C9580", product="P9596")',
    'update_purchase(customer="C9580", product="P5448", quantity=4)',
    'delete_purchase(customer="C1525", product="P1002")',
    DONE,
)
"""What can be said in the claim: the three changes that the task at place 1 takes, five others, and a goodbye."""


def _played(score: str, **more: Any) -> dict[str, Any]:
    return {"name": "multi_turn", "environment": {"name": "shop", "score": score, **more}}


claims(
    Claim(
        paper="S004",
        text="Where three changes are wanted, a terminal reward for the way made to the goal's state is learned from "
        "sooner than one for having reached it.",
        setting="environment",
        arms={
            "exact": {"name": "S004", "rollout": _played("exact")},
            "dense": {"name": "S004", "rollout": _played("phi")},
        },
        better="dense",
        baseline="exact",
        measure="area",
        options={
            "environment": {"name": "shop", "score": "exact"},
            "words": [list(WORDS)],
            "tasks": [1],
            "turns": 3,
            "prompts": 1,
            "steps": 60,
        },
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
    )
)
