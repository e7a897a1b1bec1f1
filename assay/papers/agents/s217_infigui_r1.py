"""S217: from acting to deliberating on screens: reasoning where it is missing, sub-goals, and the way back."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.rloo import RLOO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.sft import SFT
from assay.rewards.process.subgoal import SubgoalReward


@paper(
    "S217",
    "InfiGUI-R1",
    arxiv="2504.14239",
    seams=["tasks", "rollout", "verify", "reward", "credit", "objective"],
    essentials={
        "bottlenecks: wrong without the sub-goal, right with it": (
            "test_bottlenecks_are_wrong_alone_and_right_with_a_hint"
        ),
        "a teacher's reasoning and action, kept if right, is what the policy is fitted to": (
            "test_the_first_right_response_of_the_teacher_is_kept"
        ),
        "R = w_f F + w_a R_acc, nothing without the form": "test_the_worked_rewards",
        "the sub-goal counts where the parameters are wrong, and only there": (
            "test_right_parameters_leave_the_thought_unread"
        ),
        "points by boxes, boxes by IoU over tau": "test_points_and_boxes",
        "a scoring model reads the thought": "test_a_model_scores_thoughts",
        "steps that are sometimes right: the screen after the mistake, the step again": "test_ways_back_by_hand",
        "none where all or nothing is right": "test_no_way_back_where_all_or_nothing_is_right",
        "leave-one-out advantages": "test_the_worked_advantages",
        "it trains on steps and on ways back": "test_it_trains",
    },
    choices=(
        "ways back are made of the policy's own mistakes as it trains; the paper samples them once beforehand",
        "of a step's wrong gestures the first that can be made",
        "the way back is the back key",
        "without a scoring model, a thought agrees with a sub-goal by its words",
        "the clipped surrogate, which the paper does not name",
    ),
)
def infigui_r1(
    environment: str | dict[str, Any] | None = None,
    stage: Literal["rl", "distil"] = "rl",
    teacher: Any = None,
    scorer: Any = "words",
    most: int | None = None,
) -> Method:
    """Two stages, each a run of its own: fit a teacher's reasoning, then reinforce with sub-goals and ways back.

    Single steps of an environment's plans are the tasks::

        [tasks.source]
        name = "environment"
        environment = "screens"
        steps = true
        [method]
        name = "S217"
        options = {environment = "screens"}

    ``distil``: rollout :class:`~assay.rollout.turns.bottleneck.Bottleneck` and supervised learning. ``rl``: rollout
    :class:`~assay.rollout.turns.recovering.Recovering`, reward
    :class:`~assay.rewards.process.subgoal.SubgoalReward`, RLOO.

    Args:
        environment: that steps and ways back are of; without one there are no ways back.
        stage: see above.
        teacher: of stage ``distil``: an engine's specification.
        scorer: of thoughts, see the reward.
        most: steps that ways back are made for in a training step.

    Raises:
        UsageError: stage ``distil`` without a teacher.

    Source: InfiGUI-R1 (arXiv 2504.14239). Its runs: learning rates 2e-6 and 1e-6, 16 rollouts, Qwen2.5-VL-3B.
    """
    if stage == "distil":
        return Method(rollout={"name": "bottleneck", "teacher": teacher}, objective=SFT())
    way_back = {"name": "recovering", "environment": environment, "most": most}
    return Method(
        rollout="single_turn" if environment is None else way_back,
        reward=SubgoalReward(scorer=scorer),
        credit=RLOO(),
        objective=ClippedSurrogate(),
    )


claims(
    Claim(
        paper="S217",
        text="Paid for the sub-goal in its thought where the gesture is wrong, a policy that can do what it aims at "
        "learns sooner what to aim at, and so to act, than without.",
        setting="subgoals",
        arms={"subgoal": {"name": "S217"}, "outcome": {"name": "S217", "reward": {"name": "subgoal", "subgoal": 0.0}}},
        better="subgoal",
        baseline="outcome",
        measure="right/area",
        sweep={"lr": (1.0, 3.0, 10.0, 30.0, 100.0)},
    )
)
