"""S142: solutions in words and pictures, measured step by step, in order, against several reference solutions."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.evaluate.traces.alignment import DISTINCT, fused_score, image_score, local_score, text_score
from assay.evaluate.traces.likeness import Likeness, roll_out
from assay.evaluate.traces.regions import colours, region_likeness
from assay.evaluate.traces.score import TraceScore
from assay.evaluate.traces.trace import read_traces

__all__ = [
    "Likeness",
    "TraceScore",
    "colours",
    "fused_score",
    "image_score",
    "local_score",
    "read_traces",
    "region_likeness",
    "roll_out",
    "stepstem",
    "text_score",
]


@paper(
    "S142",
    "StepSTEM",
    seams=["evaluate", "verify"],
    essentials={
        "steps are paired in order, some left out": "test_the_worked_alignment",
        "steps that change places never score higher": "test_swapped_steps_never_score_higher",
        "likeness by what a reference adds to a step's probability": "test_the_gain_is_that_of_the_model",
        "likeness by attention rolled out": "test_attention_is_rolled_out",
        "pictures: coverage of references, less where one serves for all": "test_the_worked_pictures",
        "boxes that matter, by windows of another picture": "test_windows_of_another_picture",
        "points of the reference by a judge, and both fused": "test_points_are_judged_and_fused",
        "pictures of the reference are points too, by their boxes, for a judge that sees": "test_pictures_are_points",
        "maps of pictures by a network such as ResNet-50": "test_maps_by_a_network",
        "solutions in the layout of its 283 problems": "test_solutions_in_the_benchmark_s_layout",
        "the best of several references, and the gap to the worst": "test_the_best_reference_counts",
        "it measures the traces of a file": "test_it_measures_a_file",
    },
    choices=(
        "gain is the default: it needs no attention",
        "roll-out as in the authors' code, weights by attention on the reference; the paper's formula is another one",
        "cosines as the paper has them, 0 at least; the code maps them from [-1, 1] to [0, 1]",
        "pictures are told apart by their colours unless a network is named, as ResNet-50 is in the paper",
        "one point is asked about at a time; the code asks about all that are words at once",
        "the weights of boxes are divided by their sum",
        "points without an opinion do not count",
    ),
)
def stepstem(
    likeness: Any, judge: Any = None, distinct: float = DISTINCT, encode: Any = colours, sees: bool = False
) -> TraceScore:
    """Scores of traces, by ``assay eval MODEL --traces FILE`` or in Python.

        text = max over increasing pairs of sum M_ij / n        image = coverage (1 - .2 + .2 different / n)
        local = their mean by numbers of steps                  fused = sqrt(local^2 / 2 + overall^2 / 2)

    Args:
        likeness, judge, distinct, encode, sees: see :class:`~assay.evaluate.traces.score.TraceScore`.

    Source: StepSTEM, its paper and its authors' code.
    """
    return TraceScore(likeness, judge, encode, distinct, sees)


claims(
    Claim(
        paper="S142",
        text="Pairing steps in order tells solutions from the same steps in another order more often than pairing them "
        "in any way does.",
        setting="shuffled_traces",
        evidence="construction",
        arms={"ordered": {"ordered": True}, "any": {"ordered": False}},
        better="ordered",
        baseline="any",
        measure="told",
    )
)
