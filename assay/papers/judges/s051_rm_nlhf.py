"""S051: a judge of pairs is rewarded for critiques like people's, and a model that learns these stands in for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.outcome.critiqued import Critiqued
from assay.signals.judges.critique_reward import CritiqueReward


@paper(
    "S051",
    "RM-NLHF",
    arxiv="2601.07349",
    seams=["tasks", "reward"],
    essentials={
        "the process reward: F1 of the judge's arguments and a person's core points, found by a model": (
            "test_points_by_hand"
        ),
        "the outcome reward, and the process where the outcome is right": "test_rewards_by_hand",
        "tasks with a person's critique and tasks without are told apart": "test_which_branch_a_task_belongs_to",
        "MetaRM predicts the process reward where there is no critique": "test_a_model_of_rewards_learns",
        "it starts from critiques with scores": "test_a_cold_start",
        "and learns on the policy's own critiques after each update": "test_it_trains",
        "policies are ranked by double elimination": "test_double_elimination",
        "judges come to sound reasons": "test_sound_reasons_in_the_lab",
    },
    choices=(
        "all wording; a critique stands in a section of its own",
        "m counts points, not arguments, so that saying a point twice earns nothing",
        "the process counts where the label is right, with weight 1",
        "MetaRM: squared error, a copy of the policy with a head, ten times its learning rate",
        "both orders of every pair; a person's critique is renumbered",
        "places of a tournament become rewards on an even scale",
    ),
    lacks="the paper's own weight of the process and loss of MetaRM, which were not to be found: ours are guesses",
)
def rm_nlhf(
    matcher: Any = None,
    weight: float = 1.0,
    learns: bool = True,
    cold_start: Path | None = None,
    lr: float | None = None,
    model: Any = None,
    kl_weight: float = 0.0,
) -> Method:
    """GRPO for a judge of pairs on tasks ``critiqued_pairs``, whose critiques are rewarded beside its labels.

        R = 1[label right] (1 + weight R_process),   R_process = F1(critique, a person's), or MetaRM(pair, critique)

    Without ``weight`` it is outcome-only GRPO. Reward ``tournament`` then trains policies by the judge, ranking their
    responses by double elimination.

    Args:
        matcher: an engine, or the specification of one, which finds a person's core points in other critiques.
        weight: of the process.
        learns, cold_start, lr, model: of MetaRM, see
            :class:`~assay.signals.judges.critique_reward.CritiqueReward`.
        kl_weight: of the divergence.

    Source: "Reward Modeling from Natural Language Human Feedback" (arXiv 2601.07349).
    """
    critiques = CritiqueReward(matcher, lr, learns, cold_start, model=model)
    return Method(reward=Critiqued(critiques, weight), credit=GRPO(), objective=ClippedSurrogate(kl_weight=kl_weight))


claims(
    Claim(
        paper="S051",
        text="Of judges that are right for sound reasons or for others, outcomes alone leave both; with critiques of a "
        "few pairs by people, and a model that learns from these, right verdicts on all pairs come with sound reasons.",
        setting="reasons",
        evidence="mechanism",
        arms={
            "rm-nlhf": {"name": "S051", "critiques": "here"},
            "frozen": {"name": "S051", "critiques": "here", "options": {"learns": False}},
            "outcome alone": {"name": "S051", "critiques": "here", "options": {"weight": 0.0}},
        },
        better="rm-nlhf",
        baseline="outcome alone",
        measure="sound",
        sweep={"lr": (0.3, 1.0, 3.0)},
        tuning=(1000, 1001),
    )
)
