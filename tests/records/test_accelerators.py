"""What a run says of the GPUs it had, asked of a program in nvidia-smi's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.records.run_folder import accelerators


@pytest.mark.parametrize(
    ("script", "visible", "names"),
    [
        ("echo NVIDIA H100; echo ' NVIDIA H100'; echo", None, ["NVIDIA H100", "NVIDIA H100"]),
        ("echo NVIDIA H100", "", []),
        ("echo no driver; exit 9", None, []),
    ],
    ids=["two", "none visible", "no driver"],
)
def test_names_are_those_of_the_driver_s_program(
    script: str, visible: str | None, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert accelerators.__wrapped__() == names
