"""Structured output: JSON, YAML, TOML, CSV, XML, patterns, formats, instructions, tool calls."""

from __future__ import annotations

import json

from instruction_cases import CASES as INSTRUCTIONS

from assay.verify.text.continuation import CLOSE, OPEN
from fuzz.entry import Case, entry

PERSON = {"name": "Ann", "age": 41, "tags": ["x", "y"], "home": {"city": "Rome", "zip": None}, "ok": True}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-z]+$"},
        "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "uniqueItems": True},
        "born": {"type": "string", "format": "date"},
    },
    "required": ["name", "age"],
    "$defs": {"tag": {"type": "string", "maxLength": 10}},
}
TREE = {
    "type": "object",
    "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"type": "number", "multipleOf": 0.5}},
    "additionalProperties": False,
}
HOME = {"yaml": PERSON["home"], "toml": {"city": "Rome"}}
JSON_NEEDS = ("jsonschema",)

START = {"event": [{"id": 1, "cap": 2, "booked": 1}, {"id": 2, "cap": 5, "booked": 0}], "booking": []}
GOAL = {"event": [{"id": 1, "cap": 2, "booked": 2}, {"id": 2, "cap": 5, "booked": 0}], "booking": [{"usr": "bob"}]}
for granularity in ("cell", "row"):
    entry(
        f"state/{granularity}",
        soup="json",
        options={"granularity": granularity},
        cases=[
            Case(
                {"start": START, "goal": GOAL, "keys": {"event": ["id"]}},
                [json.dumps(GOAL), json.dumps(GOAL, indent=1)],
            ),
            Case({"start": GOAL, "goal": START, "volatile": ["cap"]}, [json.dumps(START)]),
        ],
    )
entry(
    "json",
    soup="json",
    needs=JSON_NEEDS,
    options={"seconds": 2.0},
    cases=[
        Case(PERSON, [json.dumps(PERSON), f"Here:\n```json\n{json.dumps(PERSON, indent=1)}\n```"]),
        Case("[1, 2.5, 1e3]", ["[1.0, 2.5, 1000]"]),
        Case("3", ["3", "3.0"]),
        Case('"a"', ['"a"']),
        Case({}, ["{}"]),
        Case([[[]]], ["[[[]]]"]),
    ],
)
entry(
    "json_schema",
    soup="json",
    needs=JSON_NEEDS,
    seconds=4.0,
    options={"seconds": 2.0},
    apart=False,
    cases=[
        Case({"schema": SCHEMA}, [json.dumps(PERSON), '{"name": "Bo", "age": 0, "born": "1970-01-01"}']),
        Case({"schema": TREE, "value": {"left": {"value": 1.5}}}, ['{"left": {"value": 1.5}}']),
        Case({"value": [1, 2]}, ["[1, 2]"]),
    ],
)
for kind, answer, other in (
    ("yaml", "name: Ann\nage: 41\ntags: [x, y]\nhome:\n  city: Rome\n  zip: null\nok: true\n", "a: {b: {c: 1.5}}\n"),
    ("toml", 'name = "Ann"\nage = 41\ntags = ["x", "y"]\nok = true\n[home]\ncity = "Rome"\n', "a.b.c = 1.5\n"),
):
    entry(
        kind,
        soup=kind,
        needs=(*JSON_NEEDS, "yaml"),
        seconds=4.0,
        options={"seconds": 2.0},
        cases=[
            Case(
                {"value": {k: v for k, v in PERSON.items() if k != "home"} | {"home": HOME[kind]}},
                [answer, f"```{kind}\n{answer}```"],
            ),
            Case({"value": {"a": {"b": {"c": 1.5}}}, "schema": {"type": "object"}}, [other]),
        ],
    )
entry(
    "csv",
    soup="csv",
    needs=JSON_NEEDS,
    seconds=4.0,
    options={"seconds": 2.0},
    cases=[
        Case(
            {"value": [{"a": 1, "b": "x"}, {"a": 2.5, "b": "y, z"}]},
            ['a,b\n1,x\n2.5,"y, z"\n', '```csv\na,b\n1,x\n2.5,"y, z"\n```'],
        ),
        Case({"value": [{"k": "", "v": ""}]}, ["k,v\n,\n"]),
    ],
)
entry(
    "xml",
    soup="xml",
    needs=("defusedxml",),
    seconds=4.0,
    options={"seconds": 2.0},
    cases=[
        Case(
            {"root": "a", "required": {"./b[@id='1']": "x", "./c": None}},
            ['<a><b id="1">x</b><c/></a>', '```xml\n<?xml version="1.0"?>\n<a><c>z</c><b id="1"> x </b></a>\n```'],
        ),
        Case({"root": "z"}, ["<z/>"]),
    ],
)
entry(
    "regex",
    soup="pattern",
    cases=[
        Case(r"[A-Z]{2}-\d{4}", ["AB-1234"]),
        Case({"pattern": r"(?P<y>\d+)-(?P<m>\d+)", "groups": {"y": "2024"}}, ["2024-05"]),
        Case({"pattern": r"a.*b", "flags": "is"}, ["A\nB"]),
    ],
)
entry("regex/search", soup="pattern", cases=[Case(r"\bfox\b", ["the fox runs"])], options={"mode": "search"})
# What the pattern makes of a response is the task's fault, so a slow one may make the verifier abstain.
entry(
    "regex/slow",
    soup="pattern",
    cases=[Case(r"(a+)+$", ["aaa"])],
    options={"seconds": 0.2},
    seconds=1.0,
    abstains="took longer",
)
entry(
    "format",
    spaces=False,
    cases=[
        Case(
            {"format": {"tags": ["think", "answer"], "max_words": 50}},
            ["<think>hm</think><answer>5</answer>", "<think>a b</think>\n<answer>no</answer>"],
        ),
        Case({"format": {"sections": ["Plan", "Result"], "contain": ["x"]}}, ["# Plan\nx\n## Result\ny"]),
        Case({"format": {"max_repeats": 2, "ngram": 3, "min_chars": 3, "max_chars": 300}}, ["one two three four"]),
        Case({"format": {"avoid": ["bad"], "ignore_case": True, "min_tokens": 1, "score": "fraction"}}, ["fine 文字"]),
    ],
    apart=False,
)
for mode in ("strict", "loose"):
    entry(
        f"instructions/{mode}",
        needs=("langdetect",),
        marked=False,
        spaces=False,
        apart=False,
        options={"mode": mode},
        cases=[Case([{"id": name, **arguments}], good, "What now?") for name, arguments, good, _ in INSTRUCTIONS],
    )

CALLS = [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {"b": "x"}}]
WRITTEN = [
    json.dumps(CALLS),
    "[f(a=1), g(b='x')]",
    '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>\n<function=g>{"b": "x"}</function>',
]
for variant, options in (("", {}), ("/ordered", {"ordered": True, "coerce": True, "strings": "loose"})):
    entry(
        f"tool_calls{variant}",
        soup="calls",
        options=options,
        cases=[
            Case(CALLS, WRITTEN[:2]),
            Case([{"h": {"x": [1, 2], "y": ["", "z"]}}], ['[{"name": "h", "arguments": {"x": 2}}]', "[h(x=1, y='z')]"]),
            Case([], ["I cannot call anything."]),
        ],
    )
entry(
    "continuation",
    marked=False,
    cases=[
        Case(["It rains.", "Roads are wet."], [f"{OPEN}It rains.{CLOSE}", f"{OPEN} it rains; roads are wet {CLOSE}"]),
        Case(["今天下雨。"], [f"{OPEN}今天下雨{CLOSE}"]),
    ],
)
