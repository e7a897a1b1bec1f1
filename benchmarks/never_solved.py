"""What a policy never solves by itself, and which methods teach it: the table of docs/guidance.md.

    python benchmarks/never_solved.py [--start runs/never-solved/quickstart] [--out runs/never-solved] [--seeds 2]

The model is the quickstart's, which adds three-digit numbers, with a context that has room for hints. The tasks are
sums of a number of three digits and one of two of which it solves none in 64 tries. Every method trains from the same
weights on three quarters of them, for as many steps, GRPO for three times as many. It is measured without hints, on the
tasks it trained on and on the others.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import assay
from assay.config import load_config
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.records.checkpoints import last_checkpoint
from assay.tasks.arithmetic import Arithmetic
from assay.tasks.configured import task_split
from assay.types import Task
from assay.verify.kind import KindVerifier

TRIES, SAMPLING = 64, Sampling(48)
QUICKSTART = {
    "model.nano.context": 128,
    "train.steps": 30,
    "tasks.eval_size": 100,
    "evaluate.every": 0,
    "run.report": False,
    "run.checkpoint_every": 30,
}
"""What differs from the recipe: a longer context, and RL ends when nine in ten are right."""
SHARES = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
METHODS: dict[str, dict[str, Any]] = {
    "GRPO": {"name": "grpo"},
    "S083 GHPO": {"name": "S083", "options": {"opens": True, "shares": SHARES}},
    "S087 SEELE": {"name": "S087", "options": {"start": 0.9}},
    "S027 Scaf-GRPO": {
        "name": "S027",
        "options": {"after": 0, "source": "solution", "shares": SHARES, "opens": True},
    },
    "S103 AMPO": {"name": "S103", "options": {"max_length": SAMPLING.max_tokens}},
}


def solved(policy: CausalLM, tasks: Sequence[Task], seed: int, tries: int = TRIES) -> np.ndarray:
    """Return how many of so many tries are right, for each task as it stands."""
    seeds = np.random.default_rng([seed, 64]).integers(2**62, size=len(tasks)).tolist()
    requests = [Request(t.prompt, tries, SAMPLING, s) for t, s in zip(tasks, seeds, strict=True)]
    engine, verify = HFEngine(policy, max_rows=1024), KindVerifier()
    return np.array(
        [
            sum(verify(task, e.text).passed is True for e in episodes)
            for task, episodes in zip(tasks, engine.generate(requests), strict=True)
        ]
    )


def load(run: Path) -> CausalLM:
    """Return the policy that a run ended with."""
    return CausalLM.load(ModelConfig(source=str(last_checkpoint(run)[2] / "policy")), 0)


def never_solved(policy: CausalLM, count: int) -> tuple[list[Task], int]:
    """Return so many of those sums of which the policy solves none in 64 tries, and how many were tried."""
    source, hard, looked, tried = Arithmetic(seed=11, digits=3, min_digits=2, scratchpad=1.0), list[Task](), 0, 0
    while len(hard) < count:
        drawn = [source[looked + k] for k in range(4 * count)]
        some = [task for task in drawn if sorted(map(len, task.question[:-1].split("+"))) == [2, 3]]
        right = solved(policy, some, 0).tolist()
        hard += [task for task, n in zip(some, right, strict=True) if n == 0]
        looked, tried = looked + 4 * count, tried + len(some)
    return hard[:count], tried


def train(start: Path, tasks: Path, method: dict[str, Any], out: Path, seed: int, args: argparse.Namespace) -> Path:
    """Train from the quickstart's weights; return the run's folder."""
    source = {"name": "file", "path": str(tasks), "solution": "solution", "meta": ["traces"]}
    if not (out / "done").is_file():
        assay.train(
            {
                "seed": seed,
                "model": {"source": str(last_checkpoint(start)[2] / "policy")},
                "tasks": {"source": source, "eval_share": 0.25},
                "method": method,
                "rollout": {"prompts": args.prompts, "group": args.group, "max_tokens": SAMPLING.max_tokens},
                "train": {"steps": args.steps * (3 if method["name"] == "grpo" else 1), "lr": args.lr, "ramp": 3},
                "evaluate": {"every": 0, "samples": 1},
                "run": {"dir": str(out), "report": False, "tensorboard": False, "checkpoint_every": 10**6},
            },
            quiet=True,
        )
        (out / "done").touch()
    return out


def measured(run: Path, start: Path, seed: int) -> list[str]:
    """Return the cells of a run's row."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = [row for row in rows if row["stage"] == "rl"]
    config = load_config(run / "config.toml")
    responses = len(steps) * config.rollout.prompts * config.rollout.group
    responses += int(sum(row.get("surgery/sampled", 0) for row in steps))
    stream, held = task_split(config)
    names = {task.id for task in held}
    trained = [task for task in (stream.source[k] for k in range(stream.source.size or 0)) if task.id not in names]
    policy, cells = load(run), []
    for tasks in (trained, held):
        right = solved(policy, tasks, seed + 1)
        cells += [f"{right.mean() / TRIES:.3f}", f"{(right > 0).mean():.2f}"]
    return [*cells, f"{responses:,}", str(len(steps))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/never-solved"))
    parser.add_argument("--start", type=Path, default=None)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=1)
    for name, value in (("tasks", 16), ("steps", 50), ("prompts", 8), ("group", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    start = args.start or args.out / "quickstart"
    if not (start / "checkpoints").is_dir():
        assay.train("quickstart", settings={**QUICKSTART, "run.dir": str(start)}, quiet=True)
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / "tasks.jsonl"
    tasks, looked = never_solved(load(start), args.tasks)
    print(f"{len(tasks)} tasks, the first of which none of {TRIES} tries is right; {looked} were looked at\n")
    rows = [{"prompt": t.prompt, "answer": t.reference, "solution": t.solution, "traces": [t.solution]} for t in tasks]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print("| method | seed | pass@1 | pass@64 | pass@1, others | pass@64, others | responses | steps | seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for seed, name in itertools.product(range(args.seeds), args.methods):
        begun = time.monotonic()
        run = train(start, file, METHODS[name], args.out / f"{name.replace(' ', '-')}-{seed}", seed, args)
        spent = time.monotonic() - begun
        print("| " + " | ".join([name, str(seed), *measured(run, start, seed), f"{spent:.0f}"]) + " |", flush=True)


if __name__ == "__main__":
    main()
