"""Data that is filtered as a whole: what stays, what is carried over, what goes on after a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from assay.batch import Batch
from assay.curriculum.sifted import Sifted
from assay.errors import RunError, UsageError
from assay.tasks.listed import Listed
from assay.tasks.split import HeldOut, TrainStream
from assay.types import Task

TASKS = [Task(f"t{i}", str(i)) for i in range(10)]


@dataclass
class AtLeast:
    """Keeps prompts whose number is at least so much, or not known; a quarter of those that are left at most goes."""

    least: float

    def __call__(self, batch: Batch) -> Any:
        raise AssertionError("it is asked for numbers alone")

    def of_prompts(self, batch: Batch) -> list[float]:
        return [float(sum(e.tokens)) for e in batch.episodes]

    def kept(self, values: Sequence[float]) -> list[bool]:
        return [math.isnan(v) or v >= self.least for v in values]


class Half:
    """Drops the lower half of those that are left."""

    def of_prompts(self, batch: Batch) -> list[float]:
        return []

    def kept(self, values: Sequence[float]) -> list[bool]:
        return [v > sorted(values)[len(values) // 2 - 1] for v in values]


def sifted(**options: Any) -> Sifted:
    given = {"filters": [AtLeast(4), Half()], "carry": 0.0, **options}
    return Sifted(TrainStream(Listed(TASKS)), 2, 3, **given)


def rows(first: Sequence[float | None], second: Sequence[float] = range(10)) -> list[dict[str, Any]]:
    return [
        {"task": f"t{i}", "values": list(pair)}
        for i, pair in enumerate(zip(first, list(second)[: len(first)], strict=True))
    ]


def lap(part: Sifted, n: int) -> list[str]:
    return [ask.task.id for step in range(n) for ask in part.next(step)]


def test_filters_follow_each_other_over_all_of_the_data() -> None:
    """Of ten numbers 0 ... 9 six are at least 4, and of these three are above the lower half of the six."""
    part = sifted(tries=5)
    asks = part.survey(0)
    assert [(a.task.id, a.n) for a in asks] == [(t.id, 5) for t in TASKS]
    assert part.settle(0, rows(range(10))) == "curriculum 'sifted': 3 of 10 tasks are asked from step 1 on"
    assert part.survey(1) == [] == part.survey(10**6)
    first = lap(part, 3)
    assert sorted(first[:3]) == sorted(first[3:]) == ["t7", "t8", "t9"]
    assert {a.n for a in part.next(3)} == {3}
    # A number that is not known is for the filter to judge; what did not come back is not asked.
    other = sifted(filters=[AtLeast(9)])
    other.survey(0)
    other.settle(0, rows([None, 3, 9]))
    assert set(lap(other, 2)) == {"t0", "t2"}


def test_it_is_done_again_after_so_many_steps() -> None:
    part = sifted(every=4, filters=[AtLeast(5)])
    assert len(part.survey(7)) == 10
    part.settle(7, rows(range(10)))
    assert [bool(part.survey(step)) for step in (7, 10, 11, 12)] == [False, False, True, True]
    said = part.settle(11, rows(range(9, -1, -1)))
    assert said == "curriculum 'sifted': 5 of 10 tasks are asked from step 12 on, 0 of them carried over"
    assert set(lap(part, 5)) == {"t0", "t1", "t2", "t3", "t4"}


def test_a_share_is_carried_over() -> None:
    """Two fifths of five are two, of those that no filter would keep now."""
    part = sifted(every=1, carry=0.4, filters=[AtLeast(5)])
    part.survey(0)
    part.settle(0, rows(range(10)))
    part.survey(1)
    assert part.settle(1, rows(range(9, -1, -1))).endswith("2 of them carried over")
    stayed = set(lap(part, 7)) - {"t0", "t1", "t2", "t3", "t4"}
    assert len(stayed) == 2 and stayed < {"t5", "t6", "t7", "t8", "t9"}
    # Those who would stay anyway are counted once; all of them, and nothing new.
    whole = sifted(every=1, carry=1.0, filters=[AtLeast(5)])
    whole.survey(0)
    whole.settle(0, rows(range(10)))
    assert whole.settle(1, rows([0.0] * 10)).startswith("curriculum 'sifted': 5 of 10")
    assert set(lap(whole, 5)) == {"t5", "t6", "t7", "t8", "t9"}


def test_numbers_are_those_of_the_groups_that_came_back(make_batch) -> None:
    part = sifted(filters=[AtLeast(0)])
    batch = make_batch([1, 1])
    groups = [type("G", (), {"task": t})() for t in TASKS[:3]]
    batch.prompt_group[1] = 2  # the second group has no response
    batch.tokens[:] = 0
    found = part.look(groups, batch)
    assert [row["task"] for row in found] == ["t0", "t2"] and all(len(row["values"]) == 1 for row in found)


def test_it_goes_on_after_a_checkpoint() -> None:
    part, other = sifted(), sifted()
    part.survey(0)
    part.settle(0, rows(range(10)))
    part.next(0)
    other.load_state_dict(part.state_dict())
    assert other.survey(1) == [] and lap(part, 4) == lap(other, 4)


def test_held_out_tasks_are_no_data_and_an_endless_source_needs_a_pool() -> None:
    held_out = HeldOut(0.5, 0)
    part = Sifted(TrainStream(Listed(TASKS), held_out), 2, 3, filters=[AtLeast(0)])
    assert [a.task for a in part.survey(0)] == [t for t in TASKS if not held_out(t)] != TASKS
    few = sifted(pool=4)
    assert len(few.survey(0)) == 4 == len({a.task.id for a in few.survey(0)})
    few.settle(0, [{"task": a.task.id, "values": [9, i]} for i, a in enumerate(few.survey(0))])
    again = sifted(pool=4)
    again.load_state_dict(few.state_dict())
    assert lap(again, 2) == lap(few, 2)

    class Endless(Listed):
        size = None  # type: ignore[assignment]

    endless = Sifted(TrainStream(Endless(TASKS)), 2, 3, filters=[AtLeast(0)])
    with pytest.raises(UsageError, match="endless; set pool"):
        endless.check([])
    with pytest.raises(UsageError, match="endless"):
        TrainStream(Endless(TASKS)).all()
    Sifted(TrainStream(Endless(TASKS)), 2, 3, filters=[AtLeast(0)], pool=3).check([])


def test_tasks_that_are_gone_are_not_asked() -> None:
    part = sifted()
    part.survey(0)
    part.settle(0, rows(range(10)))
    fewer = Sifted(TrainStream(Listed(TASKS[:9])), 2, 3, filters=[AtLeast(4)])
    fewer.load_state_dict(part.state_dict())
    assert set(lap(fewer, 3)) == {"t7", "t8"}


def test_what_cannot_be() -> None:
    part = sifted()
    with pytest.raises(RunError, match="before it has tried its data"):
        part.next(0)
    part.survey(0)
    with pytest.raises(RunError, match="of 10 tasks that were tried none came back"):
        part.settle(0, [])
    strict = sifted(filters=[AtLeast(100)])
    strict.survey(0)
    with pytest.raises(RunError, match="leave none of 10 tasks"):
        strict.settle(0, rows(range(10)))
    for bad in ({"tries": 0}, {"every": -1}, {"carry": 1.1}, {"carry": -0.1}, {"pool": 0}):
        with pytest.raises(UsageError, match="sifted"):
            sifted(**bad)
    sifted(tries=1, every=0, carry=1.0, pool=1)
    with pytest.raises(UsageError, match="All has no number for a prompt to filter by; these have: key_spread, refer"):
        sifted(filters=["all"])
    assert sifted(filters=["key_spread"]).needs == {sifted(filters=["key_spread"]).filters[0].likelihood}
    defaults = Sifted(TrainStream(Listed(TASKS)), 2, 3)
    assert (defaults.tries, defaults.every, defaults.carry, defaults.pool) == (16, 0, 0.1, None)
