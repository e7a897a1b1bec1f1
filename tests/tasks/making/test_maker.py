"""Pipelines: what is asked, in which order tasks come out, and that nothing is asked twice."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tasks.making.told import Told

from assay.errors import RunError, UsageError
from assay.tasks.making import maker
from assay.tasks.making.journal import Journal
from assay.tasks.making.maker import Maker, Model
from assay.tasks.making.overlap import Distinct
from assay.tasks.making.work import Dropped, Here, Pipeline, Reply, Want, child, noted
from assay.types import Task

TASKS = [Task(f"t{i}", f"question {i}", str(i)) for i in range(20)]


def double(task: Task, here: Any) -> Any:
    """Two children, worded as the model likes, after two rounds of questions."""
    [[first]] = yield [Want(f"first of {task.question}")]
    [[second], third] = yield [Want(f"then {first.text}", by="judge"), Want(f"and {first.text}", 2)]
    texts = [second.text, *(reply.text for reply in third)]
    return [child(task, "double", j, prompt=f"{text} {int(here.rng.integers(10))}") for j, text in enumerate(texts[:2])]


def odd(task: Task, here: Any) -> Any:
    return Dropped("even") if int(task.reference) % 2 == 0 else noted(task, odd=True)


def asked_again(task: Task, here: Any) -> Any:
    [[reply]] = yield [Want(f"again {task.question}", by="judge")]
    return noted(task, said=reply.text)


PIPELINE = Pipeline("three", (("odd", odd), ("double", double), ("distinct", Distinct()), ("again", asked_again)))


def engine() -> Told:
    return Told(lambda prompt, j: f"<{prompt}>{j}")


def made(
    tasks: Any = TASKS, told: Told | None = None, journal: Journal | None = None, seed: int = 0, **model: Any
) -> Any:
    one = Model("told", engine() if told is None else told, **model)
    return Maker(PIPELINE, {"writer": one}, journal, seed).make(tasks)


def plain(tasks: Any) -> list[Any]:
    return [(t.id, t.prompt, t.reference, dict(t.meta)) for t in tasks]


def test_tasks_come_out_in_order_with_their_parents_and_counts() -> None:
    told = engine()
    found = made(told=told)
    assert [t.id for t in found.tasks[:3]] == ["t1/double-0", "t1/double-1", "t3/double-0"]
    assert found.tasks[0].meta["parents"] == ("t1",) and found.tasks[0].meta["made"] == ("double",)
    assert found.tasks[0].meta["odd"] is True and found.tasks[0].reference == "1"
    assert found.tasks[0].prompt[:-2] == "<then <first of question 1>0>0"
    counts = found.counts
    assert (counts["odd"].into, counts["odd"].out, dict(counts["odd"].dropped)) == (20, 10, {"even": 10})
    assert (counts["double"].into, counts["double"].out, counts["double"].asked) == (10, 20, 30)
    assert counts["double"].tokens == sum(
        len(f"<{r.prompt}>0") * r.n for r in told.asked if not str(r.prompt).startswith("again")
    )
    assert found.asked == len(told.asked) == 50 and found.remembered == 0
    assert len({r.seed for r in told.asked}) == 50, "each request has a seed of its own"


@pytest.mark.parametrize("model", [{"calls": 1, "batch": 3}, {"calls": 4, "batch": 1}, {"calls": 3, "batch": 7}])
def test_what_is_made_does_not_depend_on_how_models_are_called(model: dict[str, Any]) -> None:
    told, other = engine(), engine()
    first, second = made(told=told), made(told=other, **model)
    assert plain(first.tasks) == plain(second.tasks)
    assert sorted(r.seed for r in told.asked) == sorted(r.seed for r in other.asked)
    assert max(other.calls) <= model["batch"]
    assert plain(made(seed=1).tasks) != plain(first.tasks), "a seed draws others"
    few = made(TASKS[:4]).tasks
    assert plain(few) == plain(first.tasks)[: len(few)], "what else is made makes no difference"


def test_models_have_roles() -> None:
    writer, judge = engine(), Told(lambda prompt, j: "fine")
    models = {"writer": Model("w", writer), "judge": Model("j", judge)}
    found = Maker(PIPELINE, models).make(TASKS)
    assert {str(r.prompt).split()[0] for r in judge.asked} == {"then", "again"}
    assert {str(r.prompt).split()[0] for r in writer.asked} == {"first", "and"}
    assert all(t.meta["said"] == "fine" for t in found.tasks)
    with pytest.raises(UsageError, match="asks a writer, and no model is named"):
        Maker(PIPELINE, {}).make(TASKS)
    with pytest.raises(UsageError, match="names that differ"):
        Maker(PIPELINE, {"writer": Model("w", writer), "judge": Model("w", judge)})


def test_a_journal_answers_what_was_asked(tmp_path: Path) -> None:
    path, told = tmp_path / "asked.jsonl", engine()
    with Journal(path) as journal:
        first = made(told=told, journal=journal)
        with pytest.raises(UsageError, match="another process"):
            Journal(path)
    again = engine()
    with Journal(path) as journal:
        second = made(told=again, journal=journal)
        more = made([*TASKS, Task("more", "another", "3")], again, journal)
    assert plain(second.tasks) == plain(first.tasks) and second.asked == 0 and second.remembered == 50
    assert second.counts == first.counts, "a card says the same"
    assert more.asked == len(again.asked) == 5
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:10]) + lines[10][:-9])
    with Journal(path) as journal:
        assert len(journal) == 10 and path.read_bytes() == b"".join(lines[:10]), "a line that was cut off is dropped"
        assert made(journal=journal).asked == 40
    path.write_bytes(b"".join(lines[:3]) + b"what is this\n")
    with pytest.raises(UsageError, match="line 4 is no reply"):
        Journal(path)


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "asked.jsonl", os.write
    left = 300

    def full(fd: int, data: bytes) -> int:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        data, left = data[:left], left - len(data[:left])
        return write(fd, data)

    with Journal(path) as journal:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(RunError, match="No space left on device; make room and repeat the command"):
            made(journal=journal)
        monkeypatch.setattr(os, "write", write)
        kept = len(journal)
        assert kept and path.read_bytes().count(b"\n") == kept and path.read_bytes().endswith(b"\n")
        journal.put("later", "m", [Reply("x", 1, "eos")])
        assert journal.get("later") == [Reply("x", 1, "eos")]
    with Journal(path) as journal:
        assert len(journal) == kept + 1 and made(journal=journal).remembered == kept


def test_a_call_that_breaks_loses_none_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight calls end together, and one of them raises."""
    monkeypatch.setattr(maker, "wait", lambda calls, return_when: wait(calls))

    def answer(prompt: str, number: int) -> str:
        if prompt == "again question 3":
            raise ZeroDivisionError("an engine's own error")
        return "fine"

    step = Pipeline("again", [("again", asked_again)])
    with Journal(tmp_path / "asked.jsonl") as journal:
        with pytest.raises(ZeroDivisionError):
            Maker(step, {"writer": Model("w", Told(answer), calls=8, batch=1)}, journal).make(TASKS[:8])
        assert len(journal) == 7


def test_a_step_that_says_nothing_is_named() -> None:
    def nothing(task: Task, here: Here) -> Any:
        return None

    def asks(task: Task, here: Here) -> Any:
        yield [Want("say something")]

    for step in (nothing, asks, lambda task, here: "words"):
        with pytest.raises(UsageError, match=r"step odd returns a (NoneType|str) for task t0; it has to return a task"):
            Maker(Pipeline("odd", [("odd", step)]), {"writer": Model("w", engine())}).make(TASKS[:1])


def test_a_request_that_fails_keeps_the_rest_and_is_asked_again(tmp_path: Path) -> None:
    path, away = tmp_path / "asked.jsonl", {"question 5", "question 7"}
    told = Told(lambda prompt, j: None if prompt.removeprefix("first of ") in away else f"<{prompt}>{j}")
    with Journal(path) as journal, pytest.raises(RunError, match=r"2 requests failed, .* the server is away"):
        made(told=told, journal=journal)
    away.clear()
    asked = len(told.asked)
    with Journal(path) as journal:
        found = made(told=told, journal=journal)
    assert plain(found.tasks) == plain(made().tasks)
    assert len(told.asked) - asked == 26, "two jobs of three requests each, and twenty that came after all of them"
    away.add("question 5")
    left = Maker(PIPELINE, {"writer": Model("told", told)}, leave_out=True).make(TASKS)
    assert left.counts["double"].dropped == {"could not be asked": 1} and len(left.tasks) == 18


def test_a_model_that_is_away_is_not_asked_forever() -> None:
    told = Told(lambda prompt, j: None)
    for leave_out in (False, True):
        told.calls.clear()
        with pytest.raises(RunError, match="requests failed"):
            Maker(PIPELINE, {"writer": Model("told", told, batch=1)}, leave_out=leave_out).make(TASKS)
        assert len(told.calls) == 3


def test_a_prompt_that_is_too_long_is_left_out() -> None:
    told = engine()
    told.window = 22
    found = made(told=told)
    reason = "a prompt is longer than the model's window"
    assert found.counts["double"].dropped == {reason: 10} and not found.tasks and found.asked == 10


def test_tasks_that_cannot_be_begun_with() -> None:
    with pytest.raises(UsageError, match="have the id 'a'"):
        made([Task("a", "x"), Task("a", "y")])
    with pytest.raises(UsageError, match="no tasks"):
        made([])
    with pytest.raises(UsageError, match="name of its own"):
        Pipeline("p", (("odd", odd), ("odd", odd)))


class Mortal(Told):
    """Writes down what it is asked, and at the request of a number the process is killed, as the system would."""

    def __init__(self, log: Path, life: int):
        super().__init__(lambda prompt, j: f"<{prompt}>{j}")
        self.log, self.life = log, life

    def generate(self, requests: Any) -> Any:
        with self.log.open("a") as log:
            for request in requests:
                log.write(json.dumps(request.seed) + "\n")
        self.life -= len(requests)
        if self.life <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().generate(requests)


def _live(log: Path, path: Path, life: int, calls: int, batch: int, out: Path) -> None:
    with Journal(path) as journal:
        found = made(told=Mortal(log, life), journal=journal, calls=calls, batch=batch)
    out.write_text(json.dumps(plain(found.tasks)))


@pytest.mark.parametrize(("calls", "batch"), [pytest.param(1, 4, marks=pytest.mark.slow), (3, 1)])
def test_killed_at_random_it_asks_nothing_twice(tmp_path: Path, calls: int, batch: int) -> None:
    """What was answered is never asked again; what is asked again was under way when the process was killed."""
    log, path, out = tmp_path / "log", tmp_path / "asked.jsonl", tmp_path / "out"
    rng, fork = np.random.default_rng(calls), multiprocessing.get_context("fork")
    seen: list[int] = []
    kills = 0
    while not out.exists():
        before = path.read_bytes().count(b"\n") if path.exists() else 0
        process = fork.Process(target=_live, args=(log, path, int(rng.integers(2, 14)), calls, batch, out))
        process.start()
        process.join()
        asked = [json.loads(line) for line in log.read_text().splitlines()][len(seen) :]
        kept = path.read_bytes().count(b"\n") - before
        assert len(asked) == len(set(asked)) and 0 <= len(asked) - kept <= calls * batch
        seen += asked
        kills += process.exitcode == -signal.SIGKILL
    assert kills >= 4
    assert json.loads(out.read_text()) == json.loads(json.dumps(plain(made().tasks)))
    assert len(set(seen)) == 50 and len(seen) - 50 <= kills * calls * batch
    assert path.read_bytes().count(b"\n") == 50, "each was answered once"
