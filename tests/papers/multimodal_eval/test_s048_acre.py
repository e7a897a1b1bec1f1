"""ACRE: options in another order, thoughts that go on from there, four cases by hand, and a run that sees."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run

from assay import catalogue
from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.engines.base import Request, Sampling
from assay.engines.keywords import Keywords
from assay.errors import RunError, UsageError
from assay.lab.settings import load
from assay.media import Picture
from assay.rewards.outcome.consistency import Consistency
from assay.rewards.text.rederived import Rederived, chosen
from assay.rollout.reread.options import order_of, reordered
from assay.rollout.reread.reordered import REORDERED, Reordered, Second
from assay.tasks.pictures.shapes import Shapes
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.answer.options import listed
from assay.verify.episodes import judge_groups
from assay.verify.kind import KindVerifier

JUDGE = KindVerifier()
Q = "Which?\nA. w\nB. x\nC. y\nD. z\nSay a letter."
TASK = Task("t", Q, "C", "choice")
ORDER = (2, 0, 3, 1)
MOVED = "Which?\nA. y\nB. w\nC. z\nD. x\nSay a letter."


def test_a_question_in_another_order() -> None:
    """A is now y, B w, C z, D x: what was right by C is right by A."""
    made = reordered(TASK, ORDER)
    assert (made.prompt, made.reference) == (MOVED, "A")
    assert listed(MOVED) == {"A": "y", "B": "w", "C": "z", "D": "x"}
    back = [ORDER.index(i) for i in range(4)]
    assert reordered(made, back) == TASK
    assert reordered(replace(TASK, reference="y"), ORDER).reference == "y"
    assert reordered(replace(TASK, reference=["B", "d"]), ORDER).reference == ["D", "C"]
    chat = ({"role": "system", "content": "Hm."}, {"role": "user", "content": Q})
    given = {"answer": "A", "options": ["w", "x", "y", "z"]}
    told = replace(TASK, prompt=chat, reference=given, meta={"options": dict(zip("ABCD", "wxyz", strict=True)), "k": 1})
    moved = reordered(told, ORDER)
    assert moved.prompt == (chat[0], {"role": "user", "content": MOVED})
    assert moved.reference == {"answer": "B", "options": ["y", "w", "z", "x"]}
    assert moved.meta == {"options": {"A": "y", "B": "w", "C": "z", "D": "x"}, "k": 1}
    assert reordered(replace(TASK, prompt="Is it (A) red; (B) not?"), (1, 0)).prompt == "Is it (A) not?; (B) red"
    long = "." * 30_000 + "\n" + Q
    assert reordered(replace(TASK, prompt=long), ORDER).prompt == "." * 30_000 + "\n" + MOVED
    with pytest.raises(ValueError, match="task t lists 4 options, the order has 2"):
        reordered(TASK, (1, 0))


def test_derangements_and_any_order() -> None:
    """Of 24 orders of four options 9 leave none in its place, and one in four leaves a given letter there."""
    rng = np.random.default_rng(0)
    moved = Counter(order_of(rng, 4, "derangement") for _ in range(900))
    assert len(moved) == 9 and min(moved.values()) > 60
    assert all(i != k for order in moved for i, k in enumerate(order))
    drawn = Counter(order_of(rng, 4, "any") for _ in range(2400))
    assert set(drawn) == set(itertools.permutations(range(4)))
    assert sum(n for order, n in drawn.items() if order[1] == 1) / 2400 == pytest.approx(0.25, abs=0.04)
    assert order_of(rng, 1, "derangement") == (0,)


class Characters:
    """An engine whose tokens are characters; it answers by a function of the question and what was said so far."""

    def __init__(self, say: Callable[[str, str, int], str]):
        self.say, self.asked = say, list[Request]()

    def encode(self, prompt: Any) -> np.ndarray:
        return self.encode_response(str(prompt))

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.array([ord(c) for c in text], dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return "".join(chr(int(t)) for t in tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        out = []
        for request in requests:
            texts = [self.say(str(request.prompt), self.decode(request.prefix), k) for k in range(request.n)]
            tokens = [self.encode_response(text) for text in texts]
            prompt = self.encode(request.prompt)
            out.append(
                [Episode(prompt, t, t > 0, np.zeros(len(t)), x, "eos") for t, x in zip(tokens, texts, strict=True)]
            )
        return out


def rollout(**options: Any) -> Reordered:
    judge = partial(judge_groups, JUDGE)
    return Reordered(Sampling(32), judge=judge, answer=JUDGE.answer, **options)  # type: ignore[arg-type]


def label(question: str, text: str) -> str:
    return next(k for k, v in listed(question).items() if v == text)


def test_the_thought_is_continued_as_it_was_sampled() -> None:
    """Four responses: one that thinks of y, one that says C whatever it thinks, one of w, one without an answer."""

    def say(question: str, begun: str, k: int) -> str:
        if begun:
            thought = begun.partition("<think>")[2][0]
            return (label(question, thought) if thought in "wy" else "C") + "</answer>"
        thoughts = [f"<think>{c}</think><answer>" for c in "y?w"]
        return [*(f"{t}{'CCA'[i]}</answer>" for i, t in enumerate(thoughts)), "<think>I cannot"][k]

    engine, part = Characters(say), rollout(tokens=20, temperature=0.5)
    [group] = part.collect([Ask(TASK, 4)], engine, np.random.default_rng(1))
    told = [e.meta[REORDERED] for e in group.episodes]
    assert [v.passed for v in group.verdicts] == [True, True, False, False]
    assert [s.passed for s in told] == [True, False, False, False]
    assert [s.same for s in told] == [True, False, True, False]
    assert told[0].text.startswith("<think>y</think><answer>") and told[3].text == ""
    assert all(i != k for s in told for i, k in enumerate(s.order))
    # What was said is what it was, and only three were asked again, from their own thoughts.
    assert group.episodes[0].text == "<think>y</think><answer>C</answer>"
    first, *again = engine.asked
    assert len(again) == 3 and [engine.decode(r.prefix) for r in again] == [
        f"<think>{c}</think><answer>" for c in "y?w"
    ]
    assert (again[0].n, again[0].sampling.max_tokens, again[0].sampling.temperature) == (1, 20, 0.5)
    assert first.prompt == Q and again[0].prompt == reordered(TASK, told[0].order).prompt
    assert part.metrics() == {"reordered/same": 0.5, "reordered/right": 0.25}
    assert len(group.episodes) == 4, "second answers are not learned from"
    plain = rollout()
    assert (plain.tokens, plain.temperature, plain.order) == (16, 0.0, "derangement") and plain.metrics() == {}
    with pytest.raises(UsageError, match="tokens 0 must be at least 1"):
        rollout(tokens=0)


def test_the_same_option_by_another_letter() -> None:
    """Both answers are wrong: x by its letter of then and now is one option, B and again B are two."""

    def say(question: str, begun: str, k: int) -> str:
        answer = "B" if k or "letter" in begun else label(question, "x")
        return f"{answer}</answer>" if begun else f"<think>{['x', 'letter'][k]}</think><answer>{answer}</answer>"

    [group] = rollout().collect([Ask(TASK, 2)], Characters(say), np.random.default_rng(3))
    assert [v.passed for v in group.verdicts] == [False, False]
    told = [e.meta[REORDERED] for e in group.episodes]
    # The second may be right by chance, where y has come to B; then it is not the same.
    assert told[0].same is True and told[1].same is False
    same = rollout(order="any")
    rng, kept = np.random.default_rng(0), []
    for _ in range(12):
        [group] = same.collect([Ask(TASK, 2)], Characters(say), rng)
        kept += [(s.same, s.order[1] == 1) for s in (group.episodes[1].meta[REORDERED],)]
    assert all(same == left for same, left in kept) and {left for _, left in kept} == {True, False}


def batch(cases: Sequence[tuple[bool | None, bool | None]], text: str = "<think>a</think> <answer>C</answer>") -> Batch:
    one = np.ones(1, dtype=np.int64)
    episodes = tuple(
        Episode(one, one, one > 0, np.zeros(1), text, "eos", meta={REORDERED: Second(ORDER, again, None, "")})
        for _, again in cases
    )
    verdicts = tuple(Verdict(float(right or 0), right) for right, _ in cases)
    return Batch.from_groups([Group(Ask(TASK, len(cases)), episodes, verdicts)], torch.float64)


CASES = [(True, True), (True, False), (False, True), (False, False)]


def test_the_four_cases() -> None:
    """Rewards 2.3, 2.1, 1.1, 1, and what becomes of them in a group; without alpha the first two are alike."""
    made = catalogue.make("S048")
    found = made.reward(batch(CASES))
    assert found.values.tolist() == pytest.approx([2.3, 2.1, 1.1, 1.0])
    assert found.terms["consistency"].tolist() == [0.3, 0.1, 0.1, 0] and found.terms["right"].tolist() == [1, 1, 0, 0]
    valued = made.value(batch(CASES))
    assert valued.advantages[:, 0].tolist() == pytest.approx([1.0072, 0.7087, -0.7833, -0.9326], abs=1e-4)
    valued.rewards = found.values
    assert GRPO(ddof=0)(valued)[:, 0].tolist() == pytest.approx([1.163, 0.8184, -0.9045, -1.0768], abs=1e-4)
    unformed = made.reward(batch(CASES, "<answer>C</answer>"))
    assert unformed.values.tolist() == pytest.approx([1.3, 1.1, 0.1, 0])
    unknown = made.reward(batch([(True, None), (None, True), (False, True)]))
    assert unknown.valid is not None and unknown.valid.tolist() == [False, False, True]
    other = catalogue.make("S048", order="any", both=0.5, first=0.2, second=0.3, form=0.5, tokens=9)
    assert other.reward(batch(CASES)).values.tolist() == pytest.approx([2.0, 1.7, 0.8, 0.5])
    assert made.rollout == {"name": "reordered", "order": "derangement", "tokens": 16}
    assert other.rollout == {"name": "reordered", "order": "any", "tokens": 9}
    assert made.objective.aggregation == "sequence_mean" and Consistency() == Consistency(0.3, 0.1, 0.1, 1.0)


class Reader(Keywords):
    """Keeps what it is asked."""

    asked: list[str]

    def generate(self, requests: Any) -> Any:
        self.asked = [str(r.prompt) for r in requests]
        return super().generate(requests)


def test_thoughts_without_answers() -> None:
    """The right option is C. Thoughts lead to C, C, D, B and nowhere; answers are C, B, C, B and C."""
    said = zip("ccdb?", "CBCBC", strict=True)
    texts = [f"<think>so {thought}</think> <answer>{answer}</answer>" for thought, answer in said]
    reader = Reader([[f"so {c}", c.upper()] for c in "cdb"], "who knows")
    made = catalogue.make("S048", judge=reader, every=2)
    seen = batch([(True, True)] * 5)
    seen.episodes = tuple(replace(e, text=t) for e, t in zip(seen.episodes, texts, strict=True))  # type: ignore[assignment]
    shown = Picture(b"p")
    prompt = ({"role": "user", "content": f"<image>\n{Q}", "images": (shown,)},)
    seen.tasks = [replace(TASK, prompt=prompt)] * 5  # type: ignore[assignment]
    found = made.reward(seen)
    assert found.values.tolist() == pytest.approx([2.3] * 5), "it is in no reward"
    assert found.terms["cacr"].tolist() == [1, 0, 0, 1, 0] and found.terms["cacr_told"].tolist() == [1, 1, 1, 1, 0]
    assert found.terms["cr_wa"].tolist() == [0, 1, 0, 0, 0] and found.terms["wr_ca"].tolist() == [0, 0, 1, 0, 0]
    assert len(reader.asked) == 4 and "so c" in reader.asked[0] and "A. w" in reader.asked[0]
    assert not any("<answer>" in asked or "<image>" in asked for asked in reader.asked)
    assert "cacr" not in made.reward(seen).terms and "cacr" in made.reward(seen).terms, "every second step"
    assert [chosen(TASK, text) for text in ("C", "w", "A or B", "E")] == ["C", "A", None, None]
    assert Rederived(judge=reader).every == 10 and isinstance(catalogue.make("S048").reward, Consistency)


def test_what_it_cannot_act_on() -> None:
    for wrong in ({"both": 0.1}, {"first": -0.1}, {"second": 0.3}):
        with pytest.raises(UsageError, match=r"both .* must be above first"):
            Consistency(**wrong)
    reward = Consistency()
    reward.check_tasks([TASK])
    for task in (Task("u", Q, "3", "exact"), Task("u", "Which?", "C", "choice")):
        with pytest.raises(UsageError, match="task u is no question of kind 'choice' that lists its options"):
            reward.check_tasks([TASK, task])
    bare = batch(CASES[:1])
    bare.episodes = tuple(replace(e, meta={}) for e in bare.episodes)  # type: ignore[assignment]
    with pytest.raises(RunError, match="row 0 has no second answer; take rollout 'reordered'"):
        reward(bare)


def test_shapes_with_options() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    source, plain = Shapes(seed=1, choice=True), Shapes(seed=1)
    letters = Counter[str]()
    for i in range(60):
        task, open_ = source[i], plain[i]
        options = listed(task.question)
        assert options[task.reference] == open_.reference and len(set(options.values())) == len(options) == 4
        assert task.question.startswith(open_.question) and task.kind == "choice" and open_.kind == "exact"
        assert JUDGE(task, task.solution or "").passed
        letters[task.reference] += 1
    assert min(letters.values()) > 5
    assert len(listed(Shapes(choice=True, most=1, questions=("count",))[0].question)) == 2
    with pytest.raises(UsageError, match="in a grid of 1 cell there is no choice"):
        Shapes(grid=1, most=1, choice=True)


@pytest.mark.parametrize(
    "source",
    [
        {"name": "shapes", "grid": 2, "questions": ["colour"], "choice": True},
        {"name": "videos", "frames": [3], "others": 0, "options": 3},
    ],
    ids=["pictures", "videos"],
)
def test_it_trains(tmp_path: Path, source: dict[str, Any]) -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    letters = "".join(sorted(set("<think>/answer ABCD.?\nWhatcolourisquarectngledgreenbluywm0123-")))
    nano = {"hidden": 32, "layers": 1, "heads": 2, "context": 192, "alphabet": letters}
    folder = run(
        tmp_path / "run",
        model={"nano": {**nano, "vision": {"hidden": 16, "layers": 1, "pixels": 32}}},
        tasks={"source": source, "eval_size": 2},
        method={"name": "S048", "reward": None},
        warmup={"steps": 12, "batch": 4, "lr": 1e-2},
        rollout={"prompts": 2, "group": 4, "max_tokens": 48},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
        run={"checkpoint_every": 100},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2
    for row in rows:
        parts = row["reward/right"] + row["reward/form"] + row["reward/consistency"]
        assert row["reward/mean"] == pytest.approx(parts) and 0 <= row["reordered/same"] <= 1


def test_the_setting() -> None:
    setting = load("letters", {"steps": 30, "lr": 1.0})
    arm = {"name": "S048", "rollout": "single_turn"}
    found = setting.run(arm, 0, Path())
    assert found["thinks"] > 0.6 and found["rollouts"] == 30 * 16
