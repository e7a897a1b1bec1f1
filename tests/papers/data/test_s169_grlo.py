"""GRLO: advantages by hand, scales of reward models, and its two stages with a reward model made here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, tables
from tiny import LLAMA_LIKE, TOKENIZER

import assay
from assay.batch import Batch, Reward
from assay.credit.gae import generalised_advantages
from assay.method import Method, make_method
from assay.ops import whiten
from assay.types import Ask, Episode, Group, Stop, Task, Verdict


def test_the_worked_example() -> None:
    rewards = torch.tensor([[0.0, 0.0, 2.0]], dtype=torch.float64)
    values = torch.tensor([[0.5, 0.4, 0.3]], dtype=torch.float64)
    mask = torch.ones(1, 3, dtype=torch.bool)
    advantages, returns = generalised_advantages(rewards, values, mask, 1.0, 1.0)
    assert advantages.tolist()[0] == pytest.approx([1.5, 1.6, 1.7])
    assert returns.tolist()[0] == pytest.approx([2, 2, 2])
    assert whiten(advantages, mask).tolist()[0] == pytest.approx([-1, 0, 1], abs=1e-4)
    made: Any = method().credit
    assert (made.discount, made.decay, made.whitened) == (1.0, 1.0, True)


class Scored:
    """A reward model: so many points for a letter, on a scale of its own."""

    def __init__(self, scale: float = 1.0, shift: float = 0.0):
        self.scale, self.shift = scale, shift

    def __call__(self, batch: Batch) -> Reward:
        points = [self.scale * e.text.count("a") + self.shift for e in batch.episodes]
        return Reward(torch.tensor(points, dtype=batch.rewards.dtype), terms={})


def method(scale: float = 1.0, shift: float = 0.0) -> Method:
    return make_method("S169", {"scorer": Scored(scale, shift)})


def batch(passed: bool | None = None, stops: tuple[Stop, ...] = ("eos", "length", "eos")) -> Batch:
    groups = []
    for i, (text, n) in enumerate((("aab", 2), ("b", 3), ("a", 1))):
        tokens, mask = np.arange(n), np.ones(n, bool)
        episode = Episode(np.arange(2), tokens, mask, np.zeros(n, np.float32), text, stops[i])
        verdict = Verdict(0.0, None) if passed is None else Verdict(float(passed), passed)
        groups.append(Group(Ask(Task(str(i), "talk", kind="none"), 1), (episode,), (verdict,)))
    return Batch.from_groups(groups, torch.float64)


def advantages(made: Method, scale: float = 1.0, shift: float = 0.0) -> torch.Tensor:
    """Under a critic that knows the mean of the scores, on their scale."""
    filled = made.worth(batch())
    filled.signals["values"] = torch.full(filled.mask.shape, scale * 1.0 + shift, dtype=torch.float64)
    return made.compare(filled).advantages


def test_the_score_stands_at_the_last_token() -> None:
    """Returns are the score at every token; with a critic that says 0 so are advantages before whitening."""
    made = method().worth(batch())
    made.signals["values"] = torch.zeros(made.mask.shape, dtype=torch.float64)
    method().credit(made)
    assert [row[mask].tolist() for row, mask in zip(made.signals["returns"], made.mask, strict=True)] == [
        [2, 2],
        [0, 0, 0],
        [1],
    ]


def test_the_scale_of_the_reward_model_does_not_matter() -> None:
    plain, other = advantages(method()), advantages(method(2.0, 3.0), 2.0, 3.0)
    assert torch.allclose(plain, other, atol=1e-6) and plain.abs().max() > 0.5
    assert plain[0, 0] > plain[2, 0] > plain[1, 0]


def test_nothing_else_is_rewarded() -> None:
    """Verdicts, abstentions and the length of a response change nothing, and no reference is asked."""
    made: Any = method()
    cases: list[tuple[bool | None, tuple[Stop, ...]]] = [
        (None, ("eos", "eos", "eos")),
        (True, ("eos", "length", "eos")),
        (False, ("length", "length", "length")),
    ]
    found = [made.worth(batch(passed, stops)).rewards.tolist() for passed, stops in cases]
    assert found == [[2, 0, 1]] * 3
    assert made.objective.kl_weight == 0 and "reference_logprobs" not in made.needs
    assert [x.name for x in made.learners] == ["values"]


def test_the_recipe_measures_what_carries_over(tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModelForSequenceClassification

    torch.manual_seed(0)
    config = AutoConfig.for_model("llama", **{**LLAMA_LIKE, "num_labels": 1})
    AutoModelForSequenceClassification.from_config(config).save_pretrained(tmp_path / "rm")
    TOKENIZER.save_pretrained(tmp_path / "rm")
    chat = tmp_path / "prompts.jsonl"
    chat.write_text("".join(json.dumps({"prompt": f"{i}?"}) + "\n" for i in range(20)))
    problems = tmp_path / "problems.jsonl"
    problems.write_text("".join(json.dumps({"prompt": f"{i}+3=", "answer": i + 3}) + "\n" for i in range(40)))
    changes = [
        "model.source=nano",
        "model.dtype=float32",
        "model.gradient_checkpointing=false",
        'model.nano={hidden = 16, layers = 1, heads = 2, context = 32, alphabet = "0123456789+=?"}',
        "tasks.eval_size=4",
        f"tasks.source.path={problems}",
        f"stages.chat.tasks.path={chat}",
        f"stages.chat.method.options.scorer.source={tmp_path / 'rm'}",
        "stages.chat.rollout={prompts = 4, group = 1}",
        "stages.chat.steps=2",
        "stages.verifiable.steps=1",
        "rollout={prompts = 2, group = 3, max_tokens = 4}",
        "train.mini_batches=1",
        "evaluate.samples=1",
        "run.report=false",
        f"run.dir={tmp_path / 'run'}",
    ]
    assay.train("grlo", overrides=changes, quiet=True)
    first, second, third = [row for row in metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert "pass_rate" not in first and first["reward/mean"] != second["reward/mean"]
    assert any(key.startswith("critic/") or key.startswith("values/") for key in second), sorted(second)
    assert third["stage_number"] == 2 and "pass_rate" in third and not any(k.startswith("critic/") for k in third)
    assert sorted(tables(tmp_path / "run", "evals")) == ["after-chat.parquet", "after.parquet", "before.parquet"]
