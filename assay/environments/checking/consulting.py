r"""Judging an answer without a reference, with whatever tools help: a calculator, a calendar, look-ups."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from assay.engines.asking import filled
from assay.environments.base import Action
from assay.environments.checking.environment import Checking
from assay.environments.checking.reckoning import between, calculate, shifted, weekday
from assay.environments.search.corpus import read_corpus
from assay.environments.tools import ToolError, call, say, tool
from assay.errors import UsageError, nearest
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task, Tool

T = TypeVar("T")
TEMPLATE = """Question: {question}
Answer: {answer}

How good is the answer? Use a tool if there is something to compute or to look up; then say what you make of it."""
RECORDED = ("translate", "weather")
SEARCHED = ("search", "wiki")
TOP = 3
"""Documents that a search shows; a look-up in the encyclopaedia shows one."""

Drawn = tuple[str, str, str, dict[str, Any], str]
"""Question, right answer, wrong answer, and the call that tells them apart, by name and arguments."""


def judging(question: str, answer: str, name: str, **meta: Any) -> Task:
    """Return the task of judging an answer."""
    return Task(name, filled(TEMPLATE, question=question, answer=answer), meta=meta)


def _sums(rng: np.random.Generator) -> Drawn:
    a, b, off = (int(x) for x in rng.integers(12, 99, size=3))
    return f"What is {a} times {b}?", str(a * b), str(a * b + off), {"expression": f"{a}*{b}"}, "calculator"


def _days(rng: np.random.Generator) -> Drawn:
    date = shifted("2000-01-01", int(rng.integers(9000)))
    right, wrong = weekday(date), weekday(shifted(date, int(rng.integers(1, 7))))
    return f"Which day of the week is {date}?", right, wrong, {"date": date}, "weekday"


KINDS: dict[str, Callable[[np.random.Generator], Drawn]] = {"sums": _sums, "days": _days}


@dataclass(frozen=True, slots=True)
class Answers:
    """Endless answers to be judged, each second one wrong; they have the call that shows it, and what is to be said."""

    seed: int
    kinds: Sequence[str]

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None) // 2)
        kind = self.kinds[int(rng.integers(len(self.kinds)))]
        question, right, wrong, arguments, name = KINDS[kind](rng)
        label = index % 2 == 0
        word = "Correct" if label else "Incorrect"
        meta = {"label": label, "plan": [{"name": name, "arguments": arguments}], "kind": kind}
        rationale = rf"It is {right}. \boxed{{{word}}}"
        answer = right if label else wrong
        return judging(question, answer, f"consulting/{self.seed}/{index}", rationale=rationale, **meta)


@part("environment", "consulting")
class Consulting(Checking):
    r"""A judge looks at a question and an answer, may call tools, and ends with what it makes of the answer.

    Tools, whose errors are texts: ``calculator``; ``weekday``, ``date_after`` and ``days_between``;
    ``python_interpreter`` and ``unit_conversion``; with ``corpus``, ``search`` and ``wiki``, by BM25; with ``records``,
    ``translate`` and ``weather``, which know what is on record. A call of a task's plan that has an ``output`` returns
    this. What is to be said is anything; where a task has a
    label the verdict is that of environment ``checking`` on a ``\boxed{Correct}`` or ``\boxed{Incorrect}`` in it.

    Args:
        kinds: of made-up answers: ``sums``, ``days``; all unless given.
        corpus: a file of documents, see environment ``search``.
        records: a file of rows with ``tool``, ``input`` and ``output``.
        calls, seconds, seed: see :class:`~assay.environments.checking.environment.Checking`.

    Raises:
        UsageError: a kind or tool that there is not, a file that cannot be read, a number out of range.

    Source: the seven tools of Themis (arXiv 2310.01045) and its authors' code.
    """

    def __init__(
        self,
        kinds: Sequence[str] = tuple(KINDS),
        corpus: Path | None = None,
        records: Path | None = None,
        calls: int = 3,
        seconds: float = 5.0,
        seed: int = 0,
    ):
        for kind in kinds:
            if kind not in KINDS:
                raise UsageError(f"environment 'consulting': no kind is called {kind!r}{nearest(kind, KINDS)}")
        if not kinds:
            raise UsageError("environment 'consulting': kinds are one or more")
        check_seed("environment 'consulting'", seed)
        super().__init__(calls=calls, seconds=seconds, seed=seed)
        self.source = Answers(seed, tuple(kinds))
        self.corpus = None if corpus is None else read_corpus(Path(corpus))
        self.records = {} if records is None else _records(Path(records))

    def available(self) -> tuple[Tool, ...]:
        absent = (*(() if self.corpus else SEARCHED), *(t for t in RECORDED if not self.records.get(t)))
        known = {p["name"] for p in self._plan() if "output" in p}
        return tuple(t for t in super().available() if t.name not in absent or t.name in known)

    def returned(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return what the plan has on record of this call, or else what the tool returns."""
        for p in self._plan():
            if "output" in p and (p["name"], p["arguments"]) == (name, dict(arguments)):
                return p["output"]
        return super().returned(name, arguments)

    @tool
    def calculator(self, expression: str) -> str:
        """Compute an expression of numbers, + - * / % ** and parentheses."""
        return _told(lambda: calculate(expression))

    @tool
    def weekday(self, date: str) -> str:
        """Tell the day of the week of a date such as 2024-02-29."""
        return _told(lambda: weekday(date))

    @tool
    def date_after(self, date: str, days: int) -> str:
        """Tell the date so many days after another, or before it if negative."""
        return _told(lambda: shifted(date, days))

    @tool
    def days_between(self, first: str, second: str) -> int:
        """Count the days from one date to another."""
        return _told(lambda: between(first, second))

    @tool
    def search(self, query: str) -> str:
        """Find passages by words."""
        return self._found(query, TOP)

    @tool
    def wiki(self, title: str) -> str:
        """Look something up in the encyclopaedia."""
        return self._found(title, 1)

    @tool
    def translate(self, text: str) -> str:
        """Translate a text into English."""
        return self._recorded("translate", text)

    @tool
    def weather(self, place: str, date: str) -> str:
        """Tell the weather of a place on a date such as 2024-02-29."""
        return self._recorded("weather", f"{place}, {date}")

    def gold(self) -> Sequence[Action]:
        """Return the rest of the calls that show what the answer is worth, and what is to be said of it."""
        plan = self._plan()[self.most - self.left :] if self.most else []
        return [*(call(p["name"], **p["arguments"]) for p in plan), say(str(self.task.meta.get("rationale", "")))]

    def _plan(self) -> list[dict[str, Any]]:
        task = getattr(self, "task", None)
        return [] if task is None else list(task.meta.get("plan", []))

    def _found(self, query: str, k: int) -> str:
        if self.corpus is None:
            raise ToolError("there is nothing to search here")
        return "\n".join(d.told(400) for d in self.corpus.find(query, k)) or "nothing was found"

    def _recorded(self, name: str, given: str) -> str:
        found = self.records.get(name, {}).get(_key(given))
        if found is None:
            raise ToolError(f"nothing is on record for {given!r}")
        return found


def _records(path: Path) -> dict[str, dict[str, str]]:
    out: dict[str, dict[str, str]] = {name: {} for name in RECORDED}
    for where, row in read_rows(path):
        try:
            name, given, told = (str(row[key]) for key in ("tool", "input", "output"))
        except (KeyError, TypeError):
            raise UsageError(
                f"{where}: a record is {json.dumps(dict.fromkeys(('tool', 'input', 'output'), '...'))}"
            ) from None
        if name not in out:
            raise UsageError(f"{where}: no tool {name!r} goes by records{nearest(name, RECORDED)}")
        out[name][_key(given)] = told
    return out


def _key(text: str) -> str:
    return " ".join(text.casefold().split())


def _told(compute: Callable[[], T]) -> T:
    try:
        return compute()
    except ValueError as error:
        raise ToolError(str(error)) from None
