"""S164: one model thinks in words and draws, and learns both from what a judge answers about the drawing."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.drawings.by_kind import ByKind
from assay.method import Method
from assay.objectives.drawings.thought_and_steps import ThoughtAndSteps
from assay.rewards.drawings.decomposed import Combine, Decomposed
from assay.rewards.drawings.thought_first import ThoughtFirst
from assay.rollout.drawings.redrawn import Redrawn

__all__ = ["ByKind", "Decomposed", "Redrawn", "ThoughtAndSteps", "ThoughtFirst", "alphagrpo"]


@paper(
    "S164",
    "AlphaGRPO",
    arxiv="2605.12495",
    seams=["rollout", "reward", "credit", "objective"],
    essentials={
        "a request in questions of two kinds, the confidence of yes against no": "test_confidences_of_answers",
        "sqrt(sc pq), or means": "test_the_cards_rewards",
        "a thought, then a drawing that reads it, as one response": "test_it_trains_both",
        "thought and drawing share a reward, to which a thought's form adds where nothing is drawn over": "test_forms",
        "the worst draft is drawn over": "test_the_worst_draft_is_drawn_over",
        "by a flow that sees it": "test_a_flow_that_edits_sees_the_draft",
        "no drawing is worth less than the least draft; where none is better nothing is learned": (
            "test_no_worse_than_the_least_draft"
        ),
        "a group's mean and the whole batch's deviation, at most 5 for a step, the same for a thought": (
            "test_both_kinds_share_the_advantage"
        ),
        "a thought's ratio is of the whole of it, a step's its own, within widths of their own": (
            "test_the_loss_of_both_kinds"
        ),
        "a thought weighs as much as all steps after it; over a draft, as one": "test_the_loss_of_both_kinds",
        "it trains": "test_it_trains_both",
    },
    choices=(
        "what is asked over a draft: the draft is shown; the authors ask as well what went wrong",
        "words of the judge's template: ours",
        "a drawing over a draft begins with the draft, noised to .6",
        "what the request's questions are is given by the task",
        "an answer that is neither yes nor no leaves the response without a reward",
    ),
)
def alphagrpo(
    judge: Any = None,
    mode: Literal["reason", "refine"] = "reason",
    combine: Combine = "geometric",
    thoughts: bool = True,
    form: float | None = None,
    trained: int | None = None,
    end: int | None = None,
    drafts: int = 7,
    low: float = 0.2,
    high: float = 0.28,
    step: float = 1e-5,
) -> Method:
    """GRPO on thoughts and drawings of one model, ``model.source = "flow"`` with ``model.flow.language``.

        R = sqrt(mean semantic confidence x mean quality confidence) + form think
        A = (R - group mean) / (batch deviation + 1e-4), of thought and drawing alike, clipped to [-5, 5] for a step

    Args:
        judge: an engine that answers the questions in ``task.meta["questions"]``, see
            :class:`~assay.rewards.drawings.decomposed.Decomposed`; the run's verifier rewards if ``None``.
        mode: ``reason``: thought and drawing; ``refine``: a drawing over the worst of ``drafts``, see
            :class:`~assay.rollout.drawings.redrawn.Redrawn`.
        combine: of the questions' confidences.
        thoughts: whether thoughts are learned, or the drawing alone.
        form: weight of a thought's form, <think>...</think>; 1 in mode ``reason`` and 0 in ``refine`` unless given.
        trained, end: noisy steps in a row, and before which step they end: 10 of 16 before 11 (``reason``), 5 of 40
            before 15 (``refine``) in the paper; all of them if ``None``.
        drafts: of a prompt; half of the group of 14 in the paper.
        low, high, step: widths of the ratios' ranges.

    Source: AlphaGRPO (arXiv 2605.12495) and a public copy of its code.
    """
    window = {"trained": trained, "end": end}
    rollout = {"name": "denoise", **window} if mode == "reason" else {"name": "redrawn", "drafts": drafts, **window}
    form = float(mode == "reason") if form is None else form
    return Method(
        rollout=rollout,
        reward=ThoughtFirst("verdict" if judge is None else Decomposed(judge, combine), form),
        credit=ByKind(thoughts=thoughts),
        objective=ThoughtAndSteps(low, high, step, as_step=mode == "refine"),
    )


OPTIONS = {"form": 0.0, "step": 0.01}
"""Points want a wider range; the setting's thoughts name a place."""

claims(
    Claim(
        paper="S164",
        text="Where the prompt says what is wanted and the drawing follows the thought, learning thought and drawing "
        "together draws more of what is wanted than learning the drawing alone.",
        setting="named_places",
        arms={
            "both": {"name": "S164", "options": OPTIONS},
            "drawing": {"name": "S164", "options": {**OPTIONS, "thoughts": False}},
        },
        better="both",
        baseline="drawing",
        measure="final",
        evidence="mechanism",
        sweep={"lr": (3e-4, 1e-3, 3e-3)},
    )
)
