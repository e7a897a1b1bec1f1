"""VPR: what the oracles say, turns compared at the same turn, an oracle that errs, and learning without success."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run
from turned import by_turn, turned

from assay.batch import Batch
from assay.catalogue import make
from assay.catalogue.claim import claim_of
from assay.credit.turns.turn_group import TurnGroup
from assay.engines.base import Sampling
from assay.environments.corridor import Corridor
from assay.environments.games.environment import games
from assay.environments.games.mines import posterior
from assay.environments.games.minesweeper import Minesweeper
from assay.environments.games.sudoku import Sudoku
from assay.environments.games.tictactoe import TicTacToe
from assay.environments.tools import say
from assay.errors import UsageError
from assay.lab.settings import load
from assay.method import make_method
from assay.rollout.turns.enumerated import player
from assay.rollout.turns.multi_turn import MultiTurn
from assay.types import Ask, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

CARD = [[1, 1, 0, 1], [1, 0, 0, 0], [0, 1, 1, 1]]
WANT = [[0.7071, 0.7071, -0.7071, 0.7071], [0.7071, -1.4142, -0.7071, -1.4142], [-1.4142, 0.7071, 1.4142, 0.7071]]


def judged(rows: list[list[int | None]], outcomes: list[float] | None = None) -> Batch:
    """Trajectories whose turns an oracle found right (1), wrong (0) or could not judge (None)."""
    said = {1: Verdict.right(), 0: Verdict.wrong(), None: Verdict.abstain("away")}
    return turned([[0.0] * len(r) for r in rows], outcomes, verdict=[[said[x] for x in r] for r in rows])


def advantages(batch: Batch, **options: Any) -> list[list[float]]:
    return by_turn(make_method("S154", options=options).value(batch).advantages, batch)


def near(got: list[list[float]], want: list[list[float]], digits: float = 1e-4) -> bool:
    return all(a == pytest.approx(b, abs=digits) for a, b in zip(got, want, strict=True))


def test_the_worked_example() -> None:
    assert near(advantages(judged(CARD)), WANT)
    sample = [[x * (2 / 3) ** 0.5 for x in row] for row in WANT]
    assert near(advantages(judged(CARD), ddof=1), sample)


def test_outcomes_and_lookahead() -> None:
    batch = judged(CARD, [1.0, 0.0, 0.0])
    outcome = [1.4142, -0.7071, -0.7071]
    both = [[x + 0.5 * o for x in row] for row, o in zip(WANT, outcome, strict=True)]
    assert near(advantages(batch, outcome=0.5), both)
    assert near(advantages(batch), WANT), "the outcome has no weight unless asked"
    after = [[sum(0.5 ** (k - t) * row[k] for k in range(t, 4)) for t in range(4)] for row in WANT]
    assert near(advantages(batch, lookahead="after", discount=0.5), after, 2e-4)
    # Sums 3, 1, 3 at the first turn.
    assert [row[0] for row in advantages(batch, lookahead="before")] == pytest.approx(
        [0.7071, -1.4142, 0.7071], abs=1e-4
    )


def test_who_is_alone_at_a_turn_learns_nothing() -> None:
    assert advantages(judged([[1, 1, 1], [0, 0], [1]])) == [
        [pytest.approx(0.7071, abs=1e-4), pytest.approx(1, abs=1e-4), 0],
        [pytest.approx(-1.4142, abs=1e-4), pytest.approx(-1, abs=1e-4)],
        [pytest.approx(0.7071, abs=1e-4)],
    ]
    padded = advantages(judged([[1, 1, 1], [0, 0], [1]]), padded=True)
    assert padded[0][2] == pytest.approx(1.4142, abs=1e-4), "the ended count as 0"


def test_what_an_oracle_cannot_judge_is_no_failure() -> None:
    assert advantages(judged([[1], [None], [0]])) == [[pytest.approx(1, abs=1e-4)], [0], [pytest.approx(-1, abs=1e-4)]]


def test_the_oracle_that_searches() -> None:
    game, state = TicTacToe(), ("X.O.X...O", "X", "minimax")
    assert [a for a in game.actions(state) if game.judge(state, a).passed] == ["6"]
    corner = ("X........", "O", "minimax")
    assert [a for a in game.actions(corner) if game.judge(corner, a).passed] == ["5"]


def test_the_oracle_of_constraints() -> None:
    game = Sudoku(4, 8)
    puzzle = game.setup(np.random.default_rng(0))["puzzle"]
    state = (puzzle, puzzle)
    passed = [a for a in game.actions(state) if game.judge(state, a).passed]
    assert len(passed) == 8 and len(game.actions(state)) == 32


def test_the_oracle_of_chances() -> None:
    half, third = Fraction(1, 2), Fraction(1, 3)
    assert posterior(1, 4, {1: 1}, 1) == {0: half, 2: half, 3: 0}
    assert posterior(3, 3, {0: 1, 1: 1}, 2) == {2: 0, 5: 0, 3: half, 4: half, 6: third, 7: third, 8: third}
    game = Minesweeper(1, 4, 1)
    state = game.start({"height": 1, "width": 4, "mines": [0], "first": 1}, np.random.default_rng(0))
    assert [a for a in game.actions(state) if game.judge(state, a).passed] == ["reveal 1 4"]


def test_every_action_is_judged_where_it_is_taken() -> None:
    """A Sudoku with two empty cells, played at random: the oracle sees the board as it was before each digit."""
    options = {"names": ["sudoku4"], "blanks": 2, "moves": 3}
    world = games(**options)
    task = world.tasks()[0]
    shown = world.reset(task, 0)
    engine = player(world, [task], [shown.admissible], 3)
    rollout = MultiTurn({"name": "games", **options}, Sampling(4), turns=3, oracle=True)
    [group] = rollout.collect([Ask(task, 40)], engine, np.random.default_rng(0))
    batch = make_method("S154").value(Batch.from_groups([group], torch.float64))
    seen = set()
    for episode, row in zip(group.episodes, batch.token_rewards, strict=True):
        world.reset(task, 0)
        for turn in episode.turns:
            action = say(turn.text)
            right = world.judge(action).passed
            assert turn.verdict.passed is right and row[turn.end - 1].item() == float(right)
            made = world.step(action)
            assert not right or made.valid, "what cannot be done is never right"
            seen.add((right, made.valid))
    assert seen == {(True, True), (False, True), (False, False)}


@pytest.mark.parametrize("error", [0.0, 0.3, 0.5])
def test_an_oracle_that_errs(error: float) -> None:
    """Over all errors of three judgements, their mean is 1 - 2e times what it would be without."""
    truth = [1, 0, 0]
    credit = TurnGroup("turn", "none", of="turns", kind="center", ddof=0)
    mean = np.zeros(3)
    for flips in product([0, 1], repeat=3):
        chance = np.prod([error if f else 1 - error for f in flips])
        batch = judged([[t ^ f] for t, f in zip(truth, flips, strict=True)])
        batch.token_rewards = make("S154").reward(batch).tokens
        mean += chance * np.array([row[0] for row in by_turn(credit(batch), batch)])
    assert mean == pytest.approx((1 - 2 * error) * np.array([2 / 3, -1 / 3, -1 / 3]))


def test_a_rollout_that_asks_no_oracle_is_refused() -> None:
    world = {"name": "games", "names": ["sudoku4"]}
    with pytest.raises(UsageError, match="set rollout oracle = true"):
        make_method("S154", rollout={"name": "multi_turn", "environment": world})
    made = make_method("S154", options={"environment": world})
    assert made.rollout == {"name": "multi_turn", "environment": world, "turns": 16, "oracle": True}
    make_method("S154", rollout={"name": "multi_turn", "environment": world, "oracle": True})


def test_the_claims_corridor() -> None:
    """Five rooms to the right and a stop: six turns, all of which have to be right; one task at a time."""
    claim = claim_of("S154")
    setting = load(claim.setting, claim.options)
    engine, [task] = setting.player(0)  # type: ignore[attr-defined]
    world = Corridor(**{k: v for k, v in claim.options["environment"].items() if k != "name"})
    world.reset(task, 0)
    assert len(world.gold()) == world.moves == claim.options["turns"] == engine.policy.tree.depth - 1 == 6
    assert claim.options["prompts"] == 1


@pytest.mark.slow
def test_it_learns_where_hardly_an_episode_succeeds() -> None:
    """Six actions in a row have to be right: one episode in 729 succeeds at first."""
    vpr, outcome = (learned("S154", arm, steps=40, lr=5.0) for arm in ("vpr", "outcome"))
    assert vpr["start"] < 0.01 and vpr["final"] > 0.8 and vpr["area"] > 2 * outcome["area"]
    assert vpr["rollouts"] == outcome["rollouts"]


def test_it_trains_on_games(tmp_path: Path) -> None:
    world = {"name": "games", "names": ["tictactoe"], "moves": 3}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 512}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_share": 0.2},
        warmup={"steps": 0},
        method={"name": "S154", "reward": None, "options": {"environment": world, "turns": 3}},
        rollout={"prompts": 2, "group": 8, "max_tokens": 3, "max_rows": 64},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert len(rows) == 2 and all("reward/oracle" in m or "reward/oracle/mean" in m for m in rows)
