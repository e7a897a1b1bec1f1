"""Every standard part trains: two steps through the real loop, with finite metrics and weights that move."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from running import metrics, run, weights

from assay.batch import Batch
from assay.errors import UsageError
from assay.learning.update import whole_groups
from assay.method import make_method
from assay.registry import names

SHORT = {"train": {"steps": 2, "mini_batches": 1, "epochs": 2}, "warmup": {"steps": 0}, "evaluate": {"every": 0}}
CREDITS = [
    name for name in names("credit") if name not in ("class_balanced", "checklist", "perception_gate", "by_kind")
]
"""All but those that read what tasks of judging, an environment or another rollout say, which their own tests have."""
OF_DRAWINGS = ("group_ranking", "by_kind", "newton")
"""Those that learn from drawings, or from a reward of thoughts before them, which their own tests have."""
OF_NUMBERS = ("dual_rl", "soft_bins")
"""Those whose policy acts by numbers, which their own tests have."""
SELECTS = {name: name for name in names("select") if name not in ("either_branch", *OF_NUMBERS)} | {
    "ranked": {"name": "ranked", "highest": 1, "lowest": 1},
    "chain": {"name": "chain", "parts": ["dapo", "overlong"]},
    "reward_term": {"name": "reward_term", "term": "varied", "least": 0.1},
    "archer": {"name": "archer", "critic_updates": 2, "warm_up": 1, "rows": 8, "batch": 8, "max_tokens": 4},
}


def some(names: Iterable[str]) -> list[Any]:
    """Names as parameters, of which every other is quick."""
    return [pytest.param(name, marks=pytest.mark.slow) if i % 2 else name for i, name in enumerate(names)]


def trained(folder: Path, **method: object) -> None:
    made = run(folder, method=method, **SHORT)
    steps = [row for row in metrics(made) if row["stage"] == "rl"]
    assert len(steps) == 2
    assert all(math.isfinite(v) for row in steps for v in row.values() if isinstance(v, float))
    assert all(bool(w.isfinite().all()) for w in weights(made).values())


@pytest.mark.parametrize("name", some(name for name in names("objective") if name not in (*OF_NUMBERS, *OF_DRAWINGS)))
def test_objectives(tmp_path: Path, name: str) -> None:
    trained(tmp_path / "run", objective=name)


@pytest.mark.parametrize("name", some(CREDITS))
def test_credits(tmp_path: Path, name: str) -> None:
    rollout = {"rollout": {"name": "anytime", "summary_tokens": 2}} if name == "brpo" else {}
    trained(tmp_path / "run", credit=name, **rollout)


@pytest.mark.parametrize("name", some(SELECTS))
def test_selections(tmp_path: Path, name: str) -> None:
    trained(tmp_path / "run", select=SELECTS[name])


def test_groups_stay_whole_when_asked() -> None:
    batch = Batch.from_groups([])
    batch.group = torch.tensor([0, 0, 1, 1, 1, 2])
    parts = [torch.tensor([0]), torch.tensor([1, 2]), torch.tensor([3, 4, 5])]
    assert [p.tolist() for p in whole_groups(parts, batch)] == [[0, 1], [2, 3, 4], [5]]


def test_a_papers_own_options_are_part_of_the_recipe(tmp_path: Path) -> None:
    made = make_method("S014", options={"right_high": 0.5})
    assert getattr(made.objective, "right_high") == 0.5  # noqa: B009  the protocol does not know it
    trained(tmp_path / "run", name="S014", options={"right_high": 0.5})
    with pytest.raises(UsageError, match="right_hig"):
        make_method("S014", options={"right_hig": 0.5})
    with pytest.raises(UsageError, match="by seam"):
        make_method("grpo", options={"clip_high": 0.3})
    with pytest.raises(UsageError, match="named by its id"):
        make_method(made, options={"right_high": 0.3})
