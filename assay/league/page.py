"""docs/league.md, the table of each setting, and its page with the learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.compare.page import render
from assay.compare.record import SCHEMA, judged
from assay.compare.standing import BASELINE, LEAST, WIDE, Origin, Stand, counted
from assay.league import strategies, strategies_table
from assay.league.places import place
from assay.league.settings import SETTINGS, Setting, load
from assay.league.standing import records, standing
from assay.records.files import write_text

HEAD = (
    "method",
    "effect on the measure, points",
    "p",
    "seeds",
    "measure",
    "pass@1",
    f"pass@{WIDE}",
    "tokens",
    "step",
    "beside",
    "tuned",
    "ran at",
)

INTRODUCTION = f"""
# The league

Made by `assay league` from the records in `league/`; do not edit. Methods train the same language models from the same
starts, on the same seeds and with equal budgets; each is tuned by one rule: three learning rates, on two seeds that do
not count, and further ones beyond an end at which it does best. `assay league L1 --methods S017,rloo` runs methods and
makes this page again; runs go on where they were stopped, on another day or machine too. Another machine makes other
starts of the same seeds, so GRPO is run from these as well. A method of your own is `--methods my.toml`, a file with
its `[method]` table.

*Effect*: mean difference from GRPO over pairs of runs with the same seed and start, in percentage points of the
measure, with Student's 95% interval; *p* is that of the t-test by Holm over all methods of the table, beside it the
exact sign-flip test of the method alone. *pass@1* and *pass@{WIDE}* are of held-out tasks where the budget is spent;
*tokens*: per response in training; *step*: seconds of a step by GRPO's, the median over pairs, of the processor where
the model was on it; *beside*: the share of a step that is neither sampling nor updates; *ran at*: commit and machine.
Methods with fewer than {LEAST} pairs do not stand here yet. Losing rows stay. Those of methods that show the model a
solution or a hint in its prompt (S031, S083, S147, S155) say no more than that a model makes nothing of it here: one
from scratch has never been shown any.
"""
STRATEGIES = """\
Strategies draw from the same responses on record, and ask the model for anything else. *Effect*: mean difference from \
majority vote in accuracy under the largest budget, paired by task, a task's own being the mean over the checkpoints; \
*p* by Holm over the table. *By step*: accuracy at each checkpoint; *of fewer*: under smaller budgets; *tokens*: by \
majority vote's; *scoring*: share of them that scored responses; *unanswered*: tasks that the strategy left so."""
WORDS = {"area": "the area under held-out pass@1 over the budget", "final": "held-out pass@1 where the budget is spent"}


def page(store: Path) -> str:
    """Return docs/league.md from the records in ``store/SETTING``, for the settings that have a baseline."""
    parts = [INTRODUCTION.strip()]
    for name in SETTINGS:
        if (store / name / f"{BASELINE}.json").is_file():
            setting = load(name)
            measure = WORDS[setting.measure]
            found = standing(setting, records(setting, store / name))
            parts += [
                f"## {name}",
                f"{setting.about} The measure is {measure}. Curves: `league/{name}.html`.",
                table(found),
            ]
    for name in strategies.SETTINGS:
        here = strategies.load(name)
        if kept := strategies_table.records(here, store / name):
            stands = strategies_table.standing(here, kept)
            parts += [f"## {name}", f"{here.about} {STRATEGIES}", strategies_table.table(here, stands)]
    return "\n\n".join(parts) + "\n"


def table(stands: Sequence[Stand]) -> str:
    """Return a setting's table in Markdown."""
    lines: list[Sequence[str]] = [HEAD, ["---"] * len(HEAD), *map(cells, stands)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cells(stand: Stand) -> Sequence[str]:
    """Return the row of a method."""
    effect, p = "baseline", ""
    if stand.effect is not None:
        low, high = 100 * stand.effect.low, 100 * stand.effect.high
        effect = f"{100 * stand.effect.value:+.2f} [{low:+.2f}, {high:+.2f}]"
        p = f"{stand.p:.2g}; {stand.flip:.2g}"
    seeds = f"{stand.effect.seeds}" if stand.effect is not None else _seeds(counted(stand.record))
    fell = f"; {stand.fell} fell" if stand.fell else ""
    tuned = ", ".join(f"{key.removeprefix('train.')} {value:g}" for key, value in stand.record["chosen"].items())
    tuned += "".join(f"; {reason}" for reason in stand.record["unsettled"])
    where = dict.fromkeys(map(place, stand.record["environments"]))
    shares = [f"{100 * value:.1f}%" for value in (stand.measure, stand.final, stand.wide)]
    costs = [f"{stand.tokens:.1f}", f"{stand.cost:.2f}", f"{100 * stand.beside:.0f}%"]
    return [stand.label, effect, p, seeds + fell, *shares, *costs, tuned, "; ".join(where)]


def _seeds(runs: Mapping[Origin, Any]) -> str:
    """Tell how many seeds, and how many runs where some began from several starts."""
    seeds = len({seed for seed, _ in runs})
    return f"{seeds}" if seeds == len(runs) else f"{seeds}, in {len(runs)} runs"


def curves(setting: Setting, found: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the page of a setting's learning curves; ``None`` while fewer than two methods have enough seeds.

    Its curves are of the same seeds and starts. Where machines have made different ones, these are those with which the
    most methods stand on the page.
    """
    runs = {label: counted(record) for label, record in found.items()}
    sets = [set(mine) for label, mine in runs.items() if label != BASELINE and len(mine) >= LEAST]
    shared = max((s & set(runs[BASELINE]) for s in sets), key=lambda s: _held(runs, s), default=set())
    runs = {label: mine for label, mine in runs.items() if shared <= set(mine)}
    if len(shared) < LEAST:
        return None
    plan = setting.plan(BASELINE, {"name": BASELINE})
    numbered = dict(enumerate(sorted(shared)))
    told = plan.describe() | {"methods": {label: found[label]["method"] for label in runs}, "seeds": list(numbered)}
    [task] = told["tasks"]
    return render(
        judged(
            {
                "schema": SCHEMA,
                "plan": told,
                "tried": {label: rows(found[label]["tried"]) for label in runs},
                "chosen": {label: found[label]["chosen"] for label in runs},
                "runs": [
                    {"method": label, "task": task, "seed": number, **mine[each]}
                    for label, mine in runs.items()
                    for number, each in numbered.items()
                ],
                "failed": {},
                "environment": found[BASELINE]["environments"][0],
            }
        )
    )


def _held(runs: Mapping[str, Mapping[Origin, Any]], shared: set[Origin]) -> tuple[int, int]:
    """How many methods have all these runs, and how many runs these are."""
    return sum(shared <= set(mine) for mine in runs.values()) if len(shared) >= LEAST else 0, len(shared)


def rows(tried: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"values": {k: v for k, v in row.items() if k != "mean"}, "mean": row["mean"]} for row in tried]


def write(store: Path, docs: Path) -> list[Path]:
    """Write docs/league.md and each setting's curves; return the files."""
    paths = [docs / "league.md"]
    write_text(paths[0], page(store))
    for name in SETTINGS:
        if (store / name / f"{BASELINE}.json").is_file():
            text = curves(load(name), records(load(name), store / name))
            if text is not None:
                paths.append(store / f"{name}.html")
                write_text(paths[-1], text)
    return paths
