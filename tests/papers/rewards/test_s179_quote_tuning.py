"""Quote-Tuning: the Bloom filter against sets and its own theory, QUIP as reward, and which pairs are learned."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from spelled import nano

from assay.batch import Batch
from assay.catalogue import make
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.errors import UsageError
from assay.lab.settings import load
from assay.learning.signals import compute_signals
from assay.method import make_method
from assay.objectives.picked_pairs import picked
from assay.registry import build
from assay.rewards.text.quip import Quip, corpus_index, quips
from assay.select.pairs import Pairs
from assay.signals.base import Models
from assay.types import Ask, Task
from assay.verify.grounding.bloom import BloomIndex
from assay.verify.grounding.ngrams import NGramIndex

pytestmark = pytest.mark.usefixtures("one_thread")

FOX = "the quick brown fox jumps over the lazy dog"

# --- the filter -------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.text("ab\U0001f600\ud800", max_size=30), max_size=3),
    st.text("ab\U0001f600\ud800", max_size=30),
    st.integers(1, 6),
    st.sampled_from([0.5, 0.1, 1e-3]),
)
def test_nothing_of_the_corpus_is_missed(texts, response, n, error) -> None:
    grams = {t[i : i + n] for t in texts for i in range(len(t) - n + 1)}
    index = BloomIndex(texts, n, error)
    found = index.found(response).tolist()
    assert len(found) == max(len(response) - n + 1, 0)
    assert all(found[i] for i in range(len(found)) if response[i : i + n] in grams)
    assert all(index.found(t).all() for t in texts)
    assert index.quip(response) >= NGramIndex(texts, n).quip(response)


def test_quip_by_hand_is_that_of_the_exact_index() -> None:
    index = BloomIndex([FOX], 5, 1e-6)
    assert index.quip("quick brown fax") == pytest.approx(9 / 11)
    assert index.coverage("quick brown fax") == pytest.approx(13 / 15)
    assert index.quip("brown fox jumps") == 1 and index.quip("quic") == 0
    # "quick" counts twice, beside "uick " and " quic".
    assert index.quip("quick quick") == pytest.approx(4 / 7)
    assert BloomIndex([], 5).quip(FOX) == 0 and len(BloomIndex([], 5)) == 0


def test_a_capacity_that_is_too_small_is_told_by_the_error() -> None:
    text = "".join(np.random.default_rng(2).choice(list("abcdefgh"), 5000))
    crowded = BloomIndex(iter([text]), 25, 0.01, capacity=500)
    assert crowded.error > 0.5 and crowded.found(text).all()
    for bad in ({"n": 0}, {"error": 1.0}, {"error": 0.0}, {"capacity": 0}):
        with pytest.raises(ValueError, match="must be at least 1"):
            BloomIndex([FOX], **bad)


def test_a_saved_filter_is_the_same(tmp_path) -> None:
    index = BloomIndex([FOX], 5, 0.01)
    path = tmp_path / "fox.bloom"
    index.save(path)
    again = BloomIndex.load(path)
    text = FOX + " and the quick red fox"
    assert again.found(text).tolist() == index.found(text).tolist()
    assert (again.n, again.error, len(again)) == (5, index.error, len(index))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UsageError, match="cannot be read"):
        BloomIndex.load(path)
    path.write_text("something else")
    with pytest.raises(UsageError, match="no filter"):
        BloomIndex.load(path)
    with pytest.raises(UsageError, match="cannot be read"):
        BloomIndex.load(tmp_path / "none.bloom")


@given(st.lists(st.text("ab \u4e2d\ud800", max_size=9), max_size=6), st.integers(1, 4), st.booleans())
def test_looking_up_texts_together_is_looking_up_each(texts, n, bloom) -> None:
    index = BloomIndex(["ab ba", "aab"], n, 0.3) if bloom else NGramIndex(["ab ba", "aab"], n)
    assert quips(index, texts) == [index.quip(text) for text in texts]


# --- the reward -------------------------------------------------------------------------------------------------------


def texts_of(make_batch, texts, reference, lengths=None, **more) -> Batch:
    tasks = [Task("t", "q", reference)] * len(texts)
    return make_batch(lengths or [len(t) for t in texts], [0.0] * len(texts), texts=texts, tasks=tasks, **more)


def test_quip_of_a_tasks_documents(make_batch) -> None:
    batch = texts_of(make_batch, ["quick brown fax", FOX, "Quick  brown\nfox", "", "zzz"], [FOX])
    found = Quip(n=5)(batch)
    assert found.values.tolist() == pytest.approx([9 / 11, 1, 1, 0, 0]) and found.valid.all()
    assert Quip(n=5, plain=False)(batch).values[2] < 0.6
    loud = texts_of(make_batch, ["the quick brown"], ["The QUICK brown fox"])
    assert Quip(n=5)(loud).values.tolist() == [1] and Quip(n=5, plain=False)(loud).values[0] < 0.5
    left = Quip(n=5, short="leave_out")(batch)
    assert left.valid.tolist() == [True, True, True, False, False] and left.values[3:].tolist() == [0, 0]
    # Five characters are one 5-gram: no longer short.
    assert Quip(n=5, short="leave_out")(texts_of(make_batch, ["quick"], [FOX])).values.tolist() == [1]
    assert Quip(n=1)(texts_of(make_batch, ["qx!"], [FOX])).values.tolist() == pytest.approx([2 / 3])
    named = texts_of(make_batch, ["quick brown fax", "jumps"], {"a": FOX, "b": "jumps over"})
    assert Quip(n=5)(named).values.tolist() == pytest.approx([9 / 11, 1])
    tagged = texts_of(make_batch, [f"hm <answer>{FOX}</answer>"], {"documents": {"a": FOX}})
    assert Quip(n=5)(tagged).values.tolist() == [1]


def test_who_has_no_reward(make_batch) -> None:
    batch = texts_of(make_batch, [FOX, FOX], None)
    assert not Quip(n=5)(batch).valid.any()
    batch = texts_of(make_batch, [FOX, FOX], [FOX], passed=[None, False])
    assert Quip(n=5)(batch).valid.tolist() == [False, True]
    for bad in ({"n": 0}, {"error": 1.0}, {"error": 0.0}):
        with pytest.raises(UsageError, match="quip"):
            Quip(**bad)


@pytest.mark.parametrize("error", [None, 1e-6])
def test_quip_of_files(make_batch, tmp_path, error) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("The quick brown fox")
    two.write_text("jumps over")
    made = build("reward", {"name": "quip", "corpus": [str(one), str(two)], "n": 5, "error": error})
    # The files come before the documents, and no n-gram runs from one file into the next.
    batch = texts_of(make_batch, ["the quick brown", "jumps over", "fox jumps"], ["something else"])
    assert made(batch).values.tolist() == pytest.approx([1, 1, 1 / 5])
    three = tmp_path / "three.txt"
    three.write_text("abc")
    # 15 and 6 n-grams of five characters and none: -21 ln(1e-6) / ln(2)^2 bits; for a corpus of none, those of one.
    sizes = [getattr(corpus_index(paths, 5, 1e-6), "size") for paths in ((one, two, three), (three,))]  # noqa: B009
    assert sizes == [604, 29] and corpus_index((one,)).n == 25
    assert corpus_index((one,), 5).quip("the quick") == 1 > corpus_index((one,), 5, plain=False).quip("the quick")
    two.write_text("abc")
    assert Quip((two,), 5, error)(batch).values.tolist() == [0, 0, 0]
    with pytest.raises(UsageError, match="cannot be read"):
        Quip((tmp_path / "none.txt",), 5, error)
    saved = tmp_path / "fox.bloom"
    BloomIndex([FOX], 5).save(saved)
    ready = Quip((saved,))
    assert ready.n == 5 and ready(batch).values.tolist()[0] == 1


# --- pairs and method -------------------------------------------------------------------------------------------------


def brute(quips, lengths, margin, length):
    """The pair with the largest sum of QUIP among those that may be picked."""
    may = [
        (quips[w] + quips[v], w, v)
        for w in range(len(quips))
        for v in range(len(quips))
        if quips[w] - quips[v] >= margin - 1e-9 and abs(lengths[w] - lengths[v]) <= length * min(lengths[w], lengths[v])
    ]
    best = max(may)[0] if may else 0
    return sorted([w, v] for total, w, v in may if total > best - 1e-9)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(5, 12)), min_size=2, max_size=8),
    st.sampled_from([0.1, 0.3]),
    st.sampled_from([0.1, 0.5]),
)
def test_the_pair_with_the_most_quoted_in_all(make_batch, samples, margin, length) -> None:
    quips, lengths = [q / 20 for q, _ in samples], [t for _, t in samples]
    batch = make_batch(lengths, quips)
    batch.rewards = torch.tensor(quips, dtype=torch.float64)
    batch.weights = make("S179", margin=margin, length=length).select(batch)
    better, worse = picked(batch)
    assert [list(p) for p in zip(better.tolist(), worse.tolist(), strict=True)] == brute(quips, lengths, margin, length)


def test_short_responses_do_not_win_by_being_short(make_batch) -> None:
    """A short answer that is quoted throughout, and a long one of which more characters are quoted."""
    texts = [FOX[:30], FOX + " or so it says there", "nobody ever wrote any such thing in a sentence here, I think"]
    batch = texts_of(make_batch, texts, [FOX], lengths=[6, 12, 12])
    method = make("S179", n=10)
    batch.rewards = method.reward(batch).values
    assert batch.rewards[0] == 1 > batch.rewards[1] > 0.5 and batch.rewards[2] == 0
    batch.weights = method.select(batch)
    assert [t.tolist() for t in picked(batch)] == [[1], [2]]
    batch.weights = torch.ones(3, dtype=torch.float64)
    batch.weights = Pairs(margin=0.1, rank="total")(batch)
    assert [t.tolist() for t in picked(batch)] == [[0], [1]]


def test_defaults_are_the_papers() -> None:
    method = make("quote-tuning")
    assert (method.select.margin, method.select.length, method.select.count, method.reward.n) == (0.1, 0.1, 1, 25)
    assert method.objective.loss.beta == 0.1 and method.reward.error == 1e-3 and Quip().n == 25
    assert make_method("S179", select={"length": None}).select.length is None
    assert isinstance(make_method("grpo", reward={"name": "S179", "n": 7}).reward, Quip)


def test_the_setting_reads_as_its_corpus(tmp_path) -> None:
    setting = load("phrases", {"steps": 3, "depth": 3})
    found = setting.run({"name": "S179"}, 0, tmp_path)
    assert found["rollouts"] == 3 * 2 * 16
    assert 0 < found["quoted/start"] < found["said/start"] < 3
    assert found["share"] == pytest.approx(found["quoted"] / found["said"])
    assert found["quoted"] > found["quoted/start"]
    with pytest.raises(UsageError, match="phrases"):
        load("phrases", {"wordings": 1})


@pytest.mark.parametrize("error", [0.1, 0.01, 0.001])
def test_memory_and_false_positives_are_as_told(error) -> None:
    """Measured on n-grams that are not in the corpus, against (1 - exp(-k d / m))^k within four standard errors."""
    random = np.random.default_rng(0)
    corpus, other = ("".join(random.choice(list("abcdefgh "), 120_000)) for _ in range(2))
    exact, index = NGramIndex([corpus], 25), BloomIndex([corpus], 25, error)
    distinct = len(exact)
    assert index.nbytes == math.ceil(math.ceil(-(len(corpus) - 24) * math.log(error) / math.log(2) ** 2) / 8)
    assert index.nbytes < exact.hashes.nbytes * 1.45 * math.log2(1 / error) / 64
    assert len(index) == pytest.approx(distinct, rel=0.01)
    theory = (1 - math.exp(-index.functions * distinct / index.size)) ** index.functions
    assert theory == pytest.approx(error, rel=0.06)
    assert index.error == pytest.approx(theory, rel=0.05)
    absent = ~exact.found(other)
    measured, trials = float(index.found(other)[absent].mean()), int(absent.sum())
    assert trials > 100_000
    assert abs(measured - theory) < 4 * math.sqrt(theory * (1 - theory) / trials)


def test_the_error_asked_for_holds_at_any_size() -> None:
    """Sizes of all parities, among them powers of two, whose remainders are low bits."""
    random = np.random.default_rng(1)
    corpus, other = ("".join(random.choice(list("abcdefgh"), 20_000)) for _ in range(2))
    for capacity in (19_976, 20_480, 32_768, 65_536):
        index = BloomIndex([corpus], 25, 0.01, capacity)
        assert float(index.found(other).mean()) < 0.013


def test_pairs_of_recorded_responses_stay_what_they_are() -> None:
    """With the initial policy's responses on record, updates of the policy change no pair; the loss is DPO's."""
    method = make_method("S179", rollout="recorded", options={"n": 3})
    start = nano()
    said = ["12345", "12399", "99999", "123456789"]  # 3 of 3, 1 of 3, none, and too long beside the others
    task = Task("t", "1+", ["0123456789"], meta={"responses": [{"text": t, "reward": 0.0} for t in said]})
    rollout = build("rollout", method.rollout, sampling=Sampling(12))
    moved = start.twin()
    for parameter in moved.module.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    for policy in (start, moved):
        batch = Batch.from_groups(rollout.collect([Ask(task, 4)], HFEngine(policy), np.random.default_rng(0)))
        compute_signals(batch, method.needs, Models(policy, start, encode=policy.encode))
        method.value(batch)
        assert batch.rewards.tolist() == pytest.approx([1, 1 / 3, 0, 1])
        batch.weights = method.select(batch)
        assert [rows.tolist() for rows in picked(batch)] == [[0], [1]]
        with torch.no_grad():
            loss = method.objective(policy.forward(batch).logprobs, batch).value.item()
        now, then = (p.forward(batch).logprobs[:2].where(batch.mask[:2], 0).sum(1).tolist() for p in (policy, start))
        margin = (now[0] - then[0]) - (now[1] - then[1])
        assert loss == pytest.approx(math.log(1 + math.exp(-0.1 * margin)), abs=1e-5)
