"""The setting of a file with two errors: what a checker finds, and what is taken for an error beside."""

from __future__ import annotations

import pytest
from sandbox.support import needs_sandbox

from assay.environments.base import Action
from assay.lab.settings.stepwise import _edits, mended
from assay.lab.settings.stepwise._edits import START, edited, found, source


def test_edits() -> None:
    assert [edited("start", edit) for edit in _edits.EDITS] == ["right", "wrong", "broken", "start+", "gone"]
    assert edited("start+", "ignore") == "start+" and edited("gone", "ignore") == "gone" != edited("gone", "right")
    assert source(("right+", "gone")) == (
        "def total(prices: list[int]) -> int:\n    return sum(prices)  # type: ignore\n"
    )
    assert source(START).count("def ") == 2


@pytest.mark.parametrize(
    ("counted", "said", "rewards", "passed"),
    [
        (True, ["total right", "label right"], [0.9, 0.9], True),
        (True, ["total ignore", "label delete"], [0.4, 0.4], False),
        (False, ["total ignore", "label delete"], [0.9, 0.9], False),
        (True, ["total right", "total ignore"], [0.9, -0.1], False),
        (True, ["label wrong", "label broken"], [0.9, -0.1], False),
    ],
)
def test_rewards(
    monkeypatch: pytest.MonkeyPatch, counted: bool, said: list[str], rewards: list[float], passed: bool
) -> None:
    class Finds(dict[tuple[str, str], int]):
        def __missing__(self, state: tuple[str, str]) -> int:
            return sum(now in ("start", "broken") for now in state)

    monkeypatch.setattr(mended, "found", Finds)
    world = mended.Mending(counted)
    world.reset(world.tasks()[0], 0)
    assert [world.step(Action(text)).reward for text in said] == pytest.approx(rewards)
    assert world.verdict().passed is passed
    assert sum(rewards) - 0.4 * len(rewards) == pytest.approx(0.5 * (2 - world.errors))


@needs_sandbox
@pytest.mark.slow
def test_a_checker_finds_what_is_counted_on() -> None:
    pytest.importorskip("mypy")
    for state, errors in found().items():
        assert errors == sum(now in ("start", "broken") for now in state), state
