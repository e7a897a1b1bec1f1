"""S113: rubrics written for each dialogue after the example of others, filtered, and paid as a signed sum."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.engines.asking import filled
from assay.environments.search.bm25 import BM25
from assay.errors import UsageError
from assay.method import Method
from assay.rewards.judges.rubric_judge import RubricJudge, RubricReward
from assay.rewards.judges.score_of_ten import read_score
from assay.select.reward_range import RewardRange
from assay.signals.embeddings import Embed, embedding, unit_vectors
from assay.tasks.making.marked import Windows
from assay.tasks.making.recipe import pipeline
from assay.tasks.making.task_file import read_tasks
from assay.tasks.making.work import Dropped, Here, Pipeline, Want, Work, noted
from assay.types import Task
from assay.verify.rubric.criteria import Rubric

RERANK = """How useful is the example for writing criteria by which answers in the case are judged?

Case:
{case}

Example:
{example}

End with one line "Score: " and a number from 0 to 10."""
WRITE = """Write {count} criteria by which an answer in the case below is judged, each about one thing that can be \
checked by reading it. Give points above 0 to what a good answer does, and below 0 to what would be wrong or harmful.

Similar cases and their criteria:
{cases}

Criteria that may apply:
{criteria}

Case:
{case}

Reply with a JSON list of tables {"criterion": ..., "points": ...} and nothing else."""


class Near:
    """Ranks items by the cosines of embeddings: those with the query of each of an item's sides, on average.

    Args:
        items: of each its sides, lists of texts whose vectors are averaged; one side for all items, or several.
        embed: of texts.
    """

    def __init__(self, items: Sequence[Sequence[Sequence[str]]], embed: Embed):
        self.embed = embed
        known = unit_vectors(embed, [text for sides in items for side in sides for text in side])
        sums = np.array([[np.sum([known[text] for text in side], axis=0) for side in sides] for sides in items])
        norms = np.linalg.norm(sums, axis=-1, keepdims=True)
        self.sides = np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 0)

    def top(self, query: str, k: int) -> list[tuple[int, float]]:
        """Return the k nearest items and their mean cosines, nearest first, of equal ones the earlier."""
        [vector] = unit_vectors(self.embed, [query]).values()
        scores = (self.sides @ vector).mean(-1)
        return [(int(i), float(scores[i])) for i in np.argsort(-scores, kind="stable")[:k]]


Ranked = BM25 | Near


@dataclass(frozen=True, slots=True)
class Rubrics:
    """Writes a rubric for each case: similar cases with their rubrics, and similar criteria, are the examples.

    Both are retrieved from the seeds, by BM25 or by :class:`Near`, and the ``wide`` best of each are ordered anew by a
    reranker's scores, 0 to 10; those without a score come last. What the writer replies has to be a rubric, of which
    the first ``count`` criteria are kept.

    Args:
        seeds: tasks with rubrics, or a file of them.
        cases, criteria: examples that are shown.
        wide: candidates of each that are reranked.
        count: criteria to be written.
        embed: of texts, see :func:`assay.signals.embeddings.embedding`; BM25 without one.

    Raises:
        UsageError: an option out of range, seeds that cannot be read or have no rubric.
    """

    seeds: Path | Sequence[Task]
    cases: int = 3
    criteria: int = 10
    wide: int = 20
    count: int = 10
    embed: Embed | str | None = None
    _pool: tuple[list[tuple[str, Rubric]], list[str], BM25 | Near, BM25 | Near] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if min(self.cases, self.criteria, self.wide, self.count) < 1:
            raise UsageError("S113: cases, criteria, wide and count are at least 1")
        tasks = list(read_tasks(Path(self.seeds)) if isinstance(self.seeds, str | Path) else self.seeds)
        if not tasks:
            raise UsageError("S113 needs seeds: tasks with rubrics")
        pairs = [(task.question, Rubric.of(task)) for task in tasks]
        texts = list(dict.fromkeys(c.text for _, rubric in pairs for c in rubric.criteria))
        if self.embed is None:
            told = [f"{question}\n{_listed(rubric)}" for question, rubric in pairs]
            object.__setattr__(self, "_pool", (pairs, texts, BM25(told), BM25(texts)))
            return
        embed = embedding(self.embed)
        sides = [([question], [c.text for c in rubric.criteria]) for question, rubric in pairs]
        object.__setattr__(self, "_pool", (pairs, texts, Near(sides, embed), Near([([x],) for x in texts], embed)))

    def __call__(self, task: Task, here: Here) -> Work:
        pairs, texts, by_case, by_text = self._pool
        near = [pairs[i] for i, _ in by_case.top(task.question, self.wide)]
        told = [f"Case:\n{question}\nCriteria:\n{_listed(rubric)}" for question, rubric in near]
        fit = [texts[i] for i, _ in by_text.top(task.question, self.wide)]
        replies = yield [Want(filled(RERANK, case=task.question, example=one), by="reranker") for one in (*told, *fit)]
        marks = [-1.0 if (score := read_score(reply.text)) is None else score for [reply] in replies]
        cases = _best(told, marks[: len(told)])[: self.cases]
        criteria = _best(fit, marks[len(told) :])[: self.criteria]
        shown = {"cases": "\n\n".join(cases) or "none", "criteria": "\n".join(f"- {x}" for x in criteria) or "none"}
        [[reply]] = yield [Want(filled(WRITE, **shown, case=task.question, count=str(self.count)))]
        try:
            found = Rubric.read(json.loads(reply.text))
        except (ValueError, RecursionError, UsageError):
            return Dropped("no rubric is written")
        return noted(task, rubric=found.rows()[: self.count])


def _listed(rubric: Rubric) -> str:
    return "\n".join(f"- {c.text} ({c.weight:+g})" for c in rubric.criteria)


def _best(texts: Sequence[str], marks: Sequence[float]) -> list[str]:
    return [texts[i] for i in sorted(range(len(texts)), key=lambda i: -marks[i])]


@pipeline("S113")
def rubrics(
    seeds: Path,
    count: int = 10,
    n: int = 8,
    low: float = 0.1,
    high: float = 0.9,
    met: float = 0.5,
    most: float = 0.9,
    embed: str | None = None,
) -> Pipeline:
    """Rubrics for dialogues, filtered: ``assay tasks make S113 seeds=seeds.jsonl``; see :class:`Rubrics`.

    Roles: ``writer`` and ``reranker``; ``solver``, the policy before training, and ``critic``, who marks.

    Args:
        seeds: a file of tasks with rubrics.
        count: criteria of each.
        embed: the model of sentences that the paper's retrieval goes by, a name, folder or ``file.py:function``; words
            without one.
        n, low, high, met, most: see :class:`~assay.tasks.making.marked.Windows`.
    """
    return Pipeline(
        "S113", (("rubrics", Rubrics(seeds, count=count, embed=embed)), ("windows", Windows(n, low, high, met, most)))
    )


@paper(
    "S113",
    "ORBIT",
    arxiv="2510.15859",
    seams=["tasks", "reward", "select"],
    essentials={
        "similar cases and criteria are retrieved, reranked and shown to a writer of signed criteria": (
            "test_rubrics_are_written_after_the_example_of_others"
        ),
        "tasks within a band of scores, criteria that are not always met": "test_two_filters",
        "the reward is the signed sum of the points": "test_the_reward_is_a_signed_sum",
        "groups whose rewards do not differ are masked": "test_groups_without_range_are_masked",
        "temperatures rise by stages": "test_temperatures_of_stages",
        "a stage goes on from the best weights of the one before": (
            "training/test_best.py::test_the_next_stage_begins_with_the_best_weights"
        ),
        "it acts in training": "test_a_run_is_paid_by_points",
    },
    choices=(
        "the thresholds: scores in [0.1, 0.9], met from 0.5, in fewer than 0.9 of 8 responses; delta 1e-6",
        "retrieval by BM25 unless a model of sentences is given; a case is as near as its question and its criteria "
        "are on average; gamma 1.1 and at most 1.4",
        "all wording",
        "the best weights are those with the highest mean score at an evaluation within the stage or at its end",
    ),
)
def orbit(judge: Any, delta: float = 1e-6, rubric: Sequence[Any] = (), block: int = 0, form: str = "json") -> Method:
    """GRPO on R_i = sum_k w_k s_ik, points of either sign of the criteria that a judge finds met.

        A_i = (R_i - mean R) / std R, of the population;   prompts with max R - min R <= delta are left out

    ``assay tasks make S113`` writes the rubrics. Stages and their temperatures: :func:`stages_of`.

    Args:
        judge: an engine, or the specification of one.
        delta: see above.
        rubric: of the whole data set, beside the tasks' own.
        block, form: see :class:`~assay.rewards.judges.rubric_judge.RubricJudge`.

    Source: ORBIT (arXiv 2510.15859).
    """
    reward = RubricReward(RubricJudge(judge, "sum", block=block, form=form, also=rubric))
    return Method(reward=reward, credit=GRPO(ddof=0), select=RewardRange(delta))


METHOD = {"name": "S113", "options": {"judge": "here"}}

claims(
    Claim(
        paper="S113",
        text="What the filter samples being counted, cases within a band of scores and criteria that are not always "
        "met teach more about cases that were not asked than all cases and criteria do.",
        setting="sifted_rubrics",
        arms={
            "all": {"method": METHOD},
            "sifted": {"method": METHOD, "windows": {}},
            "cases alone": {"method": METHOD, "windows": {"most": 1.1}},
            "criteria alone": {"method": METHOD, "windows": {"low": 0.0, "high": 1.0}},
        },
        better="sifted",
        baseline="all",
        measure="worth",
        sweep={"lr": (1.0, 3.0, 10.0)},
    )
)


def stages_of(
    steps: Sequence[int],
    start: float = 1.0,
    gamma: float = 1.1,
    most: float = 1.4,
    best: Literal["pass@1", "score/mean"] | None = "score/mean",
) -> list[dict[str, Any]]:
    """Return the stages of a recipe, of so many steps each: T_1 = start, T_k+1 = min(most, gamma T_k).

    A stage goes on from the best weights of the one before, by what its evaluations found (``evaluate.every``).

    Args:
        steps: of each stage.
        start, gamma, most: of the temperatures.
        best: by what the weights are told, see :class:`assay.config.StageConfig`; ``None`` goes on from the last.

    Raises:
        UsageError: gamma not above 1, or temperatures out of order.
    """
    if not gamma > 1 or not 0 < start <= most:
        raise UsageError(f"S113: needs gamma {gamma:g} > 1 and 0 < start {start:g} <= most {most:g}")
    out: list[dict[str, Any]] = []
    temperature = start
    for k, n in enumerate(steps, 1):
        out.append({"name": f"stage-{k}", "steps": n, "rollout": {"temperature": temperature}})
        if best is not None and k < len(steps):
            out[-1]["best"] = best
        temperature = min(most, gamma * temperature)
    return out
