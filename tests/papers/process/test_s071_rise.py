"""RISE: which solutions are verified, what the gold grade is, what either kind earns, and what both teach."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run, tables, weights
from scripted import Scripted

from assay import catalogue
from assay.batch import Batch
from assay.credit.gae import GAE
from assay.engines.base import Request, Sampling
from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.inference.base import Budget
from assay.inference.scoring.self_verification import TEMPLATE, SelfVerification
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.reasoning.own_judge import Setting, measure
from assay.method import make_method
from assay.papers.process.s071_rise import KIND, TABLE, GradeVerifier, shares
from assay.registry import build
from assay.rewards.outcome.graded import Graded
from assay.rewards.shaping.weighted import WeightedSum
from assay.types import Ask, Group, Task, Verdict
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")

BOXED = Graded(marks=("boxed",))
RIGHT, WRONG, BARE = r"so \boxed{4}", r"so \boxed{5}", "so 4"


def verifier(task: Task, response: str) -> Verdict:
    return Verdict.abstain("?") if "?" in response else Verdict(float("4" in response), "4" in response)


def collected(texts: list[str], groups: int = 1, **options: Any) -> tuple[list[Group], Scripted]:
    """The groups of ``texts``, in order, and of the verifications after them."""
    catalogue.find("S071")
    engine = Scripted((text, "eos") for text in texts)
    made = build(
        "rollout",
        {"name": "self_verification", "grades": BOXED, **options},
        sampling=Sampling(64),
        judge=partial(judge_groups, verifier),
    )
    asked = len(texts) - made.verifications * (made.n or 1)
    asks = [Ask(Task(f"t{i}", "2+2=", "4", "exact"), asked // groups) for i in range(groups)]
    return made.collect(asks, engine, np.random.default_rng(0)), engine


def test_the_three_grades() -> None:
    task = Task("t", "", "4", "exact")
    judged = [(text, verifier(task, text)) for text in (RIGHT, WRONG, BARE, "?")]
    assert [BOXED.grade(*pair) for pair in judged] == [1.0, -0.5, -1.0, None]
    assert [Graded().grade(*pair) for pair in judged] == [1.0, -0.5, 1.0, None]
    assert Graded().grade(" ", Verdict.wrong()) == -1
    assert Graded().grade("5", Verdict(0.0, False, {"marked": 0.0})) == -1
    with pytest.raises(UsageError, match="three different numbers"):
        Graded(wrong=1.0)
    with pytest.raises(UsageError, match="marks"):
        build("reward", {"name": "graded", "marks": ["box"]})


def test_the_gold_answer_is_the_grade_that_the_solution_got() -> None:
    texts = [RIGHT, WRONG, BARE, "?", *["v"] * 6]
    groups, engine = collected(texts, verifications=3, n=2)
    assert [g.task.reference for g in groups[1:]] == ["1.0", "-0.5", "-1.0"]
    for group, text in zip(groups[1:], texts, strict=False):
        assert group.task.kind == KIND and group.task.parent == "t0" and group.ask.n == 2
        assert "2+2=" in group.task.question and text in group.task.question and "-0.5 if" in group.task.question
    assert len({g.task.id for g in groups}) == 4
    made = build("rollout", "self_verification", sampling=Sampling(4), judge=partial(judge_groups, verifier))
    failed = replace(groups[0], episodes=tuple(replace(e, stop="error") for e in groups[0].episodes))
    assert made.derive([failed], engine, np.random.default_rng(0)) == [] and made.short == 0
    assert [r.n for r in engine.asked] == [4, 2, 2, 2]


def test_the_cap_is_spread_evenly_over_problems() -> None:
    assert shares(5, 4) == [2, 1, 1, 1] and shares(4, 4) == [1] * 4 and shares(2, 4) == [1, 1, 0, 0]
    groups, _ = collected([WRONG] * 16 + ["v"] * 5, groups=4, verifications=5, n=1)
    assert [g.task.parent for g in groups[4:]] == ["t0", "t0", "t1", "t2", "t3"]
    assert len({g.task.id for g in groups[4:]}) == 5
    # By themselves, an eighth as many as problems: 128 of 1024.
    made = build("rollout", "self_verification", sampling=Sampling(4), judge=partial(judge_groups, verifier))
    judged = judge_groups(verifier, [g for g in groups[:4] for _ in range(6)])
    counts = [len(made.derive(some, Scripted(), np.random.default_rng(0))) for some in (judged, judged[:4])]
    assert counts == [24 // 8, 1]


def test_verifications_are_graded() -> None:
    """A right solution (gold 1.0) and a wrong one (gold -0.5), each called 1.0, and a verification without a box."""
    replies = [r"\boxed{1.0}", r"good, \boxed{1}", "it is 1.0", r"\boxed{1.0}", r"\boxed{-0.5}", r"\boxed{bad}"]
    groups, _ = collected([RIGHT, WRONG, *replies], verifications=2, n=3)
    batch = Batch.from_groups(groups[1:], torch.float64)
    assert BOXED(batch).values.tolist() == [1.0, 1.0, -1.0, -0.5, 1.0, -0.5]


def test_short_verifications_earn_the_lowest_grade() -> None:
    task = Task("v", "", "-0.5", KIND)
    judge = GradeVerifier(BOXED, short=20)
    long, brief = "x" * 20 + r"\boxed{-0.5}", r"\boxed{-0.5}"
    assert [BOXED.grade(x, judge(task, x)) for x in (long, brief)] == [1, -1]
    assert BOXED.grade(brief, GradeVerifier(BOXED)(task, brief)) == 1
    assert judge(task, brief.rjust(20, "x")).passed is True and GradeVerifier(BOXED) == GradeVerifier(BOXED, 0)
    verdict = judge(task, brief.rjust(19, "x"))
    assert (verdict.score, verdict.passed) == (0, False)
    groups, _ = collected([WRONG, brief], verifications=1, n=1, short=800)
    assert groups[1].verdicts[0].parts == {"marked": 0.0}


def test_what_is_shown_is_not_learned_from() -> None:
    groups, engine = collected([WRONG, r"\boxed{-0.5}"], verifications=1, n=1)
    [episode] = groups[1].episodes
    assert engine.decode(episode.prompt) == groups[1].task.question and WRONG in groups[1].task.question
    assert engine.decode(episode.tokens) == r"\boxed{-0.5}" and bool(episode.mask.all())
    batch = Batch.from_groups(groups)
    assert batch.group.tolist() == [0, 1] and int(batch.mask.sum()) == len(WRONG) + len(r"\boxed{-0.5}")


def test_it_is_ppo_with_kl_in_the_reward() -> None:
    method = make_method("S071")
    assert isinstance(method.credit, GAE) and (method.credit.discount, method.credit.decay) == (1.0, 1.0)
    assert isinstance(method.reward, WeightedSum)
    assert "reference_logprobs" in method.needs and len(method.learners) == 1
    groups, _ = collected([RIGHT, WRONG, r"\boxed{1.0}"], verifications=1, n=1)
    batch = Batch.from_groups(groups, torch.float64)
    batch.signals = {
        "policy_logprobs": torch.where(batch.mask, -1.0, 0.0).double(),
        "reference_logprobs": torch.where(batch.mask, -1.5, 0.0).double(),
    }
    found = method.reward(batch)
    assert found.values.tolist() == pytest.approx([1.0, -0.5, 1.0])
    # 0.01 times the estimate log pi - log ref = 0.5, with the other sign, on each token.
    assert found.tokens is not None and found.tokens[batch.mask].tolist() == pytest.approx(
        [-0.005] * int(batch.mask.sum())
    )
    assert method.rollout["grades"].marks == () and method.rollout["short"] == 0
    plain = make_method("S071", options={"kl": 0.0, "credit": "grpo"})
    assert isinstance(plain.reward, Graded) and "reference_logprobs" not in plain.needs


SHORT = {"template": "{question}{response}", "grades": {"name": "graded", "unmarked": -2.0}}


def test_one_update_learns_from_both_and_groups_stay_apart(tmp_path: Path) -> None:
    """Whole runs of PPO with its critic; with no verification it is the plain one, bit for bit."""
    reward = {"name": "weighted", "terms": {"graded": SHORT["grades"], "kl": "kl"}, "weights": {"kl": 0.01}}
    sections: dict[str, Any] = {"warmup": {"steps": 0}, "evaluate": {"every": 0}, "run": {"rollouts_every": 1}}
    sections |= {"train": {"steps": 2, "epochs": 1, "mini_batches": 1}, "tasks": {"eval_size": 2}}
    ours = {"name": "S071", "reward": reward, "options": {**SHORT, "n": 2}}
    arms = {str(c): {**ours, "options": {**ours["options"], "verifications": c}} for c in (3, 0)}
    arms["plain"] = {"name": "grpo", "reward": reward, "credit": {"name": "gae", "decay": 1.0}}
    folders = {name: run(tmp_path / name, method=method, **sections) for name, method in arms.items()}
    rows = [row for row in metrics(folders["3"]) if row["stage"] == "rl"]
    assert [row["derived/asked"] for row in rows] == [3, 3]
    [first, _] = tables(folders["3"], "rollouts").values()
    verified = [row for row in first if row["parent"] is not None]
    assert len(first) == 12 + 3 * 2 and len(verified) == 6
    assert {row["group"] for row in verified}.isdisjoint({row["group"] for row in first if row["parent"] is None})
    shown = {row["task_id"]: row for row in first if row["parent"] is None}
    assert all(row["prompt"].startswith(shown[row["parent"]]["prompt"]) for row in verified)
    found = {name: weights(folder) for name, folder in folders.items()}
    same = {name: all(torch.equal(found[name][k], x) for k, x in found["plain"].items()) for name in arms}
    assert same == {"3": False, "0": True, "plain": True}


def test_the_vote_weighted_by_own_grades() -> None:
    """Answers A (0.2), A (0.3) and B (0.9): B, by 0.9 against 0.5."""
    task = Task("t", "q", "b", "exact")
    solutions = [r"\boxed{a}", r"i.e. \boxed{a}", r"\boxed{b}"]
    # Ten predictions each, of which 2, 3 and 9 say that it is right and the others that nothing is marked.
    grades = [r"\boxed{1.0}" if j < k else r"\boxed{-1.0}" for k in (2, 3, 9) for j in range(10)]
    engine = Scripted([*((s, "eos") for s in solutions), *((g, "eos") for g in grades)])
    strategy = build("inference", {"name": "weighted_majority", "scorer": {"name": "self_verification", "n": 10}})
    [answer] = strategy([task], engine, Budget(samples=3), np.random.default_rng(0))
    assert answer.meta["scores"] == pytest.approx([0.2, 0.3, 0.9]) and answer.text == solutions[2]
    assert engine.asked[1].prompt == SelfVerification().prompt(task, solutions[0])
    assert r"\boxed{a}" in engine.asked[1].prompt


def test_what_a_prediction_says() -> None:
    scorer = SelfVerification()
    said = [scorer.read(rf"\boxed{{{x}}}") for x in ("1.0", "1", "-0.5", "-1.0", "0.7", "good")]
    assert said == [1.0, 1.0, 0.25, 0.0, None, None] and scorer.read("so\n-0.5") == 0.25
    assert SelfVerification(grades=BOXED).read("1.0") is None
    pairs = [(Task("t", "q"), e) for e in Scripted([("x", "eos")]).generate([Request("q", 1, Sampling(4), 0)])[0]]
    nothing = Scripted([("?", "eos"), (r"\boxed{1.0}", "error")])
    [score] = SelfVerification(n=2).score(pairs, nothing, np.random.default_rng(0))
    assert score.value is None and score.tokens == len(scorer.prompt(pairs[0][0], "x")) + 1 + len(r"\boxed{1.0}")
    longest = scorer.most(pairs[0][0], 7, nothing)
    assert longest == len(scorer.prompt(pairs[0][0], "")) + 7 + 1024
    for bad in ({"n": 0}, {"template": "{question}"}, {"grades": "verdict"}):
        with pytest.raises(UsageError, match="self_verification"):
            SelfVerification(**bad)


@pytest.mark.parametrize("bad", [{"verifications": -1}, {"short": -1}, {"template": "x"}, {"grades": "verdict"}])
def test_options_that_cannot_be(bad: dict[str, Any]) -> None:
    catalogue.find("S071")
    with pytest.raises(UsageError, match="self_verification"):
        build("rollout", {"name": "self_verification", **bad}, sampling=Sampling(4), judge=list)


def test_chats_are_verified_as_chats() -> None:
    task = Task("t", ({"role": "system", "content": "s"}, {"role": "user", "content": "q"}))
    system, user = SelfVerification().prompt(task, "r")
    assert system == {"role": "system", "content": "s"}
    named = {"right": "1.0", "wrong": "-0.5", "unmarked": "-1.0"}
    assert user["content"] == TEMPLATE.format(question="q", response="r", marked="", **named)


def test_the_prompt_says_what_grades_are_given_for() -> None:
    """A box is asked of the solution where its grade asks for one, and nowhere else."""
    plain, boxed = (SelfVerification(grades=g).prompt(Task("t", "q"), "4") for g in ("graded", BOXED))
    assert r"-1.0 if it gives no final answer in \boxed{};" in boxed and r"answer in \boxed{} is right" in boxed
    assert "-1.0 if it gives no final answer;" in plain and "1.0 if its final answer is right." in plain


def test_verification_is_learned_from_its_own_stream_alone() -> None:
    """Knowledge is held fixed, so that it solves as well as before; it says right or wrong at random at first."""
    policy, right = Setting(questions=6, insight=0.0).policy(0)
    policy.knowledge.requires_grad_(False)
    assert measure(policy, right)["judged"] == pytest.approx(0.5)
    options = {**TABLE, "template": "6/{question}/{response}", "verifications": 12}
    with torch.no_grad():  # it knows what is right
        policy.knowledge.zero_()
        policy.knowledge[torch.arange(6), torch.from_numpy(right)] = 1.0
        frozen = policy.knowledge.clone()
    tasks = [Task(str(i), str(i), kind="tabular") for i in range(6)]
    method = {"name": "S071", "options": options}
    train(policy, tasks, TabularVerifier(policy.tree), method, Training(20, 6, 8, 2.0), 0)
    assert torch.equal(policy.knowledge, frozen)
    assert measure(policy, right)["judged"] > 0.75


@pytest.mark.slow
def test_the_joint_arm_judges_better_than_solving_alone() -> None:
    found = {arm: learned("S071", arm, rollouts=2000, lr=3.0) for arm in ("rise", "solving alone")}
    assert found["rise"]["judged"] > 0.6 > found["solving alone"]["judged"]
    assert found["rise"]["judged/start"] == found["solving alone"]["judged/start"] == pytest.approx(0.4937, abs=1e-4)
    assert abs(found["rise"]["rollouts"] - found["solving alone"]["rollouts"]) < 64
