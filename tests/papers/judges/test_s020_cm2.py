"""S020: flips, rewards and three levels of advantages by hand, dialogues with tools and judges, and training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from acted import plans_hold, played

import assay
from assay import catalogue
from assay.audit.environment import audit_environment
from assay.batch import Batch
from assay.credit.turns.checklist import ChecklistCredit
from assay.engines.base import Request
from assay.engines.keywords import Keywords
from assay.environments.base import EnvironmentFailure
from assay.environments.checklist.environment import ChecklistDialogue
from assay.environments.checklist.made import read_dialogues
from assay.environments.hosted.worlds import Worlds
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.method import Method
from assay.registry import build
from assay.types import Ask, Episode, Group, Task, Turn, Verdict
from assay.verify.rubric.checklist import Item, backfilled, earned, eligible, flips, read_checklist

A, B = Item("a", "A", 0.5), Item("b", "B", 0.5, ("A",))
ROWS = {1: ("011", "001"), 2: ("111", "000"), 3: ("000", "000"), 4: ("011", "011")}
"""Of the items A and B after each of three steps, in four trajectories."""


def marks(*items: str) -> list[list[bool]]:
    return [[c == "1" for c in column] for column in zip(*items, strict=True)]


def test_flips_by_hand() -> None:
    assert [earned((A, B), marks(*rows)) for rows in ROWS.values()] == [1.0, 0.5, 0.0, 0.5]
    assert flips((A, B), marks("011", "001")) == marks("010", "001")
    assert flips((A, B), marks("011", "011")) == marks("010", "000")  # A was not met before B's step
    assert flips((A, B), marks("1010", "0101")) == marks("1000", "0100")  # once, and A stays met
    assert eligible((A, B), marks("011", "001")) == marks("110", "001")
    assert backfilled((A, B), marks("011", "001")) == marks("110", "001")
    assert backfilled((A, B), marks("111", "001")) == marks("100", "011") and flips((), [[], []]) == [[], []]


def batch_of(rows: Sequence[Sequence[tuple[int, Sequence[str]]]]) -> Batch:
    """Episodes of a group, each of turns of the dialogue with marks; a step has one token, and one of the world's."""
    items = [{"id": i.id, "weight": i.weight, "after": list(i.after)} for i in (A, B)]
    episodes = []
    for dialogue in rows:
        steps = [(t, row) for t, text in dialogue for row in marks(*text)]
        turns = tuple(
            Turn(k, 2 * k, 2 * k + 1, info={"turn": t, "turns": 2, "items": items, "marks": row})
            for k, (t, row) in enumerate(steps)
        )
        n = 2 * len(steps)
        mask = np.arange(n) % 2 == 0
        none = np.zeros(n, dtype=np.float32)
        episodes.append(Episode(np.zeros(1, np.int64), np.ones(n, np.int64), mask, none, "", "eos", turns=turns))
    said = (Verdict.wrong(),) * len(rows)
    return Batch.from_groups([Group(Ask(Task("t", "?"), len(rows)), tuple(episodes), said)], torch.float64)


def advantages(credit: ChecklistCredit, batch: Batch) -> list[list[float]]:
    found = credit(batch)
    assert not found[~batch.mask].any()
    return [[round(float(x), 6) for x in row[m]] for row, m in zip(found, batch.mask, strict=True)]


def test_three_levels_by_hand() -> None:
    """Four trajectories of one turn of three steps, of a dialogue of two: the reward is (1, .5, 0, .5) / 2."""
    batch = batch_of([[(0, rows)] for rows in ROWS.values()])
    assert advantages(ChecklistCredit(least=0), batch) == [[x] * 3 for x in (0.25, 0, -0.25, 0)]
    assert advantages(ChecklistCredit("turn", least=0), batch) == [[x] * 3 for x in (0.5, 0, -0.5, 0)]
    # b_A = .75, b_B = .25: what is met later counts for the steps in which it could have been.
    steps = [[0.25, 0.25, 0.75], [0.25, -0.25, -0.25], [-0.75] * 3, [0.25, 0.25, 0]]
    assert advantages(ChecklistCredit("step", least=0), batch) == steps
    scaled = advantages(ChecklistCredit("turn", "std", 0), batch)
    assert [row[0] for row in scaled] == pytest.approx([0.5 / 0.125**0.5, 0, -0.5 / 0.125**0.5, 0], abs=1e-5)
    # Both items have a standard deviation of sqrt(3/16).
    assert advantages(ChecklistCredit("step", "std", 0), batch)[0][0] == pytest.approx(0.25 / (3 / 16) ** 0.5, abs=1e-5)
    alike = batch_of([[(0, ROWS[1])]] * 3)
    assert advantages(ChecklistCredit("turn", "std", 0), alike) == [[0.0] * 3] * 3


def test_what_trajectories_are_worth() -> None:
    """Turns add up; by turn, only those that reached it are compared. Weights .75 and .25."""
    batch = batch_of([[(0, ("1", "0")), (1, ("11", "01"))], [(0, ("1", "0")), (1, ("10", "00"))], [(0, ("0", "0"))]])
    assert advantages(ChecklistCredit(least=0), batch) == [
        pytest.approx([0.75 - 1.25 / 3] * 3, abs=1e-6),
        pytest.approx([0.5 - 1.25 / 3] * 3, abs=1e-6),
        pytest.approx([-1.25 / 3], abs=1e-6),
    ]
    third = 1 / 6
    assert advantages(ChecklistCredit("turn", least=0), batch) == [
        pytest.approx([third, 0.25, 0.25], abs=1e-6),
        pytest.approx([third, -0.25, -0.25], abs=1e-6),
        pytest.approx([-2 * third], abs=1e-6),
    ]


def test_few_and_failed() -> None:
    rows = [[(0, ROWS[k])] for k in (1, 2, 3, 4)]
    assert (
        ChecklistCredit().least == 4 and ChecklistCredit().scale == "none" and ChecklistCredit().level == "trajectory"
    )
    assert advantages(ChecklistCredit("turn"), batch_of(rows)) == [[0.0] * 3] * 4
    assert advantages(ChecklistCredit("turn", least=3), batch_of(rows))[0] == [0.5] * 3
    failed = batch_of([*rows, [(0, ROWS[1])]])
    failed.valid[4] = False
    assert advantages(ChecklistCredit("turn", least=3), failed)[:4] == [[x] * 3 for x in (0.5, 0, -0.5, 0)]
    assert advantages(ChecklistCredit("turn", least=3), failed)[4] == [0.0] * 3
    with pytest.raises(UsageError, match="least -1"):
        ChecklistCredit(least=-1)
    other = Episode(np.zeros(1, np.int64), np.ones(1, np.int64), np.ones(1, bool), None, "", "eos")
    with pytest.raises(UsageError, match="environment 'checklist'"):
        ChecklistCredit()(
            Batch.from_groups([Group(Ask(Task("t", "?"), 1), (other,), (Verdict.right(),))], torch.float64)
        )


def test_checklists_are_read() -> None:
    rows = [{"text": "one", "weight": 3}, {"text": "two", "after": [1], "strict": True, "check": {"says": "x"}}]
    one, two = read_checklist(rows)
    assert (one.id, one.weight, two.weight, two.after, two.strict, one.focus) == (
        "1",
        0.75,
        0.25,
        ("1",),
        True,
        "reply",
    )
    for bad, message in (
        ([], "one or more"),
        ([{"text": ""}], "with a text"),
        ([{"text": "a", "wait": 1}], "no key 'wait'"),
        ([{"text": "a", "weight": 0}], "above 0"),
        ([{"text": "a", "focus": "x"}], "focus 'reply'"),
        ([{"text": "a", "check": {"is": 1}}], "neither"),
        ([{"text": "a", "id": "x"}, {"text": "b", "id": "x"}], "same id"),
        ([{"text": "a", "after": ["2"]}], "which there is not"),
        ([{"text": "a", "after": ["2"]}, {"text": "b", "after": ["1"]}], "wait for each other"),
    ):
        with pytest.raises(UsageError, match=message):
            read_checklist(bad)


def test_plans_pass_and_the_audit_too() -> None:
    plans_hold(ChecklistDialogue, 12, 4)
    worlds = Worlds({"name": "checklist"}, 1)
    source = worlds.here().tasks()
    try:
        findings = {f.name: f for f in audit_environment(worlds, [source[i] for i in range(3)])}
    finally:
        worlds.close()
    assert all(f.passed and f.of for f in findings.values()) and findings["gold passes"].of == 3


def test_a_dialogue_ends_without_a_strict_item() -> None:
    world = ChecklistDialogue(turns=2, seed=5)
    task = world.tasks()[0]
    world.reset(task, 0)
    plan = list(world.gold())
    first = task.meta["plan"][0]
    assert played(ChecklistDialogue(turns=2, seed=5), task, [say("I do not know.")])[1].terminated
    early = played(ChecklistDialogue(turns=2, seed=5), task, [plan[0], plan[len(first) - 1]])
    # It was told where the parcel is without asking: strict and met, but before its time.
    assert not early[2].terminated and early[-1].score == pytest.approx(0.5 / len(task.meta["turns"][0]["items"]))
    assert early[2].info["turn"] == 0 and early[2].info["turns"] == 2
    assert early[1].info["marks"][0] and early[2].observation.messages[0]["content"] == task.meta["turns"][1]["user"]
    whole = played(world, task, plan)
    assert whole[-1].passed and whole[-1].parts == {"turn 1": 1.0, "turn 2": 1.0}
    half = played(ChecklistDialogue(turns=2, seed=5), task, [*plan[: len(first)], say("no idea")])[-1]
    assert half.score == 0.5 and half.passed is False and "1.00, 0.00" in half.feedback


TOOL = {"name": "find", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}
DIALOGUE: dict[str, Any] = {
    "turns": [
        {"user": "Find 3.", "items": [{"text": "finds it", "focus": "tools"}, {"text": "is kind", "after": [1]}]},
        {"user": "Thanks.", "items": [{"text": "is brief"}]},
    ],
    "tools": [TOOL],
    "recorded": [{"name": "find", "arguments": {"x": 3}, "output": "here"}],
}


class Judge(Keywords):
    """Says yes where the item's word has been said, and notes what it is asked."""

    def __init__(self, reply: str | None = None):
        super().__init__(())
        self.reply, self.asked = reply, list[Request]()

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        out = []
        for r in requests:
            turn, _, item = str(r.prompt).partition("This turn:")[2].partition("Criterion: ")
            words = {"finds": "tool: ", "is kind": "gladly", "is brief": "Bye"}
            met = next(w for k, w in words.items() if item.startswith(k)) in turn
            text = self.reply if self.reply is not None else "I think: yes" if met else "Not yet, no."
            t = self.encode(text)
            out.append([Episode(t[:0], t, t > 0, None, text, "error" if text == "!" else "eos")])
        return out


class Fails(Keywords):
    """An engine that is away."""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        none = np.zeros(0, np.int64)
        return [[Episode(none, none, none > 0, None, "", "error")] for _ in requests]


def test_a_judge_marks_items() -> None:
    judge = Judge()
    world = ChecklistDialogue([DIALOGUE], judge)
    task = world.tasks()[0]
    seen = played(world, task, [call("find", x=3), say("gladly, here"), say("Bye")])
    assert [s.info["marks"] for s in seen[1:4]] == [[True, False], [True, True], [True]] and seen[-1].score == 1.0
    assert {(r.sampling.temperature, r.sampling.top_p) for r in judge.asked} == {(0.6, 0.8)}
    before, turn = str(judge.asked[-1].prompt).partition("Earlier turns:\n")[2].split("\n\nThis turn:\n")
    assert before == "user: Find 3.\nassistant: " + call("find", x=3).text + "\ntool: here\nassistant: gladly, here"
    assert turn.startswith("user: Thanks.\nassistant: Bye")
    # A call that fails meets nothing about tools, whatever the judge says.
    wrong = played(ChecklistDialogue([DIALOGUE], Judge()), task, [call("find", x=4)])
    assert wrong[1].info["marks"] == [False, False] and not wrong[1].valid
    for reply in ("!", "perhaps"):
        world = ChecklistDialogue([DIALOGUE], Judge(reply))
        world.reset(task, 0)
        with pytest.raises(EnvironmentFailure, match="judge"):
            world.step(say("gladly"))
    with pytest.raises(UsageError, match="give it a judge"):
        ChecklistDialogue([DIALOGUE]).reset(task, 0)


def test_tools_are_recorded_or_simulated() -> None:
    task = read_dialogues([DIALOGUE])[0]
    simulator = Keywords([(r'find\({"x": 3}\) -> here(.|\n)*Call:\nfind\({"x": 4}\)', "there")], "?")
    seen = played(ChecklistDialogue([DIALOGUE], Judge(), simulator), task, [call("find", x=3), call("find", x=4)])
    assert [s.observation.messages[0]["content"] for s in seen[1:3]] == ["here", "there"] and seen[2].valid
    plain = played(ChecklistDialogue([DIALOGUE], Judge()), task, [call("find", x=4)])
    assert "find knows nothing of" in plain[1].observation.messages[0]["content"]
    world = ChecklistDialogue([DIALOGUE], Judge(), Fails(()))
    world.reset(task, 0)
    with pytest.raises(EnvironmentFailure, match="simulator"):
        world.step(call("find", x=5))


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    file = tmp_path / "dialogues.jsonl"
    for row, message in (({"turns": []}, "has turns"), ({"turns": [{"user": "a"}]}, "turn 1"), (None, "no dialogues")):
        file.write_text("" if row is None else json.dumps(row))
        with pytest.raises(UsageError, match=message):
            ChecklistDialogue(file)
    file.write_text(json.dumps(DIALOGUE))
    assert build("environment", {"name": "checklist", "dialogues": str(file)}).tasks().size == 1
    with pytest.raises(UsageError, match="turns 0"):
        ChecklistDialogue(turns=0)
    world = ChecklistDialogue([DIALOGUE], Judge())
    world.reset(world.tasks()[0], 0)
    with pytest.raises(UsageError, match="no plan"):
        world.gold()
    made = catalogue.make("S020")
    assert isinstance(made, Method) and made.rollout == {"name": "multi_turn", "environment": "checklist", "turns": 30}
    assert made.credit == ChecklistCredit() and made.objective.kl_weight == 1e-4  # type: ignore[union-attr]
    assert catalogue.make("S020", level="step", normalise=True).credit == ChecklistCredit("step", "std")


def test_it_trains(tmp_path: Path) -> None:
    world = {"name": "checklist", "turns": 1}
    alphabet = "".join(map(chr, range(32, 127))) + "\n"
    assay.train(
        {
            "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 2048, "alphabet": alphabet}},
            "tasks": {"source": {"name": "environment", "environment": world}, "eval_size": 1},
            "method": {"name": "S020", "options": {"environment": world, "turns": 2, "level": "step", "least": 0}},
            "rollout": {"prompts": 1, "group": 2, "max_tokens": 4},
            "train": {"steps": 1},
            "evaluate": {"samples": 1},
            "run": {"dir": str(tmp_path / "run"), "report": False, "tensorboard": False},
        },
        quiet=True,
    )
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert any(line["stage"] == "rl" for line in lines)
