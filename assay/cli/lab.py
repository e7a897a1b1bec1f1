"""``assay lab``: run a paper's claim in a small controlled setting."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from assay.cli.common import Overrides, Unprotected, print_table, protect, say

LEAST = 5
"""Seeds of a record that is published."""
FEW = 6
"""Pairs from which on the exact sign-flip test, whose smallest p is 2 / 2^n, can fall below 0.05."""


def lab(
    paper: Annotated[str, Positional],
    options: Overrides = (),
    claim: str | None = None,
    setting: str | None = None,
    seeds: int = 5,
    first_seed: int = 0,
    dir: Path | None = None,
    out: Path | None = None,
    publish: bool = False,
    because: str = "",
    unsafe_no_sandbox: Unprotected = False,
) -> int:
    """Run what a paper claims, with and without its method, on the same seeds with equal rollouts; record the effect.

    An interrupted command goes on where it stopped when it is given again. The exit code is 0 whatever the effect is.

    assay lab settings noisy_bandit

    assay lab my_claim.toml --seeds 10

    Example: assay lab S017 --seeds 20

    Args:
        paper: its id, e.g. S001; or a TOML file with a claim of one's own (docs/add-a-method.md); or `settings`, which
            lists the settings that there are, or says what the one named behind it has.
        options: knobs of the setting, e.g. steps=20; the record says so.
        claim: which of its claims, e.g. mechanism; a claim without a name is called as its setting. The first unless
            given.
        setting: the same, for claims called as their setting.
        seeds: pairs of runs, 2 or more.
        first_seed: the first of them; the others follow.
        dir: where the runs are kept; runs/lab/PAPER unless given.
        out: file of the record, JSON; record.json in the folder of the runs unless given.
        publish: in a checkout of assay: put the record into lab/ and make its row in docs/lab.md, and the summary that
            the package ships, again. For the claim as it stands (no options) and at least 5 seeds.
        because: why the claim is run again: runs in its folder, and the record that is replaced, are thrown away, which
            the new record says with this reason.
        unsafe_no_sandbox: run programs from responses without protection.
    """
    import tomllib

    from assay.catalogue.claim import claim_of
    from assay.errors import UsageError
    from assay.lab.own import claim_in
    from assay.lab.paired import run_claim
    from assay.lab.results import place_of, published
    from assay.records.files import write_text
    from assay.records.run_folder import environment

    if paper == "settings":
        return _settings(*options)
    protect(unsafe_no_sandbox)
    if claim and setting:
        raise UsageError("give --claim or --setting, not both: either says which of the claims is run")
    label = claim or setting
    own = paper.endswith(".toml")
    if own and (label or publish):
        raise UsageError(f"{paper} has one claim, which is not of a paper: leave out --claim, --setting and --publish")
    chosen = claim_in(Path(paper)) if own else claim_of(paper, label)
    if publish:
        if options or seeds < LEAST or out is not None:
            raise UsageError(
                f"--publish is for a claim as it stands: without options, without --out and with at least {LEAST} seeds"
            )
        if place_of(chosen).is_file() and not because:  # what cannot be published is said before it is run
            raise UsageError(f"{place_of(chosen)} has a record of this claim; say with --because why it is run again")
    knobs = {}
    for option in options:
        name, _equals, value = option.partition("=")
        try:
            knobs[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            raise UsageError(f"option {option!r} is not of the form name=number") from None
    if 2 <= seeds < FEW:
        told = f"with {seeds} seeds the sign-flip test cannot fall below p {2 / 2**seeds:.2g}, whatever is found"
        print(f"assay: {told}; --seeds {FEW} can", file=sys.stderr)
    folder = dir or Path("runs") / "lab" / (f"{chosen.paper}.{label}" if label else chosen.paper)
    record = run_claim(
        chosen,
        folder,
        range(first_seed, first_seed + seeds),
        knobs,
        say=lambda line: print(line, flush=True),
        because=because,
    )
    here = {k: v for k, v in environment().items() if k != "command"}
    path, whole = out or folder / "record.json", {**record, "environment": here}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(whole, indent=1) + "\n")
    if publish:
        path = published(whole, chosen, because)
    effect = record["effect"]
    means = ", ".join(f"{arm} {value:.4f}" for arm, value in record["means"].items())
    print(f"{chosen.paper}: {chosen.text}")
    print(f"{chosen.measure}: {means}")
    print(
        f"effect {effect['value']:+.4f} [{effect['low']:+.4f}, {effect['high']:+.4f}], {effect['seeds']} paired seeds, "
        f"sign-flip p {record['sign_flip']:.3g}"
    )
    for reason in record["unsettled"]:
        print(reason)
    print(f"{record['verdict']}; record: {path}")
    return 0


def _settings(*names: str) -> int:
    """Print the lab's settings, a line each, or what those that are named have."""
    from inspect import getdoc

    from assay.errors import UsageError, nearest
    from assay.lab.settings import settings
    from assay.tables.parts import options

    known = settings()
    for name in names:
        if name not in known:
            raise UsageError(f"the lab has no setting {name!r}{nearest(name, known)}")
        said = (getdoc(known[name]) or "").partition("\nArgs:")[0].rstrip()
        say(f"setting {name} ({known[name].__module__})", "", said, "", getdoc(known[name].run) or "", "")
        knobs = [(o.name, o.type, o.default, o.about) for o in options(known[name])]
        print_table(("knob", "type", "default", "meaning"), knobs)
    if not names:
        first = {name: (getdoc(of) or "").partition("\n\n")[0] for name, of in known.items()}
        print_table(("setting", "what it is"), [(name, " ".join(text.split())) for name, text in first.items()])
    return 0
