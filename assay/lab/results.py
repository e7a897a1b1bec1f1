"""What the lab found, for the index of papers and for docs/lab.md: ``python -m assay.lab.results [FOLDER]``.

Reads the records ``FOLDER/SNNN.json`` (lab/ unless given), and writes their summary, which the package ships, and the
table ``docs/lab.md``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

FILE = "results.json"

INTRODUCTION = """
# What the lab found

Made by `python -m assay.lab.results` from the records in `lab/`; do not edit. Each row is a claim of a paper, put into
a small controlled setting before it was run: the method against a baseline on the same seeds, with equal rollouts and
the same sweep of learning rates for both. The effect is the mean difference of the measure over paired seeds, with
Student's 95% interval; *shown* if the interval lies above zero, *opposite* if it lies below. A small setting that does
not show a claim says nothing against the paper at its own scale.

Some claims were run twice, because in the first run both arms ended at a ceiling or took the edge of the sweep: the
sweep was then widened, the verifier made noisy or the measure changed to the mean over training, alike for both arms
(S002, S014, S016, S017, S034, S064, S067, S069, S078, S088, S096, S135, S200, S205, S221). What is here is the last
run. S055 and S081 were moved to another setting and given more seeds after a first look: their intervals are narrower
than they should be. The settings of S033, S050, S052, S120, S219 and S224 were changed after trial runs of a seed or
two, before the runs that count. Where an effect is nearly as large as its measure allows, the setting isolates a
mechanism: the row says that it works, not how much it matters elsewhere.

The settings `tree` and `problems` have logits of their own for every decision: nothing learned about one question
changes another there, and larger steps are nearly always better. The claims made there that are about how good a policy
gets were therefore put, all of them, into a second setting, `unseen`, where a small network answers and everything is
measured on questions that were never asked; so was that of S059. A paper with two rows counts by its first; where the
second is missing (`assay papers show`), it has not been run. S085 was put into `approaches` after `unseen` did not show
it.
"""


@cache
def results() -> Mapping[str, list[Mapping[str, Any]]]:
    """Return the shipped summaries by paper, of its first claim first: effect, interval, seeds, verdict, setting."""
    file = resources.files("assay.lab").joinpath(FILE)
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def summary(record: Mapping[str, Any]) -> dict[str, Any]:
    """What of a record the package ships."""
    return {
        "claim": record["claim"],
        "setting": record["setting"]["name"],
        "better": record["better"],
        "baseline": record["baseline"],
        "measure": record["measure"],
        "means": {arm: record["means"][arm] for arm in (record["better"], record["baseline"])},
        **record["effect"],
        "verdict": record["verdict"],
    }


def collected(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the summaries of the records in a folder: ``SNNN.json`` is of a first claim, ``SNNN.SETTING.json`` not."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("S*.json"), key=lambda p: (p.name.count("."), p.name)):
        record = json.loads(path.read_text(encoding="utf-8"))
        found.setdefault(record["paper"], []).append(summary(record))
    return dict(sorted(found.items()))


def page(found: Mapping[str, list[dict[str, Any]]], titles: Mapping[str, str]) -> str:
    """Return docs/lab.md."""
    rows = ["| paper | claim | setting | measure | baseline → method | effect [95% interval] | seeds | verdict |"]
    rows.append("|" + "---|" * 8)
    for key, r in ((key, r) for key, many in found.items() for r in many):
        means = f"{r['means'][r['baseline']]:.3f} ({r['baseline']}) → {r['means'][r['better']]:.3f} ({r['better']})"
        effect = f"{r['value']:+.3f} [{r['low']:+.3f}, {r['high']:+.3f}]"
        cells = [f"{key} {titles[key]}", r["claim"], f"`{r['setting']}`", f"`{r['measure']}`", means, effect]
        rows.append("| " + " | ".join([*cells, str(r["seeds"]), f"*{r['verdict']}*"]) + " |")
    verdicts = [many[0]["verdict"] for many in found.values()]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in ("shown", "not shown", "opposite") if v in verdicts)
    return INTRODUCTION.lstrip() + f"\n{len(found)} papers: {counts}.\n\n" + "\n".join(rows) + "\n"


def main(arguments: list[str]) -> int:
    """Write summary and table."""
    from assay.papers import rows

    folder = Path(arguments[0] if arguments else "lab")
    found = collected(folder)
    (Path(__file__).parent / FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text = page(found, {row.id: row.name for row in rows()})
    (folder.parent / "docs" / "lab.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
