"""Engines as teachers and judges: S097's solutions, S151's choice among drafts, S065's scores of steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scripted import Shared

from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.method import make_method
from assay.papers.objectives.s151_igrpo import DraftJudge
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rewards.process.asked_steps import AskedSteps, scored
from assay.rollout.taught import Taught
from assay.signals.base import Models
from assay.types import Ask, Episode, Group, Origin, Task, Verdict
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")


class Scripted:
    """An engine that answers each prompt with texts of its own, one token a character; keeps what it was asked."""

    def __init__(self, texts: Mapping[Any, list[str]] | Callable[[Any], list[str]], stop: str = "eos"):
        self.texts, self.stop, self.asked = texts, stop, list[Request]()

    def encode(self, prompt: Any) -> np.ndarray:
        return np.frombuffer(str(prompt).encode(), dtype=np.uint8).astype(np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def decode(self, tokens: Any) -> str:
        return bytes(np.asarray(tokens, dtype=np.uint8)).decode()

    def generate(self, requests: list[Request]) -> list[list[Episode]]:
        self.asked += requests
        out = []
        for r in requests:
            texts = self.texts(r.prompt) if callable(self.texts) else self.texts[r.prompt]
            out.append([episode(self.encode(r.prompt), texts[i % len(texts)], self.stop) for i in range(r.n)])
        return out


def episode(prompt: np.ndarray, text: str, stop: str = "eos") -> Episode:
    tokens = np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int64)
    return Episode(prompt, tokens, tokens >= 0, np.zeros(len(tokens), dtype=np.float32), text, stop)


TREE = Tree.of([0.0, [1.0, 0.0]])
"""Right is the path 1/0."""


def taught(teacher: Any, asks: list[Ask], verdict: Any = None, **options: Any) -> tuple[list[Group], Any]:
    judge = partial(judge_groups, verdict or TabularVerifier(TREE))
    rollout = Taught(Sampling(8), judge, teacher, **options)
    return again(rollout, asks), rollout


def again(rollout: Taught, asks: list[Ask]) -> list[Group]:
    return rollout.collect(asks, TabularEngine(TabularPolicy(TREE)), np.random.default_rng(0))


def test_the_teachers_first_right_response_is_the_solution() -> None:
    teacher = Scripted({"": ["0", "1/0", "1/1"]})
    asks = [Ask(Task("a", ""), 4), Ask(Task("b", ""), 2), Ask(Task("lone", ""), 1)]
    groups, rollout = taught(teacher, asks, tries=3)
    for group, ask in zip(groups, asks, strict=True):
        assert group.ask is ask and len(group.episodes) == ask.n
    for group in groups[:2]:
        assert group.episodes[-1].text == "1/0" and (group.episodes[-1].origins == Origin.TEACHER).all()
        assert group.episodes[-1].logprobs is None and all(e.origins is None for e in group.episodes[:-1])
    assert all(e.origins is None for e in groups[2].episodes)
    assert [(r.n, r.sampling) for r in teacher.asked] == [(3, Sampling(8))] * 2, "a lone response wants no solution"
    assert rollout.metrics() == {"teacher/asked": 2.0, "teacher/used": 1.0, "teacher/failed": 0.0}
    assert again(rollout, asks)[0].episodes[-1].text == "1/0"
    assert len(teacher.asked) == 2 and rollout.metrics() == {}, "what is known is asked for again"


def test_what_a_teacher_is_asked() -> None:
    """One that has forgotten, as a resumed run has, is asked with the same seed; another task with another."""
    one, two, other = (Scripted({"": ["1/0"]}) for _ in range(3))
    asks = [Ask(Task("a", ""), 4), Ask(Task("b", ""), 4)]
    _, rollout = taught(one, asks, max_tokens=3, temperature=0.5)
    taught(two, asks[1:])
    assert one.asked[0].seed != one.asked[1].seed == two.asked[0].seed
    assert (
        rollout.remembered == 100_000
        and one.asked[0].sampling == Sampling(3, 0.5)
        and [r.n for r in one.asked] == [4, 4]
    )

    class SharedTabular(Shared, TabularEngine):
        pass

    processes = SharedTabular(TabularPolicy(TREE))
    rollout = Taught(Sampling(8), partial(judge_groups, TabularVerifier(TREE)), other, tries=1)
    groups = rollout.collect(asks, processes, np.random.default_rng(0))
    assert processes.divisions == 1 and [g.episodes[-1].text for g in groups] == ["1/0"] * 2


@pytest.mark.parametrize(("text", "stop"), [("0", "eos"), ("1/0", "length"), ("1/0", "error"), ("", "eos")])
def test_without_a_right_response_the_task_s_own_solution_or_none(text: str, stop: str) -> None:
    """Wrong, cut off, not to be had, or nothing at all; the task is asked about again if it was not to be had."""
    teacher = Scripted({"": [text]}, stop)
    asks = [Ask(Task("a", "", solution="1/1"), 3), Ask(Task("b", ""), 3)]
    (own, none), rollout = taught(teacher, asks, tries=2, keep="any" if not text else "right")
    assert own.episodes[-1].text == "1/1" and len(own.episodes) == 3
    assert all(e.origins is None for e in none.episodes) and len(none.episodes) == 3
    assert rollout.metrics()["teacher/used"] == 0 and rollout.metrics()["teacher/failed"] == (stop == "error")
    again(rollout, asks)
    assert len(teacher.asked) == (4 if stop == "error" else 2)


def test_a_teacher_is_asked_again_where_the_verifier_abstained() -> None:
    teacher, ask = Scripted({"": ["0", "1/0"]}), [Ask(Task("a", ""), 3)]
    verdicts = {"0": Verdict.abstain("no time"), "1/0": Verdict.wrong()}
    [group], rollout = taught(teacher, ask, lambda task, text: verdicts[text], tries=2)
    assert all(e.origins is None for e in group.episodes)
    verdicts["1/0"] = Verdict.right()
    assert again(rollout, ask)[0].episodes[-1].text == "1/0" and len(teacher.asked) == 2


def test_any_response_will_do_if_asked_for_and_memory_is_bounded() -> None:
    teacher = Scripted({"": ["0"]})
    asks = [Ask(Task(name, ""), 2) for name in "ab"]
    groups, rollout = taught(teacher, asks, keep="any", remembered=1)
    assert [g.episodes[-1].text for g in groups] == ["0", "0"], "a solution was forgotten within its own step"
    again(rollout, asks[1:])
    assert len(teacher.asked) == 2, "the one that was used last is kept"
    again(rollout, asks)
    assert len(teacher.asked) == 3


def test_the_method_takes_a_teacher() -> None:
    teacher = Scripted({"": ["1/0"]})
    assert make_method("S097", options={"teacher": teacher}).rollout == {"name": "taught", "teacher": teacher}
    assert make_method("S097").rollout == "demonstration"
    assert taught(teacher, [], tries=1, remembered=1, max_tokens=1)[0] == []
    for bad in ({"teacher": "nobody"}, {"tries": 0}, {"remembered": 0}, {"max_tokens": 0}):
        with pytest.raises(UsageError, match=r"taught|nobody"):
            taught(asks=[], **{"teacher": teacher, **bad})


def critic(prompt: str) -> list[str]:
    """Two critiques of a draft: of good ones, of which one is better, and of a bad one."""
    kind = next((k for k in ("best", "fair", "mute") if k in prompt), "bad")
    yes, no, nothing = r"\boxed{True}", r"\boxed{False}", "hm"
    return {"best": [yes, yes], "fair": [yes, no], "mute": [nothing, nothing], "bad": [no, no]}[kind]


def test_a_judge_scores_drafts_and_what_comes_of_them_in_place_of_the_verifier() -> None:
    method = make_method("S151", options={"judge": Scripted(critic), "critiques": 2, "template": "{question}|{draft}|"})
    drafts = iter(["bad", "fair", "best", "mute", "1", "best 2", "mute", "fair"])
    engine = Scripted(lambda prompt: [next(drafts) for _ in range(4)])

    def nobody(groups: Any) -> Any:
        raise AssertionError("the verifier was asked")

    rollout = build("rollout", method.rollout, sampling=Sampling(8), judge=nobody)
    [group] = rollout.collect([Ask(Task("t", "q", reference="7"), 8)], engine, np.random.default_rng(0))
    assert [r.prompt for r in engine.asked] == ["q", "q|best|"] and len(group.episodes) == 4
    assert rollout.metrics()["drafts/best"] == 1.0
    assert rollout.metrics()["drafts/score"] == pytest.approx((0 + 0.5 + 1) / 3), "an abstention counts as a score"
    judge = method.rollout["judge"].engine
    assert [r.n for r in judge.asked] == [2] * 8 and not any("7" in r.prompt for r in judge.asked)
    assert [(v.score, v.passed) for v in group.verdicts] == [(0, False), (1, True), (0, None), (0.5, False)]


def test_a_judge_of_drafts_that_cannot_be_reached_abstains() -> None:
    groups = [Group(Ask(Task("t", "q"), 1), (episode(np.zeros(0, dtype=np.int64), "best"),))]
    [judged] = DraftJudge(Scripted(critic, "error"))(groups)
    assert judged.verdicts[0].passed is None
    with pytest.raises(UsageError, match="S151"):
        make_method("S151", options={"judge": object()})
    with pytest.raises(UsageError, match="n must be at least 1"):
        make_method("S151", options={"judge": Scripted(critic), "critiques": 0})


@pytest.mark.parametrize(
    ("critiques", "steps", "expected"),
    [
        ([-1, -1], 3, [1, 1, 1]),
        ([1], 3, [1, -1, -1]),
        ([1, -1, 2, None], 3, [1, 1 - 2 / 3, 1 - 4 / 3]),
        ([0, 0, 0, -1], 2, [-0.5, -0.5]),
        ([None, None], 2, None),
        ([-1], 0, []),
    ],
)
def test_steps_are_scored_by_where_critiques_see_the_first_error(critiques: Any, steps: int, expected: Any) -> None:
    found = scored(critiques, steps)
    assert found == (expected if expected is None else pytest.approx(expected))


def test_a_model_that_is_asked_is_a_process_reward_model() -> None:
    def said(prompt: str) -> list[str]:
        wrong = next(
            (k for k, line in enumerate(prompt.split("numbered steps:\n")[1].splitlines()) if "bad" in line), -1
        )
        return [f"I see \\boxed{{{wrong}}}", "no idea"]

    engine = Scripted(said)
    method = make_method("S065", options={"prm": engine, "steps": {"by": "newline"}, "kl_weight": 0.0})
    scorer = method.reward.scorer
    assert isinstance(scorer, AskedSteps) and scorer.engine is engine
    asks = [
        (Task("t", "q", reference="secret"), ["one", "bad", "three"]),
        (Task("t", "q"), ["one"]),
        (Task("t", "q"), []),
    ]
    assert scorer.scores([*asks, asks[1]]) == [[1, -1, -1], [1], [], [1]]
    assert len(engine.asked) == 2 and not any("secret" in r.prompt for r in engine.asked)
    wide = AskedSteps(engine, n=2)
    assert wide.scores(asks[:1]) == [[1, -1, -1]], "a critique that cannot be read counts as one"
    assert AskedSteps(Scripted(said, "error")).scores(asks[:2]) == [None, None]
    for bad in ({"n": 0}, {"template": "judge this"}, {"engine": object()}):
        with pytest.raises(UsageError):
            AskedSteps(**{"engine": engine, **bad})


class Letters(TabularPolicy):
    """Reads tokens as a script writes them."""

    def decode(self, tokens: Any) -> str:
        return bytes(np.asarray(tokens, dtype=np.uint8)).decode()


def test_its_scores_become_the_methods_rewards() -> None:
    """Two lines, the second wrong: the softmin at 0.1 gives it nearly all the weight, and the tokens earn -1 in all."""
    engine = Scripted(lambda prompt: [r"\boxed{1}" if "bad" in prompt else r"\boxed{-1}"])
    method = make_method("S065", options={"prm": engine, "steps": {"by": "newline"}, "kl_weight": 0.0, "outcome": 0.0})
    none = np.zeros(0, dtype=np.int64)
    texts = "ok\nbad", "ok\nfine"
    verdicts = tuple(Verdict.right() for _ in texts)
    group = Group(Ask(Task("t", "q", reference="1"), 2), tuple(episode(none, text) for text in texts), verdicts)
    batch, models = Batch.from_groups([group], torch.float64), Models(Letters(TREE))
    batch.signals = {signal.name: signal(batch, models) for signal in method.reward.needs}
    scores = batch.signals["step_scores"]
    assert scores[0].nonzero().tolist() == [[2], [5]] and scores[0, [2, 5]].tolist() == [1, -1]
    reward = method.reward(batch)
    placed = torch.where(batch.mask, reward.tokens, 0).sum(-1)
    weight = math.exp(10) / (math.exp(10) + math.exp(-10))
    assert placed.tolist() == pytest.approx([1 - 2 * weight, 1.0])
