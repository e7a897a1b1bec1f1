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
from tasks.making.told import Told

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
from assay.tasks.files.dialogues import RecordedDialogues, plan_of, told
from assay.tasks.making.checklists.dialogues import read_items
from assay.tasks.making.maker import Maker, Model
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.making.task_file import write_tasks
from assay.types import Ask, Episode, Group, Task, Turn, Verdict
from assay.verify.rubric.checklist import Item, backfilled, earned, eligible, flips, read_checklist

SCHEMA = {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]}
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


Rows = Sequence[Sequence[tuple[int, Sequence[str]]]]


def batch_of(*groups: Rows) -> Batch:
    """Episodes of groups, each of turns of the dialogue with marks; a step has one token, and one of the world's."""
    return Batch.from_groups([group_of(rows) for rows in groups], torch.float64)


def group_of(rows: Rows) -> Group:
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
    return Group(Ask(Task("t", "?"), len(rows)), tuple(episodes), said)


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


def test_groups_are_compared_within_themselves() -> None:
    """Rewards (.5, 0) and (.5, .25)."""
    both = batch_of(*([[(0, ROWS[k])] for k in of] for of in ((1, 3), (1, 2))))
    assert advantages(ChecklistCredit(least=0), both) == [[x] * 3 for x in (0.25, -0.25, 0.125, -0.125)]


def test_few_and_failed() -> None:
    rows = [[(0, ROWS[k])] for k in (1, 2, 3, 4)]
    assert (
        ChecklistCredit().least == 4 and ChecklistCredit().scale == "none" and ChecklistCredit().level == "trajectory"
    )
    assert advantages(ChecklistCredit("turn"), batch_of(rows)) == [[0.0] * 3] * 4
    assert advantages(ChecklistCredit("turn", least=3), batch_of(rows))[0] == [0.5] * 3
    failed = batch_of([[(0, ROWS[1])], *rows])
    failed.valid[0] = False
    found = advantages(ChecklistCredit("turn", least=3), failed)
    assert found == [[0.0] * 3, *([x] * 3 for x in (0.5, 0, -0.5, 0))]
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
        ([{"text": "a", "failures": "b"}], "failures that are no list"),
        ([{"text": "a", "reference": [1]}], "reference that are no list"),
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


def test_a_judge_is_told_of_failures_and_evidence() -> None:
    """The authors' judge is shown question, focus, failure examples and the snippets of the evidence."""
    rich = {"text": "is kind", "failures": ["It is curt.", "It is rude."], "reference": ["gladly"], "focus": "tools"}
    judge = Judge()
    world = ChecklistDialogue(
        [{**DIALOGUE, "turns": [{"user": "Find 3.", "items": [rich, {"text": "is brief"}]}]}], judge
    )
    world.reset(world.tasks()[0], 0)
    world.step(say("gladly"))
    one, two = (str(r.prompt).partition("Criterion: ")[2].partition("\n\nEnd with")[0] for r in judge.asked)
    assert one == (
        "is kind\nIt is about calls of tools and what they return, and not met where there is none of that.\n"
        "It is not met by:\n- It is curt.\n- It is rude.\nOn record it was met by:\n- gladly"
    )
    assert two == "is brief\nIt is about what the assistant says or thinks, and not met where there is none of that."


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


def asked(name: str, output: str, key: str = "x") -> list[dict[str, Any]]:
    """An assistant's call as chat servers have it, and what the tool answers."""
    function = {"name": name, "arguments": json.dumps({"number": key})}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": f"{name} {key}", "function": function}]},
        {"role": "tool", "tool_call_id": f"{name} {key}", "content": output},
    ]


ORDER = {
    "id": "d",
    "messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "Where is order 17?"},
        *asked("order", "order 17: sent,   parcel P5", "17"),
        {"role": "assistant", "content": "It is under way."},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": "Bye."},
    ],
    "tools": [{"type": "function", "function": {"name": "order", "description": "Looks up.", "parameters": SCHEMA}}],
}


def recorded(tmp_path: Path, *rows: Any) -> RecordedDialogues:
    (tmp_path / "recorded.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return RecordedDialogues(tmp_path / "recorded.jsonl")


def test_dialogues_on_record(tmp_path: Path) -> None:
    """Turns with their calls and replies; answers of tools by their calls' ids, or in order."""
    call = {"name": "order", "arguments": {"number": "17"}, "output": "order 17: sent,   parcel P5"}
    made = recorded(tmp_path, ORDER)
    [task] = [made[i] for i in range(made.size)]
    assert (task.id, task.prompt) == ("d", "Where is order 17?")
    assert task.meta["turns"] == [
        {"user": "Where is order 17?", "steps": [{"calls": [call]}, {"say": "It is under way."}]},
        {"user": "Thanks.", "steps": [{"say": "Bye."}]},
    ]
    assert task.meta["tools"] == [{"name": "order", "description": "Looks up.", "parameters": SCHEMA}]
    assert plan_of(task.meta["turns"]) == [
        [{"name": "order", "arguments": {"number": "17"}}, {"say": "It is under way."}],
        [{"say": "Bye."}],
    ]
    assert told(task.meta["turns"][0]).splitlines()[1:3] == [
        'assistant calls order({"number": "17"})',
        "tool: order 17: sent,   parcel P5",
    ]
    two = [{"id": k, "function": {"name": "order", "arguments": {"number": k}}} for k in ("1", "2")]
    said = [{"role": "tool", "tool_call_id": "2", "content": "two"}, {"role": "tool", "content": "one"}]
    both = [
        ORDER["messages"][1],
        {"role": "assistant", "tool_calls": two},
        *said,
        {"role": "assistant", "content": "so"},
    ]
    [step, _] = recorded(tmp_path, {"messages": both, "tools": [{"name": "order"}]})[0].meta["turns"][0]["steps"]
    assert [c["output"] for c in step["calls"]] == ["one", "two"]


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "it ends without a reply"),
        ([{"role": "user", "content": "a"}], "it ends without a reply"),
        ([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], "the user speaks twice"),
        ([{"role": "assistant", "content": "a"}], "the first to speak is the user"),
        ([{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}], "was not called"),
        (
            [{"role": "user", "content": "a"}, asked("f", "")[0], {"role": "assistant", "content": "b"}],
            "f has no answer",
        ),
        ([{"role": "user", "content": "a"}, {"role": "cat", "content": "b"}], "'cat' is no role"),
        ([{"content": "a"}], "lacks 'role'"),
    ],
)
def test_what_is_no_dialogue(tmp_path: Path, messages: Any, why: str) -> None:
    with pytest.raises(UsageError, match=rf"{why}.*; a dialogue has messages"):
        recorded(tmp_path, {"messages": messages})
    with pytest.raises(UsageError, match="is no record"):
        recorded(tmp_path, 7)
    with pytest.raises(UsageError, match="has no rows"):
        recorded(tmp_path)


def written(**changes: Any) -> list[dict[str, Any]]:
    """A checklist for the recorded dialogue, its second item changed."""
    found = {
        "id": "found",
        "text": "looks up order 17",
        "evidence": [{"turn": 1, "snippet": "order 17:  sent"}],
        "focus": "tools",
        "weight": 0.25,
    }
    tells = {
        "id": "tells",
        "text": "says where it is",
        "evidence": [{"turn": 1, "snippet": "It is under way."}],
        "focus": "reply",
        "after": ["found"],
        "strict": True,
        "weight": 0.75,
        "failures": ["It is said to be lost."],
        **changes,
    }
    bye = {
        "id": "bye",
        "text": "says good bye",
        "evidence": [{"turn": 2, "snippet": "Bye."}, {"turn": 1, "snippet": "17"}],
    }
    return [{"turn": 2, "items": [bye]}, {"turn": 1, "items": [found, tells]}]


def test_items_rest_on_evidence(tmp_path: Path) -> None:
    turns = recorded(tmp_path, ORDER)[0].meta["turns"]
    [first, second] = read_items(f"So:\n```json\n{json.dumps(written())}\n```", turns)
    assert [row["id"] for row in (*first, *second)] == ["found", "tells", "bye"]
    assert first[1] == {
        "text": "says where it is",
        "focus": "reply",
        "weight": 0.75,
        "id": "tells",
        "after": ["found"],
        "strict": True,
        "failures": ["It is said to be lost."],
        "reference": ["It is under way."],
    }
    assert second[0]["reference"] == ["Bye.", "17"] and "failures" not in second[0]
    assert [i.weight for i in read_checklist(first)] == [0.25, 0.75] and second[0]["strict"] is False
    for changes, why in (
        ({"evidence": [{"turn": 1, "snippet": "It is lost."}]}, "'It is lost.' does not stand in turn 1"),
        ({"evidence": [{"turn": 2, "snippet": "Bye."}]}, "evidence is of a turn from 1 to 1"),
        ({"evidence": [{"turn": 0, "snippet": "17"}]}, "evidence is of a turn from 1 to 1"),
        ({"evidence": [{"turn": True, "snippet": "17"}]}, "evidence is of a turn"),
        ({"evidence": [7]}, "evidence is of a turn"),
        ({"evidence": [{"turn": 1, "snippet": " "}]}, "does not stand"),
        ({"evidence": [{"turn": 1, "snippet": 17}]}, "does not stand"),
        ({"evidence": []}, "has no id or no evidence"),
        ({"id": ""}, "has no id or no evidence"),
        ({"id": "found"}, "two items have the same id"),
        ({"after": ["tells"]}, "wait for each other"),
        ({"after": ["lost"]}, "is after 'lost', which there is not"),
        ({"after": "found"}, "after is a list of ids"),
        ({"weight": -1}, "weight -1"),
        ({"text": ""}, "is a table with a text"),
        ({"focus": "thoughts"}, "is about 'thoughts'"),
    ):
        with pytest.raises(UsageError, match=why):
            read_items(json.dumps(written(**changes)), turns)
    rows = written()
    rows[1]["items"][0]["focus"] = "reply"
    with pytest.raises(UsageError, match="item 'tells' is after 'found', which is not about tools"):
        read_items(json.dumps(rows), turns)
    for reply, why in (
        ("none", "no JSON list"),
        ("[" * 9000 + "]", "no JSON list"),
        ("][", "no JSON list"),
        (json.dumps(written()[:1]), "turn 1 has no items"),
        (json.dumps([*written(), written()[0]]), "for the turns 1 to 2, each once"),
        (json.dumps([{"turn": 3, "items": []}]), "for the turns 1 to 2, each once"),
        ("[7]", "for the turns 1 to 2, each once"),
        (json.dumps([{"turn": 1, "items": []}]), "turn 1 has no items"),
        (json.dumps([{"turn": 1, "items": [7]}]), "turn 1 has no items"),
    ):
        with pytest.raises(UsageError, match=why):
            read_items(reply, turns)


def test_a_model_writes_checklists(tmp_path: Path) -> None:
    """Cut off, then with evidence that is not there, then well: the reason is told, and there are three tries."""
    task = recorded(tmp_path, ORDER)[0]
    wrong = json.dumps(written(evidence=[{"turn": 1, "snippet": "It is lost."}]))

    def answer(prompt: str, j: int) -> str:
        return json.dumps(written()) if "It is lost." in prompt else wrong if "cut off" in prompt else f"{wrong}..."

    by = Told(answer)
    [made] = Maker(read_pipeline("S020", {}), {"writer": Model("w", by)}).make([task]).tasks
    assert [len(turn["items"]) for turn in made.meta["turns"]] == [2, 1] and len(by.asked) == 3
    first, second, third = (str(r.prompt) for r in by.asked)
    assert "Turn 2\nuser: Thanks." in first and '{"name": "order"' in first and second.startswith(first)
    assert "'It is lost.' does not stand in turn 1. Write the whole list again." in third and "cut off" not in third
    assert made.meta["recorded"][0]["output"] == "order 17: sent,   parcel P5" and made.meta["plan"][1] == [
        {"say": "Bye."}
    ]
    found = Maker(read_pipeline("S020", {"tries": 2}), {"writer": Model("w", Told(answer))}).make([task])
    assert found.counts["checklists"].dropped == {"no checklist could be read": 1}
    with pytest.raises(UsageError, match="tries 0"):
        read_pipeline("S020", {"tries": 0})
    with pytest.raises(UsageError, match=r"task t is none: --seeds"):
        read_pipeline("S020", {}).check([Task("t", "?")])


def test_written_checklists_are_played(tmp_path: Path) -> None:
    """What the pipeline writes to a file is a world: its plan meets the items, as a judge marks them."""
    asks = [{"role": "user", "content": f"Where is order 17? {k}"} for k in range(8)]
    rows = [{**ORDER, "id": f"d{k}", "messages": [asks[k], *ORDER["messages"][2:]]} for k in range(8)]
    by = Told(lambda prompt, j: json.dumps(written()))
    made = Maker(read_pipeline("S020", {}), {"writer": Model("w", by)}).make(recorded(tmp_path, *rows).tasks).tasks
    write_tasks(tmp_path / "checked.jsonl", made)
    judge = Keywords(
        [
            (r"(?s)This turn:.*tool: order 17.*Criterion: looks", "yes"),
            (r"(?s)This turn:.*under way.*Criterion: says where", "yes"),
            (r"(?s)This turn:.*Bye.*Criterion: says good", "yes"),
        ],
        "no",
    )
    world = ChecklistDialogue(tmp_path / "checked.jsonl", judge)
    given = world.tasks()[0]
    assert given.id == "d0" and world.tasks().size == 8
    seen = played(world, given, [call("order", number="17"), say("It is under way."), say("Bye.")])
    assert [s.info["marks"] for s in seen[1:4]] == [[True, False], [True, True], [True]] and seen[-1].score == 1.0
    assert world.tasks()[0].meta["plan"] == made[0].meta["plan"]
    # And a run learns in it.
    judged = {"name": "keywords", "replies": [["Criterion: looks", "no"]], "otherwise": "yes"}
    environment = {"name": "checklist", "dialogues": str(tmp_path / "checked.jsonl"), "judge": judged}
    trained(tmp_path, environment)


def trained(tmp_path: Path, world: dict[str, Any]) -> None:
    """A step of a nano model on the dialogues of a world."""
    alphabet = "".join(map(chr, range(32, 127))) + "\n"
    assay.train(
        {
            "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 2048, "alphabet": alphabet}},
            "tasks": {"source": {"name": "environment", "environment": world}, "eval_size": 1, "eval_share": 0.4},
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


def test_it_trains(tmp_path: Path) -> None:
    trained(tmp_path, {"name": "checklist", "turns": 1})
