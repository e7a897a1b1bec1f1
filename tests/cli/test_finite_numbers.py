"""Numbers that are none, and bytes that are no text, are refused in one line that says where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.cli import main
from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.verify.isolate.pool import VerifierPool


def refused(capfd: Any, *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    error: str = capfd.readouterr().err
    assert ended.value.code == 2 and len(error.splitlines()) == 1, error
    return error


@pytest.mark.parametrize("limit", ["nan", "inf", "-1"])
def test_seconds(capfd: Any, tmp_path: Path, limit: str) -> None:
    one = ["--reference", "1", "--response", "1"]
    assert "must be finite and above 0" in refused(capfd, "verify", "exact", *one, "--seconds", limit)
    assert "must be finite and above 0" in refused(capfd, "verify", "exact", *one, "--wall", limit)
    assert "--seconds (a finite" in refused(capfd, "audit", "exact", "--generate", "1", "--seconds", limit)
    assert "--seconds (a finite" in refused(capfd, "audit", "exact", "--generate", "1", "--startup", limit)
    with pytest.raises(UsageError, match="finite and above 0"):
        VerifierPool(None, 1, wall=0)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("difference", "-1"),
        ("difference", "nan"),
        ("seed-deviation", "nan"),
        ("task-deviation", "inf"),
        ("level", "nan"),
    ],
)
def test_power(capfd: Any, option: str, value: str) -> None:
    assert f"--{option}" in refused(capfd, "power", f"--{option}", value)


@pytest.mark.parametrize("value", ["NaN", "Infinity", '"nan"'])
def test_confidences_and_scores(capfd: Any, tmp_path: Path, value: str) -> None:
    file = tmp_path / "rows.jsonl"
    for role in ("confidence", "score"):
        file.write_text(f'{{"prompt": "a", "response": "x", "score": 1, "{role}": {value}}}\n')
        assert f"line 1: its {role}" in refused(capfd, "eval", str(file))


def test_thresholds(capfd: Any, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"prompt": "a", "response": "x", "score": 1}\n')
    assert "--threshold nan" in refused(capfd, "eval", str(file), "--threshold", "nan")


def test_references(capfd: Any, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"prompt": "a", "answer": 1}\n{"prompt": "b", "answer": NaN, "response": "1"}\n')
    train = ["train", f"tasks.source={{name='file', path='{file}'}}", f"run.dir={tmp_path}/run"]
    assert "line 2: field 'answer' for the reference is empty" in refused(capfd, *train)
    file.write_text('{"reference": NaN, "response": "1"}\n')
    said = refused(capfd, "verify", "exact", str(file), "--out", f"{file}.out")
    assert "line 1: field 'reference' is nan" in said


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_bytes_that_are_no_text_are_named_by_line(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"rows{suffix}"
    file.write_bytes(b'{"a": 1}\n' * 3000 + b'{"a": "\xff"}\n')
    with pytest.raises(UsageError, match=r"line 3001, byte 8 \(0xff\), is not UTF-8 text: invalid start byte"):
        list(read_rows(file))
