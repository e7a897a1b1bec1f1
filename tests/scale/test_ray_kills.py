"""A run whose engine, verifier and trainer are killed ends as one that nobody disturbed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarked import benchmark

pytest.importorskip("ray", reason="the extra ray is not installed")
pytest.importorskip("psutil", reason="psutil is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["/raylet/raylet ", "/gcs_server "], ids=["raylet", "head"])
def test_trainers_of_one_machine_stop_in_a_line_without_ray_and_go_on(victim: str, tmp_path: Path) -> None:
    """Two trainers whose engine is on Ray; a part of the local cluster is struck by SIGKILL."""
    import psutil
    import tomli_w

    import assay
    from assay.records.checkpoints import checkpoints

    module, folder, steps = benchmark("kills"), tmp_path / "run", 400
    recipe = module.recipe(folder, steps, every=1, actors=1)
    recipe["scale"] = {"trainers": 2, "engines": 1}
    file, log = tmp_path / "run.toml", tmp_path / "log"
    file.write_text(tomli_w.dumps(recipe))
    with log.open("wb") as out:
        run = subprocess.Popen([sys.executable, "-m", "assay", "train", str(file)], stdout=out, stderr=out)
    try:
        end = time.monotonic() + 240
        while len(module.steps_done(folder)) < 3 and run.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        below = psutil.Process(run.pid).children(recursive=True)
        [struck] = [p for p in below if victim in " ".join(p.cmdline())]
        struck.kill()
        assert run.wait(90) == 75
    finally:
        run.kill()
        run.wait()
    said = [line for line in log.read_text().splitlines() if line.startswith("assay: ")]
    assert len(said) == 1, log.read_text()
    assert f"assay train --resume {folder}" in said[0]
    assert "Traceback" not in log.read_text()
    # Ray may have been quicker than the watch, and ended the trainer that asked it.
    part = "the head of the Ray cluster" if "gcs" in victim else "this machine's part of "
    assert part in said[0]
    done = int(checkpoints(folder)[-1].name[-6:])
    assert 3 <= done < steps
    alone = [f"train.steps={done + 2}", "scale.trainers=1", "scale.engines=0"]
    assay.train(resume=folder, overrides=alone, quiet=True)
    assert module.steps_done(folder) == list(range(1, done + 3))


@pytest.mark.slow
def test_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """Eight steps, an engine, a verifier and the trainer struck by SIGKILL: every step once, the same prompts in order.

    The undisturbed run is one process without Ray, so the weights agree as far as two ways to batch do.
    """
    kinds = ("engine", "verifier", "trainer")
    found = benchmark("kills").compare(tmp_path, steps=8, kills=3, kinds=kinds, seed=1, every=2, actors=0)
    log = (tmp_path / "struck.log").read_text()
    assert found["exit code"] == 0, log
    assert found["kills"] == dict.fromkeys(kinds, 1), log
    assert found["steps, struck"] == found["steps, undisturbed"] == 8
    assert found["steps doubled"] == found["steps missing"] == 0
    assert found["prompts, struck"] == found["prompts, undisturbed"] == 16
    assert found["same prompts in the same order"]
    assert found["largest difference of a weight"] < 1e-4
    assert "the trainer died (killed by SIGKILL); resuming after rl step" in log
