"""Exact and normalised match; token F1, ROUGE-L and chrF against hand numbers and the packages that define them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, Verdict
from assay.verify.text.overlap import chrf, common_subsequence, f1, rouge_l
from assay.verify.text.text import normalised, tokens

KINDS = ["text", "token_f1", "rouge_l", "chrf"]


def judge(kind: str, reference: object, response: str, **options: object) -> Verdict:
    return build("verify", {"name": kind, **options})(Task("t", "?", reference), response)


@pytest.mark.parametrize(
    ("left", "right", "how"),
    [
        ("The Eiffel  Tower.", "eiffel tower", "squad"),
        ("don't", "DONT", "squad"),
        ("«Straße»", "strasse", "squad"),
        ("東京。", "東京", "squad"),
        ("ＡＢＣ", "abc", "squad"),
        ("A b", "a  B ", "case"),
        ("a  b\n", "a b", "space"),
        ("e\u0301", "\u00e9", "none"),
    ],
)
def test_same(left, right, how):
    assert normalised(left, how) == normalised(right, how)
    assert judge("text", left, f"<answer>{right}</answer>", normalise=how).passed is True


@pytest.mark.parametrize(
    ("left", "right", "how"),
    [
        ("A", "the", "squad"),
        ("?", "!", "squad"),
        ("a.b", "a b", "squad"),
        ("a.", "a", "case"),
        ("A", "a", "space"),
        ("a ", "a", "none"),
    ],
)
def test_different(left, right, how):
    assert normalised(left, how) != normalised(right, how)


def test_several_references_and_containment():
    assert judge("text", ["NYC", "New York"], "The answer is New York.").passed is True
    assert judge("text", {"answers": ["NYC", "New York"]}, "nyc").passed is True
    assert judge("text", "Rome", "It is Rome, surely").passed is False
    assert judge("text", "Rome", "It is Rome, surely", contains=True).passed is True
    assert judge("text", "Rome", "It is Romeo", contains=True).passed is False
    assert judge("text", "东京", "在东京都", contains=True).passed is True
    for kind in KINDS:
        assert judge(kind, [], "x").passed is None
        assert judge(kind, None, "x").passed is None
        assert judge(kind, "x", "").passed is False
        assert judge(kind, "a cat", "a dog and", rules=["boxed"], fallback="none").passed is False


def test_f1_by_hand():
    # Shared "cat", "sat": P = 2/3, R = 2/4, F1 = 4/7.
    assert f1("the cat sat on mats", "a cat sat down") == pytest.approx(4 / 7)
    assert f1("cat cat dog", "cat") == pytest.approx(2 * 1 / 4)
    assert f1("x", "y") == 0.0 and f1("", "x") == 0.0
    # Two of three characters of each.
    assert f1("東京都", "東京市") == pytest.approx(2 / 3)
    assert tokens("東京 is big") == ["東", "京", "is", "big"]
    verdict = judge("token_f1", ["nothing", "the cat sat on mats"], "a cat sat down", threshold=0.5)
    assert verdict.passed is True and verdict.score == pytest.approx(4 / 7)
    assert judge("token_f1", "the cat sat on mats", "a cat sat down", threshold=0.6).passed is False


def test_rouge_by_hand():
    # Lin 2004: "police killed the gunman" against "police kill the gunman" shares "police the gunman": 3/4.
    assert rouge_l("police killed the gunman", "police kill the gunman") == pytest.approx(0.75)
    assert rouge_l("police killed the gunman", "the gunman kill police") == pytest.approx(0.5)
    assert rouge_l("Ça va très bien", "ça va bien") == pytest.approx(6 / 7)


def test_chrf_by_hand():
    # Characters a, b, c against a, b, d: P = R = 2/3. Bigrams ab, bc against ab, bd: 1/2. Mean 7/12.
    assert chrf("abc", "a b d", char_order=1) == pytest.approx(2 / 3)
    assert chrf("abc", "abd", char_order=2) == pytest.approx(7 / 12)
    # P = 1, R = 1/2, beta = 2: 5 * .5 / (4 + .5).
    assert chrf("abcd", "ab", char_order=1) == pytest.approx(5 / 9)


WORDS = st.lists(
    st.sampled_from(["the", "cat,", "sat.", "on", "(a)", "Mat!", "x", "12", "fast-er", "don't"]), max_size=12
)
SENTENCES = WORDS.map(" ".join)


@given(SENTENCES, SENTENCES)
def test_rouge_is_the_package_s(reference, answer):
    scorer = pytest.importorskip("rouge_score.rouge_scorer", reason="rouge-score is not installed").RougeScorer(
        ["rougeL"]
    )
    assert rouge_l(reference, answer, "ascii") == pytest.approx(scorer.score(reference, answer)["rougeL"].fmeasure)


@given(SENTENCES, SENTENCES, st.sampled_from([0, 2]))
def test_chrf_is_sacrebleu_s(reference, answer, word_order):
    metric = pytest.importorskip("sacrebleu.metrics", reason="sacrebleu is not installed").CHRF(word_order=word_order)
    wanted = metric.sentence_score(answer, [reference]).score / 100
    assert chrf(reference, answer, word_order=word_order) == pytest.approx(wanted, abs=1e-9)


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_common_subsequence_is_the_table_s(left, right):
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    assert common_subsequence(left, right) == table[-1][-1]


@given(st.sampled_from(KINDS), st.text(), st.text())
def test_no_text_raises_and_scores_are_in_the_unit_interval(kind, reference, response):
    verdict = judge(kind, reference, response)
    assert 0 <= verdict.score <= 1
    if reference.strip():
        assert verdict.passed in (True, False)
        assert judge(kind, reference, reference, rules=[], fallback="whole").passed in (True, False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_a_megabyte_is_judged_in_bounded_time(kind):
    words = " ".join(map(str, range(150_000)))
    start = time.process_time()
    assert judge(kind, "a b c", words, fallback="whole").passed is False
    assert judge(kind, words[:99_000], words[1000:100_000], fallback="whole", rules=[]).passed in (True, False)
    assert judge("text", "b", "ab" * 500_000, fallback="whole", contains=True).passed is False
    assert time.process_time() - start < 10


def test_options_are_checked():
    for threshold in (0, 1.5, float("nan")):
        with pytest.raises(UsageError):
            build("verify", {"name": "chrf", "threshold": threshold})
    assert judge("chrf", "a" * 200_000, "a").passed is None
    assert judge("chrf", "a", "a" * 200_000).passed is False
