"""The table of turn credits: its arithmetic by hand and by brute force, and the page against the parts."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.method import make_method
from assay.registry import build
from assay.tables.turn_credit import CREDITS, WORLDS, Played, World, cells_of

PAGE = Path(__file__).parents[2] / "docs/turn-credit.md"

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def stop() -> Played:
    return Played(WORLDS["stop or go"], group=2)


def test_noise_and_pull_by_hand(stop: Played) -> None:
    """Going on pays 1: |score|^2 = 2 * 0.49 with p = 0.3, the gradient (0.21, -0.21).

    The return's own variance is (0.3 * 0.98 - 2 * 0.21^2) / 2 for two episodes.
    """
    assert stop.gradient[stop.gradient.abs() > 1e-12].tolist() == pytest.approx([0.21, -0.21])
    found = stop.measure({"name": "reinforce"})
    assert found.pull == pytest.approx(1) and found.bias < 1e-9
    assert found.noise == pytest.approx((0.2058 / 2 / (2 * 0.21**2)) ** 0.5)


def test_the_living_alone_pull_nothing(stop: Played) -> None:
    after = {"name": "turn_group", "sums": "after", "kind": "leave_one_out"}
    assert stop.measure({**after, "padded": False}).pull == 0
    padded = stop.measure(after)
    assert padded.pull == pytest.approx(1) and padded.bias < 1e-9
    assert cells_of(stop.measure({**after, "padded": False})) == ("0", "–", "–")


@pytest.mark.parametrize("credit", [{"name": "grpo"}, {"name": "turn_group", "by": "state", "episode": 1.0}])
def test_by_brute_force(credit: dict[str, Any]) -> None:
    """Every ordered group by itself, in a batch of its own."""
    played = Played(World("small", {"rooms": 2, "moves": 2, "paid": 0.5}, 1, 2), group=2)
    method = make_method("grpo", reward=["verdict", "turns"], credit=build("credit", credit))
    mean, square = torch.zeros_like(played.gradient), 0.0
    for pair in product(range(len(played.chances)), repeat=2):
        batch = played.valued(method, [pair])
        g = torch.zeros_like(mean)
        for leaf, row in zip(pair, method.credit(batch), strict=True):
            for t, value in enumerate(row.tolist()):
                g += value * played.score[leaf, t] / 2
        chance = float(played.chances[pair[0]] * played.chances[pair[1]])
        mean, square = mean + chance * g, square + chance * float(g.square().sum())
    found, length = played.measure(credit), float(played.gradient.norm())
    pull = float(mean @ played.gradient) / length**2
    assert found.pull == pytest.approx(pull)
    assert found.bias == pytest.approx(float((mean - pull * played.gradient).norm()) / (pull * length), abs=1e-9)
    assert found.noise == pytest.approx((square - float(mean.square().sum())) ** 0.5 / (pull * length))


def test_the_gradient_is_the_trees_own() -> None:
    played = Played(World("small", {"rooms": 2, "moves": 2}, 1, 2), group=2)
    assert torch.allclose(played.gradient, played.engine.policy.exact_gradient().flatten(), atol=1e-12)
    assert played.measure({"name": "rloo"}).bias < 1e-9


def test_an_exact_critic_leaves_no_bias_whatever_the_decay() -> None:
    played = Played(World("small", {"rooms": 2, "moves": 2, "paid": 0.5}, 1, 2), group=2)
    found = [
        played.measure({"name": name, "decay": decay, "whitened": False})
        for name in ("gae", "turn_gae")
        for decay in (0.0, 0.5, 1.0)
    ]
    assert all(m.pull == pytest.approx(1) and m.bias < 1e-9 for m in found)
    assert found[0].noise < found[1].noise < found[2].noise


def test_the_page_says_what_the_parts_say() -> None:
    """All credits are on the page, and the cells of the smallest world are what comes out now."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    cells = {row[0]: row[1:] for row in rows if len(row) == 1 + 3 * len(WORLDS)}
    assert set(cells) - {"credit", "---"} == set(CREDITS), "python -m assay.tables.turn_credit > docs/turn-credit.md"
    played = Played(WORLDS["stop or go"])
    for name, credit in CREDITS.items():
        assert tuple(cells[name][:3]) == cells_of(played.measure(credit)), name
