"""Samples made elsewhere: the rows of several tools read alike, judged or not, and each mistake said in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay import api
from assay.errors import UsageError
from assay.evaluate import Evaluation


def written(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def measured(target: object, **options: Any) -> Evaluation:
    return api.evaluate(target, quiet=True, **({"workers": 0} | options))  # type: ignore[arg-type]


def results(e: Evaluation) -> dict[str, list[bool | None]]:
    return {task: [s.passed for s in rows] for task, rows in e.by_task().items()}


LIST = [
    {"prompt": "1+1?", "completions": ["2", "3", "it is 2"], "answer": "2", "level": "easy"},
    {"prompt": "2+2?", "completions": ["4", "5", "5"], "answer": "4", "level": "hard"},
]
ROWS = [
    {"question": row["prompt"], "output": text, "answer": row["answer"], "level": row["level"]}
    for row in LIST
    for text in row["completions"]
]
CHATS = [
    {
        "prompt": [{"role": "user", "content": row["prompt"]}],
        "completions": [[{"role": "assistant", "content": text}] for text in row["completions"]],
        "ground_truth": row["answer"],
    }
    for row in LIST
]
NESTED = [{"doc_id": i, "target": row["answer"], "resps": [row["completions"]]} for i, row in enumerate(LIST)]
RIGHT = [[True, False, True], [True, False, False]]


@pytest.mark.parametrize("rows", [LIST, ROWS, CHATS, NESTED])
def test_completions_of_any_shape_are_judged(rows: list[Any], tmp_path: Path) -> None:
    file = written(tmp_path / "samples.jsonl", *rows)
    found = measured(file, verifier="number")
    assert list(results(found).values()) == RIGHT
    assert [s.response for s in found.samples] == [t for row in LIST for t in row["completions"]]


def test_messages_without_text_and_in_parts(tmp_path: Path) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    asked = [{"role": "user", "content": [{"type": "text", "text": "1+1?"}]}, call, {"role": "tool", "content": "2"}]
    answers = [{"role": "assistant", "content": c} for c in (None, [{"type": "text", "text": "2"}])]
    file = written(tmp_path / "samples.jsonl", {"prompt": asked, "completions": [[a] for a in answers], "answer": "2"})
    found = measured(file, verifier="number")
    assert [(s.response, s.passed) for s in found.samples] == [("", False), ("2", True)]
    assert found.samples[0].prompt == "1+1?\n\n2"


def test_a_file_may_have_its_ending_in_capitals(tmp_path: Path) -> None:
    assert list(results(measured(written(tmp_path / "SAMPLES.JSONL", *ROWS), verifier="number")).values()) == RIGHT


def test_a_program_of_ones_own_judges(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from assay.types import Verdict\n"
        "def judge(task, response):\n"
        "    return Verdict.right() if task.reference in response else Verdict.abstain('who knows')\n"
        "def short(task, response):\n"
        "    return 1 / len(response)\n"
    )
    file = written(tmp_path / "samples.jsonl", *LIST)
    mine = f"{tmp_path / 'mine.py'}"
    found = measured(file, verifier=f"{mine}:judge", scorer=f"{mine}:short", workers=1)
    assert list(results(found).values()) == [[True, None, True], [True, None, None]]
    assert [s.confidence for s in found.samples][:3] == [1, 1, 1 / 7]
    assert found.samples[1].feedback == "who knows"


def test_verdicts_that_are_there_are_taken(tmp_path: Path) -> None:
    rows = [
        {"task_id": "a", "completion": "x", "passed": True, "confidence": 0.9, "finish_reason": "length", "tokens": 7},
        {"task_id": "a", "completion": "y", "passed": False, "confidence": 0.2},
        {"task_id": "b", "completion": "z", "passed": None},
        {"task_id": "b", "completion": "w", "passed": "false", "sound": 1},
        {"task_id": "b", "completion": "v", "passed": None, "score": 0.0},  # an abstention as assay stores it
    ]
    found = measured(written(tmp_path / "s.jsonl", *rows))
    assert results(found) == {"a": [True, False], "b": [None, False, None]}
    first = found.samples[0]
    assert (first.confidence, first.stop, first.length, first.score) == (0.9, "length", 7, 1.0)
    assert [s.sound for s in found.samples] == [None, None, None, True, None]


def test_scores_count_from_a_threshold(tmp_path: Path) -> None:
    file = written(tmp_path / "s.jsonl", *({"prompt": "q", "response": "r", "reward": r} for r in (-1, 0.5, 1)))
    with pytest.raises(UsageError, match=r"line 1 has the score -1, not in \[0, 1\].*--threshold"):
        measured(file)
    assert results(measured(file, threshold=0.5)) == {"q": [False, True, True]}
    graded = written(tmp_path / "g.jsonl", {"prompt": "q", "responses": ["a", "b", "c"], "score": [0.5, 1.0, None]})
    found = measured(graded)
    assert results(found) == {"q": [False, True, None]} and [s.score for s in found.samples] == [0.5, 1.0, 0.0]


def harness(answers: list[list[str]], **verdicts: float) -> list[dict[str, Any]]:
    """Rows as lm-evaluation-harness 0.4 writes them: one for each document and filter."""
    return [
        {
            "doc_id": i,
            "doc": {"question": row["prompt"]},
            "target": row["answer"],
            "resps": [texts],
            "filtered_resps": texts,
            "filter": name,
            "metrics": ["exact_match"],
            "exact_match": value if texts[0].endswith(str(row["answer"])) else 0.0,
        }
        for i, (row, texts) in enumerate(zip(LIST, answers, strict=True))
        for name, value in verdicts.items()
    ]


def test_filters_of_the_harness_judge_the_same_responses(tmp_path: Path) -> None:
    """Two documents with one response each and two filters are two tasks of one sample, not of two."""
    file = written(tmp_path / "s.jsonl", *harness([["it is 2"], ["5"]], strict=0.0, flexible=1.0))
    with pytest.raises(UsageError, match=r"line 2 has the responses to '0' again.*--fields filter=strict"):
        measured(file)
    assert results(measured(file, fields={"filter": "strict"})) == {"0": [False], "1": [False]}
    assert results(measured(file, fields={"filter": "flexible"})) == {"0": [True], "1": [False]}
    with pytest.raises(UsageError, match="no rows of the filter 'none'; filters there are: strict"):
        measured(file, fields={"filter": "none"})
    # A verifier judges the responses themselves, once.
    assert results(measured(file, verifier="number")) == {"0": [True], "1": [False]}
    one = written(tmp_path / "one.jsonl", *harness([["it is 2"], ["5"]], none=1.0))
    assert results(measured(one)) == {"0": [True], "1": [False]}


def test_one_verdict_on_repeats_is_not_one_on_each(tmp_path: Path) -> None:
    rows = harness([["2", "3", "it is 2"], ["5", "5", "4"]], none=1.0)
    file = written(tmp_path / "s.jsonl", *rows)
    with pytest.raises(UsageError, match=r"3 completions and one value for 'score'.*--verifier KIND"):
        measured(file)
    assert results(measured(file, verifier="number")) == {"0": [True, False, True], "1": [False, False, True]}


def test_fields_are_mapped(tmp_path: Path) -> None:
    row = {"item": {"no": 4, "q": "1+1?"}, "out": [{"text": "2"}], "ok": 1, "id": "not this"}
    names = {"task": "item.no", "prompt": "item.q", "response": "out.0.text", "passed": "ok"}
    found = measured(written(tmp_path / "s.jsonl", row), fields=names)
    assert results(found) == {"4": [True]} and found.samples[0].prompt == "1+1?"


@pytest.mark.parametrize("key", ["id", "prompt"])
def test_references_may_stand_in_a_file_of_their_own(key: str, tmp_path: Path) -> None:
    rows = [{key: row["prompt"], "completions": row["completions"]} for row in LIST]
    file = written(tmp_path / "samples.jsonl", *rows)
    tasks = written(tmp_path / "tasks.jsonl", *({key: row["prompt"], "answer": row["answer"]} for row in LIST))
    found = measured(file, verifier="number", reference=str(tasks))
    assert list(results(found).values()) == RIGHT
    written(tasks, {key: "1+1?", "answer": "2"})
    with pytest.raises(UsageError, match=r"line 2: .*tasks.jsonl has no task '2\+2\?'"):
        measured(file, verifier="number", reference=str(tasks))


def test_answers_vote_as_the_verifier_has_it(tmp_path: Path) -> None:
    file = written(tmp_path / "s.jsonl", *LIST)
    same = measured(file, verifier="number")
    verifier = measured(file, verifier="number", equal="verifier")
    assert [s.answer for s in same.samples][:3] == ["2", "3", "it is 2"]
    assert [s.answer for s in verifier.samples][:3] == ["2", "3", "2"]
    with pytest.raises(UsageError, match="not by 'simlar'"):
        measured(file, verifier="number", equal="simlar")


def test_judging_is_kept_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.evaluate import file_source

    monkeypatch.setattr(file_source, "PART", 3)
    file, out = written(tmp_path / "s.jsonl", *LIST), tmp_path / "out"
    whole = measured(file, verifier="number")
    measured(file, verifier="number", out=out)
    parts = sorted((out / "samples").iterdir())
    assert len(parts) == 2
    parts[0].unlink()
    assert measured(out).samples == whole.samples
    parts[1].unlink()
    written(file, LIST[0])
    with pytest.raises(UsageError, match=r"other settings \(file.mark"):
        measured(out)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], {}, "s.jsonl has no rows"),
        ([{"id": 1, "text": "a"}], {}, "does not say which completions are right .* --verifier KIND"),
        ([{"id": 1, "text": "a"}], {"verifier": "number"}, "line 1 has no reference to judge by.*present: id, text"),
        ([{"id": 1, "text": "a", "answer": 1}], {"verifier": "numbr"}, "did you mean 'number'"),
        ([{"id": 1, "passed": True}], {}, "line 1 has no completion, such as response"),
        ([{"text": "a", "passed": True}], {}, "line 1 names no task and has no prompt"),
        ([{"id": 1, "responses": ["a", "b"], "passed": [True]}], {}, "2 completions and 1 values for 'passed'"),
        ([{"id": 1, "responses": ["a", "b"], "passed": True}], {}, "2 completions and one value for 'passed'"),
        ([{"id": 1, "text": "a", "passed": "maybe"}], {}, "its passed 'maybe' is neither true, false nor null"),
        ([{"id": 1, "text": "a", "score": "high"}], {}, "its score 'high' is no number"),
        ([{"id": 1, "text": 5, "passed": True}], {}, "its completion is a int, not text"),
        ([[1]], {"fields": {"passed": "x"}}, "line 1 is a list, not an object|does not say"),
        ([{"id": 1, "text": "a", "passed": True}], {"fields": {"promt": "x"}}, "did you mean 'prompt'"),
        ([{"id": 1, "text": "a", "passed": True}], {"fields": {"prompt": "idd"}}, "no field 'idd'.*did you mean 'id'"),
        ([{"id": 1, "text": "a", "passed": True}], {"scorer": "judge"}, "needs the model that wrote the completions"),
        ([{"id": 1, "text": "a", "passed": True}], {"samples": 3}, "--samples and --chain are for a model"),
        ([{"id": 1, "text": "a", "passed": True}], {"overrides": ["seed=1"]}, "would change a model's configuration"),
        ([{"id": 1, "text": "a"}], {"verifier": "number", "reference": "no.jsonl"}, "--reference: no file no.jsonl"),
    ],
)
def test_mistakes_are_named(rows: list[Any], options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message) as error:
        measured(written(tmp_path / "s.jsonl", *rows), **options)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file"):
        measured(tmp_path / "none.jsonl")
    (tmp_path / "torn.jsonl").write_text('{"id": 1')
    with pytest.raises(UsageError, match=r"torn\.jsonl line 1 is not JSON"):
        measured(tmp_path / "torn.jsonl")
    with pytest.raises(UsageError, match="--reference is for a file of samples"):
        measured("nano", reference="answer")
