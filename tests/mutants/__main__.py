"""``python -m mutants [ID ...]``: put faults into papers' files and parts, and count those that their tests notice.

Prints each fault that no test noticed and a line for each row, and records the counts in
``assay/catalogue/mutants.json``. ``--workers`` is the number of processes, one for each core unless given; ``--again``
tries only what was not noticed last time, of rows whose code is as it was then (``build/mutants`` keeps it);
``--stale`` tries rows that do not compute what was counted, and those never counted; ``--list`` prints the
modules and tests of each row and runs nothing.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from assay.catalogue.mutants import Score, record, scores
from mutants.faults import faults, fingerprint
from mutants.scope import Scope, scopes, source
from mutants.trial import CLEAN, faulty, load, watched

LONGEST = 600
"""Seconds of a CPU that a row's tests may take without a fault; with one, five times what they take then, and SLACK."""
SLACK = 10


FOLDER = Path("build/mutants")
"""What was not noticed last time, a file for each row."""


def trial(key: str, of: Scope, workers: int, again: bool) -> Score | None:
    """Try a row's faults and print those that no test noticed; ``None`` where the tests fail without any."""
    began, before = time.perf_counter(), os.times()
    ran = watched(of.tests, LONGEST, of.modules)
    if ran is None:
        print(f"{key}: its tests fail without a fault: {' '.join(of.tests)}", flush=True)
        return None
    took, after = time.perf_counter() - began, os.times()
    usual = after.children_user + after.children_system - before.children_user - before.children_system
    every = [(m, fault) for m in of.modules for fault in faults(text_of(m))]
    text = fingerprint(map(text_of, of.modules))
    left = unnoticed(key, text) if again else None
    running: dict[int, str] = {}
    survived = []

    def ended() -> None:
        child, status = os.wait()
        name = running.pop(child)
        if status == CLEAN:
            survived.append(name)
            print(f"{key} {name}", flush=True)

    for module, fault in every:
        name = f"{module} {fault}"
        if left is None or name in left:
            if len(running) == workers:
                ended()
            running[faulty(ran, 5 * int(usual) + SLACK, module, fault)] = name
    while running:
        ended()
    keep(key, text, survived)
    score = Score(len(every), len(every) - len(survived), text)
    print(f"{key}: {score.caught} of {score.made} noticed, {score.percent}; the tests take {took:.1f} s", flush=True)
    return score


def text_of(module: str) -> str:
    return source(module).read_text(encoding="utf-8")


def counted(key: str, of: Scope) -> bool:
    """Whether the recorded score is of the code that is there."""
    score = scores().get(key)
    return score is not None and score.text == fingerprint(map(text_of, of.modules))


def unnoticed(key: str, text: str) -> list[str] | None:
    """Return what the tests of a row did not notice last time; ``None`` if its code has changed since."""
    file = FOLDER / f"{key}.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return kept["survived"] if kept.get("text") == text else None


def keep(key: str, text: str, survived: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{key}.json").write_text(json.dumps({"text": text, "survived": survived}), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--stale", action="store_true")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    # Asked in a process of its own: it imports every paper, which the tests are to do with the fault in it.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(scopes).result()
    if unknown := set(given.ids) - set(found):
        parser.error(f"no paper's file is of {', '.join(sorted(unknown))}")
    load()
    for key in given.ids or found:
        if given.stale and counted(key, found[key]):
            continue
        if given.list:
            print(key, *found[key].modules, *found[key].tests, sep="\n  ")
        elif score := trial(key, found[key], given.workers, given.again):
            record(key, score)
    return 0


if __name__ == "__main__":
    sys.exit(main())
