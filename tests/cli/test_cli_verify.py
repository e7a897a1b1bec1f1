"""``assay verify``: one response, files of them, what it says and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from assay import cli
from assay.types import Task
from assay.verify.batch_file import BatchFile
from assay.verify.isolate.pool import VerifierPool
from assay.verify.text.exact import Exact


def called(capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command writes to standard output, or to standard error if it fails."""
    with pytest.raises(SystemExit) as ended:
        sys.exit(cli.main(["verify", *arguments]))
    written = capfd.readouterr()
    assert (ended.value.code or 0) == code, written.err
    return written.err if code == 2 else written.out


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


ROWS = [
    {"id": "a", "prompt": "1+1?", "reference": "2", "response": "The answer is 2.", "extra": {"x": [1.50, "\u2028é"]}},
    {"reference": "1/2", "response": "\\boxed{0.5}"},
    {"reference": None, "response": "\ud800"},
    {"reference": ["yes", "no"], "response": "maybe"},
]


def test_one_response(capfd: pytest.CaptureFixture[str]) -> None:
    assert called(capfd, "exact", "--reference", "1/2", "--response", "It is\nthe answer: 0.5") == "right\n"
    assert called(capfd, "exact", "numeric=false", "--reference", "1/2", "--response", "0.5").startswith(
        "wrong: answer"
    )
    said = called(capfd, "countdown", "--reference", '{"numbers": [1, 2], "target": 3}', "--response", "1+1")
    assert said.startswith("wrong [format 1, numbers 0, value 0]: uses 1 2 times")
    assert called(capfd, "exact", "--response", "5", code=3).startswith("abstains: ")
    said = called(capfd, "number", "--reference", "5", "--response", "4", "--json")
    assert json.loads(said) == {"score": 0.0, "passed": False, "feedback": "answered 4, expected 5", "parts": {}}


def test_exit_codes_of_strict(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for reference, code in (("5", 0), ("4", 1), ("", 3)):
        called(capfd, "exact", "--reference", reference, "--response", "5", "--strict", code=code)
    for reference, code in (("4", 0), ("", 3)):  # nothing at all could be told
        called(capfd, "exact", "--reference", reference, "--response", "5", code=code)
    file = write(tmp_path / "rows.jsonl", [{"reference": r, "response": "5"} for r in ("5", "")])
    called(capfd, "exact", str(file), "--out", str(tmp_path / "out"), "--strict", code=3)


def test_a_file(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, out = write(tmp_path / "rows.jsonl", ROWS), tmp_path / "out.jsonl"
    said = called(capfd, "exact", str(file), "--out", str(out), "--workers", "2")
    assert said.startswith("4 rows: 2 right, 1 wrong, 1 abstained; 4 in ")
    assert "line 3: task rows.jsonl:3 has no reference" in said
    judged = read(out)
    added = {"score", "passed", "feedback", "parts"}
    assert [{k: v for k, v in row.items() if k not in added} for row in judged] == ROWS
    assert [row["passed"] for row in judged] == [True, True, None, False]
    assert [row["score"] for row in judged] == [1.0, 1.0, None, 0.0]
    # The bytes of a row are copied.
    for line, row in zip(out.read_bytes().splitlines(), file.read_bytes().splitlines(), strict=True):
        assert line.startswith(row[:-1])


def test_options_fields_prefix_and_json(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [{"gold": "1/2", "out": {"text": "0.5"}, "passed": "kept"}, {"gold": "1/2", "out": {"text": "1/2"}}]
    file, out = write(tmp_path / "a=b.jsonl", rows), tmp_path / "out.jsonl"
    said = called(
        *(capfd, "exact", str(file), "numeric=false", "--out", str(out), "--prefix", "v_", "--json"),
        *("--fields", "reference=gold", "response=out.text"),
    )
    counts = json.loads(said)
    assert (counts["rows"], counts["right"], counts["wrong"], counts["abstained"]) == (2, 1, 1, 0)
    assert [row["v_passed"] for row in read(out)] == [False, True]
    assert read(out)[0]["passed"] == "kept"


def test_kinds_of_rows_and_no_reference(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [{"kind": k, "reference": "5", "response": "is 5 it"} for k in ("number", "exact")]
    file, out = write(tmp_path / "rows.jsonl", rows), tmp_path / "out.jsonl"
    called(capfd, "by_kind", str(file), "--out", str(out))
    assert [row["passed"] for row in read(out)] == [True, False]
    write(file, [{"kind": "nunber", "reference": "5", "response": "5"}])
    said = called(capfd, "by_kind", str(file), "--out", str(out), "--overwrite", code=2)
    assert "did you mean 'number'" in said
    assert len(read(out)) == 2, "nothing is overwritten before the file was looked at"
    write(file, [{"response": "5"}])
    called(capfd, "none", str(file), "--out", str(out), "--overwrite", "--fields", "reference=", code=3)
    assert read(out)[0]["passed"] is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"reference": 1', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("\udcff".encode("utf-8", "surrogateescape").decode("latin1"), "is not JSON"),
        ("[1]", "is a list, not an object"),
        ('{"reference": 1}', "field 'response' is missing"),
        ('{"reference": 1, "respons": ""}', "did you mean 'respons'"),
        ('{"response": "1"}', "field 'reference' is missing"),
        ('{"reference": 1, "response": 4}', "field 'response' is a int, not text"),
        ('{"reference": 1, "response": null}', "field 'response' is a NoneType, not text"),
        ('{"reference": 1, "response": "", "prompt": 5}', "field 'prompt' is neither"),
        ('{"reference": 1, "response": "", "kind": 5}', "field 'kind' is a int"),
        ('{"reference": 1, "response": "", "score": 5}', "already has a field 'score'"),
    ],
)
def test_a_bad_row_is_named_before_anything_is_written(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, line: str, words: str
) -> None:
    file = write(tmp_path / "rows.jsonl", ROWS[:2])
    with file.open("a") as rows:
        rows.write(f"\n{line}\n")
    said = called(capfd, "exact", str(file), "--out", str(tmp_path / "out.jsonl"), code=2)
    assert f"{file} line 4" in said
    assert words in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "out.jsonl").exists()


def test_mistakes(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, there = str(write(tmp_path / "rows.jsonl", ROWS)), str(write(tmp_path / "there.jsonl", []))
    one = ("--reference", "1", "--response", "1")
    for arguments, words in [
        ((), "assay verify --list"),
        (("exact",), "give either a FILE"),
        (("exact", file), "--out FILE"),
        (("exact", file, *one), "give either a FILE"),
        (("exact", file, there, "--out", "x"), "one file at a time"),
        (("exatc", *one), "did you mean 'exact'"),
        (("exact", "numerc=true", *one), "did you mean 'numeric'"),
        (("exact", "numeric=[1]", *one), "numeric"),
        (("exact", *one, "--out", "x"), "are for a FILE"),
        (("exact", f"{tmp_path}/none.jsonl", "--out", "x"), "no file"),
        (("exact", file, "--out", there), "--resume"),
        (("exact", file, "--out", there, "--resume", "--overwrite"), "one of them"),
        (("exact", file, "--out", f"{tmp_path}/no/out"), "no folder"),
        (("exact", file, "--out", str(tmp_path), "--overwrite"), "is a folder"),
        (("exact", file, "--out", file, "--overwrite"), "is the file to judge"),
        (("exact", there, "--out", f"{tmp_path}/new"), "has no rows"),
        (("exact", file, "--out", f"{tmp_path}/new", "--fields", "referense=x"), "did you mean 'reference'"),
        (("exact", file, "--out", f"{tmp_path}/new", "--fields", "x"), "not of the form"),
        (("exact", file, "--out", f"{tmp_path}/new", "--workers", "0"), "0 workers"),
        (("exact", file, "--out", f"{tmp_path}/new", "--reference", "1"), "rows of a FILE have their own"),
    ]:
        said = called(capfd, *arguments, code=2)
        assert words in said, (arguments, said)
        assert len(said.splitlines()) == 1


def test_the_list(capfd: pytest.CaptureFixture[str]) -> None:
    assert {"exact", "number", "all_of", "by_kind"} <= {
        row["name"] for row in json.loads(called(capfd, "--list", "--json"))
    }
    assert "verifier" in called(capfd, "--list")
    shown = called(capfd, "weighted", "--list")
    assert "on_abstain" in shown and "Mapping[str, float]" in shown
    options = json.loads(called(capfd, "gated", "--list", "--json"))["options"]
    assert [(o["name"], o["required"]) for o in options] == [("gate", True), ("then", True)]


MINE = """
    import os, time
    from assay.types import Verdict
    def check(task, response, *, nap=0.0):
        if response == "spin":
            while True: pass
        if response == "grow": bytearray(1 << 40)
        if response == "die": os.abort()
        time.sleep(nap)
        return Verdict.right() if response == task.reference else Verdict.wrong("no")
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine_for_cli.py").write_text(textwrap.dedent(MINE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_a_verifier_of_ones_own(capfd: pytest.CaptureFixture[str], mine: Path) -> None:
    rows = [{"reference": "1", "response": r} for r in ("1", "spin", "2", "grow", "1", "die", "1")]
    file, out = write(mine / "rows.jsonl", rows), mine / "out.jsonl"
    said = called(capfd, "mine_for_cli:check", "rows.jsonl", "--out", "out.jsonl", "--seconds", "0.5")
    assert said.startswith("7 rows: 3 right, 1 wrong, 3 abstained")
    assert [row["passed"] for row in read(out)] == [True, None, False, None, True, None, True]
    reasons = [row["feedback"] for row in read(out) if row["passed"] is None]
    for reason, words in zip(reasons, ("longer than 0.5 s", "ran out of memory", "SIGABRT"), strict=True):
        assert words in reason
    assert (
        called(capfd, "--verifier", f"{mine}/mine_for_cli.py:check", "--reference", "1", "--response", "1") == "right\n"
    )
    assert "did you mean 'check'" in called(capfd, "mine_for_cli:chek", str(file), "--out", "x", code=2)


def many(path: Path, n: int) -> Path:
    return write(path, [{"reference": str(i), "response": str(i - i % 2)} for i in range(n)])


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_stopped_and_continued(capfd: pytest.CaptureFixture[str], mine: Path, number: signal.Signals) -> None:
    file, out = many(mine / "rows.jsonl", 2000), mine / "out.jsonl"
    arguments = ["mine_for_cli:check", "nap=0.003", str(file), "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen(
        [sys.executable, "-m", "assay", "verify", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as command:
        until = time.monotonic() + 60
        while not (out.exists() and out.stat().st_size) and time.monotonic() < until:
            time.sleep(0.01)
        command.send_signal(number)
        said, error = command.communicate(timeout=60)
    assert command.returncode == 128 + number
    left = out.read_bytes()
    finished = left.count(b"\n")
    assert 0 < finished < 2000
    assert left.endswith(b"\n")
    assert f"stopped by {number.name} with {finished} of 2000 rows" in error
    assert "--resume" in error
    assert said.startswith(f"{finished} rows: ")
    # A line torn by a crash is repaired.
    out.write_bytes(left + b'{"reference": "')
    said = called(capfd, *arguments, "--resume")
    assert said.startswith(f"2000 rows: 1000 right, 1000 wrong, 0 abstained; {2000 - finished} in ")
    assert [row["passed"] for row in read(out)] == [i % 2 == 0 for i in range(2000)]
    # Nothing is left to do, and nothing changes.
    before = out.read_bytes()
    assert "; 0 in " in called(capfd, *arguments, "--resume")
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("number",), 'another verifier ({"name": "exact"}, now {"name": "number"})'),
        pytest.param(("exact", "numeric=false"), "another verifier", marks=pytest.mark.slow),
        pytest.param(("exact", "--fields", "reference=response"), "another fields", marks=pytest.mark.slow),
        pytest.param(("{own}:judge",), "another verifier", marks=pytest.mark.slow),
        pytest.param(
            ("exact", "--seconds", "5"),
            'another limits ({"seconds": 30.0, "wall": null}, now {"seconds": 5.0',
            marks=pytest.mark.slow,
        ),
    ],
)
def test_verdicts_of_two_verifiers_are_not_mixed(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, changed: tuple[str, ...], words: str
) -> None:
    file, out, own = many(tmp_path / "rows.jsonl", 4), tmp_path / "out.jsonl", tmp_path / "own.py"
    own.write_text("def judge(task, response):\n    return True\n")
    called(capfd, "exact", str(file), "--out", str(out))
    begun = b"".join(out.read_bytes().splitlines(keepends=True)[:2])
    out.write_bytes(begun)
    kind, *more = (word.format(own=own) for word in changed)
    said = called(capfd, kind, str(file), *more, "--out", str(out), "--resume", code=2)
    assert words in said and "--overwrite" in said and len(said.splitlines()) == 1
    assert out.read_bytes() == begun
    assert "; 2 in " in called(capfd, "exact", str(file), "--out", str(out), "--resume")


def test_an_own_verifier_that_was_changed_is_another(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, out, own = many(tmp_path / "rows.jsonl", 2), tmp_path / "out.jsonl", tmp_path / "own.py"
    own.write_text("def judge(task, response):\n    return True\n")
    called(capfd, f"{own}:judge", str(file), "--out", str(out))
    own.write_text("def judge(task, response):\n    return False\n")
    assert "another files" in called(capfd, f"{own}:judge", str(file), "--out", str(out), "--resume", code=2)
    assert "2 wrong" in called(capfd, f"{own}:judge", str(file), "--out", str(out), "--overwrite")


def test_verdicts_of_nobody_knows_whom_are_not_continued(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, out = many(tmp_path / "rows.jsonl", 2), tmp_path / "out.jsonl"
    called(capfd, "exact", str(file), "--out", str(out))
    (tmp_path / "out.jsonl.verifier.json").unlink()
    said = called(capfd, "exact", str(file), "--out", str(out), "--resume", code=2)
    assert "which says how" in said and len(said.splitlines()) == 1


@pytest.mark.slow
def test_resuming_what_does_not_fit(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, out = many(tmp_path / "rows.jsonl", 4), tmp_path / "out.jsonl"
    called(capfd, "exact", str(file), "--out", str(out))
    whole = out.read_bytes()
    lines = whole.splitlines(keepends=True)
    for broken in (
        lines[0] + lines[2],
        lines[0] + lines[1].replace(b'"1"', b'"7"'),
        lines[0] + lines[1][:-3] + b"\n",
        lines[0] + file.read_bytes().splitlines(keepends=True)[1],
    ):
        out.write_bytes(broken)
        said = called(capfd, "exact", str(file), "--out", str(out), "--resume", code=2)
        assert f"{out} line 2 is no verdict on line 2 of {file}" in said
        assert out.read_bytes() == broken
    out.write_bytes(whole + lines[3])
    assert "line 5 is no verdict on a row" in called(capfd, "exact", str(file), "--out", str(out), "--resume", code=2)
    # Any whole number of lines can be continued, and gives the same file.
    for n in (0, 2, 4):
        out.write_bytes(b"".join(lines[:n]) + b"{torn")
        called(capfd, "exact", str(file), "--out", str(out), "--resume")
        assert out.read_bytes() == whole
    called(capfd, "exact", str(file), "--out", str(out), "--overwrite")
    assert out.read_bytes() == whole


def test_blank_lines_carriage_returns_and_a_byte_order_mark(tmp_path: Path) -> None:
    file, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    row = b'{"reference": "1", "response": "1" }'
    file.write_bytes(b"\xef\xbb\xbf" + row + b"\r\n\r\n   \n  " + row + b"\t\n" + row)
    rows = BatchFile(file, out)
    assert rows.scan() == {"exact": 3}
    with VerifierPool("exact", 1) as pool:
        assert rows.run(pool).right == 3
    assert out.read_bytes().count(b"\n") == 3
    assert all(json.loads(line)["passed"] for line in out.read_bytes().splitlines())
    assert BatchFile(file, out).finished()[0].right == 3


def test_a_file_gets_the_verdicts_that_the_verifier_gives(tmp_path: Path) -> None:
    rows = [{"id": i, "reference": str(i % 7), "response": f"so {i % 5}\nanswer: {i % 6}"} for i in range(3000)]
    file, out = write(tmp_path / "rows.jsonl", rows), tmp_path / "out.jsonl"
    ticks: list[int] = []
    with VerifierPool("exact", 2) as pool:
        tally = BatchFile(file, out).run(pool, tick=ticks.append)
    expected = [Exact()(Task(str(r["id"]), "", r["reference"]), str(r["response"])) for r in rows]
    assert [(r["passed"], r["feedback"]) for r in read(out)] == [(v.passed, v.feedback) for v in expected]
    assert tally.right == sum(v.passed is True for v in expected)
    assert ticks == list(range(1, 3001))


def test_a_disk_that_is_full_is_said(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    file = many(tmp_path / "rows.jsonl", 4)
    with pytest.raises(SystemExit) as ended:
        cli.main(["verify", "exact", str(file), "--out", "/dev/full", "--overwrite"])
    assert ended.value.code == 1
    assert "could not write /dev/full: No space left on device" in capfd.readouterr().err


@pytest.mark.parametrize("workers", ["0", "-3", "1000000"])
def test_absurd_numbers_of_processes_are_refused(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, workers: str
) -> None:
    file = many(tmp_path / "rows.jsonl", 2)
    said = called(capfd, "exact", str(file), "--out", str(tmp_path / "out.jsonl"), "--workers", workers, code=2)
    assert f"{workers} workers" in said and "1 to 4096" in said and len(said.splitlines()) == 1
