"""Accuracy against cost: counting, pairing, sharing of samples, files and the page."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay import cli
from assay.engines.base import Request, Sampling
from assay.engines.recall.remembering import Remembering
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import RunError, UsageError
from assay.evaluate.strategies.comparison import Comparison, Outcome, Point, _judge, compare_strategies
from assay.evaluate.strategies.folder import StrategyFolder
from assay.inference.base import Answer
from assay.inference.named import make_strategies
from assay.policies.tabular import TabularPolicy, Tree
from assay.report.cost_chart import log_ticks
from assay.report.strategies import COLUMNS, render, table, write
from assay.statistics.pass_at_k import wilson
from assay.types import Task, Verdict

TREE = Tree.uniform(3, 2, rewards=[0, 1, 0, 0, 0, 1, 1, 0, 0])
POLICY = TabularPolicy.random(TREE, seed=3)
TASKS = [Task(str(i), "", kind="tabular") for i in range(40)]
VERIFIER = TabularVerifier(TREE)


class Counted(TabularEngine):
    sampled = 0

    def generate(self, requests: Any) -> Any:
        self.sampled += sum(r.n for r in requests)
        return super().generate(requests)


def compare(names: list[Any], budgets: list[Any], engine: Any = None, **options: Any) -> Comparison:
    made = make_strategies(names, sampling=Sampling(2))
    return compare_strategies(
        TASKS, engine or TabularEngine(POLICY), options.pop("verifier", VERIFIER), made, budgets, **options
    )


def test_points_count_what_the_strategies_did() -> None:
    found = compare([{"name": "sample"}, {"name": "best_of_n", "scorer": VERIFIER}], [1, 4], model="tabular")
    assert [(p.strategy, p.budget) for p in found.points] == [("sample", "1"), ("best_of_n", "1"), ("best_of_n", "4")]
    assert [p.tokens.value for p in found.points] == [2, 2, 8]
    # Under the verifier, best of one is the sample itself, and best of four never worse: they share their samples.
    one, best_one, best_four = (p.values() for p in found.points)
    assert one == best_one
    assert all(best_four[t] >= one[t] for t in one)
    right = sum(one.values())
    accuracy = found.points[0].accuracy
    assert accuracy is not None
    assert (accuracy.low, accuracy.high) == pytest.approx(wilson(right, 40))
    rows = found.rows()
    assert rows[0]["difference"] is None
    assert rows[1]["verdict"] == "not told apart"
    assert rows[2]["verdict"] == "better"
    assert rows[2]["difference"]["value"] == pytest.approx(np.mean([best_four[t] - one[t] for t in one]))


def test_what_strategies_have_in_common_is_sampled_once() -> None:
    engine = Counted(POLICY)
    compare(["sample", "majority", "best_of_n", "weighted_majority"], [1, 4, 16], engine)
    assert engine.sampled == 16 * len(TASKS)


def test_the_result_does_not_depend_on_which_strategies_are_compared() -> None:
    alone = compare(["majority"], [4]).points[0]
    among = compare(["best_of_n", "majority"], [1, 4, 16])
    assert next(p for p in among.points if (p.strategy, p.budget) == ("majority", "4")) == alone


def test_remembered_responses_are_the_first_of_a_longer_request() -> None:
    engine = Remembering(Counted(POLICY))
    eight, two = (Request("", n, Sampling(2), 5) for n in (8, 2))
    [many], [few] = engine.generate([eight]), engine.generate([two])
    assert few == many[:2]
    assert [e.text for e in TabularEngine(POLICY).generate([two])[0]] == [e.text for e in few]
    other = engine.generate([Request("", 2, Sampling(2), 6), Request("0", 1, Sampling(2), 5)])
    assert len(other[1][0].tokens) == 1
    assert engine.sampled == 8 + 3


def test_abstentions_are_neither_right_nor_wrong_and_failed_verdicts_leave() -> None:
    outcomes = [Outcome(str(i), True, False, 10, 4) for i in range(55)]
    outcomes += [Outcome(str(55 + i), False, False, 10, 4) for i in range(20)]
    outcomes += [Outcome(str(75 + i), None, True, 20, 4, 1) for i in range(25)]
    outcomes += [Outcome(str(100 + i), None, False, 50, 4) for i in range(3)]
    row = Point("s", "1", tuple(outcomes)).summary()
    assert row["tasks"] == 100
    assert row["accuracy"]["value"] == 0.55
    # Each answer is one trial, so that the interval is Wilson's; that of right less wrong is near the normal one.
    assert row["precision"]["value"] == pytest.approx(55 / 75)
    assert (row["precision"]["low"], row["precision"]["high"]) == pytest.approx(wilson(55, 75))
    deviation = float(np.std(np.repeat([1.0, -1.0, 0.0], (55, 20, 25)), ddof=1)) / 10
    assert row["honesty"]["value"] == pytest.approx(0.35)
    assert (row["honesty"]["low"], row["honesty"]["high"]) == pytest.approx(
        (0.35 - 1.96 * deviation, 0.35 + 1.96 * deviation), abs=0.02
    )
    assert row["answered"] == 0.75
    assert (row["undecided"], row["unscored"], row["scoring"]) == (3, 25, 4)
    assert row["tokens"]["value"] == pytest.approx((75 * 10 + 25 * 20 + 3 * 50) / 103)


def test_a_verifier_that_abstains_everywhere_leaves_no_accuracy() -> None:
    found = compare(["sample"], [1], verifier=lambda task, response: Verdict.abstain("down"))
    assert found.rows()[0]["accuracy"] is None
    assert "could not judge" in render(found)


def test_json_and_page(tmp_path: Path) -> None:
    odd = {"name": "majority", "least": 0.9}
    found = compare([{"name": "sample"}, odd, {"name": "self_consistency"}], ["4t", 4], model="<b>m & m</b>")
    assert Comparison.from_json(found.to_json()) == found
    paths = write(found, tmp_path / "out")
    assert json.loads(paths[0].read_text())["schema"] == "assay/strategies/1"
    page = paths[1].read_text()
    assert page == render(found)
    assert "<b>m" not in page and "&lt;b&gt;m &amp; m" in page
    for outside in ("<script", "http://", "https://", "src="):
        assert outside not in page
    assert page.count("<polyline") == 2
    assert all(len(row) == len(COLUMNS) for row in table(found))
    with pytest.raises(RunError):
        Comparison.from_json('{"schema": "other"}')


def test_refusals() -> None:
    with pytest.raises(UsageError):
        compare([], [1])
    with pytest.raises(UsageError):
        compare(["sample"], [])
    with pytest.raises(UsageError, match="same id"):
        compare_strategies([TASKS[0]] * 2, TabularEngine(POLICY), VERIFIER, make_strategies("sample"), [1])

    def few(tasks: Any, engine: Any, budget: Any, rng: Any) -> list[Answer]:
        return []

    with pytest.raises(RunError, match="0 answers"):
        compare_strategies(TASKS, TabularEngine(POLICY), VERIFIER, {"few": few}, [1])


def test_ticks_of_a_logarithmic_axis() -> None:
    assert log_ticks(3, 300) == [5, 10, 20, 50, 100, 200]
    assert log_ticks(1, 1e6) == [10.0**k for k in range(7)]


RECIPE = """
[model]
source = "nano"
nano = {hidden = 16, layers = 1, heads = 2, context = 64, alphabet = "0123456789+=\\n"}
[tasks]
eval_size = 6
source = {name = "arithmetic", digits = 1}
[rollout]
max_tokens = 6
max_rows = 8
"""


def called(*arguments: str) -> int:
    """Return the exit code of the command."""
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    return int(str(ended.value.code))


class Interrupted(Exception):
    """Stands for whatever ends a process."""


def test_a_comparison_that_was_ended_goes_on_with_what_it_has(tmp_path: Path) -> None:
    folder = StrategyFolder.create(tmp_path / "kept", {"budgets": [2, 4]})
    names: list[Any] = ["sample", "majority"]
    whole = compare(names, [2, 4], chunk=16)

    def stop(done: int, total: int) -> None:
        if done == 5:
            raise Interrupted

    with pytest.raises(Interrupted):
        compare(names, [2, 4], chunk=16, kept=folder, progress=stop)
    assert folder.load(0) is not None and folder.load(16) is None
    rest = Counted(POLICY)
    assert compare(names, [2, 4], rest, chunk=16, kept=StrategyFolder.create(folder.path, {"budgets": [2, 4]})) == whole
    # The 24 tasks that are left, four responses each: the smaller budgets are part of these.
    assert rest.sampled == 4 * 24
    none = Counted(POLICY)
    assert compare(names, [2, 4], none, chunk=16, kept=folder) == whole and not none.sampled


def test_another_comparison_and_a_damaged_part_are_named(tmp_path: Path) -> None:
    folder = StrategyFolder.create(tmp_path / "kept", {"budgets": [2], "tasks": {"mark": "a"}})
    with pytest.raises(UsageError, match=r"tasks\.mark: 'a' -> 'b'"):
        StrategyFolder.create(folder.path, {"budgets": [2], "tasks": {"mark": "b"}})
    folder.store(0, [[Outcome("0", True, False, 3)]])
    assert folder.load(0) == [[Outcome("0", True, False, 3)]]
    folder.part(0).write_text("[[{")
    with pytest.raises(RunError, match=r"part-00000\.json is damaged"):
        folder.load(0)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes").write_text("mine")
    with pytest.raises(UsageError, match="holds something else"):
        StrategyFolder.create(tmp_path / "other", {})


def test_the_same_command_goes_on_and_a_finished_one_is_shown_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, out = tmp_path / "r.toml", tmp_path / "out"
    recipe.write_text(RECIPE)
    asked = ["eval", str(recipe), "--strategy", "sample,majority", "--budgets", "1,2", "--out", str(out)]
    assert called(*asked) == 0
    first = capfd.readouterr().out
    found = (out / "strategies.json").read_text()
    # What the loss of a part costs is that part: the rest is not sampled again.
    (out / "strategies.json").unlink()
    (lost := sorted((out / "parts").iterdir())[-1]).unlink()
    judged: list[str] = []

    def noted(tasks: Any, *rest: Any) -> list[Outcome]:
        judged.extend(t.id for t in tasks)
        return _judge(tasks, *rest)

    monkeypatch.setattr("assay.evaluate.strategies.comparison._judge", noted)
    assert called(*asked) == 0
    assert capfd.readouterr().out == first and (out / "strategies.json").read_text() == found
    assert lost.is_file() and len(set(judged)) == 2
    assert called("eval", str(out)) == 0
    assert capfd.readouterr().out == first
    for wrong, words in (
        ([*asked[:-3], "1,4", *asked[-2:]], "holds a comparison of strategies with other settings (budgets"),
        ([*asked, "--samples", "4"], "--samples would say nothing"),
        ([*asked, "--metrics", "all", "--scorer", "judge"], "--scorer, --metrics would say nothing"),
        ([*asked, "--verifier", "no_such"], "no_such"),
        (["eval", str(recipe), "--budgets", "1,4"], "--budgets is for --strategy"),
        (["eval", str(out), "tasks.eval_size=3"], "it is shown as it is"),
    ):
        assert called(*wrong) == 2, wrong
        assert words in capfd.readouterr().err


def test_an_interrupt_says_how_to_go_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*rest: Any) -> Any:
        raise KeyboardInterrupt

    recipe, out = tmp_path / "r.toml", tmp_path / "out"
    recipe.write_text(RECIPE)
    monkeypatch.setattr("assay.evaluate.strategies.comparison._judge", interrupted)
    assert called("eval", str(recipe), "--strategy", "sample", "--out", str(out)) == 130
    assert f"what was found is in {out}, and the same command goes on" in capfd.readouterr().err


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from assay.cli.strategies import command

    recipe = tmp_path / "r.toml"
    recipe.write_text(
        """
[model]
source = "nano"
nano = {hidden = 16, layers = 1, heads = 2, context = 64, alphabet = "0123456789+=\\n"}
[tasks]
eval_size = 4
source = {name = "arithmetic", digits = 1}
[rollout]
max_tokens = 6
"""
    )
    names = "sample,majority,beam(step=2),mcts,refine(template='{draft}{question}'),best_of_n(scorer=verifier)"
    assert command(str(recipe), (), names, "1,3", tmp_path / "out", False) == 0
    printed = capsys.readouterr().out
    assert "best_of_n(scorer=verifier)" in printed
    found = Comparison.from_json((tmp_path / "out" / "strategies.json").read_text())
    assert len(found.points) == 11 and all(len(p.outcomes) == 4 for p in found.points)
    assert command(str(recipe), (), "greedy", "8t", None, True) == 0
    assert Comparison.from_json(capsys.readouterr().out).points[0].tokens.value <= 8
    for strategy, budgets, out in (("sample", "", None), ("sampel", "1", None), ("sample", "1", tmp_path / "x.html")):
        with pytest.raises(UsageError):
            command(str(recipe), (), strategy, budgets, out, False)


def test_strategies_draw_from_a_bank_that_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.engines.hf import HFEngine

    made: list[int] = []
    generate = HFEngine.generate

    def counted(self: HFEngine, requests: Any) -> Any:
        made.append(sum(r.n for r in requests))
        return generate(self, requests)

    monkeypatch.setattr(HFEngine, "generate", counted)
    recipe, bank = tmp_path / "r.toml", tmp_path / "bank"
    recipe.write_text(RECIPE)
    drawn = ["eval", str(recipe), "--bank", str(bank), "--samples", "6", "--budgets", "1,4"]
    assert called(*drawn, "--strategy", "sample,majority", "--out", str(tmp_path / "a")) == 0
    assert sum(made) == 6 * 6
    made.clear()
    assert called(*drawn, "--strategy", "majority,best_of_n", "--out", str(tmp_path / "b")) == 0
    assert not made
    a, b = (Comparison.from_json((tmp_path / x / "strategies.json").read_text()) for x in "ab")
    assert [p for p in a.points if p.strategy == "majority"] == [p for p in b.points if p.strategy == "majority"]
    # Greedy decoding is not what is on record, and more responses than it has are asked of the model.
    assert called(*drawn, "--strategy", "greedy") == 0 and sum(made) == 6
    assert called(*drawn[:-1], "8", "--strategy", "majority") == 0 and sum(made) == 6 + 8 * 6
    made.clear()
    # Seven to each task are others than six.
    assert called("eval", str(recipe), "--bank", str(bank), "--samples", "7", "--strategy", "sample") == 0
    assert sum(made) == 7 * 6 and len(list(bank.iterdir())) == 2


def test_a_bank_is_for_strategies_and_has_responses(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(RECIPE)
    assert called("eval", str(recipe), "--bank", str(tmp_path / "bank")) == 2
    assert "--bank is for --strategy" in capfd.readouterr().err
    assert called("eval", str(recipe), "--strategy", "sample", "--bank", str(tmp_path), "--samples", "0") == 2
    assert "none to draw from" in capfd.readouterr().err


def drawn(rng: np.random.Generator, strategies: int, budgets: int, tasks: int, gain: float = 0.0) -> Comparison:
    """Strategies that answer tasks of unequal difficulty alike, but for a gain of the last."""
    p = rng.beta(1, 1, tasks)
    points = []
    for s in range(strategies):
        for b in range(budgets):
            right = rng.random(tasks) < np.minimum(p + (gain if s == strategies - 1 else 0), 1)
            outcomes = tuple(Outcome(str(i), bool(x), False, 5) for i, x in enumerate(right))
            points.append(Point(f"s{s}", str(b), outcomes))
    return Comparison("m", tuple(points))


@pytest.mark.slow
@pytest.mark.parametrize(("strategies", "budgets", "tasks"), [(2, 1, 100), (6, 4, 100), (11, 2, 20)])
def test_equal_strategies_are_told_apart_in_at_most_5_percent_of_comparisons(
    strategies: int, budgets: int, tasks: int
) -> None:
    rng, comparisons = np.random.default_rng([strategies, tasks]), 200
    told = sum(
        any(row["verdict"] in ("better", "worse") for row in drawn(rng, strategies, budgets, tasks).rows())
        for _ in range(comparisons)
    )
    # 5% of 200, and two standard errors of a rate that is just 5%.
    assert told <= comparisons * (0.05 + 2 * math.sqrt(0.05 * 0.95 / comparisons))


def test_a_better_strategy_is_told_apart() -> None:
    rng, others = np.random.default_rng(0), 0
    for _ in range(10):
        rows = drawn(rng, 4, 2, 200, gain=0.3).rows()
        assert [r["verdict"] for r in rows[-2:]] == ["better", "better"]
        others += any(r["verdict"] in ("better", "worse") for r in rows[:-2])
    assert others <= 2


def test_the_p_value_is_mcnemars_with_holms_correction() -> None:
    """9 tasks right by the second alone and 1 by the first alone: 2 (1 + 10) / 2^10; two of them: twice that."""
    first = [True] * 1 + [False] * 9 + [True, False] * 10
    second = [not x for x in first[:10]] + first[10:]

    def point(name: str, right: list[bool]) -> Point:
        return Point(name, "1", tuple(Outcome(str(i), x, False, 1) for i, x in enumerate(right)))

    alone = Comparison("m", (point("a", first), point("b", second))).rows()
    assert alone[0]["p"] is None and alone[1]["p"] == pytest.approx(22 / 1024)
    assert alone[1]["verdict"] == "better"
    same = Comparison("m", (point("a", first), point("b", second), point("c", first)))
    assert same.adjusted() == [None, pytest.approx(44 / 1024), 1.0]
    none = Comparison("m", (point("a", first), Point("b", "1", (Outcome("other", True, False, 1),))))
    assert none.adjusted() == [None, None] and none.rows()[1]["verdict"] is None
