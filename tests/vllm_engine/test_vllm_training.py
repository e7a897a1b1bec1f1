"""Training runs that generate with vLLM, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import running
import tomli_w


def train(folder: Path, **sections: object) -> tuple[str, list[dict[str, float]]]:
    """Run ``assay train``; return what it said, and the metrics of its RL steps."""
    recipe = {
        "model": {"source": "nano", "device": "cpu"},
        "tasks": {"source": {"name": "arithmetic", "digits": 1}, "eval_size": 4},
        "warmup": {"steps": 2, "batch": 8},
        # Differs between the responses of an untrained model, so that every step changes the weights.
        "method": {"reward": {"name": "function", "function": f"{running.__file__}:varied"}},
        "rollout": {"prompts": 4, "group": 4, "max_tokens": 8, "temperature": 0.9},
        "train": {"steps": 3, "lr": 1e-2},
        "evaluate": {"samples": 1},
        "engine": {"name": "vllm", "check_every": 1, "options": {"kv_cache_gib": 1.0}},
        "run": {"dir": str(folder / "run"), "report": False, "tensorboard": False, "checkpoint_every": 2},
    }
    file = folder / "recipe.toml"
    file.write_text(tomli_w.dumps({**recipe, **sections}))
    done = subprocess.run(
        [sys.executable, "-m", "assay", "train", str(file)], capture_output=True, text=True, timeout=900, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    rows = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    return said, [row for row in rows if row["stage"] == "rl"]


def test_the_engine_keeps_up_with_the_policy(tmp_path: Path) -> None:
    """At a learning rate that changes every response, the engine's log-probabilities stay the policy's."""
    said, rows = train(tmp_path)
    assert "engine vllm against the policy: KL" in said
    assert "engine.mismatch" not in said
    assert len(rows) == 3
    for row in rows:
        assert row["mismatch/kl"] < 1e-8
        assert row["mismatch/max"] < 1e-3
        assert row["mismatch/far"] == 0
        assert row["entropy"] > 0
        assert row["grad_norm"] > 0


def test_a_mismatch_is_corrected_for(tmp_path: Path) -> None:
    """In bfloat16 the two round differently; with no mismatch allowed, the correction is switched on at once."""
    said, rows = train(
        tmp_path,
        model={"source": "nano", "device": "cpu", "dtype": "bfloat16"},
        engine={"name": "vllm", "check_every": 2, "mismatch": 0.0, "options": {"kv_cache_gib": 1.0}},
    )
    assert "above engine.mismatch = 0; the objective corrects for it from here on" in said
    assert [0 < row["mismatch/kl"] < 0.05 for row in rows] == [True] * 3
    assert all("mismatch/weight" in row for row in rows)


@pytest.mark.parametrize("name", ["vllm", "vllm-server"])
def test_every_rank_of_a_sharded_run_has_an_engine(tmp_path: Path, name: str) -> None:
    """Sharding renames the class of the model, by which vLLM knows an architecture. What an engine says is compared on
    rows of all ranks, and agrees with the policy that is put together from them; so all were given the same weights."""
    engine = {"name": name, "check_every": 1, "options": {"kv_cache_gib": 0.5}}
    said, rows = train(tmp_path, scale={"trainers": 2}, engine=engine, train={"steps": 2, "lr": 1e-2})
    assert f"engine {name} against the policy: KL" in said
    assert "engine.mismatch" not in said
    assert [row["mismatch/kl"] < 1e-8 for row in rows] == [True] * 2
    assert all(row["grad_norm"] > 0 for row in rows)


def test_a_batch_of_older_weights_is_no_mismatch(tmp_path: Path) -> None:
    """Batches come a step late, at a learning rate that changes every response; still the engine agrees with the policy
    whose weights it was given, which is measured when it has just been given them."""
    said, rows = train(tmp_path, overlap={"staleness": 1})
    assert "engine vllm against the policy: KL" in said
    assert "engine.mismatch" not in said
    assert [row["staleness"] for row in rows] == [0, 1, 1]
    # Nothing is asked for in the last step, so nothing is compared.
    assert [row["mismatch/kl"] < 1e-8 for row in rows if "mismatch/kl" in row] == [True] * 2
