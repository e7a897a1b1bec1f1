"""S167: the weights by hand, what counts as an answer, the form, and judges that fail."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from assay.catalogue import make
from assay.errors import UsageError
from assay.papers.rewards.s167_medix_r1 import read
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")
GOLD = Task("t", "What is seen?", "left pleural effusion", meta={"modality": "<XRAY>"})


class Judge:
    """An engine that says what it was told to of each answer, and keeps its prompts."""

    def __init__(self, said: dict[str, tuple[str, str]]):
        self.said, self.asked = said, list[str]()

    def encode(self, prompt: Any) -> Any:
        raise NotImplementedError

    def encode_response(self, text: str, end: bool = True) -> Any:
        raise NotImplementedError

    def decode(self, tokens: Any) -> str:
        raise NotImplementedError

    def generate(self, requests: Any) -> Any:
        self.asked += [r.prompt for r in requests]
        assert all(r.sampling.max_tokens == 4 and r.sampling.temperature == 0 for r in requests)
        answers = [r.prompt.rpartition("Answer: ")[2] for r in requests]
        return [[SimpleNamespace(text=self.said[a][0], stop=self.said[a][1])] for a in answers]


def said(answer: str, before: str = "<xray>") -> str:
    return f"{before}<thinking>look</thinking><answer>{answer}</answer>"


def vectors(texts: list[str]) -> list[list[float]]:
    return [[1.0, 0.0] if "effusion" in t else [0.0, 1.0] for t in texts]


@pytest.mark.parametrize(
    ("text", "judge", "expected"),
    [
        (said("fluid on the left effusion"), "YES", 1.0),
        (said("fluid at the left"), "Yes.", 0.6625),
        (said("right effusion", "<ct>"), "NO", 0.4375),
        (said("pneumonia", "<ct>"), "No", 0.1),
        (said("Left  pleural effusion."), "unasked", 1.0),
    ],
)
def test_weights_by_hand(make_batch: Callable[..., Any], text: str, judge: str, expected: float) -> None:
    answer = read(text).answer
    engine = Judge({answer: (judge, "eos")} if judge != "unasked" else {})
    batch = make_batch([1], passed=[False], texts=[text], tasks=[GOLD])
    reward = make("S167", judge=engine, embed=vectors).reward(batch)
    assert reward.values.item() == pytest.approx(expected)
    assert len(engine.asked) == (judge != "unasked")
    assert set(reward.terms) == {"judge", "embed", "modality", "format"}


@pytest.mark.parametrize("answer", ["", "a", "...", "A: effusion", "is it effusion?", "left __ effusion"])
def test_hedges_are_no_answers(make_batch: Callable[..., Any], answer: str) -> None:
    batch = make_batch([1], passed=[True], texts=[said(answer)], tasks=[GOLD])
    engine = Judge({})
    reward = make("S167", judge=engine, embed=vectors).reward(batch)
    assert reward.values.item() == pytest.approx(0.9 * 0.05 + 0.1) and not engine.asked


@pytest.mark.parametrize(
    ("text", "formed", "before"),
    [
        ("<XRAY>\n<thinking> a </thinking>\n <answer>b c< / answer>\n", True, "<XRAY>"),
        ("<thinking>a</thinking><answer>b c</answer>", True, ""),
        ("<thinking>a</thinking><answer>b c</answer> more", False, ""),
        ("<thinking>a</thinking><answer>b c</answer><answer>d</answer>", False, ""),
        ("<thinking>a</thinking> and <answer>b c</answer>", False, ""),
        ("<answer>b c</answer><thinking>a</thinking>", False, "<answer>b c</answer>"),
        ("b c", False, "b c"),
    ],
)
def test_the_form(text: str, formed: bool, before: str) -> None:
    reading = read(text)
    assert (reading.formed, reading.before, reading.answer) == (formed, before, "b c")


def test_a_judge_that_fails_leaves_no_reward(make_batch: Callable[..., Any]) -> None:
    engine = Judge({"one two": ("", "error"), "three four": ("YES", "eos")})
    texts = [said("one two"), said("three four"), said("three four"), said("x y"), said("x y")]
    tasks = [GOLD, GOLD, GOLD, GOLD, Task("e", "", "")]
    batch = make_batch([1] * 5, passed=[False, False, False, None, True], texts=texts, tasks=tasks)
    reward = make("S167", judge=engine, embed=vectors).reward(batch)
    assert reward.valid is not None and reward.valid.tolist() == [False, True, True, False, False]
    assert len(engine.asked) == 2, "equal questions are asked once"


def test_without_models(make_batch: Callable[..., Any]) -> None:
    texts = [said("effusion, left pleural"), said("right lung")]
    batch = make_batch([1, 1], passed=[True, False], texts=texts, tasks=[GOLD, Task("t", "", "left lung")])
    reward = make("S167").reward(batch)
    assert reward.terms["judge"].tolist() == [1, 0], "the verdict"
    assert reward.terms["embed"].tolist() == [1, 0], "words shared"
    assert reward.terms["modality"].tolist() == [1, 0], "none is asked for, one was named"


def test_braces_in_an_answer_stay(make_batch: Callable[..., Any]) -> None:
    engine = Judge({"{reference} x": ("NO", "eos")})
    batch = make_batch([1], texts=[said("{reference} x")], tasks=[GOLD])
    assert make("S167", judge=engine).reward(batch).terms["judge"].tolist() == [0]


def test_what_cannot_be() -> None:
    with pytest.raises(UsageError):
        make("S167", near=0.0)
