"""Does self-play from nothing teach the quickstart's model? The table of docs/self-play.md.

    python benchmarks/self_play.py [--steps 100] [--seeds 0 1 2] [--out runs/self-play]

The model of ``assay quickstart`` is shown, by supervised steps, how tasks and proposals of the language ``steps`` are
written: random programs, four in ten of whose outputs are worked out step by step. From there it trains by method S076
on what it proposes itself; no task of the source is asked. Held out are random programs of one to three steps. Printed
are pass@1 with 95% intervals before and after, by mode, and the processor time of all of it. A run that was cut off
goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import resource
from pathlib import Path
from typing import Any

import assay
from assay.records.checkpoints import last_checkpoint
from assay.records.evaluation import Evaluation
from assay.verify.programs.language import MODES
from assay.verify.programs.steps import ALPHABET

NANO = {"hidden": 128, "layers": 3, "heads": 4, "context": 64, "alphabet": ALPHABET}
SOURCE = {"name": "steps", "length": 3, "scratchpad": 0.4}


def recipe(seed: int, folder: Path, **sections: Any) -> dict[str, Any]:
    return {
        "seed": seed,
        "tasks": {"source": SOURCE, "eval_size": 300},
        "rollout": {"prompts": 32, "group": 8, "max_tokens": 28},
        "evaluate": {"every": 0, "samples": 4},
        "run": {"dir": str(folder), "report": False, "tensorboard": False, "checkpoint_every": 10},
        **sections,
    }


def trained(made: dict[str, Any], *overrides: str) -> Any:
    """Run to the end, from where an earlier attempt stopped if there was one."""
    folder = Path(made["run"]["dir"])
    going_on = (folder / "config.toml").is_file()
    result = assay.train(resume=folder, overrides=overrides, quiet=True) if going_on else assay.train(made, quiet=True)
    if result.stopped_by is not None:
        raise SystemExit(f"stopped in {folder}; the same command goes on")
    return result


def shown(label: str, evaluation: Evaluation) -> None:
    told = [f"{label:12s} {interval(evaluation)}"]
    for mode in MODES:
        kept = tuple(s for s in evaluation.samples if s.prompt.startswith(mode[0]))
        told.append(f"{mode} {interval(Evaluation(evaluation.label, evaluation.step, kept))}")
    print(" | ".join(told), flush=True)


def interval(evaluation: Evaluation) -> str:
    found = evaluation.pass_interval(1)
    return "-" if found is None else f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def spent() -> float:
    """Processor minutes of this process and of those it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used) / 60


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=100)
    arguments.add_argument("--warmup", type=int, default=600)
    arguments.add_argument("--lr", type=float, default=2e-4)
    arguments.add_argument("--seeds", type=int, nargs="+", default=[0])
    arguments.add_argument("--out", type=Path, default=Path("runs/self-play"))
    given = arguments.parse_args()
    for seed in given.seeds:
        began, folder = spent(), given.out / f"seed-{seed}"
        taught = recipe(
            seed,
            folder / "warm-up",
            model={"source": "nano", "nano": NANO},
            tasks={"source": {**SOURCE, "seed": 1, "proposals": 0.4}, "eval_size": 8},
            warmup={"steps": given.warmup, "batch": 128, "lr": 3e-3, "every": 10**6},
            train={"steps": 0},
        )
        start = last_checkpoint(trained(taught, f"warmup.steps={given.warmup}").folder)[2] / "policy"
        play = recipe(
            seed,
            folder / "self-play",
            model={"source": str(start), "nano": NANO},
            method={"name": "S076", "options": {"language": "steps", "shown": 2}},
            train={"steps": given.steps, "lr": given.lr, "ramp": 5},
        )
        result = trained(play, f"train.steps={given.steps}")
        print(f"seed {seed}, {given.steps} steps, {spent() - began:.1f} processor minutes")
        shown("before", result.before)
        shown("after", result.after)
        rows = [json.loads(line) for line in (Path(result.folder) / "metrics.jsonl").read_text().splitlines()]
        steps = [row for row in rows if row["stage"] == "rl"]
        for name, part in (("first", steps[:5]), ("last", steps[-5:])):
            means = {
                k: sum(r[k] for r in part) / len(part)
                for k in ("propose/valid", "propose/learnable", "propose/accuracy")
            }
            print(f"{name} five steps:", ", ".join(f"{k} {v:.2f}" for k, v in means.items()), flush=True)


if __name__ == "__main__":
    main()
