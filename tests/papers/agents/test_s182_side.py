"""S182, SIDE: numbers by hand, an encoder that learns from planted citations, the command."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from assay.environments.search.corpus import Corpus, Document
from assay.errors import UsageError
from assay.evaluate.citations import (
    Checked,
    CitedClaim,
    Retrieval,
    check,
    examples,
    measures,
    read_claims,
)
from assay.ops.latent import latent_positive_loss
from assay.papers.agents.s182_side import side
from assay.types import Task
from assay.verify.support.cross_encoder import Cited, CrossEncoder
from assay.verify.support.passages import passages_of
from assay.verify.support.verifier import Supported, document_scores

SCORES = torch.tensor([2.0, 1.0, 0.0, -1.0])
POSITIVE = torch.tensor([False, True, True, False])


def loss(how, sharpness=1.0, scores=SCORES, positive=POSITIVE, generator=None):
    return float(latent_positive_loss(scores, positive, how, sharpness, generator))


class Words:
    """Scores a passage by the words it shares with the claim."""

    def scores(self, pairs):
        return np.array([len(set(c.lower().split()) & set(p.lower().split())) for c, p in pairs], dtype=float)


def planted(n=40):
    """Claims whose documents say them between two sentences of filler, each with a decoy that says another colour."""
    rng = np.random.default_rng(3)
    colours = ["red", "blue", "green", "white"]
    documents, claims = [], []
    for i in range(n):
        colour, other = rng.permutation(colours)[:2]
        text = "some words here {} and more words there"
        documents.append(Document(f"d{i}", "", text.format(f"thing{i} was {colour}")))
        documents.append(Document(f"x{i}", "", text.format(f"thing{i} was {other}")))
        fails = i % 5 == 4
        source = f"x{i}" if fails else f"d{i}"
        claims.append(CitedClaim(str(i), f"thing{i} is {colour}", source, better=f"d{i}", fails=fails))
    return Corpus(documents), claims


def test_the_five_losses_by_hand():
    assert loss("hard_em") == pytest.approx(1.3490, abs=5e-5)
    second = -math.log(1 / (1 + math.exp(2) + math.exp(-1)))  # passage 2 against 0 and 3
    assert loss("soft_em") == pytest.approx(1.5698, abs=5e-5)
    assert loss("soft_em") == pytest.approx(0.7311 * 1.3490 + 0.2689 * second, abs=1e-3)
    assert loss("uniform") == pytest.approx((loss("hard_em") + second) / 2)
    assert loss("first") == pytest.approx(1.3490, abs=5e-5)
    assert loss("first", scores=torch.tensor([2.0, 0.0, 1.0, -1.0])) == pytest.approx(second)
    plain = loss("hard_em", positive=torch.tensor([True, False, False, False]))
    assert plain == pytest.approx(0.4402, abs=5e-5)


def test_sharpness_goes_from_uniform_to_hard():
    assert loss("soft_em", 0.0) == pytest.approx(loss("uniform"))
    assert loss("soft_em", 1e4) == pytest.approx(loss("hard_em"))


def test_a_random_positive_is_drawn_evenly():
    generator = torch.Generator().manual_seed(0)
    drawn = [loss("random", generator=generator) for _ in range(400)]
    hard = sum(abs(x - loss("hard_em")) < 1e-6 for x in drawn)
    assert len({round(x, 4) for x in drawn}) == 2
    assert 150 < hard < 250  # five standard deviations around 200


def test_the_e_step_carries_no_gradient():
    scores = SCORES.clone().requires_grad_()
    latent_positive_loss(scores, POSITIVE, "soft_em").backward()
    weight = torch.tensor([1.0, 0.0]).softmax(0)
    wanted = torch.zeros(4)
    for w, j in zip(weight, (1, 2), strict=True):
        among = torch.tensor([0, j, 3])
        p = SCORES[among].softmax(0)
        wanted[among] += w * p
        wanted[j] -= w
    torch.testing.assert_close(scores.grad, wanted)


@pytest.mark.parametrize("positive", [[True] * 4, [False] * 4])
def test_a_claim_needs_both_sorts_of_passages(positive):
    with pytest.raises(ValueError, match="needs a passage"):
        loss("soft_em", positive=torch.tensor(positive))


def test_passages_are_runs_of_words_with_the_title():
    assert passages_of("a b c d e", "On  it", 2) == ["On it. a b", "On it. c d", "On it. e"]
    assert passages_of("", "Title") == ["Title. "]
    assert [len(p.split()) for p in passages_of("w " * 250)] == [100, 100, 50]
    with pytest.raises(UsageError, match="one word or more"):
        passages_of("a", words=0)


def test_a_document_scores_as_its_best_passage():
    found = document_scores(Words(), "a b c", {"one": "a b c x y z", "two": "a x b x"}, 3)
    assert found == {"one": 3.0, "two": 2.0}
    longer = document_scores(Words(), "a b c", {"one": "q q q a b c x y z q q q"}, 3)
    assert longer["one"] == found["one"]  # passages that score lower change nothing


def test_the_query_is_title_section_and_text():
    assert CitedClaim("1", "It was so.", "d", "Page", "History").query == "Page History It was so."
    assert CitedClaim("1", "It was so.", "d").query == "It was so."


def test_two_ways_of_finding_are_put_together():
    corpus = Corpus([Document("word", "", "apple tree"), Document("near", "", "fruit"), Document("far", "", "stone")])
    near = {"fruit": [1.0, 0.1], "apple": [1.0, 0.0], " apple tree": [0.6, 0.8]}

    def embed(texts):
        return [near.get(text.strip(), near.get(text, [0.0, 1.0])) for text in texts]

    claim = CitedClaim("1", "apple", "word")
    assert Retrieval(corpus, 1).find([claim]) == [["word"]]
    assert Retrieval(corpus, 1, embed).find([claim]) == [["word", "near"]]
    [found] = Retrieval(corpus, 2, expand=lambda queries: ["stone"] * len(queries)).find([claim])
    assert set(found) == {"word", "far"}


def test_only_what_is_better_is_proposed():
    corpus = Corpus([Document("a", "", "x y z"), Document("b", "", "x y z"), Document("c", "", "x y")])
    claims = [CitedClaim("same", "x y z", "b"), CitedClaim("worse", "x y z", "c")]
    found = {c.claim.id: c for c in check(claims, Retrieval(corpus), Words())}
    assert found["same"].proposal is None  # a scores the same: nothing is gained
    assert found["worse"].proposal in {"a", "b"}
    assert [c.claim.id for c in check(claims, Retrieval(corpus), Words())] == ["worse", "same"]


def test_the_worst_are_mostly_altered():
    corpus, claims = planted()
    found = measures(check(claims, Retrieval(corpus, 10), Words()), 10)
    assert (found["flagged/fails"].count, found["flagged/fails"].total) == (4, 4)
    assert (found["fails"].count, found["fails"].total) == (8, 40)
    assert found["proposal/right"].value == found["ranked/first"].value == 1


def test_the_measures_by_hand():
    def one(id, better, fails, retrieved, ranked, score):
        return Checked(CitedClaim(id, "t", "s", better=better, fails=fails), score, ranked, retrieved)

    rows = [
        one("1", "g", True, ("g", "s"), (("g", 2.0), ("s", 0.0)), 0.0),
        one("2", "g", False, ("x", "g"), (("x", 3.0), ("s", 1.0), ("g", 0.5)), 1.0),
        one("3", "s", None, ("x", "y"), (("s", 5.0), ("x", 1.0)), 5.0),
    ]
    found = {name: (r.count, r.total) for name, r in measures(rows, 2, 0.5).items()}
    assert found == {
        "retrieval/precision@1": (1, 3),
        "retrieval/success@2": (2, 3),
        "ranked/first": (2, 3),
        "proposal/right": (1, 2),
        "flagged/fails": (1, 1),
        "fails": (1, 2),
    }
    assert measures([rows[2]], 1)["retrieval/success@1"].count == 0
    assert "fails" not in measures([rows[2]])


@pytest.fixture(scope="module")
def learned():
    corpus, claims = planted(15)
    right = [CitedClaim(c.id, c.text, c.better) for c in claims]
    taught = examples(right, Retrieval(corpus, 4), words=5, passages=4)
    texts = [text for e in taught for text in (e.claim, *e.positives, *e.negatives)]
    encoder = CrossEncoder.fresh(texts, seed=1, hidden=32, layers=2, max_length=32)
    return corpus, claims, encoder, encoder.fit(taught, np.random.default_rng(0), epochs=40, lr=5e-3, batch=15)


def test_examples_are_the_cited_document_against_what_else_is_found():
    corpus, claims = planted(3)
    first = examples([CitedClaim("0", claims[0].text, "d0")], Retrieval(corpus, 2), words=4, passages=2)[0]
    assert first.claim == claims[0].text
    assert first.positives == tuple(passages_of(corpus.documents["d0"].text, words=4)[:2])
    assert len(first.negatives) == 2
    assert not set(first.negatives) & set(first.positives) - set(passages_of(corpus.documents["x0"].text, words=4))
    with pytest.raises(UsageError, match="no document 'gone'"):
        examples([CitedClaim("0", "thing0 is red", "gone")], Retrieval(corpus, 2))


def test_an_encoder_learns_which_passage_bears_a_claim(learned):
    corpus, claims, encoder, history = learned
    assert history[-1].loss < history[0].loss - 0.2
    assert history[-1].first > 0.9
    found = measures(check(claims, Retrieval(corpus, 4), encoder, 5), 4, 0.15)
    assert found["flagged/fails"].value > 2 * found["fails"].value
    assert found["ranked/first"].value > 0.8


def test_an_encoder_is_read_as_it_was_written(learned, tmp_path):
    encoder = learned[2]
    encoder.save(tmp_path / "saved")
    pairs = [("thing1 is red", "some words here thing1"), ("thing2 is blue", "was blue and more")] * 3
    again = CrossEncoder(tmp_path / "saved")
    np.testing.assert_allclose(again.scores(pairs), encoder.scores(pairs), atol=1e-6)
    few = CrossEncoder(tmp_path / "saved", token_budget=1)
    np.testing.assert_allclose(few.scores(pairs), encoder.scores(pairs), atol=1e-5)


def test_words_that_stand_in_both_are_marked(learned):
    encoder = learned[2]
    ids, types = encoder._read("thing1 is red", "thing1 was unheard")
    said = encoder.tokenizer.convert_ids_to_tokens(ids)
    assert said == ["[CLS]", "thing1", "is", "red", "[SEP]", "thing1", "was", "[UNK]", "[SEP]"]
    assert types == [0, 2, 0, 0, 0, 3, 1, 1, 1]
    assert encoder._read("red " * 300, "x")[0][1:-3] == encoder._read("red " * 100, "x")[0][1:-3]


def test_what_cannot_be_learned_from_or_read_is_said(learned, tmp_path):
    encoder = learned[2]
    with pytest.raises(UsageError, match="nothing to learn from"):
        encoder.fit([Cited("a", ("b",), ())], np.random.default_rng(0))
    with pytest.raises(UsageError, match="no cross-encoder can be read"):
        CrossEncoder(tmp_path)
    with pytest.raises(UsageError, match="needs texts"):
        CrossEncoder.fresh([])


def test_the_verifier_compares_sources(learned, tmp_path):
    _, claims, encoder, _ = learned
    encoder.save(tmp_path / "saved")
    verifier = Supported(tmp_path / "saved", words=5)
    corpus = learned[0]
    sources = {name: corpus.documents[name].text for name in ("d0", "x0", "d1")}
    task = Task("t", "which?", {"claim": claims[0].text, "sources": sources}, "supported")
    right, wrong = (verifier(task, f"<answer>[[{name}]]</answer>") for name in ("d0", "x0"))
    assert right.passed is True
    assert wrong.passed is False
    assert 0 < wrong.score < right.score < 1
    assert "d0 supports it better" in wrong.feedback
    every = verifier(task, "<answer>[[d0]] [[x0]] [[d1]]</answer>")
    assert every.passed is False
    assert verifier(task, "<answer>[[d9]]</answer>").feedback == "cites d9, which is none of the sources"
    assert verifier(task, "it is d0").feedback == "cites no source"
    assert verifier(Task("t", "which?", "d0", "supported"), "<answer>[[d0]]</answer>").passed is None
    shares = [verifier(task, f"<answer>[[{name}]]</answer>").score for name in sources]
    assert sum(shares) == pytest.approx(1)


def test_claims_are_read_from_a_file(tmp_path):
    file = tmp_path / "claims.jsonl"
    file.write_text('{"text": "a", "source": 5}\n')
    with pytest.raises(UsageError, match="line 1: a claim is"):
        read_claims(file)
    file.write_text('{"text": "a", "source": "d", "fails": "yes"}\n')
    with pytest.raises(UsageError, match="fails is true or false"):
        read_claims(file)
    file.write_text('{"text": "a", "source": "d", "title": "T", "better": "e", "fails": false}\n')
    assert read_claims(file) == [CitedClaim("0", "a", "d", "T", "", "e", False)]


def test_the_command_trains_and_checks(tmp_path, capsys):
    from assay.cli.citations import citations_check, citations_train

    corpus, claims = planted(12)
    documents, file, out = tmp_path / "documents.jsonl", tmp_path / "claims.jsonl", tmp_path / "model"
    documents.write_text(
        "".join(json.dumps({"id": k, "text": d.text}) + "\n" for k, d in corpus.documents.items()), encoding="utf-8"
    )
    keys = ("id", "text", "source", "better", "fails")
    file.write_text("".join(json.dumps({k: getattr(c, k) for k in keys}) + "\n" for c in claims), encoding="utf-8")
    assert citations_train(file, documents, out, epochs=1, retrieved=3, words=5) == 0
    assert "cited first" in capsys.readouterr().out
    assert citations_check(file, documents, out, tmp_path / "checked.jsonl", retrieved=3, words=5, as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["claims"] == 12
    assert told["fails"]["total"] == 12
    rows = [json.loads(line) for line in (tmp_path / "checked.jsonl").read_text().splitlines()]
    assert [r["score"] for r in rows] == sorted(r["score"] for r in rows)
    assert [r["flagged"] for r in rows] == [True] + [False] * 11
    found = side(out, retrieved=3, words=5)(file, documents)
    assert [c.claim.id for c in found] == [r["id"] for r in rows]
    with pytest.raises(UsageError, match="is there already"):
        citations_train(file, documents, out)
    with pytest.raises(UsageError, match="--worst"):
        citations_check(file, documents, out, worst=0)
