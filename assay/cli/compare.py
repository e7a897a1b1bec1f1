"""``assay compare``: is one method better than another?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, Overrides, Unprotected, protect, say
from assay.printable import printable


def compare(
    recipe: Annotated[str, Positional],
    overrides: Overrides = (),
    methods: str | None = None,
    seeds: int | None = None,
    first_seed: int | None = None,
    tasks: str | None = None,
    sweep: Annotated[tuple[str, ...], tyro.conf.arg(metavar="key=value,value")] = (),
    tuning: int | None = None,
    starts: int | None = None,
    budget: str | None = None,
    points: int | None = None,
    measure: Literal["final", "area"] | None = None,
    jobs: int = 0,
    out: Path | None = None,
    as_json: AsJson = False,
    unsafe_no_sandbox: Unprotected = False,
) -> int:
    """Run methods on the same seeds with an equal budget and an equal sweep, and say which is better, if any is.

    A winner is called where a test that allows for all pairs tells it from every other method. The same command goes on
    after Ctrl-C or a crash; finished runs are not repeated. Whatever is not given here may stand in a table [compare]
    of the recipe.

    Example: assay compare quickstart --methods grpo,S014 --seeds 5 --out runs/compare

    Args:
        recipe: a TOML file; its train.steps is only the default for the budget, its warm-up is made once per seed.
        overrides: changes to the recipe, e.g. tasks.eval_size=200.
        methods: names separated by commas: grpo, papers' ids, `recipe` for the recipe's own [method], labels of its
            [compare.methods], or TOML files with a [method] table, called by their file's name.
        seeds: runs of each method on each task, 2 or more; 5 unless given.
        first_seed: the first of them; 0 unless given.
        tasks: task sources separated by commas; the recipe's unless given.
        sweep: values that every method tries on tuning seeds, e.g. train.lr=1e-4,3e-4; several keys are combined.
        tuning: how many seeds the sweep is run on, from 1000; 2 unless given.
        starts: warm starts that the seeds share, taken in turn; one for each seed unless given. Needs tasks.eval_seed.
        budget: rollouts (what the recipe's steps take), rollouts=12800 or tokens=2e6: sampled in training by each run.
        points: measurements along a run; 8 unless given.
        measure: score of a run: held-out pass@1 at the end, or averaged over the budget.
        jobs: runs side by side; one per core unless given.
        out: folder of the comparison; runs/compare unless given.
        as_json: print the record as JSON.
    """
    import json

    from assay.compare import compare as run
    from assay.compare import read_plan
    from assay.compare.page import words, write
    from assay.errors import UsageError

    if jobs < 0:
        raise UsageError("--jobs is a number of processes, or 0 for one per core")
    protect(unsafe_no_sandbox)
    plan = read_plan(
        recipe,
        overrides,
        methods=methods,
        seeds=seeds,
        first_seed=first_seed,
        tasks=tasks,
        sweep=list(sweep) or None,
        tuning=tuning,
        starts=starts,
        budget=budget,
        points=points,
        measure=measure,
    )
    folder = out or Path("runs") / "compare"
    record = run(
        plan,
        folder,
        jobs,
        say=lambda line: print(printable(line), file=sys.stderr, flush=True),
        unprotected=unsafe_no_sandbox,
    )
    if record is None:
        print("assay: stopped; the same command goes on", file=sys.stderr)
        return 130
    paths = write(record, folder)
    if as_json:
        print(json.dumps(record, indent=1))
        return 0
    say(*words(record), "", *map(str, paths), str(folder / "compare.json"))
    if not any(p.suffix == ".png" for p in paths):
        print("for PNG files: pip install 'assay[png]'")
    return 0
