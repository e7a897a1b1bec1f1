"""Kill processes of a run at random and compare what is left with a run that nobody disturbed.

    python benchmarks/kills.py [--steps 200] [--kills 50] [--kinds engine verifier trainer head] [--seed 0]
        [--staleness 0] [--trainers 1] [--weights store]

Both runs have two engines and two verifiers on a Ray cluster of this machine. In the second one, SIGKILL strikes an
engine's actor, a verifier's actor, the trainer itself or the head (its server, or its part on this machine), as often
each, in random order, at random moments spread over the run; ``assay train --retries`` goes on from the last checkpoint
when the trainer dies or stops for want of its cluster. With ``--staleness`` batches are on their way while it strikes,
with ``--trainers`` one rank of several is struck too, and ``trainer`` is the process that started them. Printed are
steps done, prompts consumed in their order, whether any step is missing from the log or in it twice, and how far the
final weights are apart. Exit code 0 means that every strike hit, and that nothing was lost or doubled.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import tomli_w

KINDS = ("engine", "verifier", "trainer", "head", "rank")
"""What is struck; the last only where there are several trainers."""
PATIENCE = 300.0
"""Seconds without a step after which the run counts as hung."""


def recipe(
    folder: Path, steps: int, every: int, actors: int = 2, staleness: int = 0, trainers: int = 1, weights: str = "store"
) -> dict[str, Any]:
    """A run whose steps cost next to nothing: 2 prompts with 2 responses of 4 tokens, some thousand weights."""
    return {
        "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24}, "device": "cpu"},
        "tasks": {"source": {"name": "arithmetic", "operation": "addition", "digits": 1}, "eval_size": 2},
        "rollout": {"prompts": 2, "group": 2, "max_tokens": 4},
        "method": {"reward": {"name": "function", "function": f"{Path(__file__).resolve()}:varied"}},
        "scale": {"engines": actors, "verifiers": actors, "trainers": trainers, "weights": weights},
        "overlap": {"staleness": staleness},
        "train": {"steps": steps, "lr": 1e-3},
        "evaluate": {"samples": 1},
        "run": {"dir": str(folder), "checkpoint_every": every, "report": False, "tensorboard": False},
    }


def varied(task: Any, response: str) -> float:
    """A reward that differs between the responses of an untrained model, so that every step changes the weights."""
    return (sum(map(ord, response)) % 7) / 7


def started(folder: Path, recipe: dict[str, Any], *flags: str) -> subprocess.Popen[bytes]:
    """Begin a run; what it says goes to a file beside its folder."""
    path = folder.with_suffix(".toml")
    path.write_text(tomli_w.dumps(recipe))
    log = folder.with_suffix(".log").open("wb")
    return subprocess.Popen([sys.executable, "-m", "assay", "train", str(path), *flags], stdout=log, stderr=log)


def steps_done(folder: Path) -> list[int]:
    """Numbers of the RL steps in the run's log, in order."""
    try:
        lines = (folder / "metrics.jsonl").read_text().splitlines()
    except OSError:
        return []
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    return [row["step"] for row in rows if row["stage"] == "rl"]


def victims(run: subprocess.Popen[bytes], kind: str) -> list[psutil.Process]:
    """Processes of a kind that live now."""
    found = []
    try:
        below = psutil.Process(run.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    for process in below:
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        line = " ".join(words)
        trains = words[1:4] == ["-m", "assay", "train"]
        kinds = {
            "engine": line.startswith("ray::EngineActor"),
            "verifier": line.startswith("ray::VerifierActor"),
            "trainer": trains and not _is_rank(process),
            "head": "/gcs_server " in line or "/raylet/raylet " in line,
            "rank": trains and _is_rank(process),
        }
        if kinds[kind]:
            found.append(process)
    return found


def _is_rank(process: psutil.Process) -> bool:
    """Whether a process was started as one of several trainers."""
    try:
        return "RANK" in process.environ()
    except psutil.Error:  # it has just ended
        return False


def kill(
    run: subprocess.Popen[bytes], folder: Path, steps: int, plan: Sequence[str], rng: random.Random
) -> Counter[str]:
    """Strike by the plan, at moments spread evenly over the steps; return how often each kind was struck."""
    struck: Counter[str] = Counter()
    moments = sorted(rng.sample(range(1, steps), len(plan)))
    for moment, kind in zip(moments, plan, strict=True):
        last, since = -1, time.monotonic()
        while run.poll() is None:
            done = len(steps_done(folder))
            if done != last:
                last, since = done, time.monotonic()
            if time.monotonic() - since > PATIENCE:
                raise SystemExit(
                    f"no step within {PATIENCE:g} s after {dict(struck)}; see {folder.with_suffix('.log')}"
                )
            # After a restart the log may be behind for a while.
            if done >= moment and (alive := sorted(victims(run, kind), key=lambda p: p.pid)):
                time.sleep(rng.uniform(0, 0.2))
                try:
                    rng.choice(alive).send_signal(signal.SIGKILL)
                except psutil.NoSuchProcess:
                    continue
                struck[kind] += 1
                break
            time.sleep(0.02)
        else:
            break
    return struck


def prompts(folder: Path) -> list[tuple[int, str]]:
    """Step and task of every prompt that was learned from, in order."""
    out: list[tuple[int, str]] = []
    for file in sorted((folder / "rollouts").glob("step-*.parquet")):
        rows = pq.ParquetFile(file).read().to_pylist()
        seen = dict.fromkeys((row["step"], row["task_id"]) for row in rows)
        out += seen
    return out


def tensors(folder: Path) -> dict[str, Any]:
    """The last checkpoint's tensors."""
    from safetensors.torch import load_file

    from assay.records.checkpoints import last_checkpoint

    found: dict[str, Any] = {}
    for file in sorted((last_checkpoint(folder)[2] / "policy").glob("*.safetensors")):
        found |= load_file(file)
    return found


def compare(
    folder: Path,
    steps: int,
    kills: int,
    kinds: Sequence[str],
    seed: int,
    every: int,
    actors: int = 2,
    staleness: int = 0,
    trainers: int = 1,
    weights: str = "store",
) -> dict[str, Any]:
    """Run both, the undisturbed one on ``actors`` engines and verifiers, or in one process; return what was found."""
    rng = random.Random(seed)
    plan = [kinds[i % len(kinds)] for i in range(kills)]
    rng.shuffle(plan)
    calm, struck_run = folder / "calm", folder / "struck"
    begin = time.monotonic()
    run = started(calm, recipe(calm, steps, every, actors, staleness, trainers, weights))
    if run.wait() != 0:
        raise SystemExit(f"the undisturbed run failed; see {calm.with_suffix('.log')}")
    middle = time.monotonic()
    wanted = recipe(struck_run, steps, every, 2, staleness, trainers, weights)
    run = started(struck_run, wanted, "--retries", str(kills))
    try:
        struck = kill(run, struck_run, steps, plan, rng)
        code = run.wait(PATIENCE * 4)
    finally:
        if run.poll() is None:
            run.terminate()
            run.wait()
    a, b = prompts(calm), prompts(struck_run)
    x, y = tensors(calm), tensors(struck_run)
    done = steps_done(struck_run)
    return {
        "exit code": code,
        "kills": dict(sorted(struck.items())),
        "steps, undisturbed": len(steps_done(calm)),
        "steps, struck": len(done),
        "steps doubled": len(done) - len(set(done)),
        "steps missing": len(set(range(1, steps + 1)) - set(done)),
        "prompts, undisturbed": len(a),
        "prompts, struck": len(b),
        "prompts lost": sum((Counter(a) - Counter(b)).values()),
        "prompts doubled": sum((Counter(b) - Counter(a)).values()),
        "same prompts in the same order": a == b,
        "largest difference of a weight": max(float((x[k] - y[k]).abs().max()) for k in x),
        "seconds, undisturbed": round(middle - begin, 1),
        "seconds, struck": round(time.monotonic() - middle, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help="all that there are, unless given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=2, help="steps between checkpoints")
    parser.add_argument("--staleness", type=int, default=0, help="overlap.staleness of both runs")
    parser.add_argument("--trainers", type=int, default=1, help="scale.trainers of both runs")
    parser.add_argument("--weights", choices=("store", "broadcast"), default="store", help="scale.weights of both runs")
    parser.add_argument("--keep", type=Path, help="folder for both runs and their logs; a temporary one unless given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        kinds = options.kinds or (KINDS if options.trainers > 1 else KINDS[:-1])
        found = compare(
            folder,
            options.steps,
            options.kills,
            kinds,
            options.seed,
            options.every,
            staleness=options.staleness,
            trainers=options.trainers,
            weights=options.weights,
        )
    for name, value in found.items():
        print(f"{name:32} {value}")
    whole = not found["steps doubled"] and not found["steps missing"] and found["same prompts in the same order"]
    sys.exit(0 if found["exit code"] == 0 and whole and sum(found["kills"].values()) == options.kills else 1)


if __name__ == "__main__":
    main()
