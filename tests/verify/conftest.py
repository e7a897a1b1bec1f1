"""Limits that a loaded machine does not reach before the program under test does."""

from __future__ import annotations

import pytest

from assay.verify.isolate import workers


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes too long is stopped by its processor time, however long a crowded machine takes to give it that."""
    monkeypatch.setattr(workers, "WALL", 1000.0)
