"""FAPO: advantages of flawed responses, what the judge is asked and how often, and what the judge itself earns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.engines.base import Request, Sampling
from assay.errors import RunError, UsageError
from assay.lab.settings.reasoning import derivations
from assay.method import make_method
from assay.papers.objectives.s075_fapo import FlawedAware, critic, fapo
from assay.rewards.process.error_step import critic_task, index_of, located, question, steps_of
from assay.types import Episode, Task
from assay.verify.kind import KindVerifier


class Judge:
    """An engine that finds the word "bad" in the first step that has it; remembers what it was asked."""

    def __init__(self, reply: str | None = None, stop: str = "eos"):
        self.reply, self.stop, self.asked = reply, stop, list[str]()

    def encode(self, prompt: object) -> np.ndarray:
        raise NotImplementedError

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        raise NotImplementedError

    def decode(self, tokens: object) -> str:
        raise NotImplementedError

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            assert isinstance(request.prompt, str) and request.n == 1
            self.asked.append(request.prompt)
            steps = request.prompt.split("<step ")[1:]
            index = next((i for i, step in enumerate(steps) if "bad" in step), -1)
            text = f"I think \\boxed{{{index}}}" if self.reply is None else self.reply
            none = np.zeros(0, dtype=np.int64)
            out.append([Episode(none, none, none > 0, None, text, self.stop)])
        return out


SOUND, FLAWED, WRONG = "one\n\ntwo", "one\n\nbad", "no"


def batch_of(make_batch, texts, passed=None):
    passed = [t != WRONG for t in texts] if passed is None else passed
    tasks = [Task("t", "What is 1+1?", reference="2")] * len(texts)
    return make_batch([2] * len(texts), passed=passed, texts=texts, tasks=tasks, groups=[0] * len(texts))


@pytest.mark.parametrize(
    ("t", "f", "n", "advantages"),
    [(1, 2, 5, [1.9843, 0.6614, -0.6614]), (4, 2, 2, [0.8461, -0.2820, -1.4102]), (2, 4, 2, [1.3229, 0, -1.3229])],
)
def test_flawed_responses_help_until_sound_ones_outnumber_wrong_ones(make_batch, t, f, n, advantages):
    batch = batch_of(make_batch, [SOUND] * t + [FLAWED] * f + [WRONG] * n)
    found = make_method(fapo(Judge())).value(batch).advantages[:, 0]
    assert [float(found[0]), float(found[t]), float(found[-1])] == pytest.approx(advantages, abs=1e-4)


@given(st.integers(0, 5), st.integers(1, 5), st.integers(0, 5))
def test_the_sign_of_a_flawed_advantage_is_that_of_wrong_less_sound(make_batch, t, f, n):
    batch = batch_of(make_batch, [FLAWED] * f + [SOUND] * t + [WRONG] * n)
    advantage = float(make_method(fapo(Judge())).value(batch).advantages[0, 0])
    assert np.sign(round(advantage, 9)) == np.sign(n - t)


def test_the_judge_is_asked_once_about_each_right_response_and_never_about_a_wrong_one(make_batch):
    judge = Judge()
    reward = FlawedAware(judge)
    texts = [SOUND, FLAWED, WRONG, SOUND, WRONG]
    assert reward(batch_of(make_batch, texts)).values.tolist() == [1, 0, -1, 1, -1]
    assert len(judge.asked) == 2
    assert "<step 0>\none\n</step 0>\n<step 1>\nbad\n</step 1>" in judge.asked[1] and "\\boxed{}" in judge.asked[1]
    reward(batch_of(make_batch, texts))
    assert len(judge.asked) == 2, "a reading that is remembered is asked for again"
    abstained = batch_of(make_batch, ["new"], passed=[None])
    assert reward(abstained).valid.tolist() == [False] and len(judge.asked) == 2


def test_what_is_remembered_is_bounded_and_does_not_change_rewards(make_batch):
    judge = Judge()
    reward = FlawedAware(judge, remembered=1)
    for _ in range(2):
        assert reward(batch_of(make_batch, [SOUND, FLAWED])).values.tolist() == [1, 0]
    assert len(judge.asked) == 3  # the second batch finds the last reading of the first


@pytest.mark.parametrize("reply", ["no idea", "\\boxed{two}", "\\boxed{}", "\\boxed{1.5}", ""])
def test_an_unreadable_reply_leaves_the_reward(make_batch, reply):
    reward = FlawedAware(Judge(reply))(batch_of(make_batch, [FLAWED, WRONG]))
    assert reward.values.tolist() == [1, -1]
    assert reward.valid.tolist() == [True, True] and reward.terms["unread"].tolist() == [1, 0]


def test_a_judge_that_fails_is_no_verdict_and_is_asked_again(make_batch):
    judge = Judge("\\boxed{0}", stop="error")
    reward = FlawedAware(judge)
    found = reward(batch_of(make_batch, [FLAWED, WRONG]))
    assert found.valid.tolist() == [False, True] and found.terms["flawed"].tolist() == [0, 0]
    judge.stop = "eos"
    assert reward(batch_of(make_batch, [FLAWED, WRONG])).values.tolist() == [0, -1]
    assert len(judge.asked) == 2


def test_without_a_penalty_it_is_dapo(make_batch):
    texts = [SOUND, FLAWED, WRONG, FLAWED]
    scores = torch.tensor([1.0, 1, -1, 1], dtype=torch.float64)
    for reward in (FlawedAware(Judge(), penalty=0), FlawedAware(penalty=0)):
        assert torch.equal(reward(batch_of(make_batch, texts)).values, scores)
    method = make_method("S075", options={"judge": Judge()})
    assert (method.objective.clip_low, method.objective.clip_high) == (0.2, 0.28)
    assert method.objective.aggregation == "token_mean" and not method.objective.kl_weight


def test_the_overlong_punishment_is_added(make_batch):
    batch = make_batch([8, 6, 4], passed=[True, False, True], texts=[SOUND, WRONG, FLAWED])
    assert fapo(Judge(), overlong=(8, 4)).reward(batch).values.tolist() == [0, -1.5, 0]


@pytest.mark.parametrize(
    ("truth", "said", "earned"),
    [(-1, -1, 1), (3, -1, -1), (-1, 3, -1), (3, 5, 0.8), (3, 3, 1), (3, None, -1), (3, 10, -1), (3, -2, -1)],
)
def test_what_the_judge_earns(truth, said, earned):
    assert located(said, truth, 10) == pytest.approx(earned)


@given(st.integers(1, 20).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1), st.integers(0, n - 1))))
def test_a_located_error_is_worth_more_the_nearer_it_is(case):
    steps, truth, said = case
    assert 0 < located(said, truth, steps) <= 1
    assert (located(said, truth, steps) == 1) == (said == truth)


def test_the_judges_own_tasks_are_judged_and_rewarded(make_batch):
    task = critic_task("c", "What is 1+1?", 2, "one\n\n  \n\nbad\n\nthree", 1)
    assert task.meta["steps"] == 3 and "<step 2>\nthree" in task.question
    replies = [task.solution, "so \\boxed{2}", "\\boxed{-1}", "1"]
    batch = make_batch(
        [1] * 4, passed=[KindVerifier()(task, r).passed for r in replies], texts=replies, tasks=[task] * 4
    )
    assert [v.passed for v in batch.verdicts] == [True, False, False, True]
    assert critic().reward(batch).values.tolist() == pytest.approx([1, 2 / 3, -1, -1])
    with pytest.raises(UsageError, match="3 steps"):
        critic_task("c", "q", 2, "a\n\nb\n\nc", 3)
    broken = make_batch([1], texts=["\\boxed{0}"], tasks=[Task("x", "q", reference="none", meta={"steps": 2})])
    with pytest.raises(RunError, match="task x"):
        critic().reward(broken)


@given(st.lists(st.text("ab{}\\ ", min_size=1).filter(str.strip), max_size=5))
def test_steps_are_what_blank_lines_separate(steps):
    assert steps_of("\n \n\n".join(steps)) == [s.strip() for s in steps]


def test_braces_in_a_solution_are_text():
    asked = question("p {steps}", "{reference}", ["\\frac{1}{2} {problem}"])
    assert "p {steps}" in asked and "Reference answer:\n{reference}\n" in asked and "\\frac{1}{2} {problem}" in asked


@pytest.mark.parametrize(("reply", "index"), [("\\boxed{1} or \\boxed{ -1 }", -1), ("\\boxed{+2}", 2), ("3", None)])
def test_the_last_boxed_whole_number_counts(reply, index):
    assert index_of(reply) == index


def test_options():
    for bad in ({"penalty": -1}, {"template": "judge this"}, {"judge": object()}):
        with pytest.raises(UsageError, match="S075"):
            FlawedAware(**bad)


def test_a_judge_is_named_with_the_method_or_with_its_reward():
    """Without one the advantages would be those of the verdict alone, so it is asked for."""
    judge = Judge()
    for parts in (
        {"options": {"judge": judge}},
        {"reward": {"judge": judge}},
        {"reward": {"judge": judge, "right": 2}},
    ):
        reward = make_method("S075", **parts).reward
        assert reward.judge is judge and reward.right == parts.get("reward", {}).get("right", 1)
    assert make_method("S075", options={"judge": judge}, reward={"penalty": 0.5}).reward.penalty == 0.5
    assert make_method("S075", reward={"judge": judge, "penalty": 0.5}).reward.judge is judge
    assert make_method("grpo", reward={"name": "S075", "judge": judge}).reward.judge is judge
    for lacking in ({}, {"reward": {"penalty": 0.5}}, {"options": {"penalty": 0.5}}):
        with pytest.raises(UsageError, match=r"S075 \(FAPO\) needs judge"):
            make_method("S075", **lacking)
    with pytest.raises(UsageError, match="name an engine"):
        make_method("S075", options={"judge": None})
    assert make_method("S075", options={"judge": None, "penalty": 0.0}).reward.judge is None


def test_the_settings_start_and_its_judge():
    """Kinds begin at their stated chances; the judge errs at its rates, and on what it cannot read gives no number."""
    setting = derivations.Setting(each=300, spread=1.0, missed=0.2, alarms=0.1)
    policy = setting.policy(0)
    assert list(setting.measure(policy).values()) == pytest.approx(setting.start)
    judge = derivations.Judge(policy.tree, 0.2, 0.1, 0)
    requests = [Request(question("q", "right", [str(i)]), 1, Sampling(), 0) for i in range(600)]
    said = [index_of(found[0].text) for found in judge.generate(requests)]
    assert abs(np.mean([i != -1 for i in said[:300]]) - 0.1) < 0.06
    assert abs(np.mean([i == -1 for i in said[300:]]) - 0.2) < 0.08
    assert index_of(judge.generate([Request("?", 1, Sampling(), 0)])[0][0].text) is None


def test_what_the_judge_is_asked_with():
    """One greedy reply of at most 4096 tokens, and a seed that depends on the prompt alone."""
    asked = []

    class Recorded(Judge):
        def generate(self, requests):
            asked.extend(requests)
            return super().generate(requests)

    pairs = [(Task("a", "1+1?", reference="2"), SOUND), (Task("b", "1+2?", reference="3"), SOUND)]
    both, alone = (FlawedAware(Recorded(), **options) for options in ({}, {"max_tokens": 1, "temperature": 0.5}))
    assert both.read(pairs) == [-1, -1] and alone.read(pairs[1:]) == [-1]
    assert [(r.n, r.sampling) for r in asked] == [(1, Sampling(4096, 0.0))] * 2 + [(1, Sampling(1, 0.5))]
    assert asked[1].seed == asked[2].seed != asked[0].seed and all(0 <= r.seed < 2**56 for r in asked)
    assert both == FlawedAware(both.judge) and "readings" not in repr(both), "what was read is no option"
    assert [f.name for f in fields(both) if not f.init] == ["_readings"]


def test_the_rewards_and_the_method_by_default(make_batch):
    batch = batch_of(make_batch, [SOUND, FLAWED, WRONG])
    for reward in (FlawedAware(Judge()), fapo(Judge()).reward):
        found = reward(batch)
        assert found.values.tolist() == [1, 0, -1] and reward.remembered == 100_000
        assert {k: v.tolist() for k, v in found.terms.items()} == {
            "verdict": [1, 1, -1],
            "flawed": [0, 1, 0],
            "unread": [0, 0, 0],
        }
    assert FlawedAware(Judge(), penalty=2.0, right=3.0, wrong=0.5)(batch).values.tolist() == [3, 1, 0.5]
    assert (critic().objective.clip_low, critic().objective.clip_high) == (0.2, 0.28)
    assert FlawedAware(None, penalty=0.0, remembered=1, max_tokens=1)(batch).values.tolist() == [1, 1, -1]
    for bad in ({"remembered": 0}, {"max_tokens": 0}, {"penalty": -0.1}):
        with pytest.raises(UsageError, match="needs penalty >= 0"):
            FlawedAware(Judge(), **bad)


def test_what_is_forgotten_first_is_what_was_not_asked_for_longest(make_batch):
    judge = Judge()
    reward = FlawedAware(judge, remembered=2)
    for texts in (["a", "b"], ["a", "c"], ["a"]):
        reward(batch_of(make_batch, texts, [True] * len(texts)))
    assert len(judge.asked) == 3, "a was read again although b was the oldest"
    reward(batch_of(make_batch, ["b"], [True]))
    assert len(judge.asked) == 4


def test_the_first_and_the_last_step_may_be_wrong_and_so_may_none():
    for error in (-1, 0, 2):
        task = critic_task("c", "q", 2, ["a", "b", "c"], error)
        assert task.reference == str(error) and task.solution == f"\\boxed{{{error}}}"
    for error in (-2, 3):
        with pytest.raises(UsageError, match="3 steps"):
            critic_task("c", "q", 2, ["a", "b", "c"], error)
    assert located(0, 0, 1) == 1 and located(0, 1, 2) == 0.5 and located(2, 0, 3) == pytest.approx(1 / 3)
    assert steps_of("") == [] and index_of("\\boxed{1234567890}") is None


def test_a_critic_on_other_tasks_has_the_verdicts_score(make_batch):
    batch = make_batch([1, 1, 1], passed=[True, False, None], texts=["x", "y", "z"])
    reward = critic().reward(batch)
    assert reward.values.tolist() == [v.score for v in batch.verdicts] and reward.valid.tolist() == [True, True, False]


def test_an_arm_is_given_the_settings_judge(tmp_path):
    setting = derivations.Setting(steps=3)
    arms = {"reward": {"judge": "here"}}, {"options": {"judge": None, "penalty": 0.0}}
    runs = [setting.run({"name": "S075", **arm}, 0, tmp_path) for arm in arms]
    assert runs[0]["rollouts"] == runs[1]["rollouts"] == 3 * 4 * 16
    assert runs[0]["flawed"] < runs[1]["flawed"]
