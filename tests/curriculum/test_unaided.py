"""Curricula learn what the policy did by itself, whatever a rollout made of its groups since."""

from __future__ import annotations

from dataclasses import replace

from scripted import Told, operated

from assay.curriculum.base import unaided
from assay.curriculum.pass_rates import PassRates
from assay.types import Ask, Group, Task, Verdict

TASK = Task("t", "Q", "1", solution="abcdefghij")
REASKED = {"name": "reasked", "template": "{question}|{hint}"}


def test_a_task_solved_with_a_hint_alone_counts_as_unsolved() -> None:
    engine = Told(lambda prompt, i: "1" if "|" in prompt else "0")
    group, made = operated(REASKED, engine, TASK)
    assert any(v.passed for v in group.verdicts) and made.metrics()["surgery/mended"] == 1
    [plain] = unaided([group])
    assert [e.text for e in plain.episodes] == ["0"] * group.ask.n
    history = PassRates()
    history.note(0, unaided([group]))
    assert history.looks("t") == ((0, 0, group.ask.n),)


def test_what_was_left_as_it_was_is_told_as_it_is_and_what_was_derived_is_not() -> None:
    group, _ = operated(REASKED, Told(lambda prompt, i: "01"[i % 2]), TASK)
    derived = Group(Ask(replace(TASK, id="t/1", parent="t"), 1), (), (Verdict.right(),))
    assert unaided([group, derived]) == [group]
