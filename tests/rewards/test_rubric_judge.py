"""The judge of rubrics: what it asks, how it reads, what it says as a verifier and pays as a reward."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from marked import Critic, stepped

from assay.engines.marking import Question
from assay.errors import UsageError
from assay.registry import build
from assay.rewards.judges.rubric_judge import RubricJudge, RubricReward
from assay.types import Task
from assay.verify.make import make_verifier
from assay.verify.rubric.criteria import Rubric

ROWS: list[Any] = [
    {"text": "states a", "id": "a", "weight": 2},
    {"text": "tone", "id": "tone", "tiers": ["rude", "plain", "warm"]},
    {"text": "states c", "id": "c"},
]
TASK = Task("t", "What is {a}?", kind="none", meta={"rubric": ROWS})


def test_marks_by_tiers_labels_and_blocks() -> None:
    """Two a request: a label that is none of a criterion's marks nothing, a wrong count none of its block."""
    critic = Critic(lambda prompt, k: '<reasoning>so</reasoning>\n["Yes", "1"]' if "states a" in prompt else '["no"]')
    judge = RubricJudge(critic, block=2)
    assert judge.marks([(TASK, "r {x}")]) == [[1.0, 0.5, 0.0]]
    first, second = (str(r.prompt) for r in critic.asked)
    assert "1. states a (label: yes or no)\n2. tone (label: a number from 0 to 2 - 0: rude; 1: plain; 2: warm)" in first
    assert "What is {a}?" in first and "r {x}" in first and "as a JSON list" in first and '["yes", "1"]' in first
    assert "1. states c" in second and "states a" not in second and critic.asked[0].sampling.temperature == 0
    for reply, marks in (
        ('["yes", "3"]', [1, None, None]),
        ('["yes"]', [None, None, None]),
        ('["maybe", "0"]', [None, 0, None]),
        ("yes, 1", [None, None, None]),
        (None, [None, None, None]),
    ):
        said = RubricJudge(Critic(lambda prompt, k, reply=reply: reply if "states a" in prompt else "no"), block=2)
        assert said.marks([(TASK, "r")]) == [marks], reply
    assert RubricJudge(Critic(lambda p, k: "no, 2, yes"), form="comma").marks([(TASK, "r")]) == [[0, 1, 1]]


def test_labels_of_ones_own() -> None:
    question = Question(form="pipe", labels={"support": 1, "partial_support": 0.5, "not_support": 0})
    rubric = Rubric.read(["a", "b", "c"])
    assert question.read(rubric, ["support|partial_support|not_support"]) == [1, 0.5, 0]
    [prompt] = question.prompts("q", "r", rubric)
    assert "(label: support or partial_support or not_support)" in prompt
    for options in ({"block": -1}, {"labels": {"a": 1}}, {"labels": {"a": 1, "b": 2}}, {"template": "{response}"}):
        with pytest.raises(UsageError):
            Question(**options)  # type: ignore[arg-type]


def test_as_a_verifier() -> None:
    judge = RubricJudge(Critic(lambda p, k: '["yes", "1", "no"]'))
    verdict = judge(TASK, "r")
    assert (verdict.score, verdict.passed) == (pytest.approx(0.625), True)
    assert verdict.parts == {"a": 1, "tone": 0.5, "c": 0} and verdict.feedback == "tone\nstates c"
    assert RubricJudge(judge.judge, threshold=0.63)(TASK, "r").passed is False
    assert RubricJudge(judge.judge, threshold=0.625)(TASK, "r").passed is True
    points = replace(TASK, meta={"rubric": [{"text": "good", "weight": 8}, {"text": "harm", "weight": -6}]})
    summed = RubricJudge(Critic(lambda p, k: '["yes", "yes"]'), "sum")
    assert summed(points, "r").score == 0.25 and summed(points, "r").feedback == "it should not be so: harm"
    assert summed.value(summed.rubric(points), [1.0, 1.0]) == 2
    named = make_verifier(
        {"name": "assay.rewards.judges.rubric_judge:RubricJudge", "judge": {"name": "keywords", "replies": []}}
    )
    unread = named(TASK, "r")
    assert unread.passed is None and unread.parts == {"a": None, "tone": None, "c": None}
    assert "a, tone, c" in unread.feedback


def test_what_is_unread_is_open_or_left_out() -> None:
    replies = Critic(lambda p, k: '["yes", "?", "no"]')
    assert RubricJudge(replies)(TASK, "r").passed is None
    left = RubricJudge(replies, unread="leave_out")
    assert left(TASK, "r").score == pytest.approx(2 / 3) and left(TASK, "r").parts["tone"] is None
    assert RubricJudge(Critic(lambda p, k: None), unread="leave_out")(TASK, "r").passed is None
    for bad in ({"unread": "zero"}, {"threshold": 1.5}, {"also": "x"}):
        with pytest.raises(UsageError):
            RubricJudge(replies, **bad)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the judge of rubrics"):
        RubricJudge(object())
    with pytest.raises(UsageError, match="task none has no rubric"):
        RubricJudge(replies)(Task("none", "q"), "r")
    vetoes = RubricReward(RubricJudge(replies, also=[{"text": "x", "weight": 0, "veto": True}]))
    with pytest.raises(UsageError, match="task none has no rubric"):
        vetoes.check_tasks([TASK, Task("none", "q")])
    with pytest.raises(UsageError, match="take aggregate 'clip'"):
        RubricReward(replies).check_tasks([Task("t", "q", meta={"rubric": [{"text": "x", "weight": -1}]})])
    assert RubricJudge(Critic(lambda p, k: '["yes"]'), also=["more"])(Task("none", "q"), "r").score == 1


def test_as_a_reward() -> None:
    said = {"good": '["yes", "2", "yes"]', "half": '["no", "1", "yes"]', "odd": '["yes", "9", "yes"]', "down": None}
    critic = Critic(lambda p, k: said[p.partition("Response:\n")[2].split("\n")[0]])
    texts = [*said, "good"]
    batch = stepped([[1]] * 5, [True, True, True, True, None], texts=texts)
    batch.tasks = [TASK] * 5
    for spec in (RubricJudge(critic), {"judge": critic}, critic):
        found = RubricReward(spec)(batch)
        assert found.values.tolist() == pytest.approx([1, 0.375, 0, 0, 0])
        assert found.valid is not None and found.valid.tolist() == [True, True, False, False, False]
    assert found.terms["marks"].tolist() == pytest.approx([1, 0.5, 1, 0, 0])
    assert found.terms["unread"].tolist() == pytest.approx([0, 0, 1 / 3, 1, 0])
    assert found.values.dtype == torch.float64 and len(critic.asked) == 12, "no question about what was not judged"
    made = build("reward", {"name": "rubric", "judge": {"judge": {"name": "keywords", "replies": []}, "block": 1}})
    assert made.judge.question.block == 1
