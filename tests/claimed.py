"""An arm of the experiment that a paper's row claims something of, run for a few steps on a small policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.catalogue.claim import claim_of
from assay.lab.settings import load


def learned(paper: str, arm: str, **options: Any) -> dict[str, float]:
    """Return the setting's measures after training with seed 0; nothing is written."""
    claim = claim_of(paper)
    setting = load(claim.setting, {**claim.options, **options})
    return dict(setting.run(claim.arms[arm], 0, Path()))
