"""S073: when something happens in a video, by overlap alone, without a thought, on videos that are hard enough."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.curriculum.matched import Matched, log_weights
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.select.unprobed import Unprobed
from assay.tasks.files.timelens import TimeLensVideos
from assay.tasks.pictures.videos import Videos
from assay.verify.geometry.interval import IntervalVerifier

__all__ = ["IntervalVerifier", "Matched", "TimeLensVideos", "Unprobed", "Videos", "log_weights", "timelens"]


@paper(
    "S073",
    "TimeLens",
    arxiv="2512.14698",
    seams=["tasks", "curriculum", "select", "credit", "objective"],
    essentials={
        "frames between their times": "test_times_stand_before_frames",
        "the first span of the answer, by temporal intersection over union": "test_the_worked_overlaps",
        "no span, or one that ends before it starts, is worth 0": "test_the_worked_overlaps",
        "centred on the group's mean, not scaled; no KL term, no form": "test_the_method_is_overlap_alone",
        "hard videos by a Gaussian over what the first policy scores, divided by how frequent scores are": (
            "test_the_worked_weights"
        ),
        "drawn without replacement, as many of each duration": "test_as_many_of_each_duration",
        "learning ends at a plateau": "test_learning_ends_at_a_plateau",
        "R1 at .3, .5 and .7, and the mean overlap": "test_the_worked_metrics",
        "the benchmark takes answers to whole seconds": "test_times_are_rounded_to_whole_seconds",
        "TimeLens-100K is read, of which what is heard, not in its video, or too long is not learned from": (
            "test_what_is_learned_from_is_read"
        ),
        "its benchmark is read, all of it": "test_the_benchmark_is_read",
        "it trains a model that sees": "test_it_trains",
    },
    choices=(
        "a pool of 256 of which 64 are learned from; 2,500 of 100,000 in the paper",
        "scores are overlaps of one sampled response each",
        "intervals are read in more spellings than the authors' code reads, but not as two sentences",
        "the loss is a mean over the tokens of a batch",
        "videos are shapes that come and go unless tasks 'timelens' reads the authors' files; each frame is a picture, "
        "taken out of its video beforehand, where the paper's model reads two frames at a time",
        "what is learned from is chosen in one run; the authors ask for all of TimeLens-100K in a run before it",
    ),
)
def timelens(pool: int = 256, keep: int = 64, mean: float = 0.05, deviation: float = 0.2, tries: int = 1) -> Method:
    """Policy gradient on the temporal overlap of the first span, of videos chosen by difficulty beforehand.

        R_i = max(0, min(e, e*) - max(s, s*)) / (max(e, e*) - min(s, s*));   A_i = R_i - mean_g R

    ::

        [model]
        freeze_vision = true
        [tasks]
        source = "videos"
        verify = {name = "interval", first = true}
        [method]
        name = "S073"
        [[stages]]
        name = "rl"
        steps = 100
        until = {metric = "reward/mean", plateau = 0.005}

    ``assay eval`` reports the mean overlap as the score and R1 at the verifier's ``threshold`` as pass@1. The authors'
    files are read by ``source = {name = "timelens", path = "timelens-100k.jsonl", frames = "frames"}``; their
    benchmark takes answers to whole seconds, with ``unit = 1`` for the verifier.

    Args:
        pool, keep, mean, deviation, tries: see :class:`~assay.curriculum.matched.Matched`.

    Source: TimeLens (arXiv 2512.14698) and its authors' code: groups of 8, temperature 1, learning rate 1e-6, batches
    of 64, at most 100 steps, a frozen vision tower.
    """
    return Method(
        curriculum={
            "name": "matched",
            "pool": pool,
            "keep": keep,
            "mean": mean,
            "deviation": deviation,
            "tries": tries,
        },
        select=Unprobed(),
        credit=GRPO(normalise=False),
        objective=ClippedSurrogate(),
    )


ARM = {"name": "S073", "curriculum": {"name": "matched", "by": "", "pool": 64, "keep": 32}}

claims(
    Claim(
        paper="S073",
        text="Videos that the first policy fails, drawn by their overlap, lead to a higher mean overlap on new videos "
        "than all videos alike, the responses for finding them out included.",
        setting="grounding",
        arms={"matched": ARM, "uniform": {**ARM, "curriculum": "uniform"}},
        better="matched",
        baseline="uniform",
        measure="final",
        sweep={"lr": (0.001, 0.003, 0.01, 0.03)},
    )
)
