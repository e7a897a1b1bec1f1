"""docs/lab.md, a row for each claim that was run, and docs/lab-arms.md, all arms of each with their side effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from assay.lab.judged import VERDICTS, verdict

if TYPE_CHECKING:
    from assay.catalogue.papers import PaperRow

Summaries = Mapping[str, Sequence[Mapping[str, Any]]]

NOT_RUN = "Fixed but not run yet, and so without a row: "
SIDES = 8
"""Measures beside the claim's own that docs/lab-arms.md prints; the records in lab/ have all of them."""

INTRODUCTION = """
# What the lab found

Made by `python -m assay.lab.results` from the records in `lab/`; do not edit. `assay lab S014 --seeds 20 --publish`
runs a claim, leaves its record there and makes this page again. Each row is a claim of a paper, put into a small
controlled setting before it was run: the method against a baseline on the same seeds, with equal rollouts and the
same sweep of learning rates for both. A small setting that does not show a claim says nothing against the paper at
its own scale. All arms of each claim, and what else was measured, are in [lab-arms.md](lab-arms.md).

**Verdicts.** The effect is the mean difference of the measure over paired seeds, with Student's 95% interval: *shown*
if it lies above zero, *opposite* if it lies below. Beside it stands the p-value of the exact sign-flip test, which
takes nothing for granted of how runs are distributed, and how many runs of which arm fell far below the others: where
one in ten does, Student's interval covers too rarely. A claim is *inconclusive* whatever its effect is if either arm
did best at an end of its learning rates and the next rate was worse by more than a tenth of the effect, or if no
rates were tried: the difference may then be one of tuning. Nor does anything follow if no seed's runs differ by a
thousandth of the measure: both arms are at a ceiling or at a floor, or do the same. The runner widens a sweep by
itself, alike for all arms, to a hundred times beyond its first ends. Where the claim is of what training leaves, such
as variety, and tuning would choose not to train, arms have equal rates, and the claim has to hold *at each* of
several; the row is of the one where the effect is least.

**Evidence.** *Claim*: what the paper says comes of its method. *Mechanism*: that it works by what it is said to work
by, in a setting that isolates it; this says that the mechanism is there, not how much it matters elsewhere. *By
construction*: the setting was given what decides the matter, such as how good a judge is or how often a verifier
errs; such a row shows that the code does what it should.

**Papers.** A paper is *shown* if its first claim is, every further claim (a replication in another setting) has the
same sign, and none is opposite. Failing that it is *opposite* if its first claim is; *mechanism* or *by construction*
if a claim of that kind is shown and none of the kind is opposite; *inconclusive* if the first claim is; otherwise
*not shown*.

**History.** A claim that was run again keeps what it found before in its record, with the reason; the table says how
often. Before this rule, claims were run again whose arms had ended at a ceiling or at the edge of a sweep, and those
first records are not kept (S002, S014, S016, S017, S034, S064, S067, S069, S078, S088, S096, S135, S200, S205, S221);
S055 and S081 were moved to another setting and given more seeds after a first look; the settings of S033, S050, S052,
S120, S219 and S224 were changed after trial runs of a seed or two, and so were those of S046, S057, S060, S139, S185
and S191, mostly for their cost. In trials of S130 and S124 the baseline won: in S130's tabular tree with one right
path, and in S124's first task, where wrong steps were the improbable ones by construction; other settings took their
place, so *shown* is said of these alone. The settings of S042, S080, S107, S190, S210 and S215 were made smaller
after single runs, S210's after one that favoured the claim; that of S092 was changed twice after looks at one seed,
to steps that are equal and variations that share what is right in them; those of S103, S153, S159, S223 and S031
after tries of single arms in which none learned or all were dear; those of S084 and S172 were made smaller after
trials at a ceiling, in which S172's way was already ahead at the lower rates. The settings of S113, S168 and S177
were changed after trials on one seed or the tuning seeds, S177's for its cost after one in which its baseline led.
Claims called *mechanism* of papers on policy objectives were added once the first ones were known not to be shown;
setting, measure and sweep were written down before they were run.
"""

AGAIN = """
**Once more.** Claims drawn by `random.Random(2026).sample` from the records in the order of their names were run on
new seeds, from 5000 on (`lab/again/`), to see whether what is said of them hangs on the seeds.
"""

ARMS = """
# All arms of the lab's claims

Made by `python -m assay.lab.results` from the records in `lab/`; do not edit. Means over the seeds, of the measure of
the claim first and then of others that a claim could have bought its effect with. The arms that the claim compares are
marked; the rest are there to be read against them.
"""


class Again(NamedTuple):
    """A claim that was run once more on other seeds, its verdict until then, and what the new seeds say."""

    name: str
    before: str
    now: str


def page(
    found: Summaries,
    papers: Mapping[str, PaperRow],
    again: Sequence[Again] = (),
    missing: Sequence[str] | None = None,
) -> str:
    """Return docs/lab.md; ``missing`` are the claims it says were not run, :func:`not_run` if left out."""
    parts = [INTRODUCTION.strip(), *([once_more(again)] if again else []), by_family(found, papers)]
    if missing := not_run(found) if missing is None else missing:
        parts.append(f"{NOT_RUN}{', '.join(missing)}.")
    head = ("paper", "evidence", "claim", "setting", "measure", "baseline → method", "effect", "seeds", "verdict")
    rows = [cells(key, one, papers) for key, many in found.items() for one in many]
    return "\n\n".join([*parts, table(head, rows)]) + "\n"


def cells(key: str, one: Mapping[str, Any], papers: Mapping[str, PaperRow]) -> Sequence[str]:
    """Return the row of a claim."""
    means = " → ".join(f"{one['means'][one[arm]]:.3f} ({one[arm]})" for arm in ("baseline", "better"))
    top = max(one["means"][one[arm]] for arm in ("better", "baseline"))
    if ahead := [arm for arm, mean in one["means"].items() if mean > top]:
        means += f"; above both: {', '.join(ahead)}"
    effect = f"{one['value']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}], p {one['sign_flip']:.2g}"
    fell = "".join(f"; {n} fell of {arm}" for arm, n in one["collapsed"].items())
    reasons = "".join(f"; {reason}" for reason in one["unsettled"])
    kind = "by construction" if one["evidence"] == "construction" else one["evidence"]
    at = "".join(f"; at each {name} of {', '.join(map(str, each))}" for name, each in one.get("each", {}).items())
    said = f"*{one['verdict']}*{reasons}{at}" + (f"; run {one['runs']}" if one["runs"] > 1 else "")
    what = (f"{key} {papers[key].name}", kind, one["claim"], f"`{one['setting']}`", f"`{one['measure']}`")
    return (*what, means, effect, f"{one['seeds']}{fell}", said)


def once_more(again: Sequence[Again]) -> str:
    """Return how many of the claims that were run again kept their verdict, and what became of the others."""
    changed = [f"{one.name} was *{one.before}* and is *{one.now}*" for one in again if one.now != one.before]
    kept = f"{len(again) - len(changed)} kept their verdict{'; ' if changed else ''}{', '.join(changed)}."
    return f"{AGAIN.strip()}\nOf {len(again)}, {kept}"


def by_family(found: Summaries, papers: Mapping[str, PaperRow]) -> str:
    """Return the headline: of each family, and of all, how many papers have which verdict."""
    names = sorted({papers[key].family for key in found})
    of = {name: [verdict(found[key]) for key in found if papers[key].family == name] for name in names}
    of["all"] = [verdict(many) for many in found.values()]
    rows = [[name, len(said), *(said.count(kind) for kind in VERDICTS)] for name, said in of.items()]
    return table(("family", "papers", *VERDICTS), rows)


def table(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def arms(found: Mapping[str, Sequence[Mapping[str, Any]]], papers: Mapping[str, PaperRow]) -> str:
    """Return docs/lab-arms.md from the records by paper."""
    parts = [ARMS.strip()]
    for key, many in found.items():
        for one in many:
            name = one.get("name", one["setting"]["name"])
            parts += [f"## {key} {papers[key].name}: {name}", one["claim"], table(*measured(one))]
            parts += [table(*measured({**one, **other})) for other in one.get("beside", ())]
    return "\n\n".join(parts) + "\n"


def measured(record: Mapping[str, Any]) -> tuple[Sequence[str], list[list[str]]]:
    """Return head and rows of the table of a record's arms."""
    measures = sides(record)
    marks = {record["better"]: " (method)", record["baseline"]: " (baseline)"}
    rows = []
    for arm in record["arms"]:
        runs = [run for run in record["runs"] if run["arm"] == arm]
        means = [np.mean([run[name] for run in runs if name in run] or [np.nan]) for name in measures]
        rates = ", ".join(f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in chosen(record, arm).items())
        rows.append([f"{arm}{marks.get(arm, '')}", *(f"{mean:.4g}" for mean in means), rates])
    return ("arm", *(f"`{name}`" for name in measures), "chosen"), rows


def chosen(record: Mapping[str, Any], arm: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = record.get("chosen", {}).get(arm, {})
    return found


def sides(record: Mapping[str, Any]) -> list[str]:
    """Return the measure of a claim, and up to :data:`SIDES` others that some run differs from another in."""
    values: dict[str, set[float]] = {}
    for run in record["runs"]:
        for name, value in run.items():
            if isinstance(value, int | float) and name not in ("seed", "seconds", record["measure"]):
                values.setdefault(name, set()).add(value)
    return [record["measure"], *[name for name, seen in values.items() if len(seen) > 1][:SIDES]]


def not_run(found: Summaries) -> list[str]:
    """Return paper and name of the claims of imported papers, in the order of ids, that no summary is of."""
    from assay.catalogue.claim import claims_made

    return [
        f"{key} ({claim.label})"
        for key, made in sorted(claims_made().items())
        for claim in made
        if claim.label not in {one["name"] for one in found.get(key, ())}
    ]


def stale(text: str, found: Summaries, papers: Mapping[str, PaperRow], again: Sequence[Again] = ()) -> str | None:
    """Return what a page has wrong of the claims that it names; ``None`` if nothing. A claim that it lacks is new."""
    line = next((line for line in text.splitlines() if line.startswith(NOT_RUN)), NOT_RUN + ".")
    named = [name for name in line.removeprefix(NOT_RUN).removesuffix(".").split(", ") if name]
    if wrong := sorted(set(named) - set(not_run(found))):
        return f"it says of claims that were run, or that are gone, that they were not run: {', '.join(wrong)}"
    return None if text == page(found, papers, again, named) else "it is not what the records say"
