"""Omni-Persona: what responses say, the table of rewards, gibberish, scores by hand, and a run that sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run

from assay import catalogue
from assay.batch import Batch
from assay.errors import UsageError
from assay.evaluate.abstention.calibrated import CalibratedScores
from assay.lab.settings import load
from assay.records.evaluation import Evaluation
from assay.records.sample import Sample
from assay.rewards.outcome.grounded import Grounded
from assay.tasks.pictures.personas import CANNOT, Personas
from assay.tasks.pictures.shapes import COLOURS
from assay.types import Ask, Episode, Group, Task, Verdict, pictures
from assay.verify.answer.abstention import PHRASES, abstains
from assay.verify.grounding.persona import Persona, said_index
from assay.verify.text.degenerate import degenerate, repeated

JUDGE = Persona()
TP, TN, FP, FN = "true positive", "true negative", "false positive", "false negative"
WRONG, LOST, VOID = "wrong: another is there", "unread: somebody is there", "unread: nobody is there"


def localize(answer: int, contexts: int = 3) -> Task:
    return Task("t", "Who?", {"type": "localize", "contexts": contexts, "answer": answer}, "persona")


def verify(answer: str) -> Task:
    return Task("t", "Same?", {"type": "verify", "answer": answer}, "persona")


def text_qa(answer: str | None) -> Task:
    return Task("t", "What?", {"type": "text_qa", "answer": answer}, "persona")


def test_localising() -> None:
    """Three contexts, so that 3 is none of them."""
    table = {
        (1, "\\boxed{1}"): TP,
        (1, "\\boxed{2}"): WRONG,
        (1, "\\boxed{3}"): FN,
        (3, "\\boxed{3}"): TN,
        (3, "\\boxed{0}"): FP,
        (1, "It is him."): LOST,
        (3, "It is him."): VOID,
        (0, "\\boxed{7}"): WRONG,
    }
    for (answer, response), name in table.items():
        found = JUDGE(localize(answer), response)
        assert (found.feedback, found.passed, found.score) == (name, name in (TP, TN), float(name in (TP, TN)))
        assert found.parts == {"degenerate": 0}
    assert said_index("\\boxed{1} or \\boxed{ 12 }, not 3") == 12
    assert said_index("Answer: 2, as 7 is " + "so " * 40) == 2 and said_index("answer : 4. No 9") == 4
    assert said_index("Answer: 2" + " and so on" * 30) is None and said_index("first 3, then 5") == 5
    assert said_index("5" + "x " * 40) is None and said_index("a b5 c") is None and said_index("") is None
    assert said_index("5 " + "x" * 78) == 5 and said_index("5 " + "x" * 79) is None
    for wrong in (localize(4), localize(-1)):
        assert JUDGE(wrong, "1").fault == "tests"
    assert JUDGE(localize(0), "0").passed and JUDGE(localize(3), "so none of them, 3").passed


def test_verifying() -> None:
    for answer, response, name in (
        ("yes", "Yes.", TP),
        ("Yes", "No... yes", TP),
        ("yes", "yes or NO", FN),
        ("no", "no", TN),
        ("no", "Yes", FP),
        ("yes", "perhaps", LOST),
        ("no", "nothing", VOID),
    ):
        assert JUDGE(verify(answer), response).feedback == name
    assert JUDGE(verify("maybe"), "yes").passed is None


def test_answers_in_words() -> None:
    cannot = "Context 0 shows a baker. I cannot determine that from the provided context."
    for answer, response, name in (
        ("baker", "She is a baker.", TP),
        ("baker", "She is a pilot.", WRONG),
        ("baker", cannot, FN),
        (None, cannot, TN),
        (None, "She is a baker.", FP),
        ("baker", " ", LOST),
        (None, "", VOID),
    ):
        found = JUDGE(text_qa(answer), response)
        assert (found.feedback, found.passed) == (name, name in (TP, TN)), response
    assert len(PHRASES) == 12 and all(abstains(f"That is {phrase} at all.") for phrase in PHRASES)
    assert abstains("There is NOT enough\n information here") and not abstains("I know it well.")
    assert not abstains("I cannot determine 0. It is in context 2.") and abstains("I cannot determine 0. Hm? So.")
    assert not abstains("I cannot answer that.\n\nShe bakes bread") and abstains("Bread!\n\nI cannot answer that")
    assert abstains("I cannot answer that. She bakes bread.", "whole") and not abstains("", "whole")
    assert not abstains("I cannot answer! It is her") and abstains("I cannot answer! It's her")
    assert abstains("Nobody knows that.", phrases=("nobody knows",)) and not abstains("")
    whole = Persona(where="whole")(text_qa("baker"), "I cannot answer that. She is a baker.")
    assert whole.feedback == FN and JUDGE(text_qa("baker"), "I cannot answer that. She is a baker.").feedback == TP
    strict = Persona(held="exact", phrases=("no idea",))
    assert strict(text_qa("baker"), "a baker").feedback == WRONG and strict(text_qa("baker"), "baker").passed
    assert strict(text_qa("baker"), "I really have no idea").feedback == FN

    def broken(task: Task, response: str) -> Verdict:
        return Verdict.abstain("down", "infrastructure")

    assert Persona(held=broken)(text_qa("baker"), "a baker").fault == "infrastructure"
    for bad in (
        None,
        {},
        {"type": "verify"},
        {"type": "text_qa"},
        {"type": "localize", "answer": 1},
        {"answer": "yes"},
    ):
        assert JUDGE(Task("t", "?", bad, "persona"), "yes").fault == "tests"


def test_gibberish() -> None:
    """Blank, of few characters, of repeated runs of words, or with a sentence twice."""
    assert degenerate("") and degenerate(" \n") and degenerate("aaaa aaaa aaaa aaaa" * 3)
    assert degenerate("ab" * 21) and not degenerate("ab" * 20)
    assert not degenerate("yes") and not degenerate("\\boxed{1}")
    assert repeated("a b c d e f g") == 0 and repeated("a b c d e f g h") == 0
    # Of 13 runs of four words in four times four, four are different.
    assert repeated("a b c d " * 4) == pytest.approx(9 / 13) and degenerate("a b c d " * 4)
    assert repeated("A b c D " * 3) == pytest.approx(5 / 9) and not degenerate("A b c D " * 3)
    assert degenerate("She is here. No! She is here? ") and not degenerate("She is he. No! She is he?")
    assert JUDGE(text_qa(None), "I cannot answer. I cannot answer.").parts["degenerate"] == 1
    same = JUDGE(text_qa(None), "I cannot answer. I cannot answer.")
    assert same.passed and Grounded().worth(same) == 0


def batch(verdicts: Sequence[Verdict]) -> Batch:
    one = np.ones(1, dtype=np.int64)
    episodes = tuple(Episode(one, one, one > 0, np.zeros(1), "", "eos") for _ in verdicts)
    return Batch.from_groups([Group(Ask(localize(0), len(verdicts)), episodes, tuple(verdicts))], torch.float64)


def test_the_table_of_rewards() -> None:
    names = [TP, TN, FN, FP, WRONG, LOST, VOID, TP, FP]
    gibberish = [0.0] * 7 + [1.0, 1.0]
    verdicts = [
        Verdict(float(n in (TP, TN)), n in (TP, TN), {"degenerate": g}, n)
        for n, g in zip(names, gibberish, strict=True)
    ]
    found = catalogue.make("S145").reward(batch([*verdicts, Verdict.abstain("down")]))
    assert found.values.tolist() == [1, 1, -0.5, -0.5, 0, 0, 0, 0, 0, 0]
    assert found.valid is not None and found.valid.tolist() == [True] * 9 + [False]
    assert found.terms["right"].tolist() == [1, 1, 0, 0, 0, 0, 0, 1, 0, 0]
    assert found.terms["abstained"].tolist() == [0, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert found.terms["confused"].tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 1, 0]
    assert found.terms["degenerate"].tolist() == [0] * 7 + [1, 1, 0]
    other = Grounded(0.9, 0.8, -0.2, -0.3)
    assert other(batch(verdicts[:5])).values.tolist() == pytest.approx([0.9, 0.8, -0.2, -0.3, 0])
    for wrong in ({"tp": 0.0}, {"tn": 0.0}, {"fn": 0.1}, {"fp": 0.1}):
        with pytest.raises(UsageError, match="reward 'grounded': tp"):
            Grounded(**wrong)
    other.check_tasks([localize(0)])
    with pytest.raises(UsageError, match="task u is of kind 'exact'"):
        other.check_tasks([localize(0), Task("u", "?")])


def sample(name: str, passed: bool | None = False) -> Sample:
    return Sample("t", "?", "", 0.0, passed, name, 1, "eos")


def test_the_scores_by_hand() -> None:
    """Five are there, four of them attempted and three rightly; four are not, two of them left."""
    names = [TP, TP, TP, WRONG, FN, TN, TN, FP, FP]
    scores = CalibratedScores()(Evaluation("after", 0, tuple(sample(n) for n in names)))
    assert (scores.answerable, scores.unanswerable) == (5, 4)
    found = (scores.ans, scores.ta, scores.cal, scores.attempted, scores.avg)
    assert found == pytest.approx((0.6, 0.5, 0.5556, 0.8, 0.65), abs=1e-4)
    silent = CalibratedScores().of([sample(n) for n in (FN, FN, TN)])
    assert (silent.ans, silent.ta, silent.cal, silent.attempted) == (0, 1, pytest.approx(1 / 3), 0)
    lost = CalibratedScores().of([sample(LOST), sample(VOID), sample("down", None)])
    assert (lost.attempted, lost.ta, lost.cal, lost.answerable) == (1, 0, 0, 1)
    half = CalibratedScores().of([sample(TP)])
    assert (half.ta, half.avg, half.ans) == (None, None, 1)
    other = CalibratedScores().of([sample(TN)])
    assert (other.ans, other.attempted, other.avg, other.cal) == (None, None, None, 1)
    for bad in ([], [sample("down", None)], [sample(TP), sample("equal: 3")]):
        with pytest.raises(UsageError, match="calibrated scores are of tasks of kind 'persona'"):
            CalibratedScores().of(bad)


def seen(task: Task) -> list[tuple[str, int]]:
    """Colour and size of who is in each picture."""
    out = []
    for picture in pictures(task.prompt):
        image = np.asarray(picture.open()).reshape(-1, 3)
        [found] = [(n, int((image == c).all(-1).sum())) for n, c in COLOURS.items() if (image == c).all(-1).any()]
        out.append(found)
    return out


def test_the_mix() -> None:
    """Answers are what the pictures say; the last one is who is asked about."""
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    source, kinds, there = Personas(seed=3, pixels=8), Counter[str](), 0
    for i in range(200):
        task = source[i]
        kinds[str(task.meta["category"])] += 1
        there += bool(task.meta["there"])
        found = JUDGE(task, task.solution or "")
        assert found.feedback == (TP if task.meta["there"] else TN) and found.parts == {"degenerate": 0}
        *context, person = seen(task)
        assert (person in context) is task.meta["there"] and len(set(context)) == len(context)
        reference, lines = task.reference, task.question.splitlines()
        if reference["type"] == "localize":
            assert reference["answer"] == (context.index(person) if task.meta["there"] else len(context))
            assert reference["contexts"] == len(context) and f"Say {len(context)} if none" in lines[-1]
        elif reference["type"] == "text_qa":
            told = lines[context.index(person)].split()[-1].rstrip(".") if task.meta["there"] else None
            assert reference["answer"] == told and CANNOT in lines[-1]
        else:
            assert len(context) == 1 and reference["answer"] == ("yes" if task.meta["there"] else "no")
    # 60, 60, 80 and 125 of 200; further off than this once in 1,000 times
    assert abs(kinds["localize"] - 60) < 22 and abs(kinds["verify"] - 60) < 22 and abs(there - 125) < 23
    assert source[5] == source[5] != source[6] and source.size is None and Personas().shares == (30, 30, 40)
    assert (Personas().absent, Personas().contexts) == (0.6, 4)
    alone = Personas(shares=(0.0, 1.0, 0.0), absent=0.0, pixels=8)
    assert all(alone[i].reference == {"type": "verify", "answer": "yes"} for i in range(8))
    for wrong in (
        {"shares": (0.0, 0.0, 0.0)},
        {"shares": (-1.0, 1.0, 1.0)},
        {"absent": -0.1},
        {"contexts": 1},
        {"contexts": 8},
        {"pixels": 7},
        {"seed": -1},
    ):
        with pytest.raises(UsageError, match="tasks 'personas'"):
            Personas(**wrong)  # type: ignore[arg-type]


def test_the_method() -> None:
    made = catalogue.make("S145")
    assert made.reward == Grounded(1.0, 1.0, -0.5, -0.5) and made.credit.normalise
    assert (made.objective.clip_low, made.objective.clip_high, made.objective.kl_weight) == (0.2, 0.2, 0.04)
    other = catalogue.make("S145", tp=0.9, tn=0.8, fn=-0.1, fp=-0.2, clip=0.3, kl_weight=0.0)
    assert other.reward == Grounded(0.9, 0.8, -0.1, -0.2) and other.objective.clip_low == 0.3
    assert other.objective.kl_weight == 0 and other.objective.reads == "response"


def test_it_trains_and_is_scored(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    source: dict[str, Any] = {"name": "personas", "shares": [0.0, 1.0, 0.0], "pixels": 8}
    letters = "".join(sorted(set("Are these the same person? Answer yes or no.\n")))
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 80, "alphabet": letters}
    folder = run(
        tmp_path / "run",
        model={"nano": {**nano, "vision": {"hidden": 16, "layers": 1}}},
        tasks={"source": source, "eval_size": 4},
        method={"name": "S145", "reward": None},
        warmup={"steps": 25, "batch": 8, "lr": 1e-2},
        run={"checkpoint_every": 100},
        rollout={"prompts": 2, "group": 4, "max_tokens": 4},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    for row in rows:
        assert row["reward/mean"] == pytest.approx(row["reward/right"] - 0.5 * row["reward/confused"])
    assert len(rows) == 2 and any(row["reward/right"] > 0 for row in rows)
    found = CalibratedScores()(Evaluation.from_parquet(folder / "evals" / "after.parquet"))
    assert found.answerable + found.unanswerable == 8 and 0 <= found.cal <= 1


def test_the_setting() -> None:
    """Rewards for answers alone end in naming somebody always; the table keeps silent where the hint says so."""
    setting = load("absent", {"steps": 40, "lr": 1.0})
    arm: dict[str, Any] = {"name": "S145", "options": {"kl_weight": 0.0}}
    grounded = setting.run(arm, 0, Path())
    answers = setting.run({**arm, "options": {"kl_weight": 0.0, "tn": 1e-9, "fn": 0.0, "fp": 0.0}}, 0, Path())
    assert grounded["ta"] > 0.6 > answers["ta"] and grounded["cal"] > answers["cal"] and grounded["attempted"] > 0.6
    assert answers["attempted"] > 0.9 and grounded["rollouts"] == 40 * 4 * 8
    share = 1 / 1.6
    assert grounded["cal"] == pytest.approx(share * grounded["attempted"] * 0.7 + (1 - share) * grounded["ta"])
