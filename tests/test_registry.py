"""Parts by name: what no part may be given."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from typing import Any

import pytest

from assay import registry
from assay.errors import UsageError
from assay.registry import PACKAGES, build, call, find, names

FLOATS = [
    (seam, name, key)
    for seam in PACKAGES
    for name in names(seam)
    for key, p in inspect.signature(find(seam, name)).parameters.items()
    if str(p.annotation) in ("float", "float | None")
]


@pytest.mark.parametrize(("seam", "name", "key"), FLOATS)
def test_no_part_takes_what_is_no_number(seam: str, name: str, key: str) -> None:
    with pytest.raises(UsageError, match=rf"{re.escape(name)}.*option {key}"):
        call(find(seam, name), {key: float("nan")}, f"{seam} {name!r}")


@pytest.mark.parametrize(
    ("seam", "spec", "key"),
    [
        ("credit", {"name": "grpo", "ddof": -1}, "ddof"),
        ("objective", {"name": "clip", "max_length": -8}, "max_length"),
        ("verify", {"name": "json", "max_chars": -1}, "max_chars"),
        ("verify", {"name": "asp", "seconds": -1.0}, "seconds"),
        ("curriculum", {"name": "uniform", "prompts": -2, "group": 4}, "prompts"),
        ("signal", {"name": "critic", "lr": -1e-3}, "lr"),
        ("reward", {"name": "overlong", "max_length": 10, "buffer": -1}, "buffer"),
        ("scorer", {"name": "judge", "tail": -5}, "tail"),
    ],
)
def test_sizes_are_not_negative(seam: str, spec: dict[str, Any], key: str) -> None:
    with pytest.raises(UsageError, match=f"option {key} = -.* must not be negative"):
        build(seam, spec, stream=None)


def test_numbers_within_tables_and_lists_are_looked_at() -> None:
    with pytest.raises(UsageError, match="reward 'weighted': weights: option a = nan is no number"):
        build("reward", {"name": "weighted", "terms": {"a": "verdict"}, "weights": {"a": float("nan")}})
    with pytest.raises(UsageError, match="max_length = -1 must not be negative"):
        build("reward", {"name": "weighted", "terms": [{"name": "overlong", "max_length": -1, "buffer": 1}]})
    assert build("objective", {"name": "clip", "entropy_weight": -0.1}).entropy_weight == -0.1


@pytest.mark.parametrize("seam", PACKAGES)
def test_a_part_is_found_where_its_source_says(seam: str) -> None:
    """In its seam's package, or in the file of a paper that has it for itself."""
    for package in (importlib.import_module(name) for name in (PACKAGES[seam], "assay.papers")):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    made = {name: part.__module__ for name, part in registry._PARTS[seam].items()}
    assert registry._written(seam) == {k: m for k, m in made.items() if m.startswith("assay.")}


def test_a_papers_own_part_is_found_by_name() -> None:
    code = "from assay.registry import find, names; assert 'dars' in names('rollout'); print(find('rollout', 'dars'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "s088_dars" in done.stdout


@pytest.mark.parametrize(("seam", "name"), [("environment", "shop"), ("verify", "math")])
def test_a_process_for_one_part_does_without_the_rest(seam: str, name: str) -> None:
    """What hosts environments or verifiers is started again and again: without torch that takes a tenth of the time."""
    code = f"import sys; from assay.registry import find; find({seam!r}, {name!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
