"""VMR: preferences as choices in a drawn order, graded by a rule, and what they teach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claimed import learned
from running import run, tables

from assay.cli import main
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.papers.data.s045_vmr import AsChoice, vmr
from assay.tasks.making.maker import Maker
from assay.tasks.making.task_file import read_tasks
from assay.types import Task
from assay.verify.kind import KindVerifier

pytestmark = pytest.mark.usefixtures("one_thread")


def preference(id: str, *rewards: float) -> Task:
    responses = [{"text": f"answer {k} to {id}", "reward": reward} for k, reward in enumerate(rewards)]
    return Task(id, f"Say something of {id}.", kind="none", meta={"responses": responses})


def made(*tasks: Task, seed: int = 0, n: int = 2, shuffled: bool = True) -> list[Task]:
    return Maker(vmr(n, shuffled), {}, seed=seed).make(tasks).tasks


def test_a_preference_becomes_a_choice() -> None:
    [task] = made(preference("rain", 1.0, 0.0), shuffled=False)
    assert "Say something of rain." in task.question
    assert "Response A:\nanswer 0 to rain\n\nResponse B:\nanswer 1 to rain\n" in task.question
    assert (
        task.reference == {"answer": "A", "options": {"A": "response A", "B": "response B"}} and task.kind == "choice"
    )
    assert task.meta["parents"] == ("rain",) and "responses" not in task.meta
    found = Maker(vmr(), {}).make([preference("same", 0.5, 0.5), preference("rain", 1.0, 0.0)])
    assert found.counts["choice"].dropped == {"no response that is better than enough others": 1}
    with pytest.raises(UsageError, match="S045 needs preferences"):
        vmr().check([Task("a", "?")])
    with pytest.raises(UsageError, match="of 2 to 26 responses"):
        AsChoice(1)


def test_a_fair_coin_decides_the_order() -> None:
    """1000 items: 50 % +- 5 % have the better one first; a policy that always says A earns as much."""
    tasks = [preference(f"q{i}", 1.0, 0.0) for i in range(1000)]
    first, second = made(*tasks), made(*tasks, seed=1)
    letters = [task.reference["answer"] for task in first]
    assert 450 <= letters.count("A") <= 550 and letters == [t.reference["answer"] for t in made(*tasks)]
    assert letters != [t.reference["answer"] for t in second]
    judge = KindVerifier()
    always_a = np.mean([judge(task, "\\boxed{A}").score for task in first[:200]])
    assert 0.4 <= always_a <= 0.6
    for task, letter in zip(first[:20], letters, strict=False):
        at = task.question.index("answer 0") < task.question.index("answer 1")
        assert letter == ("A" if at else "B"), "swapping the responses flips the letter"


def test_no_letter_or_both_is_wrong() -> None:
    [task] = made(preference("rain", 1.0, 0.0), shuffled=False)
    judge = KindVerifier()
    right = ["\\boxed{A}", "B is short. The answer is A.", "Both have merit, so \\boxed{A}", "\\boxed{Response A}"]
    wrong = ["\\boxed{B}", "\\boxed{A or B}", "\\boxed{A, B}", "I cannot say.", "", "Both A and B are fine."]
    assert [judge(task, text).score for text in right] == [1.0] * 4
    assert [judge(task, text).score for text in wrong] == [0.0] * 6
    assert all(judge(task, text).passed is False for text in wrong)


def test_advantages_of_four_choices(make_batch: Any) -> None:
    """Rewards 1, 0, 1, 1: mean .75 and deviation .5 make .5, -1.5, .5, .5."""
    found = GRPO()(make_batch([1] * 4, rewards=[1, 0, 1, 1]))[:, 0].tolist()
    assert found == pytest.approx([0.5, -1.5, 0.5, 0.5], abs=1e-5)


def test_one_of_several() -> None:
    [task] = made(preference("rain", 0.2, 1.0, 0.4, 0.1), n=4)
    letters = dict(zip("ABCD", task.meta["order"], strict=True))
    assert sorted(task.reference["options"]) == ["A", "B", "C", "D"] and letters[task.reference["answer"]] == 0
    shown = task.question.partition(f"Response {task.reference['answer']}:\n")[2]
    assert shown.startswith("answer 1 to rain")
    two = made(preference("snow", 1.0, 1.0, 0.0, 0.0), shuffled=False)
    assert ["answer 2" in t.question for t in two] == [True, False] and ["answer 3" in t.question for t in two] == [
        False,
        True,
    ]
    assert len(made(preference("snow", 1.0, 1.0, 0.0))) == 1


def test_choices_of_three_share_no_response() -> None:
    """Each of the best with two worse ones of its own; where none are left it makes no choice."""
    two = made(preference("snow", 1.0, 0.5, 0.25, 1.0, 0.0, 0.75), n=3, shuffled=False)
    shown = [[k for k in range(6) if f"answer {k} to snow" in task.question] for task in two]
    assert shown == [[0, 1, 2], [3, 4, 5]] and [task.reference["answer"] for task in two] == ["A", "A"]
    assert len(made(preference("snow", 1.0, 0.5, 0.25, 1.0, 0.0), n=3)) == 1
    assert made(preference("snow", 1.0, 0.5), n=3) == []


def test_responses_that_nobody_judged_are_left_out() -> None:
    task = preference("rain", 0.0, -1.0)
    task.meta["responses"].insert(0, {"text": "unjudged", "reward": None})
    [kept] = made(task, shuffled=False)
    assert "unjudged" not in kept.question and kept.question.index("answer 0") < kept.question.index("answer 1")
    found = Maker(vmr(), {}).make([Task("a", "?"), task])
    assert found.counts["choice"].dropped == {"no response that is better than enough others": 1}


def test_the_options_and_their_limits() -> None:
    assert vmr().steps == [("choice", AsChoice())] == [("choice", AsChoice(2, True, AsChoice().template))]
    assert AsChoice(26).n == 26 and len(made(preference("rain", *range(26)), n=26)) == 1
    with pytest.raises(UsageError, match="not 27"):
        AsChoice(27)
    vmr().check([Task("a", "?"), preference("rain", 1.0, 0.0)])  # one that has some is enough
    [task] = Maker(vmr(template="{question} / {responses}", shuffled=False), {}).make([preference("b", 1, 0)]).tasks
    assert task.question == "Say something of b. / Response A:\nanswer 0 to b\n\nResponse B:\nanswer 1 to b"
    assert task.meta["order"] == [0, 1]


def test_choices_are_made_and_trained_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"prompt": f"{i}+1=", "chosen": str(i + 1), "rejected": str(i)} for i in range(9)]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out, seeds = tmp_path / "choices.jsonl", f"recorded(path='{tmp_path / 'p.jsonl'}')"
    with pytest.raises(SystemExit) as stop:
        main(["tasks", "make", "S045", "--seeds", seeds, "--out", str(out), "--json"])
    assert not stop.value.code and json.loads(capsys.readouterr().out)["tasks"] == len(read_tasks(out)) == 9
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 256}},
        tasks={"source": {"name": "made", "path": str(out)}, "eval_size": 1, "eval_share": 0.2},
        warmup={"steps": 0},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
        rollout={"prompts": 2, "group": 2},
    )
    asked = [row["prompt"] for rows in tables(folder, "rollouts").values() for row in rows]
    assert len(asked) == 8 and all("Response A:" in prompt and "Response B:" in prompt for prompt in asked)


@pytest.mark.slow
def test_open_answers_get_better_by_a_fair_order() -> None:
    coin, first = learned("S045", "coin"), learned("S045", "first")
    assert coin["start"] == first["start"] and abs(coin["start"]) < 0.3
    assert coin["open"] > first["open"] + 0.05 and first["position"] > coin["position"] + 1
    assert first["chosen"] > 0.9 and coin["rollouts"] == first["rollouts"] == 2560
