"""Training a verifier of steps in its quick mode: its tasks, what an opinion earns, where it begins, what it learns."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay.batch import Batch
from assay.config import load_config
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.errors import RunError, UsageError
from assay.inference.scoring.flex import Flex
from assay.method import make_method
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.registry import build
from assay.rewards.process.step_index import StepIndexReward, index_reward, length_cost
from assay.rollout.quick import SKIP, Quick
from assay.tasks.chain import Chain
from assay.tasks.solutions.step_labels import CorruptedChain, StepLabels, step_task
from assay.types import Ask, Episode, Group, Task
from assay.verify.episodes import judge_groups
from assay.verify.kind import KindVerifier

NONE = np.zeros(0, dtype=np.int64)


def first_wrong(steps: list[str], modulus: int) -> int:
    """Return the first step whose result is not that of its own left side, by Python's arithmetic; -1 for none."""
    for k, step in enumerate(steps):
        left, _, right = step.partition("=")
        if eval(left) % modulus != int(right):
            return k
    return -1


@pytest.mark.parametrize(("modulus", "ops"), [(10, "+-*"), (2, "+"), (97, "*-")])
def test_the_reference_is_the_one_step_that_is_wrong(modulus: int, ops: str) -> None:
    source, chain = (
        CorruptedChain(seed=3, length=5, min_length=1, modulus=modulus, ops=ops),
        Chain(3, 5, 1, modulus, ops),
    )
    labels = []
    for i in range(300):
        task, plain = source[i], chain[i]
        steps, error = list(task.meta["steps"]), int(task.reference)
        assert first_wrong(steps, modulus) == error
        # What follows it is consistent: no further step is wrong, and each begins with the result before it.
        assert first_wrong(steps[error + 1 :], modulus) == -1
        for before, after in pairwise(steps):
            rest = after.partition("=")[0]
            assert rest.startswith(before.partition("=")[2])
        assert task.meta["question"] == plain.prompt
        original = str(plain.solution).split("\n")[:-1]
        assert len(steps) == len(original) and steps[: max(error, 0)] == original[: max(error, 0)]
        assert (steps == original) == (error == -1)
        assert task == source[i]
        labels.append(error)
    # Half are wrong, at any of their steps.
    assert 0.4 < np.mean([x >= 0 for x in labels]) < 0.6
    assert set(labels) == {-1, 0, 1, 2, 3, 4}
    assert all(CorruptedChain(wrong=0)[i].reference == "-1" != CorruptedChain(wrong=1)[i].reference for i in range(20))


def test_the_prompt_is_what_flex_asks_at_test_time() -> None:
    task = CorruptedChain()[0]
    steps = list(task.meta["steps"])
    assert task.prompt == Flex().prompt(Task("t", task.meta["question"]), steps)
    assert KindVerifier()(task, str(task.solution)).passed
    assert SKIP == Flex().skip == Quick(Sampling()).skip


def test_tasks_of_a_file_of_labelled_steps(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    rows: list[dict[str, Any]] = [
        {"id": "a", "problem": "1+1+1?", "steps": ["1+1=2", " 2+1=4 "], "label": 1},
        {"id": "b", "problem": "{x}?", "steps": ["x = {1}"], "label": -1},
    ]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    source = StepLabels(path, id="id", template="{question}\n{steps}")
    assert source.size == 2 and [source[i].reference for i in range(2)] == ["1", "-1"]
    assert source[0].prompt == "1+1+1?\n[0] 1+1=2\n[1] 2+1=4" and source[1].prompt == "{x}?\n[0] x = {1}"
    assert [source[i].id for i in range(2)] == ["a", "b"]
    for change, said in (
        ({"label": 2}, "2 steps"),
        ({"label": "1"}, "not the index"),
        ({"steps": "1+1=2"}, "not a list"),
        ({"problem": None, "steps": []}, "not a list"),
    ):
        path.write_text(json.dumps(rows[0] | change) + "\n")
        with pytest.raises(UsageError, match=rf"steps.jsonl line 1.*{said}"):
            StepLabels(path)
    path.write_text(json.dumps({"problem": "p", "label": 0}) + "\n")
    with pytest.raises(UsageError, match="lacks one of the fields"):
        StepLabels(path)
    path.write_text("".join(json.dumps(rows[0]) + "\n" for _ in range(2)))
    with pytest.raises(UsageError, match="unique"):
        StepLabels(path, id="id")
    with pytest.raises(UsageError, match="template"):
        step_task("t", "p", ["s"], -1, "{question}")


@pytest.mark.parametrize(
    ("truth", "response", "score", "readable", "outcome", "reward"),
    [
        (2, r"Step 2 adds wrongly. \boxed{2}", 1, 1, 1, 1.1),
        (2, r"\boxed{1}", 0, 1, 1, 0.1),
        (2, r"\boxed{-1}", 0, 1, 0, 0.1),
        (-1, r"\boxed{-1}", 1, 1, 1, 1.1),
        (-1, r"\boxed{0}", 0, 1, 0, 0.1),
        (-1, r"\boxed{0} no: \boxed{-1}", 1, 1, 1, 1.1),
        (-1, "-1", 0, 0, 0, 0.0),
        (0, r"\boxed{zero}", 0, 0, 0, 0.0),
        (0, r"\boxed{0.0}", 0, 0, 0, 0.0),
        (0, "", 0, 0, 0, 0.0),
    ],
)
def test_what_an_opinion_earns(
    truth: int, response: str, score: int, readable: int, outcome: int, reward: float
) -> None:
    task = Task("t", "q", str(truth), "step_index")
    verdict = KindVerifier()(task, response)
    assert (verdict.score, verdict.parts) == (score, {"readable": readable, "outcome": outcome})
    assert rewarded([task], [response]) == pytest.approx([reward])


def rewarded(tasks: list[Task], responses: list[str], **options: float) -> list[float]:
    groups = [
        Group(Ask(t, 1), (Episode(NONE, np.ones(2, dtype=np.int64), np.ones(2, dtype=bool), None, r, "eos"),))
        for t, r in zip(tasks, responses, strict=True)
    ]
    batch = Batch.from_groups(judge_groups(KindVerifier(), groups))
    made = make_method(reward={"name": "step_index", **options})
    values: list[float] = made.worth(batch).rewards.tolist()
    return values


def test_another_step_of_a_wrong_solution_is_near() -> None:
    sound, wrong = Task("a", "q", "-1", "step_index"), Task("b", "q", "2", "step_index")
    said = [r"\boxed{2}", r"\boxed{0}", r"\boxed{-1}"]
    assert rewarded([wrong] * 3, said, near=0.5, form=0.0) == [1, 0.5, 0]
    assert rewarded([sound] * 3, said, near=0.5, form=0.0) == [0, 0, 1]
    assert rewarded([wrong] * 2, [r"\boxed{0}", "0"], near=0.5) == pytest.approx([0.6, 0])


@pytest.mark.parametrize(
    ("tokens", "sound", "wrong"),
    [(1, 0, 0.98), (25, 0, 0.5), (50, 0, 0), (51, 0.01, 0), (100, 0.5, 0), (512, 1, 0), (768, 1, 0.5), (4096, 1, 1)],
)
def test_what_an_opinion_s_length_costs(tokens: int, sound: float, wrong: float) -> None:
    """By the authors' numbers: (100 - 50) / 100 on a right solution, (50 - 25) / 50 and (768 - 512) / 512 on others."""
    assert length_cost(tokens, True, 50, 512) == pytest.approx(sound)
    assert length_cost(tokens, False, 50, 512) == pytest.approx(wrong)
    tasks = [Task("a", "q", "-1", "step_index"), Task("b", "q", "0", "step_index")]
    groups = [
        Group(Ask(t, 1), (Episode(NONE, x, x > 0, None, r"\boxed{-1}", "eos"),))
        for t, x in zip(tasks, [np.ones(tokens, dtype=np.int64)] * 2, strict=True)
    ]
    found = StepIndexReward(lengths=(50, 512))(Batch.from_groups(judge_groups(KindVerifier(), groups)))
    assert found.values.tolist() == pytest.approx([1.1 - sound, 0.1 - wrong])
    assert found.terms["length"].tolist() == pytest.approx([-sound, -wrong])
    assert found.terms["step_index"].tolist() == pytest.approx([1.1, 0.1])


def test_a_task_without_an_index_has_no_reward() -> None:
    odd = Task("t", "q", "somewhere", "step_index")
    assert KindVerifier()(odd, r"\boxed{0}").passed is None
    groups = [Group(Ask(odd, 1), (Episode(NONE, NONE, NONE.astype(bool), None, "x", "eos"),))]
    batch = Batch.from_groups(judge_groups(KindVerifier(), groups))
    found = StepIndexReward()(batch)
    assert found.valid is not None and found.valid.tolist() == [False]
    with pytest.raises(RunError, match="somewhere"):
        index_reward(odd, r"\boxed{0}")
    for bad in ({"form": -1.0}, {"near": -0.1}, {"lengths": [0, 5]}, {"lengths": [6, 5]}):
        with pytest.raises(UsageError, match="reward 'step_index'"):
            build("reward", {"name": "step_index", **bad})
    assert build("reward", {"name": "step_index", "lengths": [1, 1], "near": 0.0, "form": 0.0}).lengths == (1, 1)


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    assert KindVerifier()(Task("t", "q", "0", "step_index"), text).passed is not None


def test_a_quick_opinion_begins_after_the_empty_thought_and_does_not_learn_it() -> None:
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 64}
    engine = HFEngine(CausalLM.load(ModelConfig(source="nano", nano=nano), 0))
    [group] = Quick(Sampling(5), "<think>\n</think>").collect(
        [Ask(Task("t", "1+1="), 3)], engine, np.random.default_rng(0)
    )
    begun = np.concatenate([engine.encode("1+1="), engine.encode_response("<think>\n</think>", False)])
    for e in group.episodes:
        assert e.prompt.tolist() == begun.tolist()
        assert len(e.tokens) <= 5 and bool(e.mask.all()) and "<think>" not in e.text
    assert len(group.episodes) == 3


@pytest.mark.parametrize(
    ("prompt", "skip", "begun"),
    [
        ("1+1=", "<think>\nno\n</think>", "<think>\nno\n</think>"),
        ("1+1=<think>\n", "<think>\nno\n</think>", "no\n</think>"),
        ("1<think>+1=", "<think>\nno\n</think>", "<think>\nno\n</think>"),
        ("1+1=<think>", "no", "no"),
        ("1+1=<think>", "", ""),
    ],
)
def test_a_thought_is_begun_once(prompt: str, skip: str, begun: str) -> None:
    """A chat template may have begun it already, as that of DeepSeek-R1's models does."""
    engine = HFEngine(CausalLM.load(ModelConfig(source="nano", nano={"hidden": 16, "layers": 1, "heads": 2}), 0))
    [group] = Quick(Sampling(2), skip).collect([Ask(Task("t", prompt), 1)], engine, np.random.default_rng(0))
    assert engine.decode(group.episodes[0].prompt) == prompt + begun


def labelled(path: Path, rows: int) -> Path:
    """Solutions of two steps; a first step is wrong with b in it, a second one with d."""
    rng, lines = np.random.default_rng(0), []
    for i in range(rows):
        first, second = rng.random(2) < 0.4
        steps = ["bbbb" if first else "aaaa", "dddd" if second else "cccc"]
        label = 0 if first else 1 if second else -1
        lines.append(json.dumps({"problem": str(i), "steps": steps, "label": label}))
    path.write_text("\n".join(lines))
    return path


@pytest.mark.slow
def test_the_quick_mode_learns(tmp_path: Path, one_thread: None) -> None:
    """By the normal loop, from a warm-up on opinions of which half are wrong, to opinions that are right mostly."""
    path, rng = labelled(tmp_path / "steps.jsonl", 120), np.random.default_rng(1)
    source = StepLabels(path, template="{question}\n{steps}")
    tasks = []
    for i in range(source.size):
        said = source[i].reference if rng.random() < 0.5 else rng.choice(["-1", "0", "1"])
        tasks.append(replace(source[i], solution=rf"!\boxed{{{said}}}"))
    alphabet = "0123456789abcd[]!-\n \\oxe{}"
    assay.train(
        {
            "model": {"nano": {"hidden": 32, "layers": 1, "heads": 4, "context": 48, "alphabet": alphabet}},
            "tasks": {"eval_size": 5, "eval_share": 0.1},
            "warmup": {"steps": 100, "batch": 32, "lr": 1e-2},
            "method": {"reward": "step_index", "rollout": {"name": "quick", "skip": "!"}},
            "rollout": {"prompts": 12, "group": 8, "max_tokens": 12},
            "train": {"steps": 20, "lr": 2e-3},
            "evaluate": {"samples": 1},
            "run": {"dir": str(tmp_path / "run"), "report": False, "tensorboard": False},
        },
        tasks=tasks,
        quiet=True,
    )
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    rewards = [r["reward/mean"] for r in lines if "reward/mean" in r]
    # A constant opinion is right 36 times of 100 (-1) or 40 (0); the whole reward is 1.1.
    assert np.mean(rewards[:2]) < 0.85 and np.mean(rewards[-4:]) > 0.95, rewards


@pytest.mark.parametrize("overrides", [(), ("tasks.source.name=step_labels", "tasks.source.path={path}")])
def test_the_recipe_names_parts_that_are_there(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    path = labelled(tmp_path / "steps.jsonl", 3)
    recipe = Path(__file__).parents[2] / "assay/recipes/flexive.toml"
    config = load_config(recipe, [o.format(path=path) for o in overrides])
    source = build("tasks", config.tasks.source)
    assert source[0].kind == "step_index"
    made = make_method(config.method.name, reward=config.method.reward, rollout=config.method.rollout)
    assert made.reward == StepIndexReward(1.0, 0.0, 0.5, (50, 512))
    assert isinstance(build("rollout", made.rollout, sampling=Sampling()), Quick)
