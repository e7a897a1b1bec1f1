"""Finding the final answer, apart from judging it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.verify.answer.extract import boxes, check_rules, extract, hashes, phrases, tags

RULES = ("answer_tag", "boxed", "hashes", "phrase")


def texts(spans, text):
    return [text[s.start : s.end] for s in spans]


def test_spans():
    text = "<answer>1</answer> and <answer>2<answer>3</answer>"
    assert texts(tags(text), text) == ["1", "3"]
    text = "\\boxed{1}, \\boxed {\\frac{1}{2}}, \\fbox{x}, \\boxed{a \\boxed{b}} \\boxed{open"
    assert texts(boxes(text), text) == ["1", "\\frac{1}{2}", "a \\boxed{b}", "b"]
    text = "#### 1\nx #### 2 #### 3\n"
    assert texts(hashes(text), text) == ["1", "3"]
    text = "The answer is 1.5. So the final answer: the answer is 2. 答案是3。La respuesta es 4"
    assert texts(phrases(text), text) == ["1.5", "2", "3", "4"]


def test_a_phrase_goes_past_the_full_stops_and_lines_of_a_formula():
    text = "The answer is $a. b$. Then more"
    assert texts(phrases(text), text) == ["$a. b$"]
    text = "The answer is \\[\nx = 5.\n\\] Then more."
    assert texts(phrases(text), text) == ["\\[\nx = 5.\n\\] Then more"]


@pytest.mark.parametrize(
    ("rule", "text", "answer"),
    [
        ("regex:answer=(\\d+)", "answer=1 answer=2", "2"),
        ("regex:\\d+!", "1! 2!", "2!"),
        ("regex:z", "abc", None),
        ("json:answer", '{"answer": "x"} then {"answer": 2}', "2"),
        ("json:a.b.0", '{"a": {"b": [7, 8]}}', "7"),
        ("json:a", '{"a": {"a": 1}}', '{"a": 1}'),
        ("json:a", "{'a': 1}", None),
        ("json:a", "{", None),
        ("phrase", "Die Antwort lautet 7. Ende", "7"),
        ("phrase", "Ответ: 7", "7"),
        ("phrase", "정답은 7", "7"),
    ],
)
def test_rules(rule, text, answer):
    assert extract(text, (rule,), "none") == answer


def test_unknown_rules_are_refused():
    with pytest.raises(UsageError, match=r"here: no rule is called 'boxd'; did you mean 'boxed'"):
        check_rules(["boxd"], "here")
    with pytest.raises(UsageError, match="no regular expression"):
        check_rules(["regex:("], "here")
    check_rules([*RULES, "regex:x", "json:y"], "here")


@given(st.text(alphabet="\\boxed{}<answer># 1\n.:is", max_size=80))
def test_spans_lie_in_the_text_in_order(text):
    for find in (tags, boxes, hashes, phrases):
        found = find(text)
        assert all(0 <= s.begin <= s.start <= s.end <= s.over <= len(text) for s in found)
        assert found == sorted(found)


@pytest.mark.parametrize(
    "piece", ["\\boxed{", "<answer>", "answer is ", "#### ", "{", '{"a":', "[[", "答案是", "answer: $"]
)
def test_hostile_text_takes_linear_time(piece):
    text = piece * (200_000 // len(piece))
    start = time.process_time()
    for rule in (*RULES, "json:a"):
        extract(text, (rule,))
    assert time.process_time() - start < 3
