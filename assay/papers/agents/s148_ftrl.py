"""S148: tools with known answers, and single turns that are paid by the answers they find for the calls they make."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.process.solved_f1 import Form, SolvedF1


@paper(
    "S148",
    "FTRL",
    arxiv="2508.08791",
    seams=["tasks", "rollout", "verify", "reward"],
    essentials={
        "environments of single, parallel and multi-hop questions with known answers, merged tools, more parameters": (
            "environments/test_functions.py::test_answers_follow_from_the_facts"
        ),
        "what a tool said answers a part by what it contains; each answer is found once": (
            "environments/test_functions.py::test_matching_by_what_is_contained"
        ),
        "every prefix of an episode is a prompt, with what is left to find there": "test_every_prefix_is_a_prompt",
        "single turns are learned from, compared with others after the same prefix": "test_rows_are_single_turns",
        "2k / (n + 1), and three other forms": "test_the_worked_numbers",
        "a turn without calls: empty, malformed, the answer, nothing left, else": "test_turns_without_calls",
        "a call made again, or one that fails, costs through n alone": "test_calls_that_find_nothing_cost",
        "precision, rate and F1 of whole episodes": "test_whole_episodes_are_measured",
        "it trains": "test_it_trains",
    },
    choices=(
        "episodes are played anew in every step by the weights of that step; the authors sample them once an iteration",
        "a part is answered by its very value unless match = contains, which is the authors' rule and lets 12 answer 1",
        "worlds, questions and tools are made by a generator; the authors have a language model write them",
        "stray <tool_response> marks are malformed too, of which the authors' code looks for a misspelling",
        "a row is each prefix before a turn that was taken, not the one after the last allowed turn",
        "no entropy bonus (0.001 in the authors' runs)",
    ),
)
def ftrl(
    environment: str | dict[str, Any] | None = None,
    form: Form = "f1",
    trajectories: int = 1,
    prefixes: int | None = None,
    turns: int = 20,
    kl_weight: float = 1e-3,
) -> Method:
    """GRPO on single turns after every prefix of whole episodes.

        R = 2k / (n + 1)  for n calls that found k of the answers that were left

    See :class:`~assay.rollout.turns.prefix_rows.PrefixRows` and :class:`~assay.rewards.process.solved_f1.SolvedF1`.
    Tasks and rollout are of the same environment::

        [tasks.source]
        name = "environment"
        environment = "functions"
        [method]
        name = "S148"
        [method.rollout]
        name = "prefix_rows"
        environment = "functions"

    Args:
        environment: a part's name, or a table with ``name`` and options; without one a rollout has to be named.
        form: of the reward.
        trajectories, prefixes, turns: see the rollout.
        kl_weight: of the divergence (k3) from the model it began with.

    Source: FTRL (arXiv 2508.08791) and its authors' code. Its runs: 16 responses to a prompt, learning rate 1e-6,
    responses of 1024 tokens, episodes of at most 20 turns.
    """
    played = {"environment": environment, "trajectories": trajectories, "prefixes": prefixes, "turns": turns}
    return Method(
        rollout="single_turn" if environment is None else {"name": "prefix_rows", **played},
        reward=SolvedF1(form),
        credit=GRPO(),
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )


TASK = {"name": "functions", "style": "compact", "shapes": ["parallel"], "width": 2, "score": "f1"}
"""The task at place 0 asks g(3),k(9)? and has the tools f, g, h and k."""


def _said() -> list[str]:
    """Every choice of four calls, of which two are needed, the answer, and nothing."""
    calls = ["f(x=3)", "g(x=3)", "h(x=9)", "k(x=9)"]
    some = [[c for i, c in enumerate(calls) if bits >> i & 1] for bits in range(1, 16)]
    return [*(", ".join(s) for s in some), "6,8", ""]


ROWS = {"name": "prefix_rows", "turns": 2}

claims(
    Claim(
        paper="S148",
        text="Paid by the F1 of each turn's calls, the policy comes to make the calls that are needed and no others, "
        "where the number of answers found pays for calling every tool.",
        setting="environment",
        unequal="how many prefixes there are depends on how long the policy's episodes are",
        arms={
            "rate": {"name": "S148", "rollout": ROWS, "reward": {"name": "solved_f1", "form": "rate"}},
            "f1": {"name": "S148", "rollout": ROWS},
        },
        better="f1",
        baseline="rate",
        measure="final",
        options={"environment": TASK, "words": [_said()], "tasks": [0], "turns": 2, "prompts": 2, "steps": 40},
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
    )
)
