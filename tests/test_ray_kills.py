"""A run whose engine, verifier and trainer are killed ends as one that nobody disturbed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("ray", reason="the extra ray is not installed")
pytest.importorskip("psutil", reason="psutil is not installed")


def kills() -> ModuleType:
    """The benchmark of which this is the short version."""
    file = Path(__file__).parents[1] / "benchmarks" / "kills.py"
    spec = importlib.util.spec_from_file_location("kills", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """Eight steps, an engine, a verifier and the trainer struck by SIGKILL: every step once, the same prompts in order.

    The undisturbed run is one process without Ray, so the weights agree as far as two ways to batch do.
    """
    kinds = ("engine", "verifier", "trainer")
    found = kills().compare(tmp_path, steps=8, kills=3, kinds=kinds, seed=1, every=2, actors=0)
    log = (tmp_path / "struck.log").read_text()
    assert found["exit code"] == 0, log
    assert found["kills"] == dict.fromkeys(kinds, 1), log
    assert found["steps, struck"] == found["steps, undisturbed"] == 8
    assert found["steps doubled"] == found["steps missing"] == 0
    assert found["prompts, struck"] == found["prompts, undisturbed"] == 16
    assert found["same prompts in the same order"]
    assert found["largest difference of a weight"] < 1e-4
    assert "the trainer died (killed by SIGKILL); resuming after rl step" in log
