"""Every instruction kind followed and violated, by hand; IFEval's row format; loose mode; any text at all."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instruction_cases import CASES

from assay.registry import build
from assay.types import Task, Verdict
from assay.verify.instructions.passage import split_sentences
from assay.verify.instructions.verifier import known, variants

IFEVAL = {
    "keywords": ["existence", "frequency", "forbidden_words", "letter_frequency"],
    "language": ["response_language"],
    "length_constraints": ["number_sentences", "number_paragraphs", "number_words", "nth_paragraph_first_word"],
    "detectable_content": ["number_placeholders", "postscript"],
    "detectable_format": [
        "number_bullet_lists",
        "constrained_response",
        "number_highlighted_sections",
        "multiple_sections",
        "json_format",
        "title",
    ],
    "combination": ["two_responses", "repeat_prompt"],
    "startend": ["end_checker", "quotation"],
    "change_case": ["capital_word_frequency", "english_capital", "english_lowercase"],
    "punctuation": ["no_comma"],
}

LANGUAGE = {"language:response_language", "change_case:english_capital", "change_case:english_lowercase"}


def judge(reference: object, response: str, **options: object) -> Verdict:
    return build("verify", {"name": "instructions", **options})(Task("t", "What now?", reference), response)


def test_every_kind_of_ifeval_is_there_and_every_kind_has_a_case():
    ids = {f"{group}:{name}" for group, some in IFEVAL.items() for name in some}
    assert len(ids) == 25
    assert ids <= set(known())
    assert {case[0] for case in CASES} == set(known())
    assert len(known()) >= 25 + 10


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_followed_and_violated(case):
    name, arguments, good, bad = case
    if name in LANGUAGE:
        pytest.importorskip("langdetect", reason="the instructions extra is not installed")
    for text in good:
        verdict = judge([{"id": name, **arguments}], text)
        assert (verdict.passed, verdict.score, verdict.parts) == (True, 1.0, {name: 1.0}), text
    for text in bad:
        verdict = judge([{"id": name, **arguments}], text)
        assert (verdict.passed, verdict.score, verdict.parts) == (False, 0.0, {name: 0.0}), text


def test_a_row_of_the_data_set():
    # Key 1040 of IFEval, and the same with the empty cells a table has.
    row = {
        "instruction_id_list": [
            "change_case:capital_word_frequency",
            "change_case:capital_word_frequency",
            "startend:quotation",
        ],
        "kwargs": [
            {"capital_relation": "less than", "capital_frequency": 3, "num_words": None},
            {"capital_relation": "at least", "capital_frequency": 1.0, "keyword": float("nan")},
            {},
        ],
    }
    assert judge(row, '"THE skills"').passed is True
    verdict = judge(row, "ALL MY SKILLS")
    assert verdict.parts == {
        "change_case:capital_word_frequency": 0.0,
        "change_case:capital_word_frequency#2": 1.0,
        "startend:quotation": 0.0,
    }
    assert verdict.passed is False and verdict.score == pytest.approx(1 / 3)


def test_loose_takes_the_best_of_eight_variants():
    asked = [{"id": "startend:end_checker", "end_phrase": "Bye."}, {"id": "startend:quotation"}]
    response = 'Sure:\n**"Hello. Bye."**\nAnything else?'
    assert judge(asked, response).passed is False
    assert judge(asked, response, mode="loose").passed is True
    assert variants("a*\nb\nc*") == ["a*\nb\nc*", "b\nc*", "a*\nb", "b", "a\nb\nc", "b\nc", "a\nb"]


def test_what_cannot_be_checked_is_an_abstention_unless_another_is_violated():
    bad = [
        {"id": "no:such"},
        {"id": "keywords:frequency", "keyword": "a", "frequency": "x"},
        {"id": "punctuation:no_comma"},
    ]
    verdict = judge(bad, "fine")
    assert verdict.passed is None and verdict.parts["no:such"] is None and "no:such" in verdict.feedback
    assert judge(bad, "a, b").passed is False
    for reference in (None, 3, "x", [], {}, {"instruction_id_list": ["a"], "kwargs": []}, [{"x": 1}], [{"id": 3}]):
        assert judge(reference, "fine").passed is None
    assert judge([{"id": "punctuation:no_comma", "surplus": 1}], "fine").passed is None
    assert judge([{"id": "punctuation:no_comma"}], "  \n ").passed is False


def test_only_what_follows_the_last_tag_is_judged():
    asked = [{"id": "punctuation:no_comma"}]
    assert judge(asked, "<think>a, b</think>c", last_tag="</think>").passed is True
    assert judge(asked, "<think>a, b</think>c, d", last_tag="</think>").passed is False


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two! Three?", 3),
        ("Dr. Smith met Mr. J. Doe at 3.5 p.m. on Mon. morning.", 1),
        ("We use tools, e.g. hammers, i.e. heavy ones.", 1),
        ("Wait... what? Yes!!! No...", 3),
        ('He said "Stop." Then he left.', 2),
        ("1. First item.\n2. Second item.", 2),
        ("It was 1999. Then came 2000.", 2),
        ("He lives in the U.S. He likes it. The U.S. Senate met.", 3),
        ("你好。再见！真的吗？", 3),
        ("no end", 1),
        ("all small. letters only. so three", 3),
        ("The cat sat. Oh no. Gen. Lee saw No. 5.", 3),
        ("See www.example.com/a.b?c=d for more.", 1),
        ("", 0),
    ],
)  # fmt: skip
def test_sentences(text, count):
    assert len(split_sentences(text)) == count


def test_capital_words_as_the_treebank_tokenizer_finds_them():
    tokenizer = pytest.importorskip("nltk.tokenize", reason="nltk is not installed").NLTKWordTokenizer()
    name = "change_case:capital_word_frequency"
    for text in (
        "THE Quick BROWN-fox, JUMPED! (OVER) the 'LAZY' DOG",
        "I CAN'T say, A is B; WE'LL see: NASA/ESA",
        "STOP!!! U.S.A. and PH.D and R&D",
    ):
        wanted = sum(token.isupper() for token in tokenizer.tokenize(text))
        asked = [{"id": name, "capital_frequency": wanted, "capital_relation": "exactly"}]
        assert judge(asked, text).passed is True, (text, wanted)


def test_language_is_the_same_every_time():
    pytest.importorskip("langdetect", reason="the instructions extra is not installed")
    asked = [{"id": "language:response_language", "language": "de"}]
    assert len({judge(asked, "Hallo so in die").passed for _ in range(20)}) == 1


ALL = [{"id": name, **arguments} for name, arguments in {c[0]: c[1] for c in CASES}.items()]


@settings(deadline=None)
@given(st.text() | st.text(alphabet="ab .!?\n*#[]<>|`'\"-1A,"))
def test_no_text_raises(text):
    verdict = judge(ALL, text, mode="loose")
    assert verdict.passed is False or verdict.passed is True or "langdetect" in verdict.feedback


@pytest.mark.parametrize("piece", ["[<<*", ". ", "A b, c. "])
@pytest.mark.slow
def test_a_megabyte_is_judged_in_bounded_time(piece):
    text = piece * (1_000_000 // len(piece))
    start = time.process_time()
    assert judge(ALL, text + "x").passed is False
    assert time.process_time() - start < 20
