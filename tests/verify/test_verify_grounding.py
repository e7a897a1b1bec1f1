"""Quotations, citations, evidence and verbatim shares against brute force and numbers worked by hand."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, Verdict
from assay.verify.grounding.citations import read_citations
from assay.verify.grounding.documents import read_documents
from assay.verify.grounding.ngrams import NGramIndex
from assay.verify.grounding.quotes import read_quotes

FOX = "The quick brown fox jumps over the lazy dog, and then it sleeps for hours."
PARIS = "Paris is the capital of France; it lies on the Seine. It\u2019s \u201cthe city of light\u201d."
DOCUMENTS = [FOX, PARIS]


def judge(kind: str, reference: object, response: str, **options: object) -> Verdict:
    return build("verify", {"name": kind, **options})(Task("t", "?", reference, kind), response)


# --- quotations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "passed"),
    [
        ('It says "quick brown fox jumps".', True),
        ("\u201cQuick  brown\nFOX jumps\u201d and \u00abit lies on the Seine.\u00bb", True),
        ("<quote>it's 'the city of light'</quote>", False),
        ('<quote>It\'s "the city of light"</quote>', True),
        ('"The quick brown fox ... it sleeps for hours"', True),
        ('"The quick brown fox [\u2026] sleeps for hours."', True),
        ('"it sleeps for hours ... the quick brown fox"', False),
        ('"the quick brown fox ... capital of France"', False),
        ('"the quick brown fox ... brown fox jumps over"', False),
        ('"T ... q ... b ... f"', False),
        ('"uick brown fox jump"', False),
        ('"quick brown fox jumps" and "it lies on the Thames"', False),
        ('the "dog" is "lazy"', False),
        ("nothing quoted", False),
        ('"quick brown fox jumps', False),
    ],
)
def test_quotes(response, passed):
    assert judge("quotes", DOCUMENTS, response).passed is passed


def test_share_of_quotes():
    verdict = judge("quotes", {"documents": DOCUMENTS}, '"quick brown fox jumps" and "it lies on the Thames"')
    assert verdict.score == 0.5 and verdict.parts == {"found": 0.5, "quote 1": 1, "quote 2": 0}
    assert "Thames" in verdict.feedback
    # Scare quotes count neither way.
    assert judge("quotes", DOCUMENTS, 'the "cat" says "quick brown fox jumps"').passed
    assert judge("quotes", DOCUMENTS, "no quotes", min_quotes=0).passed
    assert judge("quotes", DOCUMENTS, '"quick brown fox jumps" ' * 101).passed is False
    for reference in (None, 3, [], {}, [1, 2], {"documents": [{"id": 1}]}):
        assert judge("quotes", reference, '"quick brown fox jumps"').passed is None


@given(st.integers(0, 10), st.integers(4, 8))
def test_every_run_of_words_is_found(start, length):
    words = FOX.split()[start : start + length]
    if len(words) >= 4:
        assert judge("quotes", DOCUMENTS, f'It says "{" ".join(words)}" there.').passed


def test_read_quotes():
    text = 'a "b" \u201cc "d"\u201d <quote>e</quote> "f\ng"'
    assert [q.text for q in read_quotes(text)] == ["b", 'c "d"', "e"]
    assert text[: read_quotes(text)[0].end].endswith('"b"')


# --- citations --------------------------------------------------------------------------------------------------------


def test_read_citations():
    known = {str(i): "" for i in range(1, 6)} | {"smith-2020": "", "2-3": ""}
    names = [
        c.names for c in read_citations("a [1] b [2, 4] c [3-5] d [[smith-2020]] e [sic] f [9] g [2-3] h [1-x]", known)
    ]
    assert names == [("1",), ("2", "4"), ("3", "4", "5"), ("smith-2020",), ("9",), ("2-3",)]


def test_citations():
    spec = {"documents": DOCUMENTS, "gold": [2]}
    assert judge("citations", spec, 'Paris "is the capital of France" [2].').passed
    verdict = judge("citations", {"documents": DOCUMENTS}, 'Paris "is the capital of France" [1], see [3].')
    assert verdict.passed is False and verdict.score == 0
    assert verdict.parts == {"exist": 0.5, "quoted": 0, "[1]": 0, "[3]": 0}
    # F1 of P = 1/2, R = 1.
    verdict = judge("citations", spec, "Paris [1][2].")
    assert verdict.parts["precision"] == 0.5 and verdict.parts["recall"] == 1
    assert verdict.score == pytest.approx(2 / 3) and verdict.passed is False
    assert judge("citations", spec, "Paris [1][2].", threshold=0.6).passed
    assert judge("citations", spec, "Paris.").passed is False
    assert judge("citations", {"documents": {"a": FOX, "b": PARIS}}, "See [b].").passed
    assert judge("citations", {"documents": [{"id": 7, "text": FOX}]}, "See [7].").passed
    for reference in (None, {"documents": []}, {"documents": DOCUMENTS, "gold": 2}, 5):
        assert judge("citations", reference, "[1]").passed is None


def test_citing_everything_does_not_pay():
    documents = [f"text {i}" for i in range(10)]
    some = judge("citations", {"documents": documents, "gold": [1, 2]}, "[1]").score
    assert judge("citations", {"documents": documents, "gold": [1, 2]}, "[1-10]").score < some


def test_read_documents():
    assert read_documents("a") == {"1": "a"}
    assert read_documents(["a", {"id": "x", "text": "b"}]) == {"1": "a", "x": "b"}
    assert read_documents([{"id": "x", "text": "a"}, {"id": "x", "text": "b"}]) is None


# --- evidence ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "score"),
    [("[0, 5]", 1), ("[0, 1, 2, 5]", 0.833333), ("[0]", 0.555556), ("[0, 0, 5]", 0.909091), ("", 0), ("none", 0)],
)
@pytest.mark.parametrize("form", ["list", "chunks", "marks"])
def test_evidence_by_hand(block, score, form):
    # LongRLVR, beta = 2, gold {0, 5}.
    digits = [c for c in block if c.isdigit()]
    text = {
        "list": block,
        "chunks": " ".join(f"<CHUNK_{d}>" for d in digits),
        "marks": "".join(f"[[{d}]]" for d in digits),
    }
    response = f"think <useful_chunks>{text[form]}</useful_chunks> <answer>x</answer>"
    verdict = judge("evidence", [0, 5], response)
    assert verdict.score == pytest.approx(score, abs=1e-6)
    assert verdict.passed == (score == 1)


def test_evidence_format_and_parts():
    for bad in (
        "[0, 5]",
        "<useful_chunks>[0]",
        "</useful_chunks>[0]<useful_chunks>",
        "<useful_chunks>0</useful_chunks>" * 2,
    ):
        assert judge("evidence", [0], bad).parts == {"format": 0}
    # Veri-R1: half of two evidences; one of three; two superfluous ones.
    for text, gold, validity, jaccard in (
        ("[a]", "ab", 0.5, 0.5),
        ("[a]", "abc", 0, 1 / 3),
        ("[a][b][x][y]", "ab", 1, 0.5),
    ):
        parts = judge("evidence", list(gold), f"<e>{text}</e>", tag="e").parts
        assert parts["validity"] == validity and parts["jaccard"] == pytest.approx(jaccard)
    assert judge("evidence", ["x"], "<e>[y]</e>", tag="e").parts["validity"] == 0
    assert judge("evidence", {"evidence": []}, "<useful_chunks></useful_chunks>").passed is None


# --- verbatim ---------------------------------------------------------------------------------------------------------


def test_quip_by_hand():
    index = NGramIndex(["the quick brown fox jumps over the lazy dog"], 5)
    assert index.quip("quick brown fax") == pytest.approx(9 / 11)
    assert index.coverage("quick brown fax") == pytest.approx(13 / 15)
    assert index.quip("brown fox jumps") == 1
    assert index.quip("quic") == 0
    # n-grams do not run from one text into the next.
    assert NGramIndex(["abc", "def"], 4).quip("cdef") == 0 and len(NGramIndex([], 3)) == 0
    assert NGramIndex([], 3).quip("abcd") == 0


@given(
    st.lists(st.text("ab\U0001f600\ud800", max_size=30), max_size=3),
    st.text("ab\U0001f600\ud800", max_size=30),
    st.integers(1, 6),
)
def test_shares_by_brute_force(texts, response, n):
    grams = {t[i : i + n] for t in texts for i in range(len(t) - n + 1)}
    hits = [response[i : i + n] in grams for i in range(len(response) - n + 1)]
    index = NGramIndex(texts, n)
    assert len(index) == len(grams)
    assert index.found(response).tolist() == hits
    assert index.quip(response) == (pytest.approx(sum(hits) / len(hits)) if hits else 0)
    inside = {j for i, hit in enumerate(hits) if hit for j in range(i, i + n)}
    assert index.coverage(response) == (pytest.approx(len(inside) / len(response)) if response else 0)


def test_no_two_of_many_ngrams_collide():
    random = np.random.default_rng(0)
    text = "".join(random.choice(list("ab"), 200_000))
    assert len(NGramIndex([text], 25)) == len({text[i : i + 25] for i in range(len(text) - 24)})


def test_verbatim(tmp_path):
    assert judge("verbatim", DOCUMENTS, "the QUICK brown fox\njumps over the lazy dog").score == 1
    assert judge("verbatim", DOCUMENTS, "something that nobody ever wrote down here").score == 0
    assert judge("verbatim", DOCUMENTS, "quick brown").passed is False
    assert judge("verbatim", None, "the quick brown fox jumps over").passed is None
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(FOX)
    assert judge("verbatim", None, "the quick brown fox jumps over", corpus=[corpus]).passed
    with pytest.raises(UsageError, match="cannot be read"):
        build("verify", {"name": "verbatim", "corpus": [tmp_path / "none.txt"]})


# --- whatever comes ---------------------------------------------------------------------------------------------------

KINDS = {
    "quotes": DOCUMENTS,
    "citations": {"documents": DOCUMENTS, "gold": [1]},
    "evidence": [1],
    "verbatim": DOCUMENTS,
}


@pytest.mark.parametrize("kind", KINDS)
@given(st.text() | st.text(alphabet='"\u201c\u201d[]<>.\u2026 ab1,-\n', max_size=80))
@settings(deadline=None)
def test_never_raises(kind, text):
    for response in (text, f"<useful_chunks>{text}</useful_chunks>"):
        verdict = judge(kind, KINDS[kind], response)
        assert verdict.passed is not None and 0 <= verdict.score <= 1
        assert all(value is None or 0 <= value <= 1 for value in verdict.parts.values())


LONG = {
    "short quotes": '"a b c d e" ' * 80_000,
    "opening": "\u201c" * 10**6,
    "markers": "[1]" * 330_000,
    "brackets": "[" * 10**6,
    "tags": "<quote>" * 140_000,
    "blanks": '"' + " " * 999_000 + '"',
    "dots": '"' + ". " * 499_000 + '"',
    "pieces": '"' + "the quick ... " * 70_000 + '"',
    "quotes": '"' * 10**6,
    "chunks": f"<useful_chunks>{'[1]' * 300_000}</useful_chunks>",
    "numbers": f"<useful_chunks>{'1,' * 400_000}</useful_chunks>",
    "expanding": "\ufdfa" * 200_000,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LONG)
@pytest.mark.slow
def test_a_megabyte_is_read_in_seconds(kind, name):
    started = time.process_time()
    judge(kind, KINDS[kind], LONG[name])
    assert time.process_time() - started < 6


def test_a_needle_that_almost_fits_everywhere():
    started = time.process_time()
    document = "a b " * 100_000
    assert judge("quotes", [document], '"' + "a b " * 50_000 + 'c"').passed is False
    assert judge("quotes", ["ab" * 200_000], '"' + "ab" * 50_000 + ' x y z"').passed is False
    assert time.process_time() - started < 3
