"""S174, Yunjue Agent: tools as programs, the library and its mergers, the four roles, a stream of tasks."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scripted import Scripted

from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.inference.tools.code import BadTool, MadeTool, declared, run
from assay.inference.tools.evolution import ToolEvolution
from assay.inference.tools.library import Library, Use, Work, answers, called, clusters
from assay.inference.tools.roles import grouped, planned, written
from assay.lab.settings.open_ended.toolmaking import Maker, Setting, question
from assay.papers.agents.s174_yunjue import yunjue
from assay.sandbox import SandboxUnavailable, sandbox
from assay.types import Task

try:
    sandbox().check()
    walls = ""
except SandboxUnavailable as error:
    walls = str(error)
pytestmark = pytest.mark.skipif(bool(walls), reason=walls or "programs can be run in isolation")

DOUBLE = 'def run(x: int) -> int:\n    """Twice x."""\n    return 2 * x\n'
DOUBLE_LONG = 'def run(x: int) -> int:\n    """Twice x, in another way."""\n    return x + x\n'
HALF = "def run(x: int) -> int:\n    return x // 2\n"


def never(tools):
    raise AssertionError("nobody is asked to merge")


def reply(source, example="{}"):
    return f"```python\n{source}```\nEXAMPLE {example}"


def test_what_a_tool_declares_is_read_off_it():
    source = 'def run(text: str, columns: list[int], n: int = 3, *, strict: bool = False) -> dict:\n    "Say.  Two."\n'
    tool = declared("t", source)
    assert (tool.name, tool.description) == ("t", "Say. Two.")
    assert tool.parameters["properties"] == {
        "text": {"type": "string"},
        "columns": {"type": "array", "items": {"type": "integer"}},
        "n": {"type": "integer"},
        "strict": {"type": "boolean"},
    }
    assert tool.parameters["required"] == ["text", "columns"]
    assert tool.parameters["additionalProperties"] is False


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def run(", "no Python"),
        ("def go(): pass", "defines 0"),
        ("def run(x): pass", "x of run needs a type"),
        ("def run(x: bytes): pass", "x of run needs a type"),
        ("def run(*x: int): pass", "must have names"),
        ("def run(): pass\ndef run(): pass", "defines 2"),
    ],
)
def test_a_text_that_is_no_tool_says_why(source, why):
    with pytest.raises(BadTool, match=why):
        declared("t", source)


def test_calls_run_or_say_why_not():
    source = "def run(x: int) -> float:\n    return {0: 1 / 3, 1: float('nan'), 2: (1, 2)}[x]\n"
    ran = run(source, [{"x": 0}, {"x": 1}, {"x": 2}, {"x": 3}])
    assert [r.ok for r in ran] == [True, False, False, False]
    assert ran[0].value == 1 / 3
    assert "JSON" in ran[1].error
    assert "KeyError" in ran[3].error
    ended = run("import os\ndef run(x: int):\n    os._exit(x)\n", [{"x": 1}, {"x": 2}])
    assert [r.ok for r in ended] == [False, False]
    assert run(DOUBLE, []) == []
    assert called(MadeTool("d", DOUBLE), {"y": 1}).error == "x is missing"


def test_the_loss_by_hand():
    library = Library()
    told = []
    for made, calls in ((4, 5), (2, 8), (1, 10), (0, 12)):
        tools = [MadeTool(f"tool_{chr(97 + len(library.tools) + k)}", f"{DOUBLE}#{k}{calls}\n") for k in range(made)]
        library.absorb([Work(tools, [], calls)], never)
        told.append(round(library.egl, 4))
    assert told == [0.8, 0.4615, 0.3043, 0.2]
    assert Library().egl == 0


def test_names_that_differ_in_a_number_or_order_are_a_cluster():
    found = clusters(["sum_column", "column_sum_5_2", "sum_column3", "sum", "count_words", "t1", "x2y"])
    assert [*found.values()] == [
        ["sum_column", "column_sum_5_2", "sum_column3"],
        ["sum"],
        ["count_words"],
        ["t1"],
        ["x2y"],
    ]


def test_clusters_become_one_tool_or_stay():
    library = Library()
    work = [
        Work([MadeTool("double", DOUBLE_LONG)], [Use("double", {"x": 2}, 4)], 1),
        Work([MadeTool("double_2", DOUBLE)], [Use("double_2", {"x": 3}, 6)], 1),
    ]
    library.absorb(work, never)
    assert library.tools == {"double": MadeTool("double", DOUBLE)}  # the shortest
    assert library.uses == [Use("double", {"x": 2}, 4), Use("double", {"x": 3}, 6)]
    asked = []

    def merge(tools):
        asked.append([t.name for t in tools])
        both = "def run(x: int) -> int:\n    return 2 * x if x < 5 else x // 2\n"
        return MadeTool("any", both) if len(asked) == 2 else MadeTool("any", HALF)

    # A tool of the same name that does another thing: no source answers all calls; the second merger does.
    library.absorb([Work([MadeTool("double", HALF)], [Use("double", {"x": 8}, 4)], 1)], merge)
    assert asked == [["double", "double_2"]] * 2
    assert list(library.tools) == ["double"]
    assert [answers(library.tools["double"], library.uses)] == [True]
    # Nothing answers x = 4 by 8 and by 2: all members stay.
    library.absorb([Work([MadeTool("double", HALF)], [Use("double", {"x": 4}, 2)], 1)], lambda tools: None)
    assert sorted(library.tools) == ["double", "double_2"]
    assert Use("double_2", {"x": 4}, 2) in library.uses


def test_what_does_the_same_is_told_by_a_model():
    """Names that share no word: they are one tool if the model says so, and stay two if it does not or cannot say."""
    work = [
        Work([MadeTool("double", DOUBLE)], [Use("double", {"x": 2}, 4)], 1),
        Work(
            [MadeTool("times_two", "def run(n: int) -> int:\n    return 2 * n\n")], [Use("times_two", {"n": 3}, 6)], 1
        ),
        Work([MadeTool("half", HALF)], [Use("half", {"x": 8}, 4)], 1),
    ]
    both = "def run(x: int = 0, n: int = 0) -> int:\n    return 2 * (x or n)\n"
    asked = []

    def merge(tools):
        asked.append([t.name for t in tools])
        return MadeTool("any", both)

    library = Library()
    library.absorb(work, merge, 3, lambda tools: {"twice": ["double", "times_two"]})
    assert library.tools == {"half": MadeTool("half", HALF), "twice": MadeTool("twice", both)}
    assert library.uses == [Use("twice", {"x": 2}, 4), Use("twice", {"n": 3}, 6), Use("half", {"x": 8}, 4)]
    assert asked == [["double", "times_two"]], "of names that are not alike no one stands for the others"
    for said in ({}, None):
        library = Library()
        library.absorb(work, never, 3, lambda tools, said=said: said)
        assert [*library.tools] == ["double", "times_two", "half"]
    # Nobody is asked about one tool, or where none is new.
    for tools in ([], [MadeTool("half", HALF)]):
        library.absorb([Work(tools, [], 1)], never, 3, never)
    Library().absorb([Work([MadeTool("half", HALF)], [], 1)], never, 3, never)
    # What it told apart stays so, whatever the names are.
    library = Library()
    alike = [Work([MadeTool("double", DOUBLE), MadeTool("double_2", DOUBLE_LONG)], [], 0)]
    library.absorb(alike, never, 3, lambda tools: {})
    library.absorb([Work([], [], 1)], never, 3, never)
    assert [*library.tools] == ["double", "double_2"]
    # What says nothing leaves it to the names, and a name that is another tool's gets a number.
    library = Library()
    again = Work([MadeTool("double_2", DOUBLE_LONG)], [], 0)
    library.absorb([*work, again], never, 3, lambda tools: None)
    assert [*library.tools] == ["times_two", "half", "double"]
    library = Library()
    library.absorb([*work, again], merge, 3, lambda tools: {"half": ["double", "double_2"]})
    assert library.tools["half_2"] == MadeTool("half_2", DOUBLE) and "half" in library.tools


def test_groups_are_read():
    names = ["a_b", "c", "d2"]
    assert grouped("SAME one: a_b, `c`\n", names) == {"one": ["a_b", "c"]}
    assert grouped("so:\nNONE.", names) == {} and grouped("they all differ", names) is None
    assert grouped("SAME x: a_b, c\nSAME y: c, d2", names) is None, "a tool in two groups"
    assert grouped("SAME x: a_b, c\nSAME x: d2", names) is None, "two groups of one name"
    assert grouped("SAME x: a_b, e", names) is None, "a tool there is not"


def test_equal_names_of_one_batch_are_told_apart():
    library = Library()
    work = [
        Work([MadeTool("f", HALF)], [Use("f", {"x": 8}, 4)], 1),
        Work([MadeTool("f", DOUBLE)], [Use("f", {"x": 8}, 16)], 1),
        Work([MadeTool("f", HALF)], [Use("f", {"x": 6}, 3)], 1),
    ]
    library.absorb(work, lambda tools: None)
    assert library.tools == {"f": MadeTool("f", HALF), "f_2": MadeTool("f_2", DOUBLE)}
    assert library.uses == [Use("f", {"x": 8}, 4), Use("f_2", {"x": 8}, 16), Use("f", {"x": 6}, 3)]
    assert (library.made, library.called) == (3, 3)


def test_absorbing_is_idempotent():
    strategy, rng = ToolEvolution(batch=4, sampling=Sampling(512)), np.random.default_rng(5)
    maker = Maker(np.random.default_rng(6), 0.3)
    for at in range(0, 24, 4):
        strategy([question(at + k, rng, 5) for k in range(4)], maker, 1, rng)
        for use in strategy.library.uses:
            assert answers(strategy.library.tools[use.tool], [use])
    before = (dict(strategy.library.tools), list(strategy.library.uses))
    strategy.library.absorb([Work([*before[0].values()], before[1])], never)
    assert (strategy.library.tools, strategy.library.uses) == before


def test_a_stream_of_five_primitives_makes_five_tools():
    strategy, rng = ToolEvolution(batch=8, sampling=Sampling(512)), np.random.default_rng(1)
    maker = Maker(np.random.default_rng(2), 0.2)
    tasks = [question(i, rng, 5) for i in range(208)]
    answers = strategy(tasks, maker, 1, rng)
    assert [a.text for a in answers] == [str(t.reference) for t in tasks]
    assert len(strategy.library.tools) == 5
    assert strategy.library.called >= 200
    assert strategy.library.egl < 0.1
    assert answers[-1].meta["tools"] == 5
    assert answers[-1].meta["egl"] == strategy.library.egl


def test_a_new_domain_raises_the_loss():
    found = Setting(tasks=64, batch=8, domain=2).run({"keep": True}, 3, None)
    forgets = Setting(tasks=64, batch=8, domain=2).run({"keep": False}, 3, None)
    assert found["tools"] == 5
    assert found["right"] == forgets["right"] == 1
    assert found["generality"] > forgets["generality"] + 0.5
    with pytest.raises(UsageError, match="out of range"):
        Setting(tasks=1)


def play(responses, task="What is twice 4?", **options):
    engine = Scripted([(text, "eos") for text in responses])
    strategy = yunjue(sampling=Sampling(64), **options)
    [answer] = strategy([Task("t", task, "8")], engine, 1, np.random.default_rng(0))
    return strategy, engine, answer


CALL = '<tool_call>{"name": "double", "arguments": {"x": %d}}</tool_call>'


def test_four_roles_answer_a_task():
    strategy, engine, answer = play(
        ["NEED double: twice a number", reply(DOUBLE, '{"x": 1}'), CALL % 4, "DONE", "It is 8."]
    )
    assert answer.text == "It is 8."
    manager, developer, executor, again, integrator = [r.prompt for r in engine.asked]
    assert "Tools there are:\nnone" in manager
    assert "Write a tool `double` in Python: twice a number" in developer
    assert 'double: Twice x. {"x": {"type": "integer"}}' in executor
    assert "double({'x': 4}) = 8" in again
    assert "double({'x': 4}) = 8" in integrator
    assert strategy.library.uses == [Use("double", {"x": 4}, 8)]
    assert answer.meta == {"written": 1, "egl": 1.0, "tools": 1}
    assert answer.tokens == sum(len(e.tokens) + len(e.prompt) for e in answer.episodes) + len(developer) + len(
        reply(DOUBLE, '{"x": 1}')
    )


def test_a_tool_is_mended_on_what_it_failed_on():
    fragile = "def run(x: int) -> int:\n    return 16 // (x - 4) * 0 + 2 * x\n"
    strategy, engine, answer = play(
        [
            "NEED double: twice",
            "no code",
            reply(fragile, '{"x": 1}'),
            CALL % 3 + CALL % 4,
            reply(DOUBLE, '{"x": 1}'),
            "DONE",
            "8",
        ],
        repairs=2,
    )
    asked = [r.prompt for r in engine.asked]
    assert "there is no block of code" in asked[2]
    assert "{'x': 4}: ZeroDivisionError" in asked[4]
    assert fragile in asked[4]
    assert [u.arguments for u in strategy.library.uses] == [{"x": 3}, {"x": 4}]
    assert answer.meta["written"] == 1
    assert answer.text == "8"


def test_a_mended_tool_has_to_accept_what_it_accepted():
    picky = "def run(x: int) -> int:\n    return {4: 8}[x]\n"
    fragile = "def run(x: int) -> int:\n    return {3: 6}[x]\n"
    _, engine, _ = play(
        [
            "NEED double: twice",
            reply(fragile, '{"x": 3}'),
            CALL % 3 + CALL % 4,
            reply(picky, '{"x": 4}'),
            reply(DOUBLE, '{"x": 4}'),
            "DONE",
            "8",
        ],
    )
    assert "{'x': 3}: KeyError" in engine.asked[4].prompt


def test_a_tool_that_cannot_be_made_is_not_there():
    strategy, engine, answer = play(["NEED double: twice", "no", "no", "no", "DONE", "I cannot."])
    assert strategy.library.tools == {}
    assert "the tool double could not be made" in engine.asked[4].prompt
    assert answer.text == "I cannot."


def test_the_executor_asks_for_a_tool():
    _, engine, answer = play(
        ["I think of none.", "NEED double: twice", reply(DOUBLE, '{"x": 1}'), CALL % 4, "DONE", "8"]
    )
    assert answer.text == "8"
    assert "double: Twice x." in engine.asked[3].prompt


def test_calls_that_cannot_be_made_are_told():
    _, engine, _ = play(["none", '<tool_call>{"name": "none"}</tool_call>', "DONE", "8"])
    assert "error: " in engine.asked[2].prompt
    bad = '<tool_call>{"name": "double", "arguments": {"x": "four"}}</tool_call>'
    _, engine, _ = play(["NEED double: twice", reply(DOUBLE, '{"x": 1}'), bad, "DONE", "8"])
    assert "error: double: x: 'four' is no integer" in engine.asked[3].prompt
    strategy, _, _ = play(["NEED double: twice", reply(DOUBLE, '{"x": 1}'), bad + CALL % 4, "DONE", "8"])
    assert strategy.library.uses == [Use("double", {"x": 4}, 8)], "the others of the turn are made"


def test_a_batch_begins_with_the_same_library():
    need, made = "NEED double: twice", reply(DOUBLE, '{"x": 1}')
    engine = Scripted([(t, "eos") for t in [need, need, made, made, CALL % 4, CALL % 5, "DONE", "DONE", "8", "10"]])
    strategy = yunjue(batch=2, sampling=Sampling(64))
    tasks = [Task("a", "Twice 4?", "8"), Task("b", "Twice 5?", "10")]
    answers = strategy(tasks, engine, 1, np.random.default_rng(0))
    assert [a.text for a in answers] == ["8", "10"]
    assert [a.meta["written"] for a in answers] == [1, 1]
    assert len(strategy.library.tools) == 1
    assert strategy.library.egl == 1


def test_a_library_goes_on_from_its_file(tmp_path):
    file = tmp_path / "tools.json"
    strategy, _, _ = play(["NEED double: twice", reply(DOUBLE, '{"x": 1}'), CALL % 4, "DONE", "8"], library=file)
    again, engine, answer = play(["USE double", CALL % 6, "DONE", "12"], library=str(file))
    assert "double: Twice x." in engine.asked[0].prompt
    assert answer.text == "12"
    assert again.library.egl == 0.5
    assert again.library.tools == strategy.library.tools
    file.write_text(json.dumps({"tools": 3}))
    with pytest.raises(UsageError, match="holds no library of tools"):
        yunjue(library=file)
    with pytest.raises(UsageError, match="batch 0"):
        yunjue(batch=0)
    for bad in ({"turns": 0}, {"repairs": -1}, {"merges": -1}):
        with pytest.raises(UsageError, match="tool_evolution"):
            yunjue(**bad)
    least = yunjue(batch=1, turns=1, repairs=0, merges=0)
    assert (least.batch, least.turns, least.repairs, least.merges) == (1, 1, 0, 0)
    for usual in (yunjue(), ToolEvolution()):
        assert (usual.batch, usual.turns, usual.repairs, usual.merges) == (16, 6, 2, 3)


def test_a_budget_of_tokens_leaves_enough_for_the_answer():
    engine = Scripted([("8", "eos")])
    strategy = yunjue(sampling=Sampling(64))
    [answer] = strategy([Task("t", "Twice 4?", "8")], engine, "40t", np.random.default_rng(0))
    assert answer.text == "8"
    assert [r.prompt for r in engine.asked] == ["Twice 4?"]  # nothing else was begun
    assert engine.asked[0].sampling.max_tokens == 40


def asked_under(tokens, *tasks, said):
    """What is asked with so many tokens for each task, 64 of which a reply may take."""
    engine = Scripted([(text, "eos") for text in said])
    made = [Task(f"t{i}", question, "8") for i, question in enumerate(tasks)]
    answers = yunjue(sampling=Sampling(64))(made, engine, f"{tokens}t", np.random.default_rng(0))
    return [r.prompt for r in engine.asked], [a.text for a in answers]


def test_a_role_is_begun_where_its_reply_and_the_answer_fit():
    manager, executor, _ = [r.prompt for r in play(["none", "DONE", "8"], "Twice 4?")[1].asked]
    enough = len(manager) + 64 + 64
    asked, _ = asked_under(enough - 1, "Twice 4?", said=["DONE", "8"])
    assert asked == [executor, "Twice 4?"], "whose prompt is shorter than the manager's"
    # After a plan of 56 tokens 72 are left, for a prompt of 8 and an answer of 64.
    asked, answers = asked_under(enough, "Twice 4?", said=["x" * 56, "8"])
    assert len(asked) == 2 and asked[1] == "Twice 4?" and answers == ["8"]
    asked, answers = asked_under(enough, "Twice 4?", said=["x" * 57])
    assert len(asked) == 1 and answers == [None]
    # A task that is too long for its plan is answered at once, and keeps no other from being worked at.
    asked, answers = asked_under(
        3000, "y" * 3000, "Twice 4?", said=["none", '<tool_call>{"name": "none"}</tool_call>', "DONE", "?", "8"]
    )
    assert answers == ["?", "8"] and asked[3] == "y" * 3000 and "error: " in asked[4]


def test_tools_are_merged_by_the_developer():
    """One doubles what is below 5, one halves what is above: neither can stand for the other."""
    both = "def run(x: int) -> int:\n    return 2 * x if x < 5 else x // 2\n"
    made = [reply(DOUBLE, '{"x": 1}'), reply(HALF, '{"x": 8}')]
    said = ["NEED double: something"] * 2 + [*made, CALL % 4, CALL % 8, "DONE", "DONE", "8", "4"]
    said += ["SAME some: double, double_2"]
    for merged, tools in ((f"```python\n{both}```", [both]), ("I cannot", [DOUBLE, HALF])):
        engine = Scripted([(text, "eos") for text in [*said, *[merged] * 3]])
        strategy = yunjue(sampling=Sampling(64))
        strategy([Task("a", "4?", "8"), Task("b", "8?", "4")], engine, 1, np.random.default_rng(0))
        assert sorted(t.source for t in strategy.library.tools.values()) == sorted(tools)
        assert "double: Twice x." in engine.asked[10].prompt and "double_2: " in engine.asked[10].prompt
        assert DOUBLE in engine.asked[11].prompt and HALF in engine.asked[11].prompt
        assert sorted(strategy.library.tools) == (["some"] if len(tools) == 1 else ["double", "double_2"])
    assert len({r.seed for r in engine.asked}) == len(engine.asked) and min(r.seed for r in engine.asked) > 2**32


def test_a_developer_of_its_own_writes_the_tools():
    developer = Scripted([(reply(DOUBLE, '{"x": 1}'), "eos")])
    developer.window = 1000
    _, engine, answer = play(["NEED double: twice", CALL % 4, "DONE", "8"], developer=developer)
    assert len(developer.asked) == 1
    assert answer.scoring == len(developer.asked[0].prompt) + len(reply(DOUBLE, '{"x": 1}'))
    assert len(engine.asked) == 4
    assert developer.asked[0].sampling == Sampling(64) and developer.asked[0].seed > 2**32
    failing = Scripted([("", "error")])
    failing.window = 1000
    _, engine, _ = play(["NEED double: twice", "DONE", "8"], developer=failing)
    assert "the tool double could not be made" in engine.asked[1].prompt
    assert ToolEvolution().sampling == Sampling()


def test_replies_are_read():
    assert planned("USE a\n USE `b`\nUSE a\nNEED C_d: do it \nNEED bad name: x\nI USE c") == (
        ["a", "b"],
        {"c_d": "do it"},
    )
    tool, tried = written("t", f"Text ```python\n{HALF}``` then\n{reply(DOUBLE, '{}')}")
    assert (tool.source, tried) == (DOUBLE, {})
    with pytest.raises(BadTool, match="no line EXAMPLE"):
        written("t", f"```\n{DOUBLE}```")
    with pytest.raises(BadTool, match="is no JSON"):
        written("t", reply(DOUBLE, "{x}"))
