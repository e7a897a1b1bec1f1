"""The math verifier against math-verify on the same labelled rows: speed and error rates.

    python benchmarks/math_vs_math_verify.py --rows 3000 --math500 math500.jsonl --json result.json

Speed is the median over rounds in which the two take turns on the same rows, each through its ordinary API:
``Math()(task, response)`` and ``verify(parse(reference), parse(response))``, a LaTeX reference between dollar signs.
Error rates are by family of labelled cases (:mod:`assay.audit.generate`, and a folder of further families given with
--families). An abstention counts as not accepted.
With --math500 (JSON lines with problem, solution, answer) every solution is also judged against its own answer and, by
``--pairs``, every answer against every other problem's.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import logging
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from assay.audit.generate import load, stream
from assay.types import Task
from assay.verify.math import Math
from assay.verify.math.read.reading import number, read


class Row(NamedTuple):
    question: str
    reference: str
    response: str
    label: bool
    family: str


Judge = Callable[[Row], bool]


def ours() -> Judge:
    verifier = Math()

    def judge(row: Row) -> bool:
        return verifier(Task("row", row.question, row.reference, "math"), row.response).passed is True

    return judge


def peer() -> Judge:
    from math_verify import parse, verify

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)

    def judge(row: Row) -> bool:
        # math-verify reads LaTeX only between delimiters.
        gold = f"${row.reference}$" if "\\" in row.reference else row.reference
        return bool(verify(parse(gold), parse(row.response)))

    return judge


def clear_caches() -> None:
    """Forget what earlier rounds read, so that each round measures first contact with its rows.

    Tables that depend on no row (functions without arguments) stay, as they would in any process.
    """
    wrapper = type(read)
    for thing in gc.get_objects():
        ours = isinstance(thing, wrapper) and thing.__module__.startswith("assay.verify")
        if ours and thing.__wrapped__.__code__.co_argcount:
            thing.cache_clear()


def seconds(judge: Judge, rows: Sequence[Row]) -> tuple[float, list[bool]]:
    start = time.perf_counter()
    verdicts = [judge(row) for row in rows]
    return time.perf_counter() - start, verdicts


def math500(path: Path) -> list[Row]:
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    return [Row(e["problem"], e["answer"], e["solution"], True, "MATH-500") for e in entries]


def pairs(rows: Sequence[Row]) -> tuple[int, list[tuple[str, str]]]:
    """Judge every answer against every other; return how many were accepted and those that differ as numbers."""
    judge = ours()
    accepted, wrong = 0, []
    for a in rows:
        for b in rows:
            if a is b or a.reference == b.reference:
                continue
            if judge(a._replace(response=f"\\boxed{{{b.reference}}}")):
                accepted += 1
                x, y = number(a.reference), number(b.reference)
                if x is not None and y is not None and x != y:
                    wrong.append((a.reference, b.reference))
    return accepted, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3000, help="generated rows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--families", type=Path, help="a folder of further families of cases")
    parser.add_argument("--math500", type=Path, help="JSON lines with problem, solution and answer")
    parser.add_argument("--pairs", action="store_true", help="all pairs of MATH-500 answers")
    parser.add_argument("--json", type=Path, help="write the results there")
    arguments = parser.parse_args()

    if arguments.families is not None:
        load(arguments.families)
    # By its default, the verifier takes the last value of a response without a mark.
    counted = (c for c in stream(arguments.seed, unmarked="last") if c.counted)
    rows = [
        Row(c.question, c.reference, c.response, c.label, c.family) for c in itertools.islice(counted, arguments.rows)
    ]
    if arguments.math500 is not None:
        rows += math500(arguments.math500)
    judges = {"assay": ours(), "math-verify": peer()}
    for judge in judges.values():
        seconds(judge, rows[:20])

    took: dict[str, list[float]] = {name: [] for name in judges}
    verdicts: dict[str, list[bool]] = {}
    for _ in range(arguments.rounds):
        for name, judge in judges.items():
            clear_caches()
            spent, verdicts[name] = seconds(judge, rows)
            took[name].append(spent)
    speed = {name: len(rows) / statistics.median(times) for name, times in took.items()}
    ratio = statistics.median(b / a for a, b in zip(took["assay"], took["math-verify"], strict=True))
    print(f"{len(rows)} rows, median of {arguments.rounds} interleaved rounds")
    for name in judges:
        print(f"  {name:12} {speed[name]:9.0f} rows/s")
    print(f"  ratio        {ratio:9.1f}")

    counts: dict[str, dict[str, list[int]]] = {name: defaultdict(lambda: [0, 0, 0, 0]) for name in judges}
    for name, said in verdicts.items():
        for row, accepted in zip(rows, said, strict=True):
            for family in (row.family, "all"):
                tally = counts[name][family]
                tally[0 if row.label else 2] += 1
                tally[1 if row.label else 3] += accepted != row.label
    print(
        f"\n{'':20}{'false negatives %':^26}{'false positives %':^26}\n{'family':20}"
        + f"{'assay':>12}{'math-verify':>14}" * 2
    )
    families = [*sorted({row.family for row in rows}), "all"]
    table = {}
    for family in families:
        rates = {
            kind: {name: 100 * counts[name][family][k + 1] / max(counts[name][family][k], 1) for name in judges}
            for kind, k in (("false negatives", 0), ("false positives", 2))
        }
        table[family] = rates
        print(f"{family:20}" + "".join(f"{r['assay']:12.1f}{r['math-verify']:14.1f}" for r in rates.values()))

    result = {"rows": len(rows), "rows_per_second": speed, "ratio": ratio, "error_percent": table}
    if arguments.pairs and arguments.math500 is not None:
        start = time.perf_counter()
        accepted, wrong = pairs(math500(arguments.math500))
        result["pairs"] = {"accepted": accepted, "accepted_though_numbers_differ": wrong}
        spent = time.perf_counter() - start
        print(f"\nMATH-500 pairs: {accepted} accepted, {len(wrong)} of them differ as numbers ({spent:.0f} s)")
        for pair in wrong[:20]:
            print("  ", *pair, sep="  ")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
