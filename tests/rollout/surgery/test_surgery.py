"""Which judged groups a surgeon changes, by whom what is asked on is judged, and what it says of the cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scripted import Told, judge, operated

from assay.batch import Batch
from assay.config import OverlapConfig
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.method import make_method
from assay.registry import build
from assay.rollout.dynamic import Dynamic
from assay.rollout.single_turn import SingleTurn
from assay.rollout.surgery.base import helpers, own_group, right_share
from assay.rollout.surgery.hints import beginning, ladder, told
from assay.rollout.surgery.paced import Paced
from assay.rollout.surgery.reasked import Reasked
from assay.training.ahead.off_policy import check_overlap
from assay.training.preflight import at_first, before
from assay.types import Ask, Group, Task, Turn
from assay.verify.kind import KindVerifier

TASK = Task("t", "Q", "1", solution="abcdefghij")
REASKED = {"name": "reasked", "template": "{question}|{hint}"}


@pytest.mark.parametrize(
    ("texts", "when", "changed"),
    [
        ("0000", "none", True),
        ("0001", "none", False),
        ("0??0", "none", True),
        ("????", "always", False),
        ("0001", "share", True),
        ("0011", "share", False),
        ("01??", "share", False),
        ("1111", "always", True),
    ],
)
def test_which_groups_are_changed(texts: str, when: str, changed: bool) -> None:
    """Abstentions count neither way: of 0 and ? alone all fail, of 0, 1, ? and ? half are right."""
    engine = Told(lambda prompt, i: texts[i] if "|" not in prompt else "1")
    group, made = operated({**REASKED, "when": when, "share": 0.5}, engine, TASK)
    assert (len(engine.asked) > 1) == changed and ("".join(e.text for e in group.episodes) == texts) == (
        not changed or texts == "1111"
    )
    assert made.metrics()["surgery/cases"] == changed


def test_what_it_costs() -> None:
    engine = Told(lambda prompt, i: "00" if "|" not in prompt else "x01" if len(prompt) > 5 and i < 1 else "x00")
    _, made = operated(REASKED, engine, TASK)
    found = made.metrics()
    assert found["surgery/sampled"] == 8 and found["surgery/tokens"] == 24 and found["surgery/mended"] == 1
    assert found["surgery/level"] == 2 and found["surgery/pass_rate_before"] == 0
    _, made = operated(REASKED, Told(lambda prompt, i: "01"[i % 2]), TASK)
    found = made.metrics()
    assert found["surgery/sampled"] == 0 and found["surgery/pass_rate_before"] == 0.5 and "surgery/level" not in found


def test_before_its_step_nothing_is_changed() -> None:
    for step, asked in ((2, 1), (3, 4)):
        engine = Told(lambda prompt, i: "0")
        operated({**REASKED, "after": 3}, engine, TASK, step=step)
        assert len(engine.asked) == asked


def test_a_hint_of_a_recipe_stays_in_the_prompt() -> None:
    engine = Told(lambda prompt, i: "0")
    made = Reasked(Sampling(40), judge, shares=(0.5,), template="{question}|{hint}")
    made.collect([Ask(TASK, 2, "be brief")], engine, np.random.default_rng(0))
    assert engine.prompts == ["be brief\nQ", "be brief\nQ|abcde"]


def test_an_instruction_stays_before_the_prompt() -> None:
    """Asked anew, trained without the hint, shown a beginning: each time under the instruction of the ask."""
    ask = Ask(TASK, 2, instruction="think")
    engine = Told(lambda prompt, i: "0")
    for train, learned in (("hinted", "think\nQ|abcde"), ("plain", "think\nQ")):
        options = {**REASKED, "shares": (0.5,), "train": train}
        made = build("rollout", options, sampling=Sampling(40), judge=judge)
        [group] = made.collect([ask], engine, np.random.default_rng(0))
        assert engine.prompts[-2:] == ["think\nQ", "think\nQ|abcde"]
        assert "".join(map(chr, group.episodes[0].prompt)) == learned
    Paced(Sampling(40), judge, rounds=1).collect([ask], engine, np.random.default_rng(0))
    assert engine.prompts[-1] == "think\nQ"


def test_responses_of_several_turns_are_refused() -> None:
    class Turns:
        def collect(self, asks: Any, engine: Any, rng: Any) -> list[Group]:
            groups = SingleTurn(Sampling(4)).collect(asks, engine, rng)
            return [replace(g, episodes=tuple(replace(e, turns=(Turn(0, 0, 1),)) for e in g.episodes)) for g in groups]

    with pytest.raises(UsageError, match="Reasked changes responses of one turn, and those of Turns inside it"):
        operated({**REASKED, "inner": Turns()}, Told(lambda prompt, i: "0"), TASK)


def test_it_says_that_it_could_do_nothing() -> None:
    """In the first step: a task without hints, a verdict without words; and before it, a beginning after the end."""
    cases = [
        ({**REASKED, "source": "task"}, "0", True),
        (REASKED, "0", False),
        (REASKED, "1", False),
        ({"name": "retried"}, "0", True),
        ({"name": "comprehended"}, "0", True),
    ]
    for rollout, says, told_of in cases:
        _, made = operated(rollout, Told(lambda prompt, i, says=says: says), TASK)
        lines = at_first(make_method("grpo"), Batch.from_groups([]), made)
        assert [("was to change 1 groups" in line, type(made).__name__ in line) for line in lines] == (
            [(True, True)] if told_of else []
        )
    late = Reasked(Sampling(4), judge, after=5)
    for steps, lines in ((5, 1), (6, 0), (None, 0)):
        assert len(before(make_method("grpo"), [TASK], KindVerifier(), late, steps)) == lines
    [line] = before(make_method("grpo"), [TASK], KindVerifier(), late, 3)
    assert line == "rollout Reasked changes nothing before step 5, and there are 3; set after"


def test_hints() -> None:
    assert [beginning("abcdefghij", s) for s in (0.25, 0.5, 0.75, 1)] == ["ab", "abcde", "abcdefgh", "abcdefghij"]
    tiers = {"knowledge": ["a", "b"], "solution": ["c", 4]}
    task = Task("t", "Q", hints=("x", "y"), solution="ab")
    assert told(task) == ["x", "y"] and ladder(task, "solution", (0.1, 0.5)) == ["a"]
    assert told(Task("t", "Q", hints=("x",), meta={"tiers": tiers})) == [
        "knowledge hints:\na",
        "knowledge hints:\na\nb",
        "solution hints:\nc",
        "solution hints:\nc\n4",
    ]
    assert ladder(Task("t", "Q"), "task", (0.5,)) == ladder(Task("t", "Q"), "solution", (0.5,)) == []


def test_own_groups_have_keys_that_no_other_has() -> None:
    group, _ = operated("single_turn", Told(lambda prompt, i: "0"), TASK, 2)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    keys = {e.advantage_group for _ in range(3) for e in own_group(group, group.episodes, "hinted", rng)}
    assert len(keys) == 3 and all(str(key).startswith("t/hinted/") for key in keys)
    assert right_share([]) == 0 and right_share([Group(Ask(TASK, 1), ())]) == 0


def test_it_says_so_before_a_run_that_it_could_not_help() -> None:
    bare, hinted = Task("a", "Q", "1"), Task("b", "Q", "1", hints=("h",))
    rollout = Dynamic(Sampling(4), judge, lambda: [], inner={**REASKED, "source": "task"})
    assert [type(s) for s in helpers(rollout)] == [Reasked]
    with pytest.raises(UsageError, match="asks again with hints, and task a has no hints; give its tasks some"):
        before(make_method("grpo"), [bare], KindVerifier(), rollout)
    before(make_method("grpo"), [bare, hinted], KindVerifier(), rollout)
    before(make_method("grpo"), [], KindVerifier(), rollout)
    with pytest.raises(UsageError, match="no worked solution"):
        before(make_method("grpo"), [hinted], KindVerifier(), Reasked(Sampling(4), judge))


def test_it_does_not_ask_ahead_of_verdicts() -> None:
    with pytest.raises(UsageError, match="rollout Reasked asks on by its verdicts; use staleness 0"):
        check_overlap(OverlapConfig(staleness=1), make_method("grpo"), Reasked(Sampling(4), judge))


def test_options() -> None:
    for bad in ({"share": 1.5}, {"after": -1}, {"shares": ()}, {"shares": (0.0,)}, {"most": 0}, {"cold": -1}):
        with pytest.raises(UsageError, match=r"must be|at least"):
            Reasked(Sampling(4), judge, **bad)
    with pytest.raises(UsageError, match="hint"):
        Reasked(Sampling(4), judge, template="{question}")


def test_a_hint_may_open_the_response() -> None:
    """Judged is the hint with what follows; learned from is what follows, under the prompt with the hint."""
    engine = Told(lambda prompt, i: "" if prompt.endswith("1") else "0")
    task = Task("t", "Q", "1", solution="aab1")
    for rollout in (
        {"name": "reasked", "shares": (0.5, 1.0), "opens": True},
        {"name": "weakest_hint", "source": "solution", "shares": (0.5, 1.0), "opens": True},
    ):
        engine.asked.clear()
        group, made = operated(rollout, engine, task, 2)
        assert engine.prompts == ["Q", "Qaa", "Qaab1"] and made.metrics()["surgery/level"] == 2
        assert group.verdicts[0].passed and group.episodes[0].text == ""
        assert "".join(map(chr, group.episodes[0].prompt)) == "Qaab1"
    with pytest.raises(UsageError, match="not whole without what opens it; train hinted"):
        Reasked(Sampling(4), judge, opens=True, train="plain")
    with pytest.raises(UsageError, match="not whole without what opens it; take mode full"):
        operated({"name": "weakest_hint", "opens": True, "mode": "strip"}, engine, task)
