"""Screens: what is shown is what is touched, plans that reach their goals, and the same in a real browser."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from acted import comes_back, ends, gold_passes, idle_fails, played, repeats, share
from hypothesis import given
from hypothesis import strategies as st

from assay.environments.base import Action, Comparing, Snapshots
from assay.environments.screens.devtools import DevTools, program
from assay.environments.screens.environment import NAMES, Screens, compared
from assay.environments.screens.matching import agreement
from assay.environments.screens.widgets import Screen, Widget, placed
from assay.environments.tools import say
from assay.errors import UsageError
from assay.verify.gestures.gesture import Gesture, inside, read_gesture

BROWSER = pytest.mark.skipif(program() is None, reason="needs Chromium (Debian: chromium-headless-shell)")


def at_random(world: Screens, shown: Any, rng: np.random.Generator) -> Action:
    return say(str(rng.choice(shown.admissible)))


@pytest.mark.parametrize("pointing", [False, True])
def test_the_plan_passes_and_chance_does_not(pointing: bool) -> None:
    def make() -> Screens:
        return Screens(pointing=pointing)

    tasks = make().tasks()
    plans = gold_passes(make, tasks, 60)
    repeats(make, tasks, plans[:8])
    comes_back(make, tasks, plans[:8])
    ends(make, tasks[0], plans[0])
    idle_fails(make, tasks, n=8)
    assert isinstance(make(), Snapshots) and isinstance(make(), Comparing)
    if not pointing:
        assert share(make, tasks, at_random, 40) <= 0.05
        assert [tasks[i].meta["app"] for i in range(4)] == list(NAMES)


def test_ids_points_and_the_tool_come_to_the_same() -> None:
    ids, points, tool = Screens(), Screens(pointing=True), Screens(interface="tool")
    gold_passes(lambda: Screens(interface="tool"), tool.tasks(), 8)
    for index in range(16):
        task = ids.tasks()[index]
        ends_in = []
        for world in (ids, points):
            world.reset(task, 0)
            plan = world.gold()
            if world is points:
                lines = [read_gesture(a.text) for a in plan]
                assert all(isinstance(g, Gesture) and not g.id for g in lines)
            ends_in.append(played(world, task, plan)[-2].observation.state)
        assert ends_in[0] == ends_in[1]


def test_from_anywhere_there_is_a_plan_or_none() -> None:
    """After a random walk the plan of that state, if there is one, passes."""
    found = 0
    for index in range(24):
        world, rng = Screens(gestures=80), np.random.default_rng(index)
        shown = world.reset(world.tasks()[index], 0)
        for _ in range(12):
            choices = [line for line in shown.admissible or () if not line.startswith("terminate")]
            shown = world.step(say(str(rng.choice(choices)))).observation
        plan = world.gold()
        found += bool(plan)
        for action in plan:
            assert world.step(action).valid
        assert not plan or world.verdict().passed
    assert found >= 12


def test_what_is_seen_is_what_is_touched() -> None:
    """Boxes do not overlap, lie on the screen, and the XML has every widget with its box."""
    for index in range(8):
        world = Screens()
        world.reset(world.tasks()[index], 0)
        for action in world.gold():
            seen = world.screen()
            root = ET.fromstring(world.show(world.state))
            assert [(w.get("id"), w.get("box"), w.text or "") for w in root] == [
                (w.id, " ".join(map(str, w.box)), w.text) for w in seen.widgets
            ]
            assert len({w.id for w in seen.widgets}) == len(seen.widgets)
            for w in seen.widgets:
                assert 0 <= w.box[0] < w.box[2] <= 1000 and 0 <= w.box[1] < w.box[3] <= 1000
                assert seen.at(*w.centre) is w
            world.step(action)
    assert "box" not in Screens(boxes=False).reset(world.tasks()[0], 0).messages[-1]["content"].partition("<screen")[2]


def test_a_page_longer_than_the_screen_is_swiped() -> None:
    rows = [(Widget(f"r{i}", "item", str(i)),) for i in range(15)]
    seen, more = placed(rows, 0, None)
    assert [w.id for w in seen] == [f"r{i}" for i in range(11)] and more == (False, True)
    assert placed(rows, 4, None)[1] == (True, False)
    world = Screens(["mail"])
    index = next(i for i in range(50) if len(world.tasks()[i].meta["data"]["mails"]) == 13)
    world.reset(world.tasks()[index], 0)
    first = world.state
    assert world.screen().more == (False, True) and world.screen().find("mail_12") is None
    assert not world.step(say("click mail_12")).valid
    assert world.step(say("swipe up")).valid and world.screen().find("mail_12")
    world.step(say("swipe up"))
    assert world.screen().more == (True, False)
    world.step(say("swipe down"))
    assert world.state == first and world.step(say("swipe down")).valid and world.state == first


@given(st.sampled_from(["a", "to", "mail_3"]), st.text(), st.floats(0, 1), st.floats(0, 1))
def test_gestures_are_read_as_they_are_written(id: str, text: str, x: float, y: float) -> None:
    point = (round(x, 3), round(y, 3))
    made = [
        Gesture("click", id),
        Gesture("click", point=point),
        Gesture("type", id, text=text),
        Gesture("type", text=text),
    ]
    for gesture in (*made, Gesture("swipe", text="up"), Gesture("press", text="back"), Gesture("wait")):
        assert read_gesture(str(gesture)) == gesture


@given(st.text())
def test_anything_is_a_gesture_or_a_reason(line: str) -> None:
    found = read_gesture(line)
    assert isinstance(found, Gesture) or found


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("click", "no gesture"),
        ("click a b", "no gesture"),
        ("click 1.5 0.5", "from 0 to 1"),
        ("type hello", "in quotes"),
        ("swipe sideways", "up or down"),
        ("press enter", "back or home"),
        ("terminate", "success or failure"),
        ("Click mail_0", "no gesture"),
        ("click mail_99", "not in sight"),
        ('type "x"', "no field has the focus"),
        ('type write "x"', "is no field"),
    ],
)
def test_what_cannot_be_done_changes_nothing(line: str, reason: str) -> None:
    world = Screens(["mail"])
    world.reset(world.tasks()[0], 0)
    state = world.state
    step = world.step(say(line))
    assert not step.valid and reason in step.error and world.state == state


def test_fields_focus_and_back() -> None:
    world = Screens(["mail"])
    world.reset(world.tasks()[0], 0)
    for line in ("click write", "click to", 'type "Ada"', 'type text "Hello  There"'):
        assert world.step(say(line)).valid
    seen = world.screen()
    assert (seen.focus, seen.find("to").text, seen.find("text").text) == ("text", "Ada", "Hello  There")  # type: ignore[union-attr]
    assert not world.step(say("click send")).valid and "cannot be used" in world.step(say("click send")).error
    world.step(say("click 0.99 0.99"))
    assert world.screen().focus == "" and world.screen().find("to").text == "Ada"  # type: ignore[union-attr]
    world.step(say("press back"))
    assert world.screen().title == "Inbox"
    world.step(say("click write"))
    assert world.screen().find("to").text == ""  # type: ignore[union-attr]
    world.step(say("click 0.05 0.04"))
    assert world.screen().title == "Inbox"


def test_the_verdict_is_of_the_data_alone() -> None:
    before, goal = {"a": 1, "b": [0], "c": {"x": 1, "y": 2}}, {"a": 2, "b": [0, 7], "c": {"x": 1, "y": 2}}
    assert compared(before, goal, goal).passed
    assert compared(before, before, goal).score == 0
    half = compared(before, {**before, "a": 2}, goal)
    assert half.score == 0.5 and half.passed is False and "1 of 2" in half.feedback
    stray = compared(before, {**goal, "c": {"x": 5, "y": 2}}, goal)
    assert stray.score == 0 and "c.x" in stray.feedback
    assert compared({"b": []}, {"b": []}, {"b": [{"t": 1}]}).score == 0
    world = Screens(["settings"])
    world.reset(world.tasks()[0], 0)
    assert world.step(say("terminate success")).terminated and not world.verdict().passed


CLICK = Gesture("click", "b")


@pytest.mark.parametrize(
    ("gesture", "expert", "kind", "exact"),
    [
        (CLICK, CLICK, True, True),
        (Gesture("click", "c"), CLICK, True, False),
        (Gesture("click", point=(0.15, 0.15)), CLICK, True, True),
        (Gesture("click", point=(0.205, 0.15)), CLICK, True, True),  # the box made larger ends at .21
        (Gesture("click", point=(0.215, 0.15)), CLICK, True, False),
        (
            Gesture("click", point=(0.62, 0.63)),
            Gesture("click", point=(0.6, 0.6)),
            True,
            True,
        ),  # .0361 away, on nothing
        (Gesture("click", point=(0.63, 0.63)), Gesture("click", point=(0.6, 0.6)), True, False),  # .0424 away
        (Gesture("type", text="Hello "), Gesture("type", text="hello there"), True, True),
        (Gesture("type", text="bye"), Gesture("type", text="hello there"), True, False),
        (Gesture("type", text=" "), Gesture("type", text="hello there"), True, False),
        (Gesture("type", "b", text="hello"), Gesture("type", "c", text="hello"), True, False),
        (Gesture("type", "f", text="hello"), Gesture("type", text="hello"), True, True),  # f has the focus
        (Gesture("swipe", text="up"), Gesture("swipe", text="down"), True, False),
        (Gesture("press", text="back"), Gesture("press", text="back"), True, True),
        (Gesture("press", text="back"), Gesture("press", text="home"), True, False),
        (Gesture("terminate", text="failure"), Gesture("terminate", text="success"), True, True),
        (Gesture("wait"), CLICK, False, False),
        (None, CLICK, False, False),
    ],
)
def test_agreement_with_an_expert(gesture: Gesture | None, expert: Gesture, kind: bool, exact: bool) -> None:
    widgets = (Widget("b", "button", box=(100, 100, 200, 200)), Widget("c", "button", box=(300, 100, 400, 200)))
    found = agreement(Screen("a", "t", widgets, focus="f"), gesture, expert)
    assert (found.read, found.kind, found.exact) == (gesture is not None, kind, exact)
    assert inside((0.2, 0.2), (100, 100, 200, 200)) and not inside((0.2001, 0.2), (100, 100, 200, 200))
    assert math.isclose(Widget("b", "button", box=(100, 100, 200, 300)).centre[1], 0.2)


def test_an_expert_agrees_with_itself_by_ids_and_by_points() -> None:
    ids, points = Screens(), Screens(pointing=True)
    task = ids.tasks()[3]
    for world in (ids, points):
        world.reset(task, 0)
    for one, two in zip(ids.gold(), points.gold(), strict=True):
        assert ids.compare(one, two).exact and ids.compare(two, one).exact
        assert not ids.compare(say("wait"), one).kind and not ids.compare(say("jump"), one).read
        ids.step(one)


def test_options_out_of_range() -> None:
    for options in ({"names": []}, {"names": ["mail", "mail"]}, {"gestures": 0}, {"seed": -1}):
        with pytest.raises(UsageError, match="environment 'screens'"):
            Screens(**options)  # type: ignore[arg-type]
    world = Screens(["mail"])
    with pytest.raises(UsageError, match="it has mail"):
        world.reset(Screens(["shop"]).tasks()[0], 0)


def test_a_picture() -> None:
    pytest.importorskip("resvg_py", reason="needs the extra png")
    pil = pytest.importorskip("PIL.Image", reason="needs Pillow")
    import io

    world = Screens(["settings"])
    world.reset(world.tasks()[0], 0)
    world.step(say("click network"))
    picture = np.asarray(pil.open(io.BytesIO(world.picture())).convert("RGB"))
    assert picture.shape == (640, 360, 3)
    # The knob's side of every switch has the colour of its state.
    for widget in world.screen().widgets:
        if widget.on is not None:
            x, y = int(0.36 * widget.box[2]) - 24, int(0.64 * (widget.box[1] + widget.box[3]) / 2)
            assert tuple(picture[y, x]) == ((0x1F, 0x5F, 0xBF) if widget.on else (0xB8, 0xC0, 0xCC)), widget


@BROWSER
def test_in_a_real_browser_everything_is_hit_that_is_hit_here() -> None:
    """Chromium lays the widgets out in their boxes, and real input comes to the same states, verdicts with them."""
    found = Screens(browser=True, pointing=True)
    try:
        for index in (0, 2, 9):
            for pointing in (False, True):
                plain, task = Screens(pointing=pointing), found.tasks()[index]
                assert plain.reset(task, 0) == found.reset(task, 0)
                for action in [say("click 0.99 0.99"), say("swipe up"), say("swipe left"), *plain.gold()]:
                    seen = plain.screen()
                    assert found.browser is not None
                    boxes = found.browser.boxes(seen)
                    assert all(np.allclose(boxes[w.id], w.box, atol=0.5) for w in seen.widgets)
                    assert plain.step(action) == found.step(action)
                assert found.verdict().passed
        assert found.picture().startswith(b"\x89PNG")
        [tools] = [found.browser._tools]  # type: ignore[union-attr]
    finally:
        found.close()
    assert isinstance(tools, DevTools) and tools._process is None


def test_without_chromium_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="chromium-headless-shell"):
        Screens(browser=True)
    with pytest.raises(UsageError, match="chromium-headless-shell"):
        DevTools(10, 10)
