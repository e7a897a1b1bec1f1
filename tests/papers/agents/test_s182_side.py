"""S182, SIDE: numbers by hand, an encoder that learns from planted citations, the command."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from running import run

from assay.environments.search.corpus import Corpus, Document
from assay.errors import UsageError
from assay.evaluate.citations import (
    Checked,
    CitedClaim,
    Retrieval,
    check,
    embedding,
    examples,
    measures,
    read_claims,
    sought,
)
from assay.ops.latent import latent_positive_loss
from assay.papers.agents.s182_side import side
from assay.types import Task
from assay.verify.support.bi_encoder import BiEncoder, Sought, contrastive_loss
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
    assert passages_of("", "Title") == passages_of("", "Title", 1) == ["Title. "]
    assert passages_of("a b", words=1) == ["a", "b"]
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


def test_of_a_long_claim_title_and_section_are_read_and_the_end():
    """The authors cut the text from its beginning, and let title and section have a fifth of the room each."""
    words = [f"w{i}" for i in range(200)]
    short = CitedClaim("1", " ".join(words[:97]), "d", "Page", "Old History")
    assert short.read == short.query and len(short.query.split()) == 100
    long = CitedClaim("1", " ".join(words), "d", "Page", "Old History")
    assert long.read.split() == ["Page", "Old", "History", *words[103:]]
    named = CitedClaim("1", " ".join(words), "d", " ".join(["t"] * 30))
    assert named.read.split() == ["t"] * 20 + words[120:]
    found = CitedClaim("1", " ".join(words), "d").read
    assert found.split() == words[100:]
    world = Corpus([Document("d", "", "w199 is here"), Document("e", "", "w0 is here")])
    asked: list[str] = []

    def embed(texts):
        asked.extend(texts)
        return np.eye(max(len(texts), 2))[: len(texts)]

    retrieval = Retrieval(world, 1, embed)
    retrieval.find([long])
    assert asked[-1] == long.read
    assert examples([long], retrieval)[0].claim == sought([long], retrieval)[0].claim == long.read
    check([long], retrieval, Heard(asked))
    assert asked[-1] == long.read


class Heard:
    """An encoder that notes the claims it reads."""

    def __init__(self, asked):
        self.asked = asked

    def scores(self, pairs):
        self.asked.extend(claim for claim, _ in pairs)
        return np.zeros(len(pairs))


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
    # A hundred documents of either way.
    assert "retrieval/success@100" in measures(rows) and Retrieval(planted(1)[0]).k == 100


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
    usual = examples([CitedClaim("0", claims[0].text, "d0")], Retrieval(corpus, 2), words=1)[0]
    assert (len(usual.positives), len(usual.negatives)) == (8, 8), "the first of ten words"
    assert not set(first.negatives) & set(first.positives) - set(passages_of(corpus.documents["x0"].text, words=4))
    with pytest.raises(UsageError, match="no document 'gone'"):
        examples([CitedClaim("0", "thing0 is red", "gone")], Retrieval(corpus, 2))


@pytest.mark.slow
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
    from assay.cli.citations.check import citations_check, citations_train

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


def test_the_contrastive_loss_by_hand():
    """Of scores 2, 1 and 0 with the first cited -log(e^2 / (e^2 + e + 1)) = 0.4076; what is cited twice is no other."""
    claims = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]])
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    documents = torch.eye(3)
    want = [math.log(math.exp(2) + math.e + 1) - 2, math.log(1 + math.e + math.exp(3)) - 1]
    assert want[0] == pytest.approx(0.4076, abs=5e-5)
    assert float(contrastive_loss(claims, documents, [0, 1], nothing)) == pytest.approx(sum(want) / 2)
    same = torch.tensor([[True, False, True], [False, True, False]])
    want[0] = math.log(1 + math.exp(-1))
    assert float(contrastive_loss(claims, documents, [0, 1], same)) == pytest.approx(sum(want) / 2)


def told_otherwise(n=24):
    """Claims that share no word with what they cite: each of n animals has a document under another name."""
    names = [(f"a{i}", f"b{i}") for i in range(n)]
    documents = [Document(f"d{i}", f"the b{i}", f"b{i} lives far away and eats grass") for i in range(n)]
    claims = [CitedClaim(f"{i}/{k}", f"{said} a{i}", f"d{i}") for i in range(n) for k, said in enumerate(("is", "see"))]
    assert len(names) == n
    return Corpus(documents), claims


def success(retrieval, claims, k=1):
    found = retrieval.find(claims)
    return np.mean([c.source in names[-k:] for c, names in zip(claims, found, strict=True)])


@pytest.mark.slow
def test_a_retriever_learns_to_find_what_is_cited(tmp_path, capsys):
    from assay.cli.citations.search import citations_train_retriever

    corpus, claims = told_otherwise()
    shown = sought(claims, Retrieval(corpus, 2), 1)
    assert shown[0].claim == "is a0" and shown[0].cited == "the b0 b0 lives far away and eats grass"
    documents, file = written(tmp_path, corpus, claims)
    out = tmp_path / "retriever"
    assert citations_train_retriever(file, documents, out, epochs=30, lr=3e-3, batch=16, as_json=True) == 0
    losses = json.loads(capsys.readouterr().out)["epochs"]
    assert losses[-1] < 0.3 < losses[0]
    # By words nothing is found; an encoder that knows nothing finds as many as chance does.
    assert all(not names for names in Retrieval(corpus, 1).find(claims))
    texts = [text for e in shown for text in (e.claim, e.cited)]
    assert success(Retrieval(corpus, 1, BiEncoder.fresh(texts)), claims) < 0.2
    embed = embedding(out)
    assert isinstance(embed, BiEncoder) and success(Retrieval(corpus, 1, embed), claims) > 0.9
    vectors = embed([c.text for c in claims])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(claims)), abs=1e-5)
    np.testing.assert_allclose(BiEncoder(out, token_budget=1)([c.text for c in claims]), vectors, atol=1e-5)
    assert citations_train_retriever(file, documents, tmp_path / "table", epochs=1, others=0) == 0
    assert "--embed" in capsys.readouterr().out
    for bad, message in (({"out": out}, "is there already"), ({"epochs": 0, "out": tmp_path / "n"}, "--epochs")):
        with pytest.raises(UsageError, match=message):
            citations_train_retriever(file, documents, **bad)
    with pytest.raises(UsageError, match="two documents or more"):
        embed.fit([Sought("a", "b"), Sought("c", "b")], np.random.default_rng(0))
    with pytest.raises(UsageError, match="no encoder can be read"):
        BiEncoder(tmp_path / "none")


def test_other_documents_are_the_best_that_are_not_cited():
    corpus = Corpus([Document("a", "A", "x y"), Document("b", "", "x y z"), Document("c", "", "x")])
    [found] = sought([CitedClaim("1", "x y z", "a")], Retrieval(corpus, 3), 2)
    assert found == Sought("x y z", "A x y", (" x y z", " x"))
    assert sought([CitedClaim("1", "x y z", "a")], Retrieval(corpus, 3))[0].others == (" x y z",)
    with pytest.raises(UsageError, match="no document 'gone'"):
        sought([CitedClaim("1", "x", "gone")], Retrieval(corpus, 3))


@pytest.mark.slow
def test_a_model_learns_to_name_sources(tmp_path, capsys):
    from assay.cli.citations.check import _expansion
    from assay.cli.citations.search import citations_expansions

    corpus, claims = told_otherwise(6)
    documents, file = written(tmp_path, corpus, claims)
    out = tmp_path / "tasks.jsonl"
    assert citations_expansions(file, documents, out) == 0
    told = capsys.readouterr().out
    assert f'path = "{out}"' in told and 'solution = "answer"' in told
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 12 and rows[0]["answer"] == "the b0" and "A page says: is a0\n" in rows[0]["prompt"]
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 32, "layers": 1, "heads": 2, "context": 160, "alphabet": letters(rows)}},
        tasks={
            "source": {"name": "file", "path": str(out), "solution": "answer", "kind": "text"},
            "eval_size": 1,
            "eval_share": 0.2,
        },
        warmup={"steps": 80, "batch": 8, "lr": 1e-2},
        method={"reward": None},
        rollout={"prompts": 2, "group": 2, "max_tokens": 8, "max_rows": 8},
        train={"steps": 1, "lr": 1e-6},
        evaluate={"every": 0},
    )
    expand = _expansion(str(folder))
    assert success(Retrieval(corpus, 1, expand=expand), claims) > 0.7
    untitled = Corpus([Document(d.id, "", d.text) for d in corpus.documents.values()])
    bare, _ = written(tmp_path, untitled, claims)
    with pytest.raises(UsageError, match="no claim cites a document that has a title"):
        citations_expansions(file, bare, out)


def letters(rows):
    return "".join(sorted({c for row in rows for c in row["prompt"] + row["answer"]}))


def written(folder, corpus, claims):
    """Files of a corpus and of claims."""
    documents, file = folder / "documents.jsonl", folder / "claims.jsonl"
    rows = [{"id": k, "title": d.title, "text": d.text} for k, d in corpus.documents.items()]
    documents.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    file.write_text(
        "".join(json.dumps({k: getattr(c, k) for k in ("id", "text", "source")}) + "\n" for c in claims),
        encoding="utf-8",
    )
    return documents, file
