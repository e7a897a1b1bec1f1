"""S012: the order of keywords by hand, checks in the sandbox, and chains made from a reference."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from assay.catalogue import make
from assay.errors import UsageError
from assay.papers.rewards.s012_rlvrr import chain_score, content, occurrences, run_check, styles
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")
WORDS = ["Paris", "Seine", "Louvre", "metro"]
REFERENCE = "Paris lies on the Seine; see the Louvre by metro."
SHORT = {"code": "def check(response):\n    return len(response) < 60", "weight": 0.6}
ASKS = {"code": "def check(response):\n    return response.endswith('?')", "weight": 0.4}


def task(points: Any = (), checks: Any = (), reference: Any = REFERENCE) -> Task:
    return Task("t", "?", {"reference": reference, "key_points": list(points), "checks": list(checks)}, "none")


def test_keywords_count_in_their_order() -> None:
    assert chain_score(WORDS, "The seine in PARIS: louvre, Paris, metro", REFERENCE) == pytest.approx(0.6)
    assert chain_score(WORDS, REFERENCE, REFERENCE) == 1
    assert chain_score(WORDS, " ".join([" ".join(WORDS)] * 3), REFERENCE) == pytest.approx(1 / 3)
    assert chain_score(WORDS, "", REFERENCE) == 0 == chain_score(["x"], "y", "z") == chain_score([], "y", "z")


def test_whole_words_and_the_longest_that_fits() -> None:
    assert occurrences(["art"], "smart art, arts") == ["art"]
    assert occurrences(["New York", "York", "New York City"], "new\nyork city, York") == ["new york city", "york"]
    assert occurrences(["C++", "a.b"], "C++ and axb a.b") == ["c++", "a.b"]


def test_points_alternatives_and_references() -> None:
    points = [[["Paris"], ["capital"]], [["Rome"]]]
    assert content(task(points, reference="Paris, the capital. Rome."), "the capital") == 0.5
    assert content(task(points, reference=["Rome", "Paris"]), "Rome") == 0.5
    assert content(task([[["Paris"]]]), "") == 0
    long = content(task([[["Paris"]]], reference="Paris is it"), "Paris " + "word " * 5, length=0.5)
    assert long == pytest.approx(1 - 0.5 * (6 / 3 - 1))
    assert content(task([[["Paris"]]], reference="Paris is it"), "Paris is", length=9) == 0
    wrong: list[Any] = [[["Paris"]], ["Paris"], [[]]]
    for broken in wrong:
        with pytest.raises(UsageError, match="task t"):
            content(task(broken), "x")


def test_checks_run_apart() -> None:
    assert styles(task(checks=[SHORT, ASKS]), ["so", "why?", "x" * 70]) == pytest.approx([0.6, 1.0, 0.0])
    assert styles(task(checks=[SHORT, {"code": "def check(r):\n    return 1 / 0", "weight": 0.4}]), ["a"]) == [0.6]
    assert styles(task(checks=[{"code": "no python", "weight": 1}]), ["a", "b"]) == [0, 0]
    ends = "import os\ndef check(r):\n    if r == 'a': os._exit(0)\n    return True"
    assert run_check(ends, ["b", "a", "b"]) == [True, False, True], "one response's end is not the others'"
    with pytest.raises(UsageError, match="task t"):
        styles(task(checks=[{"weight": 1}]), ["a"])


def test_the_reward(make_batch: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    chained, plain = task([[WORDS]], [SHORT, ASKS]), Task("p", "?", "3")
    batch = make_batch(
        [1] * 5,
        rewards=[0.0, 0.0, 1.0, 0.0, 0.0],
        passed=[True, True, True, False, None],
        texts=[REFERENCE, "Paris?", "3", "4", "5"],
        tasks=[chained, chained, plain, plain, plain],
    )
    reward = make("S012").reward(batch)
    assert reward.values.tolist() == pytest.approx([1.6, 1.25, 1, 0, 0])
    assert reward.valid.tolist() == [True] * 4 + [False]
    assert reward.terms["content"][:2].tolist() == [1, 0.25]
    failed = SimpleNamespace(calls=(), outcome=SimpleNamespace(failed_here=True))
    monkeypatch.setattr("assay.papers.rewards.s012_rlvrr._call", lambda code, texts: failed)
    assert make("S012").reward(batch).valid.tolist() == [False, False, True, True, False], "no sandbox is no failure"
    with pytest.raises(UsageError):
        make("S012", length=-1.0)
    assert make("S012", kl_weight=0.0) and make("S012")
