"""S160: puzzles solved in videos, worth what they get right before the first mistake, learned where noise decides."""

from __future__ import annotations

from typing import Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.drawings.batch_scaled import BatchScaled
from assay.method import Method
from assay.objectives.drawings.denoising import DenoisingSurrogate
from assay.rewards.drawings.valid_pieces import ValidPieces
from assay.rollout.drawings.denoise import Denoise
from assay.tasks.drawings.puzzles.videos import PuzzleVideos
from assay.verify.drawings.puzzles.video import PuzzleVideo

__all__ = ["Denoise", "DenoisingSurrogate", "PuzzleVideo", "PuzzleVideos", "ValidPieces", "video_rlvr"]


@paper(
    "S160",
    "VideoRLVR",
    arxiv="2605.15458",
    seams=["tasks", "rollout", "verify", "reward", "credit", "objective"],
    essentials={
        "mazes, FlowFree and Sokoban are made and solved, and the solution is a video": "test_what_is_made_is_solved",
        "boards are drawn and read back, and what has no colour is no cell": "test_boards_are_read_back",
        "a maze: what is legal and how near it comes before the first illegal move": "test_a_maze_by_hand",
        "FlowFree: colours joined, cells covered, nothing run over": "test_flow_free_by_hand",
        "Sokoban: legal pushes, and boxes at home": "test_sokoban_by_hand",
        "validity times pieces plus success; success alone is a baseline": "test_the_worked_rewards",
        "only the first L steps are noisy and learned; what follows them is determined": "test_the_first_steps_decide",
        "a guard to the supervised model, exactly": "test_the_guard_is_the_divergence_of_the_steps",
        "precision, recall and F1 of cells, and success": "test_a_maze_by_hand",
        "it trains, after supervised steps": "test_it_trains_on_three_puzzles",
    },
    choices=(
        "pieces, their even weights and the prefix that they are measured over are ours: its text was not at hand",
        "the model and its videos are one's own",
        "validity is the share of cells that are as they must be, the first frame being the puzzle; moves are judged "
        "by the puzzle's own walls, whatever a frame shows",
        "a video in which nothing moves has no legal moves",
        "the model reads the puzzle in letters; the paper's is shown its first frame",
        "FlowFree's paths nowhere touch themselves, and each board has one solution",
        "noise 0.7, clip range 1e-4 and the scale of advantages as in Flow-GRPO; a guard of 0.04 likewise",
    ),
    lacks="the paper's own pieces of the dense rewards and their weights",
)
def video_rlvr(
    first: int = 10,
    noise: float = 0.7,
    guard: float = 0.04,
    divergence: Literal["exact", "code"] = "exact",
    clip: float = 1e-4,
    limit: float = 5.0,
) -> Method:
    """Flow-GRPO on videos of puzzles: a dense reward, and noise in the early steps alone.

        R = validity sum_c w_c c + success,      A = clip((R - mean of the group) / std of the batch, -5, 5)
        L = mean over the first L steps of max(-A rho, -A clip(rho, 1 - c, 1 + c)) + guard KL(step || supervised step)

    Long-range structure is decided where there is much noise; the later steps are ODE steps, without gradient. Use::

        [model]
        source = "flow"
        flow = {shape = [9, 20, 20, 3], network = "unet", prompt = 64}
        [tasks]
        source = "puzzle_videos"
        [warmup]
        steps = 5000
        [rollout]
        max_tokens = 20
        [method]
        name = "S160"                       # reward = "verdict" is the sparse baseline

    Args:
        first: L, noisy steps.
        noise: a of these.
        guard, divergence: see :class:`~assay.objectives.drawings.denoising.DenoisingSurrogate`.
        clip: half-width c of the ratio's range; log-probabilities are means over a video's numbers, so that ratios are
            near 1.
        limit: of advantages.

    Source: VideoRLVR (arXiv 2605.15458): 10 of 20 steps; Flow-GRPO (arXiv 2505.05470) for the rest.
    """
    return Method(
        rollout={"name": "denoise", "end": first, "noise": noise},
        reward=ValidPieces(),
        credit=BatchScaled(limit),
        objective=DenoisingSurrogate(clip_low=clip, clip_high=clip, guard=guard, divergence=divergence),
    )


SMALL = {"first": 4, "clip": 0.01, "guard": 0.0}

claims(
    Claim(
        paper="S160",
        text="Where hardly a video solves its puzzle at the start, a reward of pieces leads to more that solve it than "
        "success alone does.",
        setting="videos",
        arms={
            "pieces": {"name": "S160", "options": SMALL},
            "success": {"name": "S160", "options": SMALL, "reward": "verdict"},
        },
        better="pieces",
        baseline="success",
        measure="final",
        sweep={"lr": (1e-4, 3e-4, 1e-3)},
    )
)
