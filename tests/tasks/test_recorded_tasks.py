"""Responses on record: rows of every usual form, what is wrong said by line, and runs that learn from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import UsageError
from assay.rewards.step_models.examples import StepExample, StepPair, read_examples
from assay.tasks.files.recorded import RecordedTasks

pytestmark = pytest.mark.usefixtures("one_thread")


def written(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


@pytest.mark.parametrize(
    ("row", "prompt", "responses"),
    [
        ({"prompt": "1+1=", "completion": "2"}, "1+1=", [("2", 1.0)]),
        ({"question": "1+1=", "answer": "2"}, "1+1=", [("2", 1.0)]),
        ({"instruction": "Add.", "input": "1 1", "output": "2"}, "Add.\n\n1 1", [("2", 1.0)]),
        ({"instruction": "Add 1 to 1.", "input": "", "output": "2"}, "Add 1 to 1.", [("2", 1.0)]),
        ({"messages": [user("1+1="), said("2")]}, (user("1+1="),), [("2", 1.0)]),
        ({"prompt": "p", "chosen": "a", "rejected": "b"}, "p", [("a", 1.0), ("b", 0.0)]),
        ({"prompt": [user("p")], "chosen": [said("a")], "rejected": [said("b")]}, (user("p"),), [("a", 1), ("b", 0)]),
        ({"chosen": [user("p"), said("a")], "rejected": [user("p"), said("b")]}, (user("p"),), [("a", 1), ("b", 0)]),
        (
            {"prompt": "p", "chosen": [user("p"), said("a")], "rejected": [user("p"), said("b")]},
            (user("p"),),
            [("a", 1), ("b", 0)],
        ),
        ({"prompt": "p", "completion": "a", "label": False}, "p", [("a", 0.0)]),
        ({"prompt": "p", "responses": ["a", {"text": "b", "reward": 0.25}]}, "p", [("a", 1.0), ("b", 0.25)]),
    ],
)
def test_rows_of_every_form(row: Any, prompt: Any, responses: Any, tmp_path: Path) -> None:
    source = RecordedTasks(written(tmp_path / "rows.jsonl", row))
    assert source[0].prompt == prompt and source[0].kind == "none"
    assert [(r["text"], r["reward"]) for r in source[0].meta["responses"]] == responses


CALLS = [{"id": "1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]


def test_messages_that_call_tools_or_have_parts_are_read_as_servers_write_them(tmp_path: Path) -> None:
    called, answered = {**said(""), "tool_calls": CALLS}, {"role": "tool", "tool_call_id": "1", "content": "noon"}
    parts = [{"type": "text", "text": "It is "}, {"type": "text", "text": "noon."}]
    asked = {**user("?"), "content": [{"type": "text", "text": "Time?"}], "tool_calls": None, "tool_call_id": None}
    row = {"messages": [asked, {**called, "content": None}, answered, {"role": "assistant", "content": parts}]}
    source = RecordedTasks(written(tmp_path / "rows.jsonl", row))
    assert source[0].prompt == (user("Time?"), called, answered)
    assert source[0].meta["responses"][0]["text"] == "It is noon."
    for content, words in ((None, "content 'None', not a text"), ([{"type": "image_url"}], "parts that are texts")):
        path = written(tmp_path / "wrong.jsonl", {"messages": [user("p"), {"role": "assistant", "content": content}]})
        with pytest.raises(UsageError, match=rf"line 1: .*{words}"):
            RecordedTasks(path)
    with pytest.raises(UsageError, match="line 1: a response is a text, and this message calls tools"):
        RecordedTasks(written(tmp_path / "call.jsonl", {"messages": [user("p"), {**called, "content": None}]}))


def test_judged_responses_to_one_prompt_are_one_tasks_and_preferences_are_not(tmp_path: Path) -> None:
    rows = [
        {"prompt": p, "completion": c, "label": y} for p, c, y in (("p", "a", True), ("q", "b", 0.5), ("p", "c", 0))
    ]
    source = RecordedTasks(written(tmp_path / "judged.jsonl", *rows))
    assert source.size == 2 and [r["reward"] for r in source[0].meta["responses"]] == [1.0, 0.0]
    assert source.described.endswith("judged.jsonl: 3 responses on record to 2 prompts")
    pair = {"prompt": "p", "chosen": "a", "rejected": "b"}
    assert RecordedTasks(written(tmp_path / "pairs.jsonl", pair, pair)).size == 2
    assert RecordedTasks(written(tmp_path / "one.jsonl", pair), chat=True)[0].prompt == (user("p"),)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"prompt": "p"}, "lacks 'completion'"),
        ({"completion": "p"}, "lacks 'prompt'"),
        ({"prompt": "p", "completion": ""}, "a response is empty"),
        ({"prompt": "p", "chosen": "a", "rejected": "a"}, "are the same"),
        ({"prompt": "p", "completion": "a", "label": 3}, r"label 3 is not true, false or in \[0, 1\]"),
        ({"messages": [user("p")]}, "messages end with one of the assistant"),
        ({"chosen": [user("p"), said("a")], "rejected": [user("q"), said("b")]}, "differ in their last message"),
        ({"prompt": "q", "chosen": [user("p"), said("a")], "rejected": [user("p"), said("b")]}, "is not in the conv"),
        (["p", "a"], "is no record"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(row: Any, words: str, tmp_path: Path) -> None:
    good = {"prompt": "p", "completion": "c"}
    with pytest.raises(UsageError, match=rf"rows.jsonl:? ?(line )?2.*{words}|line 2.*{words}"):
        RecordedTasks(written(tmp_path / "rows.jsonl", good, row))


def trained(recipe: str, path: Path, folder: Path, **train: Any) -> list[dict[str, float]]:
    """Train a small model by a recipe of the package; return the looks at what is held out."""
    assay.train(
        recipe,
        model={"source": "nano", "dtype": "float32", "gradient_checkpointing": False,
               "nano": {"hidden": 32, "layers": 1, "heads": 2, "context": 24, "alphabet": "0123456789+="}},
        settings={
            "tasks.source.path": str(path), "tasks.source.chat": False, "tasks.eval_share": 0.2,
            "run.dir": str(folder), "run.report": False, "run.tensorboard": False, "run.checkpoint_every": 1000,
            "rollout.prompts": 16, "rollout.max_tokens": 8, "train.ramp": 0,
            **{f"train.{k}": v for k, v in train.items()},
        },
        quiet=True,
    )  # fmt: skip
    return [json.loads(line) for line in (folder / "held_out.jsonl").open()]


def test_fine_tuning_on_demonstrations_and_preferences(tmp_path: Path) -> None:
    """The sum's last digit is learnt from demonstrations; then short answers from preferences over doubled ones."""
    sums = [(f"{a}+{b}=", str(a + b)) for a in range(8) for b in range(8)]
    demonstrations = written(tmp_path / "sft.jsonl", *({"prompt": p, "completion": c} for p, c in sums))
    looks = trained("sft", demonstrations, tmp_path / "sft", steps=25, lr=1e-2)
    assert [row["step"] for row in looks] == [0, 10, 20, 25] and "preferred" not in looks[0]
    assert looks[0]["loss"] > 2.0 and looks[-1]["loss"] < 0.75 * looks[0]["loss"]
    metrics = [json.loads(line) for line in (tmp_path / "sft" / "metrics.jsonl").open()]
    assert metrics[-1]["loss"] < 0.5 * metrics[0]["loss"]
    assert not list((tmp_path / "sft").glob("evals/*")), "nobody is asked where nobody can judge"
    pairs = written(tmp_path / "dpo.jsonl", *({"prompt": p, "chosen": c, "rejected": c + c} for p, c in sums))
    looks = trained("dpo", pairs, tmp_path / "dpo", steps=10, lr=3e-3)
    assert looks[0]["preferred"] == 0.5 and looks[-1]["preferred"] > 0.75
    metrics = [json.loads(line) for line in (tmp_path / "dpo" / "metrics.jsonl").open()]
    assert metrics[0]["loss"] == pytest.approx(0.6931, abs=1e-3) and metrics[-1]["preference/accuracy"] > 0.9
    judged = [{"prompt": p, "completion": c * n, "label": n == 1} for p, c in sums for n in (1, 2)]
    looks = trained("kto", written(tmp_path / "kto.jsonl", *judged), tmp_path / "kto", steps=10, lr=3e-3)
    assert looks[-1]["preferred"] > 0.75


def test_a_scorer_learns_from_texts_that_were_preferred_or_judged(tmp_path: Path) -> None:
    pair, judged = read_examples(
        written(
            tmp_path / "rows.jsonl",
            {"prompt": "p", "chosen": "good", "rejected": "bad"},
            {"prompt": "p", "completion": "good", "label": True},
        )
    )
    assert isinstance(pair, StepPair) and (pair.better.steps, pair.worse.steps, pair.fork) == (("good",), ("bad",), 0)
    assert isinstance(judged, StepExample) and judged.labels == (1.0,)


def test_a_scorer_learns_from_conversations_as_the_policy_does(tmp_path: Path) -> None:
    pair, judged = read_examples(
        written(
            tmp_path / "rows.jsonl",
            {"chosen": [user("p"), said("good")], "rejected": [user("p"), said("bad")]},
            {"prompt": [user("p")], "completion": [said("good")], "label": True},
        )
    )
    assert isinstance(pair, StepPair) and pair.better.task.prompt == (user("p"),)
    assert (pair.better.steps, pair.worse.steps) == (("good",), ("bad",))
    assert isinstance(judged, StepExample) and judged.steps == ("good",) and judged.task.prompt == (user("p"),)
    row = {"prompt": "p", "chosen": [user("p"), said("a")], "rejected": [user("p"), said("b")]}
    [both] = read_examples(written(tmp_path / "both.jsonl", row))
    assert isinstance(both, StepPair) and both.better.task.prompt == (user("p"),)
    for change, words in (
        ({"rejected": [user("q"), said("b")]}, "conversations differ in their last message"),
        ({"prompt": "q"}, "the prompt is not in the conversations"),
    ):
        with pytest.raises(UsageError, match=f"line 1: {words}"):
            read_examples(written(tmp_path / "wrong.jsonl", {**row, **change}))
