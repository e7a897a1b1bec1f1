"""Verdicts on labelled responses that real models wrote: rates by source with exact intervals, beside math-verify.

    python benchmarks/real_responses.py responses.jsonl

A row has ``prompt``, ``reference``, ``response``, ``correct`` and ``category``, its source; rows whose reference is a
letter go to the ``choice`` verifier, all others to ``math``. math-verify is asked where the reference has a number. An
abstention counts as not accepted. Speed is over the rows with a number, the two taking turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

from math_vs_math_verify import Row, clear_caches, ours, peer, seconds
from scipy.stats import binomtest

from assay.types import Task
from assay.verify.choice.verifier import Choice

Judge = Callable[[Row], bool]


def load(path: Path) -> list[Row]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Row(r["prompt"], str(r["reference"]), r["response"], bool(r["correct"]), r["category"]) for r in rows]


def choice() -> Judge:
    verifier = Choice()

    def judge(row: Row) -> bool:
        return verifier(Task("row", row.question, row.reference, "choice"), row.response).passed is True

    return judge


def lettered(row: Row) -> bool:
    return len(row.reference) == 1 and row.reference.isalpha()


def rate(wrong: int, of: int) -> str:
    if not of:
        return "–"
    interval = binomtest(wrong, of).proportion_ci(0.95, "exact")
    return f"{100 * wrong / of:.1f} % ({wrong} of {of}; {100 * interval.low:.1f} to {100 * interval.high:.1f})"


def table(rows: list[Row], said: dict[str, list[bool | None]]) -> Iterator[str]:
    """Lines of a Markdown table: right ones refused and wrong ones accepted, by source and judge."""
    yield "| source | right refused | by math-verify | wrong accepted | by math-verify |"
    yield "| --- | --- | --- | --- | --- |"
    for source in [*sorted({row.family for row in rows}), "all with a number", "all"]:
        cells = []
        for label in (True, False):
            for name, verdicts in said.items():
                numbered = source == "all with a number" or (source == "all" and name == "math-verify")
                chosen = [
                    verdict is not row.label
                    for row, verdict, other in zip(rows, verdicts, said["math-verify"], strict=True)
                    if row.label is label
                    and source in (row.family, "all", "all with a number")
                    and verdict is not None
                    and not (numbered and other is None)
                ]
                cells.append(rate(sum(chosen), len(chosen)))
        yield f"| {source} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("responses", type=Path, help="JSON lines with prompt, reference, response, correct, category")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the speeds there")
    arguments = parser.parse_args()
    rows = load(arguments.responses)
    numbers = [row for row in rows if any(map(str.isdigit, row.reference))]
    judges: dict[str, Judge] = {"assay": ours(), "math-verify": peer()}
    took: dict[str, list[float]] = {name: [] for name in judges}
    for judge in judges.values():
        seconds(judge, numbers[:20])
    for _ in range(arguments.rounds):
        for name, judge in judges.items():
            clear_caches()
            took[name].append(seconds(judge, numbers)[0])
    speed = {name: len(numbers) / statistics.median(times) for name, times in took.items()}
    ratio = statistics.median(b / a for a, b in zip(took["assay"], took["math-verify"], strict=True))
    print(f"{len(numbers)} responses with a number, median of {arguments.rounds} interleaved rounds: ", end="")
    print(", ".join(f"{name} {value:.0f} rows/s" for name, value in speed.items()), f"ratio {ratio:.1f}", sep="; ")
    by_letter = choice()
    said: dict[str, list[bool | None]] = {
        "assay": [(by_letter if lettered(row) else judges["assay"])(row) for row in rows],
        "math-verify": [judges["math-verify"](row) if any(map(str.isdigit, row.reference)) else None for row in rows],
    }
    print("\n".join(table(rows, said)))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"rows_per_second": speed, "ratio": ratio}, indent=1))


if __name__ == "__main__":
    main()
