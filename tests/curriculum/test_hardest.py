"""A set of problems that shrinks: what is tried, what stays, and that it goes on where it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from assay.curriculum.hardest import Hardest, lowest
from assay.curriculum.pass_rates import PassRates
from assay.errors import RunError, UsageError
from assay.tasks.listed import Listed
from assay.tasks.split import TrainStream
from assay.types import Ask, Group, Task, Verdict


def stream(n: int) -> TrainStream:
    return TrainStream(Listed([Task(f"t{i}", str(i)) for i in range(n)]))


class World:
    """A curriculum and a history, told that each problem is solved at a rate of its own."""

    def __init__(self, tasks: int, rates: Mapping[str, float], **options: Any):
        self.rates, self.step = dict(rates), 0
        self.history = PassRates()
        self.curriculum = Hardest(stream(tasks), 2, 20, history=self.history, **options)

    def take(self) -> list[Ask]:
        """One step: what was asked."""
        asks = self.curriculum.next(self.step)
        groups = []
        for ask in asks:
            right = round(self.rates[ask.task.id] * ask.n)
            verdicts = tuple([Verdict.right()] * right + [Verdict.wrong()] * (ask.n - right))
            groups.append(Group(ask, (), verdicts))
        self.history.note(self.step, groups)
        self.curriculum.observe(groups)
        self.step += 1
        return asks

    def probes(self) -> list[str]:
        """Ids of what is tried until it is learned from."""
        found = []
        while (asks := self.take())[0].task.meta.get("probe"):
            found += [ask.task.id for ask in asks]
        return found


RATES = {"t0": 0.9, "t1": 0.6, "t2": 0.3, "t3": 0.1, "t4": 0.0, "t5": 0.05}


def test_the_lowest_rates_stay() -> None:
    assert lowest(RATES, 0.5) == ["t3", "t4", "t5"]
    assert lowest({k: RATES[k] for k in ("t3", "t4", "t5")}, 0.5) == ["t4", "t5"]
    assert lowest(RATES, 1.0) == list(RATES)
    assert lowest({"a": None, "b": 0.9, "c": 0.9}, 0.4) == ["b", "c"]
    assert len(lowest({str(i): 0.0 for i in range(10)}, 0.7)) == 7


def test_phases_try_what_is_left_then_learn_from_the_hardest() -> None:
    world = World(6, RATES, pool=6, steps=3, keep=(0.5, 0.5))
    assert sorted(world.probes()) == sorted(RATES)
    # One step of learning was taken by then.
    learned = [{ask.task.id for ask in world.take()} for _ in range(2)]
    assert set().union(*learned) <= {"t3", "t4", "t5"}
    world.rates |= {"t0": 0.0, "t4": 1.0}
    assert sorted(world.probes()) == ["t3", "t4", "t5"]
    last = [ask.task for _ in range(20) for ask in world.take()]
    assert {task.id for task in last} == {"t3", "t5"} and not any(task.meta.get("probe") for task in last)
    assert {task.meta["phase"] for task in last} == {2}


def test_a_rollout_that_leaves_out_what_is_tried_is_told() -> None:
    world = World(6, RATES, pool=6)
    for kept in (2, 0, 1, 0):
        asks = world.curriculum.next(world.step)
        groups = [Group(ask, (), (Verdict.wrong(),)) for ask in asks][:kept]
        if not kept:
            with pytest.raises(RunError, match="of 6 problems that were tried 2 came back; take a rollout"):
                world.curriculum.observe(groups)
            break
        world.curriculum.observe(groups)


def test_it_goes_on_where_it_was() -> None:
    for taken in range(9):
        world, again = (World(6, RATES, pool=6, steps=2, keep=(0.7, 0.5)) for _ in range(2))
        for _ in range(taken):
            world.take()
        again.history.load_state_dict(world.history.state_dict())
        again.curriculum.stream.load_state_dict(world.curriculum.stream.state_dict())  # type: ignore[attr-defined]
        again.curriculum.load_state_dict(world.curriculum.state_dict())
        again.step = world.step
        assert [world.take() for _ in range(8)] == [again.take() for _ in range(8)]


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(UsageError, match="keep holds shares in"):
        World(6, RATES, keep=(1.2,))
    with pytest.raises(UsageError, match="at least 1"):
        World(6, RATES, pool=0)
    with pytest.raises(RunError, match=r"pool = 9, and the tasks have 6 different ones"):
        World(6, RATES, pool=9).take()
    world = World(2, RATES, pool=2)
    asks = world.curriculum.next(0)
    groups = [Group(ask, (), (Verdict.abstain("no"),) * ask.n) for ask in asks]
    world.history.note(0, groups)
    with pytest.raises(RunError, match="no response to any of its problems could be judged"):
        world.curriculum.observe(groups)
