"""``python -m fuzz [NAME ...]``: fuzz verifiers, each in a process of its own, and print what was found.

``ASSAY_FUZZ`` is the number of examples for each kind, shared by its entries (10,000), ``ASSAY_FUZZ_SEED`` the seed
(0), ``ASSAY_FUZZ_JOBS`` the number of processes (one for each core), ``ASSAY_FUZZ_BATCH`` as in ``2/3`` the second of
three parts of the table: the whole takes about three quarters of an hour on two cores. A NAME is a kind, or an entry
such as ``sql/duckdb``. Responses with a fault are written to ``build/fuzz/``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

FOLDER = Path("build/fuzz")


def one(name: str, examples: int, first: int) -> None:
    """Fuzz one entry here and print its report as JSON."""
    from fuzz.campaign import Campaign
    from fuzz.cases import ENTRIES
    from fuzz.entry import Missing

    try:
        campaign = Campaign(name, first, FOLDER)
    except Missing as error:
        print(json.dumps({"name": name, "left_out": str(error)}))
        return
    entries = sum(entry.kind == ENTRIES[name].kind for entry in ENTRIES.values())
    print(campaign.run(-(-examples // entries)).to_json())


def start(name: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "fuzz", "--one", name], check=False, capture_output=True, text=True)
    try:
        report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        fault = {
            "sort": "the process ended",
            "detail": f"status {done.returncode}: {done.stderr[-1500:]}",
            "response": "",
        }
        report = {"name": name, "findings": [fault]}
    show(report)
    return report


def show(report: dict[str, Any]) -> None:
    """Print a line for an entry, and one for each fault."""
    name = report["name"]
    if "left_out" in report:
        print(f"{name:24} left out: {report['left_out']}", flush=True)
        return
    n, seconds = report.get("examples", 0), report.get("seconds", 0.0)
    if n:
        slow = report["slowest"][0]
        columns = (
            f"{name:24} {n:6} examples {n / seconds:5.0f}/s",
            f"slowest {slow['seconds']:5.2f} s for {slow['characters']:7} characters",
            f"right {report['right'] / n:6.1%}",
            f"abstains {report['abstained'] / n:6.2%}",
            f"grew {report['growth'] >> 20:4} MB",
            f"faults {len(report['findings'])}",
        )
        print("  ".join(columns), flush=True)
    for finding in report["findings"]:
        print(f"  {name}: {finding['sort']}: {finding['detail']}", flush=True)
        print(
            f"    on task {finding.get('case')}, response {finding['response'][:300]} {finding.get('file', '')}",
            flush=True,
        )


def main(arguments: list[str]) -> int:
    examples, first = int(os.environ.get("ASSAY_FUZZ", "10000")), int(os.environ.get("ASSAY_FUZZ_SEED", "0"))
    if arguments[:1] == ["--one"]:
        one(arguments[1], examples, first)
        return 0
    from fuzz.cases import ENTRIES

    chosen = [n for a in arguments for n, e in ENTRIES.items() if a in (n, e.kind)] if arguments else list(ENTRIES)
    batch, _, batches = os.environ.get("ASSAY_FUZZ_BATCH", "1/1").partition("/")
    chosen = chosen[int(batch) - 1 :: int(batches)]
    if not chosen:
        print(f"no entry is called {' or '.join(arguments)}; known: {', '.join(ENTRIES)}", file=sys.stderr)
        return 2
    begun = time.perf_counter()
    with ThreadPoolExecutor(int(os.environ.get("ASSAY_FUZZ_JOBS", os.cpu_count() or 1))) as pool:
        reports = list(pool.map(start, chosen))
    found = sum(len(report.get("findings", [])) for report in reports)
    total = sum(report.get("examples", 0) for report in reports)
    print(f"{total} examples, {len(chosen)} entries, {found} faults, {time.perf_counter() - begun:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
