"""A setting's records as it is today, and where its methods stand in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.compare.standing import BASELINE, Stand
from assay.compare.standing import standing as stands
from assay.errors import UsageError
from assay.league.settings import Setting


def records(setting: Setting, store: Path) -> dict[str, dict[str, Any]]:
    """Return the records of a setting as it is today, by label, the baseline first.

    Raises:
        UsageError: none is of the baseline.
    """
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(store.glob("*.json"))]
    now = {record["label"]: record for record in found if record["fingerprint"] == setting.fingerprint}
    if BASELINE not in now:
        raise UsageError(f"{store} has no record of {BASELINE} in {setting.name} as it is today; run that first")
    return {BASELINE: now.pop(BASELINE), **now}


def standing(setting: Setting, found: Mapping[str, Mapping[str, Any]]) -> list[Stand]:
    """See :func:`assay.compare.standing.standing`, by the setting's measure."""
    return stands(found, setting.measure)
