"""S020: agents that talk and use tools are paid for the items of checklists, when each is met for the first time."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.turns.checklist import ChecklistCredit, Level
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.tasks.making.checklists.dialogues import DialogueChecklists
from assay.tasks.making.recipe import pipeline
from assay.tasks.making.work import Pipeline


@paper(
    "S020",
    "CM2",
    seams=["tasks", "verify", "reward", "credit", "rollout", "objective"],
    essentials={
        "an item earns once, when it is met after all that it is after": "test_flips_by_hand",
        "the reward of a trajectory: weights of flips over the recorded turns": "test_what_trajectories_are_worth",
        "advantages of trajectories, turns and steps, each with its own comparison": "test_three_levels_by_hand",
        "steps before an item is met share in it": "test_three_levels_by_hand",
        "turns that few have reached have no advantage; failures are left out": "test_few_and_failed",
        "the dialogue goes on while strict items are met": "test_a_dialogue_ends_without_a_strict_item",
        "recorded calls return what is recorded, others are simulated": "test_tools_are_recorded_or_simulated",
        "a judge is told what an item is about, ways to fail it, and the words that met it on record": (
            "test_a_judge_is_told_of_failures_and_evidence"
        ),
        "a judge marks each item after each step; one that fails ends the episode without a verdict": (
            "test_a_judge_marks_items"
        ),
        "meeting an item again earns nothing": "test_flips_by_hand",
        "a model writes the checklists of recorded dialogues: items with evidence that stands there": (
            "test_items_rest_on_evidence"
        ),
        "it is asked again where they cannot be used": "test_a_model_writes_checklists",
        "what it wrote is played and trained on": "test_written_checklists_are_played",
        "it trains": "test_it_trains",
    },
    choices=(
        "items are marked as the dialogue goes on, not at the end of a turn, with the same words",
        "what an item is after has to be met before its step, as in the paper; the code takes items of a step in order",
        "that order counts by trajectory and turn as well, as in the paper; in the code by step alone",
        "a step's advantage is divided by the eligible weights, as in the paper; the code's script does not",
        "the baseline of an item is its mean over all that reached the turn; the code's over those that were eligible",
        "one checklist a dialogue; the code can average several, and filters dialogues by a model before",
        "the wording of judge and simulator",
        "importance weights for the engine are the run's (token_truncate, cap 2), without a veto",
    ),
)
def cm2(
    environment: Any = "checklist",
    level: Level = "trajectory",
    normalise: bool = False,
    least: int = 4,
    turns: int = 30,
    kl_weight: float = 1e-4,
) -> Method:
    """GRPO on checklists of multi-turn dialogues with tools, paid by trajectory, turn or step.

    See environment ``checklist`` for dialogues, tools and judge, and credit ``checklist`` for the three levels. Finer
    levels learn faster and, with a judge that errs, may fall back later: its noise comes in at every comparison.

    Args:
        environment: name or table of environment ``checklist``, with dialogues, judge and simulator.
        level: of credit; by trajectory in the paper's final runs.
        normalise: divide by the standard deviation; the final runs do not.
        least: see :class:`~assay.credit.turns.checklist.ChecklistCredit`.
        turns: of the assistant in an episode, at most.
        kl_weight: of the divergence (k3).

    Source: CM2, "Reinforcement Learning with Checklist Rewards for Multi-Turn Multi-Step Agentic Tool Use", and its
    authors' code. Its runs: 48 responses to a prompt, learning rate 1e-6, 10,000 tokens of context.
    """
    return Method(
        rollout={"name": "multi_turn", "environment": environment, "turns": turns},
        credit=ChecklistCredit(level, "std" if normalise else "none", least),
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )


@pipeline("S020")
def dialogue_checklists(tries: int = 3) -> Pipeline:
    """Dialogues with checklists from recorded ones.

    ``assay tasks make S020 --seeds "recorded_dialogues(path=dialogues.jsonl)" --model WRITER --out checked.jsonl``;
    then ``dialogues = "checked.jsonl"`` in environment ``checklist``.

    Args:
        tries: see :class:`~assay.tasks.making.checklists.dialogues.DialogueChecklists`.
    """
    return Pipeline("S020", [("checklists", DialogueChecklists(tries))])


WISHES = (("red", "big"), ("blue", "small"), ("green", "big"))
DIALOGUE = {
    "id": "wishes",
    "turns": [
        {
            "user": f"I want it {colour} and {size}.",
            "items": [
                {"text": "names the colour", "id": "colour", "check": {"says": colour}},
                {"text": "names the size", "id": "size", "check": {"says": size}},
            ],
        }
        for colour, size in WISHES
    ],
}
WORDS = tuple(f"{colour} {size}" for colour in ("red", "blue", "green") for size in ("big", "small"))

claims(
    Claim(
        paper="S020",
        text="In a dialogue of three turns, advantages of turns teach a policy from fewer rollouts than advantages of "
        "whole trajectories.",
        setting="environment",
        evidence="mechanism",
        arms={
            name: {"credit": {"name": "checklist", "level": name, "least": 0}}
            for name in ("turn", "step", "trajectory")
        },
        better="turn",
        baseline="trajectory",
        measure="area",
        options={
            "environment": {"name": "checklist", "dialogues": [DIALOGUE]},
            "words": (WORDS,),
            "turns": 3,
            "prompts": 1,
            "steps": 60,
        },
        sweep={"lr": (1.0, 3.0, 10.0)},
    )
)
