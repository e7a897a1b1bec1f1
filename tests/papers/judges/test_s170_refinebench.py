"""RefineBench: what a model is told in each turn, when its answer is frozen, and Pass_t and Acc_t."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claimed import learned
from marked import Critic

from assay import cli
from assay.engines.base import Request
from assay.errors import UsageError
from assay.inference.base import Answer
from assay.inference.named import make_strategy
from assay.inference.sampling.refine_turns import DONE, RefineTurns
from assay.inference.scoring.scorers import ByVerifier
from assay.papers.judges.s170_refinebench import Turn, by_turn, refinebench
from assay.registry import build
from assay.rewards.judges.rubric_judge import RubricJudge
from assay.tasks.files import refinebench as published
from assay.types import Message, Task

ITEMS = ["names a", "names b", "names c", "names d"]
TASK = Task("t", "Write.", meta={"rubric": ITEMS})


def checker(prompt: str, k: int) -> str:
    said = prompt.partition("Response:\n")[2].partition("\n")[0]
    return json.dumps(["yes" if item[-1] in said else "no" for item in ITEMS])


def answers(engine: Any, budget: int, strategy: Any, task: Task = TASK) -> Answer:
    [found] = strategy([task], engine, budget, np.random.default_rng(0))
    return found


PUBLISHED = {
    "index": "refinebench-000000",
    "field": "Law",
    "subject": "Contracts",
    "question": "Is it void?",
    "reference_answer": ["It is."],
    "materials": [],
    "comment": [],
    "checklist": ["Does the response say that it is void?", "Does it say why?"],
    "exam_type": "Free Form",
}


def test_its_problems_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows as its page and the hub have them: the checklist is the rubric, materials stand behind the question."""
    path = tmp_path / "rows.json"
    materials = ["{'content': 'Passage A. It\\'s \"old\".'}", {"content": "Passage B."}, "Passage C.", "{broken"]
    path.write_text(json.dumps([PUBLISHED, {**PUBLISHED, "materials": materials}]))
    bare, rich = build("tasks", {"name": "refinebench", "path": str(path)}).tasks
    assert bare.prompt == ({"role": "user", "content": "Is it void?"},) and (bare.id, bare.kind) == (
        "refinebench-000000",
        "none",
    )
    assert bare.meta == {"rubric": PUBLISHED["checklist"], "field": "Law", "subject": "Contracts"}
    assert bare.reference == ["It is."]
    shown = ["Is it void?", 'Passage A. It\'s "old".', "Passage B.", "Passage C.", "{broken"]
    assert rich.prompt[0]["content"].split("\n\n") == shown  # type: ignore[index]
    judge = RubricJudge(Critic(lambda prompt, k: '["yes", "no"]'), threshold=1.0)
    verdict = judge(bare, "It is void.")
    assert verdict.passed is False and verdict.score == 0.5
    asked = []
    monkeypatch.setattr("assay.tasks.files.huggingface.load", lambda *place: asked.append(place) or [PUBLISHED])
    assert published.RefineBench().size == 1 and asked == [("RefineBench/RefineBench", None, "train", None)]
    for wrong, message in (
        ({"question": "q"}, "row 1 has not the fields"),
        ({**PUBLISHED, "checklist": "x"}, "no list"),
    ):
        path.write_text(json.dumps([wrong]))
        with pytest.raises(UsageError, match=message):
            published.RefineBench(str(path))
    (tmp_path / "rows.jsonl").write_text("")
    with pytest.raises(UsageError, match="has no rows"):
        published.RefineBench(str(tmp_path / "rows.jsonl"))


def mender(prompt: str, k: int) -> str:
    """Meets what he is told of; of himself, and at first, item b alone."""
    told = [item[-1] for item in ITEMS if f"- {item}" in prompt]
    draft = prompt.partition("so far:\n")[2].partition("\n")[0]
    return " ".join(sorted({*draft.split(), *told})) if told else "b"


def test_a_checklist_is_marked() -> None:
    judge = RubricJudge(Critic(checker), threshold=1.0)
    some, all_ = judge(TASK, "b d"), judge(TASK, "a b c d")
    assert (some.score, some.passed, some.feedback) == (0.5, False, "names a\nnames c")
    assert (all_.score, all_.passed) == (1, True) and some.parts == {"1": 0, "2": 1, "3": 0, "4": 1}


def test_pass_and_acc_by_turn() -> None:
    """Items 1101, 1111, 0111 after the first turn: Acc 10/12, Pass 1/3; then one of the two others is mended."""
    said = [["a b d", "a b c d"], ["a b c d"], ["b c d", "b c d", "a"]]
    tasks = [Task(str(k), "Write.", meta={"rubric": ITEMS}) for k in range(3)]
    given = [Answer(rows[-1], (), 0, {"turns": rows}) for rows in said]
    found = by_turn(tasks, given, RubricJudge(Critic(checker)), 3)
    assert found[0] == Turn(pytest.approx(0.333333, abs=1e-6), pytest.approx(0.833333, abs=1e-6), 0, 0)
    assert found[1] == Turn(*map(pytest.approx, (2 / 3, 11 / 12, 1 / 3, 1 / 12)))  # type: ignore[arg-type]
    assert found[2] == Turn(*map(pytest.approx, (2 / 3, 9 / 12, 1 / 3, -1 / 12)))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="task 0 that cannot be read"):
        by_turn(tasks, given, RubricJudge(Critic(lambda p, k: "?")))
    five = by_turn(tasks, given, RubricJudge(Critic(checker)))
    assert five[:3] == found and five[3:] == [found[2]] * 2, "the paper asks five times, and a frozen answer stays"
    for bad in ([], [Answer("a", (), 0)], [given[0], Answer("a", (), 0)]):
        with pytest.raises(UsageError, match="strategy refine_turns"):
            by_turn(tasks[: len(bad)], bad, RubricJudge(Critic(checker)))


def test_guided_refinement_is_told_what_fails() -> None:
    writer, critic = Critic(mender), Critic(checker)
    found = answers(writer, 5, refinebench(critic))
    assert found.meta == {"turns": ["b", "a b c d"], "frozen": True, "unscored": 0} and found.text == "a b c d"
    told = str(writer.asked[1].prompt)
    assert told.startswith("Write.\n") and "so far:\nb\n" in told and "- names a\n- names c\n- names d\n" in told
    assert DONE not in told and "names b" not in told
    assert answers(Critic(mender), 1, refinebench(critic)).meta == {"turns": ["b"], "frozen": False, "unscored": 0}


def test_an_answer_without_faults_is_frozen() -> None:
    writer = Critic(lambda p, k: "a b c d")
    assert answers(writer, 5, refinebench(Critic(checker))).meta["frozen"] is True and len(writer.asked) == 1


def test_a_declared_answer_is_frozen() -> None:
    """By himself he goes on as long as he likes; what is no answer is not taken for one, and what failed ends it."""
    texts = iter(["one", "two", f"Well: {DONE}", "three"])
    writer = Critic(lambda p, k: next(texts))
    found = answers(writer, 5, refinebench())
    assert found.meta == {"turns": ["one", "two"], "frozen": True, "unscored": 0} and found.text == "two"
    assert (
        len(writer.asked) == 3
        and DONE in str(writer.asked[1].prompt)
        and "so far:\ntwo\n" in str(writer.asked[2].prompt)
    )
    assert answers(Critic(lambda p, k: "x"), 3, refinebench()).meta["turns"] == ["x"] * 3
    again = iter(["one", None])
    failed = answers(Critic(lambda p, k: next(again)), 5, refinebench())
    assert failed.text == "one" and failed.meta["frozen"] is False
    assert answers(Critic(lambda p, k: DONE), 1, refinebench()).text == DONE, "there is nothing else"


def test_a_share_is_told() -> None:
    """ceil(.5 * 3) = 2 of three, then 1 of one; with none it refines by itself, and asks no judge."""
    writer = Critic(mender)
    found = answers(writer, 5, refinebench(Critic(checker), share=0.5))
    assert [len(text.split()) for text in found.meta["turns"]] == [1, 3, 4]
    drawn = set()
    for seed in range(30):
        [one] = refinebench(Critic(checker), share=0.3)([TASK], Critic(mender), 2, np.random.default_rng(seed))
        drawn.add(one.text)
    assert drawn == {"a b", "b c", "b d"}
    nobody = Critic(checker)
    assert answers(Critic(mender), 3, refinebench(nobody, share=0.0)).meta["turns"] == ["b"] * 3 and not nobody.asked


def test_a_judge_that_cannot_tell_guides_nobody() -> None:
    writer = Critic(mender)
    found = answers(writer, 2, refinebench(Critic(lambda p, k: "?")))
    assert found.meta["unscored"] == 2 and DONE in str(writer.asked[1].prompt)
    chat = Task("c", (Message(role="system", content="s"), Message(role="user", content="Write.")), meta=TASK.meta)
    asked = Critic(lambda p, k: "b")
    answers(asked, 2, refinebench(), chat)
    messages: Any = asked.asked[1].prompt
    assert messages[0]["content"] == "s" and messages[1]["content"].startswith("Write.\n\nYour answer so far:\nb\n")
    for bad in ({"share": 1.5}, {"done": " "}, {"guided": "{draft}"}, {"alone": "again"}):
        with pytest.raises(UsageError, match="refine_turns"):
            RefineTurns(**bad)  # type: ignore[arg-type]
    made: Any = make_strategy("S170(judge={name='keywords',replies=[]},share=0.5)")
    assert isinstance(made.scorer, ByVerifier) and made.share == 0.5 and isinstance(writer.asked[0], Request)


RECIPE = """
model.nano = {hidden = 16, layers = 1, heads = 2, context = 256}
rollout.max_tokens = 4
[tasks]
eval_size = 4
[tasks.source]
name = "file"
path = "tasks.jsonl"
prompt = "question"
reference = "answer"
kind = "none"
meta = ["rubric"]
[tasks.verify]
name = "assay.rewards.judges.rubric_judge:RubricJudge"
threshold = 1.0
[tasks.verify.judge]
name = "keywords"
replies = [['Response:\\n[^\\n]*\\w', '["yes", "no"]']]
otherwise = '["no", "no"]'
"""


def test_it_acts_in_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Half of each checklist is met by any letter: accuracy, Pass_t, is 0, and the score, Acc_t, at most a half."""
    rows = [{"question": f"{a}+{b}=", "answer": "x", "rubric": ["p", "q"]} for a in range(6) for b in range(6)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    place = str(tmp_path / "tasks.jsonl")
    (recipe := tmp_path / "r.toml").write_text(RECIPE.replace("tasks.jsonl", place))
    asked = ["eval", str(recipe), "--strategy", "S170", "--budgets", "1,2", "--json"]
    with pytest.raises(SystemExit) as end:
        cli.main(asked)
    out, err = capfd.readouterr()
    assert end.value.code == 0, err
    points = json.loads(out)["points"]
    assert [p["budget"] for p in points] == ["1", "2"] and all(p["accuracy"]["value"] == 0 for p in points)
    assert all(0 < p["score"] <= 0.5 for p in points)


def test_guided_rises_and_self_stays() -> None:
    guided, alone, half = (learned("S170", arm, tasks=40) for arm in ("guided", "self", "half guided"))
    assert guided["pass_1"] == alone["pass_1"] and guided["pass"] > 0.8
    assert guided["gain"] > 0.5 and half["gain"] > 0.4 and alone["gain"] < 0.15 and guided["acc"] > guided["acc_1"]
