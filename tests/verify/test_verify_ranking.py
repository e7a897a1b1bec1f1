"""Rankings: measures against SciPy, brute force and numbers worked by hand."""

from __future__ import annotations

import itertools
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, Verdict
from assay.verify.lists import rank_metrics as m
from assay.verify.lists.ranking import read_ranking, read_wanted


def judge(reference: object, response: str, **options: object) -> Verdict:
    return build("verify", {"name": "ranking", **options})(Task("t", "?", reference, "ranking"), response)


# --- measures ---------------------------------------------------------------------------------------------------------


def test_ndcg_by_hand():
    grades = {"a": 3, "b": 2, "c": 3, "d": 0, "e": 1, "f": 2}
    # Wikipedia's example: DCG_6 = 6.861, ideal DCG_6 = 7.141, nDCG = 0.961.
    assert m.dcg([3, 2, 3, 0, 1, 2]) == pytest.approx(6.861, abs=1e-3)
    assert m.ndcg(list("abcdef"), grades) == pytest.approx(0.961, abs=1e-3)
    exponential = (7 + 3 / math.log2(3)) / (7 + 7 / math.log2(3))
    assert m.ndcg(["a", "b"], grades, k=2, gain="exponential") == pytest.approx(exponential)
    assert m.ndcg(["a"], {"a": 0}) == 0


def test_rank_reward_by_hand():
    # ReasonRank: order (3, 2, 1, 4), gold (3, 1, 2, 4), relevant {1, 3}.
    given_, gold = [3, 2, 1, 4], [3, 1, 2, 4]
    assert m.ndcg(given_, {1: 1, 3: 1}, 10) == pytest.approx(0.919721, abs=1e-6)
    assert m.recall_at(given_, {1, 3}, 10) == 1
    assert m.average_overlap(given_, gold) == pytest.approx(0.875)
    # Truncated at 4 it is 0.298900, and can be 1 - 0.9^4 at most.
    assert m.average_overlap(given_, gold, 0.9) == pytest.approx(0.298900 / (1 - 0.9**4), abs=1e-5)
    assert m.average_precision(given_, {1, 3}) == pytest.approx((1 + 2 / 3) / 2)
    assert m.reciprocal_rank(given_, {1}) == pytest.approx(1 / 3)
    assert m.reciprocal_rank(given_, {1}, 2) == 0
    # Of a list that leaves out the second: shares of 1 and 1/2.
    assert m.average_overlap("a", "ab") == m.average_overlap("ab", "a") == 0.75 and m.average_overlap("", "") == 1


@given(st.permutations(range(5)), st.floats(0.001, 1.0), st.integers(1, 5))
def test_rank_biased_overlap_is_one_for_the_right_order_alone(order, p, n):
    ranking = order[:n]
    assert m.average_overlap(ranking, ranking, p) == 1
    gold = list(range(n))
    share = [len({*order[:d]} & {*range(d)}) / d for d in range(1, 6)]
    expected = sum(p**d * a for d, a in enumerate(share)) / sum(p**d for d in range(5))
    assert m.average_overlap(order, list(range(5)), p) == pytest.approx(expected)
    # The first place alone counts as p goes to 0.
    assert m.average_overlap(order, list(range(5)), 1e-12) == pytest.approx(float(order[0] == 0))
    if ranking != gold:
        assert m.average_overlap(ranking, gold, p) < 1


def test_the_right_order_passes_whatever_the_persistence():
    verifier = build("verify", {"name": "ranking", "measure": "rbo", "persistence": 0.5})
    task = Task("t", "", ["x", "y", "z"], "ranking")
    assert verifier(task, "x > y > z").passed is True and verifier(task, "x > y > z").score == 1
    assert verifier(task, "x > z > y").passed is False


def test_average_precision_by_hand():
    # Relevant at places 1, 3, 6 of 5 relevant in all: (1 + 2/3 + 3/6) / 5; with k = 3, (1 + 2/3) / 3.
    assert m.average_precision("axbxxc", set("abcde")) == pytest.approx((1 + 2 / 3 + 1 / 2) / 5)
    assert m.average_precision("axbxxc", set("abcde"), 3) == pytest.approx((1 + 2 / 3) / 3)


@given(st.permutations(range(6)))
def test_correlations_are_those_of_scipy(order):
    ranking = list(range(6))
    places = [ranking.index(item) for item in order]
    assert m.kendall_tau(ranking, order) == pytest.approx(kendalltau(range(6), places).statistic)
    assert m.spearman_rho(ranking, order) == pytest.approx(spearmanr(range(6), places).statistic)
    pairs = [(places[i] < places[j]) - (places[i] > places[j]) for i, j in itertools.combinations(range(6), 2)]
    assert m.kendall_tau(ranking, order) == pytest.approx(sum(pairs) / 15)
    assert m.spearman_rho(ranking, order) == pytest.approx(
        1 - 6 * sum((p - i) ** 2 for i, p in enumerate(places)) / 210
    )


def test_correlations_at_their_limits():
    assert m.kendall_tau("ab", "ab") == 1 and m.kendall_tau("ba", "ab") == -1
    assert m.kendall_tau("xyz", "ab") == -1 and m.spearman_rho("", "abc") == -1
    assert m.kendall_tau("a", "a") == 1 and m.spearman_rho("ba", "ab") == pytest.approx(-1)
    # a ranked, b and c missing and tied: concordant ab, ac; tau-b = 2 / sqrt(3 * 2).
    assert m.kendall_tau("a", "abc") == pytest.approx(2 / math.sqrt(6))


@given(st.text("abcd", max_size=7), st.text("abcd", max_size=7))
def test_ordered_overlap_by_brute_force(left, right):
    def subsequences(text):
        return {"".join(c) for r in range(len(text) + 1) for c in itertools.combinations(text, r)}

    longest = max(map(len, subsequences(left) & subsequences(right)))
    assert m.ordered_overlap(left, right) == (2 * longest / (len(left) + len(right)) if left or right else 1)


def test_a_plan_by_hand():
    wanted = ["pick apple", "place apple bowl", "open drawer", "pick spoon"]
    made = ["pick apple", "open drawer", "place apple bowl", "pick spoon", "close drawer"]
    assert m.ordered_overlap(made, wanted) == pytest.approx(6 / 9)
    assert m.ordered_overlap(wanted[::-1], wanted) == pytest.approx(2 / 8)


GRADES = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3), min_size=1)


@given(st.lists(st.sampled_from("abcdefxyz"), max_size=10), GRADES, st.integers(1, 8))
def test_neither_repeating_nor_padding_pays(ranking, grades, k):
    relevant = {item for item, grade in grades.items() if grade}
    for repeated in ([*ranking[:1], *ranking], ["unknown", *ranking]):
        assert m.ndcg(repeated, grades, k) <= m.ndcg(ranking, grades, k) + 1e-12
        assert m.average_precision(repeated, relevant, k) <= m.average_precision(ranking, relevant, k) + 1e-12
    best = max(m.ndcg(p, grades, k) for p in itertools.islice(itertools.permutations(grades), 50))
    ideal = sorted(grades, key=lambda item: -grades[item])
    assert m.ndcg(ideal, grades, k) >= best - 1e-12
    assert m.ndcg(ideal, grades, k) == pytest.approx(1 if relevant else 0)


# --- the verifier -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("[3] > [1] > [2]", [3, 1, 2]),
        ("c > b > a", ["c", "b", "a"]),
        ("[3, 1, 2]", [3, 1, 2]),
        ("1. c\n2. b", ["c", "b"]),
        ("c, b", ["c", "b"]),
        ("[3], [1]", [3, 1]),
        ("see [3]", ["see [3]"]),
        ("[3] x, [1] y, 2", ["[3] x", "[1] y", 2]),
    ],
)
def test_read_ranking(text, items):
    assert read_ranking(text) == items


def test_ranking():
    both = {"order": [3, 1, 2, 4], "relevance": [1, 3]}
    verdict = judge(both, "<answer>[3] > [2] > [1] > [4]</answer>", k=10)
    assert verdict.score == pytest.approx(0.919721, abs=1e-6)
    assert verdict.parts["valid"] == 1 and verdict.parts["rbo"] == pytest.approx(0.875)
    for invalid in ("[3] > [2] > [1] > [1]", "[3] > [2] > [1]", "[3] > [2] > [1] > [4] > [9]"):
        assert judge(both, invalid).score == 0
        assert judge(both, invalid, strict=False).score > 0
    assert judge(["a", "b", "c"], "a > b > c", measure="exact").passed
    assert judge(["a", "b", "c"], "c, b, a", measure="kendall").score == 0
    assert judge({"relevance": {"a": 2, "b": 0}, "candidates": ["a", "b"]}, "a, b").passed
    assert judge(["a", "b"], "", measure="exact").passed is False


def test_what_is_said_of_each_measure():
    """Of a, c, b for a, b, c two pairs of three stand right: tau 1/3, rho 1/2, both brought from [-1, 1] to [0, 1]."""
    verdict = judge({"order": ["a", "b", "c"], "relevance": {"a": 0, "b": 1}}, "a, c, b", measure="rr")
    assert verdict.parts["kendall"] == pytest.approx(2 / 3) and verdict.parts["spearman"] == pytest.approx(3 / 4)
    assert verdict.parts["rr"] == verdict.score == pytest.approx(1 / 3), "a helps nobody"
    assert verdict.passed is False and verdict.feedback == "rr 0.333"
    assert judge(["a", "b"], "a, b", measure="exact").feedback == ""
    for answer, why in (
        ("a, x", "ranks 'x', which is no candidate"),
        ("a, 7", "ranks a number that is no candidate"),
        ("a, a", "ranks 'a' twice"),
        ("a", "leaves out 1 of 2 items"),
    ):
        assert judge(["a", "b"], answer, measure="exact").feedback == why
    wanted = read_wanted({"relevance": ["a"]})
    assert wanted is not None and wanted.grades == {"a": 1.0} and judge({"relevance": {"a": 100}}, "a").passed


def test_what_is_too_long_for_a_ranking():
    assert judge(["a", "b"], "a, b", measure="exact", max_items=2).passed
    long = judge(["a"], "a," * 1001, measure="exact")
    assert long.passed is False and long.feedback == "ranks 1001 items, more than 1000"
    few = {"measure": "exact", "max_items": 1}
    assert "which is no candidate" in judge(["a"], "b" * 200, **few).feedback
    assert judge(["a"], "b" * 201, **few).feedback == "the answer is too long for a ranking"
    assert judge(["a"], "a", measure="exact", fallback="none").feedback == "no ranking found"


@pytest.mark.parametrize(
    "reference",
    [
        *(None, 3, [], ["a", "A"], {"x": 1}),
        *({"relevance": grades} for grades in ({"a": -1}, {"a": "x"}, {"a": 0}, {"a": 1, "b": -1}, {"a": 101})),
    ],
)
def test_a_reference_that_is_none_makes_it_abstain(reference):
    assert judge(reference, "a, b").passed is None


@given(st.text() | st.text(alphabet="[]>,ab1\n ", max_size=60))
@settings(deadline=None)
def test_never_raises(text):
    verdict = judge({"order": ["a", "b"], "relevance": {"a": 1}}, text, strict=False)
    assert verdict.passed is not None and 0 <= verdict.score <= 1


@pytest.mark.parametrize("text", ["[" * 190_000, "a>" * 90_000, "[1]" * 60_000, "a,b," * 240, " " * 10**6])
def test_long_answers_are_read_in_seconds(text):
    started = time.process_time()
    assert judge(["a", "b"], text, measure="kendall").passed is False
    assert time.process_time() - started < 3


def test_options():
    with pytest.raises(UsageError, match="at least 1"):
        build("verify", {"name": "ranking", "k": 0})
    for bad in ({"threshold": 0}, {"threshold": 1.5}, {"persistence": 0}, {"persistence": 1.5}):
        with pytest.raises(UsageError, match="in \\(0, 1\\]"):
            build("verify", {"name": "ranking", **bad})
    assert judge({"relevance": ["a"]}, "b, a", k=1).score == 0 and judge({"relevance": ["a"]}, "a", k=1).passed
