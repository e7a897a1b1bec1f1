"""DAgger: who acts and who labels in a corridor, the schedule, aggregation, and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run

from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.keywords import Keywords
from assay.engines.tabular_turns import TabularTurns
from assay.environments.base import Action
from assay.environments.calls import written
from assay.environments.corridor import ACTIONS, Corridor
from assay.errors import UsageError
from assay.learning.signals import compute_signals
from assay.method import make_method
from assay.objectives.off_policy.soft_labels import SoftLabels
from assay.objectives.sft import SFT
from assay.papers.data.s176_dagger_agents import Aggregated, Dagger, Mixing, arm
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rollout.turns.enumerated import player
from assay.rollout.turns.labelling import LABEL
from assay.rollout.turns.under_way import Live
from assay.select.labels import relabelled
from assay.signals.base import Models
from assay.signals.reread.teacher_tokens import TeacherTokens
from assay.types import Ask, Episode, Group, Origin, Task, ToolCall

pytestmark = pytest.mark.usefixtures("one_thread")
CORRIDOR = {"name": "corridor", "rooms": 3, "moves": 4}
START, GOAL = 1, 3
PLAN = ["right", "right", "stop"]


def student(seed: int = 0) -> tuple[TabularTurns, Task]:
    """A player at random, and the task to go from room 1 to room 3: right, right, stop."""
    world = Corridor(rooms=3, moves=4)
    task = world.task_of(START, GOAL)
    engine = player(world, [task], (ACTIONS,), 4)
    with torch.no_grad():
        engine.policy.logits.add_(
            torch.randn(engine.policy.logits.shape, generator=torch.Generator().manual_seed(seed))
        )
    return engine, task


def collected(n: int = 16, **mixing: Any) -> tuple[Group, Group, Dagger]:
    """What was played, and the labels."""
    engine, task = student()
    rollout = Dagger(CORRIDOR, Sampling(1), Mixing(**mixing), turns=4)
    played, labels = rollout.collect([Ask(task, n)], engine, np.random.default_rng(0))
    assert labels.derived and not played.derived and labels.task.parent == task.id
    assert all(
        e.meta[LABEL] and e.logprobs is None and set(e.origins.tolist()) == {Origin.TEACHER} for e in labels.episodes
    )
    return played, labels, rollout


def plan_after(said: list[str]) -> str:
    """The first action of the shortest way, worked out here."""
    room = START
    for action in said:
        room = min(max(room + {"left": -1, "right": 1, "stop": 0}[action], 1), 3)
    return "stop" if room == GOAL else "right"


def test_at_beta_1_it_is_behaviour_cloning() -> None:
    """Every episode is the plan's, and its labels are the plan after each of its beginnings."""
    played, labels, rollout = collected(4, beta=1.0)
    assert [[t.text for t in e.turns] for e in played.episodes] == [PLAN] * 4
    assert [e.text for e in labels.episodes] == PLAN * 4 and all(v.passed for v in labels.verdicts)
    lengths = [len(e.prompt) for e in labels.episodes[:3]]
    assert [n - lengths[0] for n in lengths] == [0, 1, 2]
    assert np.isnan(played.episodes[0].logprobs[played.episodes[0].mask]).all(), "nobody sampled them"
    assert rollout.metrics()["dagger/labels"] == 12 and rollout.metrics()["dagger/beta"] == 1.0


def test_at_beta_0_the_teacher_labels() -> None:
    played, labels, _ = collected(24, beta=0.0)
    found = iter(labels.episodes)
    wrong = 0
    for episode in played.episodes:
        said = [t.text for t in episode.turns]
        assert not np.isnan(episode.logprobs[episode.mask]).any()
        for k in range(len(said)):
            label = next(found)
            assert label.text == plan_after(said[:k])
            assert label.prompt.tolist() == [*episode.prompt, *episode.tokens[: episode.turns[k].start]]
            wrong += label.text != said[k]
    assert next(found, None) is None and wrong > 10, "states off the plan's way are labelled too"


def test_in_a_run_its_steps_are_the_rounds() -> None:
    """One that goes on from a checkpoint goes on with the round, also where a recipe names the rollout by itself."""
    engine, task = student()
    options = {
        "name": "dagger",
        "environment": CORRIDOR,
        "mixing": {"decay": 0.5, "fall": 0.0, "floor": 0.0},
        "turns": 4,
    }
    made = build("rollout", options, sampling=Sampling(1), progress=lambda: (3, 10))
    made.collect([Ask(task, 1)], engine, np.random.default_rng(0))
    assert made.metrics()["dagger/beta"] == 0.125
    engine.divided = lambda items, work, cost: work(items, engine)
    with pytest.raises(UsageError, match="keeps its labels in one process"):
        made.collect([Ask(task, 1)], engine, np.random.default_rng(0))


def test_turns_are_mixed_by_beta() -> None:
    """Of first turns, all in one state: the student takes the plan's action with chance p, else by beta."""
    engine, _ = student()
    p = float(engine.policy.log_policy().detach()[engine.policy.tree.node((0,))].exp()[1])
    played, _, _ = collected(600, beta=0.4)
    unknown = np.mean([np.isnan(e.logprobs[0]) for e in played.episodes])
    right = np.mean([e.turns[0].text == "right" for e in played.episodes])
    assert unknown == pytest.approx(0.4, abs=0.06) and right == pytest.approx(0.4 + 0.6 * p, abs=0.06)


def test_the_schedule() -> None:
    engine, task = student()
    method = make_method("S176", options={"environment": CORRIDOR})
    mixing = method.rollout["mixing"]
    rollout = Dagger(CORRIDOR, Sampling(1), mixing, turns=4)
    shares = []
    for seed in range(4):
        rollout.collect([Ask(task, 1)], engine, np.random.default_rng(seed))
        shares.append(rollout.metrics()["dagger/beta"])
    assert shares == pytest.approx([1.0, 0.8, 0.6, 0.6]) and mixing.round == 4
    state = method.state_dict()
    again = make_method("S176", options={"environment": CORRIDOR, "beta": 0.5, "fall": 0.01, "floor": 0.1})
    again.load_state_dict(state)
    assert again.rollout["mixing"].share == pytest.approx(0.48), "half of 0.96"
    halves = Mixing(1.0, 0.0, 0.1, 0.5)
    assert [halves.share for halves.round in range(5)] == pytest.approx([1, 0.5, 0.25, 0.125, 0.1])
    before = mixing.round
    [evaluated] = rollout.play([Ask(task, 4)], [0], engine)
    assert not any(np.isnan(e.logprobs[e.mask]).any() for e in evaluated.episodes) and mixing.round == before


def test_a_single_switch() -> None:
    """In round 2 of switch 1 none, one or two turns are the student's, as often as each other; the rest is the
    teacher's."""
    played, _, _ = collected(300, switch=1, round=2)
    begun = []
    for episode in played.episodes:
        own = [not np.isnan(episode.logprobs[t.start]) for t in episode.turns]
        assert own == [k < sum(own) for k in range(len(own))] and sum(own) <= 2
        begun.append(sum(own))
    # Who stops in his first turn has no second one.
    assert begun.count(0) == pytest.approx(100, abs=30) and begun.count(2) > 50
    rng = np.random.default_rng(0)
    assert Mixing(switch=2, round=0).begins(rng) == 0 and Mixing().begins(rng) is None
    assert {Mixing(switch=2, round=1).begins(rng) for _ in range(50)} == {0, 1, 2}


def test_rounds_are_aggregated() -> None:
    played, labels, _ = collected(3, beta=1.0)
    batch = Batch.from_groups([played, labels], torch.float64)
    select = Aggregated(replayed=5)
    batch.weights = select(batch)
    assert batch.weights.tolist() == [0] * 3 + [1] * 9
    rng = np.random.default_rng(0)
    assert select.replay(batch, rng) == []
    [old] = select.replay(batch, rng)
    assert len(old) == 5 and len(select.state_dict()["known"]) == 18
    assert {tuple(e.tokens.tolist()) for e in old.episodes} <= {tuple(e.tokens.tolist()) for e in labels.episodes}
    again = Aggregated(replayed=5)
    again.load_state_dict(select.state_dict())
    assert len(again.replay(batch, rng)[0]) == 5
    latest = Aggregated(aggregate="latest")
    assert latest.replay(batch, rng) == [] and latest.replay(batch, rng) == []
    one = relabelled([([4, 5], [6, 7, 8])], batch)
    assert one.tokens.tolist() == [[6, 7, 8]] and one.episodes[0].prompt.tolist() == [4, 5] and bool(one.mask.all())


def test_episodes_that_fail_may_be_left_out() -> None:
    played, labels, _ = collected(24, beta=0.0)
    batch = Batch.from_groups([played, labels], torch.float64)
    kept = Aggregated(solved=True)(batch)[len(played.episodes) :]
    assert kept.tolist() == [float(v.passed is True) for v in labels.verdicts]
    assert 0 <= kept.sum() < len(labels.episodes)


def test_options() -> None:
    method = make_method("S176")
    assert method.objective == SFT("sequence_sum") and method.rollout == "single_turn"
    for bad in ({"beta": 1.5}, {"decay": -0.1}, {"fall": 2}, {"floor": -1}, {"switch": -1}, {"replayed": -1}):
        with pytest.raises(UsageError, match=r"S176|replayed -1"):
            make_method("S176", options=bad)
    with pytest.raises(UsageError, match="no plan"):
        Dagger(f"{__file__}:Planless", Sampling(1))


TEACHER = Keywords([(r"Room 3, \d moves left\.\W*$", "stop"), ("Go to room 3", "right")])


def test_a_language_model_teaches() -> None:
    """He reads the goal at the beginning and the room at the end of the conversation; no plan is needed."""
    engine, task = student()
    played, labels = Dagger(
        {**CORRIDOR, "name": f"{__file__}:Planless"}, Sampling(7), Mixing(0.0), 4, teacher=TEACHER
    ).collect([Ask(task, 24)], engine, np.random.default_rng(0))
    found, wrong = iter(labels.episodes), 0
    for episode in played.episodes:
        said = [t.text for t in episode.turns]
        for k in range(len(said)):
            label = next(found)
            assert label.text == plan_after(said[:k]) and label.meta[LABEL]
            assert label.prompt.tolist() == [*episode.prompt, *episode.tokens[: episode.turns[k].start]]
            wrong += label.text != said[k]
    assert next(found, None) is None and wrong > 10
    played, labels = Dagger(
        {**CORRIDOR, "name": f"{__file__}:Planless"}, Sampling(7), Mixing(1.0), 4, teacher=TEACHER
    ).collect([Ask(task, 2)], engine, np.random.default_rng(0))
    assert [[t.text for t in e.turns] for e in played.episodes] == [PLAN] * 2 and all(v.passed for v in labels.verdicts)


class Heard(Keywords):
    """Keeps what it is asked; ``stop`` and ``meta`` are those of its replies."""

    def __init__(self, text: str, stop: str = "eos", meta: dict[str, Any] | None = None):
        super().__init__([], text)
        self.asked, self.stop, self.meta = list[Request](), stop, meta or {}

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        made = super().generate(requests)
        return [[replace(e, stop=self.stop, meta=self.meta) for e in row] for row in made]  # type: ignore[arg-type]


def test_what_a_teacher_is_asked() -> None:
    """The messages so far, what he finds likeliest, in as many tokens as a turn has, all episodes in one call."""
    engine, task = student()
    heard = Heard("right")
    Dagger(CORRIDOR, Sampling(7, 0.9), Mixing(1.0), 4, teacher=heard).collect(
        [Ask(task, 2)], engine, np.random.default_rng(0)
    )
    assert [r.sampling for r in heard.asked] == [Sampling(7, 0.0)] * 8
    assert {(r.n, r.seed) for r in heard.asked} == {(1, 0)}
    method = make_method("S176", options={"environment": CORRIDOR, "teacher": heard})
    assert (
        method.rollout["teacher"] is heard
        and "teacher" not in make_method("S176", options={"environment": CORRIDOR}).rollout
    )  # type: ignore[index]
    first, *_, last = [list(r.prompt) for r in heard.asked]  # type: ignore[arg-type]
    assert "Go to room 3" in first[-1]["content"] and [m["role"] for m in last[-2:]] == ["assistant", "user"]
    assert len(last) == len(first) + 6 and last[-2]["content"] == "right"


def test_a_teacher_that_fails() -> None:
    """Its episodes are lost, and nobody's; a reply that was cut is a label without an end."""
    engine, task = student()
    lost = Heard("", "error", {"error": "no answer"})
    for teacher, words in ((lost, "the teacher failed: no answer"), (Heard(""), "the teacher failed: he said nothing")):
        groups = Dagger(CORRIDOR, Sampling(1), Mixing(0.0), 4, teacher=teacher).collect(
            [Ask(task, 2)], engine, np.random.default_rng(0)
        )
        [played] = groups
        assert [v.passed for v in played.verdicts] == [None, None]
        assert words in str(played.verdicts[0].feedback) and played.verdicts[0].fault == "infrastructure"
    ends = list[bool]()
    plain = engine.encode_response
    engine.encode_response = lambda text, end=True: (ends.append(end), plain(text))[1]  # type: ignore[method-assign]
    for stop in ("length", "eos"):
        ends.clear()
        teacher = Heard("right", stop)
        rollout = Dagger(CORRIDOR, Sampling(1), Mixing(0.0), 1, teacher=teacher)
        rollout.collect([Ask(task, 1)], engine, np.random.default_rng(0))
        assert ends == [stop != "length"]


class Silent(Corridor):
    """A corridor whose plan knows nothing of room 1."""

    def plan(self, state: Any) -> Sequence[str]:
        return () if state[0] == START else super().plan(state)


def test_where_the_plan_says_nothing_there_is_no_label() -> None:
    """And the student acts, whatever beta; others are labelled and taught all the same."""
    engine, task = student()
    rollout = Dagger({**CORRIDOR, "name": f"{__file__}:Silent"}, Sampling(1), Mixing(1.0, 1.0), 4)
    played, labels = rollout.collect([Ask(task, 12)], engine, np.random.default_rng(0))
    rooms = [[room_after([t.text for t in e.turns][:k]) for k in range(len(e.turns))] for e in played.episodes]
    assert len(labels.episodes) == sum(room != START for row in rooms for room in row) > 0
    for episode, row in zip(played.episodes, rooms, strict=True):
        own = [not np.isnan(episode.logprobs[turn.start]) for turn in episode.turns]
        assert own == [room == START for room in row]


def room_after(said: Sequence[str]) -> int:
    room = START
    for action in said:
        room = min(max(room + {"left": -1, "right": 1, "stop": 0}[action], 1), 3)
    return room


def test_one_teacher_that_fails_spoils_no_other_episode() -> None:
    engine, task = student()

    class Once(Heard):
        def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
            made = super().generate(requests)
            if len(self.asked) == len(requests):
                made[0] = [replace(made[0][0], stop="error")]
            return made

    played, labels = Dagger(CORRIDOR, Sampling(1), Mixing(0.0), 4, teacher=Once("right")).collect(
        [Ask(task, 3)], engine, np.random.default_rng(0)
    )
    assert [v.passed is None for v in played.verdicts] == [True, False, False]
    assert len(labels.episodes) == sum(len(e.turns) for e in played.episodes[1:])


def test_a_plan_of_calls_is_written_as_calls_are() -> None:
    call = ToolCall("move", {"to": 2}, 0, 0)
    world: Any = SimpleNamespace(ask=lambda what: [Action("go", (call,))] if what == "gold" else ())
    live = Live("t", world, np.random.default_rng(0), np.arange(3))
    engine = SimpleNamespace(encode_response=lambda text: [ord(c) for c in text])
    for calls, expected in (("python", written((call,), "python")), ("auto", "go")):
        [label] = Dagger(CORRIDOR, Sampling(1), calls=calls)._planned([live], engine)
        assert label is not None and label.text == expected and label.prompt.tolist() == [0, 1, 2]
        assert label.tokens.tolist() == [ord(c) for c in expected]


def chooser(*p: float) -> TabularPolicy:
    policy = TabularPolicy(Tree.bandit(len(p)))
    with torch.no_grad():
        policy.logits[0] = torch.tensor(p).log()
    return policy


def told(arms: Sequence[int], origin: Origin = Origin.TEACHER) -> Batch:
    policy = chooser(0.5, 0.5, 0.5)
    made = policy.episodes(torch.tensor(arms)[:, None], torch.ones(len(arms), dtype=torch.int64))
    episodes = [replace(e, origins=np.full(1, origin, dtype=np.uint8)) for e in made]
    batch = Batch.from_groups([Group(Ask(Task("t", ""), len(arms)), tuple(episodes))], torch.float64)
    batch.totals = batch.count()
    return batch


def test_soft_labels_by_hand() -> None:
    """-(.5 log .2 + .3 log .3 + .2 log .5): of two tokens and the rest, or of all; the gradient is pi - q."""
    pupil, teacher = chooser(0.2, 0.3, 0.5), chooser(0.5, 0.3, 0.2)
    for k in (2, 3):
        batch, objective = told([1, 1]), SoftLabels(TeacherTokens(teacher, k), "sequence_mean")
        compute_signals(batch, objective.needs, Models(pupil))
        assert batch.signals["candidates"][0, 0].tolist() == [0, 1, 2][:k], "his likeliest, and not the pupil's"
        assert batch.signals["teacher_logprobs"][0, 0].exp().tolist() == pytest.approx([0.5, 0.3, 0.2][:k])
        pupil.module.zero_grad()
        out = pupil.forward(batch, {"candidate_logprobs"})
        batch.live = out.live
        loss = objective(out.logprobs, batch).value
        assert loss.item() == pytest.approx(-(0.5 * np.log(0.2) + 0.3 * np.log(0.3) + 0.2 * np.log(0.5)), abs=1e-6)
        loss.backward()
        assert pupil.logits.grad[0].tolist() == pytest.approx([-0.3, 0.0, 0.3], abs=1e-6)
    # What somebody else said, or what is too long for the teacher, is a label as it is: -log .3.
    teacher.context = 0  # type: ignore[attr-defined]
    for batch in (told([1, 1], Origin.OWN), told([1, 1])):
        objective = SoftLabels(TeacherTokens(teacher if batch.episodes[0].origins[0] else chooser(0.5, 0.3, 0.2), 2))
        compute_signals(batch, objective.needs, Models(pupil))
        batch.live = pupil.forward(batch, {"candidate_logprobs"}).live
        assert objective(out.logprobs, batch).value.item() == pytest.approx(-np.log(0.3), abs=1e-5)


def test_labels_of_several_authors_in_one_batch() -> None:
    """The first and the third are soft; of the second, half of it his, and the fourth, too long for him, all stands
    on their own token."""
    teacher = chooser(0.5, 0.3, 0.2)
    teacher.context = 1  # type: ignore[attr-defined]
    batch = told([1, 2, 1, 1])
    mixed = np.array([Origin.TEACHER, Origin.OWN], dtype=np.uint8)
    batch.episodes = [
        batch.episodes[0],
        replace(batch.episodes[1], tokens=np.array([2, 0]), mask=np.ones(2, dtype=bool), origins=mixed),
        batch.episodes[2],
        replace(batch.episodes[3], prompt=np.zeros(1, dtype=np.int64)),
    ]
    found = TeacherTokens(teacher, 2)(batch, Models(chooser(0.2, 0.3, 0.5)))
    assert found[:, 0].exp().tolist() == [pytest.approx(x) for x in ([0.5, 0.3], [1, 0], [0.5, 0.3], [1, 0])]
    assert batch.signals["candidates"][:, 0].tolist() == [[0, 1], [2, 2], [0, 1], [1, 1]]
    batch.episodes = [replace(e, origins=None) for e in batch.episodes]
    assert TeacherTokens(teacher, 1)(batch, Models(teacher)).tolist() == [[[0.0]]] * 4
    assert batch.signals["candidates"].tolist() == [[[1]], [[2]], [[1]], [[1]]]


WORLD = {"name": "guess", "most": 4}
NANO = {"hidden": 16, "layers": 1, "heads": 2, "context": 96}


def test_soft_labels_are_learned_in_a_run(tmp_path: Path) -> None:
    """Labels are the same, and what is learned of them another thing, in replays too."""
    options = {"environment": WORLD, "turns": 2, "soft": 3}
    teacher = {"name": "hf", "model": {"source": "nano", "nano": NANO}, "seed": 1}
    sections: dict[str, Any] = {
        "model": {"nano": NANO},
        "tasks": {"source": {"name": "environment", "environment": WORLD}, "eval_size": 2},
        "train": {"steps": 2, "lr": 1e-2, "mini_batches": 1, "epochs": 1},
        "evaluate": {"every": 0},
    }
    found = {}
    for soft in (0, 3):
        method = {"name": "S176", "reward": "verdict", "options": {**options, "soft": soft, "teacher": teacher}}
        folder = run(tmp_path / str(soft), method=method, **sections)
        found[soft] = [row for row in metrics(folder) if "dagger/labels" in row]
    hard, softer = found[0], found[3]
    assert all(row["dagger/labels"] > 0 and row["grad_norm"] > 0 for row in softer)
    assert hard[0]["dagger/labels"] == softer[0]["dagger/labels"] and hard[0]["loss"] != softer[0]["loss"]
    # Neither model knows anything yet: three tokens and the rest are about as likely to both of them.
    assert 0 < softer[1]["replay/loss"] < hard[1]["replay/loss"]
    method["options"] = {
        **options,
        "teacher": {**teacher, "model": {"source": "nano", "nano": {**NANO, "alphabet": "ab"}}},
    }
    with pytest.raises(UsageError, match="the models do not share their tokens"):
        run(tmp_path / "other", method=method, **sections)


def test_soft_labels_of_whom() -> None:
    with pytest.raises(UsageError, match="soft labels need a teacher whose distributions can be read"):
        make_method("S176", options={"teacher": TEACHER, "soft": 3})
    with pytest.raises(UsageError, match="soft labels need a teacher"):
        make_method("S176", options={"soft": 3})
    with pytest.raises(UsageError, match="soft labels: 0 tokens must be at least 1"):
        TeacherTokens(chooser(0.5, 0.5), 0)
    with pytest.raises(UsageError, match="soft labels are of language models, not of a TabularPolicy; set soft = 0"):
        TeacherTokens(chooser(0.5, 0.5)).check(chooser(0.5, 0.5))
    assert make_method("S176", options={"teacher": TEACHER}).objective == SFT("sequence_sum")
    assert TeacherTokens(chooser(0.5, 0.5)).k == 20 and TeacherTokens(chooser(0.5, 0.5), 1).k == 1
    assert SoftLabels(TeacherTokens(chooser(0.5, 0.5))).ignores_rewards


def test_the_defaults() -> None:
    method = make_method("S176", options={"environment": CORRIDOR})
    assert method.select.replayed == 256 and method.rollout["turns"] == 8  # type: ignore[attr-defined,index]
    made = Dagger(CORRIDOR, Sampling(1))
    assert (made.turns, made.attempts) == (8, 2) and made.mixing == Mixing(1.0, 0.2, 0.6, 1.0, None, 0)
    for ends in ({"beta": 0.0, "decay": 0.0, "fall": 0.0, "floor": 0.0}, {"fall": 1.0, "floor": 1.0}, {"switch": 0}):
        Mixing(**ends)  # type: ignore[arg-type]
    for outside in ({"decay": 1.5}, {"switch": -2}, {"beta": -0.5}):
        with pytest.raises(UsageError, match="S176"):
            Mixing(**outside)  # type: ignore[arg-type]
    mixing = {"fall": 0.0, "floor": 0.0, "decay": 0.25}
    assert arm(0.25)["rollout"] == {"name": "dagger", "mixing": mixing, "turns": 4}


class Planless(Corridor):
    """A corridor that knows no way."""

    gold = None  # type: ignore[assignment]


@pytest.mark.slow
def test_in_the_lab_labels_where_the_student_goes_help() -> None:
    found = learned("S176", "dagger", steps=10, lr=10.0)
    assert found["final"] > found["start"] + 0.1
    plain = learned("S176", "cloning", steps=10, lr=10.0)
    assert plain["final"] > plain["start"] + 0.1 and plain["rollouts"] == 0, "the teacher acts throughout"


def test_it_trains_a_language_model(tmp_path: Path) -> None:
    world = {"name": "guess", "most": 4}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 96}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_size": 2},
        method={"name": "S176", "reward": "verdict", "options": {"environment": world, "turns": 3}},
        train={"steps": 2, "lr": 1e-2, "mini_batches": 1, "epochs": 1},
        evaluate={"samples": 1},
    )
    rows = [row for row in metrics(folder) if "dagger/labels" in row]
    assert [row["dagger/beta"] for row in rows] == [1.0, 0.8]
    assert all(row["grad_norm"] > 0 and row["dagger/labels"] > 0 for row in rows) and "replay/loss" in rows[1]
