"""Environments in evaluations: pass@k, pass^k, and what turns are like, each trajectory counted once."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest
from tiny import TOKENIZER, tiny

from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.environments.guess import Guess
from assay.evaluate.asking import evaluate
from assay.evaluate.measures import measures
from assay.evaluate.results import chosen
from assay.policies.causal_lm import CausalLM
from assay.records.evaluation import Evaluation
from assay.records.sample import Sample
from assay.rollout.turns.multi_turn import MultiTurn
from assay.rollout.turns.noting import measured
from assay.types import Episode, Turn
from assay.verify.none import NoVerifier

pytestmark = pytest.mark.usefixtures("one_thread")

PLANTED = [(3, 2), (26, 6)]
"""Turns, and how many of them could not be taken: (2/3 + 6/26) / 2 = .4487, over all turns alike 8/29 = .28."""


def trajectory(turns: int, invalid: int) -> Episode:
    made = tuple(Turn(i, i, i + 1, valid=i >= invalid) for i in range(turns))
    tokens = np.zeros(turns, dtype=np.int64)
    return Episode(tokens[:1], tokens, tokens == 0, None, "", "turns", turns=made)


def test_a_trajectory_counts_once() -> None:
    trained = measured([trajectory(*planted) for planted in PLANTED])
    assert trained["environment/invalid"] == pytest.approx(0.4487, abs=5e-5)
    assert trained["environment/turns"] == 14.5 and trained["environment/truncated"] == 1.0
    rows = [
        Sample(f"t{i}", "", "", 0.0, i == 0, "", 5, "turns", turns=turns, calls=2 * turns, invalid=invalid)
        for i, (turns, invalid) in enumerate(PLANTED)
    ]
    found = {m.name: m.value for m in measures(rows)}
    assert found["invalid"] == pytest.approx(0.4487, abs=5e-5)
    assert (found["turns"], found["turns/right"], found["turns/wrong"], found["calls"]) == (14.5, 3, 26, 29)
    assert found["truncated"] == 1.0
    assert {"turns", "invalid"} <= {m.name for m in chosen(measures(rows), "main")}
    # A response of one turn is none of this.
    assert not [m for m in measures([Sample("t", "", "", 0.0, True, "", 5, "eos")]) if m.group == "turns"]


def test_an_environment_is_evaluated_by_playing(tmp_path: Any) -> None:
    engine = HFEngine(CausalLM(tiny("llama", max_position_embeddings=128), TOKENIZER))
    player = MultiTurn({"name": "guess", "most": 3}, Sampling(3), turns=4)
    source = Guess(most=3).tasks()
    tasks = [source[i] for i in range(3)]
    found = evaluate(
        tasks, engine, NoVerifier(), samples=6, sampling=Sampling(3), rng=np.random.default_rng(1), label="x", step=0,
        player=player,
    )  # fmt: skip
    found.to_parquet(tmp_path / "x.parquet")
    again = Evaluation.from_parquet(tmp_path / "x.parquet")
    assert again == found and all(1 <= s.turns <= 4 for s in found.samples)
    named = {m.name: m.value for m in measures(found.samples)}
    right = [sum(s.passed is True for s in row) for row in found.by_task().values()]
    assert sum(right) and named["pass@1"] == pytest.approx(sum(right) / 18)
    assert named["pass@4"] == pytest.approx(np.mean([1 - comb(6 - c, 4) / comb(6, 4) for c in right]))
    assert named["pass^2"] == pytest.approx(np.mean([comb(c, 2) / comb(6, 2) for c in right]))
    assert named["turns"] == pytest.approx(np.mean([s.turns for s in found.samples]))
