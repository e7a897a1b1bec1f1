"""What the lab found, for the index of papers and for docs/lab.md: ``python -m assay.lab.results [FOLDER]``.

Reads the records ``FOLDER/SNNN.json`` (lab/ unless given), and of claims run once more ``FOLDER/again/``. Writes their
summary, which the package ships, and the pages ``docs/lab.md`` and ``docs/lab-arms.md``. Prints the verdict on each
paper, and the totals.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.lab.judged import count, summary, verdict
from assay.lab.page import Again, arms, page
from assay.records.record_text import record_text

if TYPE_CHECKING:
    from assay.catalogue.claim import Claim
    from assay.catalogue.papers import PaperRow

FILE = "results.json"
KEPT = ("measure", "effect", "means", "verdict", "setting", "sweep", "chosen", "seeds", "environment")
"""What of a record is kept once the claim was run again."""


@cache
def results() -> Mapping[str, list[Mapping[str, Any]]]:
    """Return the shipped summaries by paper, of its first claim first; see :func:`~assay.lab.judged.summary`."""
    file = resources.files("assay.lab").joinpath(FILE)
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def records(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the records in a folder by paper: ``SNNN.json`` is of a first claim, ``SNNN.NAME.json`` not."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("S*.json"), key=lambda p: (p.name.count("."), p.name)):
        record = json.loads(path.read_text(encoding="utf-8"))
        found.setdefault(record["paper"], []).append(record)
    return dict(sorted(found.items()))


def collected(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the summaries of the records in a folder."""
    return {key: [summary(one, evidence(one)) for one in many] for key, many in records(folder).items()}


def again(folder: Path) -> list[Again]:
    """Return what came of the claims that were drawn and run once more on other seeds, ``FOLDER/again``."""
    found = []
    for path in sorted((folder / "again").glob("S*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        found.append(Again(path.stem, record["before"], summary(record, evidence(record))["verdict"]))
    return found


def evidence(record: Mapping[str, Any]) -> str:
    """Return what a record is evidence of, as the claim of its paper says today; of none, a claim."""
    from assay.catalogue import find
    from assay.catalogue.claim import claims_made

    find(record["paper"])  # makes its claims
    name = record.get("name", record["setting"]["name"])
    made = {claim.label: claim.kind for claim in claims_made().get(record["paper"], ())}
    return made.get(name) or "claim"


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


def published(record: Mapping[str, Any], claim: Claim, because: str = "") -> Path:
    """Write a claim's record into the checkout's lab/, then summary and pages anew; return its file.

    A record that is there already is replaced; what it found stays in the new one as ``earlier``, with the reason.
    """
    path, earlier = place_of(claim), []
    if path.is_file():
        old = json.loads(path.read_text(encoding="utf-8"))
        earlier = [*old.get("earlier", []), {"because": because} | {k: old.get(k) for k in KEPT}]
    path.write_text(record_text({**record, "earlier": earlier}), encoding="utf-8")
    write(path.parent)
    return path


def write(folder: Path) -> tuple[dict[str, list[dict[str, Any]]], dict[str, PaperRow]]:
    """Write summary and table of the records in ``folder``; return the summaries, and the papers by id."""
    from assay.catalogue import rows

    papers = {row.id: row for row in rows()}
    found, docs = collected(folder), folder.parent / "docs"
    (Path(__file__).parent / FILE).write_text(record_text(found), encoding="utf-8")
    (docs / "lab.md").write_text(page(found, papers, again(folder)), encoding="utf-8")
    (docs / "lab-arms.md").write_text(arms(records(folder), papers), encoding="utf-8")
    return found, papers


def main(arguments: list[str]) -> int:
    """Write summary and pages."""
    found, papers = write(Path(arguments[0] if arguments else "lab"))
    for key, many in found.items():
        told = "; ".join(f"{one['name']} ({one['evidence']}) {one['verdict']}" for one in many)
        print(f"{key} {papers[key].name}: {verdict(many)}: {told}")
    print(f"{len(found)} papers: {count([verdict(many) for many in found.values()])}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
