"""S077: both answer and chain, judges that fail, and the theorem against every group and every learning step."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from opinions import MUMBLE, NO, YES, Opinions

from assay import catalogue
from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.evaluate.chain_judge import as_chain_judge
from assay.papers.multimodal_eval.s077_cot_pass_k import (
    TEMPLATE,
    ChainJudge,
    Chains,
    CotPassK,
    RightChain,
    cot_pass_k,
    settle,
)
from assay.records.evaluation import Evaluation
from assay.records.sample import Sample
from assay.statistics.chain_advantages import chain_advantages, chain_drift
from assay.statistics.intervals import mean_interval
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.episodes import judge_episodes
from assay.verify.kind import KindVerifier


def sample(task: str, response: str, passed: bool | None) -> Sample:
    return Sample(task, "What is 2 + 2?", response, float(bool(passed)), passed, "", 3, "eos")


def test_opinions_settle_by_mode_and_unreadable_ones_do_not_count() -> None:
    assert [settle((True, False, True), m) for m in ("any", "majority", "all")] == [True, True, False]
    assert settle((True, None, None), "all") is True and settle((None, False, None), "any") is False
    assert settle((True, False)) is False, "half is no majority"
    assert [settle((None, None), m) for m in ("any", "majority", "all")] == [None] * 3
    assert settle(()) is None


def test_the_judge_is_asked_as_in_the_paper() -> None:
    """Three opinions on chains of right answers, of which most decide; the question and the response are shown."""
    judge = Opinions({"sound": [YES] * 5})
    plain = cot_pass_k(judge)
    assert (plain.mode, plain.every) == (CotPassK(plain.judge).mode, CotPassK(plain.judge).every) == ("majority", False)
    assert plain.judge == ChainJudge(judge) and as_chain_judge(judge) == ChainJudge(judge, 3)
    plain(Evaluation("e", 0, (sample("t", "sound 4", True),)))
    [asked] = judge.asked
    assert (asked.n, asked.sampling) == (3, Sampling(max_tokens=4096))
    assert "What is 2 + 2?" in asked.prompt and "sound 4" in asked.prompt
    made = cot_pass_k(judge, n=1, mode="all", every=True, template="{response}!", sampling=Sampling(7))
    assert made == CotPassK(ChainJudge(judge, 1, "{response}!", Sampling(7)), "all", True)
    # As a verifier it asks about the same chains, and answers are judged by each task's kind unless said otherwise.
    checked = plain.verifier()
    assert (checked.mode, checked.every, type(checked.answers)) == ("majority", False, KindVerifier)
    assert (RightChain(plain.judge).mode, RightChain(plain.judge).every) == ("majority", False)
    assert made.verifier(judge).answers is judge and made.verifier().every


def test_a_judge_is_whoever_made_the_response_unless_one_is_given() -> None:
    judge = Opinions({"sound": [YES, NO, YES]})
    assert ChainJudge().votes([("q", "sound")], judge) == [(True, False, True)]
    assert ChainJudge(judge).votes([("q", "sound")], Opinions({})) == [(True, False, True)]
    assert ChainJudge(judge, 1).votes([]) == [] and len(judge.asked) == 2
    with pytest.raises(UsageError, match="needs an engine"):
        ChainJudge().votes([("q", "sound")])
    with pytest.raises(UsageError, match="judge must be an engine"):
        cot_pass_k(None)


def test_what_becomes_of_each_sample() -> None:
    """Right with a right, a wrong and an unreadable chain; wrong; not judged."""
    votes = ((True,), (False,), (None,), None, None)
    rows = [sample("t", "x", passed) for passed in (True, True, True, False, None)]
    rows = [replace(s, feedback=f"of {i}") for i, s in enumerate(rows)]
    found = Chains(Evaluation("e", 0, tuple(rows)), votes).both()
    assert [s.passed for s in found.samples] == [True, False, None, False, None]
    assert [s.score for s in found.samples] == [1, 0, 0, 0, 0]
    unread = "the judge of the chain came to no verdict"
    assert [s.feedback for s in found.samples] == ["of 0", "of 1", unread, "of 3", "of 4"]
    split = Chains(Evaluation("e", 0, (rows[0],)), ((True, False, False),), "any")
    assert split.both().samples[0].passed is True and split.both("all").samples[0].passed is False


def test_shares_by_hand() -> None:
    """Both right answers of a have right chains, one of three of b: a share of 2/3, though of samples it is 3/5."""
    rows = [sample(task, "x", True) for task in "aabbbb"]
    votes = [(True, True), (True, None), (True, True), (False, True, False), (False,), (None, None)]
    found = Chains(Evaluation("e", 0, tuple(rows)), tuple(votes)).metrics()
    expected = mean_interval([1, 1 / 3], bounds=(0, 1))
    assert found == {
        "unjudged": pytest.approx(1 / 6),
        "unanimous": 0.8,
        "chain|answer": pytest.approx(2 / 3),
        "chain|answer/low": expected.low,
        "chain|answer/high": expected.high,
    }
    # One task alone has no interval over tasks. Wrong answers with chains give P(CC), and what leads to right answers.
    more = [*rows[:2], sample("a", "x", False)]
    one = Chains(Evaluation("e", 0, tuple(more)), (*votes[:2], (True,))).metrics()
    assert one == {
        "unjudged": 0.0,
        "unanimous": 1.0,
        "chain|answer": 1.0,
        "chain": 1.0,
        "answer|chain": pytest.approx(2 / 3),
    }


def test_wrong_chains_of_wrong_answers_are_told_where_every_one_is_judged() -> None:
    class Together:
        """Judges all at once, right where the text ends with 4."""

        def __call__(self, task: Task, response: str) -> Verdict:
            raise AssertionError("one by one")

        def map(self, pairs: Sequence[tuple[Task, str]]) -> list[Verdict]:
            return [Verdict.right() if text.endswith("4") else Verdict.wrong("not 4") for _, text in pairs]

    judge = Opinions({"sound": [YES] * 3, "lucky": [NO] * 3})
    verifier = cot_pass_k(judge, every=True).verifier(Together())
    found = verifier.map([(Task("t", "q"), text) for text in ("sound 4", "sound 5", "lucky 5", "lucky 4")])
    assert [v.parts for v in found] == [
        {"answer": 1.0, "chain": 1.0},
        {"answer": 0.0, "chain": 1.0},
        {"answer": 0.0, "chain": 0.0},
        {"answer": 1.0, "chain": 0.0},
    ]
    assert [(v.passed, v.score, v.feedback) for v in found] == [
        (True, 1.0, ""),
        (False, 0.0, "not 4"),
        (False, 0.0, "not 4"),
        (False, 0.0, "the reasoning is wrong"),
    ]


def test_only_right_answers_with_right_chains_count() -> None:
    """Ten samples, five right answers, two with a right chain: pass@5 from 5 of 10, CoT-Pass@5 from 2 of 10."""
    judge = Opinions({"sound": [YES, NO, YES], "lucky": [NO, NO, YES]})
    names = ["sound"] * 2 + ["lucky"] * 3 + ["sound"] * 5
    evaluation = Evaluation("e", 0, tuple(sample("t", f"{n} {i}", i < 5) for i, n in enumerate(names, start=0)))
    found = cot_pass_k(judge)(evaluation)
    assert found.both().pass_at(5)["t"] == pytest.approx(0.777778, abs=1e-6)
    assert evaluation.pass_at(5)["t"] == pytest.approx(1 - 1 / 252)
    assert found.both("any").pass_at(5) == evaluation.pass_at(5)
    assert found.both("all").pass_at(5)["t"] == 0
    assert found.metrics()["chain|answer"] == pytest.approx(0.4) and found.metrics()["unanimous"] == 0
    # Wrong answers are not asked about: they cannot count.
    assert len(judge.asked) == 5 and all(r.n == 3 for r in judge.asked)
    assert "answer|chain" not in found.metrics()
    whole = cot_pass_k(judge, every=True)(evaluation).metrics()
    assert whole["chain"] == pytest.approx(0.7)
    assert (whole["answer|chain"], whole["answer|wrong chain"]) == (pytest.approx(2 / 7), 1.0)


def test_a_judge_that_fails_abstains_and_is_counted() -> None:
    judge = Opinions({"sound": [YES] * 3, "odd": [MUMBLE] * 3, "down": ["ERROR"] * 3, "half": ["ERROR", MUMBLE, NO]})
    rows = [sample("t", f"{n} x", True) for n in ("sound", "odd", "down", "half")] + [sample("t", "sound", None)]
    found = cot_pass_k(judge)(Evaluation("e", 0, tuple(rows)))
    assert [s.passed for s in found.both().samples] == [True, None, None, False, None]
    assert found.both().pass_at(1)["t"] == 0.5, "two of the five could be judged"
    worst, best = (found.both(unjudged=u).pass_at(1)["t"] for u in (False, True))
    assert (worst, best) == (pytest.approx(0.25), pytest.approx(0.75))
    assert found.metrics()["unjudged"] == 0.5 and found.both().metrics()["abstained"] == 0.6


def test_equal_questions_and_responses_are_asked_once_and_braces_are_text() -> None:
    judge = ChainJudge(Opinions({"{question}": [YES] * 3}))
    assert judge.votes([("q", "{question} a"), ("q", "{question} a")]) == [(True,) * 3] * 2
    [asked] = judge.engine.asked
    assert "{question} a" in asked.prompt


def test_the_judge_is_asked_for_what_the_paper_asks_for() -> None:
    """Appendix A.3: reasoning above the answer, step by step, faults in five kinds, and a box with yes or no."""
    kinds = ["error of calculation", "error of logic", "error of concept", "omission", "other)"]
    places = [TEMPLATE.index(word) for word in ("{question}", "{response}", "reasoning", "step by step", *kinds)]
    assert places == sorted(places)
    assert TEMPLATE.rindex(r"\boxed{yes}") < TEMPLATE.rindex(r"\boxed{no}")
    judge = ChainJudge(Opinions({"sound": [r"\boxed{yes}", r"none, so \boxed{yes}", r"\boxed{no}"]}))
    assert judge.votes([("q", "sound")]) == [(True, True, False)]


def test_shares_come_with_an_interval_over_tasks() -> None:
    rng = np.random.default_rng(0)
    right = rng.random((30, 8)) < rng.beta(0.5, 0.5, (30, 1))
    rows = tuple(sample(str(i), "x", True) for i in range(30) for _ in range(8))
    found = Chains(Evaluation("e", 0, rows), tuple((bool(x),) for x in right.ravel())).metrics()
    assert found["chain|answer"] == pytest.approx(right.mean())
    naive = 1.96 * right.std() / np.sqrt(right.size)
    assert found["chain|answer/high"] - found["chain|answer"] > naive, "samples of a task are alike"
    assert Chains(Evaluation("e", 0, ()), ()).metrics() == {}


def test_as_a_verifier() -> None:
    judge = Opinions({"sound": [YES] * 3, "lucky": [NO] * 3, "odd": [MUMBLE] * 3})

    def answers(task: Task, response: str) -> Verdict:
        if "?" in response:
            return Verdict.abstain("timed out")
        return Verdict.right() if response.endswith("4") else Verdict.wrong("expected 4")

    verifier = cot_pass_k(judge).verifier(answers)
    task = Task("t", "What is 2 + 2?")
    none = np.zeros(0, dtype=np.int64)
    texts = ["sound 4", "lucky 4", "odd 4", "sound 5", "sound ?"]
    found = judge_episodes(verifier, [(task, Episode(none, none, none > 0, None, t, "eos")) for t in texts])
    assert [v.passed for v in found] == [True, False, None, False, None]
    assert [v.score for v in found] == [1, 0, 0, 0, 0]
    assert found[1].parts == {"answer": 1.0, "chain": 0.0} and found[2].parts == {"answer": 1.0, "chain": None}
    assert found[3].parts == {"answer": 0.0} and found[3].feedback == "expected 4"
    assert len(judge.asked) == 3
    assert verifier(task, "lucky 4") == found[1]


def test_the_theorem_in_numbers() -> None:
    sound, flawed = chain_advantages(0.3, 0.9, 0.2)
    assert (sound, flawed) == (pytest.approx(0.996273, abs=1e-6), pytest.approx(-0.426974, abs=1e-6))
    assert 0.3 * sound + 0.7 * flawed == pytest.approx(0, abs=1e-12)
    assert chain_advantages(0.3, 0.5, 0.5) == (pytest.approx(0), pytest.approx(0))
    assert chain_advantages(0.3, 1.0, 1.0) == (0.0, 0.0)
    assert chain_drift(0.3, 0.9, 0.2) > 0 > chain_drift(0.3, 0.2, 0.9)
    # Groups of a size that grows come to the limit.
    assert chain_advantages(0.3, 0.9, 0.2, 400) == pytest.approx((sound, flawed), abs=5e-3)


def batch_of(rewards: Sequence[int]) -> Batch:
    none = np.zeros(1, dtype=np.int64)
    episodes = tuple(Episode(none[:0], none, none == 0, np.zeros(1), "", "eos") for _ in rewards)
    group = Group(Ask(Task("t", ""), len(rewards)), episodes, tuple(Verdict(r, bool(r)) for r in rewards))
    batch = Batch.from_groups([group], torch.float64)
    batch.rewards = torch.tensor(rewards, dtype=torch.float64)
    return batch


@pytest.mark.parametrize(("p", "alpha", "beta", "size"), [(0.3, 0.9, 0.2, 4), (0.6, 0.1, 0.8, 3), (0.5, 1.0, 0.0, 2)])
def test_the_finite_group_is_the_mean_over_every_group(p: float, alpha: float, beta: float, size: int) -> None:
    """Every outcome of (chain, answer) of every response, through the credit that trains."""
    kinds = [(1, 1, p * alpha), (1, 0, p * (1 - alpha)), (0, 1, (1 - p) * beta), (0, 0, (1 - p) * (1 - beta))]
    total = {1: 0.0, 0: 0.0}
    for rows in itertools.product(kinds, repeat=size):
        chance = float(np.prod([w for *_, w in rows]))
        if chance:
            advantage = (
                GRPO(epsilon=0.0)(batch_of([r for _, r, _ in rows]))[0, 0] if len({r for _, r, _ in rows}) > 1 else 0
            )
            total[rows[0][0]] += chance * float(advantage)
    expected = chain_advantages(p, alpha, beta, size)
    assert (total[1] / p, total[0] / (1 - p)) == pytest.approx(expected, abs=1e-9)
    assert p * expected[0] + (1 - p) * expected[1] == pytest.approx(0, abs=1e-12)
    assert (expected[0] > expected[1]) == (alpha > beta)


@pytest.mark.slow
def test_learning_follows_the_sign() -> None:
    """The lab's bandit, shortened: P(right chain) rises for alpha > beta and falls for alpha < beta."""
    from pathlib import Path

    from assay.lab.settings.reasoning.chains import Setting

    def final(alpha: float, beta: float) -> float:
        arm: dict[str, Any] = {"name": "grpo", "setting": {"alpha": alpha, "beta": beta}}
        return Setting(steps=40, lr=0.3).run(arm, 0, Path())["sound"]

    assert final(0.9, 0.2) > 0.7 and final(0.2, 0.9) < 0.1


def test_what_makes_no_sense_is_refused() -> None:
    judge = Opinions({})
    with pytest.raises(UsageError, match="judge must be an engine"):
        cot_pass_k(3)
    with pytest.raises(UsageError, match="1 vote or more"):
        cot_pass_k(judge, n=0)
    with pytest.raises(UsageError, match="shows the"):
        cot_pass_k(judge, template="{question}")
    with pytest.raises(UsageError, match="probabilities"):
        chain_advantages(1.2, 0.5, 0.5)
    with pytest.raises(UsageError, match="at least 2"):
        chain_advantages(0.2, 0.5, 0.5, 1)
    assert catalogue.find("S077").factory is cot_pass_k
