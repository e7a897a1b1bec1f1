"""Group similarity: the worked example, its subsampled estimate, BLEU against a peer, and consistency measures."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from assay.batch import Batch
from assay.errors import UsageError
from assay.method import make_method
from assay.rewards.text.paraphrase_similarity import GroupSimilarity, bleu, consistency, jaccard, retrieval_consistency
from assay.types import Ask, Episode, Group, Task, Verdict

WORKED = ["a b", "a c"], ["a b", "d e"], ["a b", "a b"]


def of_views(*views: list[str], passed: bool | None = True) -> Batch:
    zeros = np.zeros(1, dtype=np.int64)
    episodes = tuple(
        Episode(zeros, zeros, zeros == 0, zeros.astype(np.float32), t, "eos", advantage_group=str(v), meta={"view": v})
        for v, texts in enumerate(views)
        for t in texts
    )
    group = Group(Ask(Task("t", "?", "4"), len(episodes)), episodes)
    return Batch.from_groups([group.judged([Verdict(float(bool(passed)), passed)] * len(episodes))], torch.float64)


def test_the_worked_example():
    found = GroupSimilarity("jaccard")(of_views(*WORKED)).values.tolist()
    assert found == pytest.approx([0.75, 0.25, 0.833333, 0, 0.583333, 0.583333], abs=1e-6)


def test_draws_average_to_the_exact_value():
    part, batch, rounds = GroupSimilarity("jaccard", wordings=1, responses=1), of_views(*WORKED), 1500
    mean = sum(part(batch).values for _ in range(rounds)) / rounds
    # Standard error at most 0.013.
    assert mean.tolist() == pytest.approx([0.75, 0.25, 0.833333, 0, 0.583333, 0.583333], abs=0.05)


def test_equal_responses_are_worth_one_and_teach_nothing():
    texts = ["the answer is five or so"] * 2
    method = make_method("S070", reward={"name": "S070", "accuracy": 0.0})
    batch = method.value(of_views(texts, texts, texts))
    assert batch.rewards.tolist() == pytest.approx([1.0] * 6) and not batch.advantages.any()


def test_the_verdict_is_added():
    batch = of_views(*WORKED)
    part = make_method("grpo", reward={"name": "S070", "measure": "jaccard", "responses": 2, "accuracy": 0.5}).reward
    assert part(batch).values.tolist() == pytest.approx([1.25, 0.75, 1.333333, 0.5, 1.083333, 1.083333], abs=1e-6)


def test_one_wording_is_compared_with_itself_and_one_response_with_nothing():
    found = GroupSimilarity("exact")(of_views(["4", "4", "5"]))
    assert found.values.tolist() == [0.5, 0.5, 0.0] and found.valid.all()
    assert GroupSimilarity("exact")(of_views(["4"])).valid.tolist() == [False]


def test_failures_are_not_compared_with():
    batch = of_views(["4", "5"], ["4", "5"])
    batch.verdicts[3] = Verdict.abstain("timed out")
    found = GroupSimilarity("exact")(batch)
    assert found.values.tolist() == [1.0, 0.0, 0.5, 0.0] and found.valid.tolist() == [True, True, True, False]


def test_bleu_by_hand():
    assert bleu("a b c", "a b c") == pytest.approx(1.0) and bleu("a", "") == 0.0 and bleu("", "a") == 0.0
    assert bleu("a b c d", "a b") == pytest.approx(math.exp(-1))
    # 2 of 3 words, (1 + 1) of (2 + 1) pairs, (0 + 1) of (1 + 1) triples.
    assert bleu("a b c", "a b d") == pytest.approx((2 / 3 * 2 / 3 * 1 / 2) ** (1 / 3))


def test_bleu_against_a_peer():
    sacrebleu = pytest.importorskip("sacrebleu")
    rng = np.random.default_rng(0)
    peer = sacrebleu.BLEU(smooth_method="add-k", smooth_value=1, effective_order=True, tokenize="none")
    for _ in range(50):
        reference, answer = (" ".join(rng.choice(list("abcde"), rng.integers(4, 12))) for _ in range(2))
        assert bleu(reference, answer) == pytest.approx(peer.sentence_score(answer, [reference]).score / 100, abs=1e-6)


def test_consistency():
    assert consistency(["a b", "a c", "a b"], "jaccard") == pytest.approx((1 / 3 + 1 + 1 / 3) / 3)
    assert consistency(["x"]) == 1.0 and jaccard("", "") == 1.0
    assert retrieval_consistency([["d1", "d2"], ["d2", "d3"], []]) == pytest.approx((1 / 3 + 0 + 0) / 3)
    assert retrieval_consistency([[], []]) == 1.0


def test_draws_survive_a_checkpoint_and_options_are_checked():
    one, other = (GroupSimilarity("jaccard", 1, 1) for _ in range(2))
    batch = of_views(*WORKED)
    one(batch)
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(batch).values, other(batch).values)
    for bad in ({"wordings": 0}, {"responses": -1}):
        with pytest.raises(UsageError, match="group_similarity"):
            GroupSimilarity(**bad)
    assert make_method("S070", rollout="single_turn").rollout == "single_turn"
