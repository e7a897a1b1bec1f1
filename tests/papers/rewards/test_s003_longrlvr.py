"""S003: the published table of rewards, its gate, and tasks with and without evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from assay.catalogue import make
from assay.errors import UsageError
from assay.lab.settings.bandits import choices
from assay.papers.rewards.s003_longrlvr import EvidenceAndAnswer, EvidenceF, document_task, gold_of
from assay.types import Task
from assay.verify.grounding.evidence import Evidence, read_identifiers
from assay.verify.make import make_verifier

pytestmark = pytest.mark.usefixtures("one_thread")
GOLD = Task("t", "", reference={"answer": "blue", "evidence": [0, 5]}, kind="text")


def said(chunks: str, answer: str = "blue") -> str:
    return f"<useful_chunks>{chunks}</useful_chunks><answer>{answer}</answer>"


@pytest.mark.parametrize(
    ("chunks", "right", "expected"),
    [
        ("<CHUNK_0>, <CHUNK_5>", True, 2.0),
        ("<CHUNK_0>, <CHUNK_1>, <CHUNK_2>, <CHUNK_5>", True, 1.833333),
        ("<CHUNK_0>", False, 0.055556),
        ("<CHUNK_0>, <CHUNK_0>, <CHUNK_5>", True, 1.909091),
        ("", True, 1.0),
        ("<CHUNK_7>", True, 1.0),
        ("<CHUNK_0>, <CHUNK_5>", False, 0.1),
        ("[0, 5]", True, 2.0),
    ],
)
def test_rewards_by_hand(make_batch: Callable[..., Any], chunks: str, right: bool, expected: float) -> None:
    batch = make_batch([1], passed=[right], texts=[said(chunks)], tasks=[GOLD])
    assert make("S003").reward(batch).values.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "blue",
        "<answer>blue</answer>",
        "<useful_chunks>0, 5</useful_chunks> blue",
        said("0, 5") + "<answer>blue</answer>",
        said("0, 5") + "<useful_chunks>0</useful_chunks>",
        "</useful_chunks>0, 5<useful_chunks><answer>blue</answer>",
    ],
)
def test_not_exactly_one_block_of_each_is_worth_nothing(make_batch: Callable[..., Any], text: str) -> None:
    batch = make_batch([1], passed=[True], texts=[text], tasks=[GOLD])
    assert make("S003").reward(batch).values.tolist() == [0]
    loose = make("S003", tagged=False).reward(batch).values.item()
    assert loose >= 1, "without the gate the answer still counts"


def test_eta_and_beta_by_hand(make_batch: Callable[..., Any]) -> None:
    """One of two chunks and one that is not: P = R = 1/2, so F = 1/2 whatever beta; one alone: P = 1, R = 1/2."""
    texts = [said("<CHUNK_0> <CHUNK_3>"), said("<CHUNK_0>"), said("<CHUNK_0>")]
    batch = make_batch([1] * 3, passed=[True, True, False], texts=texts, tasks=[GOLD] * 3)
    half = make("S003", eta=0.25).reward(batch)
    # F_2 = 5 P R / (4 P + R) = 2.5 / 4.5; 1 + F/4 + 3 F/4 = 1 + F.
    assert half.values.tolist() == pytest.approx([1.5, 1 + 5 / 9, 5 / 36])
    assert make("S003", beta=1.0).reward(batch).terms["evidence"].tolist() == pytest.approx([0.5, 2 / 3, 2 / 3])
    assert half.terms["answer"].tolist() == [1, 1, 0] and half.terms["format"].tolist() == [1, 1, 1]
    for eta, wrong in ((0.0, 0.0), (1.0, 5 / 9)):
        assert make("S003", eta=eta).reward(batch).values[2].item() == pytest.approx(wrong)
    made, told = EvidenceAndAnswer(), make("S003").reward
    for reward in (made, told):
        assert (reward.eta, reward.tagged, reward.inner["evidence"].verifier.beta) == (0.1, True, 2.0)
    assert EvidenceF().verifier == Evidence()
    by_part = make("S003", evidence={"name": "part", "part": "f"}, tagged=False).reward
    batch.verdicts = [make_verifier("evidence")(GOLD, texts[0])] * 3
    assert by_part(batch).terms["evidence"].tolist() == pytest.approx([0.5] * 3)


def test_groups_of_equal_rewards_are_replaced_and_no_others(make_batch: Callable[..., Any]) -> None:
    """Three prompts without a right answer and one with nothing but: only unequal evidence tells responses apart."""
    method = make("S003")
    chunks = ["<CHUNK_0>", "<CHUNK_1>", "<CHUNK_0>", "<CHUNK_0>", "", "", "<CHUNK_0>", "<CHUNK_0>, <CHUNK_5>"]
    passed = [False] * 6 + [True] * 2
    batch = make_batch([1] * 8, passed=passed, texts=[said(c) for c in chunks], tasks=[GOLD] * 8)
    batch.group = batch.prompt_group = torch.arange(4).repeat_interleave(2)
    method.value(batch)
    assert batch.weights.tolist() == [1, 1, 0, 0, 0, 0, 1, 1]
    assert float(batch.advantages[0, 0]) > 0 > float(batch.advantages[1, 0])
    assert method.select.rounds == 10 and make("S003", rounds=1).select.rounds == 1


def test_the_loss_is_the_papers() -> None:
    objective = make("S003").objective
    assert (objective.clip_low, objective.clip_high, objective.dual_clip) == (0.2, 0.28, 10.0)
    assert objective.kl_weight == 0


def test_tasks_without_evidence_and_with_a_broken_one(make_batch: Callable[..., Any]) -> None:
    plain, empty = Task("a", "", reference="blue"), Task("b", "", meta={"evidence": []})
    broken = Task("c", "", meta={"evidence": 3.5})
    batch = make_batch(
        [1] * 5,
        passed=[True, False, True, True, None],
        texts=["blue", "red", said("0"), said("0"), said("0, 5")],
        tasks=[plain, plain, empty, broken, GOLD],
    )
    reward = make("S003").reward(batch)
    assert reward.values[:2].tolist() == [1, 0]
    assert reward.valid is not None and reward.valid.tolist()[:3] == [True, True, False]
    assert reward.valid[4].item() is False
    assert {"answer", "evidence", "format"} <= set(reward.terms)


def test_a_document_task_is_judged_by_the_verifier_it_names(make_batch: Callable[..., Any]) -> None:
    task = document_task("d", ["The sea is blue.", "Cats sleep."], "What colour is the sea?", "blue", [0])
    assert "<CHUNK_1>\nCats sleep." in task.question
    text = said("<CHUNK_0>", "Blue")
    verdict = make_verifier(task.kind)(task, text)
    assert verdict.passed
    batch = make_batch([1], passed=[verdict.passed], texts=[text], tasks=[task])
    assert make("S003").reward(batch).values.tolist() == [2]
    for evidence in ([], [2]):
        with pytest.raises(UsageError, match="evidence"):
            document_task("d", ["a", "b"], "?", "x", evidence)


def test_identifiers_as_they_are_written() -> None:
    assert read_identifiers("<CHUNK_3>, chunk_4 and CHUNK_12") == ["3", "4", "12"]
    assert read_identifiers("[[a b]] [[c]]") == ["a b", "c"] and read_identifiers("[2] [7]") == ["2", "7"]
    assert read_identifiers("0, 5") == ["0", "5"] == read_identifiers("[0, 5]")


@pytest.mark.parametrize(
    ("named", "parts"),
    [
        # precision, recall, f (beta 2), jaccard, validity, exact of the wanted 1, 2, 3
        ("1, 2, 3", (1, 1, 1, 1, 1, 1)),
        ("1, 2, 3, 4", (3 / 4, 1, 3.75 / 4, 3 / 4, 1, 0)),
        ("1, 2", (1, 2 / 3, (10 / 3) / (4 + 2 / 3), 2 / 3, 0.5, 0)),
        ("1, 7", (1 / 2, 1 / 3, (5 / 6) / (2 + 1 / 3), 1 / 4, 0, 0)),
        ("1, 1, 2, 3", (3 / 4, 1, 3.75 / 4, 1, 1, 0)),
        ("8", (0, 0, 0, 0, 0, 0)),
    ],
)
def test_the_parts_of_a_verdict_on_evidence(named: str, parts: tuple[float, ...]) -> None:
    verdict = Evidence()(Task("t", "", reference=[1, "<CHUNK_2>", "chunk_3"]), said(named))
    names = ("precision", "recall", "f", "jaccard", "validity", "exact")
    assert verdict.parts == pytest.approx({"format": 1, **dict(zip(names, parts, strict=True))})
    assert verdict.score == verdict.parts["f"] and verdict.passed is (parts[2] == 1)
    assert bool(verdict.feedback) is not verdict.passed
    found = [Evidence(score=name)(Task("t", "", reference=[1, 2, 3]), said(named)).score for name in names]  # type: ignore[arg-type]
    assert found == pytest.approx(parts)


def test_limits_of_the_verdict_on_evidence() -> None:
    task = Task("t", "", reference=["a"])
    assert Evidence(tag="e")(task, "<e>a</e>").passed and Evidence(threshold=0.5)(task, said("a, b")).passed
    assert Evidence(score="precision", threshold=0.5)(task, said("a, b")).passed
    few = Evidence(max_named=2)
    assert few(task, said("a, a")).parts["format"] == 1 and few(task, said("a, a, a")).parts == {"format": 0}
    text = said("a")
    assert Evidence(max_chars=len(text))(task, text).passed
    long = Evidence(max_chars=len(text) - 1)(task, text)
    assert long.passed is False and long.score == 0 and "characters" in long.feedback
    for broken in ("</useful_chunks>a<useful_chunks>", "<useful_chunks>a", "a</useful_chunks>", said("a") + said("a")):
        verdict = Evidence()(task, broken)
        assert (verdict.score, verdict.passed, verdict.parts) == (0, False, {"format": 0})
    assert Evidence()(Task("t", "", reference={"evidence": ["a"]}), text).passed
    assert Evidence()(Task("t", ""), text).passed is None
    assert (Evidence().max_named, Evidence().max_chars, Evidence().threshold) == (1000, 1_000_000, 1.0)
    for bad in ({"threshold": 0.0}, {"threshold": 1.1}, {"tag": ""}, {"beta": 0.0}):
        with pytest.raises(UsageError, match="evidence"):
            Evidence(**bad)


def test_what_a_task_needs_and_how_it_asks() -> None:
    assert gold_of(Task("t", "", reference={"evidence": [1]}, meta={"evidence": [2]})) == [1]
    assert gold_of(Task("t", "", reference={"answer": 1}, meta={"evidence": [2]})) == [2]
    assert gold_of(Task("t", "", reference="evidence")) is None
    task = document_task("d", ["a", "b"], "Why?", "x", [0, 1], "exact")
    assert task.question.startswith("<CHUNK_0>\na\n\n<CHUNK_1>\nb\n\nQuestion: Why?\n")
    assert task.reference == {"answer": "x", "evidence": [0, 1]} and task.kind == "exact" and task.id == "d"
    with pytest.raises(UsageError, match="evidence"):
        document_task("d", ["a", "b"], "?", "x", [-1])


def test_what_cannot_be() -> None:
    assert make("S003", eta=0.0) and make("S003", eta=1.0)
    with pytest.raises(UsageError):
        make("S003", eta=-0.1)
    for options in ({"eta": 1.5}, {"beta": 0.0}):
        with pytest.raises(UsageError):
            make("S003", **options)


def test_evidence_is_learned_where_no_answer_is(tmp_path: Any) -> None:
    """Of two choices of equal odds one names the evidence and neither is ever answered right."""
    named = {"evidence": 1.0}
    rows = [[[1.0, False, named]], [[1.0, False, {"evidence": 0.0}]]]
    setting = choices.Setting(rows, spread=0.0, steps=4, prompts=1)
    by_part = {"evidence": {"name": "part", "part": "evidence"}, "tagged": False}
    answer = setting.run({"name": "S003", "reward": "verdict"}, 0, tmp_path)
    both = setting.run({"name": "S003", "reward": {"name": "S003", **by_part}}, 0, tmp_path)
    assert answer["choice 0"] == 0.5 and both["choice 0"] > 0.7
