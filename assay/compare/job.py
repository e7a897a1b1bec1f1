"""One run of a comparison, in a process of its own that ends when its parent does.

Its folder holds ``job.json``; the run is in ``run/`` and, once it has ended, what came of it in ``result.json``; what
is printed goes to ``log.txt``.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.records.files import missing_files, write_text
from assay.sandbox import run_unprotected

OUTPUT = {"report": False, "tensorboard": False, "checkpoint_every": 25}
SECONDS = {part: f"time/{part}" for part in ("step", "generate", "update")} | {"processor": "compare/processor"}
"""Of what the seconds of all steps are kept, by the metric, where it was measured."""
INTERRUPTED = 3
"""Exit code of a run that was asked to stop; it goes on when its job is started again."""


def child(folder: Path, threads: int) -> None:
    """What the process does: run the job, and exit with 0 once there is a result, be it that the run failed."""
    # In a session of its own, so that Ctrl-C reaches the parent alone, which asks its children to stop.
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with open(folder / "log.txt", "ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import torch

    torch.set_num_threads(threads)
    sys.exit(main(folder))


def main(folder: Path) -> int:
    """Run the job in a folder; return the exit code."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    if job["unprotected"]:
        run_unprotected()
    begun = time.monotonic()
    try:
        found = run(job, folder / "run")
    except AssayError as error:
        found = {"status": "failed", "error": str(error)}
    except Exception as error:
        traceback.print_exc()
        found = {"status": "failed", "error": f"{type(error).__name__}: {error}".splitlines()[0]}
    if found is None:
        return INTERRUPTED
    write_text(folder / "result.json", json.dumps({**found, "seconds": round(time.monotonic() - begun, 1)}, indent=1))
    return 0


def run(job: Mapping[str, Any], folder: Path) -> dict[str, Any] | None:
    """Make a warm start, or train from one until the budget is spent; return what is to be kept of it.

    Args:
        job: ``recipe``, and for a run ``budget`` (``unit``, ``amount``), ``points`` and ``start``, the folder of a warm
            start or ``None``; ``keep`` says whether its last checkpoint is kept, and its report written.
        folder: of the run; one that was interrupted goes on.
    """
    from assay.compare.budget import Budget, BudgetedTrainer
    from assay.config import load_config
    from assay.console import Reporter
    from assay.records.checkpoints import checkpoints
    from assay.report.html import write_report
    from assay.training.build import build_trainer
    from assay.training.loop import Trainer

    # A batch that is asked ahead would be paid for, and where the budget ends nothing would be learnt from it.
    overlap = {**job["recipe"].get("overlap", {}), "staleness": 0}
    recipe = {**job["recipe"], "overlap": overlap, "run": {**OUTPUT, "dir": str(folder)}}
    begun = any(not missing_files(p) for p in checkpoints(folder))
    if not begun:
        shutil.rmtree(folder, ignore_errors=True)
    kind: Any = Trainer
    if job["budget"] is not None:
        budget = Budget(**job["budget"])
        kind = partial(BudgetedTrainer, budget=budget, points=job["points"])
        # As often as held-out tasks are asked.
        recipe["run"]["rollouts_every"] = max(1, budget.steps(load_config(recipe)) // job["points"])
    trainer = build_trainer(load_config(recipe), Reporter(quiet=True), resume=folder if begun else None, kind=kind)
    try:
        if job.get("start") is not None and not begun:
            _begin_from(trainer, Path(job["start"]))
        interrupt = trainer.run(resume=begun)
    finally:
        trainer.folder.close()
    if interrupt.requested is not None:
        return None
    if job["budget"] is None:
        return {"status": "finished", "steps": trainer.step, "start": digest(folder)}
    found = _measured(trainer)
    if job.get("start") is not None:
        found["start"] = digest(Path(job["start"]) / "run")
    if job["keep"]:
        write_report(folder)
    for path in checkpoints(folder)[: -1 if job["keep"] else None]:
        shutil.rmtree(path)
    return found


def digest(run: Path) -> str:
    """Return twelve hex digits that tell the last weights of a run from all others.

    The same seed leads to other weights on another machine, in the last digits of a step and soon in all of them.
    """
    from assay.records.checkpoints import last_checkpoint

    out = hashlib.sha256()
    for path in sorted(path for path in (last_checkpoint(run)[2] / "policy").rglob("*") if path.is_file()):
        out.update(path.read_bytes())
    return out.hexdigest()[:12]


def _begin_from(trainer: Any, start: Path) -> None:
    """Give a run the weights of a warm start, and its place in the stream of tasks."""
    import torch

    from assay.records.checkpoints import last_checkpoint

    path = last_checkpoint(start / "run")[2]
    trainer.policy.load_weights(path / "policy")
    state = torch.load(path / "trainer.pt", map_location="cpu", weights_only=True)
    # A start that seeds share was read in the order of one of them.
    trainer.stream.load_state_dict({**state["stream"], "seed": trainer.stream.seed})


def _measured(trainer: Any) -> dict[str, Any]:
    """What a finished run says: its learning curve, its score by both measures, pass@k, and what it has spent.

    Raises:
        RunError: it says nothing of its method: no step had a gradient, or no verdict was given.
    """
    import numpy as np

    from assay.errors import RunError
    from assay.records.evaluation import Evaluation, ladder
    from assay.training.watching.idle import without_gradient

    folder, unit = trainer.folder, trainer.meter.budget.unit
    spent = {0: {"rollouts": 0, "tokens": 0}}
    rows = [row for row in folder.metrics() if row["stage"] == "rl"]
    if rows and all(map(without_gradient, rows)):
        raise RunError(
            "nothing was learned, the gradient was exactly 0 at every step; `assay train` with this recipe and method "
            "says at its first step which part cannot act"
        )
    for row in rows:
        spent[row["step"]] = {u: int(row[f"spent/{u}"]) for u in ("rollouts", "tokens")}
    curve = []
    for file in sorted((folder.path / "evals").glob("*.parquet")):
        evaluation = Evaluation.from_parquet(file)
        passed = evaluation.pass_interval(1)
        if passed is None:
            raise RunError(f"evaluation {evaluation.label}: every verdict was an abstention")
        if evaluation.label == "after":
            after, final = evaluation, passed.value
        else:
            curve.append({"step": evaluation.step, **spent[evaluation.step], "pass@1": passed.value})
    # A step beyond the budget was given up, so the last one may have been measured twice: the larger sample counts.
    curve = [p for p in sorted(curve, key=lambda p: p["step"]) if p["step"] != after.step]
    curve.append({"step": after.step, **spent[after.step], "pass@1": final})
    x, y = [p[unit] for p in curve], [p["pass@1"] for p in curve]
    ends = np.linspace(0, trainer.amount, 1001)
    judged = sum(s.passed is not None for s in after.samples)
    return {
        "status": "finished",
        "final": final,
        "area": float(np.interp(ends, x, y).mean()),
        "pass_at": {k: float(np.mean(list(v.values()))) for k in ladder(after.k) if (v := after.pass_at(k))},
        "judged": judged,
        "abstained": 1 - judged / len(after.samples),
        "curve": curve,
        "training": float(np.mean([row["pass_rate"] for row in rows if "pass_rate" in row] or [0.0])),
        "steps": trainer.step,
        "time": {
            part: round(sum(row.get(metric, 0.0) for row in rows), 3)
            for part, metric in SECONDS.items()
            if any(metric in row for row in rows)
        },
        **trainer.meter.count,
    }


def _end_with_parent() -> None:
    """Wait for the end of the parent, then end at once: what is written is whole."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(INTERRUPTED)
