"""S090: thoughts are rewarded as far as who scores them can be trusted, and less as training goes on."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.process.trusted_thinking import TrustedThinking
from assay.tasks.making.recipe import pipeline
from assay.tasks.making.scored_thoughts import EvenScores, ScoredThoughts
from assay.tasks.making.work import Pipeline
from assay.verify.text.transcript import RougeMean, WordErrors

__all__ = ["EvenScores", "RougeMean", "ScoredThoughts", "TrustedThinking", "WordErrors", "sophiavl"]


@paper(
    "S090",
    "SophiaVL-R1",
    arxiv="2505.17018",
    seams=["verify", "reward", "credit", "objective"],
    essentials={
        "trust from the mean scores of right and of wrong responses to a prompt": "test_by_hand",
        "without right or without wrong ones trust is whole": "test_trust_wants_both_sides",
        "the thinking reward fades as the run goes on": "test_it_fades",
        "a model scores the thought alone, without the answer": "test_the_thought_alone_is_shown",
        "it is trained: a large model's scores of thoughts, as many of each tenth": "test_a_scorer_is_taught",
        "it is shown the question's pictures": "test_pictures_are_shown_to_the_scorer",
        "rule outcomes: one less the word error rate, and the mean of three ROUGEs": "test_rules_of_outcomes",
        "the code's switches: no scores in flat groups, none of low outcomes": "test_the_switches_of_the_code",
        "it trains a model that sees": "test_it_trains",
    },
    choices=(
        "the scorer is shown what stands before </think>; the code shows it the whole response, and tells it to judge "
        "the reasoning alone",
        "where the scorer fails, or writes no number, a response has no reward; in the code it has a score of 0 "
        "after ten tries, or where no number is found",
        "the scorer is asked about all responses, as the paper's trust needs; by the code's min_outcome = .2 wrong "
        "ones are never asked about, and with outcomes of 0 and 1 trust is then always whole",
        "transcripts are worth 1 - WER as in the paper; exp(-WER) in the code",
        "ROUGE without a stemmer",
        "T is the run's steps",
        "thoughts to learn scoring from are of one model, and none is left out by rules that the paper does not write "
        "out; models and tasks are one's own",
    ),
)
def sophiavl(
    scorer: Any = None,
    outcome: Any = "verdict",
    alpha: float = 0.3,
    decay: float | None = None,
    trust: bool = True,
    skip_flat: bool = False,
    min_outcome: float | None = None,
    kl_weight: float = 0.04,
) -> Method:
    """GRPO with a reward for the thought, weighted by trust in who scores it and fading over the run.

        R_i = o_i + gamma alpha exp(-t / T) s_i,    gamma = exp(min(mu_right - mu_wrong, 0))

    A scorer of one's own is taught from what a large one says, and then named as ``scorer = {engine = {...}}``::

        assay tasks make S090 --seeds tasks.jsonl --model WRITER --judge LARGE --out scored.jsonl
        assay train tasks.source.name=made tasks.source.path=scored.jsonl model.source=SMALL \\
            warmup.steps=2000 train.steps=0

    Args:
        scorer, outcome, alpha, decay, trust, skip_flat, min_outcome: see
            :class:`~assay.rewards.process.trusted_thinking.TrustedThinking`.
        kl_weight: of the divergence from the model at the start.

    Source: SophiaVL-R1 (arXiv 2505.17018) and its authors' code: groups of 8, temperature 1, learning rate 6e-7, with
    Qwen2.5-VL-7B.
    """
    return Method(
        reward=TrustedThinking(scorer, outcome, alpha, decay, trust, skip_flat, min_outcome),
        credit=GRPO(),
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )


@pipeline("S090")
def scored_thoughts(n: int = 4, most: int = 15_000) -> Pipeline:
    """Thoughts about tasks, and their scores by a large model, as many of each tenth, to teach a scorer by.

    Args:
        n: see :class:`~assay.tasks.making.scored_thoughts.ScoredThoughts`.
        most: see :class:`~assay.tasks.making.scored_thoughts.EvenScores`.
    """
    return Pipeline("S090", [("thoughts", ScoredThoughts(n)), ("even", EvenScores(most))])


PLAIN, FLASHY, EMPTY = {"thought": 0.3}, {"thought": 0.5}, {"thought": 1.0}


def scored(**options: Any) -> dict[str, Any]:
    """An arm whose scorer says what the setting's choices have."""
    scorer = {"name": "part", "part": "thought"}
    return {"name": "S090", "options": {"scorer": scorer, "kl_weight": 0.0, **options}}


claims(
    Claim(
        paper="S090",
        text="A scorer of thoughts that likes best what is flashy and wrong leads a policy astray; where it is trusted "
        "by how it tells right from wrong, and less as time goes on, it does not.",
        setting="choices",
        evidence="construction",
        arms={
            "trusted": scored(decay=75.0),
            "added": scored(decay=1e9, trust=False),
        },
        better="trusted",
        baseline="added",
        measure="choice 0",
        options={
            "choices": [
                [[0.55, True, PLAIN], [0.45, False, PLAIN]],
                [[0.45, True, FLASHY], [0.55, False, EMPTY]],
            ],
            "steps": 300,
            "prompts": 1,
        },
        sweep={"lr": (0.05, 0.1, 0.2)},
    ),
    Claim(
        paper="S090",
        text="Trust alone leads such a policy less astray than a thinking reward of a fixed weight.",
        setting="choices",
        evidence="construction",
        arms={
            "trusted": scored(decay=1e9),
            "added": scored(decay=1e9, trust=False),
        },
        better="trusted",
        baseline="added",
        measure="choice 0",
        options={
            "choices": [
                [[0.55, True, PLAIN], [0.45, False, PLAIN]],
                [[0.45, True, FLASHY], [0.55, False, EMPTY]],
            ],
            "steps": 300,
            "prompts": 1,
        },
        sweep={"lr": (0.05, 0.1, 0.2)},
        name="trust",
    ),
)
