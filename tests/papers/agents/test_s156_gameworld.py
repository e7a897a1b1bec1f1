"""GameWorld: games by their plans, two controls of one state, a clock that waits or not, scores, and a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policies.sighted import sighted
from running import run
from scripted import Talking

from assay import catalogue
from assay.audit.environment import audit_environment
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.environments.arcade.environment import BEST, CLOCK, GAME, GAMES, HELD, NAMES, ArcadeGames, progress
from assay.environments.arcade.game import KEYS, WAIT, Event, read_event
from assay.environments.arcade.games import ARCADE, Catcher, Cavern, Merge, Runner, Stall, fallen
from assay.environments.arcade.picture import SKY
from assay.environments.hosted.worlds import Worlds
from assay.environments.tools import say
from assay.errors import UsageError
from assay.evaluate.games import GameScores, invalid_rate
from assay.policies.pictures.album import numbers
from assay.records.evaluation import Evaluation
from assay.records.sample import Sample
from assay.rollout.turns.multi_turn import MultiTurn
from assay.types import Ask, Message, Tool

pytestmark = pytest.mark.usefixtures("one_thread")


def begun(index: int = 0, **options: Any) -> ArcadeGames:
    world = ArcadeGames(**options)
    world.reset(world.tasks()[index], 0)
    return world


@pytest.mark.slow
def test_games_of_five_genres_by_their_own_plans() -> None:
    tasks = ArcadeGames().tasks()
    assert [tasks[i].meta["genre"] for i in range(5)] == ["runner", "arcade", "platformer", "puzzle", "simulation"]
    for index in range(15):
        world = begun(index)
        assert world.status(world.state) == "ready"
        plan = world.gold()
        for action in plan:
            step = world.step(action)
            assert step.valid
        found = world.verdict()
        assert step.terminated and found.passed and found.score == 1
        assert found.parts["actions | valid"] == len(plan) == found.parts["actions | proposed"]
        with pytest.raises(RuntimeError, match="reset"):
            world.step(say("wait"))


@pytest.mark.slow
def test_events_and_named_actions_come_to_the_same_state() -> None:
    for index in range(10):
        named, events = begun(index), begun(index, control="events")
        rng = np.random.default_rng(index)
        for _ in range(12):
            action = str(rng.choice(named.actions(named.state)))
            if named.step(say(action)).terminated:
                break
            for event in named.game.table[action]:
                assert events.step(say(event)).valid
            assert named.state[:7] == events.state[:7]
            assert named.key(named.state) == events.key(events.state)
        plan = [a.text for a in begun(index, control="events").gold()]
        assert plan == [e for a in begun(index).gold() for e in ARCADE[named.task.meta["game"]].table[a.text]]


class Slow(ArcadeGames):
    """A player who takes long to think, by a clock of its own."""

    thought, at = 0.0, 0.0

    def now(self) -> float:  # type: ignore[override]
        self.at += self.thought
        return self.at


def played(world: ArcadeGames, index: int, actions: list[str]) -> ArcadeGames:
    world.reset(world.tasks()[index], 0)
    for action in actions:
        world.step(say(action))
    return world


def test_slow_thought_costs_nothing_when_the_clock_waits() -> None:
    actions = ["wait", "jump", "wait"]
    slow = Slow()
    slow.thought = 100.0
    assert played(slow, 0, actions).state == played(Slow(), 0, actions).state
    assert slow.state[CLOCK] == 3 * WAIT


def test_in_real_time_thought_costs() -> None:
    quick, slow = Slow(realtime=True), Slow(realtime=True)
    slow.thought = 0.5
    assert played(quick, 4, ["sell"] * 3).state[CLOCK] == 3 * WAIT
    # Half a second of thought is five ticks.
    assert played(slow, 4, ["sell"] * 3).state[CLOCK] == 3 * WAIT + 3 * 5
    assert not quick.repeats and ArcadeGames(realtime=True, latency=0.5).repeats
    assert played(ArcadeGames(realtime=True, latency=0.5), 4, ["sell"] * 3).state[:PROPOSED] == slow.state[:PROPOSED]
    # Keys that are held stay held meanwhile, and a game can be lost before one has thought.
    held = played(
        ArcadeGames(["cavern"], control="events", realtime=True, latency=0.1), 0, ["key_down ArrowRight", "wait"]
    )
    assert held.state[GAME][0] == 1 + WAIT
    lost = played(ArcadeGames(["runner"], realtime=True, latency=2.0), 0, ["wait"])
    assert lost.state[GAMES] == 1 and lost.state[BEST] > 3


PROPOSED = 7


def test_the_worked_progress() -> None:
    assert progress([0, 40, 10], 0, 100) == pytest.approx(0.4)
    assert progress([0, 100], 0, 100) == 1 and progress([5, 3], 5, 25) == 0 and progress([0, 300], 0, 100) == 1
    runs = [progress([0, 40, 10], 0, 100), progress([0, 100], 0, 100), progress([5, 3], 5, 25)]
    assert np.mean(runs) == pytest.approx(0.4667, abs=5e-5) and np.mean([x >= 1 for x in runs]) == pytest.approx(1 / 3)
    # Lost and begun anew, the best score is kept.
    world = begun(0)
    while world.status(world.state) != "terminal":
        world.step(say("wait"))
    best, before = world.state[BEST], world.verdict().score
    assert best > 0 and "begins a new game" in world.show(world.state) and before == best / 40
    world.step(say("wait"))
    assert world.state[GAMES] == 1 and world.state[CLOCK] == WAIT and world.game.score(world.state[GAME]) < best
    assert world.state[BEST] == best and world.verdict().score == before
    merge = begun(3)
    assert merge.verdict().score == 0 and merge.state[BEST] >= 2


def sample(score: float, told: str = "", passed: bool | None = None) -> Sample:
    right = score >= 1 if passed is None and told != "away" else passed
    return Sample("t", "p", "r", score, right, told, 1, "eos")


def test_the_worked_rates() -> None:
    rows = [
        sample(0.4, "18 of 20 actions valid"),
        sample(1.0, "9 of 10 actions valid"),
        sample(0.0),
        sample(0.0, "away"),
    ]
    found = GameScores()(Evaluation("a", 0, tuple(rows)))
    assert found.progress.mean == pytest.approx(0.4667, abs=5e-5) and found.success.mean == pytest.approx(
        0.3333, abs=5e-5
    )
    assert found.invalid.mean == pytest.approx(0.1) and found.invalid.deviation == 0
    assert math.isnan(invalid_rate(rows[2:]))
    world = begun(0)
    for said in ("wait", "fly", "jump"):
        world.step(say(said))
    assert world.verdict().feedback == "2 of 3 actions valid"


def test_repeated_runs() -> None:
    runs = [Evaluation(str(i), 0, (sample(x, "1 of 2 actions valid"),)) for i, x in enumerate((0.2, 0.4, 1.0))]
    found = catalogue.make("S156")(*runs)
    assert found.progress.mean == pytest.approx(1.6 / 3) and found.progress.deviation == pytest.approx(
        0.416333, abs=1e-6
    )
    assert found.success.runs == (0, 0, 1) and found.invalid.deviation == 0
    two = GameScores()(*runs[:2]).progress
    assert two.mean == pytest.approx(0.3) and two.deviation == pytest.approx(0.141421, abs=1e-6)
    away = Evaluation("a", 0, (sample(0.0, "away"),))
    for none in ((), (away,), (runs[0], away)):
        with pytest.raises(UsageError, match="need runs"):
            GameScores()(*none)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("wait", Event("wait")),
        ("key_down space", Event("key_down", "Space")),
        ("key_up ArrowLeft", Event("key_up", "ArrowLeft")),
        ("mouse_move 0.25 1", Event("mouse_move", at=(0.25, 1.0))),
        ("mouse_down", Event("mouse_down")),
        ("scroll up", Event("scroll", "up")),
    ],
)
def test_events(line: str, found: Event) -> None:
    assert read_event(line) == found


@pytest.mark.parametrize(
    "line", ["", "key_down", "key_down Q", "mouse_move 1.5 0", "mouse_move 1", "scroll", "jump", "wait 3"]
)
def test_what_is_no_event(line: str) -> None:
    assert isinstance(read_event(line), str)
    world = begun(0, control="events")
    state = world.state
    assert not world.step(say(line)).valid and world.state[:PROPOSED] == state[:PROPOSED]
    assert world.state[PROPOSED:] == (1, 0)


def test_keys_are_held_until_they_go_up() -> None:
    world = begun(1, control="events")
    for event in ("key_down ArrowRight", "key_down ArrowLeft", "key_down ArrowRight"):
        world.step(say(event))
    assert world.state[HELD] == ("ArrowLeft", "ArrowRight")
    world.step(say("key_up ArrowLeft"))
    world.step(say("key_up Space"))
    assert world.state[HELD] == ("ArrowRight",) and "held ArrowRight" in world.show(world.state)
    assert world.state[CLOCK] == 0, "none of it has taken time"
    assert len(KEYS) == 5


# The games' rules, by hand

RNG = np.random.default_rng(0)


def test_a_jump_is_a_parabola() -> None:
    heights, at = [], (0, 2)
    for _ in range(6):
        at = fallen(*at)
        heights.append(at[0])
    assert heights == [2, 3, 3, 2, 0, 0]
    assert Runner().press((1, 0, (), 0, False), "Space", RNG) == (1, 0, (), 0, False), "not in the air"
    assert Runner().press((0, 0, (5,), 7, False), "Space", RNG) == (0, 2, (5,), 7, False)
    assert Runner().tick((0, 0, (3, 9), 7, False), (), RNG)[3:] == (8, True)
    assert Runner().tick((2, 1, (3, 9), 7, False), (), RNG)[3:] == (8, False)


def test_catching_and_missing() -> None:
    game = Catcher()
    assert game.tick((4, 2, 0, 0, 0), ("ArrowRight",), RNG) == (5, 2, 1, 0, 0)
    assert game.tick((0, 2, 0, 0, 0), ("ArrowLeft",), RNG)[0] == 0
    assert game.tick((3, 2, 6, 1, 1), (), RNG)[2:] == (0, 2, 1) and game.tick((4, 2, 6, 1, 1), (), RNG)[2:] == (0, 1, 2)
    assert game.over((0, 0, 0, 9, 3)) and not game.over((0, 0, 0, 9, 2))


def test_pits() -> None:
    game = Cavern()
    assert game.tick((0, 0, 0, "_ _", False), ("ArrowRight",), RNG) == (1, 0, 0, "_ _", True)
    assert game.tick((0, 0, 2, "_ _", False), ("ArrowRight",), RNG) == (1, 2, 1, "_ _", False)
    ground = game.start(np.random.default_rng(1))[3]
    assert ground[0] == "_" and " " in ground and "   " not in ground


def test_merging_and_selling() -> None:
    state = Merge().press(((2, 2, 0, 0, 0, 0, 0, 0, 0),), "ArrowLeft", RNG)
    assert state[0][0] == 4 and sum(map(bool, state[0])) == 2
    full = ((2, 4, 2, 4, 2, 4, 2, 4, 2),)
    assert Merge().over(full) and Merge().press(full, "ArrowUp", RNG) == full and Merge().score(full) == 4
    assert Merge().press(full, "Space", RNG) == full
    stall = Stall()
    assert stall.click((4, 0, 4), (0.25, 0.8)) == (5, 0, 5) and stall.click((4, 0, 4), (0.75, 0.8)) == (4, 0, 4)
    assert stall.click((5, 0, 5), (0.75, 0.8)) == (0, 1, 5) and stall.click((5, 0, 5), (0.75, 0.2)) == (5, 0, 5)
    assert stall.tick((0, 2, 5), (), RNG) == (2, 2, 7)


def test_options_out_of_range() -> None:
    for options in ({"names": []}, {"names": ["runner", "runner"]}, {"actions": 0}, {"latency": -1.0}, {"seed": -1}):
        with pytest.raises(UsageError, match="environment 'arcade'"):
            ArcadeGames(**options)  # type: ignore[arg-type]
    world = ArcadeGames(["runner"])
    with pytest.raises(UsageError, match="it has runner"):
        world.reset(ArcadeGames(["merge"]).tasks()[0], 0)
    assert len(NAMES) == 5


@pytest.mark.slow
@pytest.mark.parametrize(("control", "actions"), [("semantic", 60), ("events", 300)])
def test_its_audit_passes(control: str, actions: int) -> None:
    # A named action takes three to five events.
    worlds = Worlds({"name": "arcade", "control": control, "actions": actions}, workers=2)
    try:
        source = worlds.here().tasks()
        findings = list(audit_environment(worlds, [source[i] for i in range(5)]))
    finally:
        worlds.close()
    assert [(f.name, f.first) for f in findings if not f.passed] == []


def test_a_memory_of_the_last_rounds() -> None:
    seen: list[list[str]] = []

    def reply(messages: list[dict[str, Any]], tools: list[str]) -> str:
        seen.append([m["content"] for m in messages])
        return "wait" if len(seen) < 4 else "right"

    world = ArcadeGames(["catcher"])
    task = world.tasks()[0]
    frames = [world.reset(task, 0).messages[-1]["content"].removeprefix(f"{task.prompt}\n\n")]
    frames += [world.step(say(move)).observation.messages[-1]["content"] for move in ("wait", "wait", "wait", "right")]
    assert len(set(frames)) == 5 and all("tick" in frame for frame in frames)
    options: dict[str, Any] = {"turns": 5, "context": "rounds", "keep": 1}
    rollout = MultiTurn({"name": "arcade", "names": ["catcher"]}, Sampling(20), **options)
    [group] = rollout.collect([Ask(task, 1)], Talking(reply), np.random.default_rng(0))
    assert [turn.valid for turn in group.episodes[0].turns] == [True] * 5
    assert seen[0] == [f"{task.prompt}\n\n{frames[0]}"]
    moves = ("wait", "wait", "wait", "right")
    for turn, move in enumerate(moves):
        assert seen[turn + 1] == [f"{task.prompt}\n\n{frames[turn]}", move, frames[turn + 1]]


def test_it_is_played_in_an_evaluation(tmp_path: Path) -> None:
    games = {"name": "arcade", "names": ["stall"], "actions": 3}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 1024}},
        tasks={"source": {"name": "environment", "environment": games}, "eval_share": 0.2, "eval_size": 2},
        warmup={"steps": 0},
        method={"reward": "verdict", "rollout": {"name": "multi_turn", "environment": games, "turns": 3}},
        rollout={"prompts": 1, "group": 2, "max_tokens": 3, "max_rows": 8},
        train={"steps": 1, "epochs": 1, "mini_batches": 1},
    )
    found = [Evaluation.from_parquet(folder / "evals" / f"{label}.parquet") for label in ("before", "after")]
    report = GameScores()(*found)
    # Who writes at random does nothing that counts.
    assert report.progress.runs == (0, 0) and report.success.mean == 0 and report.invalid.mean == 1


def test_boards_are_drawn_tile_by_tile() -> None:
    """A fruit on the sky above a basket of three, 12 pixels a tile; what is written below is not of tiles."""
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    world = begun(1, frames="picture", names=["runner", "catcher"])
    [message] = world.reset(world.tasks()[1], 0).messages
    [shown] = message["images"]
    image = np.asarray(shown.open())
    assert image.shape == (12 * 9, 12 * len("caught 0, missed 0"), 3) and message["content"].count("<image>") == 1
    basket, column, row = world.state[GAME][:3]
    centres = image[6 : 12 * 8 : 12, 6 : 12 * 8 : 12]
    assert [tuple(map(int, cell)) for cell in np.argwhere((centres == (220, 40, 40)).all(-1))] == [(row, column)]
    assert np.flatnonzero((centres[7] == (150, 100, 40)).all(-1)).tolist() == [basket - 1, basket, basket + 1]
    assert (centres[3, 3] == SKY).all() and (image[12 * row, 12 * column] == SKY).all(), "fruits are round"
    step = world.step(say("left"))
    [now] = step.observation.messages[0]["images"]
    assert now != shown and "images" not in world.step(say("fly")).observation.messages[0]


def test_a_policy_that_sees_plays_by_pictures(tmp_path: Path) -> None:
    """Each frame stands in what the policy reads, the last round's alone where it remembers no more."""
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    games = {"name": "arcade", "names": ["catcher"], "actions": 3, "frames": "picture"}
    rollout = {"name": "multi_turn", "environment": games, "turns": 2, "context": "rounds", "keep": 0}
    vision = {"hidden": 16, "layers": 1, "pixels": 64}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 1024, "vision": vision}},
        tasks={"source": {"name": "environment", "environment": games}, "eval_share": 0.2, "eval_size": 2},
        warmup={"steps": 0},
        method={"reward": "verdict", "rollout": rollout},
        rollout={"prompts": 1, "group": 2, "max_tokens": 3, "max_rows": 8},
        train={"steps": 1, "epochs": 1, "mini_batches": 1},
    )
    found = Evaluation.from_parquet(folder / "evals" / "after.parquet")
    assert GameScores()(found).invalid.mean == 1

    policy = sighted("qwen2_vl")
    made = MultiTurn(games, Sampling(max_tokens=3), turns=2, context="rounds", keep=0)
    ask = Ask(ArcadeGames(names=["catcher"]).tasks()[0], 2)
    [group] = made.collect([ask], HFEngine(policy), np.random.default_rng(0))
    for episode in group.episodes:
        # Nonsense is answered in words.
        assert [len(numbers(prompt)) for prompt, _ in episode.rows] == [1, 0]


def test_a_memory_of_the_last_rounds_has_their_pictures() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    seen: list[list[int]] = []

    class Seeing(Talking):
        def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
            assert all(m["content"].count("<image>") == len(m.get("images", ())) for m in messages)
            seen.append([len(m.get("images", ())) for m in messages])
            return super().opening(messages, tools)

    options: dict[str, Any] = {"turns": 4, "context": "rounds", "keep": 1}
    rollout = MultiTurn({"name": "arcade", "names": ["catcher"], "frames": "picture"}, Sampling(20), **options)
    task = ArcadeGames(["catcher"]).tasks()[0]
    rollout.collect([Ask(task, 1)], Seeing(lambda messages, tools: "wait"), np.random.default_rng(0))
    # The frame of the round before stands in the question; what comes after is bridged to.
    assert seen == [[1], [1], [1]]
