"""S106: mazes whose paths are as long and as crooked as is wanted, and points for what of a path is right."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.outcome.path_points import PathPoints
from assay.tasks.pictures.mazes import Mazes
from assay.verify.puzzles.path_prefix import PathPrefix

__all__ = ["Mazes", "PathPoints", "PathPrefix", "ariadne"]


@paper(
    "S106",
    "Ariadne",
    arxiv="2511.00710",
    seams=["tasks", "verify", "reward", "credit", "objective"],
    essentials={
        "mazes with one path, of the moves and turns that are wanted": "test_a_maze_has_one_path_of_what_is_wanted",
        "drawn: walls, a green and a red cell": "test_the_picture_has_the_walls",
        "one to five moves by the paper's shares, up to two turns": "test_the_shares_of_the_lengths",
        "cells beyond training: up to ten moves and four turns, each measured by itself": (
            "test_it_trains_and_is_measured_beyond_training"
        ),
        "points: twice the moves times turns and one if right, else of what is right from the first move on": (
            "test_the_worked_points"
        ),
        "moves alone after the thought 0.1, tags 0.1": "test_the_worked_rewards",
        "where there are several shortest paths, each is right": "test_in_a_ring_both_ways_are_right",
        "it trains a model that sees": "test_it_trains_and_is_measured_beyond_training",
    },
    choices=(
        "of the turns that a path of some length can have, each is as frequent; AlphaMaze's are as they come",
        "blanks between moves leave a path right; the code takes the path for wrong, and its form for right",
        "a KL term of 0.04; the authors' script says nothing of one",
        "no penalty of repetition while sampling; 1.1 in the script",
        "solutions for a warm-up tell the path in words, run by run",
        "simulate, for mazes with several shortest paths, is not in the paper, whose label is one text",
        "the model, and the maps that it is tried on beside, MapBench and ReasonMap, are one's own",
    ),
)
def ariadne(moves: float = 0.1, tags: float = 0.1, kl_weight: float = 0.04) -> Method:
    """GRPO on drawn mazes, rewarded for how far a path is right.

        R_i = points_i + 0.1 [moves alone after the thought] + 0.1 tags_i
        points = 2 m (turns + 1) if right,   k (turns of the first k + 1) if the first k of m moves are right

    Tasks and the cells that lie beyond them::

        [tasks]
        source = "mazes"                    # 1 to 5 moves, up to 2 turns
        [method]
        name = "S106"

        assay eval RUN tasks.source='{name="mazes",moves=[6,7,8,9,10],shares=[],turns=4}' --by cell

    Args:
        moves, tags: see :class:`~assay.rewards.outcome.path_points.PathPoints`.
        kl_weight: of the divergence from the model at the start.

    Source: Ariadne (arXiv 2511.00710) and its authors' code: groups of 8, temperature 1, learning rate 1e-6, 5,000
    mazes by moves 1 to 5 in shares of .21, .18, .16, .18, .21, tested on 100 for each number of moves up to 10.
    """
    return Method(
        reward=PathPoints(moves, tags),
        credit=GRPO(),
        objective=ClippedSurrogate(aggregation="sequence_mean", kl_weight=kl_weight),
    )


claims(
    Claim(
        paper="S106",
        text="Where whole paths are practically never right at the start, points for the right moves before the first "
        "mistake lead to them more surely than the verdict alone.",
        setting="mazes",
        arms={"points": {"name": "S106"}, "verdict": {"name": "S106", "reward": "verdict"}},
        better="points",
        baseline="verdict",
        measure="final",
        sweep={"lr": (1.0, 3.0, 10.0, 30.0)},
    )
)
