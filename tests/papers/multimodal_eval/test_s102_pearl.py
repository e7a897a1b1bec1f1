"""PEARL: checklists first, no reasoning where nothing is seen, two groups and a gate by hand, and a run that sees."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run
from tasks.making.told import Told

from assay import catalogue
from assay.batch import Batch
from assay.credit.scaled.perception_gate import PerceptionGate
from assay.engines.base import Request, Sampling
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.lab.settings import load
from assay.media import MARK, Picture
from assay.rollout.reread.perceived import PERCEIVED, Perceived, PerceivedFirst, checklist_of, perception_task
from assay.select.either_branch import EitherBranch
from assay.tasks.making.checklists.perception import PerceptionChecklists, read_perceptions
from assay.tasks.making.maker import Maker, Model
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.making.task_file import write_tasks
from assay.tasks.pictures.compared import Compared
from assay.tasks.pictures.shapes import COLOURS
from assay.types import Ask, Episode, Group, Task, Verdict, pictures
from assay.verify.episodes import judge_groups
from assay.verify.kind import KindVerifier
from assay.verify.lists.short_answers import ShortAnswers, answer_lines

LIST = [{"question": "How many cats?", "answer": 2}, {"question": "What colour?", "answer": "Red"}]
TASK = Task("t", "How many legs?", "8", meta={"checklist": LIST})
ONE = np.ones(1, dtype=np.int64)


def test_the_checklist_is_one_prompt() -> None:
    made = perception_task(TASK)
    asked = "Answer in a few words, one line for each, without reasons:\n1. How many cats?\n2. What colour?"
    assert made.prompt == f"How many legs?\n\n{asked}"
    assert (made.reference, made.kind, made.parent, made.id) == (["2", "Red"], "short_answers", "t", "t/perception")
    picture = Picture(b"one")
    message = {"role": "user", "content": "<image>How many legs?", "images": (picture,)}
    seen = perception_task(replace(TASK, prompt=(message,)), "See {question}: {questions}")  # type: ignore[arg-type]
    [said] = seen.prompt
    assert said["content"] == "<image>\nSee : 1. How many cats?\n2. What colour?"  # type: ignore[index]
    assert pictures(seen.prompt) == [picture] and ShortAnswers()(made, made.solution or "").passed
    judge = ShortAnswers()
    for response, score in (
        ("1. 2\n2. red", 1),
        ("2.0\n\n red. ", 1),
        ("1) 3\n2) red", 0.5),
        ("<think>3\n4</think>(1) 2\nblue", 0.5),
        ("red\n2", 0),
        ("2", 0.5),
        ("2\nred\nblue", 1),
        ("", 0),
    ):
        found = judge(made, response)
        assert (found.score, found.passed) == (score, score == 1), response
    assert judge(made, "2\nblue").parts == {"answer 1": 1, "answer 2": 0}
    assert "answer 2 of 2" in judge(made, "2\nblue").feedback and answer_lines("1. a\n2 b") == ["a", "2 b"]
    for wrong in (None, [], "2"):
        assert judge(replace(made, reference=wrong), "2").fault == "tests"
    assert checklist_of(TASK) == [("How many cats?", "2"), ("What colour?", "Red")]
    for bad in (None, [], "cats", [{"question": "?"}], ["cats"]):
        with pytest.raises(UsageError, match="task t has no checklist"):
            checklist_of(replace(TASK, meta={"checklist": bad}))


class Sees(Keywords):
    """Answers by what stands in the prompt, response after response; keeps what it was asked."""

    def __init__(self, replies: dict[str, Sequence[str]]):
        super().__init__([])
        self.known, self.asked = replies, list[Request]()

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        out = []
        for r in requests:
            texts = next(said for mark, said in self.known.items() if mark in str(r.prompt))
            made = [Episode(ONE, ONE, ONE > 0, np.zeros(1), texts[k], "eos") for k in range(r.n)]
            out.append(made)
        return out


JUDGE = partial(judge_groups, KindVerifier())
ASKED = "one line for each"


def test_who_sees_nothing_does_not_reason() -> None:
    """Of two tasks the second is seen by nobody: three prompts are sampled, and its group is of perception alone."""
    blind = replace(TASK, id="u", prompt="How many wings?")
    engine = Sees({"legs?\n\nAnswer": ["2\nred", "2\nblue"], "wings?\n\nAnswer": ["9\nblue"] * 2, "legs": ["8", "7"]})
    part = PerceivedFirst(Sampling(400), judge=JUDGE)
    assert part.metrics() == {}
    groups = part.collect([Ask(TASK, 2), Ask(blind, 2)], engine, np.random.default_rng(0))
    assert [g.task.id for g in groups] == ["t", "t/perception", "u/perception"]
    assert [g.derived for g in groups] == [False, True, True]
    prompts = [str(r.prompt) for r in engine.asked]
    assert len(prompts) == 3 and sum(ASKED in p for p in prompts) == 2 and "wings" not in prompts[2]
    assert [r.sampling.max_tokens for r in engine.asked] == [256, 256, 400]
    told = [[e.meta[PERCEIVED] for e in g.episodes] for g in groups]
    assert told[0] == [Perceived("0/t", 0.75, False)] * 2 and told[1] == [Perceived("0/t", 0.75, True)] * 2
    assert told[2] == [Perceived("1/u", 0.0, True)] * 2
    assert [[v.score for v in g.verdicts] for g in groups] == [[1, 0], [1, 0.5], [0, 0]]
    assert part.metrics() == {"perceived/mean": 0.375, "perceived/gated": 0.5}
    engine.asked.clear()
    assert [g.task.id for g in part.collect([Ask(blind, 2)], engine, np.random.default_rng(0))] == ["u/perception"]
    assert len(engine.asked) == 1 and part.metrics()["perceived/gated"] == 1
    assert part.collect([], engine, np.random.default_rng(0)) == []
    assert part.metrics() == {"perceived/mean": 0, "perceived/gated": 0}
    short = PerceivedFirst(Sampling(3), judge=JUDGE)
    engine.asked.clear()
    short.collect([Ask(TASK, 1)], engine, np.random.default_rng(0))
    assert [r.sampling.max_tokens for r in engine.asked] == [3, 3] and short.max_tokens == 256

    def broken(groups: Sequence[Group]) -> list[Group]:
        """One of the answers to a checklist could not be judged."""
        return [g.judged([Verdict.abstain("x"), Verdict(0.5, False)]) if g.derived else g for g in JUDGE(groups)]

    some = PerceivedFirst(Sampling(9), judge=broken).collect([Ask(TASK, 2)], engine, np.random.default_rng(0))
    assert some[0].episodes[0].meta[PERCEIVED].mean == 0.5
    nobody = PerceivedFirst(
        Sampling(9), judge=lambda gs: [g.judged([Verdict.abstain("x")] * len(g.episodes)) for g in gs]
    )
    assert len(nobody.collect([Ask(TASK, 2)], engine, np.random.default_rng(0))) == 1
    for options in ({"max_tokens": 0}, {"template": "{question}"}):
        with pytest.raises(UsageError, match="rollout 'perceived': max_tokens"):
            PerceivedFirst(Sampling(9), judge=JUDGE, **options)
    with pytest.raises(UsageError, match="task t has no checklist"):
        part.collect([Ask(replace(TASK, meta={}), 1)], engine, np.random.default_rng(0))


def groups_of(seen: Sequence[float], right: Sequence[float], item: str = "0") -> list[Group]:
    mean = sum(seen) / len(seen)
    out = []
    for perception, scores in ((False, right), (True, seen)):
        meta = {PERCEIVED: Perceived(item, mean, perception)}
        episodes = tuple(Episode(ONE, ONE, ONE > 0, np.zeros(1), "", "eos", meta=meta) for _ in scores)
        verdicts = tuple(Verdict(s, s == 1) for s in scores)
        task = replace(TASK, id=f"{item}{perception}", parent="t" if perception else None)
        if scores:
            out.append(Group(Ask(task, len(scores)), episodes, verdicts))
    return out


def batch(*groups: Group) -> Batch:
    return Batch.from_groups(groups, torch.float64)


SEEN, RIGHT = (2 / 3, 1 / 3, 1.0, 0.0, 2 / 3), (1.0, 0.0, 0.0, 1.0, 0.0)


def test_by_hand() -> None:
    """A mean of .5333 is capped at .5; one of .2 gates by .2; perception counts by a tenth."""
    reasons = np.array([1.095445, -0.730297, -0.730297, 1.095445, -0.730297])
    sees = np.array([0.350823, -0.526235, 1.227881, -1.403293, 0.350823])
    made = catalogue.make("S102")
    found = made.value(batch(*groups_of(SEEN, RIGHT))).advantages[:, 0].tolist()
    assert found[:5] == pytest.approx([0.547723, -0.365148, -0.365148, 0.547723, -0.365148], abs=1e-5)
    assert found[5:] == pytest.approx((0.1 * sees).tolist(), abs=1e-5)
    whole = PerceptionGate(weight=1.0)
    for seen, factor in (((1.0, 0, 0, 0, 0), 0.2), ((1.0, 1, 1, 1, 0), 0.5), ((0.5,) * 5, 0.5), ((0.4,) * 5, 0.4)):
        made_batch = batch(*groups_of(seen, RIGHT))
        made_batch.rewards = torch.tensor([v.score for v in made_batch.verdicts], dtype=torch.float64)
        assert whole(made_batch)[:5, 0].tolist() == pytest.approx((factor * reasons).tolist(), abs=1e-5)
    made_batch = batch(*groups_of(SEEN, RIGHT))
    made_batch.rewards = torch.tensor([v.score for v in made_batch.verdicts], dtype=torch.float64)
    assert whole(made_batch)[5:, 0].tolist() == pytest.approx(sees.tolist(), abs=1e-5)
    open_ = PerceptionGate(cap=1.0, weight=0.0)(made_batch)[:, 0].tolist()
    assert open_[:5] == pytest.approx((8 / 15 * reasons).tolist(), abs=1e-5) and open_[5:] == [0] * 5


def test_the_gate_of_the_code() -> None:
    """Means of .2, .5333 and 1 gate by .5, .5333 and 1; in the paper they do by .2, .5 and .5."""
    reasons = np.array([1.095445, -0.730297, -0.730297, 1.095445, -0.730297])
    made = catalogue.make("S102", floor=0.5, cap=1.0)
    for seen, factor in (((1.0, 0, 0, 0, 0), 0.5), (SEEN, 8 / 15), ((1.0,) * 5, 1.0)):
        found = made.value(batch(*groups_of(seen, RIGHT))).advantages[:, 0].tolist()
        assert found[:5] == pytest.approx((factor * reasons).tolist(), abs=1e-5)
    for wrong in ({"floor": -0.1}, {"floor": 0.6}):
        with pytest.raises(UsageError, match="floor"):
            PerceptionGate(**wrong)
    assert PerceptionGate(floor=0.5).floor == 0.5


def test_both_branches_are_in_the_loss() -> None:
    """The slopes of one update are those of J(reasoning) + .1 J(perception), by half."""
    made = catalogue.make("S102")
    valued = made.value(batch(*groups_of(SEEN, RIGHT)))
    logprobs = torch.zeros(10, 1, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(made.objective(logprobs, valued).value, logprobs)
    assert slope[:, 0].tolist() == pytest.approx((-valued.advantages[:, 0] / 10).tolist())
    assert float(valued.totals.sequences) == 10


def test_either_branch_varies() -> None:
    """Kept: what is seen varies, or what is made of it; left out: all right, nothing seen, all seen and all wrong."""
    items = {
        "a": ((1.0, 0.0), (1.0, 1.0), 1),
        "b": ((1.0, 1.0), (1.0, 0.0), 1),
        "c": ((1.0, 1.0), (1.0, 1.0), 0),
        "d": ((0.0, 0.0), (), 0),
        "e": ((1.0, 1.0), (0.0, 0.0), 0),
        "f": ((0.5, 0.5), (0.0, 0.0), 1),
    }
    groups = [g for name, (seen, right, _) in items.items() for g in groups_of(seen, right, name)]
    weights = EitherBranch()(batch(*groups)).tolist()
    expected = [kept for seen, right, kept in items.values() for _ in (*right, *seen)]
    assert weights == expected
    some = batch(*groups_of((1.0, 0.0), (1.0, 1.0)))
    some.verdicts = [Verdict.right(), Verdict.right(), Verdict.abstain("x"), Verdict(0.0, False)]
    assert EitherBranch()(some).tolist() == [0] * 4


def test_what_it_cannot_act_on() -> None:
    for options in ({"cap": 0.0}, {"cap": 1.1}, {"weight": -0.1}):
        with pytest.raises(UsageError, match=r"credit 'perception_gate': cap .* must be in \(0, 1\]"):
            PerceptionGate(**options)
    made = catalogue.make("S102")
    made.credit.check_tasks([TASK])
    with pytest.raises(UsageError, match="task u has no checklist"):
        made.credit.check_tasks([TASK, Task("u", "?")])
    other = Group(Ask(TASK, 1), (Episode(ONE, ONE, ONE > 0, np.zeros(1), "", "eos"),), (Verdict.right(),))
    for part in (made.credit, made.select):
        with pytest.raises(UsageError, match="is for episodes of rollout 'perceived'"):
            part(batch(other))


def test_the_method() -> None:
    made = catalogue.make("S102", cap=0.7, weight=0.2, max_tokens=9)
    assert (made.credit.cap, made.credit.weight, made.rollout) == (0.7, 0.2, {"name": "perceived", "max_tokens": 9})
    default = catalogue.make("S102")
    assert (default.credit.cap, default.credit.weight, default.rollout["max_tokens"]) == (0.5, 0.1, 256)
    assert default.group_relative and default.credit.level == "response" and default.objective.kl_weight == 0
    assert default.credit.needs == frozenset() and default.credit.summary == default.credit.members[0].summary
    assert default.objective.aggregation == "sequence_mean" and PerceptionGate.rollout == "perceived"


def test_drawn_comparisons() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    source, answers = Compared(seed=1, pixels=8), Counter[str]()
    for i in range(30):
        task = source[i]
        [(_, one), (_, other), (_, all_)] = checklist_of(task)
        assert task.reference == str(int(one) - int(other)) and 1 <= int(task.reference) <= 4
        assert KindVerifier()(task, task.solution or "").passed
        image = np.asarray(pictures(task.prompt)[0].open())
        cells = [image[r : r + 8, c : c + 8].reshape(-1, 3) for r in range(0, 32, 8) for c in range(0, 32, 8)]
        shown = sum(any((cell == colour).all(-1).any() for colour in COLOURS.values()) for cell in cells)
        assert shown == int(all_) >= int(one) + int(other)
        words = task.question.removeprefix("<image>How many more ").split()
        assert [q for q, _ in checklist_of(task)] == [
            f"How many {words[0]}?",
            f"How many {words[2]}?",
            "How many shapes?",
        ]
        answers[task.reference] += 1
    assert len(answers) > 2 and source[3] == source[3] != source[4] and source.size is None
    assert Compared(grid=2, most=2, pixels=8)[0].meta["difficulty"] <= 4
    for wrong in ({"grid": 1}, {"pixels": 7}, {"most": 0}, {"seed": -1}, {"grid": 2, "most": 3}):
        with pytest.raises(UsageError, match="tasks 'compared'"):
            Compared(**wrong)


LOOKED = [{"question": "How many cats?", "answer": "2"}, {"question": "What colour?", "answer": "red"}]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (LOOKED, LOOKED),
        ([*LOOKED, {"question": " how  MANY cats? ", "answer": "3"}], LOOKED),
        ([*LOOKED, {"question": "How many legs?", "answer": "8"}], LOOKED),
        ([{"question": "What is it?", "answer": "one two three four five"}, *LOOKED], LOOKED),
        ([{"question": "How many dogs?", "answer": 2}], [{"question": "How many dogs?", "answer": "2"}]),
        ([{"question": "Is it?", "answer": True}, {"question": "", "answer": "x"}, {"answer": "x"}, 7], []),
        ([{"question": "a\nb", "answer": "x"}, {"question": "c", "answer": "x\ny"}], []),
        ([{"question": "d", "answer": ""}], []),
        ([*LOOKED, {"question": "Where?", "answer": "left"}, {"question": "Who?", "answer": "a man"}], None),
        ({"question": "How many cats?", "answer": "2"}, []),
    ],
)
def test_questions_that_can_be_used(rows: Any, expected: Any) -> None:
    found = read_perceptions(f"Here: {json.dumps(rows)}.", 3, 4, "<image> How many legs?")
    assert found == ([*LOOKED, {"question": "Where?", "answer": "left"}] if expected is None else expected)
    for reply in ("none", "][", "[" * 9000 + "]"):
        assert read_perceptions(reply, 3, 4, "") == []


def shown(text: str = "How many legs?", reference: Any = "8") -> Task:
    image = Picture.of(np.zeros((8, 8, 3), dtype=np.uint8))
    return Task("p", ({"role": "user", "content": f"{MARK}{text}", "images": (image,)},), reference, "exact")


def test_a_model_writes_checklists() -> None:
    """It is shown the picture, the question and the answer; another may have to see what it says."""
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    task = shown()
    writer, judge = Told(lambda prompt, j: json.dumps(LOOKED)), Told(lambda prompt, j: "1. 2\n2. Blue")
    models = {"writer": Model("w", writer), "judge": Model("j", judge)}
    [made] = Maker(read_pipeline("S102", {}), models).make([task]).tasks
    assert made.meta["checklist"] == LOOKED and made.prompt == task.prompt
    assert checklist_of(made)[1] == ("What colour?", "red")
    [message] = writer.asked[0].prompt  # type: ignore[misc]
    assert message["images"] == pictures(task.prompt) and message["content"].count(MARK) == 1
    assert "Question: How many legs?\nAnswer: 8\n" in message["content"] and "Write 2 to 5 short" in message["content"]
    assert judge.asked == []
    # Of the two the judge sees the first alike.
    found = Maker(read_pipeline("S102", {"least": 1, "checked": "judge"}), models).make([task])
    assert [t.meta["checklist"] for t in found.tasks] == [LOOKED[:1]]
    [again] = judge.asked[0].prompt  # type: ignore[misc]
    assert again["images"] == pictures(task.prompt) and again["content"].endswith("1. How many cats?\n2. What colour?")
    assert "Answer: 8" not in again["content"] and judge.asked[0].sampling.temperature == 0
    for options, tasks, why in (
        ({"checked": "judge"}, [task], "fewer than 2 questions about what is seen"),
        ({"least": 3}, [task], "fewer than 3 questions about what is seen"),
        ({}, [task, Task("q", "Why?", "8")], "it has no pictures, or no answer that is a text or a number"),
        ({}, [task, replace(shown(reference=["8"]), id="q")], "it has no pictures, or no answer"),
    ):
        counts = Maker(read_pipeline("S102", options), models).make(tasks).counts["checklists"]
        assert [reason for reason in counts.dropped if reason.startswith(why)] and sum(counts.dropped.values()) == 1
    with pytest.raises(UsageError, match="task q has none"):
        read_pipeline("S102", {}).check([Task("q", "Why?", "8")])
    for options in ({"least": 0}, {"least": 6}, {"words": 0}):
        with pytest.raises(UsageError, match="step perception: 1 <= least"):
            PerceptionChecklists(**options)
    assert (PerceptionChecklists().least, PerceptionChecklists().most, PerceptionChecklists().words) == (2, 5, 4)


def test_written_checklists_are_learned(tmp_path: Path) -> None:
    """Tasks of a file, pictures and all, are given checklists; a run asks these first."""
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    source = Compared(pixels=8)
    bare = [replace(source[i], id=f"t{i}", kind="exact", meta={}) for i in range(8)]
    by = Told(lambda prompt, j: json.dumps(LOOKED))
    made = Maker(read_pipeline("S102", {}), {"writer": Model("w", by)}).make(bare).tasks
    write_tasks(tmp_path / "seen.jsonl", made)
    nano: dict[str, Any] = {"hidden": 16, "layers": 1, "heads": 2, "context": 192}
    folder = run(
        tmp_path / "run",
        model={"nano": {**nano, "vision": {"hidden": 16, "layers": 1}}},
        tasks={"source": {"name": "made", "path": str(tmp_path / "seen.jsonl")}, "eval_size": 1, "eval_share": 0.4},
        method={"name": "S102", "reward": None},
        warmup={"steps": 0},
        rollout={"prompts": 2, "group": 2, "max_tokens": 4},
        train={"steps": 1, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    [row] = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert row["perceived/gated"] == 1 and row["perceived/mean"] == 0


def test_it_trains(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    nano: dict[str, Any] = {"hidden": 16, "layers": 1, "heads": 2, "context": 192}
    folder = run(
        tmp_path / "run",
        model={"nano": {**nano, "vision": {"hidden": 16, "layers": 1}}},
        tasks={"source": {"name": "compared", "pixels": 8}, "eval_size": 2},
        method={"name": "S102", "reward": None},
        warmup={"steps": 0},
        run={"checkpoint_every": 100},
        rollout={"prompts": 2, "group": 4, "max_tokens": 6},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    # A model from scratch sees nothing: its checklists are asked, and nothing is reasoned about.
    assert [row["perceived/gated"] for row in rows] == [1, 1] and [row["perceived/mean"] for row in rows] == [0, 0]


def test_the_setting() -> None:
    """A branch for seeing leads to it sooner; both numbers of the policy are learned, and the tie holds."""
    setting = load("perceiving", {"steps": 40, "lr": 0.3})
    branches = setting.run({"name": "S102", "credit": {"name": "perception_gate", "weight": 1.0}}, 0, Path())
    plain = setting.run({"name": "grpo", "setting": {"group": 10}}, 0, Path())
    assert branches["sees"] > branches["early"] > 0.3 and branches["sees"] > plain["sees"]
    assert plain["rollouts"] == 400 >= branches["rollouts"] > 200
    with pytest.raises(UsageError, match="group of its setting alone"):
        setting.run({"name": "grpo", "setting": {"steps": 1}}, 0, Path())
