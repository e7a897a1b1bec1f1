"""``assay papers``: which papers are there, and how far."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, mentions, plain, print_table
from assay.cli.parts import show_part
from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.catalogue import PaperRow
    from assay.catalogue.shown import Shown


def papers_list(
    words: Annotated[str, Positional, tyro.conf.arg(metavar="[WORDS]")] = "", as_json: AsJson = False
) -> int:
    """List the 226 papers: the state of each implementation, what the lab found, the seams it changes.

    ``faults`` is the share of small faults put into its code that its tests noticed, where that was tried.

    assay papers list "test time"

    Example: assay papers

    Args:
        words: of the papers that say all of them in title, name, family or what they cannot do without; all if left
            out.
        as_json: print JSON.
    """
    from assay.catalogue import listed
    from assay.catalogue.mutants import scores
    from assay.lab.judged import count, verdict
    from assay.lab.results import results

    found = [row for row in listed() if mentions(_said(row), words)]
    if not found:
        raise UsageError(
            f"no paper says {words!r} in title, name, family or essentials; assay parts WORDS looks for parts"
        )
    lab = {r.id: verdict(results()[r.id]) if r.id in results() else "" for r in found}
    noticed = {key: score.percent for key, score in scores().items()}
    if as_json:
        print(json.dumps([plain(r) | {"lab": lab[r.id], "faults": noticed.get(r.id, "")} for r in found]))
        return 0
    print_table(
        ("id", "state", "faults", "lab", "seams", "title"),
        [(r.id, r.state, noticed.get(r.id, ""), lab[r.id], " ".join(r.seams), r.title) for r in found],
    )
    counts = {state: sum(r.state == state for r in found) for state in ("exact", "partial", "absent")}
    told = ", ".join(f"{n} {state}" for state, n in counts.items())
    print(f"{len(found)} papers: {told}; in the lab: {count([said for said in lab.values() if said])}")
    return 0


def _said(row: PaperRow) -> tuple[str, ...]:
    return row.id, row.title, row.name, row.family, *row.seams, *(what for what, _ in row.essentials)


def papers_show(key: Annotated[str, Positional], as_json: AsJson = False) -> int:
    """Show one paper, standard method or part: equation, options, claim and what the lab found.

    Example: assay papers show dapo

    Args:
        key: its id or name, e.g. S014, dapo, gspo.
        as_json: print JSON.
    """
    from assay.catalogue.mutants import scores
    from assay.catalogue.shown import shown

    try:
        said = shown(key)
    except UsageError:
        if not _standard(key.lower(), as_json):
            raise
        return 0
    found = said.row
    row = plain(found) | about(said)
    if as_json:
        print(json.dumps(row))
        return 0
    if score := scores().get(found.id):
        row["faults"] = f"{score.caught} of {score.made} put into its code noticed by its tests"
    text, essentials, choices = row.pop("text"), row.pop("essentials"), row.pop("choices")
    print("\n".join(f"{k:>8}  {' '.join(v) if isinstance(v, list | tuple) else v}" for k, v in row.items() if v))
    if essentials:
        print("\nessentials, and the tests that show them:")
        print("\n".join(f"  {what}\n    {test}" for what, test in essentials))
    if choices:
        print("\nleft open by the paper, chosen here:")
        print("\n".join(f"  {choice}" for choice in choices))
    if text:
        print(f"\n{text}")
    return 0


def _standard(key: str, as_json: bool) -> bool:
    """Show the standard method of this name, with the parts it is made of, or the parts of this name; if there are."""
    from assay.method.standard import note, standard, standard_name
    from assay.registry import PACKAGES, names
    from assay.tables.parts import row
    from assay.tables.settings import inline

    label = standard_name(key)
    method = dict(standard()[label]) if label is not None else None
    if method is not None:
        whole = {"credit": "grpo", "objective": "clip", **method}
        named = {seam: spec["name"] if isinstance(spec, Mapping) else spec for seam, spec in whole.items()}
        found = [row(seam, str(name)) for seam, name in named.items() if seam in PACKAGES]
    else:
        found = [row(seam, key) for seam in PACKAGES if key in names(seam)]
    if method is None and not found:
        return False
    if as_json:
        said = {"name": label or key, "method": method, "note": note(label or "")}
        print(json.dumps({**said, "parts": [part.plain() for part in found]}))
        return True
    if method is not None:
        print(f"{label}, a standard method: what it changes of grpo, as a recipe writes it\n\n[method]")
        print("\n".join(f"{seam} = {inline(spec)}" for seam, spec in method.items()))
        if other := note(label or ""):
            print(f"\n{other[0].upper()}{other[1:]}")
    for part in found:
        print()
        show_part(part)
    return True


def about(paper: Shown) -> dict[str, Any]:
    """What an implementation says of itself: its options and docstring, and its claim with the lab's finding."""
    from assay.lab.results import results

    id, labels = paper.row.id, [label for _, label in paper.claims]
    said = {r["name"]: f"{r['verdict']} ({r['name']}): {r['measure']} {_effect(r)}" for r in results().get(id, [])}
    todo = {label: f"not run ({label}): `assay lab {id} --claim {label}`" for label in labels}
    return {
        "options": paper.options,
        "claim": paper.claims[0][0] if paper.claims else "",
        "lab": "; ".join((todo | said)[label] for label in labels),
        "text": paper.text,
    }


def _effect(r: Mapping[str, Any]) -> str:
    return f"{r['value']:+.3f} [{r['low']:+.3f}, {r['high']:+.3f}], {r['seeds']} paired seeds"
