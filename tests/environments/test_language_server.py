"""A package with a language server: its tools, and renames that are safe or refused."""

from __future__ import annotations

from typing import Any

import pytest
from acted import gold_passes
from sandbox.support import needs_sandbox

from assay.audit.environment import audit_environment
from assay.environments.base import EnvironmentFailure
from assay.environments.hosted.worlds import Worlds
from assay.environments.repository.served import LanguageServed, called_now
from assay.environments.tools import call
from assay.errors import RunError
from assay.verify.diagnostics import server
from assay.verify.diagnostics.bundle import replayed

pytest.importorskip("pylsp")
pytest.importorskip("pyflakes")
pytestmark = needs_sandbox


def begun(**options: Any) -> LanguageServed:
    world = LanguageServed(**options)
    world.reset(world.tasks()[0], 0)
    return world


def said(step: Any) -> str:
    return str(step.observation.messages[0]["content"])


@pytest.mark.slow
def test_the_agent_asks_and_renames() -> None:
    world = begun(typos=0)
    name = "py://toolbox.grids#transposed:name"
    step = world.step(call("definition", selector=name))
    assert step.info["safe"] == 1.0 == step.info["sure"] and said(step).startswith("toolbox/grids.py@L")
    uses = said(world.step(call("references", selector=name))).splitlines()
    assert said(step) in uses and any(line.startswith("tests/") for line in uses)
    before = world.space.digests()
    for selector, new, why in (
        (name, "brand_new", "holds tests"),
        (name, "not a name", "is no name"),
        ("nonsense", "x", "names no place"),
    ):
        step = world.step(call("rename", selector=selector, name=new))
        assert not step.valid and why in said(step) and step.info["safe"] == 0.0 and world.space.digests() == before
    step = world.step(call("rename", selector="toolbox/words.py@L8:C5", name="rows"))
    assert said(step) == "changed toolbox/words.py" and step.reward == pytest.approx(0.4)
    assert world._text("toolbox/words.py").count("rows") == 4 and world.errors == 0
    assert replayed(world.trace, world.weights)[-1] == step.reward and len(world.trace) == 6


def test_what_is_renamed_has_gone_only_if_it_is_not_there_by_its_new_name() -> None:
    world = begun(typos=0, calls=9)
    world.step(call("write", path="extra.py", content="class Old:\n    def go(self):\n        return Old\n"))
    world.first = world._sources()
    for new in ("Fresh", "Final"):
        selector = f"py://extra#{'Old' if new == 'Fresh' else 'Fresh'}:name"
        step = world.step(call("rename", selector=selector, name=new))
        assert said(step) == "changed extra.py" and step.reward == pytest.approx(0.4) and world.errors == 0
    assert world._text("extra.py") == "class Final:\n    def go(self):\n        return Final\n"
    kept = world.snapshot()
    step = world.step(call("write", path="extra.py", content="class Final:\n    pass\n"))
    assert world.errors == 1 and step.reward == pytest.approx(-0.1)
    step = world.step(call("write", path="extra.py", content="print(1)\n"))
    assert world.errors == 2 and step.reward == pytest.approx(-0.1)
    world.restore(kept)
    assert world.errors == 0 and world.moved["extra.py"]["Old.go"] == "Final.go"


def test_what_definitions_are_called_after_a_rename() -> None:
    before = "def a():\n    def b(): pass\ndef c(): pass\n"
    assert called_now(before, before.replace("a()", "z()"), "z") == {"a": "z", "a.b": "z.b"}
    assert (
        called_now(before, before.replace("b()", "z()"), "z") == {"a.b": "a.z"}
        and called_now(before, before, "z") == {}
    )


def test_a_server_that_fails_fails_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise RunError("the language server failed")

    world = begun(typos=0)
    monkeypatch.setattr(server, "served", fails)
    with pytest.raises(EnvironmentFailure, match="the language server failed"):
        world.step(call("references", selector=f"{world.package.path}@L1:C1"))


@pytest.mark.slow
def test_its_audit_passes() -> None:
    gold_passes(LanguageServed, LanguageServed().tasks(), 2)
    worlds = Worlds({"name": "language_server", "calls": 6}, 1)
    try:
        findings = list(audit_environment(worlds, [LanguageServed(calls=6).tasks()[0]]))
    finally:
        worlds.close()
    assert [f for f in findings if not f.passed] == []
