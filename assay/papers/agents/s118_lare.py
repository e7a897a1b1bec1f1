"""S118: rewards of turns decoded from factors that a model has written, fitted to what episodes were paid."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.turns.turn_group import TurnGroup
from assay.method import Method
from assay.rewards.process.latent_reward import LatentReward


@paper(
    "S118",
    "LaRe",
    arxiv="2412.11120",
    seams=["verify", "reward", "objective", "policies"],
    essentials={
        "a model writes candidates of a function from observations to factors, and merges them": (
            "test_candidates_are_merged"
        ),
        "it is run on real observations in the sandbox; exceptions and wrong shapes go back to the model": (
            "test_what_fails_is_corrected"
        ),
        "a function that never runs never reaches training": "test_a_function_that_never_runs_is_not_used",
        "return decomposition, and its randomised form without bias": "test_losses_by_hand",
        "steps after the end are masked": "test_steps_after_the_end_are_none",
        "decoded rewards replace what the environment paid, without a gradient": (
            "test_decoded_rewards_stand_on_turns"
        ),
        "the decoder goes on being fitted to trajectories of all policies": "test_the_decoder_recovers_step_rewards",
        "of several agents rewards add up over agents and steps to what all were paid, and each has its own": (
            "test_rewards_of_agents_add_up"
        ),
        "it trains": "test_it_learns_in_the_corridor",
        "and so do several agents, each of whom sees its own surroundings": "test_several_agents_train",
    },
    choices=(
        "observations are what is known of a turn: its record as numbers; words of the prompt",
        "10 steps of an episode are drawn (k), of which there are few; the authors draw 64",
        "until the first fit an episode is paid its verdict; credit: returns over turns compared in the group",
    ),
)
def lare(
    engine: Any = None,
    path: Path | None = None,
    task: str = "",
    n: int = 5,
    loss: Literal["sum", "random"] = "random",
    k: int = 10,
    updates: int = 100,
    lr: float = 3e-4,
) -> Method:
    """Rewards r_hat = f(phi(turn)) in place of a reward at the end, phi written by a model and f fitted to returns.

    Several agents, each with what it sees and its own rewards, play environment ``spread``::

        [method]
        name = "S118"
        rollout = {name = "multi_turn", environment = "spread", turns = 24, context = "rounds", keep = 0}

    Args:
        engine, path, task, n, loss, k, updates, lr: see :class:`~assay.rewards.process.latent_reward.LatentReward`.

    Source: LaRe (arXiv 2412.11120) and its authors' code.
    """
    return Method(LatentReward(engine, path, task, n, loss=loss, k=k, updates=updates, lr=lr), TurnGroup(apart=True))


claims(
    Claim(
        paper="S118",
        text="A decoder of a few factors finds what single steps are worth from returns of episodes better than one of "
        "all that is seen.",
        setting="latent_returns",
        evidence="mechanism",
        arms={"factors": {"features": "factors"}, "seen": {"features": "seen"}},
        better="factors",
        baseline="seen",
        measure="fit",
        sweep={"lr": (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)},
    )
)
