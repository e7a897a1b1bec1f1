"""A reward model of preferences: its loss by hand, its scores against the plain model, what it learns, as a reward."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from running import metrics, run
from tiny import TOKENIZER, classifier

from assay.batch import Batch
from assay.errors import UsageError
from assay.rewards.judges.preference_model import PreferenceModel
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.none import NoVerifier

pytestmark = pytest.mark.usefixtures("one_thread")

PAIRS = [("1+2=", "3"), ("1+2=", "33-30"), ("9=", "a"), ("4", "b(1)")]


@pytest.fixture
def model(tmp_path: Path) -> PreferenceModel:
    return PreferenceModel(classifier(tmp_path / "rm"), device="cpu")


def test_scores_are_the_models_whatever_the_padding(model: PreferenceModel) -> None:
    """Against one unpadded row at a time, ended by the end token."""
    plain = []
    with torch.no_grad():
        for prompt, response in PAIRS:
            ids = TOKENIZER(prompt + response)["input_ids"]
            ids = ids if ids[-1] == TOKENIZER.eos_token_id else [*ids, TOKENIZER.eos_token_id]
            hidden = model.model.model(input_ids=torch.tensor([ids])).last_hidden_state[0, -1]
            plain.append(float(model.model.score(hidden)))
    assert model.scores(PAIRS) == pytest.approx(plain, abs=1e-5)
    model.token_budget = 1
    assert model.scores(PAIRS) == pytest.approx(plain, abs=1e-5)
    assert len({round(x, 4) for x in plain}) == 4 and model.scores([]) == []


def test_the_loss_is_bradley_terrys(model: PreferenceModel) -> None:
    scores = model.scores([("1=", "a"), ("1=", "b"), ("2=", "3"), ("2=", "(4)")])
    a, b, c, d = (s for s in scores if s is not None)
    expected = np.mean([math.log1p(math.exp(b - a)), math.log1p(math.exp(d - c))])
    pairs = [("1=", "a", "b"), ("2=", "3", "(4)")]
    [found] = model.fit(pairs, np.random.default_rng(0), lr=0.0)
    assert found == pytest.approx(expected, abs=1e-5)
    [centred] = model.fit(pairs, np.random.default_rng(0), lr=0.0, centre=0.5)
    assert centred - found == pytest.approx(0.5 * np.mean([(a + b) ** 2, (c + d) ** 2]), abs=1e-5)
    # In passes of one pair it is the same.
    model.token_budget = 1
    assert model.fit(pairs, np.random.default_rng(0), lr=0.0) == pytest.approx([expected], abs=1e-5)


def test_it_learns_what_is_preferred(model: PreferenceModel, tmp_path: Path) -> None:
    """More a's are better: nine in ten new pairs in the right order, and kept when saved."""
    rng = np.random.default_rng(0)

    def text() -> str:
        return "".join(rng.choice(["a", "b"], 6))

    def pairs(n: int) -> list[tuple[str, str, str]]:
        drawn = [(text(), text()) for _ in range(4 * n)]
        apart = [(x, y) if x.count("a") > y.count("a") else (y, x) for x, y in drawn if x.count("a") != y.count("a")]
        return [("1+2=", x, y) for x, y in apart[:n]]

    losses = model.fit(pairs(120), rng, lr=1e-2, epochs=6, batch=24)
    assert losses[-1] < 0.1 < losses[0]
    new = pairs(60)
    good, bad = (np.array(model.scores([(p, row[k]) for p, *row in new]), dtype=float) for k in (0, 1))
    assert (good > bad).mean() >= 0.9
    model.save(tmp_path / "saved")
    again = PreferenceModel(tmp_path / "saved", device="cpu")
    assert again.scores(PAIRS) == pytest.approx(model.scores(PAIRS), abs=1e-5)


def test_as_a_reward_what_cannot_be_scored_has_none(model: PreferenceModel) -> None:
    none = np.zeros(1, dtype=np.int64)
    texts = ["3", "4", "1" * 90, "5"]
    episodes = tuple(Episode(none, none, none == 0, np.zeros(1), t, "eos") for t in texts)
    task = Task("t", "1+2=")
    unjudged = NoVerifier()(task, "")
    verdicts = (unjudged, unjudged, unjudged, Verdict.abstain("the sandbox failed"))
    batch = Batch.from_groups([Group(Ask(task, 4), episodes, verdicts)], torch.float64)
    found = model(batch)
    assert found.valid is not None and found.valid.tolist() == [True, True, False, False]
    assert found.values[:2].tolist() == pytest.approx(model.scores([("1+2=", "3"), ("1+2=", "4")]))


def test_it_trains_in_the_real_loop(tmp_path: Path) -> None:
    reward = {"name": "preference_model", "source": str(classifier(tmp_path / "rm")), "device": "cpu"}
    folder = run(tmp_path / "run", method={"reward": reward}, train={"steps": 2}, warmup={"steps": 0})
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2 and all(row["reward/std"] > 0 and row["no_reward"] == 0 for row in rows)


def test_what_is_no_reward_model_is_refused(model: PreferenceModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 outputs"):
        PreferenceModel(classifier(tmp_path / "two", 2))
    with pytest.raises(UsageError, match="no reward model"):
        PreferenceModel("/nowhere/at/all")
    with pytest.raises(UsageError, match="nothing to learn"):
        model.fit([("1=", "2", "3" * 90)], np.random.default_rng(0))
