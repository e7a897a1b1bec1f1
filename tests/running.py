"""Very small runs for the tests, in this process and in children that are made to die, and their comparison."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

PRELOADED = [
    "assay.compare.preload",  # first, as it keeps what is imported from a GPU's driver
    "assay.api",
    "assay.report.html",
    "pandas",
    "peft",
    "pyarrow.parquet",
    "tensorboard.compat.proto.event_pb2",
    "transformers.convert_slow_tokenizer",
    "transformers.models.llama.modeling_llama",
]
"""What the server that children are forked from imports once; it computes nothing."""

TIMES = ("time", "tokens_per_second")

# On tensors this small, threads only wait for each other; children take it from the environment.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Whoever asks for a GPU without this cannot be forked from any more, if there is one.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")


def varied(task: Any, response: str) -> float:
    """A reward that differs between the responses of an untrained model, so that every step changes the weights."""
    return (sum(map(ord, response)) % 7) / 7


def recipe(folder: Path | str, **sections: dict[str, Any]) -> dict[str, Any]:
    """A run of three supervised steps and four of RL with two mini-batches each, over in about a second."""
    base: dict[str, dict[str, Any]] = {
        "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24}},
        "tasks": {"source": {"name": "arithmetic", "operation": "addition", "digits": 1}},
        "warmup": {"steps": 3, "batch": 4},
        "method": {"reward": {"name": "function", "function": f"{Path(__file__)}:varied"}},
        "rollout": {"prompts": 4, "group": 3, "max_tokens": 4, "max_rows": 8},
        "train": {"steps": 4, "lr": 1e-3, "mini_batches": 2, "epochs": 2},
        "evaluate": {"every": 2, "samples": 2},
        "run": {"dir": str(folder), "checkpoint_every": 2, "report": False, "tensorboard": False},
    }
    base["tasks"] |= {"eval_size": 6, "eval_share": 0.2}
    for name, section in sections.items():
        base[name] = {**base.get(name, {}), **section}
    return base


def run(folder: Path, **sections: dict[str, Any]) -> Path:
    """Run to the end in this process; return the folder."""
    import torch

    import assay

    torch.set_num_threads(1)
    assay.train(recipe(folder, **sections), quiet=True)
    return folder


def child(target: Callable[..., Any], *arguments: Any) -> int:
    """Call ``target(*arguments)`` in a process of its own; return its exit code, minus the signal that killed it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    process = context.Process(target=target, args=arguments)
    process.start()
    process.join(120)
    assert process.exitcode is not None, "the child did not end"
    return process.exitcode


def command(log: Path, *arguments: str) -> None:
    """In a child: what the ``assay`` command does, its output in ``log``."""
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    # What a shell starts in the background ignores interrupts, and so would its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from assay.cli import main

    main(list(arguments))


def weights(run: Path) -> dict[str, Any]:
    """Every tensor of the last checkpoint: of the policy, and of the optimiser's state."""
    import torch
    from safetensors.torch import load_file

    from assay.records.checkpoints import last_checkpoint

    folder = last_checkpoint(run)[2]
    tensors = {}
    for file in sorted((folder / "policy").glob("*.safetensors")):
        tensors |= load_file(file)
    state = torch.load(folder / "trainer.pt", weights_only=True, map_location="cpu")["optimizer"]["state"]
    return tensors | {f"optimizer/{i}/{k}": v for i, values in state.items() for k, v in values.items()}


def metrics(run: Path) -> list[dict[str, Any]]:
    """Rows of the metrics without what the clock says."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in TIMES and not k.startswith("time/")} for row in rows]


def tables(run: Path, folder: str) -> dict[str, list[dict[str, Any]]]:
    """Every row of every stored rollout or evaluation, by file."""
    import pyarrow.parquet as pq

    return {file.name: pq.ParquetFile(file).read().to_pylist() for file in sorted((run / folder).glob("*.parquet"))}


def assert_same(run: Path, other: Path) -> None:
    """Two runs left the same, bit for bit, and nothing half-written."""
    import torch

    a, b = weights(run), weights(other)
    assert a.keys() == b.keys()
    assert [k for k in a if not torch.equal(a[k], b[k])] == []
    assert metrics(run) == metrics(other)
    for folder in ("rollouts", "evals"):
        assert tables(run, folder) == tables(other, folder)
    names = [{p.name for p in (r / "checkpoints").iterdir()} for r in (run, other)]
    assert names[0] == names[1]
    assert leftovers(run) == []


def leftovers(run: Path) -> list[str]:
    """Temporary files and folders that nobody cleaned up."""
    return [str(p) for p in run.rglob(".*") if p.name != ".lock"]
