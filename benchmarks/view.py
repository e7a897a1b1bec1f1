"""How long a million samples take to look at: the first page, filters, sorting, search.

    python benchmarks/view.py --files 1000 --samples 1000 --json result.json

Writes rollouts of random words, then asks as the page does, with as many of DuckDB's threads as there are cores. Beside
the seconds that passed stand those of processors, which other work on the machine does not lengthen.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from assay.view.places import Place
from assay.view.query import Query, groups, page, steps
from assay.view.tables import Tables


def write(folder: Path, files: int, n: int) -> None:
    rng = np.random.default_rng(0)
    words = np.array(["".join(chr(97 + c) for c in rng.integers(0, 26, rng.integers(2, 9))) for _ in range(3000)])
    texts = [" ".join(words[rng.integers(0, 3000, 90)]) for _ in range(20000)]
    prompts = [" ".join(words[rng.integers(0, 3000, 30)]) for _ in range(5000)]
    folder.mkdir(parents=True)
    for step in range(1, files + 1):
        tasks, luck = np.repeat(rng.integers(0, 5000, -(-n // 8)), 8)[:n], rng.random(n)
        columns = {
            "step": [step] * n,
            "group": np.arange(n) // 8,
            "task_id": [f"task-{i}" for i in tasks],
            "prompt": [prompts[i] for i in tasks],
            "response": [f"{texts[i]} {i} {step}" for i in rng.integers(0, 20000, n)],
            "passed": pa.array([None if x < 0.02 else bool(x > 0.5) for x in luck], pa.bool_()),
            "feedback": ["" if x > 0.5 else "equals 5, not 6" for x in luck],
            "reward": rng.normal(size=n),
            "length": rng.integers(1, 600, n),
            "stop": ["eos" if x > 0.1 else "length" for x in luck],
            "reward/verdict": luck.round(),
        }
        pq.write_table(pa.table(columns), folder / f"step-{step:06d}.parquet", write_page_checksum=True)


def processors() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def timed(work: Callable[[], Any]) -> dict[str, float]:
    wall, used = time.perf_counter(), processors()
    work()
    return {"seconds": time.perf_counter() - wall, "processor_seconds": processors() - used}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=1000, help="in each file")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        write(run / "rollouts", asked.files, asked.samples)
        tables, place = Tables(), Place("run", "run", run)
        began = time.perf_counter(), processors()
        found = {"first page, just started": timed(lambda: page(tables.of(place), Query()))}
        table = tables.of(place)
        table.wait()
        found["all is read"] = {"seconds": time.perf_counter() - began[0], "processor_seconds": processors() - began[1]}
        every = {
            "page": lambda: page(table, Query()),
            "sort": lambda: page(table, Query(sort="-reward")),
            "filter": lambda: page(table, Query(exact={"passed": ["wrong"]}, high={"length": 100})),
            "search, rare": lambda: page(table, Query(text=f"ZQ 12345 {asked.files}")),
            "search, common": lambda: page(table, Query(text="12345", sort="-length")),
            "groups": lambda: groups(table, Query(sort="-spread")),
            "a task": lambda: steps(table, Query(exact={"task_id": ["task-17"]})),
        }
        found |= {name: timed(work) for name, work in every.items()}
        tables.close()
    for name, row in found.items():
        print(f"{name:26s} {row['seconds']:7.2f} s  {row['processor_seconds']:7.2f} processor seconds")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
