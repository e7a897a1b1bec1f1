"""Themis: tools and their errors, traces by tokens, both losses and their gradients, and the whole command."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from acted import played

from assay import catalogue, cli
from assay.audit.environment import audit_environment
from assay.engines.base import Sampling
from assay.environments.checking.consulting import Consulting, judging
from assay.environments.checking.reckoning import between, calculate, shifted, weekday
from assay.environments.hosted.worlds import Worlds
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.inference.supervision.train import PRMMethod
from assay.lab.settings.judges.consulted_sums import Counter, Setting, Writer
from assay.lab.settings.stepwise.graded_pairs import Linear
from assay.papers.judges.s136_themis import themis
from assay.rewards.step_models.examples import StepExample, StepPair, read_examples, write_examples
from assay.rewards.step_models.on_states import StepHead
from assay.rewards.step_models.saved import PRMSettings, load_prm
from assay.rewards.step_models.tara import traced as rows_of_tara
from assay.rewards.step_models.traced import TracedRM, TracedTraining
from assay.types import Ask, Task

pytestmark = pytest.mark.usefixtures("one_thread")


def row(right: bool, a: int = 3, b: int = 4, off: int = 5) -> dict[str, Any]:
    answer = a * b if right else a * b + off
    calls = [{"name": "calculator", "arguments": {"expression": f"{a}*{b}-{answer}"}}]
    return {"answer": str(answer), "calls": calls, "rationale": f"It is {'right' if right else 'wrong'}."}


def pairs(n: int = 1) -> list[dict[str, Any]]:
    return [
        {"prompt": f"What is {k + 3} times 4?", "chosen": row(True, k + 3), "rejected": row(False, k + 3)}
        for k in range(n)
    ]


def pair_of(tmp_path: Path, n: int = 1) -> list[StepPair]:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(x) + "\n" for x in pairs(n)))
    return [x for x in read_examples(path) if isinstance(x, StepPair)]


def model(words: int = 32, **options: Any) -> TracedRM:
    writer: Any = Writer(options.pop("talks", True))
    return TracedRM(Counter(words), StepHead(words), engine=writer, **options)


def test_a_calculator_and_a_calendar() -> None:
    cases = {
        "2+3*4": "14",
        "(1+2)/4": "0.75",
        "-7 % 4": "1",
        "2**10": "1024",
        "0.1+0.2": "0.3",
        "+5-2": "3",
        "1/3": "0.333333333333",
    }
    assert {x: calculate(x) for x in cases} == cases
    assert calculate("2**-2") == "0.25" and len(calculate("9**1023")) > 900
    for bad, why in (
        ("1/0", "division by 0"),
        ("2**5000", "too large"),
        ("2**0.5", "whole number"),
        ("__import__('os')", "numbers"),
        ("1+", "no expression"),
        ("1" * 301, "300 characters"),
        ("True", "numbers"),
        ("~1", "numbers"),
        ("1//2", "numbers"),
        ("2**4000/3", "too large"),
    ):
        with pytest.raises(ValueError, match=why):
            calculate(bad)
    assert weekday("2024-02-29") == "Thursday" and shifted("2024-02-28", 2) == "2024-03-01"
    assert shifted("2024-03-01", -1) == "2024-02-29" and between("2024-02-01", "2024-03-01") == 29
    for wrong in ("2023-02-29", "tomorrow"):
        with pytest.raises(ValueError, match="is no date"):
            weekday(wrong)
    with pytest.raises(ValueError, match="beyond the calendar"):
        shifted("9999-12-31", 1)


def test_tools_answer_in_text(tmp_path: Path) -> None:
    corpus = [{"id": str(k), "title": f"City {k}", "text": f"Mayor number {k} of a city"} for k in range(5)]
    records = [
        {"tool": "weather", "input": "Oslo, 2024-01-02", "output": "snow"},
        {"tool": "translate", "input": "Guten  Tag", "output": "good day"},
    ]
    for name, rows in (("corpus", corpus), ("records", records)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in rows))
    world = Consulting(corpus=tmp_path / "corpus.jsonl", records=tmp_path / "records.jsonl", calls=20)
    world.reset(world.tasks()[0], 0)

    def told(name: str, **arguments: Any) -> str:
        [message] = world.step(call(name, **arguments)).observation.messages
        return str(message["content"])

    assert (
        told("calculator", expression="17*3") == "51" and told("calculator", expression="1/0") == "error: division by 0"
    )
    assert told("weekday", date="2024-02-29") == "Thursday" and "is no date" in told("weekday", date="x")
    assert told("date_after", date="2024-02-28", days=1) == "2024-02-29"
    assert told("days_between", first="2024-02-28", second="2024-03-01") == "2"
    assert told("weather", place="oslo", date="2024-01-02") == "snow"
    assert "nothing is on record for 'Rome, 2024-01-02'" in told("weather", place="Rome", date="2024-01-02")
    assert told("translate", text="guten tag") == "good day" and told("wiki", title="city 3").startswith("[[3]] City 3")
    assert told("search", query="mayor").count("[[") == 3 and told("search", query="zebra") == "nothing was found"
    assert told("unit_conversion", value=1, source_unit="km", target_unit="m") == "1000 m"
    assert "python_interpreter" in {t.name for t in world.available()}
    bare = {t.name for t in Consulting().available()}
    assert bare.isdisjoint({"search", "wiki", "translate", "weather"}) and len(bare) == 6
    assert Consulting(calls=0).available() == ()
    (tmp_path / "bad.jsonl").write_text('{"tool": "oracle", "input": "x", "output": "y"}\n{"tool": "weather"}\n')
    for bad, why in (
        ({"records": tmp_path / "bad.jsonl"}, "no tool 'oracle'"),
        ({"kinds": ["maps"]}, "'maps'"),
        ({"kinds": []}, "one or more"),
    ):
        with pytest.raises(UsageError, match=why):
            Consulting(**bad)  # type: ignore[arg-type]


def test_made_up_answers_are_judged() -> None:
    """Each second one is wrong; the plan's call and what is to be said pass, another word does not."""
    source = Consulting().tasks()
    right, wrong = source[4], source[5]
    assert (right.meta["label"], wrong.meta["label"]) == (True, False) and right.meta["plan"] == wrong.meta["plan"]
    assert (
        right.question.split("Answer:")[0]
        == wrong.question.split("Answer:")[0]
        != source[6].question.split("Answer:")[0]
    )
    for task in (right, wrong):
        world = Consulting()
        world.reset(task, 0)
        *_, found = played(world, task, list(world.gold()))
        assert found.passed and found.parts["tool"] == 1
    *_, found = played(Consulting(), right, [say(r"\boxed{Incorrect}")])
    assert found.passed is False


@pytest.mark.slow
def test_the_audit_passes() -> None:
    source, worlds = Consulting().tasks(), Worlds("consulting", 1)
    try:
        findings = list(audit_environment(worlds, [source[i] for i in range(2)]))
    finally:
        worlds.close()
    assert all(f.passed and f.of for f in findings)


def test_a_trace_by_tokens() -> None:
    """A call, its result, and the rationale; the calls of a reward model without tools are left out."""
    [p] = pairs()
    task = Task("t", p["prompt"], meta={"plan": p["chosen"]["calls"], "rationale": "It is right."})
    made = model().demonstrated(StepExample(task, ("12",))).episode
    assert made is not None
    prompt, text = "".join(map(chr, made.prompt)), "".join(map(chr, made.tokens))
    assert prompt == judging("What is 3 times 4?", "12", "t").question + "\ncalculator\n"
    assert text == call("calculator", expression="3*4-12").text + "\nresult 0\nIt is right.\n"
    assert "".join(map(chr, made.tokens[~made.mask])) == "result 0\n"
    bare = model().demonstrated(StepExample(task, ("12",)), rationale=False).episode
    none = model(calls=0).demonstrated(StepExample(task, ("12",))).episode
    assert bare is not None and none is not None
    assert (
        "".join(map(chr, bare.tokens)).endswith("\nresult 0\n\n") and "".join(map(chr, none.tokens)) == "It is right.\n"
    )


def traced(rm: TracedRM, tmp_path: Path, **options: Any) -> tuple[TracedTraining, list[StepPair]]:
    training = TracedTraining(**options)
    both = pair_of(tmp_path)
    return training, [
        replace(
            p, better=rm.demonstrated(p.better, training.rationale), worse=rm.demonstrated(p.worse, training.rationale)
        )
        for p in both
    ]


def test_the_loss_by_hand(tmp_path: Path) -> None:
    """r+ = .9, r- = .1: L_rm = .371101; characters with probability 1/128 each: L_lm = log 128 = 4.852030."""
    rm = model()
    training, rows = traced(rm, tmp_path)
    both: list[Any] = [rows[0].better.episode, rows[0].worse.episode]
    logprobs, _ = rm.passed(both)
    z = torch.tensor([0.9, 0.1])
    rm.passed = lambda traces: (logprobs, z)  # type: ignore[method-assign]
    [loss] = training.pieces(rm, rows)
    assert loss.item() == pytest.approx(4.852030 + 0.5 * 0.371101, abs=1e-5)
    [loss] = TracedTraining(weight=2.0).pieces(rm, rows)
    assert loss.item() == pytest.approx(4.852030 + 2 * 0.371101, abs=1e-5)
    with pytest.raises(UsageError, match="weight 0 of preferences"):
        TracedTraining(weight=0)


def test_passes_add_up(tmp_path: Path) -> None:
    """However many traces are read at a time, the loss is one mean over all tokens and one over all pairs."""
    losses = []
    for budget in (1, 100_000):
        rm = model(budget=budget)
        rows = [
            replace(p, better=rm.demonstrated(p.better), worse=rm.demonstrated(p.worse)) for p in pair_of(tmp_path, 3)
        ]
        with torch.no_grad():
            rm.policy.module["table"].copy_(torch.arange(128) / 64)  # type: ignore[index, attr-defined]
            rm.reader.linear.weight.copy_(torch.linspace(-1, 1, 32)[None])  # type: ignore[union-attr]
        found = [piece.item() for piece in TracedTraining().pieces(rm, rows)]
        losses.append(sum(found))
        assert len(found) == (3 if budget == 1 else 1)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_a_pass_holds_what_the_budget_allows(tmp_path: Path) -> None:
    """Three times the same pair is the same mean; a pass has both traces of as many pairs as half of its budget."""
    rm = model()
    training, [pair] = traced(rm, tmp_path)
    assert training.observations and training.rationale
    both: list[Any] = [pair.better.episode, pair.worse.episode]
    longest = max(len(e.prompt) + len(e.tokens) for e in both)
    [alone] = [piece.item() for piece in training.pieces(rm, [pair])]
    passed, sizes = rm.passed, list[int]()
    rm.passed = lambda traces: sizes.append(len(traces)) or passed(traces)  # type: ignore[method-assign, func-returns-value]
    for budget, expected in ((4 * longest, [4, 2]), (4 * longest - 2, [2, 2, 2])):
        rm.budget = budget
        sizes.clear()
        assert sum(piece.item() for piece in training.pieces(rm, [pair] * 3)) == pytest.approx(alone, rel=1e-5)
        assert sizes == expected


def test_gradients_reach_both_heads(tmp_path: Path) -> None:
    rm = model()
    training, rows = traced(rm, tmp_path)
    [loss] = training.pieces(rm, rows)
    loss.backward()  # type: ignore[no-untyped-call]
    table, linear = rm.policy.module["table"], rm.reader.linear  # type: ignore[index, union-attr]
    assert float(table.grad.abs().sum()) > 0 and float(linear.weight.grad.abs().sum()) > 0


def test_what_is_learned_of_a_trace(tmp_path: Path) -> None:
    rm = model()
    whole, rows = traced(rm, tmp_path)
    own = TracedTraining(observations=False)
    trace: Any = rows[0].better.episode
    assert int(whole.learned(trace).sum()) == len(trace.tokens)
    assert int(own.learned(trace).sum()) == len(trace.tokens) - len("result 0\n")
    _, short = traced(rm, tmp_path, rationale=False)
    assert "right" not in "".join(map(chr, short[0].better.episode.tokens))  # type: ignore[union-attr]


def test_the_paper_and_its_defaults() -> None:
    made = themis()
    assert isinstance(made, PRMMethod) and made.told and made.pairs is None
    assert made.training == TracedTraining(
        epochs=5, batch=64, lr=1e-5, trunk_lr=1e-5, weight_decay=0.1, weight=0.5, observations=True, rationale=True
    )
    assert made.settings == PRMSettings("traced", traced={"environment": "consulting", "calls": 3, "max_tokens": 256})
    assert catalogue.make("S136", training={"epochs": 2}).training.epochs == 2
    player = model().player
    assert (player.turns, player.sampling, model().budget) == (4, Sampling(256, 0.0), 8192), "greedy, with three calls"


def test_scores_come_of_what_tools_say() -> None:
    """With weight on the word that only a result of 0 brings, right answers score higher; without a tool none does."""
    from zlib import crc32

    rows = [StepExample(Task("t", "What is 3 times 4?"), (answer,)) for answer in ("12", "17")]
    for calls in (1, 0):
        rm = model(2**16, calls=calls, talks=False)
        with torch.no_grad():
            rm.reader.linear.weight[0, crc32(b"result") % 2**16] = -1.0  # type: ignore[union-attr]
            rm.reader.linear.weight[0, crc32(b"-5") % 2**16] = -1.0  # type: ignore[union-attr]
        right, wrong = rm.score_examples(rows)
        assert right is not None and wrong is not None
        assert (right[0] > wrong[0]) is bool(calls)
        assert rm.scores([(rows[0].task, ["12"])]) == [right]


def test_what_failed_has_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """One trace is played for each response; one that failed, or has no token, is not read."""
    rm, asked = model(), []
    rows = [StepExample(Task("t", "What is 3 times 4?"), (answer,)) for answer in ("12", "17", "9")]
    play = rm.player.play

    def played_(asks: Any, seeds: Any, engine: Any) -> Any:
        asked.extend(a.n for a in asks)
        one, two, three = play(asks, seeds, engine)
        [failed], [silent] = two.episodes, three.episodes
        two = replace(two, episodes=(replace(failed, stop="error"),))
        none = replace(silent, tokens=silent.tokens[:0], mask=silent.mask[:0], logprobs=None, entropies=None)
        return [one, two, replace(three, episodes=(none,))]

    monkeypatch.setattr(rm.player, "play", played_)
    rm.train(True)
    scored, *others = rm.score_examples(rows)
    assert scored is not None and others == [None, None] and asked == [1, 1, 1]
    assert not rm.reader.training
    with torch.no_grad():
        rm.reader.linear.weight.copy_(torch.linspace(-1, 1, 32)[None])  # type: ignore[union-attr]
        [episode] = play([Ask(rm.judging(rows[0]), 1)], [0], rm.engine)[0].episodes
        z = float(rm.passed([episode])[1])
    assert rm.score_examples(rows)[0] == [pytest.approx(2 / (1 + math.exp(-z)) - 1, abs=1e-6)] and abs(z) > 0.01


def test_rows_with_calls_are_read_and_written(tmp_path: Path) -> None:
    [p] = pair_of(tmp_path)
    assert p.better.task.meta["rationale"] == "It is right." and p.worse.steps == ("17",) and p.fork == 0
    write_examples(tmp_path / "again.jsonl", [p])
    assert read_examples(tmp_path / "again.jsonl") == [p]
    path = tmp_path / "bad.jsonl"
    for side in ({"answer": "1", "calls": [{"name": "x"}]}, {"answer": "1", "rationale": 3}, {"answer": ""}, {}):
        path.write_text(json.dumps({"prompt": "q", "chosen": side, "rejected": "2"}))
        with pytest.raises(UsageError, match="bad"):
            read_examples(path)
    plain = StepPair(StepExample(Task("t", "q"), ("a",)), StepExample(Task("t", "q"), ("b",)), 0)
    for rows, rm, why in (([], model(), "learns from pairs"), ([plain], Linear(torch.zeros(1, 1)), "leave out --kind")):
        with pytest.raises(UsageError, match=why):
            TracedTraining().fit(rm, rows, np.random.default_rng(0))


ACTIONS = (
    "Thought: I need the day.\nAction: Calendar.target_day\nAction Input: 2023-06-01, 12\nObservation: 2023-06-13\n"
    "Thought: And its weather.\nAction: history_weather\nAction Input: Anyang, 2023-06-13\n"
    "Observation: It was: \nSunny."
)
UNUSED = "Thought: Do I need to use a tool? No\nFinished."
CALENDAR = {
    "id": "multi_tools_test_0",
    "question": "How was it in Anyang 12 days after 2023-06-01?",
    "pos_answer": {"answer": "Sunny.", "score": 1.0, "actions": ACTIONS, "score_agent": {"explanation": "It was."}},
    "neg_answer": {"answer": "Wet.", "score": -1.0, "actions": UNUSED, "score_agent": {"explanation": "No. "}},
}


def test_the_papers_traces_are_read(tmp_path: Path) -> None:
    """Turns as texts and as a table, no turn, no trace at all, and one blank answer, as TARA's files have them."""
    product = {"Thought": "t", "Action": "calculator", "Action Input": "<<4*5=20>>20", "Observation": "All correct."}
    strange = {**product, "Action": "Calendar.target_day", "Action Input": "soon"}
    bare = {"answer": "a", "score": 1}
    rows = [
        CALENDAR,
        {**CALENDAR, "pos_answer": {**bare, "actions": product}, "neg_answer": {**bare, "actions": strange}},
        {**CALENDAR, "pos_answer": bare, "neg_answer": {**bare, "actions": {**product, "Action": "None"}}},
        {**CALENDAR, "pos_answer": {**bare, "answer": " "}},
    ]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    told, tables, without = (x for x in read_examples(path) if isinstance(x, StepPair))
    assert told.better.task.id == "multi_tools_test_0" and told.better.task.prompt == CALENDAR["question"]
    assert told.better.steps == ("Sunny.",) and told.worse.steps == ("Wet.",)
    assert told.better.task.meta["plan"] == [
        {"name": "date_after", "arguments": {"date": "2023-06-01", "days": 12}, "output": "2023-06-13"},
        {
            "name": "weather",
            "arguments": {"place": "Anyang", "date": "2023-06-13"},
            "output": "It was: \nSunny.",
        },
    ]
    assert (told.better.task.meta["rationale"], told.worse.task.meta["rationale"]) == ("It was.", "No.")
    assert told.worse.task.meta["plan"] == []
    [call_] = tables.better.task.meta["plan"]
    assert call_ == {
        "name": "calculator",
        "arguments": {"expression": "<<4*5=20>>20"},
        "output": "All correct.",
    }
    assert tables.worse.task.meta["plan"] == [] == without.better.task.meta["plan"] == without.worse.task.meta["plan"]
    path.write_text(json.dumps([{**rows[1], "pos_answer": {**bare, "actions": {**product, "Action": "telephone"}}}]))
    with pytest.raises(UsageError, match="the action 'telephone' is none of calculator"):
        read_examples(path)


@pytest.mark.parametrize(
    ("action", "given", "made"),
    [
        ("code_run", "print(1)", ("python_interpreter", {"code": "print(1)"})),
        ("Calendar.week_day", "2023-06-01", ("weekday", {"date": "2023-06-01"})),
        (
            "Calendar.day_difference",
            "2023-06-01, 2023-06-13",
            ("days_between", {"first": "2023-06-01", "second": "2023-06-13"}),
        ),
        ("Calendar.target_day", "2023-06-01, -3", ("date_after", {"date": "2023-06-01", "days": -3})),
        ("history_weather", "Paris, France, 2023-06-01", ("weather", {"place": "Paris, France", "date": "2023-06-01"})),
        ("translate", "ni hao", ("translate", {"text": "ni hao"})),
        ("wiki_search", "a dog", ("wiki", {"title": "a dog"})),
        ("google_serper", "a, dog", ("search", {"query": "a, dog"})),
    ],
)
def test_every_tool_of_theirs_is_one_of_ours(action: str, given: str, made: tuple[str, dict[str, Any]]) -> None:
    told = {"Thought": "", "Action": action, "Action Input": given, "Observation": "o"}
    found = rows_of_tara(
        {"question": "q", "pos_answer": {"answer": "a", "actions": told}, "neg_answer": {"answer": "b"}}
    )
    assert found["chosen"]["calls"] == [{"name": made[0], "arguments": made[1], "output": "o"}]


def test_what_is_on_record_is_what_a_planned_call_returns() -> None:
    """A tool that is not there otherwise is there for it; any other call is computed, or refused."""
    found = rows_of_tara(CALENDAR)["chosen"]
    task = judging("q", "a", "t", plan=found["calls"], rationale=found["rationale"])
    world = Consulting()
    world.reset(task, 0)
    assert "weather" in {t.name for t in world.available()} and "search" not in {t.name for t in world.available()}
    steps = [world.step(action) for action in world.gold()]
    shown = [step.observation.messages[0]["content"] for step in steps[:2]]
    assert shown == ["2023-06-13", "It was: \nSunny."] and steps[2].terminated
    world.reset(task, 0)
    others = [call("date_after", date="2023-06-01", days=13), call("weather", place="Rome", date="2023-06-13")]
    told = [world.step(action).observation.messages[0]["content"] for action in others]
    assert told[0] == "2023-06-14" and "nothing is on record" in told[1]
    world.reset(judging("q", "a", "t"), 0)
    assert "weather" not in {t.name for t in world.available()}


def test_tools_tell_sums_apart() -> None:
    setting = Setting(pairs=12, fresh=12, epochs=8)
    tools, none = (setting.run({"name": "S136", **arm}, 0, Path()) for arm in ({}, {"calls": 0, "rationale": False}))
    assert tools["accuracy"] > 0.9 > none["accuracy"] + 0.2 and tools["gap"] > 0.1


def test_a_reward_model_with_tools(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One pass over four pairs; what is kept scores as what was trained does, and names its tools."""
    path, out = tmp_path / "pairs.jsonl", tmp_path / "rm"
    path.write_text("".join(json.dumps(x) + "\n" for x in pairs(4)))
    alphabet = "".join(map(chr, range(32, 127))) + "\n"
    size = [f"model.nano.{k}={v}" for k, v in (("hidden", 16), ("layers", 1), ("heads", 2), ("context", 4000))]
    method = "S136(calls=1,max_tokens=2)"
    with pytest.raises(SystemExit) as stopped:
        cli.main(
            [
                "train-prm",
                "nano",
                *size,
                f"model.nano.alphabet={json.dumps(alphabet)}",
                "--method",
                method,
                "--data",
                str(path),
                "--out",
                str(out),
                "--epochs",
                "1",
                "--lr",
                "0.01",
                "--trunk-lr",
                "0.01",
                "--json",
            ]
        )
    assert stopped.value.code == 0
    said = json.loads(capfd.readouterr().out)
    assert said["rows"] == 3 and len(said["loss"]) == 1 and said["quality"]["ranked"] is not None
    kept = load_prm(out)
    assert isinstance(kept, TracedRM) and kept.player.turns == 2
    [[score]] = kept.scores([(Task("t", "What is 3 times 4?"), ["12"])])
    assert -1 < score < 1 and score != 0
