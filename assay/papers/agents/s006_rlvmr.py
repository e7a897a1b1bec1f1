"""S006: turns name the kind of thought they are, simple rules pay for it, and turns of a kind are compared."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.turns.tagged import Tagged
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.ops.turns import Singleton
from assay.rewards.process.meta_reasoning import MetaReasoning
from assay.rollout.turns.tagged_turns import META


@paper(
    "S006",
    "RLVMR",
    arxiv="2507.22844",
    seams=["rollout", "reward", "credit", "objective", "select"],
    essentials={
        "a turn has one thought, tagged planning, explore, reflection or monitor, and then one action": (
            "test_a_turn_has_one_tagged_thought_and_one_action"
        ),
        "planning pays where the task is solved": "test_planning_pays_on_success",
        "exploring pays for an action that is none of the earlier ones": "test_exploring_pays_for_what_is_new",
        "reflecting pays for another action after one that failed": "test_reflecting_pays_after_a_failure",
        "r is standardised over turns of the same task and tag, A = alpha A_traj + (1 - alpha) A_tag": (
            "test_the_worked_example"
        ),
        "the code's form: A_traj + w A_tag with statistics over all turns": "test_the_worked_example_of_the_code",
        "with alpha = 1 it is GRPO": "test_with_alpha_one_it_is_grpo",
        "a turn that does not keep the form is penalised, one whose action cannot be taken is not": (
            "test_what_has_no_form_is_penalised"
        ),
        "cold start: supervised on tagged trajectories that reach the goal": "test_a_cold_start_shows_tagged_plans",
        "it trains in an environment of many turns": "test_it_trains",
    },
    choices=(
        "planning = explore = reflection = 1, as in a configuration of the authors' code; the paper does not say",
        "a turn that is alone with its tag keeps its raw reward, as in the authors' code",
        "A_traj from the trajectories' rewards, each once; the authors' code counts every turn (statistics = \"turn\")",
        "the penalty of 0.1 for a turn without the form is taken from its advantage, unscaled; the authors' code takes "
        "it from the turn's share of R (10 for success), which it centres and scales",
        "the teacher of the cold start is scripted: the environment's plan, with tags by rule",
    ),
)
def rlvmr(
    environment: Any = None,
    turns: int = 30,
    alpha: float = 0.5,
    form: Literal["mix", "sum"] = "mix",
    statistics: Literal["trajectory", "turn"] = "trajectory",
    planning: float = 1.0,
    explore: float = 1.0,
    reflection: float = 1.0,
    penalty: float = 0.1,
    scaled: bool = True,
    singleton: Singleton = "keep_raw",
    kl_weight: float = 0.01,
) -> Method:
    """GRPO on episodes of several turns, with a reward for what each turn says that it does.

        A_t = alpha A_traj + (1 - alpha) A_tag,   A_tag = (r_t - mean r) / std r  over turns of one task and tag

    A turn reads ``<planning>...</planning><action>...</action>``; ``explore``, ``reflection`` and ``monitor`` are the
    other tags. r_t is a constant where the turn did what its tag says, see
    :class:`~assay.rewards.process.meta_reasoning.MetaReasoning`, and 0 elsewhere. So much for the process; A_traj is
    GRPO's advantage of the outcome, less a penalty for turns without that form. See
    :class:`~assay.credit.turns.tagged.Tagged` for both forms of the sum.

    The cold start is the warm-up: tasks without a worked solution are shown by the environment's own plan, which a
    scripted teacher tags, see :class:`~assay.rollout.turns.tagged_turns.TaggedTurns`.

    Args:
        environment: that is played; without it give ``method.rollout``, a table with the name ``tagged_turns``.
        turns: of an episode, at most.
        alpha, form, statistics, penalty, scaled, singleton: see :class:`~assay.credit.turns.tagged.Tagged`.
        planning, explore, reflection: see :class:`~assay.rewards.process.meta_reasoning.MetaReasoning`.
        kl_weight: of the divergence (k3) from the policy after the cold start.

    Source: RLVMR (arXiv 2507.22844) and its authors' code. Its runs: groups of 8, 8 tasks a step, 30 turns, learning
    rate 1e-6, a cold start on 200 trajectories that a teacher has tagged.
    """
    played = {"name": "tagged_turns", "environment": environment, "tags": META, "turns": turns}
    return Method(
        rollout="single_turn" if environment is None else played,
        reward=MetaReasoning("verdict", planning, explore, reflection),
        credit=Tagged(alpha, form, statistics, penalty, scaled, singleton),
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )


PLAYED = {"name": "tagged_turns", "turns": 4}
THOUGHTS = tuple(f"<{tag}>so</{tag}>" for tag in META[1:])
ACTS = tuple(f"<action>{word}</action>" for word in ("left", "right", "stop"))

claims(
    Claim(
        paper="S006",
        text="With a reward for exploring by actions that are new, a policy that solves its tasks repeats fewer of its "
        "actions than by the outcome alone.",
        setting="environment",
        arms={
            "rlvmr": {"name": "S006", "options": {"kl_weight": 0.0}, "rollout": PLAYED},
            "outcome": {"name": "S006", "options": {"kl_weight": 0.0, "alpha": 1.0}, "rollout": PLAYED},
        },
        better="rlvmr",
        baseline="outcome",
        measure="fresh",
        options={
            "environment": {"name": "corridor", "rooms": 3},
            "words": (THOUGHTS, ACTS),
            "tasks": (0, 2, 3, 5),
            "turns": 4,
            "steps": 60,
        },
        sweep={"lr": (1.0, 3.0, 10.0, 30.0)},
    )
)
