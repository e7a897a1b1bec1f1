"""Skips these tests where vLLM is not installed; ``make vllm`` runs them where it is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[2] / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("vllm") is None:
        here = f"{Path(__file__).parent}/"
        for item in items:
            if str(item.path).startswith(here):
                item.add_marker(pytest.mark.skip(reason="vllm is not installed: make vllm"))


@pytest.fixture(scope="session")
def source() -> str:
    """A real model of 135 million parameters."""
    if not MODEL.is_file():
        pytest.skip(f"no {MODEL.name}: make {MODEL.relative_to(MODEL.parents[1])}")
    return str(MODEL)
