"""Do two verifiers agree on the same responses, and where they differ, is one of them better?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.audit.outcome import DECISIONS, Outcome
from assay.statistics.agreement import Table, kappa, mcnemar
from assay.statistics.rate import Rate, defined


def agreement(labels: Sequence[bool], first: Sequence[Outcome], second: Sequence[Outcome]) -> dict[str, Any]:
    """Compare two verifiers' outcomes on the same labelled rows, as plain data.

    Only rows that both decided are compared; ``undecided`` counts the others. ``agree`` is the share of equal
    decisions, ``kappa`` Cohen's. Each of the ``tests`` asks whether one verifier does something more often than the
    other (``accepts``, ``errors``, ``false_negatives``, ``false_positives``): in how many rows only the ``first`` or
    only the ``second`` does, with McNemar's exact ``p``. ``disagreements`` are the indices of the rows that differ,
    those where the first errs before those where the second does.
    """
    decided = [
        (i, label, DECISIONS[a.status], DECISIONS[b.status])
        for i, (label, a, b) in enumerate(zip(labels, first, second, strict=True))
        if a.status in DECISIONS and b.status in DECISIONS
    ]
    table = Table.count((a, b) for _, _, a, b in decided)
    errors = Table.count((a != label, b != label) for _, label, a, b in decided)
    on_right = Table.count((not a, not b) for _, label, a, b in decided if label)
    on_wrong = Table.count((a, b) for _, label, a, b in decided if not label)
    agreed = Rate.of(table.both + table.neither, table.total)
    found = kappa(table)
    differ = sorted((b != label, i) for i, label, a, b in decided if a != b)

    def test(t: Table) -> dict[str, Any]:
        return {"first": t.first, "second": t.second, "p": mcnemar(t.first, t.second)}

    return {
        "rows": len(labels),
        "decided": len(decided),
        "undecided": len(labels) - len(decided),
        "table": {"both": table.both, "first": table.first, "second": table.second, "neither": table.neither},
        "agree": {k: defined(getattr(agreed, k)) for k in ("value", "low", "high")},
        "kappa": {k: defined(getattr(found, k)) for k in ("value", "low", "high")},
        "tests": {
            "accepts": test(table),
            "errors": test(errors),
            "false_negatives": test(on_right),
            "false_positives": test(on_wrong),
        },
        "disagreements": [i for _, i in differ],
    }
