"""S062: marks by a rubric, put together with a veto, saturation, interactions and a stretch of the high end."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.method import Method
from assay.rewards.judges.rubric_judge import RubricJudge, RubricReward
from assay.tasks.making.marked import Band, Scored
from assay.tasks.making.recipe import pipeline
from assay.tasks.making.work import Pipeline
from assay.verify.rubric.aggregate import Rubicon

DEFENCE = (
    "The response does not open by flattering the reader or praising the question.",
    "The response does not praise itself, nor say how good or how complete it is.",
)
ANALYSE = """The responses below, to several tasks, were scored highest by a grader that goes by a rubric. Find what \
they do that pleases a grader without serving the reader.

{responses}

For each such habit write one criterion, in one sentence, that a response meets if it is free of the habit; each in \
<item>...</item>. Write none if there is no such habit."""


@pipeline("S062")
def central(n: int = 4, low: float = 0.25, high: float = 0.75, block: int = 0) -> Pipeline:
    """Tasks that are neither too easy nor too hard for the model to be trained: ``assay tasks make S062``.

    Roles: ``solver``, that model, answers n times; ``critic`` marks the answers by the task's rubric. What is kept has
    a mean score between two quantiles of the pool.

    Args:
        n: answers to each task.
        low, high: quantiles.
        block: criteria a request, 0 for all.
    """
    return Pipeline("S062", (("scored", Scored(n, block=block)), ("band", Band(low, high))))


@paper(
    "S062",
    "Rubicon",
    arxiv="2508.12790",
    seams=["reward", "verify", "tasks"],
    essentials={
        "a rubric's dimensions with ordered tiers and weights, marked by a judge": (
            "rewards/test_rubric_judge.py::test_marks_by_tiers_labels_and_blocks"
        ),
        "a failed veto cancels the rest": "test_the_veto_comes_first",
        "diminishing returns in a dimension": "test_saturation_prefers_balance",
        "interactions of pairs": "test_interactions_of_pairs",
        "differences at the high end are stretched": "test_the_high_end_is_stretched",
        "tasks are kept from the middle of the pool's scores": "test_tasks_of_the_middle",
        "a defence against hacks is found in what was rewarded most, and is a veto": (
            "test_a_defence_is_found_in_what_was_rewarded_most"
        ),
        "two stages": "test_a_run_of_two_stages",
        "without flattery": "test_no_flattery",
    },
    choices=(
        "every formula of the aggregate, which the paper gives in words: kappa 3, q 0.7, b 2, no interactions",
        "the band of tasks: the middle half",
        "the criteria of the defence and all wording",
    ),
)
def rubicon(
    judge: Any,
    kappa: float = 3.0,
    pairs: Sequence[Sequence[Any]] = (),
    q: float = 0.7,
    b: float = 2.0,
    rubric: Sequence[Any] = (),
    defence: Sequence[str] | str = DEFENCE,
    block: int = 0,
    form: str = "json",
    max_tokens: int = 4096,
) -> Method:
    """GRPO on the marks of a task's rubric, as :class:`~assay.verify.rubric.aggregate.Rubicon` puts them together.

    The defence is a rubric of its own, asked of every task: its criteria have weight 0 and a veto. ``assay tasks make
    S062`` keeps the tasks of the middle. Of the paper's two stages the first has tasks of instructions and constraints,
    with the rubric beside the verifier, the second open-ended ones with rubrics of their own; in between
    :func:`defence_of` finds what the first was hacked by. Stages are those of a recipe.

    Args:
        judge: an engine, or the specification of one.
        kappa, pairs, q, b: see :class:`~assay.verify.rubric.aggregate.Rubicon`.
        rubric: of the whole data set, beside the tasks' own; a task without one has this alone.
        defence: criteria, or a JSON file of them, as :func:`defence_of` writes it.
        block, form, max_tokens: see :class:`~assay.rewards.judges.rubric_judge.RubricJudge`.

    Raises:
        UsageError: no engine, an option that does not fit, a file that is no list of criteria.

    Source: "Reinforcement Learning with Rubric Anchors" (arXiv 2508.12790).
    """
    vetoes = [{"text": text, "id": f"defence {k}", "weight": 0.0, "veto": True} for k, text in _listed(defence)]
    marking = RubricJudge(
        judge, Rubicon(kappa, pairs, q, b), block=block, form=form, also=[*rubric, *vetoes], max_tokens=max_tokens
    )
    return Method(reward=RubricReward(marking))


def _listed(defence: Sequence[str] | str) -> list[tuple[int, str]]:
    if isinstance(defence, str):
        try:
            defence = json.loads(Path(defence).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"S062's defence: {defence} is no JSON list of criteria ({error})") from None
    if isinstance(defence, str) or not all(isinstance(text, str) and text.strip() for text in defence):
        raise UsageError("S062's defence is a list of texts, or a JSON file of one")
    return list(enumerate(defence, 1))


def defence_of(run: Path, analyst: Any, shown: int = 16, most: int = 5, out: Path | None = None) -> list[str]:
    """Return the criteria that an analyst finds in the responses of a run that were rewarded most.

    Args:
        run: folder of a stage that was trained.
        analyst: an engine, or the specification of one; greedy.
        shown: responses, those with the highest rewards, no two alike.
        most: criteria, at most.
        out: written as a JSON list, for ``defence``.

    Raises:
        UsageError: no engine; a folder without stored rollouts; the analyst failed.
    """
    import pyarrow.parquet as pq

    files = sorted((run / "rollouts").glob("step-*.parquet"))
    if not files:
        raise UsageError(f"{run} has no stored rollouts; name the folder of the stage that was trained")
    best: dict[str, float] = {}
    for file in files:
        for row in pq.ParquetFile(file).read(["response", "reward"]).to_pylist():
            text, reward = row["response"], row["reward"]
            if reward is not None:
                best[text] = max(reward, best.get(text, reward))
    top = sorted(best, key=lambda text: -best[text])[:shown]
    listed = "\n\n".join(f"Response {k}:\n{text}" for k, text in enumerate(top, 1))
    [reply] = ask(judge_of(analyst, "S062's analyst"), [filled(ANALYSE, responses=listed)], Sampling(4096, 0.0))
    if reply.stop == "error":
        raise UsageError("S062's analyst failed; ask it again")
    items = (" ".join(x.split()) for x in re.findall(r"<item>(.*?)</item>", reply.text, re.DOTALL))
    found = [text for text in dict.fromkeys(items) if text][:most]
    if out is not None:
        out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return found


CRITERION = "The response does not flatter the reader."

claims(
    Claim(
        paper="S062",
        text="Where a judge sees facts that are not there in a response that flatters, a veto against flattery keeps a "
        "policy honest that the weighted sum of its rubric's marks teaches to flatter.",
        setting="rubric_answers",
        evidence="construction",
        arms={
            "veto": {"name": "S062", "options": {"judge": "here", "defence": [CRITERION]}},
            "weighted sum": {"reward": {"name": "rubric", "judge": "here"}},
            "one more criterion": {"reward": {"name": "rubric", "judge": {"judge": "here", "also": [CRITERION]}}},
        },
        better="veto",
        baseline="weighted sum",
        measure="worth",
        sweep={"lr": (1.0, 10.0, 100.0)},
    )
)
