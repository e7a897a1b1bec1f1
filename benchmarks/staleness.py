"""What learning from batches that older weights wrote costs: the quickstart with staleness 1 against staleness 0.

Both arms of a seed go on from the same warmed-up policy and have the same tasks in the same order. Printed per seed:
what it began at and the final held-out pass@1 of each arm; in the end the mean paired difference with its 95 % interval
(Student's t over seeds), and the same of the mean over the evaluations during training: the speed of learning.

    python benchmarks/staleness.py [--seeds 5] [--staleness 0 1] [--steps 100] [--dir runs/staleness] [a.b.c=value ...]

A run of the quickstart takes about two minutes on a quiet machine. What is finished in the folder is not run again, so
the command can be stopped and repeated. Overrides hold for both arms.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from pathlib import Path

import assay
from assay.records.checkpoints import last_checkpoint
from assay.records.evaluation import Evaluation

RECIPE = Path(assay.__file__).parent / "recipes" / "quickstart.toml"


def finished(folder: Path) -> bool:
    return (folder / "evals" / "after.parquet").is_file()


def go(folder: Path, overrides: list[str]) -> None:
    """Run, or go on with what was stopped, to the end."""
    if finished(folder):
        return
    if (folder / "config.toml").is_file():
        result = assay.train(resume=folder, quiet=True)
    else:
        quiet = ["run.tensorboard=false", "run.report=false", "run.rollouts_every=1000000"]
        result = assay.train(RECIPE, overrides=[*overrides, *quiet, f'run.dir="{folder}"'], quiet=True)
    if result.stopped_by:
        raise SystemExit(f"stopped by {result.stopped_by}; repeat the command to go on")


def passed(folder: Path, label: str) -> float:
    found = Evaluation.from_parquet(folder / "evals" / f"{label}.parquet").pass_interval(1)
    assert found is not None
    return found.value


def course(folder: Path) -> float:
    """Mean held-out pass@1 over the evaluations during training and the one after it."""
    labels = [p.stem for p in (folder / "evals").glob("step-*.parquet")]
    return statistics.fmean([passed(folder, label) for label in [*labels, "after"]])


def interval(differences: list[float]) -> str:
    from scipy import stats

    mean, n = statistics.fmean(differences), len(differences)
    if n < 2:
        return f"{mean:+.3f} (one seed: no interval)"
    half = stats.t.ppf(0.975, n - 1) * statistics.stdev(differences) / math.sqrt(n)
    return f"{mean:+.3f} [{mean - half:+.3f}, {mean + half:+.3f}] over {n} seeds"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--staleness", type=int, nargs=2, default=[0, 1])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--dir", type=Path, default=Path("runs/staleness"))
    parser.add_argument("overrides", nargs="*")
    options = parser.parse_args()
    base, other = options.staleness
    ends: list[float] = []
    courses: list[float] = []
    print(f"{'seed':>4} {'before':>7} {f's={base}':>7} {f's={other}':>7} {'minutes':>8}")
    for seed in range(options.seeds):
        start = time.perf_counter()
        warm = options.dir / f"seed{seed}-warm"
        go(warm, [f"seed={seed}", "train.steps=0", "evaluate.samples=1"])
        arms = []
        for staleness in (base, other):
            arms.append(options.dir / f"seed{seed}-staleness{staleness}-steps{options.steps}")
            source = last_checkpoint(warm)[2] / "policy"
            settings = [f"seed={seed}", f"train.steps={options.steps}", f"overlap.staleness={staleness}"]
            go(arms[-1], [*settings, "warmup.steps=0", f'model.source="{source.resolve()}"', *options.overrides])
        a, b = (passed(arm, "after") for arm in arms)
        ends.append(b - a)
        courses.append(course(arms[1]) - course(arms[0]))
        minutes = (time.perf_counter() - start) / 60
        print(f"{seed:>4} {passed(arms[0], 'before'):>7.3f} {a:>7.3f} {b:>7.3f} {minutes:>8.1f}", flush=True)
    print(f"final pass@1, staleness {other} less staleness {base}: {interval(ends)}")
    print(f"mean pass@1 of the evaluations during and after training: {interval(courses)}")


if __name__ == "__main__":
    main()
