"""The default verifiers against hand-made cases, and against anything hypothesis can write."""

from __future__ import annotations

import ast
import math
import operator
import re
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.registry import build, names
from assay.types import Task, Verdict
from assay.verify import KindVerifier
from assay.verify.answer.extract import extract
from assay.verify.isolate.workers import Failure
from assay.verify.puzzles import gym
from assay.verify.puzzles.expression import ExpressionError, evaluate
from assay.verify.puzzles.gym_scorer import harmless
from assay.verify.text.compare import last_number, normalise, parse_number, same

pytestmark = pytest.mark.usefixtures("patient")


def judge(kind: str, reference: object, response: str, **options: object) -> Verdict:
    return build("verify", {"name": kind, **options})(Task("t", "?", reference, kind), response)


# --- extraction -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("<answer> 4 </answer>", "4"),
        ("<answer>1</answer> no, <answer>2</answer> done", "2"),
        ("<answer>1<answer>2</answer>", "2"),
        ("<answer>It is \\boxed{5}</answer>", "5"),
        ("so \\boxed{1}, rather \\boxed{\\frac{1}{2}}.", "\\frac{1}{2}"),
        ("\\boxed{7} and \\boxed{ unclosed", "7"),
        ("\\boxed{\\{1\\}}", "\\{1\\}"),
        ("She has 3.\n#### 1,234\nbye", "1,234"),
        ("The answer is 3.5. So there.", "3.5"),
        ("Final Answer: Paris", "Paris"),
        ("The answer is obvious. The answer is 9", "9"),
        ("first\n  second  \n\n", "second"),
        ("</answer><answer>", "</answer><answer>"),
        ("answering is hard", "answering is hard"),
        ("", ""),
    ],
)
def test_extract(response, answer):
    assert extract(response) == answer


def test_extract_fallbacks():
    assert extract("a\nb", (), "whole") == "a\nb"
    assert extract("a\nb", (), "line") == "b"
    assert extract("a\nb", ("boxed",), "none") is None
    assert extract("\\boxed{}", ("boxed",), "none") == ""


@given(st.text(), st.text(alphabet=st.characters(exclude_characters="<\\#"), min_size=1))
def test_a_tagged_answer_is_found_whatever_comes_before(before, answer):
    assert extract(f"{before}<answer>{answer}</answer>", ("answer_tag",)) == answer.strip()


# --- comparison -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("+7", 7),
        ("- 7", -7),
        ("\N{MINUS SIGN}3", -3),
        ("007", 7),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("-6/4", Fraction(-3, 2)),
        ("1,234,567.25", Fraction(4938269, 4)),
        ("$1,234.00", 1234),
        ("1.5e3", 1500),
        ("2e-2", Fraction(1, 50)),
        ("1,2345", None),
        ("12,34", None),
        ("50%", None),
        ("1/0", None),
        ("1e9999", None),
        ("1 2", None),
        ("\N{ARABIC-INDIC DIGIT FIVE}", None),
        ("", None),
        ("9" * 5000, None),
    ],
)
def test_parse_number(text, value):
    assert parse_number(text) == value


@given(st.integers())
def test_parse_number_reads_what_python_writes(n):
    assert parse_number(str(n)) == parse_number(f"{n:,}") == n


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=6))
def test_parse_number_is_exact_on_decimals(d):
    assert parse_number(f"{d:f}") == Fraction(d)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7 + 6 = 13", "13"),
        ("3-5", "5"),
        ("(3)-2", "2"),
        ("a - 5", "5"),
        ("x = -5", "-5"),
        ("the answer is -5", "-5"),
        ("3 -5", "5"),
        ("2+2=4\n-45", "-45"),
        ("in all:\n- 45", "45"),
        ("she owes $-5.", "$-5"),
        ("it costs $1,234.00.", "$1,234.00"),
        ("1,2345", "2345"),
        ("12/4=3", "3"),
        ("that is 3/4.", "3/4"),
        ("1e5", "1e5"),
        ("50%", "50"),
        ("none", None),
    ],
)
def test_last_number(text, number):
    found = last_number(text)
    assert (found and found.replace("$", "")) == (number and number.replace("$", ""))


def test_normalise():
    assert normalise(" **The  Answer.** ") == "the answer"
    assert normalise("\\text{Paris}") == normalise("$Paris$") == "paris"
    assert normalise("(1, 2)") == normalise("(1,2)")
    assert normalise("...") != normalise("$")
    assert normalise("A", ignore_case=False) == "A"


def test_same_compares_numbers_only_when_asked():
    assert same("0.50", "1/2")
    assert not same("0.50", "1/2", numeric=False)
    assert not same("50%", "50")
    assert not same("0.3333333333333333", "1/3")


# --- exact and number -------------------------------------------------------------------------------------------------


def test_exact():
    assert judge("exact", "143", "7+6=13\n143").passed is True
    assert judge("exact", "143", "143\n7+6=13").passed is False
    assert judge("exact", 143, "The answer is 143.0.").passed is True
    assert judge("exact", ["Paris", "Lutetia"], "<answer>lutetia</answer>").passed is True
    assert judge("exact", "Paris", "It is Paris").passed is False
    assert judge("exact", "5", "so 5", fallback="none").feedback == "no final answer found"
    assert judge("exact", None, "5").passed is None
    assert judge("exact", "", "").passed is None


def test_number():
    gold = "Janet has 3 + 4 = 7.\n#### 1,234"
    for response in ("$1,234.00", "1234.", "#### 1,234", "it is 5\n#### 1234 dollars", "so \\boxed{1234} of 9"):
        assert judge("number", gold, response).passed is True, response
    for response in ("1235", "1,234 then 5", "nothing", "", "#### \n 1234 is 7", "1234" + "0" * 5000):
        assert judge("number", gold, response).passed is False, response
    assert judge("number", "0.5", "1/2").passed is True
    assert judge("number", "no digits", "5").passed is None
    assert judge("number", 5, "5 only", marker="ANSWER").passed is False
    assert judge("number", 5, "7 ANSWER 5", marker="ANSWER").passed is True


@given(
    st.integers(-(10**30), 10**30),
    st.integers(-(10**30), 10**30),
    st.sampled_from(["It is ", "= ", "a: ", "\n", "", "3\n", "\\boxed{", "(", "$"]),
)
def test_number_agrees_with_integer_equality(wanted, given_number, before):
    assert judge("number", wanted, f"{before}{given_number}").passed is (wanted == given_number)


@pytest.mark.parametrize(
    "text",
    [
        "9",
        "1,234",
        "- ",
        "\\boxed{",
        "<answer>",
        "answer ",
        " ",
        "answer is  ",
        "$",
        "\\text{",
        " ,",
        "(",
        "1.",
        "1/",
        "=",
    ],
)
def test_hostile_text_takes_linear_time(text):
    text = text * (400_000 // len(text)) + "x"
    start = time.process_time()
    for kind, reference in (("exact", "5"), ("number", "5"), ("countdown", {"numbers": [1, 2], "target": 3})):
        assert judge(kind, reference, text).passed is False
    assert time.process_time() - start < 2


# --- countdown --------------------------------------------------------------------------------------------------------

GAME = {"numbers": [94, 4, 61, 6], "target": 309}


@pytest.mark.parametrize(
    "response",
    [
        "94*4-61-6",
        "<answer>94 * 4 - (61 + 6)</answer>",
        "Let me see.\n94*4-61-6 = 309",
        "309 = 94*4-61-6",
        "94\N{MULTIPLICATION SIGN}4 \N{MINUS SIGN} 61 - 6",
        "\\boxed{94 \\times 4 - 61 - 6}",
        "-6+94*4-61",
    ],
)
def test_countdown_right(response):
    verdict = judge("countdown", GAME, response)
    assert verdict == Verdict(1.0, True, {"format": 1.0, "numbers": 1.0, "value": 1.0}, "")


@pytest.mark.parametrize(
    ("response", "feedback", "parts"),
    [
        ("94*4-61", "does not use 6; equals 315, not 309", (1, 0, 0)),
        ("94*4-61-6-0", "uses 0, which is not given", (1, 0, 1)),
        ("94*4-61-6*6/6", "uses 6 3 times, given 1", (1, 0, 1)),
        ("94+4+61+6", "equals 165, not 309", (1, 1, 0)),
        ("94*4-61-6)", "'94*4-61-6)' is not an arithmetic expression: unexpected ')'", (0, None, None)),
        ("94/(4-4)", "'94/(4-4)' is not an arithmetic expression: division by zero", (0, None, None)),
        ("94**4", "'94**4' is not an arithmetic expression: unexpected '*'", (0, None, None)),
        ("__import__('os')", '"__import__(\'os\')" is not an arithmetic expression: unexpected "__import__"', None),
        ("", "'' is not an arithmetic expression: it ends too early", (0, None, None)),
    ],
)
def test_countdown_wrong_says_which_part_fails(response, feedback, parts):
    verdict = judge("countdown", GAME, response)
    assert verdict.passed is False
    assert verdict.score == 0
    assert verdict.feedback.replace("'", '"') == feedback.replace("'", '"')
    if parts is not None:
        assert tuple(verdict.parts.values()) == parts


def test_countdown_at_most_once():
    assert judge("countdown", {"numbers": [5, 3, 2], "target": 8}, "5+3").passed is False
    assert judge("countdown", {"numbers": [5, 3, 2], "target": 8}, "5+3", use_all=False).passed is True
    assert judge("countdown", {"numbers": [5, 3, 2], "target": 10}, "5+5", use_all=False).passed is False


@pytest.mark.parametrize(
    "reference", [None, 5, {}, {"numbers": [1]}, {"numbers": ["x"], "target": 1}, {"numbers": 1, "target": 1}]
)
def test_countdown_without_a_usable_reference_abstains(reference):
    assert judge("countdown", reference, "1").passed is None


OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def python_value(node: ast.AST) -> Fraction:
    """Evaluate with Python's own parser: the oracle for ours."""
    if isinstance(node, ast.Expression):
        return python_value(node.body)
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](python_value(node.left), python_value(node.right))
    if isinstance(node, ast.UnaryOp):
        value = python_value(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    assert isinstance(node, ast.Constant)
    return Fraction(node.value)


expressions = st.recursive(
    st.integers(0, 99).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", " - "]), inner).map("".join),
        inner.map(lambda e: f"({e})"),
        inner.map(lambda e: f"-{e}"),
    ),
    max_leaves=12,
)


@given(expressions)
def test_expressions_evaluate_as_python_does(text):
    try:
        wanted = python_value(ast.parse(text, mode="eval"))
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="division by zero"):
            evaluate(text)
        return
    value, used = evaluate(text)
    assert value == wanted
    assert sorted(used) == sorted(n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant))


@given(st.text(alphabet="0123456789+-*/() .", max_size=40))
def test_expressions_accept_only_what_python_accepts(text):
    try:
        value, _ = evaluate(text)
    except ExpressionError:
        return
    # Python refuses leading zeros, which are harmless here.
    stripped = " ".join(text.split())
    try:
        tree = ast.parse(stripped, mode="eval")
    except SyntaxError:
        assert re.search(r"(?<![0-9])0[0-9]", stripped)
        return
    assert value == python_value(tree)


@pytest.mark.parametrize("text", ["(" * 900, "-" * 900, "(" * 60 + "1" + ")" * 60, "1" * 1001])
def test_expressions_that_are_too_deep_or_long_are_refused(text):
    with pytest.raises(ExpressionError, match=r"nested deeper|longer than"):
        evaluate(text)


@pytest.mark.parametrize("text", ["1+" * 499 + "1", "9" * 999, "9" * 400 + "*" + "9" * 400, "(" * 40 + "1" + ")" * 40])
def test_expressions_within_the_bounds_are_evaluated(text):
    assert evaluate(text)[0] == python_value(ast.parse(text, mode="eval"))


# --- the kind verifier ------------------------------------------------------------------------------------------------


def test_none_abstains():
    verdict = judge("none", None, "anything")
    assert verdict.passed is None
    assert "only the reward function judges" in verdict.feedback


def test_kind_verifier_picks_by_kind_and_takes_overrides():
    verifier = KindVerifier(
        {"always": lambda task, response: Verdict.right(), "exact": {"name": "exact", "numeric": False}}
    )
    assert verifier(Task("a", "?", "1/2", "number"), "0.5").passed is True
    assert verifier(Task("b", "?", "1/2", "exact"), "0.5").passed is False
    assert verifier(Task("c", "?", None, "always"), "").passed is True


def test_kind_verifier_names_the_unknown_kind():
    task = Task("row/7", "?", "1", "numbr")
    with pytest.raises(UsageError, match=r"task row/7 is of kind 'numbr'.*did you mean 'number'.*countdown"):
        KindVerifier().check([Task("ok", "?", "1", "exact"), task])
    with pytest.raises(UsageError, match=r"zzzzz.*known: .*exact"):
        KindVerifier()(Task("t", "?", None, "zzzzz"), "")
    with pytest.raises(UsageError, match="no option 'numerc'"):
        KindVerifier({"exact": {"name": "exact", "numerc": True}})


def test_kind_verifier_turns_a_failing_verifier_into_an_abstention():
    def broken(task, response):
        raise ValueError("no connection")

    verdict = KindVerifier({"mine": broken})(Task("t", "?", None, "mine"), "x")
    assert verdict.passed is None
    assert "ValueError: no connection" in verdict.feedback
    verdict = KindVerifier({"mine": lambda task, response: "1.0"})(Task("t", "?", None, "mine"), "x")
    assert verdict.passed is None
    assert "str" in verdict.feedback


# --- never raises -----------------------------------------------------------------------------------------------------

REFERENCES = {
    "exact": "143",
    "number": "#### 143",
    "countdown": GAME,
    "none": None,
}
marked = st.lists(
    st.one_of(
        st.text(),
        st.sampled_from(
            ["<answer>", "</answer>", "\\boxed{", "}", "{", "####", "the answer is", "\n", "143", "94*4-61-6", "="]
        ),
    ),
    max_size=12,
).map("".join)


@pytest.mark.parametrize("kind", sorted(REFERENCES))
@given(response=marked)
def test_no_verifier_raises(kind, response):
    verdict = build("verify", kind)(Task("t", "?", REFERENCES[kind], kind), response)
    assert verdict.passed in (True, False) or kind == "none"
    assert verdict.score in (0.0, 1.0)
    assert verdict.passed or verdict.feedback


@given(
    response=marked,
    reference=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text() | st.sampled_from(["numbers", "target"]), x),
        max_leaves=6,
    ),
)
def test_no_verifier_raises_on_any_reference(response, reference):
    for kind in ("exact", "number", "countdown"):
        assert isinstance(build("verify", kind)(Task("t", "?", reference, kind), response), Verdict)


def test_the_list_of_verifiers():
    assert {"exact", "number", "countdown", "gym", "none"} <= set(names("verify"))


# --- reasoning-gym ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def entry():
    from reasoning_gym.factory import create_dataset

    return lambda name: {"dataset": name, "entry": create_dataset(name, seed=3, size=5)[1]}


@pytest.mark.parametrize(
    "name", ["chain_sum", "countdown", "spiral_matrix", "n_queens", "simple_integration", "puzzle24"]
)
def test_gym_accepts_the_oracle_and_refuses_nonsense(entry, name):
    reference = entry(name)
    answer = reference["entry"]["answer"]
    assert judge("gym", reference, f"hm <answer>{answer}</answer>").passed is True
    assert judge("gym", reference, answer).passed is True
    verdict = judge("gym", reference, "<answer>xyzzy</answer>")
    assert verdict.passed is False
    assert 0 <= verdict.score < 1


def test_gym_threshold_and_length(entry):
    reference = entry("chain_sum")
    padded = reference["entry"]["answer"] + " is it"
    assert judge("gym", reference, padded).passed is False
    assert judge("gym", reference, padded, threshold=0.01).passed is True
    assert judge("gym", reference, "1" * 30_000).feedback == "the answer is longer than 20000 characters"
    with pytest.raises(UsageError, match="threshold"):
        build("verify", {"name": "gym", "threshold": 2.0})


def test_gym_blames_the_answer_on_which_a_scorer_fails_and_not_on_others(entry):
    verdict = judge("gym", entry("prime_factorization"), "xx")
    assert verdict.passed is False
    assert "ValueError" in verdict.feedback
    # The same scorer fails on the right answer too: not the response's doing.
    broken = {"dataset": "prime_factorization", "entry": {"answer": "yy", "metadata": {}}}
    verdict = judge("gym", broken, "xx")
    assert verdict.passed is None and "prime_factorization" in verdict.feedback
    verdict = judge("gym", {"dataset": "nowhere", "entry": {}}, "1")
    assert verdict.passed is None
    assert "nowhere" in verdict.feedback
    assert judge("gym", {"entry": {}}, "1").passed is None
    assert judge("gym", {"dataset": "chain_sum", "entry": {"answer": lambda: 0}}, "1").passed is None


@pytest.mark.parametrize("name", ["countdown", "simple_integration", "coin_flip"])
@pytest.mark.parametrize("answer", ["-9**9**9", "9^9^9^9", "1e999999999", "99999999999!", "((9**999)**999)**9999"])
def test_gym_refuses_answers_that_ask_for_unbounded_work(entry, name, answer):
    assert judge("gym", entry(name), answer, seconds=0.3).passed is False


@pytest.mark.parametrize(
    ("reply", "passed"),
    [
        (Failure("took longer than 1 s", "time"), False),
        (Failure("ran out of memory", "memory"), False),
        (Failure("its process was ended by SIGSEGV", "crashed"), False),
        (math.nan, False),
        (Failure("took longer than 10 s by the wall clock", "wall"), None),
        (Failure("its process was ended by SIGKILL", "killed"), None),
        (Failure("the workers were closed", "closed"), None),
        (Failure("could not be loaded", "unloaded"), None),
    ],
)
def test_gym_is_wrong_for_what_an_answer_does_and_abstains_for_what_we_do(entry, monkeypatch, reply, passed):
    asked = []

    class Scorers:
        def call(self, function, dataset, config, entry, answer, seconds):
            asked.append(answer)
            return reply if answer == "bad" else 1.0

    monkeypatch.setattr(gym, "WORKERS", Scorers())
    reference = entry("chain_sum")
    assert judge("gym", reference, "bad").passed is passed
    assert asked == ["bad"] + [reference["entry"]["answer"]] * (passed is False)


def test_gym_ends_a_scorer_that_does_not_return(entry):
    verdict = judge("gym", entry("countdown"), "*".join(["9**99999"] * 1500), seconds=0.3)
    assert verdict.passed is False
    assert "longer than 0.3 s" in verdict.feedback
    # The next answer is scored by a fresh process.
    reference = entry("countdown")
    assert judge("gym", reference, reference["entry"]["answer"]).passed is True


def test_gym_does_not_run_an_answer_as_code(entry, tmp_path):
    target = tmp_path / "written"
    code = f"__import__('pathlib').Path({str(target)!r}).touch()"
    for name in ("countdown", "puzzle24", "simple_integration", "polynomial_multiplication"):
        assert judge("gym", entry(name), code).passed is not True
    for name in ("n_queens", "spiral_matrix", "binary_matrix", "string_insertion", "number_sorting"):
        assert judge("gym", entry(name), f"[{code}]").passed is not True
    assert not target.exists()


def test_what_counts_as_plain_algebra():
    assert all(map(harmless, ["3*x**2 + sin(x)/2 - log(5)", "94*4 - 61", "exp(-x) + C", "1.5*t"]))
    for text in (
        "x.__class__",
        "open(x)",
        "chr(47)",
        "x.real",
        "[1]",
        "'a'",
        "lambda x: x",
        "exec(x)",
        "__import__",
        "é",
    ):
        assert not harmless(text), text
