"""S146: turns of shell agents are credited by the syntax of their commands, and folders are shown within a budget."""

from __future__ import annotations

from typing import Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.turns.a3 import A3
from assay.method import Method
from assay.objectives.gspo import GSPOToken
from assay.rewards.process.progress import Progress


@paper(
    "S146",
    "A3",
    arxiv="2605.08013",
    seams=["tasks", "rollout", "verify", "reward", "credit", "objective"],
    essentials={
        "signatures of shell texts from their syntax: control, verbs, arguments": (
            "ops/test_shell_syntax.py::test_signatures"
        ),
        "without a parser words are split as a shell does": "ops/test_shell_syntax.py::test_signatures_by_words",
        "single linkage by edit distance into a number of clusters": "ops/test_shell_syntax.py::test_clusters",
        "the episode's term, by lower medians": "test_the_worked_example",
        "the residual among similar commands, over several scopes, of every turn or of the first": (
            "test_the_worked_example"
        ),
        "the margin of what was chosen in the same state, with its support": "test_the_worked_example",
        "the terms on one scale, bounded, and on each token of a turn": "test_terms_are_merged_on_tokens",
        "nothing to choose, or nothing to tell apart, is worth nothing": "test_limits",
        "scopes that do not know what came later": "test_leak_free",
        "progress by lines of the goal, and the answer's score": "test_progress_and_its_end",
        "progress is taken back where nothing was handed in": "test_progress_and_its_end",
        "of a folder the subtree of the largest worth within a budget": "test_the_best_subtree",
        "a ratio of sequences, clipped, and a divergence": "test_options",
        "turns of one episode get different credit in training": "test_it_acts_in_training",
    },
    choices=(
        "every turn has its own residual; the authors' code gives all turns the first one's (where = first)",
        "similarity is looked at within a task's group; of clusters there may be fewer where distances are equal",
        "the words by which a task is about data or code",
    ),
    lacks="ShellOps itself: tasks are the made-up chores of environment shell",
)
def a3(
    residual: float = 0.65,
    tree: float = 1.0,
    where: Literal["every", "first"] = "every",
    leak_free: bool = False,
    answer: float = 3.0,
    kl_weight: float = 0.01,
    clip: float = 0.1,
) -> Method:
    """Credit of turns by what similar commands came to, progress as a reward, and a ratio of sequences.

        A_it = B tanh((b_i + w_r res_it + w_t tree_it) / B), each term over its mean absolute value in the batch
        r_it = 0.2 (progress_t - progress_{t-1}),  R_i = 3 score_i,  both 0 in sum where nothing was handed in

    See :class:`~assay.credit.turns.a3.A3` and :class:`~assay.rewards.process.progress.Progress`. Its tasks are chores::

        environment = {name = "shell", kind = "chores", progress = 0.2, reveal = 150}

    where ``reveal`` shows, of the folder, the subtree that is worth most for the task in 150 units of 16 characters.

    Args:
        residual, tree, where, leak_free: of the credit.
        answer: what a right end is worth.
        kl_weight: of the divergence (k3).
        clip: half-width of the clip range, on both sides.

    Source: A3 (arXiv 2605.08013) and its authors' code. Its runs: groups of 4, 6 turns, learning rate 5e-7.
    """
    return Method(
        reward=Progress(answer),
        credit=A3(residual, tree, where=where, leak_free=leak_free),
        objective=GSPOToken(clip_low=clip, clip_high=clip, kl_weight=kl_weight),
    )


claims(
    Claim(
        paper="S146",
        text="Crediting turns by what similar actions came to, and by what was chosen in the same state, leads to the "
        "goal sooner than crediting all turns of an episode alike.",
        setting="environment",
        arms={
            "a3": {"name": "S146", "reward": "verdict", "objective": "clip"},
            "episode": {
                "name": "S146",
                "reward": "verdict",
                "objective": "clip",
                "credit": {"name": "a3", "residual": 0.0, "tree": 0.0},
            },
        },
        better="a3",
        baseline="episode",
        measure="area",
        options={"steps": 30, "turns": 3, "tasks": (0, 1)},
        sweep={"lr": (3.0, 10.0, 30.0)},
    )
)
