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
from assay.types import Ask, Episode, Group, Message, Task, Verdict
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
    together = model.read(PAIRS)
    model.token_budget = 1
    assert model.scores(PAIRS) == pytest.approx(plain, abs=1e-5)
    for one, other in zip(together, model.read(PAIRS), strict=True):
        assert one is not None and other is not None and one[1].tolist() == pytest.approx(other[1].tolist(), abs=1e-5)
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


def test_the_gradient_is_bradley_terrys(model: PreferenceModel) -> None:
    """dL / dw = - mean over pairs of sigmoid(r' - r) (h - h'), of scores w h."""
    pairs = [("1=", "a", "b"), ("2=", "3", "(4)"), ("5", "6", "a7")]
    read = [[model.read([(prompt, text)])[0] for text in both] for prompt, *both in pairs]
    told = [((1 / (1 + math.exp(r - s))), h - k) for (r, h), (s, k) in read]  # type: ignore[misc]
    model.fit(pairs, np.random.default_rng(0), lr=0.0)
    expected = -sum(p * gap for p, gap in told) / 3
    assert model.model.score.weight.grad[0].tolist() == pytest.approx(expected.tolist(), abs=1e-5)


def test_pairs_are_passed_within_the_budget(model: PreferenceModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest row has 9 tokens: 18 a pair, of which 53 tokens hold two."""
    assert model.token_budget == 8192
    passed, forward = [], model._pass
    monkeypatch.setattr(model, "_pass", lambda rows: passed.append([len(r) for r in rows]) or forward(rows))
    pairs = [("1=", "a" * 5, "b"), ("1=", "a", "b"), ("1=", "b", "a")]
    for budget, sizes in ((53, [4, 2]), (35, [2, 2, 2]), (1, [2, 2, 2]), (8192, [6])):
        model.token_budget = budget
        passed.clear()
        model.fit(pairs, np.random.default_rng(0))
        assert [len(rows) for rows in passed] == sizes and max(map(max, passed)) == 9
    passed.clear()
    model.token_budget = 10
    model.scores([(prompt, text) for prompt, *both in pairs for text in both])
    assert passed == [[5, 5], [5, 5], [5], [9]], "those of like length together"


def test_steps_are_of_64_pairs(model: PreferenceModel, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, plain = [], torch.optim.AdamW.step

    def step(self, *arguments):  # type: ignore[no-untyped-def]
        steps.append(self.param_groups[0]["lr"])
        return plain(self, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    model.fit([("1=", "a", "b")] * 65, np.random.default_rng(0))
    assert steps == [1e-5, 1e-5]


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


def test_what_is_read(model: PreferenceModel) -> None:
    """In the tokenizer's template where it has one; a row as long as the model takes fits, a longer one does not."""
    row = model._read("1+2=", "3")
    assert row == model._read((Message(role="user", content="1+2="),), "3") and row[-1] == TOKENIZER.eos_token_id
    for length, fits in ((len(row), True), (len(row) - 1, False)):
        model.max_length = length
        assert (model.scores([("1+2=", "3")]) != [None]) is fits
    assert model._read("1+2=", "3<eos>") == row, "it has one end"
    model.tokenizer.eos_token = None
    assert model._read("1+2=", "3") == row[:-1] and model._read("", "3<pad>")[-1] == 0
    # What a row ends with is no padding, whatever it is.
    with torch.no_grad():
        hidden = model.model.model(input_ids=torch.tensor([model._read("", "3<pad>")])).last_hidden_state[0, -1]
        plain = float(model.model.score(hidden))
    model.max_length = None
    assert model.scores([("", "3<pad>"), ("1+2=", "3")])[0] == pytest.approx(plain, abs=1e-5)
    model.tokenizer.chat_template = "{% for m in messages %}({{ m['content'] }}){% endfor %}"
    for prompt in ("1+2=", (Message(role="user", content="1+2="),)):
        assert model.tokenizer.decode(model._read(prompt, "3")).replace(" ", "") == "(1+2=)(3)"


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
    assert found.values[2] == 0 and found.values[:2].tolist() == pytest.approx(
        model.scores([("1+2=", "3"), ("1+2=", "4")])
    )


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
