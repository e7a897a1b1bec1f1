"""UI-S1: the worked returns and advantages, what stands in histories, patches, filter, SOP, and a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run

from assay import catalogue
from assay.batch import Batch
from assay.credit.turns.patched import Patched
from assay.engines.base import Request, Sampling
from assay.environments.base import Agreement, EnvironmentFailure
from assay.environments.corridor import Corridor
from assay.environments.screens.environment import Screens
from assay.environments.screens.matching import agreement
from assay.environments.screens.widgets import Screen, Widget
from assay.errors import RunError, UsageError
from assay.lab.settings.environment import Setting
from assay.learning.step import sample
from assay.method import Method, make_method
from assay.ops.turns import turns_of
from assay.papers.agents.s211_ui_s1 import FORM, TURNS
from assay.policies.tabular import TabularPolicy, Tree
from assay.records.evaluation import Evaluation
from assay.rewards.process.turns import TurnRewards
from assay.rollout.turns.semi_online import SemiOnline, sop, step_reward
from assay.select.first_return import FirstReturn
from assay.signals.base import Models
from assay.types import Ask, Episode, Group, Message, Origin, Task, Turn, Verdict
from assay.verify.gestures.gesture import Gesture, read_gesture
from assay.verify.none import NoVerifier

pytestmark = pytest.mark.usefixtures("one_thread")

SCREENS = {"name": "screens", "names": ["mail"]}
END = 0


class Chat:
    """An engine with a token for each character, whose turns come from a function of all that went before."""

    window = 10**6

    def __init__(self, say: Callable[[str, int], str]):
        self.say, self.asked = say, list[Request]()

    def encode(self, prompt: Any) -> np.ndarray:
        ids = getattr(prompt, "ids", None)
        return ids if ids is not None else np.array([ord(c) for c in str(prompt)], dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.array([*map(ord, text), *([END] if end else [])], dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return "".join(chr(t) for t in tokens if t != END)

    def opening(self, messages: Sequence[Message], tools: Sequence[Any]) -> np.ndarray:
        return self.encode("".join(f"[{m['role']}]{m['content']}" for m in messages) + "[assistant]")

    def bridge(self, messages: Sequence[Message], ended: bool) -> np.ndarray:
        return self.encode(
            ("" if ended else chr(END)) + "".join(f"[{m['role']}]{m['content']}" for m in messages) + "[assistant]"
        )

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for k, request in enumerate(requests):
            self.asked.append(request)
            before = np.concatenate([self.encode(request.prompt), np.array(request.prefix, dtype=np.int64)])
            text = self.say(self.decode(before), k)
            tokens = self.encode_response(text)
            zero = np.zeros(len(tokens), dtype=np.float32)
            out.append([Episode(before, tokens, np.ones(len(tokens), dtype=bool), zero, text, "eos", zero)])
        return out


def plan(index: int = 0) -> tuple[Task, list[str], list[str]]:
    """A task, the expert's lines, and what is seen before each of them and at the end."""
    world = Screens(["mail"])
    task = world.tasks()[index]
    seen = [world.reset(task, 0).messages[0]["content"]]
    lines = [a.text for a in world.gold()]
    for action in world.gold():
        seen.append(world.step(action).observation.messages[0]["content"])
    return task, lines, seen


def longest() -> int:
    return max(range(8), key=lambda i: len(plan(i)[1]))


def shortest() -> int:
    return min(range(8), key=lambda i: len(plan(i)[1]))


def following(say: Callable[[str, int], str], task: Task, n: int = 1, **options: Any) -> tuple[Group, Chat, SemiOnline]:
    rollout, engine = SemiOnline(SCREENS, Sampling(8), **options), Chat(say)
    [group] = rollout.collect([Ask(task, n)], engine, np.random.default_rng(0))
    return group, engine, rollout


def knowing(lines: Sequence[str], wrong: Sequence[int] = (), thought: str = "I see. ") -> Callable[[str, int], str]:
    """The expert's actions in one's own words, but at some steps."""

    def say(before: str, k: int) -> str:
        t = before.count("[assistant]") - 1
        return "wait" if t in wrong else f"{thought}\n{lines[t]}"

    return say


def test_the_history_is_ones_own_but_for_patches() -> None:
    task, lines, _ = plan(longest())
    group, engine, _ = following(knowing(lines, wrong=[1]), task)
    assert len(group.episodes) == len(lines) >= 4
    for t, episode in enumerate(group.episodes):
        history = engine.decode(episode.prompt)
        turns = history.split("[assistant]")[1:-1]
        assert len(turns) == t
        for k, turn in enumerate(turns):
            said = turn.partition("[user]")[0]
            assert said == (lines[1] if k == 1 else f"I see. \n{lines[k]}"), k
        assert episode.turns[0].index == t and episode.turns[0].reset is (t == 1)
        assert episode.mask.all() and (episode.turns[0].start, episode.turns[0].end) == (0, len(episode.tokens))
    assert len({e.trajectory for e in group.episodes}) == 1
    # What was sampled is what the next turn goes on from: its tokens, not its text.
    for a, b in pairwise(group.episodes):
        whole = np.concatenate([a.prompt, a.tokens])
        assert np.array_equal(b.prompt[: len(whole)], whole) is (a.turns[0].index != 1)
    assert [v.passed for v in group.verdicts] == [t != 1 for t in range(len(lines))]


def test_observations_are_the_experts() -> None:
    task, lines, seen = plan(longest())
    group, engine, _ = following(knowing(lines, wrong=range(99)), task, patches=-1)
    assert len(group.episodes) == len(lines)
    for t, episode in enumerate(group.episodes):
        assert engine.decode(episode.prompt).endswith(f"[user]{seen[t]}[assistant]")


def test_patches_are_counted() -> None:
    task, lines, _ = plan(longest())
    n = len(lines)
    for patches, turns in ((0, 1), (1, 2), (2, 3), (-1, n), (n, n)):
        group, _, rollout = following(knowing(lines, wrong=range(99)), task, n=2, patches=patches)
        assert len(group.episodes) == 2 * turns, patches
        assert rollout.metrics()["semi_online/patches"] == (turns - 1)
        assert rollout.metrics()["sop"] == 0
    assert len(following(knowing(lines, wrong=range(99)), task)[0].episodes) == 3, "two patches unless told"
    # Who makes no mistake needs none: as without any.
    for patches in (0, 2):
        group, _, rollout = following(knowing(lines), task, patches=patches)
        assert len(group.episodes) == n and rollout.metrics()["sop"] == 1
        assert rollout.metrics()["semi_online/patches"] == 0 and rollout.metrics()["semi_online/lost"] == 0
    # Of two mistakes the second ends it, with a single patch.
    group, _, rollout = following(knowing(lines, wrong=[0, 2]), task, patches=1)
    assert [e.turns[0].index for e in group.episodes] == [0, 1, 2] and rollout.metrics()["sop/progress"] == 0
    # Rollouts of a group are each other's business in nothing.
    both, _, _ = following(lambda b, k: knowing(lines, wrong=[0] if k else [])(b, k), task, n=2, patches=0)
    assert len(both.episodes) == n + 1 and len({e.trajectory for e in both.episodes}) == 2


def test_thoughts_of_patches() -> None:
    task, lines, _ = plan(longest())

    def say(before: str, k: int) -> str:
        return "<think>because</think>" if "Say in a sentence why" in before else "wait"

    for thought, expected in (("none", lines[0]), ("own", f"<think>because</think>\n{lines[0]}")):
        group, engine, _ = following(say, task, patches=1, thought=thought)
        assert f"[assistant]{expected}[user]" in engine.decode(group.episodes[1].prompt)
    noted = replace(task, meta={**task.meta, "thoughts": ["first", "second"]})
    group, engine, _ = following(say, noted, patches=1, thought="annotated")
    assert f"[assistant]<think>first</think>\n{lines[0]}[user]" in engine.decode(group.episodes[1].prompt)
    asked = following(say, task, patches=1, thought="own")[1].asked[1]
    assert asked.n == 1
    assert lines[0] in str(asked.prompt) and "<screen" in str(asked.prompt) and not asked.prefix
    with pytest.raises(RunError, match=r"meta\['thoughts'\] has none for step 2"):
        following(say, noted, patches=-1, thought="annotated")


def test_lessons_of_unequal_length_are_played_side_by_side() -> None:
    short, long = shortest(), longest()
    known = {plan(i)[0].prompt: plan(i) for i in (short, long)}
    assert len(plan(short)[1]) < len(plan(long)[1])

    def say(before: str, k: int) -> str:
        lines = next(lines for _, lines, seen in known.values() if before.startswith(f"[user]{seen[0]}"))
        return lines[before.count("[assistant]") - 1]

    engine = Chat(say)
    asks = [Ask(plan(i)[0], 1) for i in (short, long)]
    for group, i in zip(
        SemiOnline(SCREENS, Sampling(8)).collect(asks, engine, np.random.default_rng(0)), (short, long), strict=True
    ):
        _, lines, seen = plan(i)
        assert [e.text for e in group.episodes] == lines
        assert all(engine.decode(e.prompt).endswith(f"{seen[t]}[assistant]") for t, e in enumerate(group.episodes))


def test_a_turn_that_was_cut_is_closed_unless_the_experts_stands_there() -> None:
    """Where a response ran into its limit the engine ends it; a patch is whole."""
    task, lines, _ = plan(longest())

    class Cut(Chat):
        def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
            return [[replace(e, tokens=e.tokens[:-1], stop="limit")] for [e] in super().generate(requests)]

    rollout, engine = SemiOnline(SCREENS, Sampling(8)), Cut(knowing(lines, wrong=[1]))
    [group] = rollout.collect([Ask(task, 1)], engine, np.random.default_rng(0))
    cut, patched = (len(group.episodes[t + 1].prompt) - len(group.episodes[t].prompt) for t in (0, 1))
    [group] = rollout.collect([Ask(task, 1)], Chat(engine.say), np.random.default_rng(0))
    assert [len(b.prompt) - len(a.prompt) for a, b in pairwise(group.episodes)][:2] == [cut, patched]


def test_who_has_no_room_left_takes_no_turn() -> None:
    task, lines, _ = plan(longest())
    group, _, _ = following(knowing(lines), task)
    for before, episode in enumerate(group.episodes):
        for more, turns in ((0, before), (1, before + 1)):
            engine = Chat(knowing(lines))
            engine.window = len(episode.prompt) + more
            [played] = SemiOnline(SCREENS, Sampling(8)).play([Ask(task, 1)], [0], engine)
            assert len(engine.asked) == len(played.episodes[0].turns) == turns


def test_offline_the_history_is_the_experts() -> None:
    task, lines, _ = plan(longest())
    group, engine, rollout = following(knowing(lines), task, patches=0, history="expert")
    assert len(group.episodes) == len(lines) and rollout.metrics()["sop"] == 1
    assert "I see" not in engine.decode(group.episodes[-1].prompt)
    # But what is measured is one's own.
    [played] = rollout.play([Ask(task, 1)], [0], engine)
    assert played.episodes[0].text.count("I see") == len(lines)


@pytest.mark.parametrize(
    ("found", "formed", "reward"),
    [
        (Agreement(True, True, True), True, 1.0),
        (Agreement(True, True, False), True, 0.55),
        (Agreement(True, False, False), True, 0.19),
        (Agreement(True, True, True), False, 0.9),
        (Agreement(False, False, False), True, 0.1),
        (Agreement(False, False, False), False, 0.0),
    ],
)
def test_step_rewards(found: Agreement, formed: bool, reward: float) -> None:
    assert step_reward(found, formed) == pytest.approx(reward)


@pytest.mark.parametrize(
    ("said", "wanted", "kind", "exact"),
    [
        ("click a", "click a", True, True),
        ("click 0.205 0.15", "click a", True, True),  # in the box made a fifth larger
        ("click 0.26 0.15", "click a", True, False),
        ("click 0.62 0.63", "click 0.6 0.6", True, True),  # nearer than .04
        ("click 0.63 0.63", "click 0.6 0.6", True, False),
        ('type f "Ada"', 'type f "ada lovelace"', True, True),
        ('type f "Eve"', 'type f "ada lovelace"', True, False),
        ("swipe up", "swipe down", True, False),
        ("press back", "press back", True, True),
        ("terminate failure", "terminate success", True, True),
        ("wait", "press back", False, False),
    ],
)
def test_an_action_is_the_experts(said: str, wanted: str, kind: bool, exact: bool) -> None:
    seen = Screen("a", "t", (Widget("a", "button", box=(100, 100, 200, 200)),))
    one, two = read_gesture(said), read_gesture(wanted)
    assert isinstance(one, Gesture) and isinstance(two, Gesture)
    found = agreement(seen, one, two)
    assert (found.kind, found.exact) == (kind, exact)
    assert step_reward(found, True) == pytest.approx(1.0 if exact else 0.55 if kind else 0.19)


def test_the_form_is_of_the_whole_response() -> None:
    task, lines, _ = plan()
    good = f"<think>so</think> <action>{lines[0]}</action>"
    silent = [f"<think>{nothing}</think> <action>{lines[0]}</action>" for nothing in ("", " \n ")]
    for text, reward in ((good, 1.0), (lines[0], 0.9), (f"{good} ok", 0.9), *((s, 0.9) for s in silent), ("jump", 0.0)):
        group, _, _ = following(lambda b, k, t=text: t, task, patches=0, form=FORM)
        assert group.episodes[0].turns[0].reward == pytest.approx(reward)
        assert group.episodes[0].turns[0].info["formed"] is (text == good)
    assert following(lambda b, k: lines[0], task, patches=0)[0].episodes[0].turns[0].reward == 1.0
    with pytest.raises(UsageError, match="no regular expression"):
        SemiOnline(SCREENS, Sampling(8), form="(")


def rows(*rollouts: Sequence[tuple[float, bool]], task: str = "t") -> Group:
    """A group of turns with these rewards, each the expert's or not."""
    episodes = []
    for i, rollout in enumerate(rollouts):
        for t, (reward, matched) in enumerate(rollout):
            turn = Turn(t, 0, 2, reward=reward, reset=not matched)
            ones = np.ones(2, dtype=bool)
            none = np.zeros(2, dtype=np.float32)
            episodes.append(
                Episode(
                    np.zeros(1, dtype=np.int64),
                    np.zeros(2, dtype=np.int64),
                    ones,
                    none,
                    "",
                    "eos",
                    turns=(turn,),
                    trajectory=f"{task}/{i}",
                )
            )
    return Group(Ask(Task(task, "?"), len(rollouts)), tuple(episodes), tuple(Verdict.right() for _ in episodes))


CARD = ([(1, True), (1, True), (0.55, False), (1, True)], [(1, True), (0.19, False)])


def valued(*groups: Group, **options: Any) -> Batch:
    batch = Batch.from_groups(groups, dtype=torch.float64)
    method = Method(reward=TurnRewards(), credit=Patched(**options))
    return method.value(batch)


def test_the_worked_example() -> None:
    batch = valued(rows(*CARD))
    turns = turns_of(batch)
    assert turns.returns(turns.rewards, 0.5).tolist() == pytest.approx([1.5, 1, 0.55, 1, 1, 0.19])
    step = (
        valued(rows(*CARD), episode="steps", weight=1.0).advantages
        - valued(rows(*CARD), episode="steps", weight=0.0).advantages
    )
    assert step[:, 0].tolist() == pytest.approx([0.7071, 0.7071, 0, 0, -0.7071, -0.7071], abs=5e-5)
    assert torch.equal(batch.advantages[:, 0], batch.advantages[:, 1])
    code = valued(rows(*CARD), episode="steps", weight=0.0).advantages[:, 0]
    assert code.tolist() == pytest.approx([0.6093, 0.6093, -0.6963, 0.6093, 0.6093, -1.7408], abs=5e-5)
    # Sums of rewards 3.55 and 1.19, two of a kind: one deviation apart each way, whatever their number of turns.
    whole = valued(rows(*CARD), weight=0.0).advantages[:, 0]
    assert whole.tolist() == pytest.approx([0.7071] * 4 + [-0.7071] * 2, abs=5e-5)
    both = valued(rows(*CARD), weight=2.0).advantages[:, 0]
    assert both.tolist() == pytest.approx([3 * 0.7071, 3 * 0.7071, 0.7071, 0.7071, -3 * 0.7071, -3 * 0.7071], abs=2e-4)


def test_groups_are_compared_apart_and_abstentions_left_out() -> None:
    alone = valued(rows(*CARD)).advantages
    other = rows([(0.1, False)], [(0.9, True), (0.3, True)], [(0.5, True)], task="u")
    assert torch.allclose(valued(rows(*CARD), other).advantages[: len(alone)], alone)
    group = rows(*CARD, [(0.9, True)])
    lost = replace(group, verdicts=(*group.verdicts[:-1], Verdict.abstain("lost", "infrastructure")))
    found = valued(lost).advantages
    assert torch.allclose(found[: len(alone)], alone) and not found[-1].any()
    assert not valued(rows([(1.0, True)])).advantages.any()
    with pytest.raises(UsageError, match="discount"):
        Patched(discount=1.5)


def test_prompts_without_spread_are_left_out() -> None:
    # R_0 is 1.5 and 1 of the card: a deviation of .25.
    batch = Batch.from_groups(
        [rows(*CARD), rows([(1, True), (1, True)], [(0.1, False)], task="u")], dtype=torch.float64
    )
    method = Method(reward=TurnRewards(), credit=Patched(), select=FirstReturn())
    method.value(batch)
    assert batch.weights.tolist() == [0] * 6 + [1] * 3
    assert method.select.metrics() == {"first_return/kept": 0.5}  # type: ignore[attr-defined]
    assert not batch.advantages[:6].any() and batch.advantages[6:].all()
    for least, kept in ((0.25, 0), (0.2499, 6)):
        select = FirstReturn(least)
        weights = select(Method(reward=TurnRewards()).worth(Batch.from_groups([rows(*CARD)], dtype=torch.float64)))
        assert weights.sum() == kept and select.metrics() == {"first_return/kept": kept / 6}
    for options in ({"least": -1}, {"discount": 2}, {"rounds": 0}):
        with pytest.raises(UsageError, match="first_return"):
            FirstReturn(**options)  # type: ignore[arg-type]


def test_what_the_parts_take_and_are_by_themselves() -> None:
    for discount in (0, 1):
        assert Patched(discount).discount == FirstReturn(discount=discount).discount == discount
    for discount in (-0.1, 1.1):
        for made in (Patched, FirstReturn):
            with pytest.raises(UsageError, match="discount"):
                made(discount=discount)
    assert (Patched().discount, Patched().weight) == (0.5, 1.0)
    select = FirstReturn()
    assert repr(select) == "FirstReturn(least=0.3, discount=0.5, rounds=1)"
    assert select.metrics() == {"first_return/kept": 1.0}
    nothing = Batch.from_groups([], dtype=torch.float64)
    assert Patched()(nothing).numel() == 0
    assert select(nothing).numel() == 0 and select.metrics() == {"first_return/kept": 0.0}
    # What it saw last is none of what it is.
    assert select == FirstReturn()
    with pytest.raises(TypeError):
        FirstReturn(_kept=0.5)  # type: ignore[call-arg]


def test_a_turn_that_abstained_adds_nothing_to_its_episode() -> None:
    group = rows([(1, True), (0.5, True)], [(0.3, True), (0.1, True)], [(0.2, True), (0.9, True)])
    batch = Method(reward=TurnRewards()).worth(Batch.from_groups([group], dtype=torch.float64))
    batch.valid[0] = False
    found = Patched(weight=0)(batch)[1::2, 0]
    sums = np.array([0.5, 0.4, 1.1])
    np.testing.assert_allclose(found, (sums - sums.mean()) / (sums.std(ddof=1) + 1e-6), rtol=1e-9)


def test_other_prompts_are_asked_in_their_place() -> None:
    """A round brings a prompt without spread; another round takes its place."""
    given = [rows(*CARD, task="a"), rows([(1, True), (1, True)], [(0.1, False)], task="b")]
    asked: list[str] = []

    class Given:
        def collect(self, asks: Sequence[Ask], engine: Any, rng: Any) -> list[Group]:
            asked.extend(a.task.id for a in asks)
            return [next(g for g in given if g.task.id == a.task.id) for a in asks]

    method = Method(reward=TurnRewards(), credit=Patched(), select=FirstReturn(rounds=3))
    models = Models(TabularPolicy(Tree.bandit(2, [1, 0])))
    groups, batch = sample(
        [given[0].ask],
        Given(),
        None,
        NoVerifier(),
        method,
        models,
        np.random.default_rng(0),
        more=lambda: [given[1].ask],  # type: ignore[arg-type]
    )
    assert asked == ["a", "b"] and len(groups) == 2
    assert {t.id for t in batch.tasks} == {"b"} and batch.weights.all()


def test_sop() -> None:
    found = sop([(4, 4), (1, 4), (3, 6)])
    assert found["sop/progress"] == pytest.approx(0.5833, abs=5e-5)
    assert found["sop/finished"] == pytest.approx(0.3333, abs=5e-5)
    assert found["sop"] == pytest.approx(0.4583, abs=5e-5)
    assert sop([]) == {}


def test_evaluations_stop_at_the_first_mismatch() -> None:
    task, lines, _ = plan(longest())
    n = len(lines)
    rollout = SemiOnline(SCREENS, Sampling(8), patches=-1)
    for wrong, share in (([1], 1 / n), ([], 1.0), ([0], 0.0)):
        engine = Chat(knowing(lines, wrong=wrong))
        [group] = rollout.play([Ask(task, 2)], [5], engine)
        assert [v.score for v in group.verdicts] == [pytest.approx(share)] * 2
        assert [v.passed for v in group.verdicts] == [share == 1] * 2
        for episode in group.episodes:
            turns = n if share == 1 else wrong[0] + 1
            assert [t.index for t in episode.turns] == list(range(turns))
            assert episode.stop == ("eos" if share == 1 else "limit")
            own = np.zeros(len(episode.tokens), dtype=bool)
            for turn in episode.turns:
                own[turn.start : turn.end] = True
                assert engine.decode(episode.tokens[turn.start : turn.end]) == engine.say(
                    "[assistant]" * (turn.index + 1), 0
                )
            assert np.array_equal(own, episode.mask) and np.array_equal(own, episode.origins == Origin.OWN)


def test_a_world_that_fails_and_a_turn_that_does_are_nobodys_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    task, lines, _ = plan(longest())

    class Failing(Chat):
        def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
            made = super().generate(requests)
            return [[replace(e, stop="error", meta={"error": "away"})] if i == 1 else [e] for i, [e] in enumerate(made)]

    rollout, engine = SemiOnline(SCREENS, Sampling(8)), Failing(knowing(lines))
    [group] = rollout.collect([Ask(task, 2)], engine, np.random.default_rng(0))
    assert [v.passed for v in group.verdicts] == [True] * len(lines) + [None]
    assert len(engine.asked) == len(lines) + 1, "who was lost is not asked again"
    assert rollout.metrics()["semi_online/lost"] == 0.5 and rollout.metrics()["sop"] == 1

    def broken(self: Screens, action: Any) -> Any:
        raise OSError("no disk")

    with monkeypatch.context() as patch:
        patch.setattr(Screens, "compare", broken)
        engine = Chat(knowing(lines))
        [group] = rollout.collect([Ask(task, 2)], engine, np.random.default_rng(0))
        assert [v.passed for v in group.verdicts] == [None] * 2 and len(engine.asked) == 2
        assert [e.turns[0].reward for e in group.episodes] == [0, 0], "nothing is known of it"
    monkeypatch.setattr(Screens, "step", broken)
    [group] = rollout.collect([Ask(task, 2)], Chat(knowing(lines)), np.random.default_rng(0))
    assert all(v.passed is None and "no disk" in v.feedback for v in group.verdicts)
    [group] = rollout.play([Ask(task, 1)], [0], Chat(knowing(lines)))
    assert engine.decode(group.episodes[0].prompt).startswith("[user]"), "of one that began"
    monkeypatch.setattr(Screens, "beginning", broken)
    [group] = rollout.collect([Ask(task, 2)], Chat(knowing(lines)), np.random.default_rng(0))
    assert [e.stop for e in group.episodes] == ["error"] * 2 and group.verdicts[0].passed is None
    assert engine.decode(group.episodes[0].prompt) == task.prompt
    assert issubclass(EnvironmentFailure, RunError)


def test_where_one_world_fails_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    (task, lines, _), (other, itself, _) = plan(longest()), plan(shortest())
    step = Screens.step

    def broken(self: Screens, action: Any) -> Any:
        if self.task.id == task.id:
            raise OSError("no disk")
        return step(self, action)

    def say(before: str, k: int) -> str:
        t = before.count("[assistant]") - 1
        return (lines if t == k == 0 else itself)[t]

    monkeypatch.setattr(Screens, "step", broken)
    rollout = SemiOnline(SCREENS, Sampling(8))
    lost, went_on = rollout.collect([Ask(task, 1), Ask(other, 1)], Chat(say), np.random.default_rng(0))
    assert [v.passed for v in lost.verdicts] == [None] and [e.text for e in went_on.episodes] == itself
    assert len(itself) > 1


def test_an_environment_that_breaks_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """In two environments, unless told."""
    task, lines, _ = plan(longest())
    begin = Screens.beginning
    for options, failing, lost in (({}, 1, 0), ({}, 2, 1), ({"attempts": 1}, 1, 1)):
        left = [failing]

        def beginning(self: Screens, *given: Any, left: list[int] = left) -> Any:
            left[0] -= 1
            if left[0] >= 0:
                raise OSError("no disk")
            return begin(self, *given)

        monkeypatch.setattr(Screens, "beginning", beginning)
        _, _, rollout = following(knowing(lines), task, **options)
        assert rollout.metrics()["semi_online/lost"] == lost


def test_what_it_cannot_follow_is_refused() -> None:
    class Planless(Screens):
        gold = None  # type: ignore[assignment]

    for options, message in (
        ({"environment": "search"}, "needs gold.., and compare"),
        ({"patches": -2}, "must be >= -1"),
        ({"attempts": 0}, ">= 1"),
    ):
        with pytest.raises(UsageError, match=message):
            SemiOnline(**{"environment": SCREENS, "sampling": Sampling(8), **options})
    task, _, _ = plan()
    with pytest.raises(UsageError, match="cannot go on from its own tokens"):
        SemiOnline(SCREENS, Sampling(8)).collect([Ask(task, 1)], object(), np.random.default_rng(0))  # type: ignore[arg-type]


def test_the_papers_numbers() -> None:
    method = catalogue.make("S211", environment="screens")
    assert isinstance(method, Method)
    assert method.rollout == {
        "name": "semi_online",
        "environment": "screens",
        "patches": 2,
        "thought": "none",
        "form": FORM,
    }
    assert method.credit == Patched(0.5, 1.0, "return", 1, 1e-6) and method.select == FirstReturn(0.3, 0.5, 10)
    assert method.objective.kl_weight == 1e-4  # type: ignore[attr-defined]
    assert catalogue.make("S211").rollout == "single_turn"
    assert isinstance(make_method("S211").reward, TurnRewards)


GUESS = {"name": "guess", "most": 3}


def test_it_trains_and_is_measured_by_sop(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 96}},
        tasks={"source": {"name": "environment", "environment": GUESS}, "eval_share": 0.3, "eval_size": 2},
        warmup={"steps": 0},
        method={
            "name": "S211",
            "options": {"least": 0.0, "form": None},
            "rollout": {"name": "semi_online", "environment": GUESS},
            "reward": None,
        },
        rollout={"prompts": 2, "group": 6, "max_tokens": 2, "max_rows": 64},
        train={"steps": 3, "epochs": 1, "mini_batches": 1},
    )
    steps = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert len(steps) == 3 and all(m["semi_online/lost"] == 0 and 0 <= m["sop"] <= 1 for m in steps)
    assert all(0 <= m["semi_online/patches"] <= 2 for m in steps)
    assert any(m["grad_norm"] > 0 for m in steps)
    for label in ("before", "after"):
        found = Evaluation.from_parquet(folder / "evals" / f"{label}.parquet")
        assert all(s.passed is not None and 0 <= s.score <= 1 for s in found.samples)


@pytest.mark.slow
def test_a_tabular_policy_is_patched_with_the_words_of_its_expert() -> None:
    """In the lab's setting a patch is a path of the tree: the first thought, and the expert's action."""
    engine, tasks = Setting(words=TURNS, turns=4).player(0)
    assert engine.encode_response("right").tolist() == [0, 1] and engine.decode([1, 1]) == "hm\nright"
    with pytest.raises(UsageError, match="says one of left, right, stop"):
        engine.encode_response("up")
    rollout = SemiOnline("corridor", Sampling(2), patches=-1)
    groups = rollout.collect([Ask(task, 2) for task in tasks], engine, np.random.default_rng(0))
    for group in groups:
        world = Corridor()
        world.reset(group.task, 0)
        lines = [a.text for a in world.gold()]
        for episode in group.episodes:
            history, t = episode.prompt[1:], episode.turns[0].index
            assert len(history) == 2 * t
            said = [engine.decode(history[2 * k : 2 * k + 2]).split("\n") for k in range(t)]
            assert [action for _, action in said] == lines[:t]
        assert len(group.episodes) == 2 * len(lines)
