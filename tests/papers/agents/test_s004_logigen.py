"""LOGIGEN: the worked states and turns, the dense reward, and a run that is warmed up on plans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import metrics, run

from assay import catalogue
from assay.batch import Batch
from assay.credit.turns.turn_group import TurnGroup
from assay.engines.base import Sampling
from assay.environments.shop.database import Database, image
from assay.environments.shop.domain import Column, Domain, Rule, Table
from assay.environments.shop.environment import Shop
from assay.environments.tools import ToolError
from assay.method import Method
from assay.papers.agents.s004_logigen import DONE, WORDS
from assay.records.evaluation import Evaluation
from assay.rewards.outcome.verdict import VerdictReward
from assay.rewards.process.turns import TurnRewards
from assay.rollout.turns.enumerated import every_episode, player
from assay.rollout.turns.multi_turn import MultiTurn
from assay.types import Verdict
from assay.verify.structured.state import distance, facts, potential

pytestmark = pytest.mark.usefixtures("one_thread")

EVENTS = Domain(
    "events",
    (
        Table("event", (Column("id"), Column("cap"), Column("booked")), ("id",), ("read", "update")),
        Table(
            "booking",
            (Column("usr", "text"), Column("ev", references="event"), Column("status", "text", default="ok")),
            ("usr", "ev"),
            ("create", "read", "update", "delete"),
        ),
    ),
    (
        Rule("booking", "insert", "(SELECT booked >= cap FROM event WHERE id = NEW.ev)", "full", "POLICY_EVENT_FULL"),
        Rule("booking", "insert", "UPDATE event SET booked = booked + 1 WHERE id = NEW.ev", "booked rises"),
    ),
)
START = {"event": [{"id": 1, "cap": 2, "booked": 1}, {"id": 2, "cap": 5, "booked": 0}], "booking": []}
ONE, TWO = ({"usr": "bob", "ev": i} for i in (1, 2))


class Events:
    """The worked example's database, and its facts."""

    def __init__(self) -> None:
        self.database = Database(EVENTS, image(EVENTS, START))
        self.start = self.facts()

    def facts(self, granularity: Any = "cell") -> Any:
        return facts(self.database.tables(), EVENTS.keys, granularity)

    def call(self, operation: Any, table: str, **arguments: Any) -> Events:
        self.database.call(operation, table, arguments)
        return self


def phi(reached: Events, granularity: Any = "cell") -> tuple[int, float]:
    start, goal = Events().facts(granularity), Events().call("create", "booking", **ONE).facts(granularity)
    here = reached.facts(granularity)
    return distance(here, goal), potential(here, start, goal)


@pytest.mark.parametrize(
    ("calls", "cell", "row"),
    [
        ([], (5, 0), (3, 0)),
        ([("create", ONE)], (0, 1), (0, 1)),
        ([("create", TWO)], (10, -1), (6, -1)),
        ([("create", ONE), ("create", TWO)], (5, 0), (3, 0)),
        ([("create", {**ONE, "status": "hold"})], (2, 0.6), (2, 1 / 3)),
        ([("create", ONE), ("delete", ONE)], (3, 0.4), (1, 2 / 3)),
    ],
    ids=["nothing", "event 1", "event 2 instead", "both", "another status", "deleted, the counter left as it was"],
)
def test_the_worked_states(calls: list[tuple[str, dict[str, Any]]], cell: Any, row: Any) -> None:
    """Distances and potentials where Bob is to be booked on event 1, by cells and by rows."""
    reached = Events()
    for operation, arguments in calls:
        reached.call(operation, "booking", **arguments)
    assert phi(reached) == (cell[0], pytest.approx(cell[1]))
    assert phi(reached, "row") == (row[0], pytest.approx(row[1]))


def test_a_full_event_takes_nobody() -> None:
    full = Events().call("create", "booking", **ONE)
    before = full.facts()
    with pytest.raises(ToolError, match="POLICY_EVENT_FULL"):
        full.call("create", "booking", usr="eve", ev=1)
    assert full.facts() == before


def test_the_worked_turns() -> None:
    """A wrong booking, its row deleted, its counter repaired, the right one: -1, .6, .4, 1, which add up to 1."""
    world, seen = Events(), [0.0]
    for operation, table, arguments in (
        ("create", "booking", TWO),
        ("delete", "booking", TWO),
        ("update", "event", {"id": 2, "booked": 0}),
        ("create", "booking", ONE),
    ):
        seen.append(phi(world.call(operation, table, **arguments))[1])
    assert seen == pytest.approx([0, -1, -0.4, 0, 1])
    assert np.diff(seen).tolist() == pytest.approx([-1, 0.6, 0.4, 1]) and sum(np.diff(seen)) == pytest.approx(1)


def played(*words: str, **options: Any) -> Batch:
    world = Shop(**options)
    task = world.tasks()[1]
    engine = player(world, [task], [list(words)], 3)
    rollout = MultiTurn({"name": "shop", **options}, Sampling(1), turns=3)
    return Batch.from_groups(every_episode(engine, [task], rollout))


def phis(verdicts: Sequence[Verdict]) -> list[float]:
    return [v.parts["state | potential"] or 0.0 for v in verdicts]


def test_the_claims_words() -> None:
    """Three of them, in any order, are what the task takes; one other is refused, the others lead away."""
    whole = played(*WORDS[:3])
    right = [tuple(t.text for t in e.turns) for e, v in zip(whole.episodes, whole.verdicts, strict=True) if v.passed]
    assert len(right) == 6 and all(set(r) == set(WORDS[:3]) for r in right)
    [refused] = played(WORDS[3]).episodes
    assert all("POLICY_TIER" in t.error for t in refused.turns)
    for word in WORDS[4:8]:
        found = played(word).verdicts[0]
        assert not found.passed and phis([found])[0] <= 0


@pytest.mark.parametrize("granularity", ["cell", "row"])
def test_the_terminal_reward_is_dense(granularity: str) -> None:
    """R is Phi, clipped; exactly 1 where the state is the goal; and with score = exact nothing else."""
    batch = played(WORDS[0], WORDS[1], WORDS[7], DONE, granularity=granularity)
    found = VerdictReward()(batch).values.tolist()
    ways = phis(batch.verdicts)
    assert found == pytest.approx([min(1, max(0, p)) for p in ways]) and min(ways) < 0 < max(found) < 1
    exact = VerdictReward()(played(*WORDS[:3], score="exact"))
    assert sorted(set(exact.values.tolist())) == [0, 1] and exact.values.sum() == 6


def test_rewards_of_turns_add_up() -> None:
    batch = played(WORDS[0], WORDS[2], WORDS[7], DONE, turn_rewards=True)
    reward = TurnRewards()(batch)
    assert reward.tokens is not None
    assert reward.tokens.sum(-1).tolist() == pytest.approx(phis(batch.verdicts), abs=1e-5)
    for episode in batch.episodes:
        for turn in episode.turns:
            assert (turn.reward == 0) == (turn.text == DONE or turn.error != "")
    assert any(t.reward is not None and t.reward < 0 for e in batch.episodes for t in e.turns)


def test_the_method() -> None:
    method = catalogue.make("S004", environment="shop")
    assert isinstance(method, Method) and isinstance(method.reward, VerdictReward)
    assert method.rollout == {
        "name": "multi_turn",
        "environment": {"name": "shop", "granularity": "cell", "turn_rewards": False},
        "turns": 16,
    }
    turn = catalogue.make("S004", environment={"name": "shop", "rules": 6}, level="turn", granularity="row")
    assert isinstance(turn, Method) and isinstance(turn.reward, TurnRewards)
    assert turn.rollout["environment"] == {
        "name": "shop",
        "rules": 6,
        "granularity": "row",
        "turn_rewards": True,
    }
    assert turn.credit == TurnGroup("turn", "before", 1.0)
    assert catalogue.make("S004").rollout == "single_turn"


@pytest.mark.parametrize("level", ["trajectory", "turn"])
@pytest.mark.slow
def test_it_trains(tmp_path: Path, level: str) -> None:
    """Warmed up on plans that replay, with tools that the model is not told of: it learns what plans are like."""
    world = {"name": "shop", "wishes": 2, "turn_rewards": level == "turn"}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 4096}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_share": 0.3, "eval_size": 1},
        warmup={"steps": 2, "batch": 1},
        method={
            "name": "S004",
            "options": {"level": level},
            "rollout": {"name": "multi_turn", "environment": world, "calls": "python", "turns": 2},
            "reward": None,
        },
        rollout={"prompts": 1, "group": 4, "max_tokens": 4, "max_rows": 64},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    rows = metrics(folder)
    assert [m["stage"] for m in rows].count("warmup") == 2
    steps = [m for m in rows if m["stage"] == "rl"]
    assert len(steps) == 2 and all(m["environment/lost"] == 0 for m in steps)
    for label in ("before", "after"):
        found = Evaluation.from_parquet(folder / "evals" / f"{label}.parquet")
        assert found.samples and all(s.passed is not None for s in found.samples)
