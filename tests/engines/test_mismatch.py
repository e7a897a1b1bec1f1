"""How far an engine's log-probabilities are from the trainer's, against numbers worked out by hand."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import running
import torch
from hypothesis import given
from hypothesis import strategies as st
from ranked import ranked

import assay
from assay.batch import Batch
from assay.engines.base import Request
from assay.engines.hf import HFEngine
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.sft import SFT
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.scale.ray.weights import take
from assay.training import build
from assay.training.mismatch import compare, corrected, correction_for, drawn, measure
from assay.types import Ask, Episode, Group, Task

YES = torch.tensor([[True, True], [True, False]])


def test_measures_what_was_worked_out_by_hand() -> None:
    """d = 0.2, -0.05, 0 and k3 = e^d - d - 1: 0.0214027582, 0.0012294245, 0."""
    engine = torch.tensor([[-1.2, -0.45], [-2.0, 0.0]], dtype=torch.float64)
    trainer = torch.tensor([[-1.0, -0.5], [-2.0, -9.0]], dtype=torch.float64)
    found = measure(engine, trainer, YES)
    assert found.tokens == 3
    assert found.kl == pytest.approx((0.0214027582 + 0.0012294245) / 3, abs=1e-9)
    assert found.largest == pytest.approx(0.2)
    assert found.far == pytest.approx(1 / 3)
    assert found.metrics == {
        "mismatch/kl": found.kl,
        "mismatch/max": found.largest,
        "mismatch/far": found.far,
    }


def test_it_is_the_divergence_on_average() -> None:
    """Over all tokens of mu = (1/2, 1/4, 1/4), weighed by mu, k3 is KL(mu || pi) exactly, here with pi uniform."""
    mu, pi = [0.5, 0.25, 0.25], [1 / 3] * 3
    drawn_as_often = torch.tensor([[0.5, 0.5, 0.25, 0.25]]).log()
    found = measure(drawn_as_often, torch.full((1, 4), 1 / 3).log(), torch.ones(1, 4, dtype=torch.bool))
    assert found.kl == pytest.approx(sum(m * math.log(m / p) for m, p in zip(mu, pi, strict=True)), abs=1e-6)


def test_unknown_and_foreign_tokens_are_left_out() -> None:
    engine = torch.tensor([[-1.0, torch.nan], [-1.0, -1.0]])
    trainer = torch.tensor([[-1.0, -5.0], [-1.5, -7.0]])
    assert measure(engine, trainer, YES).tokens == 2
    nothing = measure(engine, trainer, torch.zeros(2, 2, dtype=torch.bool))
    assert nothing.tokens == 0 and nothing.metrics == {}


@pytest.mark.parametrize("said", [torch.nan, -torch.inf])
def test_a_broken_model_does_not_pass_for_agreement(said: float) -> None:
    found = measure(torch.tensor([[-1.0]]), torch.tensor([[said]]), torch.ones(1, 1, dtype=torch.bool))
    assert found.largest == math.inf
    assert correction_for(found.kl, 1e-3) == "token_truncate"


def test_a_token_impossible_under_both_is_no_difference() -> None:
    never = torch.tensor([[-torch.inf, -1.0]])
    found = measure(never, never, torch.ones(1, 2, dtype=torch.bool))
    assert (found.kl, found.largest, found.far) == (0.0, 0.0, 0.0)


@given(st.lists(st.tuples(st.floats(-30, 0), st.floats(-30, 0)), min_size=1, max_size=8))
def test_never_negative_and_zero_only_for_equals(pairs: list[tuple[float, float]]) -> None:
    engine, trainer = (torch.tensor([column], dtype=torch.float64) for column in zip(*pairs, strict=True))
    found = measure(engine, trainer, torch.ones_like(engine, dtype=torch.bool))
    assert found.kl >= 0
    assert found.largest == pytest.approx(max(abs(a - b) for a, b in pairs))
    if all(a == b for a, b in pairs):
        assert found.kl == 0


def test_only_what_was_drawn_under_its_own_prompt_counts() -> None:
    def episode(logprobs: list[float] | None, sampled: bool) -> Episode:
        prompt = np.array([1])
        known = None if logprobs is None else np.array(logprobs, dtype=np.float32)
        other = np.array([2]) if sampled else None
        return Episode(prompt, np.array([5, 6]), np.array([True, False]), known, "", "eos", sampled_prompt=other)

    rows = [episode([-1.0, -1.0], False), episode([-1.0, -1.0], True), episode(None, False)]
    batch = Batch.from_groups([Group(Ask(Task("t", ""), 1), (row,)) for row in rows])
    assert drawn(batch).tolist() == [[True, False], [False, False], [False, False]]


@pytest.mark.parametrize(
    ("kl", "threshold", "said"),
    [(0.0, 0.0, "none"), (1e-3, 1e-3, "none"), (2e-3, 1e-3, "token_mask"), (math.nan, 1e9, "token_mask")],
)
def test_the_threshold_decides(kl: float, threshold: float, said: str) -> None:
    assert correction_for(kl, threshold, "token_mask") == said


def test_a_method_gets_the_correction_and_what_it_needs() -> None:
    plain = make_method()
    method = corrected(plain, "token_truncate")
    assert isinstance(method.objective, ClippedSurrogate)
    assert method.objective.correction == "token_truncate"
    assert "policy_logprobs" in method.needs and "policy_logprobs" not in plain.needs
    assert plain.objective.correction == "none", "the method it was made of is left alone"
    assert corrected(method, "token_mask") is method, "one that corrects already goes on as it does"
    assert corrected(plain, "none") is plain


def test_an_objective_within_another_is_corrected() -> None:
    method = corrected(make_method(objective={"name": "masked", "objective": "clip"}), "token_mask")
    assert method.objective.objective.correction == "token_mask"


def test_an_objective_without_a_correction_is_told_apart() -> None:
    assert corrected(make_method(objective=SFT()), "token_truncate") is None


@pytest.mark.parametrize("given", [True, False])
def test_a_batch_is_compared_with_the_policy(given: bool) -> None:
    """Of a policy that gives every token probability 1/4; the engine said 1/4 of one token and 1/2 of another."""

    class Quarter:
        def quantities(self, batch: Batch, names: set[str]) -> dict[str, torch.Tensor]:
            assert not given and names == {"logprobs"}
            return {"logprobs": torch.full(batch.tokens.shape, math.log(0.25))}

    known = np.log(np.array([0.25, 0.5], dtype=np.float32))
    row = Episode(np.array([1]), np.array([5, 6]), np.ones(2, dtype=bool), known, "", "eos")
    batch = Batch.from_groups([Group(Ask(Task("t", ""), 1), (row,))] * 3)
    if given:
        batch.signals["policy_logprobs"] = torch.full((3, 2), math.log(0.25))
    found = compare(batch, Quarter(), rows=2)  # type: ignore[arg-type]
    assert found.tokens == 4
    assert found.largest == pytest.approx(math.log(2))
    assert found.kl == pytest.approx((0.5 - math.log(0.5) - 1) / 2)


class Copying(HFEngine):
    """Follows a policy with weights of its own, and says log-probabilities that are off by ``OFF``."""

    OFF = 0.0

    def follow(self, policy: CausalLM) -> None:
        self.policy.module.load_state_dict(policy.module.state_dict())

    def close(self) -> None:
        pass

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        made = super().generate(requests)
        return [[replace(e, logprobs=e.logprobs + self.OFF) for e in row] for row in made]


def copying(policy: CausalLM, *_: object) -> Copying:
    return Copying(policy.twin())


def test_a_run_says_how_far_its_engine_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that is right stays right over updates, and is looked at as often as asked for."""
    monkeypatch.setattr(build, "engine_of", copying)
    rows = running.metrics(running.run(tmp_path / "run", engine={"check_every": 2}))
    found = [row.get("mismatch/kl") for row in rows if row["stage"] == "rl"]
    assert [x is None for x in found] == [False, True, False, True]
    assert all(x < 1e-9 for x in found if x is not None)
    assert not any("mismatch/weight" in row for row in rows)


def test_a_mismatch_switches_the_correction_on_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """d = -0.1 everywhere: k3 is e^-0.1 - 0.9 = 0.0048374, and every weight e^-0.1; a resumed run goes on with it."""
    monkeypatch.setattr(build, "engine_of", copying)
    monkeypatch.setattr(Copying, "OFF", 0.1)
    folder = running.run(tmp_path / "run", engine={"check_every": 1, "mismatch": 1e-3}, train={"steps": 2})
    rows = [row for row in running.metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2
    for row in rows:
        assert row["mismatch/kl"] == pytest.approx(math.exp(-0.1) - 0.9, abs=1e-5)
        assert row["mismatch/max"] == pytest.approx(0.1, abs=1e-4)
        assert row["mismatch/weight"] == pytest.approx(math.exp(-0.1), abs=1e-4)
    monkeypatch.setattr(Copying, "OFF", 0.0)
    assay.train(resume=folder, overrides=["train.steps=3"], quiet=True)
    last = running.metrics(folder)[-1]
    assert last["mismatch/kl"] == pytest.approx(0, abs=1e-9)
    assert last["mismatch/weight"] == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("engine", [{"mismatch": 1.0}, {"correction": "none"}])
def test_no_correction_where_none_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: dict[str, object]
) -> None:
    monkeypatch.setattr(build, "engine_of", copying)
    monkeypatch.setattr(Copying, "OFF", 0.1)
    rows = running.metrics(running.run(tmp_path / "run", engine={"check_every": 1, **engine}, train={"steps": 1}))
    assert rows[-1]["mismatch/kl"] > 1e-3
    assert "mismatch/weight" not in rows[-1]


def test_it_is_measured_between_updates_of_a_run_that_asks_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is right, and the batch that comes is a step old: what is compared must be of the same weights, or a
    learning rate this high would show. In the last step nothing is asked for, so there is nothing to compare."""
    monkeypatch.setattr(build, "engine_of", copying)
    sections = {"train": {"steps": 5, "lr": 0.03}, "overlap": {"staleness": 1}}
    rows = running.metrics(running.run(tmp_path / "run", engine={"check_every": 2}, **sections))
    rows = [row for row in rows if row["stage"] == "rl"]
    assert [row["staleness"] for row in rows] == [0, 1, 1, 1, 1]
    found = [row.get("mismatch/kl") for row in rows]
    assert [x is None for x in found] == [False, True, False, True, True]
    assert all(x < 1e-9 for x in found if x is not None)


def test_a_run_that_asks_ahead_is_corrected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "engine_of", copying)
    monkeypatch.setattr(Copying, "OFF", 0.1)
    sections = {"overlap": {"staleness": 1}, "engine": {"check_every": 1}, "train": {"steps": 3}}
    rows = [row for row in running.metrics(running.run(tmp_path / "a", **sections)) if row["stage"] == "rl"]
    assert all("mismatch/weight" in row for row in rows)
    assert [row.get("mismatch/kl", 0.0) for row in rows[:2]] == pytest.approx([math.exp(-0.1) - 0.9] * 2, abs=1e-5)


class CopyingOnARank(Copying):
    """The same of a policy that no rank has whole."""

    def follow(self, policy: CausalLM) -> None:
        with torch.no_grad():
            take(self.policy.model, policy.merged_state())


def rank_with_an_engine_that_is_off(folder: Path) -> None:
    """In a rank: a run of two steps."""
    recipe = running.recipe(folder, scale={"trainers": 2}, engine={"check_every": 1}, train={"steps": 2})
    model = ModelConfig.model_validate({"source": "nano", **recipe["model"]})
    Copying.OFF = 0.1
    build.engine_of = lambda *_: CopyingOnARank(CausalLM.load(model, 1))
    assay.train(recipe, quiet=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="ranks are started by forking")
@pytest.mark.slow
def test_ranks_compare_together(tmp_path: Path) -> None:
    """Every rank has an engine, which answers its share; all are compared with the policy that is put together, and all
    ranks correct for it in the same step."""
    assert ranked(2, rank_with_an_engine_that_is_off, tmp_path / "run") == [0, 0]
    rows = [row for row in running.metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert [row["mismatch/kl"] for row in rows] == pytest.approx([math.exp(-0.1) - 0.9] * 2, abs=1e-5)
    assert all(row["mismatch/weight"] == pytest.approx(math.exp(-0.1), abs=1e-3) for row in rows)
