"""S003: the published table of rewards, its gate, and tasks with and without evidence."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from running import metrics, run
from tasks.making.told import Told

from assay.catalogue import make
from assay.cli import main
from assay.errors import RunError, UsageError
from assay.lab.settings.bandits import choices
from assay.papers.rewards.s003_longrlvr import EvidenceAndAnswer, EvidenceF, document_task, gold_of
from assay.tasks.chunks import sized_chunks
from assay.tasks.making.documents.clusters import Clustered, by_cosine
from assay.tasks.making.documents.questions import (
    BestOfCluster,
    ClusterQuestions,
    RatedQuestions,
    read_question,
    read_rating,
)
from assay.tasks.making.maker import Model
from assay.tasks.making.task_file import read_tasks
from assay.tasks.making.work import Dropped, Here, Reply, Want
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
        document_task("d", ["a", "b"], "?", "x", [0, -1])


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


TOPICS = ("tides", "bees", "glass", "roads", "snow")
"""Four of them are spoken of four times in the document, and snow once."""
DOCUMENT = "\n\n".join([f"Of {t}, part {k}: {t} {t} {t}." for k in range(4) for t in TOPICS[:4]] + ["Of snow: snow."])


def embed(texts: list[str]) -> np.ndarray:
    """How often each topic is named."""
    return np.array([[text.count(t) for t in TOPICS] for text in texts], dtype=float)


def clustered(**options: Any) -> Clustered:
    return Clustered(embed, **{"most": 45, **options})


def here(seed: int = 0) -> Here:
    return Here(np.random.default_rng(seed), make_verifier("none"))


@given(st.text(alphabet="ab .,;!\n。", max_size=60), st.integers(1, 20))
def test_passages_are_the_text(text: str, most: int) -> None:
    found = sized_chunks(text, most)
    assert "".join(found) == text and all(0 < len(piece) <= most for piece in found)


def test_passages_end_where_a_text_does() -> None:
    """At paragraphs if they are short enough, else at lines, sentences, their parts, words, and at last within one."""
    assert sized_chunks("One.\n\nTwo.\n\nThree.", 12) == ["One.\n\nTwo.\n\n", "Three."]
    assert sized_chunks("One.\nTwo.\n\nThree.", 8) == ["One.\n", "Two.\n\n", "Three."]
    assert sized_chunks("It is. So it is! Is it?", 10) == ["It is. ", "So it is! ", "Is it?"]
    assert sized_chunks("red, green; blue", 8) == ["red, ", "green; ", "blue"]
    assert sized_chunks("seven eight", 6) == ["seven ", "eight"] and sized_chunks("abcdefg", 3) == ["abc", "def", "g"]
    assert sized_chunks("", 3) == []


def as_met(labels: np.ndarray) -> list[int]:
    """The clusters numbered by their first points; -1 stays."""
    order = {label: k for k, label in enumerate(dict.fromkeys(x for x in labels.tolist() if x >= 0))}
    return [order.get(label, -1) for label in labels.tolist()]


def test_clusters_are_told_apart() -> None:
    """Vectors at right angles are of three clusters; of two at a cosine of .8, a threshold of .7 makes one."""
    near = np.array([[1, 0, 0], [0.8, 0.6, 0], [0, 0, 1]])
    rows = np.repeat(near, 4, axis=0) * np.linspace(1, 2, 12)[:, None]
    assert as_met(by_cosine(rows, 0.7)) == [0] * 8 + [1] * 4
    assert as_met(by_cosine(rows, 0.9)) == [0] * 4 + [1] * 4 + [2] * 4
    odd = np.vstack([np.pad(rows, ((0, 0), (0, 1))), [0, 0, 0, 1], [0, 0, 0, 0]])
    assert by_cosine(odd, 0.9)[-2:].tolist() == [-1, -1] and by_cosine(rows[:3]).tolist() == [-1] * 3
    made = clustered()(Task("d", DOCUMENT), here())
    assert isinstance(made, list)
    assert [task.meta["cluster"] for task in made] == [(k, k + 4, k + 8, k + 12) for k in range(4)]
    assert all(task.meta["passages"][16] == "Of snow: snow." and len(task.meta["passages"]) == 17 for task in made)
    assert made[2].id == "d/cluster-2" and made[2].meta["parents"] == ("d",)
    two = clustered(taken=2)(Task("d", DOCUMENT), here(3))
    assert len(two) == 2 and {t.meta["cluster"] for t in two} < {t.meta["cluster"] for t in made}  # type: ignore[arg-type,union-attr]
    for options in ({"fewest": 5}, {"largest": 3, "least": 3}, {"most": 5000}):
        assert clustered(**options)(Task("d", DOCUMENT), here()) == Dropped(
            f"fewer than {options.get('fewest', 4)} clusters of passages"
        )
    for wrong in (lambda texts: np.zeros(len(texts)), lambda texts: np.full((len(texts), 2), np.nan)):
        with pytest.raises(RunError, match=r"the embeddings of 17 passages have the shape \(17"):
            Clustered(wrong, most=45)(Task("d", DOCUMENT), here())
    for options in ({"most": 0}, {"least": 1}, {"least": 17}, {"samples": 0}, {"similarity": 1.5}, {"taken": 0}):
        with pytest.raises(UsageError, match="step clusters"):
            clustered(**options)


def test_without_hdbscan_it_is_said_before_anything_is_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdbscan", None)
    with pytest.raises(UsageError, match=r"need hdbscan: pip install 'assay\[embeddings\]'"):
        clustered()


def one(question: Any = "Q?", answer: Any = "A", evidence: Any = (0, 2)) -> str:
    return json.dumps({"question": question, "answer": answer, "evidence": list(evidence) if evidence else evidence})


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (one(), ("Q?", "A", [0, 2])),
        (f"Here it is:\n```json\n{one(evidence=['3', 1, 1])}\n```", ("Q?", "A", [1, 3])),
        (one(question=None), "no question can be asked of the passages"),
        (one(evidence=[2]), "fewer than 2 passages are its evidence"),
        (one(evidence=[2, 2]), "fewer than 2 passages are its evidence"),
        (one(evidence=[0, 4]), "its evidence is no passage"),
        (one(evidence=[0, -1]), "its evidence is no passage"),
        (one(evidence=[0, True]), "its evidence is no passage"),
        (one(evidence=[0, "x"]), "its evidence is no passage"),
        (one(evidence=[]), "its evidence is no passage"),
        (one(evidence=None), "its evidence is no passage"),
        (one(question=" "), "no question is written"),
        (one(answer=7), "no question is written"),
        ("[1, 2]", "no question is written"),
        ('{"answer": 1}', "no question is written"),
        ("{" * 5000 + "}", "no question is written"),
        ("no", "no question is written"),
        ("{no}", "no question is written"),
    ],
)
def test_replies_are_read(reply: str, expected: Any) -> None:
    assert read_question(reply, 4) == expected


@given(st.text(max_size=80))
def test_any_reply_can_be_read(text: str) -> None:
    found = read_question(text, 4)
    assert isinstance(found, str) or len(found) == 3
    rating = read_rating(text)
    assert rating is None or 0 <= rating <= 10


CLUSTER = Task("d/cluster-0", "the document", kind="none", meta={"passages": tuple("uvwxyz"), "cluster": (1, 3, 4)})


def answered(step: Any, task: Task, *texts: str, stop: str = "eos") -> tuple[Want, Any]:
    work = step(task, here())
    [want] = next(work)
    with pytest.raises(StopIteration) as done:
        work.send([[Reply(text, 1, stop) for text in texts]])
    return want, done.value.value


def test_questions_come_with_their_evidence() -> None:
    """Numbers among the cluster's three passages become those of the document; equal questions are one."""
    want, made = answered(
        ClusterQuestions(), CLUSTER, one(evidence=[0, 2]), one(evidence=[2, 0]), one("R?", "B", [1, 2])
    )
    assert want.n == 3 and want.by == "writer" and want.sampling.temperature == 0.6
    assert "3 passages" in want.prompt and "[Passage 2]\ny" in want.prompt and "[Passage 0]\nv\n" in want.prompt
    assert [(t.question, t.reference) for t in made] == [
        ("Q?", {"answer": "A", "evidence": [1, 4]}),
        ("R?", {"answer": "B", "evidence": [3, 4]}),
    ]
    assert [t.id for t in made] == ["d/cluster-0/question-0", "d/cluster-0/question-1"]
    assert answered(ClusterQuestions(), CLUSTER, one(None), "no")[1] == Dropped(
        "no question can be asked of the passages"
    )
    assert answered(ClusterQuestions(), CLUSTER, one(), stop="length")[1] == Dropped("cut off")
    for options in ({"n": 0}, {"least": 0}):
        with pytest.raises(UsageError, match="step questions"):
            ClusterQuestions(**options)


def test_questions_are_rated() -> None:
    asked = replace(CLUSTER, id="d/cluster-0/question-0", prompt="Q?", reference={"answer": "A", "evidence": [1, 4]})
    want, made = answered(RatedQuestions(), asked, "[[3]] no: [[ 8.5 ]]")
    assert want.by == "judge" and "[Passage 1]\nx" in want.prompt and "Question: Q?\n\nAnswer: A" in want.prompt
    assert made.meta["rating"] == 8.5
    assert answered(RatedQuestions(), asked, "[[8]]")[1].meta["rating"] == 8
    assert answered(RatedQuestions(), asked, "[[7.9]]")[1] == Dropped("rated below 8")
    assert answered(RatedQuestions(), asked, "[[12]]")[1].meta["rating"] == 10
    assert answered(RatedQuestions(), asked, "8.5")[1] == Dropped("the judge gives no rating")
    for least in (-1.0, 10.5):
        with pytest.raises(UsageError, match="step rated"):
            RatedQuestions(least)
    of = [("c", 8.0), ("c", 9.0), ("e", 8.0), ("c", 9.0)]
    tasks = [Task(f"{k}", "?", meta={"parents": (parent,), "rating": rating}) for k, (parent, rating) in enumerate(of)]
    left, dropped = BestOfCluster().whole(tasks, here())
    assert [t.id for t in left] == ["1", "2"] and dropped == {"another of its cluster is rated better": 2}


def replies(prompt: str, number: int) -> str:
    """A writer's and a judge's: questions take the second and third passage; those about bees are no good."""
    topic = next(t for t in TOPICS if f"Of {t}" in prompt)
    if "double brackets" in prompt:
        return "[[2]]" if topic == "bees" else f"[[{8 if 'first' in prompt else 9}]]"
    return one(f"{('first', 'second', 'third')[number]} of {topic}?", topic, [1, 2])


def test_tasks_are_made_from_documents(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three questions about each of four clusters the second is kept, none about bees; a run learns from them."""
    (tmp_path / "documents.jsonl").write_text(json.dumps({"text": DOCUMENT}) + "\n", encoding="utf-8")
    told = Told(replies)
    models = {"writer": Model("w", told), "judge": Model("j", told)}
    monkeypatch.setattr("assay.cli.tasks.make.models_of", lambda *_: models)
    seeds = f"file(path={tmp_path / 'documents.jsonl'},prompt=text,reference=auto)"
    options = [f"embedding={Path(__file__)}:embed", "most=45"]
    out = ("--model", "nano", "--out", str(tmp_path / "new.jsonl"))
    with pytest.raises(SystemExit) as stop:
        main(["tasks", "make", "S003", *options, "--seeds", seeds, *out])
    assert not stop.value.code, capsys.readouterr().err
    made = read_tasks(tmp_path / "new.jsonl")
    assert [t.reference for t in made] == [{"answer": TOPICS[k], "evidence": [k + 4, k + 8]} for k in (0, 2, 3)]
    assert all("Question: second of" in t.question and "<CHUNK_16>\nOf snow" in t.question for t in made)
    assert {t.kind for t in made} == {"text"} and set(made[0].meta) == {"parents", "made", "rating", "source"}
    letters = "".join(sorted({*"<>/_0123456789abcdefghijklmnopqrstuvwxyz ", *"".join(t.question for t in made)}))
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 1500, "alphabet": letters}},
        tasks={"source": {"name": "made", "path": str(tmp_path / "new.jsonl")}, "eval_size": 1, "eval_share": 0.3},
        method={"name": "S003", "reward": None, "options": {"rounds": 1}},
        warmup={"steps": 0},
        rollout={"prompts": 2, "group": 2, "max_tokens": 4},
        train={"steps": 1, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0, "samples": 1},
    )
    [row] = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert row["reward/evidence"] == 0 and row["reward/format"] == 0
