"""Structured output: JSON, schemas, YAML, TOML, CSV, XML and patterns."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, Verdict
from assay.verify.structured.find import MAX_DEPTH, NoValue, containers, fences, last_json
from assay.verify.structured.tree import Tolerance, compare_trees

pytest.importorskip("jsonschema", reason="needs assay[structured]")
pytest.importorskip("defusedxml", reason="needs assay[structured]")

pytestmark = pytest.mark.usefixtures("patient")


def judge(kind: str, reference: object, response: str, **options: object) -> Verdict:
    return build("verify", {"name": kind, **options})(Task("t", "?", reference, kind), response)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)

# --- finding JSON -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('so {"a": [1, 2]} it is', {"a": [1, 2]}),
        ('{"a": 1} then {"b": 2}.', {"b": 2}),
        ('```json\n{"a": 1}\n```\nsee [1]', {"a": 1}),
        ("```\nnot json\n```\n[3]", [3]),
        ("\\boxed{[1, 2]}", [1, 2]),
        ('{see {"a": 1}}', {"a": 1}),
        ('{"text": "a } ] \\" {"}', {"text": 'a } ] " {'}),
        ("3.5", 3.5),
        ('"text"', "text"),
        ("[see below] [1]", [1]),
        ("[2] and [1}", [2]),
        ('[2] and {"a": 1]', [2]),
        ("[1, 2,] [3", None),
        ('{"a": 1', None),
        ("{'a': 1}", None),
        ("[NaN]", None),
        ("[1e999]", None),
        ("[" + "9" * 5000 + "]", None),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "too deep"),
        ("", None),
    ],
)
def test_last_json(text, value):
    if value is None:
        with pytest.raises(NoValue):
            last_json(text)
    elif value == "too deep":
        # What is left of it is at most as deep as allowed.
        assert json.dumps(last_json(text)).count("[") <= MAX_DEPTH
    else:
        assert last_json(text) == value


def test_fences():
    assert fences("```py\nx\n```\n~~~\ny\nz\n~~~\n```open\n") == [("py", "x\n"), ("", "y\nz\n")]
    assert fences("````md\n```\ninner\n```\n````") == [("md", "```\ninner\n```\n")]


@given(
    st.text(alphabet='abc ,:."', max_size=20),
    JSON.filter(lambda v: isinstance(v, list | dict)),
    st.text(alphabet="abc ,.", max_size=20),
)
def test_json_written_in_prose_is_found(before, value, after):
    assert last_json(f"{before}\n{json.dumps(value)}{after}") == value


@given(st.text(alphabet='{}[]",:1a\\ \n', max_size=60))
def test_every_container_found_is_json(text):
    end = 0
    for start, stop in containers(text):
        assert start >= end
        json.loads(text[start:stop])
        end = stop


# --- comparing trees --------------------------------------------------------------------------------------------------


@given(JSON)
def test_a_tree_equals_itself_with_keys_in_any_order(value):
    def turned(node):
        if isinstance(node, dict):
            return {k: turned(node[k]) for k in reversed(node)}
        return [turned(x) for x in node] if isinstance(node, list) else node

    assert compare_trees(turned(value), value, Tolerance()).equal
    assert compare_trees(turned(value), value, Tolerance()).share == 1


@given(JSON, JSON)
def test_equality_is_that_of_python_but_for_booleans(left, right):
    def marked(node):
        if isinstance(node, dict):
            return {k: marked(v) for k, v in node.items()}
        if isinstance(node, list):
            return [marked(x) for x in node]
        return ("bool", node) if isinstance(node, bool) else node

    likeness = compare_trees(left, right, Tolerance(relative=0))
    assert likeness.equal == (marked(left) == marked(right))
    assert (likeness.share == 1) == likeness.equal
    assert 0 <= likeness.share <= 1


def test_share_of_leaves_by_hand():
    wanted = {"a": 1, "b": [1, 2], "c": {}}
    found = compare_trees({"a": 1, "b": [1, 3, 4], "d": {"x": 1, "y": 2}}, wanted, Tolerance())
    # Leaves a, b[0] right; b[1], c wrong; extra b[2], d.x, d.y.
    assert found.leaves == {"$.a": True, "$.b[0]": True, "$.b[1]": False, "$.c": False}
    assert found.share == pytest.approx(2 / 7)
    assert compare_trees([3, 1, 2], [1, 2, 3.0], Tolerance(), ordered=False).equal
    assert not compare_trees([3, 1, 2], [1, 2, 3], Tolerance()).equal
    assert compare_trees(1.001, 1, Tolerance(absolute=0.01)).equal
    assert not compare_trees(True, 1, Tolerance()).equal
    assert not compare_trees(10**400, 1.5, Tolerance(relative=0.1)).equal


# --- JSON Schema ------------------------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "s": {"pattern": "^(a+)+$"}}, "required": ["a"]}


def test_schema_and_value():
    assert judge("json_schema", {"schema": SCHEMA}, '{"a": 1}').passed
    verdict = judge("json_schema", {"schema": SCHEMA}, '{"a": "x"}')
    assert verdict.passed is False and verdict.score == 0 and "$.a" in verdict.feedback
    verdict = judge("json_schema", {"schema": SCHEMA, "value": {"a": 1, "b": [1, 2]}}, '{"a": 1, "b": [1, 3]}')
    assert verdict.passed is False and verdict.score == pytest.approx(2 / 3) and verdict.parts["$.b[1]"] == 0
    assert judge("json_schema", SCHEMA, '{"a": 1}', reads="schema").passed
    assert judge("json", '{"a": [1, 2.0]}', 'It is {"a": [1.0, 2]}.').passed
    assert judge("json", [1, 2], "[2, 1]").passed is False
    assert judge("json", [1, 2], "[2, 1]", ordered=False).passed
    assert judge("json", {"a": 1}, "no JSON here").parts == {"parsed": 0}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"$ref": "https://example.invalid/schema"},
        {"$ref": "#"},
        {"$ref": "#/$defs/none"},
        {"properties": {"a": {"pattern": "("}}},
        7,
    ],
)
def test_a_schema_that_cannot_be_used_makes_it_abstain(schema):
    assert judge("json_schema", {"schema": schema}, '{"a": "x"}').passed is None


def test_a_pattern_that_backtracks_is_cut_short():
    backtracking = json.dumps({"a": 1, "s": "a" * 50 + "!"})
    verdict = judge("json_schema", {"schema": SCHEMA}, backtracking, seconds=0.3)
    assert verdict.passed is False and "longer than" in verdict.feedback
    # The reference's own value takes as long: the schema is to blame.
    spec = {"schema": SCHEMA, "value": {"a": 1, "s": "a" * 60 + "?"}}
    verdict = judge("json_schema", spec, backtracking, seconds=0.3)
    assert verdict.passed is None and "longer than" in verdict.feedback
    verdict = judge("json_schema", {**spec, "value": {"a": 1, "s": "a"}}, backtracking, seconds=0.3)
    assert verdict.passed is False


TWICE = {"anyOf": [{"type": "number"}, {"items": {"$ref": "#"}, "minItems": 2}, {"items": {"$ref": "#"}}]}
"""Each level of a value that is not valid is checked twice for the one below."""
ALWAYS = {"$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 3} for n in range(16)} | {"d16": False}}


def test_a_value_that_takes_a_schema_exponentially_long_is_wrong():
    assert judge("json_schema", {"schema": TWICE}, "[[[1]]]").passed
    assert judge("json_schema", {"schema": TWICE}, '[[["x"]]]').passed
    slow = "[" * 60 + "{}" + "]" * 60
    schema = {**TWICE, "anyOf": [*TWICE["anyOf"][:1], *({**one, "type": "array"} for one in TWICE["anyOf"][1:])]}
    verdict = judge("json_schema", {"schema": schema}, slow, seconds=0.3)
    assert verdict.passed is False and verdict.score == 0 and "longer than 0.3 s" in verdict.feedback
    verdict = judge("json_schema", {"schema": schema, "value": [[1]]}, slow, seconds=0.3)
    assert verdict.passed is False
    # A schema that takes as long whatever the value is nobody's answer's fault.
    verdict = judge("json_schema", {"schema": {**ALWAYS, "$ref": "#/$defs/d0"}}, "[1]", seconds=0.3)
    assert verdict.passed is None and "longer than 0.3 s" in verdict.feedback


def test_our_own_failures_are_abstentions(monkeypatch):
    from assay.verify.isolate.workers import Failure
    from assay.verify.structured import data

    for cause in ("wall", "killed", "closed", "unsent", "unstarted", "unloaded"):
        failing = type("Failing", (), {"call": lambda *_, cause=cause, **__: Failure("no luck", cause)})()
        monkeypatch.setattr(data, "WORKERS", failing)
        verdict = judge("json_schema", {"schema": SCHEMA}, '{"a": 1}')
        assert verdict.passed is None and "no luck" in verdict.feedback


def test_a_recursive_schema_holds_on_the_deepest_value_read():
    schema = {"type": "array", "items": {"$ref": "#"}}
    assert judge("json_schema", {"schema": schema}, "[" * MAX_DEPTH + "]" * MAX_DEPTH).passed


@pytest.mark.parametrize("reference", [None, {}, {"other": 1}, "not json", 3, {"value": {1, 2}}])
def test_a_reference_that_is_none_makes_it_abstain(reference):
    assert judge("json_schema", reference, "{}").passed is None


# --- YAML, TOML, CSV --------------------------------------------------------------------------------------------------

LETTERS = "abcdefghij"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{c}: &{c} [{', '.join(['*' + p] * 9)}]\n" for p, c in pairwise(LETTERS)
)
MERGE_BOMB = "a: &a {x: 1}\n" + "".join(
    f"{c}: &{c} {{<<: [{', '.join(['*' + p] * 9)}]}}\n" for p, c in pairwise(LETTERS)
)


def test_yaml():
    text = "Here:\n```yaml\na: [1, 2]\nd: 2020-01-01\nx: &x {k: v}\ny: *x\n```\n"
    assert judge("yaml", {"value": {"a": [1, 2], "d": "2020-01-01", "x": {"k": "v"}, "y": {"k": "v"}}}, text).passed
    assert judge("yaml", {"schema": SCHEMA}, "a: 1").passed
    assert judge("yaml", {"schema": SCHEMA}, "a: one").passed is False


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        MERGE_BOMB,
        "&a [*a]",
        "[" * 100_000,
        "- " * 50_000,
        "!!int x",
        "? [1]\n: 2",
        "!!python/object/apply:os.system [ls]",
        "2020-13-45",
        "a: .nan",
        "a: b: c",
        "*nothing",
        "\x00",
        "9" * 100_000,
        "1: a\n'1': b",
    ],
)
def test_yaml_that_is_wrong(text):
    started = time.process_time()
    assert judge("yaml", {"value": 1}, text).passed is False
    assert time.process_time() - started < 2


def test_toml_and_csv():
    assert judge("toml", {"value": {"a": {"b": 1}}}, "```toml\n[a]\nb = 1\n```").passed
    for text in ("a =", "a = " + "[" * 9000, "a." * 5000 + "b = 1", "a = nan"):
        assert judge("toml", {"value": 1}, text).passed is False
    rows = [{"name": "x", "n": 1}, {"name": "y, z", "n": 2.5}]
    assert judge("csv", {"value": rows}, 'name,n\nx,1\n"y, z",2.50\n').passed
    assert judge("csv", {"value": rows}, 'n,name\n1,x\n"2.5","y, z"').passed
    assert judge("csv", {"value": rows}, "name;n\nx;1\ny, z;2.5", delimiter=";").passed
    for text in ("name,n\nx", "", "a,a\n1,2", 'name,n\n"x', "name,n\nx,1\ny,2.5"):
        assert judge("csv", {"value": rows}, text).passed is False
    with pytest.raises(UsageError, match="one character"):
        build("verify", {"name": "csv", "delimiter": ",,"})


# --- patterns and XML -------------------------------------------------------------------------------------------------


def test_regex():
    assert judge("regex", r"\d+", "so <answer>12</answer>").passed
    assert judge("regex", r"\d+", "a12").passed is False
    assert judge("regex", r"\d+", "a12", mode="search").passed
    assert judge("regex", {"pattern": "ABC", "flags": "i"}, "abc").passed
    verdict = judge("regex", {"pattern": r"(?P<y>\d+)-(?P<m>\d+)", "groups": {"y": "3", "m": "5"}}, "3-4")
    assert verdict.passed is False and verdict.parts == {"match": 1, "y": 1, "m": 0}
    assert verdict.score == pytest.approx(2 / 3)
    for reference in ("(", None, 5, {"pattern": "a", "flags": "q"}, {"pattern": "a", "groups": {"z": "1"}}):
        assert judge("regex", reference, "a").passed is None
    assert judge("regex", "(a+)+$", "a" * 50 + "!", seconds=0.3).passed is None
    with pytest.raises(UsageError, match="unknown flags"):
        build("verify", {"name": "regex", "flags": "q"})


def test_xml():
    spec = {"root": "a", "required": {"b": "hi there", "./c[@x='1']": None}}
    assert judge("xml", spec, "Here: <a><b> hi\n there</b><c x='1'/></a> done").passed
    verdict = judge("xml", spec, "```xml\n<a><b>bye</b><c x='1'/></a>\n```")
    assert verdict.passed is False and verdict.parts["b"] == 0 and verdict.score == pytest.approx(2 / 3)
    assert judge("xml", None, "<a/>").passed
    assert judge("xml", {"required": ["b["]}, "<a/>").passed is None
    assert judge("xml", "a", "<a/>").passed is None
    lol = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
    for text in (
        f'<!DOCTYPE a [<!ENTITY l0 "lol">{lol}]><a>&l9;</a>',
        '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        "<a>" * 100_000,
        "<a><b></a></b>",
        "<\ud800/>",
        "no markup",
        '<?xml version="1.0" encoding="utf-16"?><a/>',
    ):
        assert judge("xml", {"root": "a"}, text).passed is False


# --- whatever comes ---------------------------------------------------------------------------------------------------

REFERENCES = {
    "json_schema": {"schema": SCHEMA, "value": {"a": 1}},
    "json": {"a": [1, "x"]},
    "yaml": {"value": {"a": 1}},
    "toml": {"value": {"a": 1}},
    "csv": {"value": [{"a": 1}]},
    "regex": r"[ab]+\d?",
    "xml": {"root": "a", "required": ["b"]},
}


@pytest.mark.parametrize("kind", REFERENCES)
@given(st.text() | st.text(alphabet="{}[]\":,<>/a1b\\-=.&*!'\n `", max_size=80))
@settings(deadline=None)
def test_never_raises_and_never_abstains_on_garbage(kind, text):
    verdict = judge(kind, REFERENCES[kind], text)
    assert verdict.passed is not None
    assert 0 <= verdict.score <= 1


@pytest.mark.parametrize(
    "text",
    ["[" * 10**6, '["\\"' * 250_000, '"\\"' * 300_000, "[1," * 300_000, "```\n" * 250_000, '{"\\"[ ' * 160_000],
    ids=["brackets", "escaped", "quotes", "open", "fences", "mixed"],
)
@pytest.mark.slow
def test_a_megabyte_is_read_in_seconds(text):
    started = time.process_time()
    assert judge("json", {"a": 1}, text).passed is False
    assert time.process_time() - started < 4


def test_no_response_makes_a_check_take_too_long_or_fail():
    pytest.importorskip("jsonschema")
    # jsonschema compares every pair of items, and divides integers by floats.
    unique = {"schema": {"type": "array", "uniqueItems": True}}
    items = [{"a": i} for i in range(20_000)]
    assert judge("json_schema", unique, json.dumps(items)).passed is True
    assert judge("json_schema", unique, json.dumps([*items, {"a": 7.0}])).passed is False
    assert judge("json_schema", unique, "[1, true, [1.0], [true]]").passed is True
    assert judge("json_schema", {"schema": {"multipleOf": 0.5}}, "1" + "0" * 400).passed is True
    assert judge("json_schema", {"schema": {"multipleOf": 0.3}}, "1" + "0" * 400).passed is False
    assert judge("json_schema", {"schema": {"multipleOf": 0.5}}, '"a"').passed is True


def test_a_cell_beyond_floats_is_another_number():
    pytest.importorskip("jsonschema")
    assert judge("csv", {"value": [{"a": 1.5}]}, "a\n" + "9" * 400).passed is False
    assert judge("csv", {"value": [{"a": int("9" * 400)}]}, "a\n" + "9" * 400).passed is True


def test_what_takes_too_long_to_read_is_wrong():
    pytest.importorskip("jsonschema")
    verdict = judge("toml", {"value": 1}, "a" + ".a" * 14_000 + " = 1", seconds=0.05)
    assert verdict.passed is False and "took longer" in verdict.feedback


def test_xml_nested_too_deep_is_wrong():
    pytest.importorskip("defusedxml")
    for depth, passed in ((100, True), (101, False), (50_000, False)):
        text = "<a>" * depth + "</a>" * depth
        assert judge("xml", {"root": "a", "required": [".//a//a"]}, text).passed is passed
