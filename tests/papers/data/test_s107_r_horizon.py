"""R-HORIZON: how chains are composed, read and judged, and what they are worth beside single problems."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from claimed import learned
from running import run, tables
from tasks.making.told import Told

from assay.cli import main
from assay.errors import UsageError
from assay.papers.data.s107_r_horizon import Chains, KeyNumber, composed, horizon, integers, r_horizon, whole
from assay.registry import build
from assay.tasks.making.maker import Maker, Model
from assay.tasks.making.task_file import read_tasks, write_tasks
from assay.tasks.making.work import Pipeline
from assay.types import Task, Verdict
from assay.verify.lists.boxed_answers import boxed_answers

pytestmark = pytest.mark.usefixtures("one_thread")


def problem(id: str, text: str, answer: int, key: int | None = None, **meta: object) -> Task:
    found = [k for k in integers(text) if key is None or k.value == key]
    return Task(id, text, str(answer), "math", meta={"key": list(found[0]), **meta} if found else dict(meta))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Ann has 12 apples and buys 7.", [12, 7]),
        ("Half of it is 3/4, or 0.5, or 50%, or 1,000.", []),
        ("Solve $x^2 + 5 = 2^{10}$ for x2.", [5]),
        ("Let f(3) = \\frac{1}{2} and -4.", []),
        ("A $12$ by $x_3$ field, 9 rows.", [12, 9]),
        ("Of 123456789012 stars 1234567890123 shine.", [123456789012]),
    ],
)
def test_integers_that_a_variable_can_stand_for(text: str, values: list[int]) -> None:
    found = integers(text)
    assert [k.value for k in found] == values
    assert all(text[k.start : k.end] == str(k.value) for k in found)
    assert [k.formula for k in integers("\\(x\\)5 or $5$")] == [False, True], "a formula is over at its end"
    assert whole("-42") == -42 and whole(" 1,200 ") == 1200 and whole("4.5") is None and whole("x") is None


def test_a_chain_is_composed() -> None:
    """a_1 = 42 and 7 in the second: 42 - 35; a_2 = -3 and 5 in the third, in a formula: -3 + 8."""
    first, second = problem("a", "What is 6 times 7?", 42), problem("b", "Take 7 from 4.", -3, 7)
    third = problem("c", "Solve $x - 5 = 0$.", 5)
    made = composed([first, second, third])
    assert made.question.startswith("Problem 1: What is 6 times 7?\n\nProblem 2: ")
    assert "from the previous calculation, [variable2] = [answer1] - 35. Take [variable2] from 4." in made.question
    assert "[variable3] = [answer2] + 8. Solve $x - {[variable3]} = 0$." in made.question
    boxes = [f"Problem {k}: \\boxed{{[answer{k}]}}" for k in (1, 2, 3)]
    assert "[variablek]" in made.question and "[answerk]" in made.question, "what stands for what is said"
    assert made.question.endswith("### Final Answers\n" + "\n".join(boxes))
    assert made.reference == {"answers": ["42", "-3", "5"], "by": "last"} and made.kind == "boxed_answers"
    assert (made.id, made.meta["parents"]) == ("a+b+c", ("a", "b", "c")) and "expected" not in made.meta
    same = composed([first, problem("d", "Take 42 from 50.", 8, 42)], "all")
    assert "[variable2] = [answer1] + 0." in same.question and same.reference["by"] == "all"


def test_which_boxes_are_read() -> None:
    final = "so \\boxed{1}, \\boxed{2}\n### Final Answers\nProblem 1: \\boxed{42}\nProblem 2: \\boxed{9}"
    assert boxed_answers(final, 2) == ["42", "9"]
    assert boxed_answers(final, 3) == ["2", "42", "9"] and boxed_answers(final, 4) == ["1", "2", "42", "9"]
    assert boxed_answers("\\boxed{1} \\boxed{42} \\boxed{9}", 2) == ["42", "9"], "three for two: the last two"
    assert boxed_answers("\\boxed{42}", 2) is None and boxed_answers("\\boxed{1}\\boxed{2}", 2) == ["1", "2"]
    assert boxed_answers("\\boxed{\\frac{1}{2}} \\boxed{3 \\boxed{4}}", 2) == ["\\frac{1}{2}", "3 \\boxed{4}"]


def test_rewards_of_the_last_and_of_all() -> None:
    """For 42 and 10: (42, 9) earns neither, (41, 10) R_last alone."""

    def judged(response: str, **options: object) -> tuple[float, ...]:
        task, name = Task("t", "?", ["42", "10"], "boxed_answers"), "boxed_answers"
        return tuple(
            build("verify", {"name": name, "by": by, **options})(task, response).score for by in ("last", "all")
        )

    assert judged("\\boxed{42} \\boxed{9}") == (0, 0) and judged("\\boxed{41} \\boxed{10}") == (1, 0)
    assert judged("\\boxed{42} \\boxed{10}") == (1, 1) and judged("\\boxed{10}") == (0, 0)
    assert judged("\\boxed{84/2} \\boxed{10.0}") == (1, 1), "answers are compared as mathematics"
    assert judged("\\boxed{42} \\boxed{10}", think=True) == (0, 0)
    assert judged("<think>\\boxed{1}</think>\\boxed{42} \\boxed{10}", think=True) == (1, 1)
    table = Task("t", "?", {"answers": ["42", "10"], "by": "all"}, "boxed_answers")
    verdict = build("verify", "boxed_answers")(table, "\\boxed{41} \\boxed{10}")
    assert (
        verdict.score == 0 and verdict.parts == {"problem 1": 0.0, "problem 2": 1.0} and "problem 1" in verdict.feedback
    )
    assert build("verify", "boxed_answers")(Task("t", "?", "42", "boxed_answers"), "\\boxed{42}").passed is None
    with pytest.raises(UsageError, match="should be 'last' or 'all'"):
        build("verify", {"name": "boxed_answers", "by": "first"})


def test_an_answer_that_cannot_be_judged() -> None:
    """It leaves open what is not settled by a wrong one; the last alone does not wait for it."""

    def said(response: str, by: str, *answers: str) -> tuple[float, bool | None]:
        judge = build("verify", {"name": "boxed_answers", "by": by, "of": "number"})
        verdict = judge(Task("t", "?", list(answers), "boxed_answers"), response)
        return verdict.score, verdict.passed

    right, wrong = "\\boxed{1} \\boxed{2}", "\\boxed{1} \\boxed{3}"
    assert said(right, "all", "one", "2") == (0, None) and said(wrong, "all", "one", "2") == (0, False)
    assert said(right, "last", "one", "2") == (1, True) and said(right, "last", "1", "two") == (0, None)


def verdict_of(scores: tuple[float, ...]) -> Verdict:
    return Verdict(scores[-1], scores[-1] == 1, {f"problem {k}": s for k, s in enumerate(scores, 1)})


def test_expected_and_actual_accuracy() -> None:
    """Pass rates .8, .7, .5: 0.28 is expected."""
    rates = (0.8, 0.7, 0.5)
    chain = composed([problem(str(p), f"Take {k} away.", 9, pass_rate=p) for k, p in enumerate(rates, 3)])
    assert chain.meta["expected"] == pytest.approx(0.28)
    rows = [(1.0, 1.0, 1.0), (1.0, 0.0, 0.0), (1.0, 0.0, 1.0), (0.0, 1.0, 0.0), None]
    verdicts = [Verdict.abstain("away") if r is None else verdict_of(r) for r in rows]
    found = horizon([(chain, v) for v in verdicts])
    assert (found.all, found.last, found.first_errors) == (0.25, 0.5, {1: 1, 2: 2})
    assert horizon([(chain, v) for v in verdicts[:3]]).last == pytest.approx(2 / 3)
    assert found.gap == pytest.approx(0.03) and horizon([(chain, Verdict.wrong())]).first_errors == {1: 1}
    unknown = Verdict(1.0, True, {"problem 1": None, "problem 2": 1.0})
    assert horizon([(chain, unknown), (chain, Verdict.wrong())]) == horizon([(chain, Verdict.wrong())])
    with pytest.raises(UsageError, match="no judged response"):
        horizon([])


def test_the_judge_says_which_number_is_needed() -> None:
    text = "On page 3 Ann finds 12 coins and 12 notes; she gives 5 away. Is $7$ odd? How many are left?"
    told = Told(lambda prompt, j: "Yes... no." if "number 5" in prompt or "number 12" in prompt else "yes")
    step = Pipeline("one", [("key", KeyNumber())])
    tasks = [Task("a", text, "19"), Task("b", "Take 5.", "1")]
    task = Maker(step, {"writer": Model("m", told)}).make(tasks).tasks[0]
    assert task.meta["key"][2] == 5 and text[task.meta["key"][0] : task.meta["key"][1]] == "5"
    asked = [str(r.prompt) for r in told.asked[:4]]
    assert [int(p.split("number ")[1].split()[0]) for p in asked] == [3, 5, 12, 12] and "page [?] Ann" in asked[0]
    found = Maker(step, {"writer": Model("m", Told(lambda *_: "yes"))}).make(tasks)
    assert found.counts["key"].dropped == {"no number that it needs": 2}
    with pytest.raises(UsageError, match="fewer than two of the tasks do"):
        r_horizon().check([Task("a", "no number", "1"), Task("b", "Take 5.", "x"), Task("c", "Take 5.", "1")])
    with pytest.raises(UsageError, match="two problems or more"):
        Chains(1)
    with pytest.raises(UsageError, match="once or more"):
        Chains(rounds=0)
    assert {(r.sampling.max_tokens, r.sampling.temperature, r.n) for r in told.asked} == {(16, 0.0, 1)}
    own = Maker(Pipeline("one", [("key", KeyNumber(ask=False))]), {}).make(tasks)
    assert [t.meta["key"][2] for t in own.tasks] == [3, 5] and not own.counts["key"].dropped
    # No more than four numbers are asked about; nobody is asked unless a judge is to say.
    many = Task("m", "Of 1, 2, 3, 4, 5 and 6.", "1")
    told = Told(lambda prompt, j: "yes")
    Maker(step, {"writer": Model("m", told)}).make([many, tasks[1]])
    assert sum("number" in str(r.prompt) for r in told.asked) == 4 + 1
    usual = dict(r_horizon().steps)
    assert usual["key"] == KeyNumber() == KeyNumber(True, 4) and usual["compose"] == Chains() == Chains(
        2, 1, 0.25, "last"
    )
    assert usual["rate"].n == 8 and list(dict(r_horizon(tries=0, keys="first").steps)) == ["key", "compose"]


def test_chains_are_made_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = [Task(f"t{i}", f"Take {i} from 20.", str(20 - i), "math") for i in range(2, 11)]
    write_tasks(tmp_path / "seeds.jsonl", [*seeds, Task("word", "Say 5.", "five", "exact")])
    out = tmp_path / "chains.jsonl"
    words = ["S107", "keys=first", "tries=0", "n=3", "rounds=2", "by=all", "--seeds", str(tmp_path / "seeds.jsonl")]
    with pytest.raises(SystemExit) as stop:
        main(["tasks", "make", *words, "--out", str(out), "--json"])
    card = json.loads(capsys.readouterr().out)
    assert not stop.value.code and card["steps"][0]["dropped"] == {"its answer is no integer": 1}
    made = read_tasks(out)
    assert len(made) == 6 and {t.kind for t in made} == {"boxed_answers"} and len({t.id for t in made}) == 6
    assert all(t.reference["by"] == "all" and len(t.reference["answers"]) == 3 for t in made)
    told = Told(lambda prompt, j: f"\\boxed{{{18 if j % 2 else 0}}}" if "Take 2 " in prompt else "\\boxed{0}")
    models = {"writer": Model("m", told)}
    found = Maker(r_horizon(2, tries=4, keys="first", least=0.0), models).make(seeds)
    assert not found.tasks and found.counts["compose"].dropped == {"expected to be too hard": 4, "left over": 1}
    even = Maker(r_horizon(2, tries=0, keys="first"), {}).make(seeds[:8])
    assert len(even.tasks) == 4 and even.counts["compose"].dropped == {}
    assert found.counts["rate"].out == 9, "the rates are noted, and nobody is left out by them alone"


def test_a_run_learns_from_chains(tmp_path: Path) -> None:
    seeds = [problem(f"t{i}", f"{i}+1", i + 1, i) for i in range(2, 10)]
    write_tasks(tmp_path / "chains.jsonl", [composed(pair) for pair in pairwise(seeds)])
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 512}},
        tasks={"source": {"name": "made", "path": str(tmp_path / "chains.jsonl")}, "eval_size": 1, "eval_share": 0.3},
        warmup={"steps": 0},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
        rollout={"prompts": 2, "group": 2},
    )
    rows = [row for rows in tables(folder, "rollouts").values() for row in rows]
    assert len(rows) == 8 and all("[variable2] = [answer1] + 0. [variable2]+1" in row["prompt"] for row in rows)


@pytest.mark.slow
def test_a_policy_that_never_carries_on_learns_it_from_chains_alone() -> None:
    """sigmoid(-1) = 0.269 is what carrying begins with, up to the jitter; single problems leave it there."""
    knobs = {"spread": 0.0, "steps": 40, "prompts": 4}
    composed, single = learned("S107", "composed", **knobs), learned("S107", "single", **knobs)
    assert single["carrying"] == pytest.approx(0.2689414) and single["solving"] > 0.95
    assert composed["carrying"] > 0.85 and composed["all of 4"] > 0.5 > 0.1 > single["all of 4"]
    assert composed["rollouts"] == single["rollouts"] == 1280
