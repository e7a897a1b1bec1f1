"""``assay league``: run methods in the league's settings, and make its table."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from assay.cli.common import Unprotected, protect, say
from assay.printable import printable


def league(
    setting: Annotated[str, Positional],
    methods: str = "",
    seeds: int | None = None,
    jobs: int = 0,
    dir: Path | None = None,
    out: Path | None = None,
    unsafe_no_sandbox: Unprotected = False,
) -> int:
    """Run methods in a setting of the league, each against the same GRPO on the same seeds, and make the table.

    The same command goes on after Ctrl-C, a crash, or on another machine with the records: a run that they have is not
    repeated. GRPO is run too where its record is not whole.

    assay league L4 --methods "sample,best_of_n(scorer=confidence),S043"

    Example: assay league L1 --methods S017,rloo

    Args:
        setting: L1, L2, L2-noisy, L2-length or L3, in which methods learn, or L4, in which strategies answer at test
            time; docs/league.md has what they ask.
        methods: separated by commas: names of standard methods (reinforce, rloo, dr-grpo, dapo, gspo, cispo,
            reinforce++, opo, ppo), papers' ids, or TOML files with a [method] table, called by their file's name; in L4
            strategies, as assay eval takes them. None makes the table from the records there are.
        seeds: run only the first so many of the setting's seeds, 2 or more, where methods learn; the same command with
            more goes on from there. A method has its place in the table from 5 on.
        jobs: runs side by side, where methods learn; one per core unless given.
        dir: where the runs are kept; runs/league/SETTING unless given.
        out: where records and pages go; in a checkout of assay league/ and docs/, otherwise the folder of the runs.
        unsafe_no_sandbox: run programs from responses without protection.
    """
    from assay.errors import UsageError
    from assay.league import SETTINGS, strategies
    from assay.league.page import write
    from assay.league.places import places

    if jobs < 0:
        raise UsageError("--jobs is a number of processes, or 0 for one per core")
    protect(unsafe_no_sandbox)
    there = (*SETTINGS, *strategies.SETTINGS)
    name = next((name for name in there if name.lower() == setting.lower()), None)
    if name is None:
        raise UsageError(f"the league has no setting {setting!r}; its settings are {', '.join(there)}")
    folder = dir or Path("runs") / "league" / name
    store, docs = places(out or folder, given=out is not None)
    if name in strategies.SETTINGS:
        if seeds is not None:
            raise UsageError(f"{name} has no seeds: every strategy answers from the same responses; leave out --seeds")
        if entered := strategies.entrants(methods):
            named = dict.fromkeys([strategies.BASELINE, *entered])
            strategies.enter(strategies.load(name), list(named), folder, store / name, _told)
    elif not _trained(name, methods, seeds, folder, store / name, jobs, unsafe_no_sandbox):
        print("assay: stopped; the same command goes on", file=sys.stderr)
        return 130
    docs.mkdir(parents=True, exist_ok=True)
    paths = write(store, docs)
    say(*map(str, paths))
    return 0


def _trained(
    setting: str, methods: str, seeds: int | None, folder: Path, store: Path, jobs: int, unprotected: bool
) -> bool:
    """Run methods that learn; say whether all of it was done."""
    from assay.compare.standing import BASELINE
    from assay.league import enter, load
    from assay.league.settings import entrant

    here = replace(load(setting), seeds=seeds)
    entrants = dict(entrant(name.strip()) for name in methods.split(",") if name.strip())
    for label, method in entrants.items():  # what does not fit is said before anything runs
        here.plan(label, method)
    if not entrants:
        return True
    named = {BASELINE: {"name": BASELINE}} | entrants
    return enter(here, named, folder, store, jobs, say=_told, unprotected=unprotected) is not None


def _told(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
