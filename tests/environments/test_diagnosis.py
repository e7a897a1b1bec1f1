"""Records: criteria that one disease meets, a differential after each piece, and what it is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from acted import plans_hold, share

from assay.audit.environment import audit_environment
from assay.environments.base import Action
from assay.environments.diagnosis.environment import Diagnosis
from assay.environments.diagnosis.records import SECTIONS, SIGNS, fits
from assay.environments.hosted.worlds import Worlds
from assay.environments.tools import say
from assay.errors import UsageError
from assay.types import Task

KINDS: list[dict[str, Any]] = [
    {},
    {"style": "compact", "diseases": 8, "sections": 2, "signs": 3, "extra": 9},
    {"diseases": 2, "sections": 1, "signs": 2, "extra": 0, "seed": 5},
]


@pytest.mark.parametrize("options", KINDS)
def test_the_plan_passes_and_repeats(options: dict[str, Any]) -> None:
    plans_hold(lambda: Diagnosis(**options), 60, 20)


@pytest.mark.parametrize("options", KINDS)
def test_the_whole_record_leaves_one_disease(options: dict[str, Any]) -> None:
    world = Diagnosis(**options)
    tasks, narrowed = world.tasks(), set()
    for index in range(100):
        task = tasks[index]
        criteria, pieces = task.meta["criteria"], task.meta["pieces"]
        assert len({*map(tuple, criteria.values())}) == len(criteria) == world.records.diseases
        found = fits(criteria, [finding for piece in pieces for finding in piece])
        assert [name for name, count in found.items() if count == len(pieces)] == [task.meta["disease"]]
        for section, piece in zip(SECTIONS, pieces, strict=False):
            assert len({*piece}) == len(piece) <= 1 + world.records.extra
            assert world.style == "compact" or {*piece} <= {*SIGNS[section]}
        narrowed.add(sum(count == 1 for count in fits(criteria, pieces[0]).values()))
        assert all(name in task.prompt for name in criteria)
    assert len(narrowed) > 1 or world.records.diseases == 2, "a complaint leaves some of them"
    assert tasks[0].prompt != tasks[1].prompt and Diagnosis(seed=1).tasks()[0] != tasks[0]
    assert len({tasks[i].meta["disease"] for i in range(40)}) > 1


def test_to_guess_is_right_in_one_of_as_many_as_there_are() -> None:
    def guess(world: Diagnosis, shown: Any, rng: np.random.Generator) -> Action:
        return say(str(rng.choice([*world.criteria])))

    assert share(Diagnosis, Diagnosis().tasks(), guess, 400) == pytest.approx(0.25, abs=0.06)


CASE = Task(
    "case",
    "Which?",
    kind="none",
    meta={
        "disease": "Two",
        "criteria": {
            "One": ["fever", "smoking"],
            "Two": ["fever", "a tick bite"],
            "Three": ["cough", "a tick bite"],
        },
        "pieces": [["fever", "headache"], ["a tick bite", "diabetes"]],
    },
)


def test_the_record_is_shown_in_order() -> None:
    world = Diagnosis(sections=2)
    assert world.reset(CASE, 0).messages[0]["content"] == "Which?\n\nComplaint: fever, headache."
    assert [a.text for a in world.gold()] == ["One > Two | fever", "Two | fever, a tick bite"]
    first = world.step(say("So far:\n two > One | Fever."))
    assert first.observation.messages[0]["content"] == "History: a tick bite, diabetes." and first.valid
    assert first.info == {"differential": ["Two", "One"], "evidence": ["fever"]} and not first.terminated
    assert world.verdict().passed is False and "not been read" in world.verdict().feedback
    assert [a.text for a in world.gold()] == ["Two | fever, a tick bite"]
    last = world.step(say("One > Two | smoking"))
    assert last.terminated and last.observation.messages == () and not world.verdict().passed
    assert world.state_json()["turns"][1] == {"differential": ["One", "Two"], "evidence": ["smoking"]}
    with pytest.raises(RuntimeError, match="call reset"):
        world.step(say("Two"))


@pytest.mark.parametrize(
    ("lines", "diagnosis", "evidence", "differential"),
    [
        (("Two | fever", "Two | fever, a tick bite"), 1.0, 1.0, 1.0),
        (("One > Two", "Two | fever"), 1.0, 2 / 3, 0.75),
        (("Three > One > Two | x", "Three > Two | fever, a tick bite, headache, diabetes"), 0.5, 2 / 3, 5 / 12),
        (("Two", "One | fever, fever, FEVER."), 0.0, 2 / 3, 0.5),
        (("Two | fever", "I do not know"), 0.0, 0.0, 0.5),
    ],
)
def test_rank_and_evidence_by_hand(
    lines: tuple[str, ...], diagnosis: float, evidence: float, differential: float
) -> None:
    world = Diagnosis(sections=2)
    world.reset(CASE, 0)
    for line in lines:
        world.step(say(line))
    verdict = world.verdict()
    assert verdict.parts == pytest.approx({"diagnosis": diagnosis, "evidence": evidence, "differential": differential})
    assert verdict.score == diagnosis and verdict.passed is (diagnosis == 1)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "end with a line"),
        ("Four | fever", "end with a line"),
        ("One > | x", "end with a line"),
        ("One>One", "one"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_and_the_record_goes_on(line: str, words: str) -> None:
    world = Diagnosis(sections=2)
    world.reset(CASE, 0)
    step = world.step(say(line))
    said, piece = step.observation.messages[0]["content"].split("\n")
    assert not step.valid and words in said == step.error and piece == "History: a tick bite, diabetes."
    assert world.step(say("Two")).terminated and world.verdict().passed
    small = Diagnosis(sections=2, style="compact")
    small.reset(CASE, 0)
    assert small.step(say(line)).observation.messages[0]["content"] == "?\na tick bite,diabetes"


def test_single_lines_are_judged_by_what_has_been_shown() -> None:
    world = Diagnosis(sections=2)
    world.reset(CASE, 0)
    judged = {
        line: bool(world.judge(say(line)).passed)
        for line in ("One > Two | fever", "Two > One", "One", "Three > One > Two", "Two > One | a tick bite", "Four")
    }
    assert [*judged.values()] == [True, True, False, False, False, False]
    agreed = world.compare(say("two>one | fever"), say("Two > One | Fever."))
    assert agreed.read and agreed.kind and agreed.exact
    other = world.compare(say("Two"), say("Two > One | fever"))
    assert other.read and other.kind and not other.exact
    assert not world.compare(say("?"), say("Two")).read and not world.compare(say("One"), say("Two")).kind


@pytest.mark.parametrize(
    "options",
    [{"diseases": 1}, {"diseases": 9}, {"sections": 0}, {"sections": 5}, {"signs": 1}, {"signs": 11}, {"extra": -1}],
)
def test_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="environment 'diagnosis': diseases"):
        Diagnosis(**options)
    with pytest.raises(UsageError, match="too few to tell 5"):
        Diagnosis(diseases=5, sections=2, signs=2)
    with pytest.raises(UsageError, match="neither words nor compact"):
        Diagnosis(style="verse")  # type: ignore[arg-type]


@pytest.mark.slow
def test_its_audit_passes() -> None:
    worlds = Worlds("diagnosis", 2)
    source = worlds.here().tasks()
    try:
        findings = list(audit_environment(worlds, [source[i] for i in range(4)]))
    finally:
        worlds.close()
    assert all(f.passed for f in findings) and "gold passes" in {f.name for f in findings}
