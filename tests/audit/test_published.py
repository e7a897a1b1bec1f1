"""Published sets of judged responses: rows as they are on the hub or in a file, labels, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.audit.labelled import read_labelled
from assay.audit.published import published, published_rows, raw_rows
from assay.cli import main
from assay.errors import UsageError


def jsonl(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


ZJU = {"question": "2+2?", "answer": "4", "completion": "It is 5.", "answer_type": "numeric", "gold_correct": False}
SCIENCE = {
    "uid": 7,
    "question": "F?",
    "gold_answer": "ma",
    "raw_llm_response": "So F is ma.",
    "llm_response": "ma",
    "answer_type": "Expression",
    "domain": "physics",
    "gold_judgment": "Correct",
}
LETTERED = {"question": "q", "gold_answer": "3", "llm_response": "x", "domain": "Math", "answer_type": "Numerical"}


def test_sets_are_read(tmp_path: Path) -> None:
    """Fields and labels of each set as its page has them."""
    [row] = published_rows("verifybench", str(jsonl(tmp_path / "a.jsonl", ZJU)), "number")
    assert (row.task.question, row.task.reference, row.task.kind) == ("2+2?", "4", "number")
    assert (row.response, row.label, row.category) == ("It is 5.", False, "numeric")
    [hard] = published_rows("verifybench-hard", str(jsonl(tmp_path / "b.jsonl", {**ZJU, "gold_correct": True})))
    assert hard.label and hard.task.kind == "exact"
    [row] = published_rows("sci-verifybench", str(jsonl(tmp_path / "c.jsonl", SCIENCE)))
    assert (row.task.reference, row.response, row.label, row.category) == ("ma", "ma", True, "physics")
    lettered = jsonl(tmp_path / "d.jsonl", *({**LETTERED, "gold_judgment": letter} for letter in "ABC"))
    assert [row.label for row in published_rows("verifierbench", str(lettered))] == [True, False, False]
    with pytest.raises(UsageError, match='the label is "D", neither'):
        published_rows("verifierbench", str(jsonl(tmp_path / "e.jsonl", {**LETTERED, "gold_judgment": "D"})))
    with pytest.raises(UsageError, match=r'the label is \["A"\], neither'):
        published_rows("verifierbench", str(jsonl(tmp_path / "f.jsonl", {**LETTERED, "gold_judgment": ["A"]})))
    with pytest.raises(UsageError, match="no field 'answer' for the reference"):
        published_rows("verifybench", str(lettered))
    with pytest.raises(UsageError, match="no set of judged responses is called 'verifybenchs'"):
        published_rows("verifybenchs")
    assert {name: entry["items"] for name, entry in published().items()} == {
        "verifybench": 2000,
        "verifybench-hard": 1000,
        "sci-verifybench": 2500,
        "verifierbench": 2817,
    }


def test_their_authors_own_files(tmp_path: Path) -> None:
    """CoSineVerifier's repository has its benchmarks with labels in brackets."""
    rows = [
        {"question": "q", "answer": "4", "model_ans": text, "question_type": "short", "gold_ans": f"[{label}]"}
        for text, label in (("4", "Correct"), ("5", "Incorrect"))
    ]
    fields = {"reference": "answer", "response": "model_ans", "label": "gold_ans", "category": "question_type"}
    found = read_labelled(jsonl(tmp_path / "rows.jsonl", *rows), fields=fields)
    assert [(row.response, row.label, row.category) for row in found] == [("4", True, "short"), ("5", False, "short")]


def test_sets_come_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load(*place: Any) -> list[dict[str, Any]]:
        asked.append(place)
        return [ZJU]

    monkeypatch.setattr("assay.tasks.files.huggingface.load", load)
    assert list(raw_rows("verifybench-hard")) == [("ZJU-REAL/VerifyBench row 1", ZJU)]
    assert list(raw_rows("verifierbench", "mine/copy")) == [("mine/copy row 1", ZJU)]
    assert asked == [
        ("ZJU-REAL/VerifyBench", None, "train", "verify_bench_hard.jsonl"),
        ("mine/copy", None, "test", None),
    ]


def test_one_file_of_a_data_set(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    jsonl(tmp_path / "verify_bench.jsonl", ZJU)
    jsonl(tmp_path / "verify_bench_hard.jsonl", {**ZJU, "answer": "5"})
    [row] = published_rows("verifybench-hard", str(tmp_path))
    assert row.task.reference == "5"


def test_in_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = jsonl(tmp_path / "rows.jsonl", ZJU, {**ZJU, "completion": "4", "gold_correct": True})
    asked = ["audit", "number", f"verifybench={path}"]
    with pytest.raises(SystemExit) as ended:
        main([*asked, "--json"])
    report = json.loads(capfd.readouterr().out)
    assert not ended.value.code and (report["clean"]["tp"], report["clean"]["tn"]) == (1, 1)
    assert f"verifybench={path}" in report["data"].values()
    with pytest.raises(SystemExit) as ended:
        main([*asked, "--fields", "label=x"])
    assert ended.value.code == 2 and "--fields are those of a file" in capfd.readouterr().err
