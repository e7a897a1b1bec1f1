"""What the disk does to a write, in words."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from assay.records.files import disk_failure, write_text


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the quota on the disk is used up"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EROFS, "Read-only file system"),
    ],
)
def test_a_failure_of_the_disk_is_said_and_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    file = tmp_path / "file.txt"
    write_text(file, "before")

    def failing(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        write_text(file, "after")
    said = disk_failure(caught.value)
    assert said is not None and words in said
    assert file.read_text() == "before" and os.listdir(tmp_path) == ["file.txt"]


def test_other_errors_are_none_of_the_disks() -> None:
    assert disk_failure(ValueError("no")) is None
    assert disk_failure(RuntimeError(f"write failed (os error {errno.EDQUOT})")) == "the quota on the disk is used up"
