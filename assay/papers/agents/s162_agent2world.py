"""S162: world models are written, played in by a testing team, mended, and learned from where the last one is right."""

from __future__ import annotations

from typing import Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.turns.turn_group import TurnGroup
from assay.method import Method
from assay.objectives.sft import SFT
from assay.rewards.outcome.verdict import VerdictReward
from assay.rewards.process.turns import TurnRewards
from assay.rewards.shaping.weighted import WeightedSum
from assay.select.verdicts import OfVerdict

_VERIFY = "verify/test_verify_behaviour.py"
_WORLD = "environments/test_world_models.py"


@paper(
    "S162",
    "Agent2World",
    arxiv="2512.22336",
    seams=["tasks", "verify", "rollout", "select", "reward", "evaluate"],
    essentials={
        "specifications of gridworlds, households, databases and planning domains, each with a hidden true world": (
            f"{_WORLD}::test_the_worlds_are_those_of_their_environments"
        ),
        "what a description leaves open is found among facts": f"{_WORLD}::test_gaps_are_looked_up",
        "static validation: it parses and has what it needs, and passes wrong dynamics": (
            f"{_VERIFY}::test_static_validation_passes_wrong_dynamics"
        ),
        "a missing precondition, a negated effect, swapped arguments: each is reported": (
            f"{_WORLD}::test_each_fault_of_a_domain_is_reported"
        ),
        "the unit tester writes new tests for each version and keeps the old ones": (
            f"{_VERIFY}::test_unit_tests_follow_the_code_and_are_kept"
        ),
        "the simulation tester plays episodes, at random and by plan, and says step, state, expected, got": (
            f"{_VERIFY}::test_the_simulation_tester"
        ),
        "hidden tests are apart from what testers tell; knowing those gains nothing there": (
            f"{_WORLD}::test_special_cases_gain_nothing_hidden"
        ),
        "transition accuracy: state, reward and end": f"{_VERIFY}::test_the_accuracy_of_transitions",
        "(J_model - J_random) / (J_true - J_random), in the true world": f"{_VERIFY}::test_returns_in_the_true_world",
        "component F1, names and variables apart, micro and macro": f"{_VERIFY}::test_the_worked_f1",
        "write, report, mend, in turns; a turn earns the increase of the hidden share": (
            f"{_WORLD}::test_turns_earn_the_increase_of_the_hidden_share"
        ),
        "a conversation is learned from iff its last model passes, the developer's turns alone": (
            "test_only_conversations_that_end_well"
        ),
        "fine-tuning on them, and turn rewards, in training": "test_it_acts_in_training",
    },
    choices=(
        "4 versions, 12 new unit tests and 4 episodes a round; the budgets of the paper are not known to us",
        "testers follow rules and ask the true world of the visible half; in the paper they are models with a text",
        "facts are ranked by BM25; in the paper a model searches the web",
        "the first version is paid against the draft's hidden share, or against nothing",
        "a model passes with all hidden steps right and a return that is the truth's",
    ),
)
def agent2world(stage: Literal["sft", "rl"] = "sft", per_prompt: int | None = None, weight: float = 1.0) -> Method:
    """Fine-tuning on conversations whose last world model passes; or reinforcement by what each turn gains.

        sft: L = - sum over conversations i with V_i = 1 of sum over own tokens of log pi(y_it | x_i, y_i,<t) / tokens
        rl:  r_it = h_it - h_i,t-1 on the last own token of turn t, h the share of hidden tests that pass; V_i beside it

    V is the verdict on the last model. What testers tell is read and never paid for. A recipe::

        [tasks.source]
        name = "environment"
        environment = "world_models"
        [method]
        name = "S162"
        rollout = {name = "multi_turn", environment = "world_models", turns = 6}

    Args:
        stage: see above; each is a run of its own.
        per_prompt: of ``sft``: conversations of a task at most, the first ones.
        weight: of ``rl``: of what turns gain, beside the verdict.

    Source: Agent2World (arXiv 2512.22336); ``rl`` is what its testing team makes possible.
    """
    if stage == "sft":
        return Method(select=OfVerdict("right", per_prompt), objective=SFT())
    reward = WeightedSum({"verdict": VerdictReward(), "gains": TurnRewards()}, {"gains": weight})
    return Method(reward=reward, credit=TurnGroup())


claims(
    Claim(
        paper="S162",
        text="Of world models with one fault, all of which static validation lets through, playing in them tells those "
        "that behave wrongly from those that do not.",
        setting="world_models",
        arms={"played": {"judge": "played"}, "static": {"judge": "static"}},
        better="played",
        baseline="static",
        measure="right",
        evidence="construction",
    )
)
