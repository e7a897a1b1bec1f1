"""Episodes of many turns: what was sampled stays what it is, and what breaks is nobody's wrong answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from ranked import Seat, seated
from running import metrics, run
from tiny import TOKENIZER, tiny

from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine
from assay.environments.base import Action, EnvironmentFailure, Observation, Step
from assay.environments.guess import Guess
from assay.environments.played import Played
from assay.environments.tools import say
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.tabular import TabularPolicy, Tree
from assay.records.evaluation import Evaluation
from assay.rollout.turns.multi_turn import MultiTurn
from assay.scale.divided import DividedEngine
from assay.types import Ask, Episode, Group, Message, Origin, Task

pytestmark = pytest.mark.usefixtures("one_thread")


class Noting(HFEngine):
    """Remembers what it was asked and what it gave."""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        made = super().generate(requests)
        self.said = [*getattr(self, "said", []), *((r, e) for r, [e] in zip(requests, made, strict=True))]
        return made


def engine() -> Noting:
    return Noting(CausalLM(tiny("llama", seed=3), TOKENIZER))


def playing(environment: Any = "guess", sampling: Sampling | None = None, **options: Any) -> MultiTurn:
    return MultiTurn(environment, sampling or Sampling(5), **options)


def played(rollout: MultiTurn, by: HFEngine, n: int = 4, tasks: int = 3, seed: int = 0) -> list[Group]:
    source = Guess().tasks()
    return rollout.collect([Ask(source[i], n) for i in range(tasks)], by, np.random.default_rng(seed))


def test_patience_is_for_environments_beside_each_other() -> None:
    for options in (
        {"patience": 1.0},
        {"patience": 0.0, "workers": 1},
        {"patience": 9.0, "workers": 1, "seconds": 5.0},
    ):
        with pytest.raises(UsageError, match="patience"):
            playing(**options)


def test_what_was_sampled_is_what_is_learned_from() -> None:
    by = engine()
    groups = played(playing(), by)
    ids = {e.trajectory: e for g in groups for e in g.episodes}
    assert len(ids) == 12
    for episode in ids.values():
        own = np.zeros(len(episode.tokens), dtype=bool)
        for turn in episode.turns:
            own[turn.start : turn.end] = True
            # The turn is one of the engine's responses, to all that stands before it.
            assert any(
                np.array_equal(said.tokens, episode.tokens[turn.start : turn.end])
                and np.array_equal(said.logprobs, episode.logprobs[turn.start : turn.end])  # type: ignore[arg-type, index]
                and request.prefix == tuple(episode.tokens[: turn.start].tolist())
                for request, said in by.said
            )
        assert np.array_equal(own, episode.mask) and np.array_equal(own, episode.origins == Origin.OWN)
        assert [t.index for t in episode.turns] == list(range(len(episode.turns)))
        assert np.isnan(episode.logprobs[~own]).all()  # type: ignore[index]
    assert sum(int(e.mask.sum()) for e in ids.values()) == sum(len(said.tokens) for _, said in by.said)


def test_the_trainer_agrees_with_the_sampler_on_every_turn() -> None:
    by = engine()
    batch = Batch.from_groups(played(playing(), by))
    with torch.no_grad():
        logprobs = by.policy.forward(batch).logprobs
    assert float((logprobs - batch.logprobs)[batch.mask].abs().max()) < 1e-4
    assert torch.equal(batch.turn >= 0, batch.mask) and batch.turn.max() > 0
    assert batch.count().trajectories == len(batch)


def test_sessions_change_nothing_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    by = engine()
    got = played(playing(), by)
    assert len({r.session for r, _ in by.said}) == 12 and len(by.sessions) == 0
    assert {r.session for r, _ in by.said} == {e.trajectory for g in got for e in g.episodes}
    monkeypatch.delattr(HFEngine, "end_sessions")
    plain = engine()
    expected = played(playing(), plain)
    assert {r.session for r, _ in plain.said} == {None}
    for a, b in zip((e for g in got for e in g.episodes), (e for g in expected for e in g.episodes), strict=True):
        assert np.array_equal(a.tokens, b.tokens)
        np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-5)  # type: ignore[arg-type]


def test_a_turn_that_was_cut_is_given_its_end() -> None:
    """Before the next turn every turn has ended once: by itself, or in what the environment's words begin with."""
    eos, cut, whole = TOKENIZER.eos_token_id, 0, 0
    for episode in (e for g in played(playing(sampling=Sampling(3)), engine(), n=16) for e in g.episodes):
        for turn in episode.turns[:-1]:
            ended = episode.tokens[turn.end - 1] == eos
            assert (episode.tokens[turn.end] == eos) != ended
            assert not episode.mask[turn.end]
            cut, whole = cut + (not ended), whole + ended
    assert cut and whole


def test_an_ask_does_not_depend_on_the_others() -> None:
    source, rollout, by = Guess().tasks(), playing(), engine()
    asks = [Ask(source[i], 2) for i in range(3)]
    together = rollout.play(asks, [7, 8, 9], by)
    alone = rollout.play(asks[1:2], [8], by)
    assert [e.text for e in alone[0].episodes] == [e.text for e in together[1].episodes]
    assert alone[0].verdicts == together[1].verdicts
    # But on its seed, and so do its episodes, each in its own way.
    [other] = rollout.play(asks[1:2], [9], by)
    assert len({e.text for e in (*alone[0].episodes, *other.episodes)}) == 4


def test_budgets_end_an_episode_where_it_stands() -> None:
    by = engine()
    turns = [e for g in played(playing(turns=2), by) for e in g.episodes]
    assert all(len(e.turns) <= 2 for e in turns) and {e.stop for e in turns} >= {"turns"}
    tokens = [e for g in played(playing(tokens=7), by) for e in g.episodes]
    assert all(e.mask.sum() <= 7 for e in tokens) and {e.stop for e in tokens} >= {"limit"}
    context = [e for g in played(playing(environment={"name": "guess", "asks": 20}, turns=20), by) for e in g.episodes]
    assert all(len(e.prompt) + len(e.tokens) <= by.window for e in context) and {e.stop for e in context} >= {"context"}
    for episode in (*turns, *tokens, *context):
        assert episode.truncated == episode.turns[-1].truncated == (not episode.turns[-1].terminated)


class Fragile(Guess):
    """Breaks as it is told."""

    breaks: Callable[[Any, str], None]
    made_so_far = 0
    open = 0

    def __init__(self) -> None:
        super().__init__()
        Fragile.made_so_far += 1
        self.born, self.steps = Fragile.made_so_far, 0

    def reset(self, task: Task, seed: int) -> Observation:
        Fragile.open += 1
        self.breaks("reset")
        return super().reset(task, seed)

    def step(self, action: Action) -> Step:
        self.steps += 1
        self.breaks("step")
        return super().step(action)

    def verdict(self) -> Any:
        self.breaks("verdict")
        return super().verdict()

    def close(self) -> None:
        Fragile.open -= 1
        super().close()


def fragile(monkeypatch: pytest.MonkeyPatch, breaks: Callable[[Fragile, str], None], **options: Any) -> MultiTurn:
    monkeypatch.setattr(Fragile, "breaks", breaks, raising=False)
    monkeypatch.setattr(Fragile, "made_so_far", 0)
    monkeypatch.setattr(Fragile, "open", 0)
    rollout = playing(**options)
    monkeypatch.setattr(rollout.worlds, "here", Fragile)
    return rollout


@pytest.mark.parametrize("where", ["reset", "step", "verdict"])
@pytest.mark.parametrize("kind", [ValueError, SystemExit, EnvironmentFailure])
def test_what_always_breaks_abstains(where: str, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(world: Fragile, here: str) -> None:
        if here == where:
            raise kind("no world today")

    rollout = fragile(monkeypatch, breaks)
    [group] = played(rollout, engine(), tasks=1)
    assert all(v.passed is None and v.fault == "infrastructure" for v in group.verdicts)
    assert all("no world today" in v.feedback for v in group.verdicts)
    assert Fragile.open == 0
    batch = Batch.from_groups([group])
    assert len(batch) == 4 and all(len(e.prompt) for e in batch.episodes)


def test_what_breaks_once_is_played_again_to_the_same_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(world: Fragile, here: str) -> None:
        if here == "step" and world.steps == 2 and world.born <= 12:
            raise OSError("a cable was pulled")

    by = engine()
    expected = played(playing(), by)
    got = played(fragile(monkeypatch, breaks), by)
    assert [g.verdicts for g in got] == [g.verdicts for g in expected]
    assert [e.text for g in got for e in g.episodes] == [e.text for g in expected for e in g.episodes]
    assert Fragile.made_so_far > 12 and Fragile.open == 0


@pytest.mark.parametrize("arrival", [False, True])
def test_in_processes_it_plays_the_same_episodes(arrival: bool) -> None:
    """Each turn has a seed of its own, so that who waits for whom changes nothing but rounding."""
    expected = played(playing(), engine())
    rollout = playing(workers=2, arrival=arrival)
    got = played(rollout, engine())
    assert [g.verdicts for g in got] == [g.verdicts for g in expected]
    assert [e.text for g in got for e in g.episodes] == [e.text for g in expected for e in g.episodes]
    rollout.worlds.close()
    with pytest.raises(UsageError, match="arrival needs"):
        playing(arrival=True)


def test_time_is_a_budget() -> None:
    slow = Path(__file__).parents[2] / "environments" / "hosted_world.py"
    world = {"name": f"{slow}:World", "latency": 0.02}
    task = Task("t", "go")
    [group] = playing(world, wall=0.01).play([Ask(task, 2)], [0], engine())
    assert all(e.stop == "limit" and len(e.turns) == 1 and e.turns[0].truncated for e in group.episodes)
    assert all(v.passed is False for v in group.verdicts)
    # Waiting takes no processor.
    [group] = playing(world, processor=30.0, turns=2).play([Ask(task, 2)], [0], engine())
    assert all(len(e.turns) == 2 for e in group.episodes)
    [group] = playing(world, processor=1e-9, turns=2).play([Ask(task, 2)], [0], engine())
    assert all(e.stop == "limit" for e in group.episodes)
    with pytest.raises(UsageError, match="must be above 0"):
        playing(wall=0)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_oracle_is_asked_of_every_action_before_it_is_taken(workers: int) -> None:
    groups = played(playing(oracle=True, workers=workers), by := engine(), n=24)
    judged = []
    for group in groups:
        for episode in group.episodes:
            world = Guess()
            world.reset(group.task, 0)
            for turn in episode.turns:
                action = say(by.decode(episode.tokens[turn.start : turn.end]))
                judged.append(turn.verdict)
                assert turn.verdict == world.judge(action)
                world.step(action)
    assert {v.passed for v in judged} == {True, False}
    assert all(t.verdict is None for g in played(playing(), by) for e in g.episodes for t in e.turns)
    with pytest.raises(UsageError, match="'search' has no oracle"):
        playing(environment="search", oracle=True)


def test_an_oracle_that_fails_is_asked_again_in_another_world() -> None:
    asked = 0

    class Shaky(Guess):
        def judge(self, action: Action) -> Any:
            nonlocal asked
            asked += 1
            if asked == 2:
                raise OSError("away")
            return super().judge(action)

    world = Played(Shaky, Task("t", "1-16?", {"number": 5}), 0, attempts=2, oracle=True)
    world.reset()
    steps = [world.step(say("8")), world.step(say("1"))]
    assert [s.verdict.passed for s in steps if s.verdict] == [True, False] and asked == 4


def test_a_world_that_does_not_repeat_itself_is_given_up() -> None:
    count = 0

    class Whimsical(Guess):
        def step(self, action: Action) -> Step:
            nonlocal count
            count += 1
            if count == 2:
                raise OSError("gone")
            made = super().step(action)
            return Step(Observation((Message(role="user", content=str(count)),)), terminated=made.terminated)

    world = Played(Whimsical, Task("t", "1-16?", {"number": 5}), 0, attempts=3)
    world.reset()
    world.step(say("1"))
    with pytest.raises(EnvironmentFailure, match="takes another course"):
        world.step(say("2"))

    class Moving(Guess):
        born = 0

        def reset(self, task: Task, seed: int) -> Observation:
            Moving.born += 1
            return Observation((Message(role="user", content=str(Moving.born)),), state=super().reset(task, seed).state)

        def step(self, action: Action) -> Step:
            raise OSError("gone")

    moved = Played(Moving, Task("t", "1-16?", {"number": 5}), 0, attempts=3)
    moved.reset()
    with pytest.raises(EnvironmentFailure, match="begins differently"):
        moved.step(say("2"))
    assert Moving.born == 2


def test_gold_passes_idle_does_not() -> None:
    source = Guess().tasks()
    for i in range(50):
        world, idle = Guess(), Guess()
        world.reset(source[i], 0)
        idle.reset(source[i], 0)
        for action in world.gold():
            assert world.judge(action).passed
            step = world.step(action)
        assert step.terminated and world.verdict().passed
        while not idle.step(say("I wait")).terminated:
            assert not idle.verdict().passed
        assert idle.verdict().passed is False


def test_an_engine_without_tokens_of_its_own_is_refused() -> None:
    by = TabularEngine(TabularPolicy(Tree.bandit(2, [1, 0])))
    with pytest.raises(UsageError, match="cannot go on from its own tokens"):
        playing().collect([Ask(Guess().tasks()[0], 1)], by, np.random.default_rng(0))
    with pytest.raises(UsageError, match="must be >= 1"):
        playing(turns=0)
    with pytest.raises(UsageError, match="no option"):
        playing(environment={"name": "guess", "mots": 3})


CHATML = (
    "{% for m in messages %}({{ m['role'][0] }} {{ m['content'] }}<eos>\n{% endfor %}"
    "{% if add_generation_prompt %}(a {% endif %}"
)


def test_an_environment_in_a_file_is_run_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    own = f"open({str(count)!r}, 'a').write('x')\nfrom assay.environments.guess import Guess\nclass Own(Guess): pass\n"
    (tmp_path / "own.py").write_text(own)
    groups = played(playing(environment=f"{tmp_path / 'own.py'}:Own"), engine())
    assert count.read_text() == "x" and all(v.passed is not None for g in groups for v in g.verdicts)


@pytest.mark.parametrize("said", ["2", "2 \u2402\u2403 2"])
@pytest.mark.parametrize("ended", [True, False])
def test_a_chat_goes_on_as_its_template_writes_it(ended: bool, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening, a turn and the bridge are the very tokens of the whole conversation, where the turn can be written."""
    monkeypatch.setattr(TOKENIZER, "chat_template", CHATML)
    by = HFEngine(CausalLM(tiny("llama"), TOKENIZER))
    first, later = Message(role="user", content="1+1"), Message(role="tool", content=said)
    turn = TOKENIZER("a b", add_special_tokens=False)["input_ids"]
    turn = [*turn, TOKENIZER.eos_token_id] if ended else turn
    got = [*by.opening((first,), ()), *turn, *by.bridge((later,), ended)]
    spoken = Message(role="assistant", content="a b")
    whole = TOKENIZER.apply_chat_template([first, spoken, later], add_generation_prompt=True, tokenize=False)
    assert got == TOKENIZER(whole, add_special_tokens=False)["input_ids"]


def test_it_trains_and_is_measured_by_playing(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 96}},
        tasks={"source": {"name": "environment", "environment": {"name": "guess", "most": 9}}, "eval_share": 0.2},
        warmup={"steps": 0},
        method={"reward": "verdict", "rollout": {"name": "multi_turn", "environment": {"name": "guess", "most": 9}}},
        rollout={"prompts": 4, "group": 8, "max_tokens": 2, "max_rows": 64},
        train={"steps": 3, "epochs": 1, "mini_batches": 1},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert [m["environment/lost"] for m in rows] == [0.0] * 3
    assert all(1 <= m["environment/turns"] <= 4 for m in rows)
    assert any(m["grad_norm"] > 0 for m in rows)
    # What the environment says is neither drawn from a distribution nor a part of the length.
    assert all(np.isfinite([v for v in m.values() if isinstance(v, float)]).all() for m in rows)
    assert all(m["length/max"] <= 2 * 4 for m in rows)
    kept = pq.read_table(folder / "rollouts" / "step-000001.parquet").to_pylist()
    for row in kept:
        turns = json.loads(row["turns"])
        assert [t["index"] for t in turns] == list(range(len(turns)))
        assert turns[0]["state"] == "1-9" and turns[-1]["terminated"]
        assert all(a["next_state"] == b["state"] for a, b in pairwise(turns))
        assert sum(t["end"] - t["start"] for t in turns) == row["length"]
        assert all(t["advantage"] == pytest.approx(row["advantage"]) for t in turns)
    assert len({row["trajectory"] for row in kept}) == 32
    for label in ("before", "after"):
        found = Evaluation.from_parquet(folder / "evals" / f"{label}.parquet")
        assert len(found.samples) == 12 and all(s.passed is not None and s.turns for s in found.samples)


def test_ranks_divide_what_is_played() -> None:
    whole = playing()
    expected = played(whole, engine())
    made, rollouts = [engine(), engine()], [playing(), playing()]

    def rank(seat: Seat) -> list[Group]:
        return played(rollouts[seat.rank], DividedEngine(made[seat.rank], seat))  # type: ignore[arg-type]

    both = seated(rank)
    for got, rollout in zip(both, rollouts, strict=True):
        assert [g.verdicts for g in got] == [g.verdicts for g in expected]
        assert [e.text for g in got for e in g.episodes] == [e.text for g in expected for e in g.episodes]
        assert rollout.metrics() == whole.metrics()
    # Of three tasks one rank has played two, with four episodes each.
    assert sorted(len({r.session for r, _ in e.said}) for e in made) == [4, 8]
