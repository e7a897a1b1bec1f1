"""S161: a trajectory's stages are judged by rubrics that evolve, and a stage is worth what comes of it later too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.catalogue import paper
from assay.credit.turns.stages import DOWNSTREAM, StageCredit
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.judges.stage_rubrics import StageRubrics
from assay.signals.rubrics import Rubrics
from assay.signals.stages import SCAFFOLD, Stages


@paper(
    "S161",
    "RubricEM",
    arxiv="2605.10899",
    seams=["verify", "reward", "credit", "objective", "policies"],
    essentials={
        "stages by the scaffold's tags, on tokens, over turns": "test_stages_on_tokens_over_turns",
        "stage returns mix downstream stages, compared within the group by stage": "test_the_worked_example",
        "terminal broadcast and local credit are the ablations": "test_the_ablations",
        "a stage that is missing earns nothing": "test_a_missing_stage_earns_nothing",
        "rubrics evolve: proposed from contrasts, kept while they tell attempts apart": (
            "test_items_that_tell_nothing_apart_are_dropped"
        ),
        "rubrics stay with their task from step to step": "test_rubrics_stay_with_their_task",
        "it trains": "test_it_trains",
    },
    choices=(
        "a stage's tag opens it and another stage's ends it",
        "all items weigh the same",
        "the standard deviation is the unbiased one",
    ),
    lacks="no reflections: none are sampled, trained a step late, banked or retrieved, and no query is met twice",
)
def rubricem(
    judge: Any = None,
    weights: Sequence[Sequence[float]] = DOWNSTREAM,
    tags: Sequence[Sequence[str]] = SCAFFOLD,
    given: Sequence[Sequence[str]] = ((), (), (), ()),
    most: Sequence[int] = (3, 2, 2, 3),
    kl_weight: float = 1e-3,
) -> Method:
    """GRPO by stages (SS-GRPO): plan, research, review and answer are judged apart, each by a rubric of its own.

        G_ik = sum_{j >= k} weights_kj R_ij,   A_ik = (G_ik - mean_i G_ik) / std_i G_ik  for all tokens of stage k

    R_ik is the share of the items that stage k of response i meets. The rubric of a query and stage is what a judge has
    proposed on seeing the responses beside each other, as long as it tells them apart, see
    :class:`~assay.signals.rubrics.Rubrics`. Verdicts play no part.

    Args:
        judge: an engine, or the specification of one; a run without is refused.
        weights: a row for each stage, see :class:`~assay.credit.turns.stages.StageCredit`.
        tags: those that open each stage.
        given: items that every query's rubric has, by stage.
        most: proposed items that are kept, by stage.
        kl_weight: of the divergence (k3).

    Source: RubricEM (arXiv 2605.10899). Its runs: 8 responses to each of 32 prompts, learning rate 5e-7, at most 10
    tool calls, after supervised fine-tuning on the scaffold.
    """
    stages = Stages(tags)
    return Method(
        reward=StageRubrics(Rubrics(judge, stages, given, most)),
        credit=StageCredit(weights, stages),
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )
