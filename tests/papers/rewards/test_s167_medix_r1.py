"""S167: the weights by hand, what counts as an answer, the form, and judges that fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay.catalogue import make
from assay.catalogue.claim import claim_of
from assay.errors import UsageError
from assay.lab.settings import load
from assay.papers.rewards.s167_medix_r1 import CompositeReward, read
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")
GOLD = Task("t", "What is seen?", "left pleural effusion", meta={"modality": "<XRAY>"})


class Judge:
    """An engine that says what it was told to of each answer, and keeps its prompts."""

    def __init__(self, said: dict[str, tuple[str, str]]):
        self.said, self.asked, self.requests = said, list[str](), list[Any]()

    def encode(self, prompt: Any) -> Any:
        raise NotImplementedError

    def encode_response(self, text: str, end: bool = True) -> Any:
        raise NotImplementedError

    def decode(self, tokens: Any) -> str:
        raise NotImplementedError

    def generate(self, requests: Any) -> Any:
        self.asked += [r.prompt for r in requests]
        self.requests += requests
        assert all(r.sampling.max_tokens == 4 and r.sampling.temperature == 0 for r in requests)
        answers = [r.prompt.rpartition("answer: ")[2] for r in requests]
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
        (said("left pleural effusion."), "unasked", 1.0),
        (said("Left pleural effusion"), "YES", 1.0),
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
        ("<thinking>a</thinking><answer>b c</answer><answer>d</answer>", True, ""),
        ("<thinking>a</thinking> and <answer>b c</answer>", False, ""),
        ("<answer>b c</answer><thinking>a</thinking>", False, "<answer>b c</answer>"),
        ("b c", False, None),
    ],
)
def test_the_form(text: str, formed: bool, before: str | None) -> None:
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


def test_what_the_judge_is_asked(make_batch: Callable[..., Any]) -> None:
    """All references and the answer, and not the question, once, greedily, for a word."""
    engine = Judge({"fluid": ("yes, the same", "eos")})
    task = Task("t", "What is seen?", ["left effusion", "fluid on the left"])
    batch = make_batch([1], passed=[False], texts=[said("fluid")], tasks=[task])
    assert make("S167", judge=engine).reward(batch).terms["judge"].tolist() == [1]
    [asked] = engine.asked
    assert "YES or NO" in asked and "seen" not in asked
    assert "True answer: left effusion / fluid on the left\n" in asked and asked.endswith("answer: fluid")
    # One sample of each question, drawn with the same seed whenever it is asked.
    assert [(r.n, r.seed) for r in engine.requests] == [(1, engine.requests[0].seed)]
    again = Judge({"fluid": ("NO", "eos")})
    make("S167", judge=again).reward(batch)
    assert again.requests[0].seed == engine.requests[0].seed < 2**56


def test_a_cosine_counts_from_its_bound_on(make_batch: Callable[..., Any]) -> None:
    """Answers at cosines of 0.8, 0.79 and 0.81 to the reference; of several references the nearest counts."""
    cosines = {"aa": 0.8, "bb": 0.79, "cc": 0.81, "right": 1.0, "other": 0.0}

    def embed(texts: list[str]) -> list[list[float]]:
        return [[cosines[t], (1 - cosines[t] ** 2) ** 0.5] for t in texts]

    def close(*references: str, **options: Any) -> list[float]:
        batch = make_batch(
            [1] * 3,
            passed=[False] * 3,
            texts=[said(t) for t in ("aa", "bb", "cc")],
            tasks=[Task("t", "", list(references))] * 3,
        )
        found: list[float] = make("S167", embed=embed, **options).reward(batch).terms["embed"].tolist()
        return found

    assert close("right") == [1, 0, 1]
    # The cosine with "other" is the sine: 0.6, 0.613 and 0.586.
    assert close("other") == [0, 0, 0] and close("other", "right") == close("right", "other") == [1, 0, 1]
    assert close("right", near=0.805) == [0, 0, 1] and close("right", near=0.5) == [1, 1, 1]


def test_the_kind_of_image_counts_whatever_its_case(make_batch: Callable[..., Any]) -> None:
    texts = [said("x y", before) for before in ("<XRAY>", "< xray >", "<ct>", "")]
    tasks = [GOLD] * 4 + [Task("t", "", "left lung")]
    batch = make_batch([1] * 5, passed=[False] * 5, texts=[*texts, ""], tasks=tasks)
    assert make("S167").reward(batch).terms["modality"].tolist() == [1, 1, 0, 0, 0]


def test_an_answer_equal_to_one_of_the_references_is_right_unasked(make_batch: Callable[..., Any]) -> None:
    """Two letters are an answer, one is none; tags that are missing leave the whole text."""
    task = Task("t", "", ["CT", "computed tomography"])
    batch = make_batch([1] * 4, passed=[False] * 4, texts=["CT", "computed tomography.", "C", "MR"], tasks=[task] * 4)
    found = make("S167", judge=Judge({"MR": ("NO", "eos")})).reward(batch)
    assert found.terms["judge"].tolist() == found.terms["embed"].tolist() == [1, 1, 0, 0]
    assert found.valid is not None and found.valid.all()
    # Nobody judged it, though a verifier should have: no reward, and nobody is asked.
    batch = make_batch([1, 1], passed=[None, False], texts=["MR", "CT"], tasks=[task, Task("n", "", None)])
    engine = Judge({})
    assert make("S167", judge=engine).reward(batch).valid.tolist() == [False, False] and not engine.asked


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
    for bad in (0.0, 1.1):
        with pytest.raises(UsageError, match="near"):
            make("S167", near=bad)
    with pytest.raises(UsageError, match="template"):
        CompositeReward(template="{question}")
    assert CompositeReward(near=1.0).near == 1 and make("S167").reward.near == CompositeReward().near == 0.8


def test_two_judges_learn_what_is_right_where_one_is_fooled(tmp_path: Path) -> None:
    claim = claim_of("S167")
    setting = load(claim.setting, {**claim.options, "steps": 25, "lr": 1.0})
    right = {name: setting.run(arm, 0, tmp_path)["right"] for name, arm in claim.arms.items()}
    assert right["both"] > 0.7 and right["judge"] < 0.3
