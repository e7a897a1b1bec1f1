"""Tool calls in a turn's text: all notations, whole and damaged."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.environments.calls import find_calls, misfit
from assay.types import Tool

PAY = Tool(
    "pay",
    "Pay.",
    {
        "type": "object",
        "properties": {"amount": {"type": "integer", "minimum": 1}, "to": {"enum": ["till", "bank"]}},
        "required": ["amount"],
        "additionalProperties": False,
    },
)
GOOD = '{"name": "pay", "arguments": {"amount": 3}}'

WHOLE = {
    "tags": f"<tool_call>\n{GOOD}\n</tool_call>",
    "function": '<function=pay>{"amount": 3}</function>',
    "parameters": "<function=pay>\n<parameter=amount>\n3\n</parameter>\n</function>",
    "json": GOOD,
    "python": "[pay(amount=3)]",
}


@pytest.mark.parametrize("form", WHOLE)
def test_a_whole_call(form: str) -> None:
    text = f"{WHOLE[form]}\n" if form in ("json", "python") else f"I pay. {WHOLE[form]} Done."
    [call] = find_calls(text, [PAY])
    assert (call.name, call.arguments, call.problem) == ("pay", {"amount": 3}, "")
    assert text[call.start : call.end] == WHOLE[form]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (f"<tool_call>{GOOD}", ["unclosed"]),
        (f"<tool_call>{GOOD}<tool_call>{GOOD}</tool_call>", ["unclosed", ""]),
        ('<tool_call>{"name": "pay", </tool_call>', ["not_json"]),
        ('<tool_call>{"arguments": {}}</tool_call>', ["no_name"]),
        ('<tool_call>{"name": "rob", "arguments": {}}</tool_call>', ["unknown_tool"]),
        ('<tool_call>{"name": "pay", "arguments": {}}</tool_call>', ["bad_arguments"]),
        ('<tool_call>{"name": "pay", "arguments": {"amount": "3"}}</tool_call>', ["bad_arguments"]),
        ('<tool_call>{"name": "pay", "arguments": {"amount": true}}</tool_call>', ["bad_arguments"]),
        ('<tool_call>{"name": "pay", "arguments": {"amount": 0}}</tool_call>', ["bad_arguments"]),
        ('<tool_call>{"name": "pay", "arguments": {"amount": 1, "to": "me"}}</tool_call>', ["bad_arguments"]),
        ('<tool_call>{"name": "pay", "arguments": {"amount": 1, "x": 1}}</tool_call>', ["bad_arguments"]),
        (f"<tool_call>{GOOD}</tool_call><tool_call>nothing</tool_call>", ["", "not_json"]),
        ("<function=pay>{amount}</function>", ["not_json"]),
        ('<function=pay>{"amount": 3}', ["unclosed"]),
        (f"<think><tool_call>{GOOD}</tool_call></think>I have paid.", []),
        (f"<think>first <tool_call>{GOOD}</tool_call>", []),
        (f"<tool_call>{GOOD}</tool_call></think>I have paid.", []),
        (f"<tool_call>{GOOD}</tool_call></think>Hm.<think>so</think>I have paid.", []),
        (f"<think>so</think><tool_call>{GOOD}</tool_call>", [""]),
        ("I have paid 3 to the till (f(x) of it).", []),
        ("", []),
    ],
)
def test_what_is_wrong_with_each(text: str, problems: list[str]) -> None:
    calls = find_calls(text, [PAY])
    assert [c.problem for c in calls] == problems
    assert all(bool(c.reason) == bool(c.problem) for c in calls)
    assert [c.id for c in calls] == [f"call_{i}" for i in range(len(calls))]


@given(st.text(alphabet=st.sampled_from('<>/{}[]()"=tolcaunfikh_ pay amount 3\n'), max_size=80))
def test_any_text_is_read(text: str) -> None:
    for call in find_calls(text, [PAY]):
        assert 0 <= call.start <= call.end <= len(text)
        assert call.problem or (call.name == "pay" and not misfit(dict(call.arguments or {}), PAY.parameters))


def test_fits_agree_with_jsonschema() -> None:
    """Whatever the schema and the value, ``misfit`` finds fault where jsonschema does."""
    jsonschema = pytest.importorskip("jsonschema")
    values = [None, True, 0, 1, 2.0, 2.5, -3, "", "a", [], [1], ["a"], [1, "a"], {}, {"a": 1}, {"a": "x"}, {"b": 1}]
    schemas = [{"type": t} for t in ("string", "integer", "number", "boolean", "array", "object", "null")]
    schemas += [{"type": ["integer", "null"]}, {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]}]
    schemas += [{"enum": [1, "a"]}, {"const": "a"}, {"type": "array", "items": {"type": "integer"}}]
    schemas += [{"minimum": 0, "maximum": 2}, {"type": "object", "required": ["a"]}]
    schemas += [{"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}]
    schemas += [{"type": "object", "additionalProperties": {"type": "integer"}}]
    for schema in schemas:
        for value in values:
            valid = jsonschema.Draft202012Validator(schema).is_valid(value)
            assert (misfit(value, schema) == "") == valid, (json.dumps(schema), value)
