"""S132: labels of steps that a tool has checked, in a tree whose values know both the steps and the end."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Sampling
from assay.inference.supervision.grounded import Grounded, consistent
from assay.inference.supervision.step_tools import Equations, Reads
from assay.inference.supervision.train import PRMMethod
from assay.rewards.step_models.saved import PRMSettings
from assay.rewards.step_models.training import StepTraining
from assay.rewards.step_models.written import WrittenTraining


@paper(
    "S132",
    "GroundedPRM",
    arxiv="2510.14942",
    seams=["tasks", "verify", "policies", "inference"],
    essentials={
        "every simulated step is checked by a tool": "test_every_step_is_checked_by_the_tool",
        "a model reads what the tool says, and is asked again where it says nothing": "test_a_model_reads_the_tool",
        "marks and the final answer are fused, the terminal mark replaced by it": "test_fusion_by_hand",
        "values decay on the way up": "test_values_on_the_way_up",
        "only paths whose labels agree with their rationales are kept, and wrong ones are cut": (
            "test_paths_that_disagree_are_left_out"
        ),
        "a wrong step in a lucky response is not called right": "test_luck_does_not_make_a_step_right",
        "rationales are kept, and a language model is tuned to write them and the verdict, a step a turn": (
            "test_what_a_model_is_tuned_to_write"
        ),
        "a step's score is the chance that it is called right after the rationale": "test_scores_after_a_rationale",
        "it makes a scorer of steps": "test_a_scorer_that_writes",
    },
    choices=(
        "the way down is by UCT with the mean value, the first of the new steps is followed",
        "steps below the one that was expanded have the fused value of what follows them",
        "a response that does not end within the depth counts as wrong",
        "where a tool cannot tell, a step agrees with any label",
        "form = head: a linear head on the model's states learns the labels alone, for models that cannot write",
    ),
)
def grounded_prm(
    judge: Any = None,
    branch: int = 3,
    depth: int = 7,
    rounds: int = 10,
    decay: float = 0.9,
    wanted: int = 3,
    tool: Any = None,
    max_tokens: int = 512,
    training: dict[str, Any] | None = None,
    form: Literal["written", "head"] = "written",
    rationale: int = 256,
) -> PRMMethod:
    """A scorer of steps from checked steps: ``assay train-prm MODEL --method S132``.

        v_i = 1 or -1 by the tool, F = 1 or -1 by the final answer
        u = 1/N sum_{i=0}^{N-1} v_{i+1} (N - i)/N + F/N;   value += u where it was expanded, decay^d u at d steps above
        label of a step: the sign of its value, on paths where every sign agrees with the tool's mark
        L = mean over the tokens of rationales and verdicts of -log p;   score = p(right) after the rationale

    ``assay eval MODEL --strategy "beam(scorer.name=steps,scorer.scorer=prm,scorer.reduce=last)"`` searches by it.

    Args:
        judge: a model that reads each step and the tool's reply, an engine or the specification of one; the tool alone
            decides without one.
        branch, depth, rounds, decay, wanted: see :class:`~assay.inference.supervision.grounded.Grounded`.
        tool: see :class:`~assay.inference.supervision.step_tools.StepTool`; equations are checked unless given.
        max_tokens: of a reply of the judge.
        training: options of :class:`~assay.rewards.step_models.written.WrittenTraining`, or of
            :class:`~assay.rewards.step_models.training.StepTraining` for a head.
        form: what the scorer is: a model that writes, see :class:`~assay.rewards.step_models.written.WrittenPRM`, or a
            head on its states.
        rationale: tokens of a rationale, at most.

    Source: GroundedPRM (arXiv 2510.14942).
    """
    checks = tool if tool is not None else Equations()
    checks = checks if judge is None else Reads(judge, checks, sampling=Sampling(max_tokens, 1.0))
    search = Grounded(checks, branch, depth, rounds, decay=decay, wanted=wanted)
    if form == "head":
        return PRMMethod(search, training=StepTraining(**{"loss": "hard", **(training or {})}), examples=consistent)
    settings = PRMSettings("written", written={"max_tokens": rationale})
    return PRMMethod(search, settings, WrittenTraining(**(training or {})), consistent)


claims(
    Claim(
        paper="S132",
        text="Where wrong solutions come right by luck, labels of steps by a tool and the end together are right more "
        "often than those of completions alone.",
        setting="lucky",
        evidence="construction",
        arms={
            "tool and end": {"method": "S132", "options": {"depth": 8, "rounds": 12}},
            "completions": {"method": "along", "options": {"responses": 4, "n": 4}},
        },
        better="tool and end",
        baseline="completions",
        measure="agreement",
        unequal="a search by completions samples more for as many labels",
    )
)
