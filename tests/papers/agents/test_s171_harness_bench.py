"""Harness-Bench: three harnesses at work, what a judge says of it, the table taken apart, the command, and training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import metrics, run
from sandbox.support import needs_sandbox
from scripted import Scripted, Talking

from assay import catalogue
from assay.cli import harnesses as cli
from assay.cli import main
from assay.engines import target
from assay.engines.base import Sampling
from assay.environments.tools import call
from assay.environments.workspace.environment import WorkspaceJobs
from assay.errors import RunError, UsageError
from assay.evaluate.failure_class import (
    BUDGET,
    CLAIMED,
    CLASSES,
    CONTENT,
    IGNORED,
    NEVER,
    UNSAFE,
    WRONG,
    failure_class,
)
from assay.evaluate.harnesses import HarnessComparison, Run, compare_harnesses
from assay.evaluate.process_judge import (
    SCORES,
    SHOWN,
    UNASKED,
    Process,
    ProcessJudge,
    combined,
    failures,
    read_scores,
    told,
)
from assay.lab.settings.open_ended.harness_runs import Setting
from assay.papers.agents import s171_harness_bench  # noqa: F401
from assay.rollout.turns.harness.rollout import Harness
from assay.statistics.two_way import effects_over_tasks, two_way
from assay.tasks.workspaces.job import Get, Job
from assay.types import Ask, Episode, Group, Message, Task, Verdict

pytestmark = [needs_sandbox, pytest.mark.usefixtures("one_thread")]

TABLE = [[0.8, 0.6, 0.7], [0.5, 0.5, 0.2]]


def test_the_worked_table() -> None:
    found = two_way(TABLE)
    assert found.grand == pytest.approx(0.55)
    assert found.rows == pytest.approx([0.15, -0.15]) and found.columns == pytest.approx([0.1, 0, -0.1])
    assert found.interaction == pytest.approx(np.array([[0, -0.1, 0.1], [0, 0.1, -0.1]]))
    assert list(found.squares.values()) == pytest.approx([0.135, 0.04, 0.04]) and found.total == pytest.approx(0.215)
    assert found.spread == pytest.approx([0.2, 0.3])


def test_the_bootstrap_is_over_tasks() -> None:
    rng = np.random.default_rng(0)
    noise = 0.05 * rng.normal(size=(2, 3, 50))
    found = effects_over_tasks(np.array(TABLE)[:, :, None] + noise - noise.mean(2, keepdims=True))
    assert found.tasks == 50 and found.found.grand == pytest.approx(0.55)
    for interval, value in zip((*found.rows, *found.columns), (0.15, -0.15, 0.1, 0, -0.1), strict=True):
        assert (
            interval.value == pytest.approx(value)
            and value - 0.02 < interval.low < value < interval.high < value + 0.02
        )
    assert [i.value for i in found.spread] == pytest.approx([0.2, 0.3])
    assert [[i.value for i in row] for row in found.interaction][1] == pytest.approx([0, 0.1, -0.1])
    again = effects_over_tasks(np.array(TABLE)[:, :, None] + noise - noise.mean(2, keepdims=True))
    assert again.rows == found.rows and again.interaction == found.interaction


def scores(*values: float) -> Process:
    return Process(dict(zip(SCORES, values, strict=True)))


def test_the_worked_products() -> None:
    assert combined(0.75, scores(1, 1, 0.5, 1)) == (0.75, 0.875, 0.65625)
    assert combined(0.75, UNASKED) == (0.75, 1.0, 0.75) and UNASKED.reason == "no judge"
    assert combined(0.75, Process(None, "it failed"))[2] == 0.75
    # What is wanted is the reply: it is the outcome, the others are the process.
    assert combined(0.1, scores(1, 0.5, 0.75, 0.4), by_reply=True) == (0.4, 0.75, pytest.approx(0.3))
    assert combined(0.1, UNASKED, by_reply=True) == (0.1, 1.0, 0.1)


SAID = {"tool_use_appropriate": 0.5, "flow_coherence": 1, "error_handling": 0.2, "reply_appropriateness": 0.8}


def tool(text: str) -> Message:
    return Message(role="tool", content=text)


def user(text: str) -> Message:
    return Message(role="user", content=text)


def test_the_scores_of_a_judge() -> None:
    assert read_scores(f"First {{}} then\n{json.dumps({**SAID, 'total': 0.1})}") == SAID
    for wrong in (
        "none",
        "{}",
        json.dumps({**SAID, "error_handling": 1.1}),
        json.dumps({**SAID, "flow_coherence": True}),
        json.dumps({**SAID, "flow_coherence": -0.1}),
        json.dumps({k: v for k, v in SAID.items() if k != "reply_appropriateness"}),
        "{" + json.dumps(SAID)[2:],
    ):
        with pytest.raises(ValueError, match=r"no number from 0 to 1|Expecting"):
            read_scores(wrong)
    assert read_scores(json.dumps({**SAID, "flow_coherence": 0})) == {**SAID, "flow_coherence": 0.0}
    good = (json.dumps({**SAID, "total": 1.0}), "eos")
    engine = Scripted([good] * 3 + [("I will not say", "eos"), ("", "error"), good])
    judge = ProcessJudge(engine)
    failed, well = (user("u"), tool("error: no"), tool("fine")), (user("v"), tool("fine"))
    one, two, three, four, five, six = judge(
        [("a", failed), ("b", well), ("c", failed), ("d", well), ("e", well), ("f", failed)]
    )
    assert one == six and one.value == pytest.approx(0.625) and one.scores == SAID
    # Nothing failed. What was written, in files or a reply, is the judge's to say.
    assert two.scores == {**SAID, "error_handling": 1.0} and two.value == pytest.approx(0.825)
    assert three == one
    assert four.scores is None and "cannot be read" in four.reason and four.value == 1
    assert five.scores is None and five.reason == "the judge failed" and five.value == 1
    assert "[tool] error: no" in engine.asked[0].prompt and engine.asked[0].sampling.temperature == 0
    with pytest.raises(UsageError, match="must show"):
        ProcessJudge(engine, template="{task}")


def test_what_a_judge_is_shown() -> None:
    long = told((user("a" * SHOWN), tool("b" * 100)))
    assert long.startswith("[user] aaa") and long.endswith("b" * 100) and "[115 characters left out]" in long
    assert len(long) == SHOWN + len("\n[115 characters left out]\n")
    assert told((user("a" * (SHOWN - 7)),)) == f"[user] {'a' * (SHOWN - 7)}"
    assert told((user("x</conversation>y"), tool("z"))) == "[user] xy\n[tool] z"
    assert told(({"role": "system", "content": "be good"}, user("x"))) == "[user] x", "the authors drop it as well"
    assert failures((tool("fine"), tool("x\n(error: exit code 3)"), user("error"), tool("error: no"))) == [1, 3]
    assert failures((tool("fine\nERROR: no"), tool("no errors"))) == [0]


def test_classes_of_failure() -> None:
    wrong = {"a": 0.0, "b": 0.0}
    missing = Verdict(0.0, False, {**wrong, "a | missing": 1.0, "b | missing": 1.0})
    content = Verdict(0.0, False, {**wrong, "a | content": 1.0, "b | content": 1.0})
    unsafe = Verdict(0.8, False, {"a": 1.0, "b": 0.0, "b | unsafe": 1.0})
    form = Verdict(0.0, False, {**wrong, "a | format": 1.0, "b | missing": 1.0})
    used, ignored = (user("u"), tool("fine")), (user("u"), tool("fine"), tool("error: no"))
    mended = (user("u"), tool("error: no"), tool("fine"))
    some: dict[str, float] = {"changed": 2}
    for found, arguments in (
        ("", (Verdict.right(), "turns", "Done.", used, some)),
        ("", (Verdict.abstain("lost"), "error", "Done.", (), {})),
        (UNSAFE, (unsafe, "turns", "Done.", ignored, some)),
        (BUDGET, (missing, "turns", "Done.", ignored, some)),
        (BUDGET, (missing, "length", "", (), {})),
        (CLAIMED, (missing, "eos", "All done.", used, {"changed": 0})),
        (CLAIMED, (content, "eos", "I have written it.", (), {})),
        (CLAIMED, (missing, "eos", "Finished", used, some)),
        (WRONG, (missing, "eos", "It could not be done.", used, some)),
        (NEVER, (missing, "eos", "I do not know.", (user("u"),), {"changed": 0})),
        (WRONG, (missing, "eos", "", (user("u"),), some)),
        (IGNORED, (content, "eos", "Done.", ignored, some)),
        (CONTENT, (content, "eos", "Done.", mended, some)),
        (WRONG, (form, "eos", "Done.", used, some)),
        (CONTENT, (content, "eos", "Hm.", (user("u"),), some)),
    ):
        assert failure_class(*arguments) == found, arguments  # type: ignore[arg-type]
    assert set(CLASSES) == {UNSAFE, BUDGET, CLAIMED, NEVER, IGNORED, WRONG, CONTENT}


# A model that knows what to do, and does it whatever comes of it.

WORLD = WorkspaceJobs(failures=1)
TASKS = [WORLD.tasks()[i] for i in range(4)]


def steps(job: Job) -> list[str]:
    return [
        call("get", path=s.path, to=s.to).text if isinstance(s, Get) else call("run", command=s).text for s in job.gold
    ]


def careless(messages: Sequence[Any], tools: Sequence[str]) -> str:
    [job] = [j for j in map(WORLD.tasks().job, range(4)) if j.text in messages[0]["content"]]
    turns = sum(m["role"] == "assistant" for m in messages) - ("write a plan" in messages[0]["content"])
    if not tools:
        return "".join(
            f"```get\n{s.path} {s.to}\n```\n" if isinstance(s, Get) else f"```bash\n{s}\n```\n" for s in job.gold
        )
    if turns < 0:
        return "As I know how to."
    return steps(job)[turns] if turns < len(job.gold) else "All done."


def talkative(messages: Sequence[Any], tools: Sequence[str]) -> str:
    return "All is done: every file has been written."


def under(name: str, **options: Any) -> Harness:
    return Harness(name, Sampling(4000), "workspace", trace=True, **options)


NAMES = ("bare", "react", "planned")


@pytest.mark.slow
def test_three_harnesses_do_the_work() -> None:
    made = catalogue.make("S171")
    found = made(TASKS, {"careless": lambda: Talking(careless)}, {name: under(name) for name in NAMES}, chunk=3)
    outcomes = {(r.harness, r.task.split("/")[2]): r.outcome for r in found.runs}
    # Where the service is busy once, only the harness that asks again does the work.
    for job in ("tidy", "mend"):
        assert [outcomes[name, job] for name in NAMES] == [1, 1, 1]
    for job in ("report", "trail"):
        assert [outcomes[name, job] for name in NAMES] == [0, 0, 1]
    effects = found.effects()
    assert effects is not None and effects.tasks == 4
    assert [i.value for i in effects.columns] == pytest.approx([-1 / 6, -1 / 6, 1 / 3])
    assert effects.found.squares["columns"] == pytest.approx(1 / 6) and effects.spread[0].value == 0.5
    react = found.rows()[1]
    assert react["failures"] == {IGNORED: 2} and react["completion"] == 1 and react["judged"] == 0
    assert all(run.process == 1 and not run.judged and run.combined == run.outcome for run in found.runs)


@pytest.mark.slow
def test_saying_it_is_done_is_worth_nothing() -> None:
    found = compare_harnesses(
        TASKS, {"m": lambda: Talking(talkative)}, {"react": under("react"), "bare": under("bare")}
    )
    assert [run.outcome for run in found.runs] == [0.0] * 8 and {run.failure for run in found.runs} == {CLAIMED}
    assert {run.completed for run in found.runs} == {True} and found.effects("outcome") is not None


def test_what_a_run_took() -> None:
    engine = Talking(careless)
    closed = []
    engine.close = lambda: closed.append(1)  # type: ignore[attr-defined]
    judge = ProcessJudge(Scripted([(json.dumps(SAID), "eos"), ("?", "eos")] * 2))
    found = compare_harnesses(
        TASKS[:1], {"m": lambda: engine}, {"react": under("react")}, judge=judge, samples=2, seed=4
    )
    assert closed == [1]
    one, two = found.runs
    made = [r for r in engine.asked if r.session == engine.asked[0].session]
    assert one.requests == len(made) == len(steps(WORLD.tasks().job(0))) + 1 and one.refused == 0
    assert one.read == sum(len(engine.encode(r.prompt)) + len(r.prefix) for r in made)
    assert one.written == sum(map(len, [*steps(WORLD.tasks().job(0)), "All done."]))
    assert one.seconds > 0
    # The two runs are asked about at once: equal conversations are one question.
    assert one.judged and one.process == pytest.approx((0.5 + 1 + 1 + 0.8) / 4)
    assert one.combined == pytest.approx(one.outcome * one.process) and two.process == one.process
    [row] = found.rows()
    assert row["runs"] == 2 and row["process"]["value"] == pytest.approx(0.825) and row["judged"] == 1
    assert found.effects() is None


def run_of(model: str, harness: str, task: str, value: float, **other: Any) -> Run:
    return Run(model, harness, task, True, value == 1, value, 1.0, False, value, 1, 0, 10, 5, 0.5, **other)


def planted(tasks: int = 3) -> HarnessComparison:
    runs = [
        run_of(f"m{i}", f"h{j}", f"t{t}", TABLE[i][j] + (0.05, -0.05, 0)[t % 3])
        for i in range(2)
        for j in range(3)
        for t in range(tasks)
    ]
    return HarnessComparison(("m0", "m1"), ("h0", "h1", "h2"), tuple(runs))


def test_effects_are_of_tasks_judged_everywhere() -> None:
    whole = planted().effects()
    assert whole is not None and whole.tasks == 3 and whole.found.squares["rows"] == pytest.approx(0.135)
    assert whole.rows[0].low == pytest.approx(0.15) and whole.rows[0].high == pytest.approx(0.15)
    lost = replace(planted().runs[0], completed=False, outcome=0.0, combined=0.0)
    without = HarnessComparison(("m0", "m1"), ("h0", "h1", "h2"), (lost, *planted().runs[1:]))
    found = without.effects()
    assert found is not None and found.tasks == 2 and found.found.rows == pytest.approx([0.15, -0.15])
    row = without.rows()[0]
    assert row["completion"] == pytest.approx(2 / 3) and row["outcome"]["value"] == pytest.approx(0.775)
    assert {k: row[k] for k in ("requests", "refused", "read", "written", "seconds")} == {
        "requests": 1,
        "refused": 0,
        "read": 10,
        "written": 5,
        "seconds": 0.5,
    }
    some = HarnessComparison(("m",), ("h",), tuple(run_of("m", "h", f"t{t}", v) for t, v in enumerate((1, 1, 0.0))))
    # Wilson's interval of 2 of 3.
    assert some.rows()[0]["passed"]["low"] == pytest.approx(0.2077, abs=1e-4)
    assert some.rows()[0]["passed"]["high"] == pytest.approx(0.9385, abs=1e-4)
    none = HarnessComparison(("m0",), ("h0",), (lost,))
    assert none.effects() is None and none.rows()[0]["outcome"] is None and none.rows()[0]["judged"] is None


def test_a_comparison_is_a_document() -> None:
    document = json.loads(json.dumps(planted().document()))
    assert HarnessComparison.from_document(document) == planted()
    effects = document["effects"]["outcome"]
    assert effects["squares"] == pytest.approx(
        {"models": 0.135, "harnesses": 0.04, "interaction": 0.04, "total": 0.215}
    )
    assert [i["value"] for i in effects["models"]] == pytest.approx([0.15, -0.15])
    lines = "\n".join(cli._lines(document))
    assert "combined, over 3 tasks: 0.550 in the mean" in lines and "not judged" in lines
    assert "sums of squares: models 0.135, harnesses 0.04, interaction 0.04; total 0.215" in lines
    for wrong in ({}, {**document, "schema": "other"}, {**document, "runs": [{}]}):
        with pytest.raises(RunError, match="no comparison of harnesses"):
            HarnessComparison.from_document(wrong)


def test_what_cannot_be_compared() -> None:
    engines, under_test = {"m": lambda: Talking(talkative)}, {"react": under("react")}
    for tasks, models, harnesses, samples in (
        ([], engines, under_test, 1),
        (TASKS, {}, under_test, 1),
        (TASKS, engines, {}, 1),
        (TASKS, engines, under_test, 0),
    ):
        with pytest.raises(UsageError, match="at least one"):
            compare_harnesses(tasks, models, harnesses, samples=samples)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="same id"):
        compare_harnesses([TASKS[0]] * 2, engines, under_test)


class Quick(Harness):
    """Does every task at once, and keeps the seeds it was given."""

    def __init__(self) -> None:
        super().__init__("true", Sampling(1))
        self.seeds: list[list[int]] = []

    def play(self, asks: Sequence[Ask], seeds: Sequence[int], engine: Any) -> list[Group]:
        self.seeds.append(list(seeds))
        took = dict.fromkeys(("requests", "refused", "read", "written", "seconds"), 1)
        none = np.zeros(0, dtype=np.int64)
        done = Episode(none, none, none > 0, None, "done", "eos", meta=took)
        return [Group(ask, (done,) * ask.n, (Verdict.right(),) * ask.n) for ask in asks]


def test_every_model_has_the_same_seeds_a_few_tasks_at_a_time() -> None:
    tasks, (one, other), told_ = [Task(f"t{i}", "?") for i in range(3)], (Quick(), Quick()), list[tuple[int, int]]()
    models = dict.fromkeys("mn", Scripted)
    options: dict[str, Any] = {"samples": 2, "chunk": 2, "progress": lambda done, of: told_.append((done, of))}
    found = compare_harnesses(tasks, models, {"one": one, "other": other}, seed=1, **options)
    assert told_ == [(n, 12) for n in (2, 3, 5, 6, 8, 9, 11, 12)]
    assert [(r.model, r.harness, r.task) for r in found.runs] == [
        (m, h, f"t{i // 2}") for m in "mn" for h in ("one", "other") for i in range(6)
    ]
    assert {r.feedback for r in found.runs} == {""}, "nobody judged how, which is no failure"
    assert [len(seeds) for seeds in one.seeds] == [2, 1, 2, 1] and one.seeds == other.seeds
    assert one.seeds[:2] == one.seeds[2:] and min(map(min, one.seeds)) > 2**32, "one in 2**31 is not"
    for seed in ({"seed": 2}, {}, {"seed": 0}):
        compare_harnesses(tasks, {"m": Scripted}, {"one": one}, **seed)
    first, second, usual, zero = {*one.seeds[0], *one.seeds[1]}, *map(set, one.seeds[4:])
    assert not first & second and usual == zero


def test_a_reply_can_be_what_is_wanted() -> None:
    task = Task(TASKS[0].id, TASKS[0].prompt, kind="none", meta={**TASKS[0].meta, "by_reply": True})
    judge = ProcessJudge(Scripted([(json.dumps(SAID), "eos")]))
    [one] = compare_harnesses([task], {"m": lambda: Talking(talkative)}, {"react": under("react")}, judge=judge).runs
    assert one.outcome == 0.8 and one.process == pytest.approx(2.5 / 3) and one.combined == pytest.approx(2 / 3)


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.mark.slow
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    opened: list[str] = []
    speakers = {"careless": careless, "talkative": talkative}

    def speaks(self: target.Target) -> Any:
        opened.append(self.name)
        return Talking(speakers[self.name.partition(":")[2].partition("@")[0]])

    monkeypatch.setattr(target.Target, "open", speaks)
    models = "openai:careless@http://h/v1,openai:talkative@http://h/v1"
    world = 'tasks.source={name="environment", environment={name="workspace", failures=1}}'
    out = tmp_path / "found"

    def compare(*more: str, settings: tuple[str, ...] = (), harnesses: str = "react,planned") -> int:
        asked = ["eval", models, world, "tasks.eval_size=2", "rollout.max_tokens=4000", *settings]
        return command(*asked, "--samples", "1", "--harness", harnesses, *more)

    assert compare("--out", str(out)) == 0
    shown = capsys.readouterr().out
    assert "openai:talkative@http://h/v1, react: claimed without artefact 2" in shown and "sums of squares" in shown
    document = json.loads((out / "harnesses.json").read_text())
    assert len(document["runs"]) == 8 and opened == models.split(",")
    effects = document["effects"]["combined"]
    assert effects["models"][0]["value"] == -effects["models"][1]["value"] > 0
    # It is there: nothing is run again, by the same command or by the folder's name.
    assert compare("--out", str(out), "--json") == 0 and len(opened) == 2
    again = json.loads(capsys.readouterr().out)
    assert again == document
    assert command("eval", str(out), "--json") == 0 and json.loads(capsys.readouterr().out) == document
    # One part is gone: that one alone is made again.
    next(iter((out / "parts").glob("*.json"))).unlink()
    assert compare("--out", str(out)) == 0 and len(opened) == 3
    for more, settings, reason in (
        (["--out", str(out)], ["seed=3"], "other settings"),
        (["--strategy", "sample"], [], "--strategy would say nothing"),
        (["--out", str(tmp_path / "x.json")], [], "is a folder"),
        (["--judge", "openai:none"], [], "an endpoint is written"),
    ):
        assert compare(*more, settings=tuple(settings)) == 2
        assert reason in " ".join(capsys.readouterr().err.split())
    assert command("eval", models, "--judge", "x") == 2 and "--judge is for --harness" in capsys.readouterr().err
    assert compare(harnesses=",") == 2 and "needs a model and a harness" in capsys.readouterr().err
    next(iter((out / "parts").glob("*.json"))).write_text("[3]")
    assert compare("--out", str(out)) == 1 and "is damaged" in capsys.readouterr().err
    assert len(opened) == 3


def test_it_trains(tmp_path: Path) -> None:
    world = {"name": "workspace", "jobs": ["trail"], "failures": 0}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 1024}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_size": 1, "eval_share": 0.3},
        warmup={"steps": 0},
        method={"reward": "verdict", "rollout": {"name": "harness", "command": "planned", "environment": world}},
        rollout={"prompts": 1, "group": 2, "max_tokens": 3, "max_rows": 8},
        train={"steps": 1, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    [row] = [m for m in metrics(folder) if m["stage"] == "rl"]
    # A plan, an end that is doubted, and an end.
    assert row["environment/lost"] == 0 and row["environment/turns"] == 3


def test_planted_effects_are_found() -> None:
    setting = Setting()
    crossed, own = ([setting.run({"design": d}, seed, Path()) for seed in range(6)] for d in ("crossed", "own"))
    assert {r["rollouts"] for r in (*crossed, *own)} == {360.0}
    assert np.mean([r["covered"] for r in crossed]) > 0.85
    for measure in ("model", "harness", "interaction"):
        assert np.mean([r[measure] for r in crossed]) > 0.97
    assert np.mean([r["model"] for r in own]) < 0.95
    planted = setting.planted(3)
    for effect, size in ((planted.rows, 0.06), (planted.columns, 0.1), (planted.interaction, 0.05)):
        assert np.sqrt(np.mean(effect**2)) == pytest.approx(size)
    assert planted.grand == pytest.approx(0.5) and setting.describe()["tasks"] == 40
    for options in ({"size": 1}, {"tasks": 1}, {"models": -0.1}, {"models": 0.2}):
        with pytest.raises(UsageError, match="out of range"):
            Setting(**options)  # type: ignore[arg-type]
