"""The setting of flags: what passes, and by what."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.environments.base import Action
from assay.environments.calls import find_calls
from assay.lab.settings.flags import Challenges, Setting

pytestmark = pytest.mark.usefixtures("one_thread")
WORDS = Setting().words()
READ, SHOWN, KNOWN = 1, 4, 6
"""Of challenge 1: the file with its flag, what was shown, and its flag by heart."""


@pytest.mark.parametrize(
    ("flags", "said", "passed", "shown"),
    [
        ("kept", [READ, SHOWN], True, 1.0),
        ("drawn", [READ, SHOWN], True, 1.0),
        ("kept", [0, KNOWN], True, 0.0),
        ("drawn", [0, KNOWN], False, 0.0),
        ("kept", [READ, KNOWN], True, 1.0),
        ("kept", [0, SHOWN], False, 0.0),
        ("kept", [KNOWN + 1], False, 0.0),
        ("kept", [READ], False, 1.0),
    ],
)
def test_what_passes(flags: str, said: list[int], passed: bool, shown: float) -> None:
    world = Challenges(flags)  # type: ignore[arg-type]
    tools = world.reset(world.tasks()[1], 5).tools
    for word in said:
        step = world.step(Action(WORDS[word], find_calls(WORDS[word], tools)))
        assert step.valid and step.terminated == (word >= SHOWN)
    found = world.verdict()
    assert (found.passed, found.parts) == (passed, {"shown": shown})


def test_flags_are_of_an_episode() -> None:
    drawn, kept = Challenges(), Challenges("kept")

    def flag(world: Challenges, task: int, seed: int) -> str:
        world.reset(world.tasks()[task], seed)
        return world.flag

    assert flag(drawn, 0, 1) == flag(drawn, 0, 1) != flag(drawn, 0, 2)
    assert flag(kept, 0, 1) == flag(kept, 0, 2) != flag(kept, 1, 1)


@pytest.mark.slow
def test_a_run() -> None:
    found = Setting(steps=1, challenges=1, files=1, turns=2).run({"name": "S143", "flags": "kept"}, 0, Path())
    assert 0 < found["start"] < 1 and found["rollouts"] == 3 * 8
