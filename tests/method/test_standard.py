"""Standard methods by their names, in a recipe and on the command line."""

from __future__ import annotations

from typing import Any

import pytest

from assay.config import load_config
from assay.errors import UsageError
from assay.method import make_method
from assay.method.standard import standard, standard_name


def made(*words: str) -> Any:
    settings = load_config(None, words).method
    return make_method(settings.name, **settings.model_dump(exclude={"name"}))


def test_every_standard_method_by_its_name() -> None:
    for name, parts in standard().items():
        method, changed = make_method(name), {k: v for k, v in parts.items() if k != "name"}
        by_parts = make_method("grpo", **changed)
        for seam in ("reward", "credit", "select", "objective"):
            a, b = getattr(method, seam), getattr(by_parts, seam)
            assert type(a) is type(b), (name, seam)
        assert (method.objective, method.rollout) == (by_parts.objective, by_parts.rollout)


def test_dapo_in_a_recipe_and_with_an_option_of_a_part() -> None:
    method = made("method=dapo")
    assert (method.objective.clip_low, method.objective.clip_high, method.rollout) == (0.2, 0.28, "dynamic")
    changed = made("method=DAPO", "method.objective.clip_high=0.3", "method.rollout=single_turn")
    assert (changed.objective.clip_high, changed.rollout) == (0.3, "single_turn")
    assert made("method=Dr.GRPO").objective.max_length == 1024
    assert made("method=reinforce").credit != made("method=reinforce++").credit


def test_names_however_they_are_written() -> None:
    assert [standard_name(n) for n in ("Dr. GRPO", "drgrpo", "dr_grpo", "REINFORCE++", "S017", "")] == [
        *("dr-grpo", "dr-grpo", "dr-grpo", "reinforce++", None, None),
    ]
    with pytest.raises(UsageError, match="no method is called 'dappo'; did you mean 'dapo'"):
        make_method("dappo")
    with pytest.raises(UsageError, match="method 'dapo' has no option 'x': set those of its parts"):
        make_method("dapo", {"x": 1})
