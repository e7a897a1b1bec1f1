"""S210: RL from base models: no reward for form, tasks as hard as the base can bear, and what is watched meanwhile."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.outcome.graded import Graded
from assay.rewards.outcome.verdict import VerdictReward

BEHAVIOURS = ("verification", "backtracking", "subgoal setting", "enumeration")
QUESTION = """Which of these does the reasoning below show: verification of a result, backtracking from an approach that
failed, subgoal setting, enumeration of cases? Answer with a line for each that it shows, its name alone; with "none" if
it shows none.

{response}"""
LEVELS = {"medium": (1, 2, 3, 4), "hard": (3, 4, 5)}


@paper(
    "S210",
    "SimpleRL-Zoo",
    arxiv="2503.18892",
    seams=["reward", "objective", "tasks", "evaluate"],
    essentials={
        "plain reward: right or not, wherever the answer stands": "test_the_two_rewards",
        "strict reward, the ablation: 1, 0.5, -0.5, -1 by answer and box": "test_the_two_rewards",
        "with the plain one, groups that are all wrong say nothing; with the strict one they teach the box": (
            "test_what_a_group_of_wrong_answers_teaches"
        ),
        "sets of tasks: easy, medium, hard": "test_the_sets_by_difficulty",
        "mean length of the responses that stopped, and the share that did not": "test_what_is_watched",
        "behaviours in reasoning, told by a judge, over a run": "test_behaviours_over_a_run",
        "its loss: token mean, k3 divergence from the base, a little entropy": "test_the_loss",
        "the recipe trains": "test_the_recipe_trains",
    },
    choices=(
        "the weight of the divergence is the authors' for models up to 14B; 1e-3 above",
        "the words in which the judge is asked of behaviours",
        "of the easy set, weights by the sizes of its two parts",
    ),
    lacks="a recipe at small size: none of the ten base models is trained here, on 8,000 problems of GSM8K and MATH",
)
def simplerl_zoo(
    reward: Literal["plain", "strict"] = "plain", kl_weight: float = 1e-4, entropy_weight: float = 1e-3
) -> Method:
    """GRPO from a base model on a reward for being right alone; ``assay train zero`` is its recipe at small size.

        plain:   R = 1[right], the answer being read from a box, or else from the last number
        strict:  R = 1 (boxed, right), 0.5 (not boxed, right), -0.5 (boxed, wrong), -1 (not boxed, wrong)

    The loss is GRPO's, a mean over tokens, plus ``kl_weight`` times the k3 estimate of the divergence from the base,
    less ``entropy_weight`` times the entropy.
    Tasks are as hard as the base can bear, see :func:`difficulty_set`; a weak base is asked plainly, without a format.
    Watched: pass rate, ``length/mean``, ``length/stopped``, ``truncated``, and :func:`behaviours_of` a run.

    Args:
        reward: ``plain``; ``strict`` is the ablation that lowers what a weak base comes to.
        kl_weight: of the divergence.
        entropy_weight: of the entropy bonus.

    Source: SimpleRL-Zoo (arXiv 2503.18892) and its authors' code, which the rewards and the weights are of.
    """
    strict = Graded(right=1.0, wrong=-0.5, unmarked=-1.0, marks=("boxed",), unmarked_right=0.5)
    return Method(
        reward=VerdictReward() if reward == "plain" else strict,
        objective=ClippedSurrogate(kl_weight=kl_weight, kl_estimator="k3", entropy_weight=entropy_weight),
    )


def difficulty_set(
    name: Literal["easy", "medium", "hard"],
    math: Any,
    gsm8k: Any = None,
    key: str = "level",
    weights: tuple[float, float] = (7473, 564),
) -> dict[str, Any]:
    """Return the specification of a task source as hard as a base model can bear.

    Args:
        name: ``easy`` (GSM8K and MATH of level 1), ``medium`` (levels 1 to 4) or ``hard`` (levels 3 to 5).
        math: source of MATH, whose tasks have their level, a number or ``Level 3``, in ``meta[key]``.
        gsm8k: source of GSM8K, for ``easy``.
        key: see ``math``.
        weights: of GSM8K and of MATH's level 1 in ``easy``.

    Raises:
        UsageError: another name, or ``easy`` without GSM8K.
    """
    if name in LEVELS:
        return _levels(math, LEVELS[name], key)
    if name != "easy" or gsm8k is None:
        raise UsageError(f"S210: a set is easy (with gsm8k), medium or hard, not {name!r}")
    sources = [(gsm8k, weights[0], "gsm8k"), (_levels(math, (1,), key), weights[1], "math")]
    return {"name": "mixture", "sources": [{"source": s, "weight": w, "label": n} for s, w, n in sources]}


def _levels(math: Any, levels: Sequence[int], key: str) -> dict[str, Any]:
    times = {text: 1 for level in levels for text in (str(level), f"Level {level}")}
    return {"name": "repeated", "source": math, "times": times, "key": key, "otherwise": 0}


def behaviours(responses: Sequence[str], judge: Any) -> dict[str, float]:
    """Return the share of responses that show each of :data:`BEHAVIOURS`, as a judge tells, where it replies.

    Args:
        responses: to look at.
        judge: an engine, or the specification of one.
    """
    engine = judge_of(judge, "behaviours")
    replies = ask(engine, [filled(QUESTION, response=text) for text in responses], Sampling(64, 0.0))
    said = [{line.strip(" -*.").lower() for line in r.text.splitlines()} for r in replies if r.stop != "error"]
    return {name: sum(name in lines for lines in said) / len(said) for name in BEHAVIOURS} if said else {}


def behaviours_of(run: str | Path, judge: Any, every: int = 10) -> dict[int, Mapping[str, float]]:
    """Return :func:`behaviours` of the stored rollouts of every ``every``-th step of a run, by step."""
    import pyarrow.parquet as pq

    files = sorted((Path(run) / "rollouts").glob("step-*.parquet"))
    steps = {int(found[1]): file for file in files if (found := re.fullmatch(r"step-(\d+)\.parquet", file.name))}
    texts = {
        n: pq.read_table(file, columns=["response"])["response"].to_pylist()
        for n, file in steps.items()
        if not n % every
    }
    return {n: behaviours(responses, judge) for n, responses in texts.items()}


STRICT = {"name": "graded", "right": 1.0, "wrong": -0.5, "unmarked": -1.0, "unmarked_right": 0.5}

claims(
    Claim(
        paper="S210",
        text="A base that seldom uses the form asked for, and is seldom right, comes to fewer right answers with a "
        "reward that grades the form than with one for being right alone.",
        setting="formats",
        arms={
            "strict": {"name": "S210", "options": {"kl_weight": 0.0}, "reward": STRICT},
            "plain": {"name": "S210", "options": {"kl_weight": 0.0}},
        },
        better="plain",
        baseline="strict",
        measure="area",
        sweep={"lr": (3.0, 10.0, 30.0)},
    )
)
