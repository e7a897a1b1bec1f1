"""``assay audit`` as a user types it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from assay import cli
from assay.records import audit as records

GOLD, SAID = "1111110000", "1111000000"
"""The worked example: six right answers of which two are missed, four wrong ones."""


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rows.jsonl"
    lines = [
        {"id": f"r{i}", "question": f"{i}?", "reference": "7", "response": "7" if s == "1" else "8", "label": g == "1"}
        for i, (g, s) in enumerate(zip(GOLD, SAID, strict=True))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def called(capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command writes to standard output, or to standard error where it is to fail."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["audit", *arguments])
    written = capfd.readouterr()
    assert (ended.value.code or 0) == code, written.err
    return written.err if code == 2 else written.out


def audited(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    return json.loads(called(capfd, *arguments, "--json"))  # type: ignore[no-any-return]


def test_the_worked_example_end_to_end(rows: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    said = called(capfd, "exact", str(rows), "numeric=false", "--out", str(out))
    assert "33.3%" in said and "2/6" in said and "kappa 0.615" in said and "r4" in said
    report = json.loads((out / "audit.json").read_text())
    clean = report["clean"]
    assert (clean["tp"], clean["fn"], clean["fp"], clean["tn"]) == (4, 2, 0, 4)
    assert clean["f1"] == pytest.approx(0.8) and report["verifier"]["options"] == {"numeric": False}
    assert [json.loads(line)["status"] for line in (out / "verdicts.jsonl").read_text().splitlines()] == [
        "accepted" if s == "1" else "rejected" for s in SAID
    ]
    assert (out / "audit.html").read_text().startswith("<!doctype html>")
    [record] = records.find("exact", out)
    assert record.false_negative_rate.value == pytest.approx(1 / 3) and record.false_positive_rate.value == 0
    assert record.data["hash"] == report["data"]["hash"] and record.options == {"numeric": False}


@pytest.mark.slow
def test_csv_parquet_and_mapped_fields_agree(rows: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = [json.loads(line) for line in rows.read_text().splitlines()]
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "question", "reference", "output", "label"])
        writer.writeheader()
        for row in found:
            writer.writerow({("output" if k == "response" else k): v for k, v in row.items()})
    pq.write_table(pa.Table.from_pylist(found), tmp_path / "rows.parquet")
    first = audited(capfd, "number", str(rows))
    for arguments in (("rows.parquet",), ("rows.csv", "--fields", "response=output")):
        other = audited(capfd, "number", *arguments)
        assert other["clean"] == first["clean"] and other["data"]["hash"] == first["data"]["hash"]


@pytest.mark.slow
def test_two_verifiers_a_function_and_a_program(rows: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text("def all_right(response, reference): return True\n")
    (tmp_path / "program.py").write_text(
        "import json, sys\nfor line in sys.stdin:\n    row = json.loads(line)\n"
        "    print(json.dumps(row['response'] == row['reference']), flush=True)\n"
    )
    report = audited(capfd, "mine.py:all_right", str(rows), "--against", "exact")
    assert report["clean"]["fp"] == 4 and report["clean"]["recall"]["value"] == 1
    assert report["against"]["table"] == {"both": 4, "first": 6, "second": 0, "neither": 0}
    assert report["against"]["tests"]["accepts"]["p"] == pytest.approx(2 / 2**6)
    program = f"{sys.executable} program.py"
    report = audited(capfd, str(rows), "--command", program, "--against", f"command: {program}")
    assert (report["clean"]["tp"], report["clean"]["fn"]) == (4, 2) and report["against"]["agree"]["value"] == 1


@pytest.mark.slow
def test_attacks_on_a_verifier_that_takes_anything(
    rows: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text("def credulous(response, reference): return 'olution' in response\n")
    report = audited(capfd, "mine.py:credulous", str(rows), "--attack", "--attack-tasks", "2")
    attack = report["attack"]
    assert attack["passes"] is False and attack["tasks"] == 2 and attack["of_tasks"] == 10
    keys = next(a for a in attack["attacks"] if a["attack"] == "master_keys")
    # Of the ten strings of S072 one holds the word.
    assert keys["rate"]["count"] / keys["rate"]["total"] == pytest.approx(0.1)
    assert len(attack["accepted"]) == attack["overall"]["count"] > 0
    assert all("olution" in e["response"] for e in attack["accepted"])


def test_generated_cases(rows: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = audited(capfd, "exact", "--generate", "40", "--families", "integers,fractions", "--seed", "3")
    assert set(first["categories"]) == {"integers", "fractions"} and first["clean"]["rows"] == 40
    again = audited(capfd, "exact", "--generate", "40", "--families", "integers,fractions", "--seed", "3")
    assert again["data"] == first["data"] and again["clean"] == first["clean"]
    other = audited(capfd, "exact", "--generate", "40", "--families", "integers,fractions", "--seed", "4")
    assert other["data"]["hash"] != first["data"]["hash"]


@pytest.mark.slow
def test_rows_that_count_in_no_rate_are_reported_on_their_own(rows: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = audited(capfd, "exact", "--generate", "40", "--families", "integers,disowned")
    assert set(found["categories"]) == {"integers"} and found["clean"]["rows"] == found["data"]["rows"] == 20
    assert found["aside"]["disowned"]["rows"] == 20 and found["aside"]["disowned"]["wrong"] == 10
    assert not {e["category"] for key in ("false_positives", "false_negatives") for e in found[key]} - {"integers"}
    said = called(capfd, "exact", "--generate", "40", "--families", "integers,disowned")
    assert "Robustness to disowned marks (in no rate above): " in said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("exac rows.jsonl", "did you mean 'exact'"),
        ("exact none.jsonl", "no file none.jsonl"),
        ("exact", "labelled file or --generate"),
        ("", "name a verifier"),
        ("exact rows.jsonl numerik=true", "did you mean 'numeric'"),
        ("exact rows.jsonl --fields label=correct", "line 1 has no field 'correct' for the label"),
        ("exact rows.jsonl --generate 4", "not both"),
        ("exact rows.jsonl --families integers", "a file is judged as a whole"),
        ("exact --generate 0", "at least one case"),
        ("exact rows.jsonl more", "too many words: more"),
        ("exact rows.jsonl --against exac", "did you mean 'exact'"),
        ("rows.jsonl --command no-such-program-here", "no program"),
        ("exact rows.jsonl --tau 2", "--tau must be in"),
        ("exact rows.jsonl --out rows.jsonl", "is a file; give a folder"),
        ("none.py:judge rows.jsonl", "no file 'none.py'"),
    ],
)
def test_mistakes_end_in_one_line(
    rows: Path, capfd: pytest.CaptureFixture[str], arguments: str, complaint: str
) -> None:
    said = called(capfd, *arguments.split(), code=2)
    assert complaint in said and said.startswith("assay: ") and said.count("\n") == 1


def test_an_interrupt_leaves_a_partial_report(rows: Path, tmp_path: Path) -> None:
    # The function itself says when it has judged some rows, and then waits, so that no clock is involved.
    (tmp_path / "mine.py").write_text(
        "import pathlib, time\n"
        "def judge(response, question):\n"
        "    if question.startswith('5'):\n"
        "        pathlib.Path('reached').write_text('')\n"
        "        time.sleep(600)\n"
        "    return True\n"
    )
    # A process started in the background of a shell ignores Ctrl-C.
    main = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from assay.cli import main; main()"
    words = ["audit", "mine.py:judge", "rows.jsonl", "--out", "out", "--workers", "1", "--seconds", "300"]
    process = subprocess.Popen(
        [sys.executable, "-c", main, *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])},
    )
    give_up = time.monotonic() + 120
    while not (tmp_path / "reached").exists() and process.poll() is None and time.monotonic() < give_up:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "PARTIAL" in said
    report = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert report["partial"] and report["judged"] < 10 and report["data"]["rows"] == 10
    [record] = records.find("mine.py:judge", tmp_path / "out")
    assert record.partial


def test_a_broken_second_verifier_does_not_cost_the_first(
    rows: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = "command: " + sys.executable + " -c 'raise SystemExit(7)'"
    with pytest.raises(SystemExit) as ended:
        cli.main(["audit", "exact", str(rows), "--against", broken, "--out", "out", "--workers", "1"])
    assert ended.value.code == 1 and "gave no verdict in 3 rows" in capfd.readouterr().err
    report = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert report["partial"] and report["clean"]["tp"] == 4 and report["clean"]["fn"] == 2
