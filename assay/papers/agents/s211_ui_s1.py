"""S211: an expert's episodes are followed under the policy's own history, and mistakes are patched."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.turns.patched import Patched
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.process.turns import TurnRewards
from assay.select.first_return import FirstReturn

FORM = r"<think>\s*(?!\s|</think>).*?</think>\s*<action>.*?</action>"
"""What a response looks like: a thought that is not empty, then the action."""


@paper(
    "S211",
    "UI-S1",
    arxiv="2509.11543",
    seams=["rollout", "reward", "credit", "select", "objective", "evaluate"],
    essentials={
        "the history has what the policy said where it did as the expert, the expert's action where it was patched": (
            "test_the_history_is_ones_own_but_for_patches"
        ),
        "at most so many patches: none ends at the first mismatch, any number sees every step": (
            "test_patches_are_counted"
        ),
        "a patch without a thought, with one on record, or with one of the policy's own": "test_thoughts_of_patches",
        "what is observed is what the expert's actions lead to": "test_observations_are_the_experts",
        "an action is the expert's by kind, place, text, direction, key": "test_an_action_is_the_experts",
        "r = 0.1 format + 0.4 kind + 0.5 exact, and a share for what can be read": "test_step_rewards",
        "returns are cut where an action was no match": "test_the_worked_example",
        "advantages of the step and of the episode": "test_the_worked_example",
        "prompts with std(R_0) <= 0.3 are left out": "test_prompts_without_spread_are_left_out",
        "others are asked in their place": "test_other_prompts_are_asked_in_their_place",
        "SOP: the share of an episode before the first mismatch, and of those that finish": "test_sop",
        "it trains": "test_it_trains_and_is_measured_by_sop",
    },
    choices=(
        "the episode's return is the sum of its step rewards; the authors' code compares step rewards over all rows",
        "a patch has no thought unless asked; the authors' code takes annotated ones",
        "an action that can be read but is of another kind earns 0.09, as in the authors' code; nothing in the paper",
        "an empty text is the expert's only where that is empty",
    ),
)
def ui_s1(
    environment: str | dict[str, Any] | None = None,
    patches: int = 2,
    thought: Literal["none", "annotated", "own"] = "none",
    form: str | None = FORM,
    discount: float = 0.5,
    weight: float = 1.0,
    episode: Literal["return", "steps"] = "return",
    least: float = 0.3,
    rounds: int = 10,
    kl_weight: float = 1e-4,
) -> Method:
    """Offline episodes of an expert, played as if online.

        R_t = r_t + discount R_{t+1}, cut at mismatches;  A_t = A_E + weight A_S(t)

    See :class:`~assay.rollout.turns.semi_online.SemiOnline`, :class:`~assay.credit.turns.patched.Patched` and
    :class:`~assay.select.first_return.FirstReturn`. The expert is the environment's own plan, so any environment that
    has one, and can compare actions, will do; tasks come from it as well::

        [tasks.source]
        name = "environment"
        environment = "screens"
        [method]
        name = "S211"
        options = {environment = "screens"}

    Args:
        environment: a part's name, or a table with ``name`` and options; without one a rollout has to be named.
        patches, thought, form: see the rollout.
        discount, weight, episode: see the credit.
        least, rounds: see the selection.
        kl_weight: of the divergence (k3) from the model it began with.

    Source: UI-S1 (arXiv 2509.11543) and its authors' code. Its runs: 8 rollouts, learning rate 1e-6, Qwen2.5-VL-7B on
    screenshots; here on what the environment shows.
    """
    followed = {"environment": environment, "patches": patches, "thought": thought, "form": form}
    return Method(
        rollout="single_turn" if environment is None else {"name": "semi_online", **followed},
        reward=TurnRewards(),
        credit=Patched(discount, weight, episode),
        select=FirstReturn(least, discount, rounds),
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )


TURNS = (("well", "hm"), ("left", "right", "stop"))
"""A thought and an action."""
FOLLOWED = {"name": "semi_online", "patches": -1}
COMMON = {"name": "S211", "select": {"name": "all"}}

claims(
    Claim(
        paper="S211",
        text="Patched after a mismatch, rollouts along an expert's episode teach later steps from the beginning: the "
        "policy reaches the goal by itself after less training than where a rollout ends at its first mismatch.",
        setting="environment",
        unequal="a patched rollout has more turns; both have as many rollouts",
        arms={
            "patched": {**COMMON, "rollout": FOLLOWED},
            "ended": {**COMMON, "rollout": {**FOLLOWED, "patches": 0}},
        },
        better="patched",
        baseline="ended",
        measure="area",
        options={"words": TURNS, "steps": 40},
        sweep={"lr": (3.0, 10.0, 30.0, 100.0, 300.0)},
    ),
    Claim(
        paper="S211",
        name="history",
        evidence="construction",
        text="Trained under its own history a policy that thinks in its own words reaches the goal by itself; trained "
        "under the expert's, whose words are others, it meets histories that it was never trained on.",
        setting="environment",
        arms={
            "own": {**COMMON, "rollout": FOLLOWED},
            "expert": {**COMMON, "rollout": {**FOLLOWED, "history": "expert"}},
        },
        better="own",
        baseline="expert",
        measure="area",
        options={"words": TURNS, "steps": 40},
        sweep={"lr": (3.0, 10.0, 30.0, 100.0, 300.0)},
    ),
)
