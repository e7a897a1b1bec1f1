"""S123: feedback taken apart, agreement, tasks, log-odds by hand, two principles, and training."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grouped import grouped
from marked import Critic
from preferring import Prefers
from running import metrics, run

from assay import catalogue
from assay.errors import UsageError
from assay.lab.settings import load
from assay.papers.judges.s123_rlbff import by_principle
from assay.rewards.judges.principle_reward import PrincipleReward, PrincipleScorer
from assay.tasks.judging.feedback import Principle, agreed, by_words, extracted, partial_ratio, quoted, read_principles
from assay.tasks.judging.principles import Principles
from assay.types import Task
from assay.verify.critique import CritiqueVerdict
from assay.verify.text.exact import Exact

HERE = f"{Path(__file__)}:Answers"
TEXT = "It is very easy to follow, but the dates are wrong. Somewhat long."


def said(*rows: tuple[str, str, str]) -> str:
    listed = [dict(zip(("principle", "span", "fulfilled"), row, strict=True)) for row in rows]
    return f"Here: {json.dumps(listed)} Done."


class Answers(Prefers):
    """Says Yes, No and something else with log-probabilities that a function of the prompt gives."""

    def __init__(self, odds: Any = lambda prompt: (-(sum(map(ord, prompt)) % 7), -1.0)):
        super().__init__()
        self.odds = odds

    def generate(self, requests: Sequence[Any]) -> list[list[Any]]:
        self.asked += [str(r.prompt) for r in requests]
        found = [self.odds(str(r.prompt)) for r in requests]
        return [[self.said(k, x) for k, x in enumerate((*pair, -3.0)) if x is not None] for pair in found]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join((" Yes", "No", "?")[int(t)] for t in tokens)


def test_what_is_extracted() -> None:
    reply = said(
        ("clarity", "very easy to follow", "yes"),
        ("accuracy  of dates", "the dates are  Wrong", "No"),
        ("brevity", "Somewhat long", "partially"),
        ("humour", "it made me laugh", "yes"),
        ("tone", "", "yes"),
        ("Helpfulness", "very easy to follow", "yes"),
    )
    found = read_principles(reply, TEXT)
    assert [(p.text, p.fulfilled) for p in found] == [("clarity", True), ("accuracy of dates", False)]
    assert found[0].span == "very easy to follow"
    empty = '[{"principle": "", "span": "long", "fulfilled": "yes"}]'
    for bad in ("no list", "[1, 2]", '[{"principle": 3}]', "[{]", empty):
        assert read_principles(bad, TEXT) == []
    assert quoted("the dates are wrongg", TEXT) and quoted("long. ", TEXT) and not quoted("Long", "a b")
    assert not quoted("made me laugh out loud", TEXT) and not quoted("", TEXT) and not quoted("a", "")
    # Of "abcde" three letters follow each other in "axbyc", which is 60 exactly; of "abxde" there are four.
    assert not quoted("abcde", "axbyc") and quoted("abcde", "abxde") and not quoted("abcde", "ABxde", 80)
    engine = Critic(lambda prompt, k: None if "bad" in prompt else said(("clarity", "easy", "yes")))
    assert extracted(["easy", "bad"], engine) == [[Principle("clarity", "easy", True)], None]
    assert "easy\n\nReply with a JSON list" in str(engine.asked[0].prompt) and engine.asked[0].sampling.temperature == 0


def test_partial_ratios() -> None:
    """By hand: a, b and d of four letters; b, c and d, whose end of the longer text has no more than them."""
    assert partial_ratio("abcd", "xxabedxx") == partial_ratio("xxabedxx", "abcd") == 75
    assert partial_ratio("abcd", "bcdxxxx") == pytest.approx(600 / 7) == partial_ratio("abcd", "xxxxabc")
    assert partial_ratio("cd", "abcdef") == 100 and partial_ratio("a", "b") == partial_ratio("", "b") == 0


def principle(text: str, fulfilled: bool = True) -> Principle:
    return Principle(text, text, fulfilled)


def test_what_people_agree_on() -> None:
    """All agree: kept, once; what one of three has not is dropped, and so is what has labels that differ."""
    clear, long = principle("clarity of it"), principle("is short", False)
    assert agreed([[clear], [principle("clarity of It")], [long, clear]]) == [clear]
    assert agreed([[clear], [clear], [long]]) == agreed([[clear], [clear], []]) == []
    assert agreed([[clear], [principle("clarity of it", False)]]) == []
    assert agreed([[clear], [clear], [principle("clarity of it", False)]]) == []
    assert agreed([[clear], [clear, principle("clarity of it", False)]]) == []
    assert agreed([[clear, clear]]) == [] and agreed([]) == [] and agreed([[], []]) == []
    assert agreed([[long, clear], [clear, long]]) == [long, clear]
    table = by_words(["a b", "a b", "a c", "?"])
    assert table[0].tolist() == pytest.approx([1, 1, 0.5, 0]) and table[3, 3] == 0
    four, five = principle("a b c d"), principle("a b c d e")  # of cosine 4 / sqrt 20
    assert agreed([[four], [five]]) == [four] and agreed([[four], [five]], least=0.9) == []
    assert agreed([[clear], [long]], similar=lambda texts: np.ones((2, 2))) == []


def vectors(texts: Sequence[str]) -> list[list[float]]:
    """All that begin alike are alike."""
    return [[float(text[0] == "c"), float(text[0] != "c")] for text in texts]


def test_tasks_of_principles(tmp_path: Path) -> None:
    path, keep = tmp_path / "rows.jsonl", tmp_path / "kept.jsonl"
    told = {"prompt": "q", "response": "a"}
    rows: list[dict[str, Any]] = [
        {**told, "feedback": ["clear", "clever"]},
        {**told, "principle": "is odd", "fulfilled": "No"},
        {**told, "feedback": ["clear"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    engine = Critic(lambda prompt, k: said(*((x, x, "yes") for x in ("clear", "clever") if f"{x}\n\nReply" in prompt)))
    made = Principles(path, extractor=engine, keep=keep, embed=f"{__file__}:vectors")
    assert [(t.meta["principle"], t.reference, t.solution, t.kind) for t in made.tasks] == [
        ("is odd", "No", "No", "exact"),
        ("clear", "Yes", "Yes", "exact"),
    ]
    shown = str(made[1].prompt)
    assert "Request:\nq\n\nResponse:\na\n\nPrinciple: clear\n" in shown and shown.endswith("nothing else.\n")
    assert Exact()(made[1], "Yes").passed and not Exact()(made[1], "No").passed and made.size == 2
    again = Principles(path, "reasons", extractor=Critic(lambda p, k: 1 / 0), keep=keep)
    assert [(t.reference, t.solution) for t in again.tasks] == [("False", None), ("True", None)]
    assert {t.kind for t in again.tasks} == {"critique"}
    assert CritiqueVerdict()(again[1], r"It is. \boxed{Yes}").passed and "Think about" in str(again[0].prompt)
    with pytest.raises(UsageError, match="give both"):
        Principles(path)
    path.write_text(json.dumps(rows[2]))
    with pytest.raises(UsageError, match="no principle that people agree on"):
        Principles(path, extractor=engine, keep=tmp_path / "none.jsonl")
    for bad in ({"fulfilled": "partially"}, {"principle": 3}, {}):
        path.write_text(json.dumps({**told, "principle": "p", "fulfilled": True, **bad} if bad else told))
        with pytest.raises(UsageError, match="a row has prompt, response, principle and fulfilled"):
            Principles(path)
    path.write_text("")
    with pytest.raises(UsageError):
        Principles(path)


def test_worked_numbers() -> None:
    item = [("q", "a", "p")]
    assert PrincipleScorer(Answers(lambda p: (-0.22, -1.61))).scores(item) == [pytest.approx(1.39)]
    even = PrincipleScorer(Answers(lambda p: (math.log(0.8), math.log(0.2))))
    assert even.scores(item) == [pytest.approx(1.386294, abs=1e-6)]
    # A word that is not among the likeliest counts as the last of them, at -3; without either there is nothing.
    assert PrincipleScorer(Answers(lambda p: (-0.5, None))).scores(item) == [pytest.approx(2.5)]
    assert PrincipleScorer(Answers(lambda p: (None, -0.25))).scores(item) == [pytest.approx(-2.75)]
    assert PrincipleScorer(Answers(lambda p: (None, None))).scores(item) == [None]
    judge = PrincipleScorer(Answers())
    judge.scores(item)
    assert judge.judge.asked[0].endswith("nothing else.\n") and PrincipleScorer(Answers(), n=2).n == 2
    assert (judge.form, judge.samples, judge.n, judge.max_tokens) == ("word", 1, 20, 2048)
    for bad in ({"samples": 0}, {"n": 1}):
        with pytest.raises(UsageError, match="the judge of principles"):
            PrincipleScorer(Answers(), **bad)  # type: ignore[arg-type]


def test_opinions_with_reasons() -> None:
    """Of three opinions one cannot be read; of a response that nobody can read nothing is known."""

    def opinion(prompt: str, k: int) -> str | None:
        if "Response:\nb" in prompt:
            return None if k else "?"
        return (r"Hm. \boxed{Yes}", "I cannot say", r"\boxed{No}")[k]

    engine = Critic(opinion)
    judge = PrincipleScorer(engine, "reasons", samples=3, read="share")
    assert judge.scores([("q", "a", "p"), ("q", "b", "p"), ("q", "a", "p")]) == [0.5, None, 0.5]
    assert "Think about" in str(engine.asked[0].prompt)
    assert len(engine.asked) == 2 and engine.asked[0].n == 3 and engine.asked[0].sampling.temperature == 1
    one = Critic(lambda p, k: r"\boxed{No}")
    assert PrincipleScorer(one, "reasons", read="share").scores([("q", "a", "p")]) == [0]
    assert one.asked[0].sampling.temperature == 0


class Reasons(Answers):
    """Writes three opinions, one without a box; behind the box of the first two Yes and No have given odds."""

    texts: tuple[str, ...] = (r"\boxed{?} a \boxed{Yes}", r"b \boxed{No}.", "c")

    def generate(self, requests: Sequence[Any]) -> list[list[Any]]:
        out = []
        for request in requests:
            if request.beam:
                self.asked.append(request)
                pair = self.odds("".join(map(chr, request.prefix)))
                out.append([self.said(k, x) for k, x in enumerate((*pair, -3.0)) if x is not None])
            else:
                out.append([replace(self.said(2, 0.0), text=text) for text in self.texts[: request.n]])
        return out

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.array([*map(ord, text), *[0] * end])


def test_log_odds_behind_reasons() -> None:
    """Of two opinions with a box the next word is read behind its last brace; their log-odds are averaged."""
    odds = {"\\boxed{?} a \\boxed{": (-0.5, -1.5), "b \\boxed{": (None, -0.25)}
    judge = PrincipleScorer(Reasons(odds.__getitem__), "reasons", samples=3)
    assert judge.scores([("q", "a", "p")]) == [pytest.approx((1.0 - 2.75) / 2)] and judge.even == 0
    first, second = judge.judge.asked
    assert "Think about" in first.prompt and first.beam and (first.n, first.sampling.max_tokens) == (20, 1)
    assert first.sampling.temperature == 1 and second.prompt == first.prompt
    odds["b \\boxed{"] = (None, None)
    assert judge.scores([("q", "a", "p")]) == [1.0]
    odds["\\boxed{?} a \\boxed{"] = (None, None)
    assert judge.scores([("q", "a", "p")]) == [None]
    reward = PrincipleReward(PrincipleScorer(Reasons(lambda text: (-0.9, -1.1)), "reasons"), ["long"])
    found = reward(grouped(["a"]))
    assert found.values.tolist() == [pytest.approx(0.2)] and found.terms["met"].tolist() == [1]


def test_the_box_that_is_read_is_the_one_that_counts() -> None:
    """With a space before its brace, before one that is not closed; a verdict in a line of its own has no box."""
    engine = Reasons({"a \\boxed {": (-0.5, -1.5), "\\boxed{": (-0.25, -0.5)}.__getitem__)
    engine.texts = (r"a \boxed {Yes}", r"\boxed{Yes} or \boxed{No", "Correctness of the final answer: Correct")
    assert PrincipleScorer(engine, "reasons", samples=3).scores([("q", "a", "p")]) == [pytest.approx((1.0 + 0.25) / 2)]


def longer(prompt: str) -> tuple[float, float]:
    """Log-odds of yes are the response's length, less it for the principle of brevity."""
    length = len(prompt.partition("Response:\n")[2].partition("\n")[0])
    return (float(length), 0.0) if "Principle: long\n" in prompt else (0.0, float(length))


def test_two_principles() -> None:
    """The same responses are ranked by either principle; by both together all are worth the same."""
    batch = grouped(["a", "aaa", "broken"])
    judge = {"judge": Answers(longer)}
    long, brief, both = (PrincipleReward(judge, p)(batch) for p in (["long"], ["brief"], ["long", "brief"]))
    assert long.values.tolist() == [1, 3, 0] and brief.values.tolist() == [-1, -3, 0]
    assert both.values.tolist() == [0, 0, 0]
    assert long.valid is not None and long.valid.tolist() == [True, True, False]
    assert long.terms["met"].tolist() == [1, 1, 0] and both.terms["met"].tolist() == [0.5, 0.5, 0]
    batch.tasks = [Task("t", "q", meta={"principles": ["brief"]})] * 3
    assert PrincipleReward(judge)(batch).values.tolist() == [-1, -3, 0]
    with pytest.raises(UsageError, match="task u has no principles"):
        PrincipleReward(judge).check_tasks([Task("u", "q")])
    half = PrincipleReward(Answers(lambda p: (None, None) if "brief" in p else (-0.5, -1.0)), ["long", "brief"])(batch)
    assert half.valid is not None and not half.valid.any() and half.values.tolist() == [0, 0, 0]
    share = PrincipleReward(PrincipleScorer(Critic(lambda p, k: r"\boxed{No}"), "reasons", read="share"), ["long"])(
        batch
    )
    assert share.terms["met"].tolist() == [0, 0, 0] == share.values.tolist()
    # A mean over principles; log-odds of 0 are not rather fulfilled, nor is a share of a half, but one of 3/5 is.
    assert PrincipleReward(judge, ["long", "long", "brief", "long"])(batch).values.tolist() == [0.5, 1.5, 0]
    even = PrincipleReward(Answers(lambda p: (-1.0, -1.0)), ["long"])(batch)
    assert (
        even.terms["met"].tolist() == [0, 0, 0]
        and even.valid is not None
        and even.valid.tolist() == [True, True, False]
    )
    for samples, worth, met in ((5, 0.6, 1), (6, 0.5, 0)):
        votes = Critic(lambda p, k: r"\boxed{Yes}" if k < 3 else r"\boxed{No}")
        found = PrincipleReward(PrincipleScorer(votes, "reasons", samples, read="share"), ["long"])(batch)
        assert found.values.tolist() == pytest.approx([worth, worth, 0]) and found.terms["met"].tolist() == [
            met,
            met,
            0,
        ]


def test_accuracy_by_principle() -> None:
    rows = [("q", "a", "long", True), ("q", "aa", "long", False), ("q", "a", "brief", False), ("q", "?", "brief", True)]
    judge = PrincipleScorer(Answers(lambda p: (None, None) if "Response:\n?" in p else longer(p)))
    found = by_principle(judge, rows)
    assert (found["long"][0].value, found["long"][1]) == (0.5, 0)
    assert found["long"][0].low == pytest.approx(0.0945, abs=1e-4)
    assert (found["brief"][0].value, found["brief"][1]) == (1, 0.5)
    mute = by_principle(PrincipleScorer(Critic(lambda p, k: None), "reasons"), rows[:1])["long"]
    assert math.isnan(mute[0].value) and mute[1] == 1 and (mute[0].low, mute[0].high) == (0, 1)
    # Of written opinions more than half have to say yes; of log-odds, more than none.
    yes = {"a": 3, "b": 2}
    votes = Critic(lambda p, k: r"\boxed{Yes}" if k < yes[p.partition("Response:\n")[2][0]] else r"\boxed{No}")
    shares = by_principle(
        PrincipleScorer(votes, "reasons", 5, read="share"), [("q", "a", "long", True), ("q", "b", "long", False)]
    )
    assert shares["long"][0].value == 1
    even = PrincipleScorer(Answers(lambda p: (-1.0, -1.0)))
    assert by_principle(even, [("q", "a", "long", False)])["long"][0].value == 1
    with pytest.raises(ValueError, match="needs rows"):
        by_principle(judge, [])


def test_it_acts_in_training(tmp_path: Path) -> None:
    made = catalogue.make("S123", judge=Answers(), principles=["long"], form="reasons", samples=2)
    assert (made.reward.principles, made.reward.judge.form, made.reward.judge.samples) == (("long",), "reasons", 2)
    assert catalogue.make("S123", judge=Answers()).reward.judge.samples == 1 and made.reward.judge.even == 0
    assert catalogue.make("S123", judge=Answers(), form="reasons", read="share").reward.judge.even == 0.5
    folder = run(
        tmp_path / "run",
        method={"name": "S123", "reward": None, "options": {"judge": {"name": HERE}, "principles": ["long", "brief"]}},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        warmup={"steps": 0},
        evaluate={"every": 0},
    )
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(steps) == 2
    assert all(row["reward/score"] == row["reward/mean"] and 0 <= row["reward/met"] <= 1 for row in steps)


def test_the_setting() -> None:
    setting = load("opposed_principles", {})
    told, mixed = (setting.run({"told": told}, 0, Path()) for told in (True, False))
    assert min(told["short"], told["long"]) > 0.8 > mixed["accuracy"] > 0.5
