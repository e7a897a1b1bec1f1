"""Boxes, points and intervals against areas counted on a grid and numbers worked by hand."""

from __future__ import annotations

import itertools
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, Verdict
from assay.verify.geometry.boxes import giou, iou, matched_ious, most_above, to_corners
from assay.verify.geometry.interval import IntervalVerifier, read_reference
from assay.verify.geometry.point import gaussian_proximity, zone
from assay.verify.geometry.read import number_groups
from assay.verify.geometry.times import interval_iou, read_spans


def judge(kind: str, reference: object, response: str, **options: object) -> Verdict:
    return build("verify", {"name": kind, **options})(Task("t", "?", reference, kind), response)


# --- boxes ------------------------------------------------------------------------------------------------------------

BOX = st.tuples(*[st.integers(0, 8)] * 4).filter(lambda b: b[0] < b[2] and b[1] < b[3])


def cells(box):
    return set(itertools.product(range(box[0], box[2]), range(box[1], box[3])))


@given(BOX, BOX)
def test_iou_counts_cells(a, b):
    union = cells(a) | cells(b)
    assert iou(a, b) == pytest.approx(len(cells(a) & cells(b)) / len(union))
    around = cells((min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])))
    assert giou(a, b) == pytest.approx(iou(a, b) - len(around - union) / len(around))


@given(st.lists(BOX, max_size=4), st.lists(BOX, max_size=4), st.sampled_from([0.2, 0.5, 0.9]))
def test_boxes_are_paired_best_by_enumeration(given_, wanted, threshold):
    small, large = sorted((given_, wanted), key=len)
    ways = [list(zip(small, p, strict=True)) for p in itertools.permutations(large, len(small))]
    assert sum(matched_ious(given_, wanted)) == pytest.approx(max(sum(iou(a, b) for a, b in way) for way in ways))
    assert most_above(given_, wanted, threshold) == max(sum(iou(a, b) >= threshold for a, b in way) for way in ways)


def test_forms_of_a_box():
    assert to_corners((1, 2, 3, 5)) == (1, 2, 3, 5)
    assert to_corners((1, 2, 2, 3), "xywh") == (1, 2, 3, 5)
    assert to_corners((2, 3.5, 2, 3), "cxcywh") == (1, 2, 3, 5)
    for bad in ((3, 2, 1, 5), (1, 2, 1, 5), (0, 0, math.inf, 1), (0, 0, math.nan, 1), (0, 0, 1e300, 1e300)):
        assert to_corners(bad) is None
    assert to_corners((0, 0, -1, 5), "xywh") is None


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("box 2: [10, 20.5, 30, 40]", [(10, 20.5, 30, 40)]),
        ("<box>(1,2),(3,4)</box>", [(1, 2, 3, 4)]),
        ("x1=1, y1=2, x2=3, y2=4", [(1, 2, 3, 4)]),
        ("[1,2,3,4] and [5,6,7,8]", [(1, 2, 3, 4), (5, 6, 7, 8)]),
        ("(1,2,3,4), (5,6,7,8)", [(1, 2, 3, 4), (5, 6, 7, 8)]),
        ("-1 -2 3 4e1", [(-1, -2, 3, 40)]),
        ("1, 2, 3", []),
        ("nan, 1, 2, 3", []),
        ("1, 2, 3, 4, 5", []),
    ],
)
def test_number_groups(text, groups):
    assert number_groups(text, 4) == groups


def test_box():
    verdict = judge("box", [0, 0, 10, 10], "It is at [0, 0, 10, 5].")
    # 50 of 100; the hull is the reference itself, so GIoU = IoU.
    assert verdict.passed and verdict.score == 0.5 and verdict.parts == {"iou": 0.5, "giou": 0.75}
    assert judge("box", [0, 0, 10, 10], "[0, 0, 10, 4]").passed is False
    assert judge("box", [0, 0, 10, 10], '```json\n[{"bbox_2d": [0, 0, 10, 10], "label": "7"}]\n```').score == 1
    # The card's tiers: IoU 0.75 of 0.7 gives 1, 0.35 gives 0.5.
    assert judge("box", [0, 0, 10, 10], "[0,0,10,7.5]", score="ramp", threshold=0.7).score == 1
    assert judge("box", [0, 0, 10, 10], "[0,0,10,3.5]", score="ramp", threshold=0.7).score == pytest.approx(0.5)
    assert judge("box", [0, 0, 10, 10], "[20,0,30,10]", score="giou").score == pytest.approx((1 - 1 / 3) / 2)
    sized = {"box": [0, 0, 100, 100], "size": [200, 100]}
    assert judge("box", sized, "(0,0),(500,1000)", units="per_mille").score == 1
    assert judge("box", sized, "[0, 0, 0.5, 1]", units="relative").score == 1
    assert judge("box", [0, 0, 10, 10], "5, 5, 10, 10", form="cxcywh", reference_form="xyxy").score == 1
    for wrong in ("[10, 10, 0, 0]", "[0, 0, 1e400, 1]", '{"bbox": [0, 0, 1e308, 1e308]}', "nowhere", ""):
        assert judge("box", [0, 0, 10, 10], wrong).score == 0
    for reference in (None, [1, 2, 3], [3, 3, 1, 1], [0, 0, math.inf, 1], {"boxes": []}, "x"):
        assert judge("box", reference, "[0,0,1,1]").passed is None
    assert judge("box", [0, 0, 1, 1], "[0,0,1,1]", units="relative").passed is None


def test_boxes():
    wanted = [[0, 0, 10, 10], [20, 20, 30, 30]]
    assert judge("boxes", wanted, "[20,20,30,30], [0,0,10,10]").passed
    verdict = judge("boxes", wanted, "[[20,20,30,30],[0,0,10,10],[1,1,2,2]]")
    assert verdict.passed is False and verdict.score == pytest.approx(0.8)
    assert verdict.parts["precision"] == pytest.approx(2 / 3) and verdict.parts["iou"] == pytest.approx(0.8)
    # The same box twice is found once.
    assert judge("boxes", wanted, "[0,0,10,10],[0,0,10,10]").score == 0.5
    assert judge("boxes", wanted, "[0,0,10,10],[9,9,1,1]").parts["precision"] == 0.5
    assert judge("boxes", [], "There is none.").passed
    assert judge("boxes", [], "[0,0,1,1]").score == 0
    assert judge("boxes", wanted, "[0,0,1,1]" * 301).passed is False


# --- points -----------------------------------------------------------------------------------------------------------


def test_point():
    assert judge("point", {"box": [0, 0, 10, 10]}, "click(start_box='(5,5)')").passed
    assert judge("point", {"box": [0, 0, 10, 10]}, '{"point_2d": [10, 0]}').passed
    verdict = judge("point", {"box": [0, 0, 10, 10]}, "(15, 5)")
    assert verdict.passed is False and verdict.score == 0 and "10 from" in verdict.feedback
    tiers = [[5, 0.8], [10, 0.4]]
    for text, near in (("(3,4)", 0.8), ("(6,8)", 0.4), ("(7,8)", 0)):
        verdict = judge("point", [0, 0], text, proximity="tiers", tiers=tiers)
        assert verdict.passed is False and verdict.parts["near"] == near and verdict.score == near / 2
    assert judge("point", [0, 0], "(3, 4)", tolerance=5).passed
    sized = {"point": [100, 50], "size": [200, 100]}
    assert judge("point", sized, "(500, 500)", units="per_mille").passed
    for wrong in ("(1e400, 0)", "(1, 2, 3)", "here", "(nan, 0)", '{"point": [1e999, 0]}'):
        assert judge("point", [0, 0], wrong).score == 0
    for reference in (None, "x", {"box": [1, 1, 0, 0]}, {"box": "x", "point": [0, 0]}, [1]):
        assert judge("point", reference, "(0,0)").passed is None


def test_proximity_by_hand():
    # Sweet Spot Learning: dx = 10, dy = 5, sx = 20, sy = 10 -> 0.778801; four zones.
    assert gaussian_proximity(10, 5, 20, 10) == pytest.approx(0.778801, abs=1e-6)
    shares = [0, 0.2, 0.3, 0.5, 0.74, 0.75, 0.99, 1]
    assert [zone(q, 4) for q in shares] == pytest.approx([0, 0, 1 / 3, 2 / 3, 2 / 3, 1, 1, 1])
    assert zone(0.37, 0) == 0.37 and zone(0.9, 1) == 0
    verdict = judge("point", {"box": [0, 0, 20, 10]}, "(20, 12)", proximity="gaussian", zones=0)
    assert verdict.parts["near"] == pytest.approx(math.exp(-0.5 * (0.5**2 + 0.7**2)))


def test_what_a_miss_is_measured_by():
    """By the box's own width and height, or by the tolerance; by 1 where there is none."""
    smooth = {"proximity": "gaussian", "zones": 0}
    # A box of 20 by 10 with its centre at (40, 65): (60, 55) is off by 20 and 10.
    away = judge("point", {"box": [30, 60, 50, 70]}, "(60, 55)", **smooth)
    assert away.parts["near"] == pytest.approx(math.exp(-1))
    assert judge("point", [0, 0], "(1, 1)", **smooth).parts["near"] == pytest.approx(math.exp(-1))
    assert judge("point", [0, 0], "(5, 10)", tolerance=5, **smooth).parts["near"] == pytest.approx(math.exp(-2.5))
    assert judge("point", [0, 0], "(1e200, 0)", **smooth).parts["near"] == 0
    # Of four zones, as many as there are unless told otherwise: e^-1 is in the second, worth a third.
    assert judge("point", [0, 0], "(1, 1)", proximity="gaussian").parts["near"] == pytest.approx(1 / 3)


def test_what_a_point_may_be_told_of():
    assert judge("point", [0, 0], "(9, 9)", proximity="tiers", tiers=[[20, 1], [30, 0]], partial=0).score == 0
    for wrong in ({"tiers": [[1, 1.5]]}, {"spread": 0}, {"partial": 1}, {"tolerance": -1}, {"zones": -1}):
        with pytest.raises(UsageError, match="'point'"):
            judge("point", [0, 0], "(9, 9)", **wrong)
    for size in (None, [0, 10], [10, 0], [-1, 10]):
        assert judge("point", {"point": [5, 5], "size": size}, "(0.5, 0.5)", units="relative").passed is None, size
    assert judge("point", {"point": [0.5, 0.5], "size": [1, 1]}, "(0.5, 0.5)", units="relative").passed is True
    assert judge("point", [1, 2], "(1, 2)", max_chars=6).passed is True
    assert judge("point", [1, 2], "(1, 2)", max_chars=5).passed is False
    for text in ("(1e400, 0)", "(0, 1e400)"):
        assert judge("point", [0, 0], text).feedback in ("a point that is not finite", "no point found")


@given(st.floats(0, 50), st.integers(1, 12))
def test_a_hit_is_worth_more_than_any_miss(x, zones):
    verdict = judge("point", {"box": [0, 0, 10, 10]}, f"({x:.3f}, 5)", proximity="gaussian", zones=zones, partial=0.9)
    assert (verdict.score == 1) == verdict.passed
    assert verdict.passed == (float(f"{x:.3f}") <= 10)


# --- intervals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("from 15 to 30 seconds", [(15, 30)]),
        ("It happens at 1:05 - 1:20.", [(65, 80)]),
        ("01:00:05–01:00:06.5", [(3605, 3606.5)]),
        ("3.5s - 7s, then 10s to 12s", [(3.5, 7), (10, 12)]),
        ("between 2 and 3 minutes", [(120, 180)]),
        ("[2, 8] and [10, 12]", [(2, 8), (10, 12)]),
        ("9 to 3", [(9, 3)]),
        ("clip 3", []),
        ("in 2024", []),
    ],
)
def test_read_spans(text, spans):
    assert read_spans(text) == spans


def test_interval_iou_by_hand():
    assert interval_iou([(10, 20)], [(15, 30)]) == 0.25
    assert interval_iou([(0, 5)], [(8, 10)]) == 0
    assert interval_iou([(2, 8)], [(3, 5)]) == pytest.approx(1 / 3)


SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)).map(lambda s: (s[0], s[0] + s[1])), max_size=4)


@given(SPANS, SPANS)
def test_interval_iou_counts_seconds(left, right):
    a, b = ({t for start, end in spans for t in range(start, end)} for spans in (left, right))
    assert interval_iou(left, right) == pytest.approx(len(a & b) / len(a | b) if a | b else 1)


def test_interval():
    verdict = judge("interval", [10, 20], "from 15 to 30 seconds")
    assert verdict.passed is False and verdict.score == 0.25 and verdict.parts["iou@0.3"] == 0
    assert judge("interval", "1:05 - 1:20", "<answer>1:05 to 1:20</answer>").passed
    two = judge("interval", {"intervals": [[0, 10], [20, 30]]}, "0-10, 25-30")
    assert two.score == pytest.approx(0.75) and two.parts["f1"] == 1
    assert judge("interval", [2, 8], "2-8, 100-200", first=True).score == 1
    # Naming many intervals to be sure of a hit costs what they cover.
    assert judge("interval", [2, 8], "0-1000").score == pytest.approx(0.006)


def test_several_intervals_are_paired_one_to_one():
    """Of two given one is half of one of three: precision 1/2, recall 1/3; their union is 5 of 40 seconds."""
    verdict = judge("interval", [[0, 10], [20, 30], [40, 50]], "0 - 5, 60 - 70")
    assert verdict.parts["f1"] == pytest.approx(0.4) and verdict.score == 5 / 40
    assert verdict.feedback == "IoU 0.125 is below 0.5"


def test_an_overlap_that_is_just_enough_passes():
    verdict = judge("interval", [0, 10], "0 - 5")
    assert verdict.passed is True and verdict.score == 0.5 and verdict.feedback == ""
    assert verdict.parts == {"iou": 0.5, "f1": 1, "iou@0.3": 1, "iou@0.5": 1, "iou@0.7": 0}
    assert judge("interval", [0, 10], "0 - 10", threshold=1.0).passed is True
    for threshold in (0.0, 1.1):
        with pytest.raises(UsageError, match=f"threshold {threshold} must be in"):
            IntervalVerifier(threshold)


@pytest.mark.parametrize(
    ("answer", "feedback"),
    [
        ("8 to 2", "an interval ends before it starts"),
        ("5 to 5", "an interval ends before it starts"),
        ("2 to 8, or 8 to 2", "an interval ends before it starts"),
        ("never", "no interval found"),
        ("nan - inf", "no interval found"),
        ("", "no interval found"),
        ("2-8 " * 301, "301 intervals"),
        ("2-8 " + "x" * 199_997, "longer than 200000 characters"),
    ],
)
def test_an_answer_without_an_interval_says_why(answer, feedback):
    verdict = judge("interval", [2, 8], answer)
    assert (verdict.score, verdict.passed, verdict.feedback) == (0, False, feedback)


def test_an_answer_may_be_long():
    for answer in ("2-8 " * 300, "2-8 " + "x" * 199_996):
        assert judge("interval", [2, 8], answer).score == 1


@pytest.mark.parametrize(
    ("reference", "intervals"),
    [
        ([10, 20], [(10, 20)]),
        ("1:05 - 1:20 and 2 to 3", [(65, 80), (2, 3)]),
        (["0 - 10", (20, 30)], [(0, 10), (20, 30)]),
        ({"intervals": [[1, 2], [4, 5]]}, [(1, 2), (4, 5)]),
        ({"spans": [[1, 2]]}, None),
        (["0 - 10 and 20 - 30"], None),
        ([[1, 2], [4, 4]], None),
        ([[1, 2], [4, 3]], None),
        ([[1, 2], 3], None),
        ([math.nan, 1], None),
        (7, None),
        ([], None),
        ("never", None),
        (None, None),
    ],
)
def test_references_of_intervals(reference, intervals):
    assert read_reference(reference) == intervals
    verdict = judge("interval", reference, "1 - 2")
    assert (verdict.passed is None) is (intervals is None)


# --- whatever comes ---------------------------------------------------------------------------------------------------

REFERENCES = {"box": [0, 0, 4, 4], "boxes": [[0, 0, 4, 4]], "point": {"box": [0, 0, 4, 4]}, "interval": [1, 4]}


@pytest.mark.parametrize("kind", REFERENCES)
@given(st.text() | st.text(alphabet='[](){},.:-+e019 tosx"\n', max_size=60) | st.lists(st.floats()).map(str))
@settings(deadline=None)
def test_never_raises(kind, text):
    verdict = judge(kind, REFERENCES[kind], text)
    assert verdict.passed is not None and 0 <= verdict.score <= 1
    assert all(value is None or 0 <= value <= 1 for value in verdict.parts.values())


@pytest.mark.parametrize("kind", REFERENCES)
@pytest.mark.parametrize(
    "piece", ["1 ", "1,", "1:", "[", "9", " ", "1 to ", "1,2 a ", "-", "<box>", '{"bbox":', "[1,2,3,4],"]
)
def test_long_answers_are_read_in_seconds(kind, piece):
    started = time.process_time()
    judge(kind, REFERENCES[kind], piece * (190_000 // len(piece)))
    assert time.process_time() - started < 3


def test_options():
    for options in (
        {"name": "box", "threshold": 0.0},
        {"name": "point", "proximity": "tiers"},
        {"name": "point", "partial": 1.0},
        {"name": "point", "tiers": [[5, 0.1], [9, 0.5]]},
    ):
        with pytest.raises(UsageError):
            build("verify", options)
