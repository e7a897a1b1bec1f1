"""Answer by calling functions: the values that answer the parts of a question are known, and so is which were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from assay.environments.base import Action, Step
from assay.environments.functions.library import Style
from assay.environments.functions.questions import Made, Shape
from assay.environments.tools import ToolEnvironment, ToolError, calls, judged, say
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_seed
from assay.types import Task, Tool, Verdict

Match = Literal["value", "contains"]

UNREAD = ("not_json", "unclosed", "no_name")
"""Problems of what stands there as a call and cannot be read as one."""


def contains(feedback: str, answer: str) -> bool:
    """Whether what a tool said answers a part by FTRL's rule: each piece of the answer, cut at ", ", stands in it.

    Case and commas are not told apart. So 12 answers what 1 does: it is for parity.
    """
    said = feedback.lower().replace(",", "").strip()
    return all(piece.lower().replace(",", "").strip() in said for piece in answer.split(", "))


@part("environment", "functions")
class Functions(ToolEnvironment):
    """A question takes calls of functions, of which some need what others return; what is said without a call ends it.

    The world of each task is made up, so that what is true in it can only be found by calling. A part of a question is
    answered once its function has returned its value, each call answering one part at most; the state is which parts
    are. The verdict passes if all are and what was said last is the answer. Its parts are ``rate``, ``precision`` and
    ``f1`` of the calls of the episode,

        rate = found / parts,  precision = found / calls (1 without calls),  f1 = 2 found / (calls + parts),

    and whether the ``answer`` was told. Of each turn it is noted (``Step.info``) how many ``calls`` were made and how
    many were ``unread``, how many parts they ``found``, and how many are ``left``. Calls that name no tool or do not
    fit it are calls; what cannot be read is none.

    Args:
        shapes: of the questions, one of them drawn for each: ``single`` is one call, ``parallel`` several that wait for
            nothing, ``multi`` a chain of them, ``both`` several chains, ``joined`` a sum, difference or product of what
            two chains end in (in words only).
        hops: of a chain, at most, 2 or more.
        width: chains beside each other, at most, 2 or more.
        complexity: of the tools: 0 one for each property, 1 those of a kind merged, with what is asked for as an
            argument, 2 with the unit of numbers as another.
        distractors: tools beside those that it takes.
        max_calls: that can be made.
        score: of the verdict: the share of ``parts`` answered, the answer being one more; or the calls' ``f1``.
        match: whether a part is answered by its very ``value``, or by what :func:`contains` it.
        style: ``words``; or ``compact``, f(g(3)) over permutations of the digits, for small models.
        seed: of worlds and questions, >= 0.

    Raises:
        UsageError: an option out of range.

    Source: built environments of FTRL (arXiv 2508.08791).
    """

    def __init__(
        self,
        shapes: tuple[Shape, ...] = ("single", "parallel", "multi", "both", "joined"),
        hops: int = 3,
        width: int = 3,
        complexity: int = 0,
        distractors: int = 2,
        max_calls: int = 20,
        score: Literal["parts", "f1"] = "parts",
        match: Match = "value",
        style: Style = "words",
        seed: int = 0,
    ):
        check_seed("environment 'functions'", seed)
        if style == "compact":
            shapes, complexity = tuple(s for s in shapes if s != "joined"), 0
        if not shapes or min(hops, width) < 2 or distractors < 0 or max_calls < 1 or not 0 <= complexity <= 2:
            raise UsageError(
                f"environment 'functions': shapes {shapes} must be one at least, hops {hops} and width {width} 2 or "
                f"more, distractors {distractors} 0 or more, max_calls {max_calls} 1 or more, complexity {complexity} "
                "from 0 to 2"
            )
        self.made, self.most = Made(seed, shapes, hops, width, complexity, distractors, style), max_calls
        self.match, self.score = match, score

    def tasks(self) -> Made:
        return self.made

    def begin(self, task: Task, seed: int) -> None:
        self.problem = self.made.problem(task.meta["index"])
        self.found: set[int] = set()
        self.calls, self.left = 0, self.most

    def available(self) -> tuple[Tool, ...]:
        return tuple(f.tool for f in self.problem.functions.values())

    def step(self, action: Action) -> Step:
        if not self._under_way:
            return super().step(action)
        unread, before = sum(c.problem in UNREAD for c in action.calls), len(self.found)
        step = super().step(action)
        made, left = len(action.calls) - unread, len(self.problem.subs) - len(self.found)
        self.calls += made
        return replace(step, info={"calls": made, "unread": unread, "found": len(self.found) - before, "left": left})

    def make_call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if not self.left:
            raise ToolError("no calls are left; answer now")
        self.left -= 1
        value = self.problem.functions[name].value(arguments)
        for i, sub in enumerate(self.problem.subs):
            if i in self.found or sub.function != name:
                continue
            if sub.value == value or (self.match == "contains" and contains(str(value), str(sub.value))):
                self.found.add(i)
                break
        return value

    def state_key(self) -> str:
        return f"{self.task.id}: {' '.join(map(str, sorted(self.found)))}"

    def state_json(self) -> Any:
        subs = self.problem.subs
        return {"found": {subs[i].asked: subs[i].value for i in sorted(self.found)}, "answer": self.answer}

    def verdict(self) -> Verdict:
        parts, found, made = len(self.problem.subs), len(self.found), self.calls
        told = self.answer is not None and not self._under_way and judged(self.task, self.answer).passed is True
        passed = told and found == parts
        f1 = 2 * found / (made + parts)
        return Verdict(
            f1 if self.score == "f1" else (found + told) / (parts + 1),
            passed,
            {
                "rate": found / parts,
                "precision": found / made if made else 1.0,
                "f1": f1,
                "answer": float(told),
            },
            "" if passed else f"{found} of {parts} parts found, answered {self.answer!r:.200}",
        )

    def gold(self) -> Sequence[Action]:
        """Return turns of calls, each of all that wait for nothing any more, and the answer."""
        known, turns = set(self.found), list[Action]()
        while len(known) < len(self.problem.subs):
            ready = [i for i, s in enumerate(self.problem.subs) if i not in known and known.issuperset(s.after)]
            turns.append(calls(*((self.problem.subs[i].function, self.problem.subs[i].arguments) for i in ready)))
            known.update(ready)
        answer = self.task.reference
        return [*turns, say(answer if self.made.style == "compact" else f"<answer>{answer}</answer>")]
