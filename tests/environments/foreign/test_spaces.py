"""Values of spaces come back from the text they are shown as, and what is none is refused with what would be one."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gym
from hypothesis import given
from hypothesis import strategies as st

from assay.environments.foreign.spaces import Unread, described, read, shown, size
from assay.errors import UsageError

SPACES: dict[str, Any] = {
    "discrete": gym.Discrete(5, start=-2),
    "many": gym.MultiDiscrete([3, 1, 7], start=[0, -1, 2]),
    "grid": gym.MultiDiscrete([[2, 3], [4, 5]]),
    "bits": gym.MultiBinary([2, 2]),
    "box": gym.Box(-1.0, 1.0, (3,)),
    "one": gym.Box(0.0, np.inf, (1,), np.float64),
    "scalar": gym.Box(-5, 5, (), np.int16),
    "bytes": gym.Box(0, 255, (2, 2), np.uint8),
    "text": gym.Text(12, min_length=0, charset="ab {}[]\"'\\ \u00e9"),
    "tuple": gym.Tuple((gym.Discrete(2), gym.Text(3), gym.Box(0.0, 1.0, (2,)))),
    "dict": gym.Dict({"where": gym.Discrete(9), "inner": gym.Dict({"a": gym.MultiBinary(3)})}),
    "sequence": gym.Sequence(gym.Tuple((gym.Discrete(3), gym.Text(2)))),
    "oneof": gym.OneOf((gym.Discrete(3), gym.Box(0.0, 1.0, (2,)))),
}


@pytest.mark.parametrize("name", SPACES)
def test_what_is_shown_is_read_as_the_same(name: str) -> None:
    space = SPACES[name]
    space.seed(3)
    for _ in range(50):
        value = space.sample()
        back = read(space, shown(space, value, digits=17))
        assert space.contains(back)
        assert space.to_jsonable([back]) == space.to_jsonable([value])
    assert described(space) and size(space) >= 1


@given(st.text(max_size=40) | st.from_regex(r"[\[\]{}\d\s,.\-eE\"a-z]{0,30}"))
def test_whatever_is_said_is_a_value_or_refused(text: str) -> None:
    for space in SPACES.values():
        with suppress(Unread):
            assert space.contains(read(space, text))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("discrete", "-2", -2),
        ("many", "1, -1 8", [1, -1, 8]),
        ("box", "0.5 -0.25, 1", [0.5, -0.25, 1.0]),
        ("one", "2.5", [2.5]),
        ("one", "[3]", [3.0]),
        ("scalar", "-5", -5),
    ],
)
def test_what_is_easily_said(name: str, text: str, value: Any) -> None:
    assert np.array_equal(read(SPACES[name], text), value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("discrete", "3"),
        ("discrete", "1.0"),
        ("discrete", "true"),
        ("discrete", ""),
        ("many", "1 0 1"),
        ("many", "1.0 -1 3"),
        ("box", "0 0 2"),
        ("box", "0 0"),
        ("box", "NaN 0 0"),
        ("one", "Infinity"),
        ("one", "1e999"),
        ("bytes", "[[256, 0], [0, 0]]"),
        ("bytes", "[[-1, 0], [0, 0]]"),
        ("scalar", "65531"),
        ("text", "c"),
        ("tuple", '[0, "a"]'),
        ("dict", '{"where": 1}'),
        ("sequence", "[[0, 1]]"),
        ("oneof", "[2, 1]"),
    ],
)
def test_what_is_no_value_is_refused(name: str, text: str) -> None:
    with pytest.raises(Unread, match="is not "):
        read(SPACES[name], text)


def test_names_stand_for_discrete_actions() -> None:
    names = ("left", "stay", "right")
    space = gym.Discrete(3, start=4)
    assert [read(space, name, names) for name in ("left", "Stay", "RIGHT")] == [4, 5, 6]
    for wrong in ("4", "up", ""):
        with pytest.raises(Unread, match="one of left, stay, right"):
            read(space, wrong, names)


def test_digits_and_bounds() -> None:
    assert shown(gym.Box(-1, 1, (2,), np.float64), np.array([1 / 3, -0.00012345]), 3) == "[0.333, -0.000123]"
    assert (
        described(gym.Box(np.array([0.0, -np.inf]), np.array([1.0, 2.0]), dtype=np.float64))
        == "2 numbers from 0 to 1, of any size"
    )
    assert described(gym.Discrete(3, start=4)) == "a whole number from 4 to 6"


def test_what_has_no_text() -> None:
    with pytest.raises(UsageError, match="Graph has no text"):
        size(gym.Graph(gym.Discrete(2), None))
    with pytest.raises(UsageError, match="stacked"):
        size(gym.Dict({"a": gym.Sequence(gym.Discrete(2), stack=True)}))
