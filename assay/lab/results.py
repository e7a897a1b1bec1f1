"""What the lab found, for the index of papers and for docs/lab.md: ``python -m assay.lab.results [FOLDER]``.

Reads the records ``FOLDER/SNNN.json`` (lab/ unless given), and writes their summary, which the package ships, and the
table ``docs/lab.md``. Prints the verdict on each paper, by its first claim alone and by all of them, and the totals.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.lab.record_text import record_text

if TYPE_CHECKING:
    from assay.catalogue.claim import Claim
    from assay.catalogue.papers import PaperRow

FILE = "results.json"
NOT_RUN = "Fixed but not run yet, and so without a row: "

INTRODUCTION = """
# What the lab found

Made by `python -m assay.lab.results` from the records in `lab/`; do not edit. `assay lab S014 --seeds 20 --publish`
runs a claim, leaves its record there and makes this page again. Each row is a claim of a paper, put into a small
controlled setting before it was run: the method against a baseline on the same seeds, with equal rollouts and the
same sweep of learning rates for both. The effect is the mean difference of the measure over paired seeds, with
Student's 95% interval; *shown* if the interval lies above zero, *opposite* if it lies below. A small setting that
does not show a claim says nothing against the paper at its own scale.

Some claims were run twice, because in the first run both arms ended at a ceiling or took the edge of the sweep: the
sweep was then widened, the verifier made noisy or the measure changed to the mean over training, alike for both arms
(S002, S014, S016, S017, S034, S064, S067, S069, S078, S088, S096, S135, S200, S205, S221). What is here is the last
run; the records of the first ones are not kept. S055 and S081 were moved to another setting and given more seeds
after a first look: their intervals are narrower than they should be. The settings of S033, S050, S052, S120, S219 and
S224 were changed after trial runs of a seed or two, before the runs that count. Where an effect is nearly as large as
its measure allows, the setting isolates a mechanism: the row says that it works, not how much it matters elsewhere.

The settings `tree` and `problems` have logits of their own for every decision: nothing learned about one question
changes another there, and larger steps are nearly always better. The claims made there that are about how good a
policy gets were therefore put, all of them, into a second setting, `unseen`, where a small network answers and
everything is measured on questions that were never asked; so was that of S059, whose measure had to be corrected
before it could run there. S085 was put into `approaches` after `unseen` did not show it; its claim `nano`, S213's,
the claim `adapters` of S098, where the better arm took the largest rate of the sweep, and, after a trial of five seeds,
the claim `samples` of S202 were added later; the rate and steps of `boundary` were chosen on one seed, from four trial
runs of GRPO.

Claims marked *mechanism* were added once the results of the first ones were known, for papers on policy objectives
whose first claim was not shown. They ask whether the method works by what its paper says it works by, in the regime
that the paper names; setting, measure and sweep were written down for all of them before any was run. Some of these
settings leave little but the mechanism, so that *shown* says less about its weight than about its being there: the
step of S094 is computed, not trained, the judge of S065 is made to be fooled by sums, the updates of S064 do not have
equal rollouts, the baseline of S055's is a constant, and S163's measure is what its loss makes small. The baseline of
S082's had been run before, as a third arm of its first claim, and has no replay: it shows replay, not the weights.
Where one claim of a paper is shown and another is *opposite*, both rows stand. None of them was changed after its
run, also where arms took the edge of a sweep: the largest rate in S002, S096 and S135 (both arms) and in S065, S082
and S163 (the method), the smallest in S095 (both) and in S065 and S082 (the baseline). In S096 the method's
advantages are larger than the baseline's, so that part of its lead may be that of a larger step.

A paper with m claims that were run counts as shown if the interval of one of them at confidence 1 - 0.05 / m
(Bonferroni's correction over its claims, Student's over paired seeds) lies above zero. This rule was fixed before the
mechanisms were run. Stricter readings are beside it: papers that are shown and have no claim that is *opposite*, and
papers by their first claim alone. The intervals and verdicts of the table are those at 95% of each claim by itself.
"""


@cache
def results() -> Mapping[str, list[Mapping[str, Any]]]:
    """Return the shipped summaries by paper, of its first claim first.

    Each has effect, interval, seeds, verdict, name and setting of a claim, and ``counts``: whether it makes the paper
    count as shown, see :func:`counts`.
    """
    file = resources.files("assay.lab").joinpath(FILE)
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def summary(record: Mapping[str, Any]) -> dict[str, Any]:
    """What of a record the package ships."""
    return {
        "name": record.get("name", record["setting"]["name"]),
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
    """Return the summaries of the records in a folder: ``SNNN.json`` is of a first claim, ``SNNN.NAME.json`` not."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("S*.json"), key=lambda p: (p.name.count("."), p.name)):
        record = json.loads(path.read_text(encoding="utf-8"))
        found.setdefault(record["paper"], []).append(summary(record))
    for many in found.values():
        for one in many:
            one["counts"] = counts(one, len(many))
    return dict(sorted(found.items()))


def counts(one: Mapping[str, Any], claims: int) -> bool:
    """Whether a claim's interval at confidence 1 - 0.05 / ``claims`` lies above zero.

    Args:
        one: a summary, whose interval is Student's at 95%.
        claims: of the same paper that were run.
    """
    from scipy import stats

    usual, strict = stats.t.ppf([0.975, 1 - 0.025 / claims], one["seeds"] - 1)
    low = one["value"] - (one["value"] - one["low"]) * strict / usual
    return bool(low > 0)


def verdict(many: Sequence[Mapping[str, Any]]) -> str:
    """Return the verdict on a paper by all of its claims that were run; with one claim it is that claim's."""
    if any(one["counts"] for one in many):
        return "shown"
    return "opposite" if all(one["verdict"] == "opposite" for one in many) else "not shown"


def totals(verdicts: Sequence[str]) -> str:
    """Return how many verdicts there are of each kind."""
    kinds = [k for k in ("shown", "not shown", "opposite") if k in verdicts]
    return ", ".join(f"{verdicts.count(k)} {k}" for k in kinds) or "none"


def page(
    found: Mapping[str, list[dict[str, Any]]], papers: Mapping[str, PaperRow], missing: Sequence[str] | None = None
) -> str:
    """Return docs/lab.md; ``missing`` are the claims it says were not run, :func:`not_run` if left out."""
    rows = ["| paper | claim | setting | measure | baseline → method | effect [95% interval] | seeds | verdict |"]
    rows.append("|" + "---|" * 8)
    for key, r in ((key, r) for key, many in found.items() for r in many):
        means = f"{r['means'][r['baseline']]:.3f} ({r['baseline']}) → {r['means'][r['better']]:.3f} ({r['better']})"
        effect = f"{r['value']:+.3f} [{r['low']:+.3f}, {r['high']:+.3f}]"
        claim = r["claim"] if r["name"] == r["setting"] else f"*{r['name'].capitalize()}:* {r['claim']}"
        cells = [f"{key} {papers[key].name}", claim, f"`{r['setting']}`", f"`{r['measure']}`", means, effect]
        rows.append("| " + " | ".join([*cells, str(r["seeds"]), f"*{r['verdict']}*"]) + " |")
    families = [
        "| family | papers | by all claims | shown, none opposite | by the first claim alone |",
        "|" + "---|" * 5,
    ]
    families += ["| " + " | ".join(map(str, row)) + " |" for row in by_family(found, papers)]
    parts = [INTRODUCTION.strip(), "\n".join(families), "\n".join(rows)]
    if missing := not_run(found) if missing is None else missing:
        parts.insert(1, f"{NOT_RUN}{', '.join(missing)}.")
    return "\n\n".join(parts) + "\n"


def not_run(found: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    """Return paper and name of the claims of imported papers, in the order of ids, that no summary is of."""
    from assay.catalogue.claim import claims_made

    return [
        f"{key} ({claim.label})"
        for key, made in sorted(claims_made().items())
        for claim in made
        if claim.label not in {one["name"] for one in found.get(key, ())}
    ]


def stale(text: str, found: Mapping[str, list[dict[str, Any]]], papers: Mapping[str, PaperRow]) -> str | None:
    """Return what a page has wrong of the claims that it names; ``None`` if nothing. A claim that it lacks is new."""
    line = next((line for line in text.splitlines() if line.startswith(NOT_RUN)), NOT_RUN + ".")
    named = [name for name in line.removeprefix(NOT_RUN).removesuffix(".").split(", ") if name]
    if wrong := sorted(set(named) - set(not_run(found))):
        return f"it says of claims that were run, or that are gone, that they were not run: {', '.join(wrong)}"
    return None if text == page(found, papers, named) else "it is not what the records say"


def by_family(
    found: Mapping[str, list[dict[str, Any]]], papers: Mapping[str, PaperRow]
) -> list[tuple[str, int, str, int, str]]:
    """Return for each family, and for all: its name and how many papers it has, totals by all claims, how many are
    shown and have no claim that is opposite, and totals by the first claims alone.
    """
    names = sorted({papers[key].family for key in found})
    kinds = {name: [key for key in found if papers[key].family == name] for name in names}
    agreed = {
        key
        for key, many in found.items()
        if verdict(many) == "shown" and all(one["verdict"] != "opposite" for one in many)
    }
    return [
        (
            name,
            len(keys),
            totals([verdict(found[k]) for k in keys]),
            len(agreed.intersection(keys)),
            totals([found[k][0]["verdict"] for k in keys]),
        )
        for name, keys in [*kinds.items(), ("all", list(found))]
    ]


def place_of(claim: Claim) -> Path:
    """Return where a claim's record lies in a checkout.

    Raises:
        UsageError: assay does not run from a checkout, or its papers make no such claim.
    """
    from assay.catalogue.claim import claims_made

    root = Path(__file__).parents[2]
    if not (root / "lab").is_dir() or not (root / "docs" / "lab.md").is_file():
        raise UsageError(f"{root} is no checkout of assay with lab/ and docs/lab.md; give --out FILE instead")
    first, *others = claims_made()[claim.paper]
    if claim != first and claim not in others:
        raise UsageError(f"{claim.paper} makes no claim called {claim.label!r} as this one is; register it first")
    return root / "lab" / (f"{claim.paper}.json" if claim == first else f"{claim.paper}.{claim.label}.json")


def published(record: Mapping[str, Any], claim: Claim) -> Path:
    """Write a claim's record into the checkout's lab/, then summary and page anew; return its file."""
    path = place_of(claim)
    path.write_text(record_text(record), encoding="utf-8")
    write(path.parent)
    return path


def write(folder: Path) -> tuple[dict[str, list[dict[str, Any]]], dict[str, PaperRow]]:
    """Write summary and table of the records in ``folder``; return the summaries, and the papers by id."""
    from assay.catalogue import rows

    found, papers = collected(folder), {row.id: row for row in rows()}
    (Path(__file__).parent / FILE).write_text(record_text(found), encoding="utf-8")
    (folder.parent / "docs" / "lab.md").write_text(page(found, papers), encoding="utf-8")
    return found, papers


def main(arguments: list[str]) -> int:
    """Write summary and table."""
    found, papers = write(Path(arguments[0] if arguments else "lab"))
    for key, many in found.items():
        told = "; ".join(f"{r['name']}{' (counts)' if r['counts'] else ''} {r['verdict']}" for r in many)
        print(f"{key} {papers[key].name}: {verdict(many)}, by the first claim {many[0]['verdict']} ({told})")
    for name, n, by_all, agreed, by_first in by_family(found, papers):
        print(f"{name}: {n} papers: {by_all}; {agreed} shown and none opposite; by the first claim alone {by_first}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
