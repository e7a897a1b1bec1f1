"""S212: what a reward model is judged by, the reward, and what is wanted are three things, and may part."""

from __future__ import annotations

from collections.abc import Sequence

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.diagnose.links import Links, links


@paper(
    "S212",
    "Alignment Ceiling",
    arxiv="2311.00168",
    seams=["evaluate"],
    essentials={
        "three links: judged quality and reward, reward and evaluation, the first and the last": "test_worked_numbers",
        "the point from which more reward is over-optimisation": "test_worked_numbers",
        "an alarm where reward rises and the evaluation falls": "test_when_it_is_said",
        "of every run with evaluations, in its report": "test_a_runs_links_are_in_its_report",
    },
    choices=(
        "rank correlations; the paper argues in words and has no numbers",
        "in a run, the reward is judged by its correlation with the verdicts of a step's samples",
        "two falls in a row make the alarm, of a run if they go beyond the intervals of its evaluations",
    ),
)
def alignment_ceiling(
    judged: Sequence[float], reward: Sequence[float], evaluation: Sequence[float], falls: int = 2, least: float = 0.0
) -> Links:
    """Return how the three measurements of a run go together: no training method, but what to look at beside one.

        r(judged, reward),  r(reward, evaluation),  r(judged, evaluation):  Spearman's, over windows
        over-optimisation point: argmax of the evaluation;  alarm: reward up, evaluation down, ``falls`` times in a row

    The report of a run has them, where it was evaluated three times or more (``evaluate.every``).

    Args:
        judged, reward, evaluation, falls, least: see :func:`assay.diagnose.links.links`.

    Source: "The Alignment Ceiling: Objective Mismatch in RLHF" (arXiv 2311.00168).
    """
    return links(judged, reward, evaluation, falls, least)


claims(
    Claim(
        paper="S212",
        text="The alarm comes in runs on a reward that can be hacked, and not in runs on what is wanted.",
        setting="ceiling",
        evidence="construction",
        arms={
            "hackable": {"hack": 0.5},
            "honest": {"hack": 0.0},
            "hackable, any fall": {"hack": 0.5, "least": 0.0},
            "honest, any fall": {"hack": 0.0, "least": 0.0},
        },
        better="hackable",
        baseline="honest",
        measure="alarm",
    )
)
