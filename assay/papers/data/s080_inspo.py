"""S080: instructions and policy evolve together; each group is asked under one instruction, which earns its mean."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.curriculum.instructions import Instructions
from assay.method import Method
from assay.select.unprobed import Unprobed

__all__ = ["FIRST", "Instructions", "inspo"]

FIRST = (
    "Think step by step before you answer.",
    "Say first what is asked, then what is known, then answer.",
    "Plan your steps, carry them out one by one, and check the result.",
    "Search when you are not sure of a fact, and read what you find before you go on.",
    "Split the question into smaller ones and answer these first.",
    "Answer briefly, and only when you are sure.",
    "Look for what could be wrong with your first idea before you answer.",
    "Use what tools you have; do not guess what they can tell you.",
)
"""To begin with, where nobody gives others."""


@paper(
    "S080",
    "INSPO",
    arxiv="2512.01945",
    seams=["curriculum", "rollout", "select", "inference"],
    essentials={
        "one instruction for all responses of a group, drawn by softmax of its worth": "test_a_group_never_mixes",
        "worth is a moving average of the mean score under it": "test_the_worked_example",
        "the lower half goes": "test_the_lower_half_goes",
        "an author reflects on low attempts kept with their instruction": "test_the_author_sees_low_attempts",
        "candidates are tried on questions before the best join with their score": "test_the_best_candidates_join",
        "what is only tried is not learned from; the policy learns under the instructions": (
            "test_a_run_evolves_instructions_and_goes_on_bit_for_bit"
        ),
        "the sampler finds the better instruction, and another when that turns": "test_it_follows_what_works",
        "at test time the best instruction is used": "test_the_best_instruction_is_used_at_test_time",
        "a search engine is asked over several turns, what it finds is not learned from, and reflections see it": (
            "test_instructions_are_credited_for_searches"
        ),
        "it trains a language model that searches": "test_it_trains_by_searching",
    },
    choices=(
        "temperature 0.1, rate 0.1, worth 0.5 at the start, reflection every 25 steps, half stays, 4 proposals, 32 "
        "questions to try them on",
        "a candidate's worth is its mean score over one response to each of these questions",
        "the instructions to begin with, and the words of the reflection; the author is any engine",
    ),
)
def inspo(
    first: tuple[str, ...] = FIRST,
    author: Any = None,
    temperature: float = 0.1,
    rate: float = 0.1,
    period: int = 25,
    keep: float = 0.5,
    proposals: int = 4,
    questions: int = 32,
) -> Method:
    """GRPO under a population of instructions {I_j, w_j} that is credited, pruned and refilled.

        p(j) = softmax(w / temperature)_j for each group;   w_j <- (1 - rate) w_j + rate mean_i R_i

    Every ``period`` steps the ceil(keep N) of greatest w stay, ``author`` writes ``proposals`` new ones after failed
    attempts, and those that do best on ``questions`` tasks join. A group never mixes instructions: its baseline would
    credit tokens for them. Tokens that tools wrote are not learned from, as in any multi-turn rollout. At test time
    inference ``instructed`` asks under the best one; around ``multi_turn`` over several turns, as
    ``instructed(run=DIR, inner.name=multi_turn, inner.environment=search)``.

    Args:
        first: instructions to begin with.
        author: engine of the one who writes; none leaves the population as it is.
        temperature, rate, period, keep, proposals, questions: see
            :class:`~assay.curriculum.instructions.Instructions`.

    Source: INSPO (arXiv 2512.01945). The update of w and all constants are choices.
    """
    table: dict[str, Any] = {"name": "instructions", "first": list(first), "temperature": temperature, "rate": rate}
    table |= {"period": period, "keep": keep, "proposals": proposals, "questions": questions}
    if author is not None:
        table["author"] = author
    return Method(select=Unprobed(), curriculum=table)


NUMBERED = [str(i) for i in range(4)]

claims(
    Claim(
        paper="S080",
        text="Drawing instructions by a moving average of what was earned under them learns from fewer rollouts than "
        "drawing them evenly.",
        setting="instructed",
        arms={
            "evenly": {"name": "S080", "options": {"first": NUMBERED, "temperature": 1e6}},
            "inspo": {"name": "S080", "options": {"first": NUMBERED}},
        },
        better="inspo",
        baseline="evenly",
        measure="area",
        sweep={"lr": (0.3, 1.0, 3.0)},
    ),
    Claim(
        paper="S080",
        name="mechanism",
        text="With reflection, here an author that names an instruction which is better than all at the start, the "
        "policy ends with one that it follows to more success than without.",
        setting="instructed",
        evidence="construction",
        arms={
            "fixed": {"name": "S080", "options": {"first": NUMBERED[:2]}},
            "inspo": {
                "name": "S080",
                "options": {
                    "first": NUMBERED[:2],
                    "period": 12,
                    "questions": 8,
                    "author": {"name": "keywords", "replies": [], "otherwise": "<instruction>2</instruction>"},
                },
            },
        },
        better="inspo",
        baseline="fixed",
        measure="best",
        unequal="trying a candidate costs responses that the other arm does not sample",
    ),
)
