"""Rows of files as people have them: compressed, in several parts, written by Windows, damaged."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assay.config import load_config
from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.tasks.files.file import File

ROWS = [{"prompt": "2+2=", "answer": "4"}, {"prompt": "Größe?", "answer": "3\u2028m"}]
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)


def read(path: Path) -> list[object]:
    return [row for _, row in read_rows(path)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("compressed", [False, True])
def test_text_in_every_encoding_that_says_what_it_is(tmp_path: Path, encoding: str, compressed: bool) -> None:
    """``python questions.py > my.jsonl`` writes UTF-16 in a shell of Windows."""
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    path = tmp_path / f"my.jsonl{'.gz' * compressed}"
    data = (mark + LINES.replace("\n", "\r\n")).encode(encoding)
    path.write_bytes(gzip.compress(data) if compressed else data)
    assert read(path) == ROWS
    assert [task.reference for task in File(path).tasks] == ["4", "3\u2028m"]
    whole = tmp_path / f"my.json{'.gz' * compressed}"
    data = (mark + json.dumps(ROWS, ensure_ascii=False)).encode(encoding)
    whole.write_bytes(gzip.compress(data) if compressed else data)
    assert read(whole) == ROWS


def test_a_folder_of_parts_is_read_in_their_order(tmp_path: Path) -> None:
    for number, row in ((1, ROWS[1]), (0, ROWS[0])):
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / f"train-0000{number}-of-00002.parquet")
    (tmp_path / "README.md").write_text("of a data set")
    assert read(tmp_path) == ROWS
    assert [task.prompt for task in File(tmp_path).tasks] == ["2+2=", "Größe?"]
    assert len({task.id for task in File(tmp_path).tasks}) == 2
    (tmp_path / "more.jsonl.gz").write_bytes(gzip.compress(LINES.encode()))
    with pytest.raises(UsageError, match=r"is a folder with files of several formats, \.jsonl, \.parquet; name a file"):
        read(tmp_path)


def test_a_folder_that_is_none_of_rows_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is a folder with no \.jsonl, .*; name a file in it"):
        read(tmp_path)
    (tmp_path / "data-00000-of-00001.arrow").write_bytes(b"")
    (tmp_path / "dataset_info.json").write_text("{}")
    with pytest.raises(UsageError, match="the library datasets saved; use tasks 'huggingface'"):
        read(tmp_path)


def test_names_of_columns_may_have_spaces_around_them_and_values_keep_theirs(tmp_path: Path) -> None:
    path = tmp_path / "my.csv"
    path.write_text('question, answer\n"Why, oh why?",  because\n')
    assert read(path) == [{"question": "Why, oh why?", "answer": "  because"}]
    path.write_text("")
    assert read(path) == []


@pytest.mark.parametrize("cut", [0.5, 0.9])
def test_a_compressed_file_that_is_damaged_is_told_of(tmp_path: Path, cut: float) -> None:
    path, data = tmp_path / "my.jsonl.gz", gzip.compress(LINES.encode() * 50)
    path.write_bytes(data[: int(len(data) * cut)])
    with pytest.raises(UsageError, match=r"my\.jsonl\.gz.* cannot be read"):
        read(path)
    path.write_bytes(b"not compressed")
    with pytest.raises(UsageError, match="cannot be read: Not a gzipped file"):
        read(path)


def test_a_compressed_file_is_a_file_of_tasks_where_a_recipe_may_stand(tmp_path: Path) -> None:
    path = tmp_path / "my.jsonl.gz"
    path.write_bytes(gzip.compress(LINES.encode()))
    config = load_config(path)
    assert config.tasks.source["path"] == str(path) and config.run.dir == "runs/my"  # type: ignore[index]
