"""What docs/python.md shows runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_page_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], one_thread: None
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert len(blocks) == 5 and names["result"].after.metrics()["tasks"] == 8
    assert names["result"].best is not None and len(names["episodes"]) == 2
    assert names["logprobs"].shape[0] == 2 and bool((names["logprobs"] * names["batch"].mask).sum(-1).lt(0).all())
    assert list(names["metrics"][names["metrics"].stage == "rl"].step) == [1, 2, 3, 4]
    assert "pass_rate" in capfd.readouterr().out
