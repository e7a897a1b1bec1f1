"""S128: one among many by hand, scores of steps in one number, best of n and its curve, and the command."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from marked import Critic
from scipy import stats

from assay import catalogue, cli
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.inference.sampling.best_of_n import BestOfN
from assay.inference.scoring.scorers import BySteps, Reduce, reduced
from assay.inference.supervision.one_of_many import choice_of_wins, one_of_many
from assay.inference.supervision.quality import among
from assay.lab.settings import load
from assay.papers.judges.s128_rewardmath import WRONG, best_of_n_curve, by_pairs, validity
from assay.rewards.judges.pair_judge import PairJudge
from assay.rewards.step_models.examples import StepExample, StepPair, read_examples
from assay.signals.steps import Steps
from assay.types import Task

NINE = (0.1, 0.2, 0.9, 0.3, 0.4, 0.5, 0.6, 0.7, 0.05)
T = Task("t", "q")


def test_worked_numbers() -> None:
    found = one_of_many([([0.8], NINE)])
    assert (found.strict.value, found.tied.value, found.mrr.value) == (0, 0, 0.5)
    assert (found.problems, found.wrong) == (1, 9) and WRONG == 9
    level = one_of_many([([0.8], [0.8, 0.2, 0.1]), ([0.8], [0.8, 0.9, 0.1]), ([0.9], [0.2])])
    assert (level.strict.value, level.tied.value) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert level.mrr.value == pytest.approx((1 / 2 + 1 / 3 + 1) / 3) and level.wrong == pytest.approx(7 / 3)
    # Of several right ones the worst has to be above, and the best has the rank.
    several = one_of_many([([0.8, 0.3], [0.5, 0.9]), ([0.8, 0.3], [0.5])])
    assert (several.strict.value, several.tied.value, several.mrr.value) == (0, 0, 0.75)
    assert one_of_many([([1.0], [0.0]), ([0.0], [1.0])]).strict.low == pytest.approx(stats_wilson(1, 2), abs=1e-9)
    for bad in ([], [([], [1.0])], [([1.0], [])], [([1.0], [0.0]), ([], [1.0])]):
        with pytest.raises(ValueError, match="scores of what is right and what is wrong"):
            one_of_many(bad)  # type: ignore[arg-type]


def stats_wilson(k: int, n: int) -> float:
    return float(stats.binomtest(k, n).proportion_ci(method="wilson").low)


def test_nine_are_harder_than_one() -> None:
    assert pytest.approx(0.387, abs=1e-3) == 0.9**9 and pytest.approx(0.134, abs=1e-3) == 0.8**9
    wins = np.random.default_rng(0).random((20000, 9)) < 0.9
    found = one_of_many([choice_of_wins(row) for row in wins.tolist()])
    assert found.strict.value == pytest.approx(0.387, abs=0.01)


def test_a_judge_of_pairs_has_to_win_them_all() -> None:
    assert choice_of_wins([True] * 9) == ([10.0], [1.0] * 9)
    assert choice_of_wins([True, False, True]) == ([3.0], [1.0, 5.0, 1.0])
    one = one_of_many([choice_of_wins([True] * 7 + [False] * 2)])
    assert (one.strict.value, one.tied.value, one.mrr.value) == (0, 0, pytest.approx(1 / 3))

    class Likes(PairJudge):
        """Prefers the longer, with a liking for the first place; cannot be read on a question, is unsure on another."""

        def preferences(self, items: Any) -> list[float | None]:
            sure = {"q": 0.3, "unsure": 0.1}
            return [None if q == "?" else 0.6 + sure[q] * np.sign(len(a) - len(b)) - 1e-9 for q, a, b in items]

    judge = Likes(Critic(lambda p, k: ""))
    assert judge.both_orders([("q", "aa", "b"), ("?", "a", "b"), ("q", "a", "bb")]) == [
        pytest.approx(0.8),
        None,
        pytest.approx(0.2),
    ]
    asked = [("q", "aaa", ["b", "bb"]), ("q", "aa", ["b", "bbb"]), ("?", "aa", ["b"]), ("q", "aa", ["bb", "b"])]
    found = by_pairs(judge, asked)
    assert (found.problems, found.strict.value) == (3, pytest.approx(1 / 3))  # level is no win
    assert found.mrr.value == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)
    assert by_pairs(judge, [("q", "aaa", ["b", "bb"]), ("q", "a", ["bb"])]).strict.value == 0.5
    assert by_pairs(judge, [("unsure", "aa", ["b"])]).strict.value == 1
    with pytest.raises(UsageError, match="cannot be read on all pairs"):
        by_pairs(judge, [("?", "a", ["b"])])


@pytest.mark.parametrize(
    ("how", "value"),
    [
        ("min", 0.4),
        ("max", 0.9),
        ("product", 0.288),
        ("geometric", 0.660385),
        ("mean", 0.7),
        ("mean_logit", 0.742567),
        ("mean_odds", 4.555556),
        ("last", 0.4),
    ],
)
def test_scores_of_steps_in_one_number(how: Reduce, value: float) -> None:
    assert reduced([0.9, 0.8, 0.4], how) == pytest.approx(value, abs=1e-6)


def test_what_is_sure_has_odds() -> None:
    assert reduced([1.0, 0.0], "mean_logit") == pytest.approx(0.5)
    assert reduced([1.0], "mean_odds") == 2**40 - 1
    for how in ("product", "geometric", "mean_logit", "mean_odds"):
        with pytest.raises(UsageError, match="is of probabilities"):
            BySteps(lambda task, steps: [], reduce=how, unit=False)  # type: ignore[arg-type]
    BySteps(lambda task, steps: [], reduce="mean", unit=False)


def test_a_tie_is_broken_by_the_answers() -> None:
    """Four of six responses are level at the top: one says 3, two say 5; 7, which most say, is not among them."""
    said = ["#### 7", "#### 3 ok", "#### 5 ok", "#### 7", "#### 5 ok", "ok", "#### 7"]
    engine = Critic(lambda p, k: said[k])

    def score(task: Task, text: str) -> float:
        return float("ok" in text)

    def answer(strategy: Any, n: int = 7) -> str | None:
        [found] = strategy([Task("t", "q", "5", kind="number")], engine, n, np.random.default_rng(0))
        return found.text

    made = catalogue.make("S128", scorer=lambda task, steps: [0.0 for _ in steps])
    assert isinstance(made, BestOfN) and isinstance(made.scorer, BySteps)
    assert (made.scorer.reduce, made.scorer.by, made.ties) == ("min", Steps("newline"), "majority")
    voted = replace(made, scorer=score)
    assert answer(voted) == "#### 5 ok" and answer(voted, 4) == "#### 3 ok"
    assert answer(BestOfN(score)) == "#### 3 ok" and BestOfN().ties == "first"
    low = replace(made, scorer=score, least=1.5)
    assert answer(replace(low, least=1.0)) == answer(replace(low, least=0.5)) == "#### 5 ok" and answer(low) is None
    assert answer(BestOfN(lambda task, text: None, least=0.5)) == "#### 7", "the first, where nothing has a score"
    own = catalogue.make("S128", scorer=lambda task, steps: [0.0 for _ in steps], sampling=Sampling(7))
    assert (own.sampling, made.sampling) == (Sampling(7), Sampling())
    # None of the best gives an answer.
    assert answer(replace(made, scorer=lambda task, text: float(text == "ok"))) == "ok"


def test_the_curve_bends_down() -> None:
    by_hand = best_of_n_curve([[1, 2, 3], [3, 2, 1]], [[0, 1, 0], [0.5, 1, 0]], [1, 2, 3])
    assert [b.n for b in by_hand] == [1, 2, 3]
    assert [b.divergence for b in by_hand] == pytest.approx([0, 0.193147, 0.431946], abs=1e-6)
    assert best_of_n_curve([range(16)], [range(16)], [16])[0].divergence == pytest.approx(1.835089, abs=1e-6)
    assert [b.proxy for b in by_hand] == pytest.approx([2, 8 / 3, 3])
    assert [b.gold for b in by_hand] == pytest.approx([(1 / 3 + 1 / 2) / 2, (1 / 3 + 2 / 3) / 2, 0.25])
    rng = np.random.default_rng(0)
    gold = rng.standard_normal((400, 256))
    proxy = gold + 1.5 * rng.standard_t(2, gold.shape)
    found = best_of_n_curve(proxy, gold, [1, 4, 16, 64, 256])
    assert [b.gold for b in found] == pytest.approx([-0.01, 0.39, 0.47, 0.27, 0.18], abs=0.12)
    assert [b.proxy for b in found] == sorted(b.proxy for b in found)
    assert found[2].gold > found[4].gold


def test_validity() -> None:
    assert validity([0.9, 0.5, 0.7, 0.1], [0.8, 0.3, 0.2, 0.1]) == pytest.approx(0.8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(validity([1, 1, 1], [1, 2, 3])) and math.isnan(validity([1, 2, 3], [1, 1, 1]))
    assert validity([1, 2, 3], [3, 2, 1]) == -1 == validity([0, 0.5, 1], [5, 4, 3])
    assert validity([1, 2, 3], [0, 0.5, 1]) == 1
    with pytest.raises(ValueError, match="three or more"):
        validity([1, 2], [1, 2])


def pair(better: str, worse: str, task: Task = T) -> StepPair:
    return StepPair(StepExample(task, tuple(better)), StepExample(task, tuple(worse)), 0)


def test_pairs_of_one_solution_are_a_choice() -> None:
    pairs = [pair("ab", "x"), pair("ab", "yz"), pair("c", "x"), pair("c", "y", Task("u", "q"))]
    found = among(pairs, [[0.9, 0.6], [0.7], [0.9, 0.6], [0.5, 0.8], [0.1], [0.2], [0.1], [0.2]])
    assert set(found) == {"min", "product", "mean", "sum", "last", "max", "geometric", "mean_logit", "mean_odds"}
    assert (found["min"].problems, found["min"].wrong, found["min"].strict.value) == (1, 2, 0)
    assert found["mean"].strict.value == 1 and found["last"].mrr.value == pytest.approx(1 / 3)
    assert list(among([pair("a", "x"), pair("a", "y")], [[0.9], [0.1], [0.9], [0.2]])) == ["last"]
    assert among([pair("a", "x"), pair("a", "y")], [[0.9], [0.1], [0.9], None]) == {}
    assert among(pairs[2:], [[0.1], [0.2]] * 2) == {}


def test_the_command_says_how_often_it_is_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A scorer by length of three problems with nine wrong solutions each; of one problem a wrong one is longer."""
    (tmp_path / "longer.py").write_text("def longer(task, steps):\n    return [len(s) / 50 - 1 for s in steps]\n")
    path = tmp_path / "rows.jsonl"
    rows = [
        {"id": str(t), "prompt": "q", "chosen": ["a" * 20, "b" * 30], "rejected": ["c" * (k + 1), "d" * 29], "fork": 0}
        for t in range(3)
        for k in range(WRONG)
    ]
    rows[4]["rejected"] = ["c" * 40, "d" * 30]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as stopped:
            cli.main(["eval", f"{tmp_path}/longer.py:longer", "--steps", str(path), *more])
        out, err = capfd.readouterr()
        assert stopped.value.code == 0, err
        if not more:
            assert "one right solution among 9 wrong ones, of 3 problems" in out + err
            assert "mean_odds" in out + err and "0.667" in out + err
            continue
        found = json.loads(out)["among"]
        assert found["min"]["strict"]["value"] == pytest.approx(2 / 3) and found["min"]["wrong"] == 9
        assert found["last"]["strict"]["value"] == pytest.approx(2 / 3) and found["last"]["tied"]["value"] == 1


def published(problem: int, kind: str, *steps: str) -> dict[str, Any]:
    """A row as the authors' files have it."""
    more = {"answer": "42", "subject": "Algebra", "level": 1, "solution_reference": "somebody"}
    return {
        "problem": f"p{problem}",
        "problem_id": problem,
        "eval_solution": list(steps),
        "solution_type": kind,
        **more,
    }


def test_its_problems_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A right solution is put against each wrong one of its problem; the benchmark itself comes from the hub."""
    rows = [published(0, "chosen", "a", "b"), published(1, "rejected", "x"), published(0, "rejected", "c")]
    rows += [published(1, "chosen", "y"), published(1, "rejected", "z", "w")]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    found = [row for row in read_examples(path) if isinstance(row, StepPair)]
    assert [(p.better.task.id, p.better.task.prompt, p.better.steps, p.worse.steps, p.fork) for p in found] == [
        ("0", "p0", ("a", "b"), ("c",), 0),
        ("1", "p1", ("y",), ("x",), 0),
        ("1", "p1", ("y",), ("z", "w"), 0),
    ]
    for wrong in (rows[:1], [{**rows[0], "solution_type": "?"}]):
        path.write_text(json.dumps(wrong))
        with pytest.raises(UsageError, match="a row has prompt, completions and labels"):
            read_examples(path)
    asked = []
    monkeypatch.setattr("assay.tasks.files.huggingface.load", lambda *place: asked.append(place) or rows)
    monkeypatch.chdir(tmp_path)
    assert len(read_examples(Path("rewardmath"))) == 3 and asked == [("RewardMATH/RewardMATH", None, "train", None)]


def test_the_setting() -> None:
    """The better a model sees the more of either; the benchmark of nine is lower than of one."""
    setting = load("reward_models", {"models": 5, "problems": 60, "tasks": 20})
    many, one = (setting.run({"wrong": n}, 0, Path()) for n in (WRONG, 1))
    assert many["benchmark"] < one["benchmark"] - 0.2 and many["gold"] == one["gold"] > 0.4
    assert -1 <= many["validity"] <= 1
