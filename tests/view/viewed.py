"""Runs and evaluations to look at, written as a run writes them, and a viewer over them in this process."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from assay.records.record_text import record_text
from assay.records.sample import Sample, write_samples
from assay.view.places import Places
from assay.view.server import ViewServer

HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
STEPS, TASKS, SAMPLES = 6, 4, 4


def response(step: int, task: int, sample: int) -> str:
    if task == 3:
        return HOSTILE
    return f"Let me see: {task} and {step} make {task + step}.\nSo the Answer is {task + step + (sample % 2)}"


def verdict(task: int, sample: int) -> bool | None:
    """Task 3 is abstained on; of the others every second sample is right, and of task 2 all are wrong."""
    return None if task == 3 else task != 2 and sample % 2 == 0


def write_step(run: Path, step: int) -> Path:
    """Store the rollouts of a step: 4 tasks with 4 samples each, lengths 10 * step + sample."""
    cells = [(task, sample) for task in range(TASKS) for sample in range(SAMPLES)]
    passed = [verdict(*cell) for cell in cells]
    told = [ok is not None for ok in passed]
    table: dict[str, Any] = {
        "step": [step] * len(cells),
        "group": [task for task, _ in cells],
        "sample": list(range(len(cells))),
        "task_id": [f"task-{task}" for task, _ in cells],
        "prompt": [f"What is {task} + {step}?" for task, _ in cells],
        "response": [response(step, *cell) for cell in cells],
        "score": [float(ok or 0) for ok in passed],
        "passed": pa.array(passed, pa.bool_()),
        "feedback": ["" if ok else "no answer" if ok is None else "equals 5, not 6" for ok in passed],
        "parts": [json.dumps({"format": 1.0, "value": float(ok or 0)}) for ok in passed],
        "reward": [float(ok or 0) - 0.1 * s if t else None for ok, t, (_, s) in zip(passed, told, cells, strict=True)],
        "advantage": [0.5 - float(s % 2) for _, s in cells],
        "length": [10 * step + s for _, s in cells],
        "stop": ["length" if s == 3 else "eos" for _, s in cells],
        "reward/verdict": [float(ok or 0) if t else None for ok, t in zip(passed, told, strict=True)],
        "reward/brevity": [-0.1 * s if t else None for t, (_, s) in zip(told, cells, strict=True)],
    }
    path = run / "rollouts" / f"step-{step:06d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(table), path)
    return path


def write_run(run: Path, steps: int = STEPS, method: str = "grpo") -> Path:
    for step in range(1, steps + 1):
        write_step(run, step)
    rows = [
        {"stage": "rl", "step": s, "reward/mean": s / 10, "pass_rate": 0.25, "length/mean": 10.0 * s, "time/step": 2.0}
        for s in range(1, steps + 1)
    ]
    for row in rows:  # differs between runs by what rounding leaves
        row["ratio/mean"] = 1.0 + 2.0**-52 * (method == "grpo")
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run / "config.toml").write_text(
        f'seed = 3\n[method]\nname = "{method}"\n[model]\nsource = "nano"\n[train]\nsteps = 9\n'
    )
    write_evaluation(run / "evals" / "before.parquet", "before", 0, right=2)
    write_evaluation(run / "evals" / "after.parquet", "after", steps, right=5)
    return run


def write_evaluation(path: Path, label: str, step: int, right: int, tasks: int = 8) -> Path:
    """Store an evaluation of two samples a task; the first ``right`` tasks are right, the last gained is not after."""
    samples = []
    for task in range(tasks):
        passed = task < right and not (label == "after" and task == 0)
        for k in range(2):
            confidence = 0.9 if passed else 0.3
            text = f"I say {task}{k}"
            samples.append(
                Sample(
                    f"held-{task}",
                    f"Held out {task}",
                    text,
                    float(passed),
                    passed,
                    "",
                    7,
                    "eos",
                    answer=f"{task}{k}",
                    confidence=confidence,
                )
            )
    write_samples(path, samples, label, step)
    return path


def write_league(folder: Path) -> Path:
    """Store records of a setting: the baseline, one ahead of it by .1, .3, .2, .2, .2, one with a single seed."""

    def result(area: float) -> dict[str, Any]:
        spent = {"step": 10.0, "generate": 6.0, "update": 3.0}
        curve = [{"step": s, "rollouts": 10.0 * s, "tokens": 0.0, "pass@1": area * s / 4} for s in (0, 2, 4)]
        found = {"area": area, "final": area, "pass_at": {"1": area, "16": 0.9}, "tokens": 200, "rollouts": 20}
        return {"status": "finished", **found, "curve": curve, "steps": 5, "time": spent, "judged": 1000}

    base = (0.40, 0.50, 0.60, 0.40, 0.50)
    ahead = [b + d for b, d in zip(base, (0.1, 0.3, 0.2, 0.2, 0.2), strict=True)]
    folder.mkdir(parents=True)
    for label, scores in {"grpo": base, "ahead": ahead, "few": base[:1]}.items():
        told = {"setting": "L1", "label": label, "method": {"name": label}, "fingerprint": "f", "measure": "area"}
        told |= {"tried": [], "chosen": {"train.lr": 1e-3}, "unsettled": []}
        told["environments"] = [{"commit": "abc", "processors": 2}]
        told["runs"] = [
            {"name": f"t/seed-{s}/{label}", "environment": 0, "result": result(x)} for s, x in enumerate(scores)
        ]
        (folder / f"{label}.json").write_text(record_text(told))
    return folder


def write_comparison(folder: Path) -> Path:
    """Store a comparison of which one run is there and one has failed."""
    write_run(folder / "runs" / "sums" / "seed-0" / "grpo" / "run", steps=1)
    runs = [
        {"method": "grpo", "task": "sums", "seed": 0, "status": "finished", "final": 0.5},
        {"method": "dapo", "task": "sums", "seed": 0, "status": "failed", "error": "no memory"},
    ]
    told = {"schema": "assay.compare/1", "verdict": ["No winner.", "Too few runs."], "methods": {}, "pairs": []}
    (folder / "compare.json").write_text(json.dumps({**told, "runs": runs}))
    return folder


@contextmanager
def viewing(*roots: Path) -> Iterator[ViewServer]:
    """A viewer in a thread, to the end of the block."""
    server = ViewServer(Places(roots))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(120)
        server.close()


def get(server: ViewServer, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of an answer, as one who has the token unless a cookie is given."""
    given = {"Cookie": f"{server.app.cookie}={server.token}"} | headers
    request = urllib.request.Request(f"{server.url}{path}", headers=given)
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=120) as answer:
            return answer.status, _lower(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, _lower(error.headers), error.read()


def found(server: ViewServer, what: str, *pairs: tuple[str, str], **parameters: Any) -> Any:
    """Return what the server says of a question, as JSON has it."""
    asked = urllib.parse.urlencode([*pairs, *parameters.items()])
    status, _, body = get(server, f"/api/{what}?{asked}")
    assert status == 200, body
    return json.loads(body)


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None
