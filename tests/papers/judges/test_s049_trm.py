"""S049: labels of sentences, the judge's and the policy's rewards by hand, and what sentences' tokens earn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from grouped import grouped
from marked import Critic
from preferring import Prefers
from running import metrics, recipe

import assay
from assay import catalogue
from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.credit.step_reward import StepReward
from assay.engines.base import Request
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.papers.judges.s049_trm import measured
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.sentences.judge import SentenceJudge
from assay.rewards.sentences.labels import SentenceLabelReward, sentence_rewards
from assay.rewards.sentences.reward import SentenceReward
from assay.signals.base import Models
from assay.signals.steps import Steps
from assay.tasks.judging.sentence_labels import LabelledSentences, asked
from assay.types import Ask, Episode, Group, Span, Task, Verdict
from assay.verify.grounding.sentence_labels import SentenceLabels, read_labels, truth, written_labels

Y, N = True, False
GOOD = """Sentence 1
Faithful: yes
Reason: it says so
Correct: no
Sentence 2:
Faithful: No
 Reason: so.
So!
Correct: yes
"""


def test_how_labels_are_read() -> None:
    """Blocks in their order, each with faithfulness, a reason and correctness in this order."""
    assert read_labels(GOOD, 2) == [(Y, N), (N, Y)] and read_labels(f"So.\n{GOOD}", 2) is not None
    assert read_labels(GOOD, 1) is read_labels(GOOD, 3) is read_labels("", 1) is None
    one = written_labels([(Y, Y)], ["as\nit is"])
    assert one == "Sentence 1\nFaithful: yes\nReason: as it is\nCorrect: yes" and read_labels(one, 1) == [(Y, Y)]
    for wrong in (
        one.replace("Reason: as it is\n", ""),
        one.replace("as it is", " "),
        "Sentence 1\nCorrect: yes\nReason: x\nFaithful: yes",
        one.replace("Sentence 1", "Sentence 2"),
        one.replace("Faithful: yes", "Faithful: perhaps"),
        one + "\nand so on",
        one.replace("Sentence 1\n", "Sentence 1\nso\n"),
    ):
        assert read_labels(wrong, 1) is None
    assert read_labels(f"{one}\n{one}", 2) is None
    assert read_labels(f"{one}\nSentence 2\nand so on", 2) is None, "all are read, or none"
    labels = [(Y, N), (N, N)]
    assert read_labels(written_labels(labels, ["a", "b"]), 2) == labels


def test_verdicts_on_labels() -> None:
    task = Task("t", "q", [[Y, N], [N, N], [Y, Y]])
    said = written_labels([(Y, N), (Y, Y), (N, Y)], ["x"] * 3)
    verdict = SentenceLabels()(task, said)
    assert verdict.score == pytest.approx(1 / 3) and verdict.passed is False
    assert verdict.parts == {"readable": 1.0, "faithful": pytest.approx(1 / 3), "correct": pytest.approx(2 / 3)}
    right = SentenceLabels()(task, written_labels([(Y, N), (N, N), (Y, Y)], ["x"] * 3))
    assert right.passed is True and right.score == 1
    unread = SentenceLabels()(task, GOOD)
    assert (unread.score, unread.passed) == (0, False)
    assert unread.parts == {"readable": 0.0, "faithful": 0.0, "correct": 0.0}
    for reference in (None, [], [1], [[Y]], [[Y, 2]], [[Y, N], [N]], "yes"):
        assert SentenceLabels()(replace(task, reference=reference), said).passed is None
    assert truth(task) == [(Y, N), (N, N), (Y, Y)]


ROW = {"question": "Where?", "documents": {"a": "It is in Bonn."}, "answer": "It is in Bonn. So it is. Dr. No knows."}


def test_tasks_of_labelled_sentences(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    labels = {"faithful": [True, False, False], "correct": [False, True, True]}
    given = {"question": "Who?", "sentences": ["He."], "faithful": [True], "correct": [True]}
    rows = [{**ROW, **labels, "reasons": ["old", "fits", "known"]}, given]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    one, other = LabelledSentences(path).tasks
    assert one.reference == [(Y, N), (N, Y), (N, Y)] and one.kind == "sentence_labels"
    assert (
        "1. It is in Bonn.\n2. So it is.\n3. Dr. No knows.\n" in one.question and "[a] It is in Bonn.\n" in one.question
    )
    assert SentenceLabels()(one, str(one.solution)).passed and "Reason: fits\n" in str(one.solution)
    assert one.meta["sentences"] == ["It is in Bonn.", "So it is.", "Dr. No knows."] and other.solution is None
    assert "Documents:\n(none)\n" in other.question and "1. He.\n" in other.question
    assert asked("q", ["x", "y"], ["s"]).count("[1] x\n[2] y\n") == 1
    for wrong in (
        ROW,
        {**ROW, **labels, "correct": [True]},
        {**ROW, **labels, "correct": [True, False, 2]},
        {**ROW, **labels, "reasons": ["x"]},
        {**labels, "answer": ROW["answer"]},
        {"question": "q", "answer": "", "faithful": [], "correct": []},
        3,
    ):
        path.write_text(json.dumps(wrong))
        with pytest.raises(UsageError, match="one label in faithful and one in correct"):
            LabelledSentences(path)
    with pytest.raises(UsageError, match="must show"):
        LabelledSentences(path, "{question}")


def test_the_judges_reward_by_hand() -> None:
    """(f*, f, c*, c): a wrong sentence that is found is worth most; another number of sentences is worth nothing."""
    cases = [
        ((Y, Y), (Y, Y), 1.0),
        ((Y, N), (Y, N), 1.5),
        ((Y, N), (N, N), 1.0),
        ((Y, N), (Y, Y), 0.5),
        ((N, Y), (Y, N), 0),
    ]
    for label, said, worth in cases:
        assert sentence_rewards([said], [label], 0.5, 0.5) == [worth]
    assert sentence_rewards([(N, N)], [(Y, N)], 0.3, 0.25) == [pytest.approx(0.95)]
    batch = grouped([written_labels([s for _, s, _ in cases[:3]], ["x"] * 3), GOOD, "broken"])
    batch.tasks = [replace(t, reference=[label for label, *_ in cases[:3]]) for t in batch.tasks]
    found = SentenceLabelReward()(batch)
    assert found.values.tolist() == [pytest.approx(3.5 / 3), 0, 0]
    assert found.valid is not None and found.valid.tolist() == [True, True, False]
    terms = {name: values.tolist()[:2] for name, values in found.terms.items()}
    assert terms == {"faithful": [pytest.approx(2 / 3), 0], "correct": [1, 0], "found": [1, 0]}
    plain = grouped([written_labels([(Y, Y)], ["x"])])
    plain.tasks = [replace(t, reference=[(Y, Y)]) for t in plain.tasks]
    assert SentenceLabelReward()(plain).terms["found"].tolist() == [1] and SentenceLabelReward() == SentenceLabelReward(
        0.5, 0.5
    )
    SentenceLabelReward().check_tasks(batch.tasks)
    with pytest.raises(UsageError, match="task u has no labels"):
        SentenceLabelReward().check_tasks([*batch.tasks, Task("u", "q")])
    # Without a bonus, one label alone.
    bounds = [SentenceLabelReward(alpha, 0.0) for alpha in (0.0, 1.0)]
    assert [sentence_rewards([(Y, N)], [(Y, Y)], part.alpha, part.bonus) for part in bounds] == [[0], [1]]
    for options in ({"alpha": -0.1}, {"alpha": 1.1}, {"bonus": -0.1}):
        with pytest.raises(UsageError, match="alpha"):
            SentenceLabelReward(**options)


def cut(*rows: list[int], texts: list[str] | None = None) -> Batch:
    """Responses of a group whose sentences have so many tokens; the first one's first token is not its own."""
    episodes = []
    for i, sizes in enumerate(rows):
        ends = np.cumsum([0, *sizes]).tolist()
        tokens = np.full(ends[-1], i, dtype=np.int64)
        mask = np.ones(len(tokens), dtype=bool)
        mask[0] = i > 0
        spans = tuple(Span("step", a, b) for a, b in pairwise(ends))
        text = texts[i] if texts else f"{i}"
        episodes.append(Episode(tokens[:0], tokens, mask, np.zeros(len(tokens), np.float32), text, "eos", spans=spans))
    verdicts = (Verdict(1.0, True),) * len(rows)
    task = Task("t", "q", solution="4", meta={"documents": ["D"]})
    return Batch.from_groups([Group(Ask(task, len(rows)), tuple(episodes), verdicts)], torch.float64)


class Said:
    """Scores of sentences as they are given, response by response."""

    def __init__(self, *rows: list[float] | None):
        self.rows = rows

    def scores(self, responses: Any) -> Any:
        return self.rows


def signalled(part: SentenceReward, batch: Batch) -> Batch:
    models = Models(TabularPolicy(Tree.bandit(2)))
    for signal in part.needs:
        batch.signals[signal.name] = signal(batch, models)
    return batch


def test_the_policys_reward_by_hand() -> None:
    """c = (1, 0, 1) and a preference of 1/4, 1 to 2: (1/2, 1/6, 1/2)."""
    pairs = {"judge": Prefers(float)}
    batch = cut([2, 1, 2], [1, 1], texts=["3.4506939", "5"])
    part = SentenceReward(Said([1, -1, 1], [-1, -1]), pairs)
    found = part(signalled(part, batch))
    assert found.terms["preference"][0].item() == pytest.approx(0.366026, abs=0.2)
    p = found.terms["preference"].tolist()
    assert found.tokens is not None
    assert found.tokens.tolist() == [
        pytest.approx([0, (1 + 2 * p[0]) / 3, 2 * p[0] / 3, 0, (1 + 2 * p[0]) / 3]),
        pytest.approx([2 * p[1] / 3, 2 * p[1] / 3, 0, 0, 0]),
    ]
    quarter = SentenceReward(Said([1, -1, 1], [-1, -1]), {"judge": Quarter()})
    row = quarter(signalled(quarter, batch)).tokens
    assert row is not None and row[0].tolist() == pytest.approx([0, 0.5, 1 / 6, 0, 0.5])
    assert found.terms["correct"].tolist() == [pytest.approx(2 / 3), 0] and found.values.tolist() == [0, 0]
    alone = SentenceReward(Said([1, -1, 1], None))
    bare = alone(signalled(alone, batch))
    assert bare.tokens is not None and bare.valid is not None and bare.valid.tolist() == [True, False]
    assert bare.tokens.tolist() == [[0, 1, 0, 0, 1], [0, 0, 0, 0, 0]]
    assert bare.terms["correct"].tolist() == [pytest.approx(2 / 3), 0]
    even = SentenceReward(Said([1, -1, 1], [-1, -1]), {"judge": Quarter()}, correct=1.0, useful=1.0)
    level = even(signalled(even, batch)).tokens
    assert level is not None and level[0].tolist() == pytest.approx([0, 0.625, 0.125, 0, 0.625])
    assert part.correct == 1 and part.useful == 2 and part.scores.steps == Steps("sentence")
    with pytest.raises(UsageError, match="no answer to compare with"):
        part.check_tasks([Task("t", "q")])
    alone.check_tasks([Task("t", "q")])
    # By either alone, of one sentence each.
    single = cut([2], [2], texts=["3", "5"])
    for options, row in (({"correct": 0.0}, [0.25, 0.25]), ({"useful": 0.0}, [1, 0])):
        one = SentenceReward(Said([1], [-1]), {"judge": Quarter()}, **options)
        only = one(signalled(one, single))
        assert only.tokens is not None and only.tokens[:, 1].tolist() == pytest.approx(row)
        assert only.terms["correct"].tolist() == [1, 0]
    # What the judge of pairs cannot be read on has no reward, whatever its sentences are.
    blind = SentenceReward(Said([1], [1]), {"judge": Prefers(lambda text: None if text == "5" else 0.0)})
    seen = blind(signalled(blind, single))
    assert seen.tokens is not None and seen.tokens[1].tolist() == [0, 0]
    assert seen.valid is not None and seen.valid.tolist() == [True, False]
    for options in ({"correct": -1.0}, {"useful": -1.0}, {"correct": 0.0, "useful": 0.0}):
        with pytest.raises(UsageError, match="not below 0"):
            SentenceReward(Said(), **options)


class Quarter(Prefers):
    """Prefers the prompt's own answer to any other, by 3 to 1, in either place."""

    def __init__(self) -> None:
        super().__init__(lambda text: 0.0 if text == "4" else -float(np.log(3.0)))


def test_tokens_of_sentences() -> None:
    """Of (1, 0, 1) and (0, 0) the mean is 2/5, the deviation sqrt(.3); own tokens of a sentence have its share."""
    part = SentenceReward(Said([1, -1, 1], [-1, -1]))
    batch = signalled(part, cut([2, 1, 2], [1, 1]))
    found = part(batch)
    batch.rewards, batch.token_rewards = found.values, found.tokens
    up, down = 0.6 / 0.3**0.5, -0.4 / 0.3**0.5
    made = catalogue.make("S049", judge=Said(), steps={"by": "newline"})
    assert isinstance(made, Method) and isinstance(made.credit, StepReward) and made.credit.outcome is None
    advantages = replace(made.credit, steps=part.scores.steps, outcome=None)(batch)
    assert advantages.tolist() == [
        pytest.approx([0, up, down, up, up], abs=1e-5),
        pytest.approx([down, down, 0, 0, 0], abs=1e-5),
    ]
    assert made.credit.steps == Steps("newline") == made.reward.scores.steps  # type: ignore[union-attr]


def test_the_row_is_its_parts() -> None:
    made = catalogue.make("S049", judge=Said(), preferences={"judge": Quarter()})
    assert isinstance(made, Method) and isinstance(made.reward, SentenceReward)
    assert (made.reward.correct, made.reward.useful) == (1.0, 2.0)
    assert made.reward.scores.steps == Steps("sentence") and made.objective == ClippedSurrogate(kl_weight=0.0)


class Breaks(Critic):
    """Fails once it has replied."""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[replace(e, stop="error") for e in row] for row in super().generate(requests)]


def test_what_a_judge_of_sentences_is_asked() -> None:
    critic = Critic(lambda p, k: None if "fails" in str(p) else GOOD)
    judge = SentenceJudge(critic)
    task = Task("t", "Where?", meta={"documents": ["In Bonn."]})
    assert judge.scores([(task, ["a.", "b."]), (task, ["a."]), (task, []), (task, ["fails", "x"])]) == [
        [-1, 1],
        None,
        [],
        None,
    ]
    request = critic.asked[0]
    assert str(request.prompt) == asked("Where?", ["In Bonn."], ["a.", "b."])
    assert request.sampling.temperature == 0 and request.sampling.max_tokens == 4096
    cut_off = SentenceJudge(Breaks(lambda p, k: GOOD)).scores([(task, ["a.", "b."])])
    assert cut_off == [None], "a judge that failed has said nothing, whatever came of it"
    with pytest.raises(UsageError, match="need a judge"):
        SentenceJudge(None)


def test_what_is_measured() -> None:
    """Of three wrong sentences one is found, one right one is called wrong: F1 = 2 / (2 + 3); the unread is called
    right, so of two wrong answers one is found, and a right one is called wrong: 2 / (2 + 2). Two of three found, and
    nothing else called wrong, are 4 / (2 + 3)."""
    labels = [[(Y, Y), (Y, N)], [(N, Y), (N, Y)], [(N, N), (Y, N)]]
    said = [[(Y, Y), (Y, N)], [(N, N), (N, Y)], None]
    assert measured(said, labels) == {
        "sentences": 0.4,
        "answers": 0.5,
        "faithful, correct": 1.0,
        "faithful, wrong": 0.5,
        "unfaithful, correct": 0.5,
        "unfaithful, wrong": 0.0,
    }
    assert measured([[(Y, Y)]], [[(N, Y)]]) == {"unfaithful, correct": 1.0}
    assert measured([[(Y, N), (Y, N), (Y, Y)]], [[(Y, N)] * 3])["sentences"] == 0.8
    with pytest.raises(ValueError, match="shorter"):
        measured([None], [])


def test_it_trains(tmp_path: Path) -> None:
    """The judge learns to label, from solutions first; a policy is rewarded by one that knows some words."""
    judge, words = catalogue.make("S049", stage="judge"), {"name": "keywords", "replies": [["", GOOD]]}
    assert isinstance(judge, Method) and judge.reward == SentenceLabelReward() and isinstance(judge.credit, GRPO)
    with pytest.raises(UsageError, match="need a judge"):
        catalogue.make("S049")
    path = tmp_path / "rows.jsonl"
    row = {"sentences": ["x"], "faithful": [True], "correct": [False], "reasons": ["so"]}
    path.write_text("".join(json.dumps({**row, "question": f"{k}"}) + "\n" for k in range(12)))
    alphabet = "".join(map(chr, range(32, 127))) + "\n"
    told = recipe(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 800, "alphabet": alphabet}},
        tasks={"source": {"name": "sentence_labels", "path": str(path)}, "eval_size": 1, "eval_share": 0.4},
        method={"name": "S049", "reward": None},
        rollout={"prompts": 1, "group": 2, "max_tokens": 4},
        warmup={"steps": 1, "batch": 2},
        train={"mini_batches": 1, "epochs": 1},
        evaluate={"every": 0, "samples": 1},
    )
    del told["train"]["steps"]
    told["stages"] = [
        {"name": "judge", "steps": 1, "method": {"options": {"stage": "judge"}}},
        {"name": "policy", "steps": 1, "method": {"options": {"judge": words}}},
    ]
    assay.train(told, quiet=True)
    folder = tmp_path / "run"
    first, second = [row for row in metrics(folder) if row["stage"] != "warmup"]
    assert first["reward/found"] == 0 and "reward/preference" in second


def test_sentences_in_the_lab() -> None:
    options: dict[str, Any] = {"steps": 8, "questions": 2, "lr": 3.0}
    one, whole = (learned("S049", arm, **options) for arm in ("by sentence", "whole answer"))
    assert one["start"] == whole["start"] < one["final"] and one["area"] > whole["area"]
    assert one["rollouts"] == 8 * 2 * 8 and 0 < one["whole"] < 1
