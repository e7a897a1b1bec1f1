"""Tool calls in the notations that models write, against references with one or several accepted values."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.registry import build
from assay.types import Task, Verdict
from assay.verify.lists.matching import best_pairs, f_beta, ordered_pairs, total
from assay.verify.tool_calls.formats import BadCall, Call, read_calls

TWO = [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {"b": "x"}}]


def judge(reference: object, response: str, **options: object) -> Verdict:
    return build("verify", {"name": "tool_calls", **options})(Task("t", "?", reference, "tool_calls"), response)


WRITTEN = {
    "hermes": '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>\n'
    '<tool_call>\n{"name": "g", "arguments": {"b": "x"}}\n</tool_call>',
    "function": '<function=f>{"a": 1}</function><function=g>{"b": "x"}</function>',
    "parameters": "<tool_call><function=f>\n<parameter=a>\n1\n</parameter></function></tool_call>"
    "<tool_call><function=g><parameter=b>x</parameter></function></tool_call>",
    "openai": json.dumps(
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": c["name"], "arguments": json.dumps(c["arguments"])},
                }
                for c in TWO
            ],
        }
    ),
    "array": f"Calling: ```json\n{json.dumps(TWO)}\n```",
    "llama": '[{"name": "f", "parameters": {"a": 1}}, {"name": "g", "parameters": {"b": "x"}}]',
    "python": "[f(a=1), g(b='x')]",
    "fenced python": "I call\n```python\n[f(a=1), g(b='x')]\n```",
    "last line": "I shall call two.\n[f(a=1), g(b='x')]",
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_every_notation_reads_the_same(text):
    assert read_calls(text) == [Call("f", {"a": 1}), Call("g", {"b": "x"})]
    assert judge(TWO, text).passed


@pytest.mark.parametrize(
    "text",
    [
        "[f(1)]",
        "[f(a=1, a=2)]",
        "[f(a=x)]",
        "[f(a=__import__('os'))]",
        "[f(**{'a': 1})]",
        "[f(a={1, 2})]",
        "[f(a=" + "9" * 5000 + ")]",
        "[f(a=" + "(" * 5000 + ")]",
        "[f(a=" + "-" * 9000 + "1)]",
        "[f(a=1" + "+1" * 9000 + ")]",
        "<tool_call>{}</tool_call>",
        '<tool_call>{"name": "f", "arguments": 3}</tool_call>',
        '<tool_call>{"name": "f"',
        "<function=f>",
        "<function=></function>",
        "<function=f>{</function>",
    ],
)
def test_what_is_begun_as_a_call_and_is_none(text):
    with pytest.raises(BadCall):
        read_calls(text)
    verdict = judge(TWO, text)
    assert verdict.passed is False and verdict.parts == {"format": 0}


def test_no_call_is_right_where_none_is_wanted():
    for prose in ("I cannot do that.", "f(x) is a function, and [1] a citation.", '{"note": "nothing"}', ""):
        assert judge([], prose).passed
        assert judge(TWO, prose).passed is False
    assert judge([], "[f(a=1)]").passed is False
    assert judge("[]", "no").passed


def test_scores_by_hand():
    # f right; g has b wrong and c unknown: share 0; 2 * (1 + 0) / 4.
    verdict = judge(TWO, "[f(a=1), g(b='y', c=2)]")
    assert verdict.score == pytest.approx(0.5) and verdict.passed is False
    assert verdict.parts["names"] == 1 and verdict.parts["arguments"] == 0.5 and "'g'" in verdict.feedback
    # One call too many: names P = 2/3, R = 1; score 2 * 2 / 5.
    verdict = judge(TWO, "[f(a=1), g(b='x'), h()]")
    assert verdict.score == pytest.approx(0.8) and verdict.parts["names"] == pytest.approx(0.8)
    # One missing: 2 * 1 / 3.
    assert judge(TWO, "[f(a=1)]").score == pytest.approx(2 / 3)
    # The same call twice is paired once.
    assert judge(TWO, "[f(a=1), f(a=1)]").score == pytest.approx(0.5)


def test_order_counts_if_asked_for():
    swapped = "[g(b='x'), f(a=1)]"
    assert judge(TWO, swapped).passed and judge(TWO, swapped).parts["order"] == 0.5
    assert judge(TWO, swapped, ordered=True).passed is False
    assert judge(TWO, swapped, ordered=True).score == pytest.approx(0.5)


def test_parallel_calls_of_one_tool_are_paired_best():
    wanted = [{"name": "f", "arguments": {"a": i, "b": i}} for i in range(4)]
    text = json.dumps([{"name": "f", "arguments": {"a": i, "b": i}} for i in (2, 0, 3, 1)])
    assert judge(wanted, text).passed


def test_possible_answers():
    wanted = [{"w.get": {"city": ["Paris", "Paris, FR"], "unit": ["C", ""], "o": [{"k": [1, 2], "l": [5, ""]}]}}]
    assert judge(wanted, '[w.get(city="Paris", o={"k": 2})]').passed
    assert judge(wanted, '[w.get(city="Paris, FR", unit="C", o={"k": 1, "l": 5})]').passed
    assert judge(wanted, '[w.get(city="Lyon", o={"k": 2})]').score == pytest.approx(0.5)
    assert judge(wanted, '[w.get(city="Paris", o={"k": 3})]').passed is False
    assert judge(wanted, '[w.get(city="Paris", o={"k": 2}, z=1)]').score == pytest.approx(2 / 3)
    assert judge(wanted, "[w.get(unit='C')]").score == pytest.approx(1 / 3)
    assert judge(wanted, '[w.get(city="paris fr", o={"k": 2})]').passed is False
    assert judge(wanted, '[w.get(city="paris fr", o={"k": 2})]', strings="loose").passed
    assert judge([{"name": "f", "arguments": {"a": [1, 2]}}], "[f(a=2)]", any_of=True).passed
    assert judge([{"name": "f", "arguments": {"a": [1, 2]}}], "[f(a=2)]").passed is False


def test_values():
    assert judge(TWO, "[f(a=1.0), g(b='x')]").passed
    assert judge(TWO, "[f(a='1'), g(b='x')]").passed is False
    assert judge(TWO, "[f(a='1'), g(b='x')]", coerce=True).passed
    assert judge(TWO, "[f(a=True), g(b='x')]").passed is False
    assert judge([{"name": "f", "arguments": {"a": True}}], "[f(a='true')]", coerce=True).passed
    assert judge(TWO, "[f(a=1), g(b=' X')]", strings="ignore_case").passed


@pytest.mark.parametrize("reference", [None, 3, "x", [1], [{"name": "f", "arguments": 3}], {"a": 1}])
def test_a_reference_that_is_none_makes_it_abstain(reference):
    assert judge(reference, "[f(a=1)]").passed is None


# --- pairing ----------------------------------------------------------------------------------------------------------

TABLES = st.integers(0, 4).flatmap(
    lambda m: st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 3), min_size=n, max_size=n), min_size=m, max_size=m).map(
            lambda rows: np.array(rows, float).reshape(m, n)
        )
    )
)


def brute(table: np.ndarray, ordered: bool) -> float:
    """Greatest total over every way to pair the rows, one after another."""

    def rest(i: int, free: tuple[int, ...]) -> float:
        if i == table.shape[0]:
            return 0.0
        best = rest(i + 1, free)
        for j in free:
            left = tuple(k for k in free if (k > j if ordered else k != j))
            best = max(best, table[i, j] + rest(i + 1, left))
        return best

    return rest(0, tuple(range(table.shape[1])))


@given(TABLES)
def test_pairs_are_best_by_enumeration(table):
    for pairs, ordered in ((best_pairs(table), False), (ordered_pairs(table), True)):
        assert total(table, pairs) == brute(table, ordered)
        assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert ordered_pairs(table) == sorted(ordered_pairs(table))


def test_ordered_pairs_by_hand():
    table = np.array([[0.9, 0.2, 0.1], [0.3, 0.1, 0.8], [0.2, 0.7, 0.4]])
    assert ordered_pairs(table) == [(0, 0), (1, 2)]
    assert total(table, ordered_pairs(table)) == pytest.approx(1.7)
    assert total(table, best_pairs(table)) == pytest.approx(2.4)


def test_f_beta_by_hand():
    assert f_beta(0.5, 1, 2) == pytest.approx(5 / 6)
    assert f_beta(0, 0) == 0


# --- whatever comes ---------------------------------------------------------------------------------------------------


@given(
    st.text()
    | st.text(alphabet="[]{}()=,:\"'fg1 \n<>/", max_size=60)
    | st.lists(
        st.sampled_from(
            ["<tool_call>", "</tool_call>", "<function=", "f", ">", "</function>", '{"name":"f"}', "[f(a=1)", "]"]
        )
    ).map("".join)
)
@settings(deadline=None)
def test_never_raises(text):
    for reference in (TWO, []):
        verdict = judge(reference, text)
        assert verdict.passed is not None and 0 <= verdict.score <= 1


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" * 90_000,
        "<function=>" * 90_000,
        "f(" * 400_000,
        "[f(a=" + "[" * 10**6,
        "<tool_call>{}</tool_call>" * 38_000,
        WRITTEN["hermes"] * 9000,
    ],
    ids=["tags", "functions", "calls", "brackets", "empty", "many"],
)
def test_a_megabyte_is_read_in_seconds(text):
    started = time.process_time()
    assert judge(TWO, text).passed is False
    assert time.process_time() - started < 3
