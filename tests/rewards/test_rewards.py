"""Rewards from verdicts, from a user's function and from weighted sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from assay.batch import Reward
from assay.errors import RunError, UsageError
from assay.records.rollout_table import rollout_columns
from assay.registry import build
from assay.rewards.base import RewardPart
from assay.rewards.function import FunctionReward
from assay.rewards.outcome.verdict import VerdictReward
from assay.rewards.shaping.weighted import WeightedSum
from assay.training.watching.metrics import rollout_metrics
from assay.types import Task


def test_the_score_is_the_reward_and_an_abstention_has_none(make_batch):
    reward = VerdictReward()(make_batch([1, 1, 1], rewards=[1.0, 0.25, 0.0], passed=[True, False, None]))
    assert reward.values.tolist() == [1.0, 0.25, 0.0]
    assert reward.valid.tolist() == [True, True, False]


# A function per sample


def test_function_of_task_and_response(make_batch):
    seen = []

    def reward(task, response):
        seen.append((task.id, response))
        return len(response)

    got = FunctionReward(reward)(make_batch([1, 1], texts=["ab", "abc"]))
    assert got.values.tolist() == [2.0, 3.0]
    assert got.valid.tolist() == [True, True]
    assert seen == [("task-0", "ab"), ("task-1", "abc")]
    assert list(got.terms) == ["reward"]


@pytest.mark.parametrize("value", [1, 0.5, True, np.float32(0.5), np.int64(2), torch.tensor(0.25)])
def test_any_real_number_is_a_reward(make_batch, value):
    assert FunctionReward(lambda task, response: value)(make_batch([1])).values.item() == float(value)


def test_none_takes_the_sample_out(make_batch):
    got = FunctionReward(lambda task, response: None if response == "b" else 1.0)(make_batch([1, 1], texts=["a", "b"]))
    assert got.valid.tolist() == [True, False]
    assert got.values.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", [1.0], {}, 1j])
def test_what_is_no_finite_number_is_refused_with_its_row(make_batch, value):
    def reward(task, response):
        return value if response == "second" else 1.0

    with pytest.raises(RunError, match=r"reward function reward returned .* for row 1 \(task task-1.*'second'"):
        FunctionReward(reward)(make_batch([1, 1], texts=["first", "second"]))


def test_a_function_that_raises_is_blamed_with_its_row(make_batch):
    def reward(task, response):
        return 1 / (response != "bad")

    message = r"reward raised ZeroDivisionError.*row 1 \(task task-1, response 'bad'\)"
    with pytest.raises(RunError, match=message) as caught:
        FunctionReward(reward)(make_batch([1, 1], texts=["good", "bad"]))
    assert "\n" not in str(caught.value)


# A function per batch, in TRL's signature


def test_function_of_completions_gets_the_columns_it_names(make_batch):
    def reward(prompts, completions, reference, level):
        assert prompts == ["question", "other"]
        assert completions == ["4", "5"]
        assert level == ["easy", None]
        return [float(c == r) for c, r in zip(completions, reference, strict=True)]

    tasks = [Task("a", "question", reference="4", meta={"level": "easy"}), Task("b", "other", reference="6")]
    assert FunctionReward(reward)(make_batch([1, 1], texts=["4", "5"], tasks=tasks)).values.tolist() == [1.0, 0.0]


def test_function_of_completions_gets_every_column_with_keywords(make_batch):
    got = {}

    def reward(completions, **columns):
        got.update(columns)
        return [1.0] * len(completions)

    FunctionReward(reward)(make_batch([2], tasks=[Task("a", "question", reference=7, meta={"source": "made"})]))
    assert got == {
        "prompts": ["question"], "reference": [7], "task_id": ["a"], "completion_ids": [[0, 0]], "source": ["made"]
    }  # fmt: skip


def test_chat_prompts_come_with_chat_completions(make_batch):
    def reward(prompts, completions, **columns):
        assert prompts == [[{"role": "user", "content": "hello"}], "plain"]
        assert completions == [[{"role": "assistant", "content": "hi"}], "text"]
        return [0.0, 1.0]

    tasks = [Task("a", ({"role": "user", "content": "hello"},)), Task("b", "plain")]
    assert FunctionReward(reward)(make_batch([1, 1], texts=["hi", "text"], tasks=tasks)).values.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("values", [torch.tensor([1.0, 0.0]), np.array([1.0, 0.0]), (1, 0)])
def test_a_batch_of_rewards_may_be_any_sequence(make_batch, values):
    assert FunctionReward(lambda completions: values)(make_batch([1, 1])).values.tolist() == [1.0, 0.0]


def test_none_in_a_batch_takes_the_sample_out(make_batch):
    assert FunctionReward(lambda completions: [None, 1.0])(make_batch([1, 1])).valid.tolist() == [False, True]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0], "returned 1 values for 2"),
        (None, "returned a NoneType for 2"),
        (1.0, "returned a float for 2"),
        ([1.0, math.nan], "returned nan for row 1"),
    ],
)
def test_a_wrong_batch_of_rewards_is_refused(make_batch, values, message):
    with pytest.raises(RunError, match=message):
        FunctionReward(lambda completions: values)(make_batch([1, 1]))


def test_a_batch_function_that_raises_is_blamed(make_batch):
    def reward(completions):
        raise KeyError("answer")

    with pytest.raises(RunError, match="reward function reward raised KeyError: 'answer'"):
        FunctionReward(reward)(make_batch([1]))


# Where functions come from


def test_parameters_that_fit_no_signature_are_refused():
    with pytest.raises(UsageError, match="fits neither"):
        FunctionReward(lambda response: 1.0)


def test_a_function_from_a_file(make_batch, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def length(task, response):\n    return len(response)\n")
    made = build("reward", {"name": "function", "function": f"{path}:length"})
    assert made(make_batch([1], texts=["four"])).values.tolist() == [4.0]


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("def length(task, response): return 1", "lenght", "has no function 'lenght'; did you mean 'length'"),
        ("import nothing_of_this_name", "f", "raised ModuleNotFoundError"),
        ("def f(:", "f", "raised SyntaxError"),
        ("f = 3", "f", "has no function 'f'"),
    ],
)
def test_a_file_without_the_function_is_refused_in_one_line(tmp_path, content, name, message):
    path = tmp_path / "mine.py"
    path.write_text(content)
    with pytest.raises(UsageError, match=message) as caught:
        FunctionReward(f"{path}:{name}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reference", ["absent.py:f", "just_a_name", ":f", ""])
def test_a_file_that_is_not_there_is_refused(reference):
    with pytest.raises(UsageError, match=r"no file .*write path/to/file.py:name"):
        FunctionReward(reference)


# Sums


def test_weighted_sum_by_hand(make_batch):
    terms = {"right": "verdict", "short": FunctionReward(lambda task, response: -len(response))}
    made = WeightedSum(terms, {"short": 0.5})
    got = made(make_batch([1, 1], rewards=[1.0, 0.0], texts=["ab", "abcd"]))
    assert got.values.tolist() == [0.0, -2.0]
    assert {k: v.tolist() for k, v in got.terms.items()} == {"right": [1.0, 0.0], "short": [-2.0, -4.0]}


def test_a_weighted_sum_is_valid_where_every_term_is(make_batch):
    terms = {"right": "verdict", "other": FunctionReward(lambda task, response: None if response == "a" else 1.0)}
    batch = make_batch([1, 1, 1], rewards=[1.0, 1.0, 0.0], passed=[True, True, None], texts=["a", "b", "c"])
    assert WeightedSum(terms)(batch).valid.tolist() == [False, True, False]


def test_a_weighted_sum_can_leave_out_the_term_that_is_not_known(make_batch):
    code = FunctionReward(lambda task, response: None if response in "ab" else 4.0)
    form = FunctionReward(lambda task, response: None if response in "ad" else 1.0)
    made = WeightedSum({"code": code, "form": form}, {"code": 0.5}, untold="skip")
    batch = make_batch([1] * 5, passed=[True, True, True, True, None], texts=["a", "b", "c", "d", "e"])
    got = made(batch)
    assert got.values.tolist()[1:4] == [1.0, 3.0, 2.0]
    assert got.valid.tolist() == [False, True, True, True, False], "no term; the last one's verdict abstained"
    assert got.terms["code"].isnan().tolist() == [True, True, False, False, True]
    batch.rewards, batch.valid, batch.reward_terms = got.values, got.valid, got.terms
    logged = rollout_metrics(batch)
    assert logged["reward/code"] == 4.0 and logged["reward/form"] == 1.0, "means of what is known"
    assert rollout_columns(1, batch)["reward/code"] == [None, None, 4.0, 4.0, None]


def test_a_skipped_terms_token_rewards_are_left_out(make_batch):
    def on_tokens(batch):
        ones = torch.ones(batch.mask.shape, dtype=torch.float64)
        return Reward(torch.zeros_like(batch.rewards), ones, torch.tensor([True, False]))

    got = WeightedSum({"a": on_tokens, "b": "verdict"}, untold="skip")(make_batch([2, 2], rewards=[0.0, 1.0]))
    assert got.tokens.tolist() == [[1, 1], [0, 0]] and got.valid.tolist() == [True, True]


def test_a_weighted_sum_adds_token_rewards(make_batch):
    def on_tokens(batch):
        return Reward(torch.zeros_like(batch.rewards), tokens=torch.ones(batch.mask.shape, dtype=torch.float64))

    got = WeightedSum({"a": on_tokens, "b": on_tokens, "c": "verdict"}, {"a": 2.0, "b": 0.5})(make_batch([2]))
    assert got.tokens.tolist() == [[2.5, 2.5]]


def test_a_weight_without_a_term_is_refused():
    with pytest.raises(UsageError, match="did you mean 'right'"):
        WeightedSum({"right": "verdict"}, {"rigth": 0.5})


@pytest.mark.parametrize("part", [VerdictReward(), FunctionReward(lambda task, response: 0.0), WeightedSum({})])
def test_parts_follow_the_protocol(part):
    assert isinstance(part, RewardPart)
