"""S154: an oracle checks every action in the state it is taken in; turns are compared at the same turn of the group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.turns.turn_group import TurnGroup
from assay.method import Method
from assay.rewards.outcome.verdict import VerdictReward
from assay.rewards.process.turns import TurnRewards
from assay.rewards.shaping.weighted import WeightedSum


@paper(
    "S154",
    "VPR",
    arxiv="2605.10325",
    seams=["rollout", "reward", "credit"],
    essentials={
        "the environment's oracle is asked of every action in the state it is taken in": (
            "test_every_action_is_judged_where_it_is_taken"
        ),
        "search: an action is right if it has the best value there is": "test_the_oracle_that_searches",
        "constraints: a digit is right if the one solution has it": "test_the_oracle_of_constraints",
        "posterior: to reveal is right where no mine can be": "test_the_oracle_of_chances",
        "turn rewards are normalised over the group at the same turn": "test_the_worked_example",
        "fewer than two alive: nothing": "test_who_is_alone_at_a_turn_learns_nothing",
        "errors of the oracle scale the gradient by 1 - 2e": "test_an_oracle_that_errs",
        "turn by turn the policy learns what outcomes hardly show": "test_it_learns_where_hardly_an_episode_succeeds",
        "it trains": "test_it_trains_on_games",
    },
    choices=(
        "as in the authors' code: the population's deviation, no later rewards (lookahead none), no outcome",
        "the group at a turn are the task's trajectories that have one (alive); padded counts those that ended as 0",
        "the authors' code compares all trajectories of the batch, and turns that fewer than 4 have with all turns",
        "minimax in place of a tree search with rollouts, as in the authors' code: the boards are small enough",
        "an action that cannot be taken is worth 0, as any wrong one; in the authors' code -1, and the end",
        "a turn whose oracle abstains is compared with nobody",
    ),
)
def vpr(
    environment: str | dict[str, Any] | None = None,
    turns: int = 16,
    lookahead: Literal["none", "after", "before"] = "none",
    discount: float = 1.0,
    outcome: float = 0.0,
    padded: bool = False,
    ddof: int = 0,
) -> Method:
    """GRPO of turns: each is worth what an oracle says of its action, compared with the siblings' at the same turn.

        r_it = 1[the action of turn t is right in its state]
        A_it = (r_it - mean_j r_jt) / (std_j r_jt + epsilon) + outcome (R_i - mean R) / (std R + epsilon)

    over the trajectories j that have a turn t. ``games`` has exact oracles: minimax for TicTacToe, the one solution of
    a Sudoku, the posterior of mines::

        [tasks.source]
        name = "environment"
        environment = {name = "games", names = ["sudoku4"]}
        [method]
        name = "S154"
        options = {environment = {name = "games", names = ["sudoku4"]}}

    Args:
        environment: that has an oracle (:class:`~assay.environments.base.Oracle`); without one a rollout has to be
            named: ``{name = "multi_turn", environment = ..., oracle = true}``.
        turns: of an episode, at most.
        lookahead: ``none``, or normalised rewards are summed over later turns (``after``), or rewards are before they
            are normalised.
        discount: of a lookahead.
        outcome: weight of the trajectory's own advantage.
        padded: trajectories that have ended count as 0; a lookahead ``after`` is biased without it.
        ddof: 0 for the population's standard deviation.

    Source: VPR (arXiv 2605.10325), as first published, and its authors' code, whose later state has another rollout
    too: several candidates in each state, the best of which is played.
    """
    played = {"name": "multi_turn", "environment": environment, "turns": turns, "oracle": True}
    return Method(
        rollout="single_turn" if environment is None else played,
        reward=WeightedSum({"verdict": VerdictReward(), "oracle": TurnRewards("verdict")}),
        credit=TurnGroup("turn", lookahead, discount, ddof=ddof, of="turns", episode=outcome, padded=padded),
    )


OPTIONS = {"environment": {"name": "corridor", "rooms": 6, "moves": 6}, "tasks": (4,), "turns": 6, "prompts": 1}

claims(
    CLAIM := Claim(
        paper="S154",
        text="Where six actions have to be right, turns judged by an oracle and compared with the siblings' at the "
        "same turn lead to success more often than outcomes do.",
        setting="environment",
        arms={
            "outcome": {"name": "grpo"},
            "vpr": {"name": "S154", "rollout": {"oracle": True}},
        },
        better="vpr",
        baseline="outcome",
        measure="final",
        options={**OPTIONS, "steps": 150},
        sweep={"lr": (1.0, 3.0, 10.0)},
    ),
    replace(
        CLAIM,
        name="returns",
        text="With the oracle's rewards, comparing single turns learns from fewer rollouts than comparing their sums.",
        arms={
            "sums": {"name": "grpo", "reward": {"name": "turns", "of": "verdict"}, "rollout": {"oracle": True}},
            "vpr": {"name": "S154", "rollout": {"oracle": True}},
        },
        baseline="sums",
        measure="area",
    ),
)
