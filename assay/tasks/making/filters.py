"""Steps that leave tasks out: by a judge's word, by agreement of answers, by how often they are solved."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from assay.engines.asking import filled
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.tasks.making.work import Dropped, Here, Reply, Want, Work, noted
from assay.types import Task, Verdict
from assay.verify.base import answer_place
from assay.verify.kind import KindVerifier

RATE = """Rate the problem below: is it clear, complete, free of contradictions, and is there one answer that can
be checked?

Problem:
{question}

Say one word: {words}."""
SOLVING = Sampling(1024, 1.0)


@dataclass(frozen=True, slots=True)
class Judged:
    """Keeps a task that a judge finds good, in one word out of several; the last of them that it says counts.

    Args:
        keep: words of a task that goes on.
        words: all that the judge may say, best first.
        template: of the question, with ``{question}`` and ``{words}``.
        by: role of the judge.
        sampling: of the reply, greedy unless given.
    """

    keep: tuple[str, ...] = ("perfect", "acceptable")
    words: tuple[str, ...] = ("perfect", "acceptable", "bad")
    template: str = RATE
    by: str = "judge"
    sampling: Sampling = Sampling(64, 0.0)  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        if not self.keep or not {*self.keep} <= {*self.words}:
            raise UsageError(
                f"filter judged: keep {', '.join(self.keep)} are not among its words {', '.join(self.words)}"
            )

    def __call__(self, task: Task, here: Here) -> Work:
        prompt = filled(self.template, question=task.question, words=", ".join(self.words))
        [[reply]] = yield [Want(prompt, 1, self.sampling, self.by)]
        said = re.findall(rf"\b({'|'.join(map(re.escape, self.words))})\b", reply.text.lower())
        if not said:
            return Dropped("the judge gives no rating")
        return task if said[-1] in self.keep else Dropped(f"judged {said[-1]}")


def agreed(task: Task, replies: Sequence[Reply], judge: Callable[[Task, str], Verdict]) -> tuple[str, int] | None:
    """Return the answer that most replies give and how many do, ``None`` where none gives any; of equals the first.

    Two answers are one where the verifier of the task's kind takes the second for right with the first as reference.
    """
    verifier = KindVerifier()
    groups: list[tuple[str, int]] = []
    for reply in replies:
        place = answer_place(verifier, task, reply.text)
        if place is None:
            continue
        for i, (answer, count) in enumerate(groups):
            if judge(replace(task, reference=answer), reply.text).passed:
                groups[i] = answer, count + 1
                break
        else:
            groups.append((reply.text[place.start : place.end], 1))
    return max(groups, key=lambda g: g[1], default=None)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Answers a task by the majority of a solver's replies, and drops it where that is too small.

    The answer is the reference; ``meta["agreement"]`` is its share of the replies. Replies that were cut off vote for
    nothing.

    Args:
        n: replies.
        least: votes that the answer needs.
        by: role of the solver.
        sampling: of the replies.
        within: what is put around the question, with ``{question}``.

    Raises:
        UsageError: ``least`` above ``n``, or one below 1.
    """

    n: int = 8
    least: int = 4
    by: str = "solver"
    sampling: Sampling = SOLVING
    within: str = "{question}"

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.n:
            raise UsageError(f"filter agreement: {self.least} votes of {self.n} replies cannot be asked for")

    def __call__(self, task: Task, here: Here) -> Work:
        asked = [Want(filled(self.within, question=task.question), self.n, self.sampling, self.by)]
        [replies] = yield asked
        found = agreed(task, [r for r in replies if r.stop in ("eos", "stop")], here.judge)
        if found is None:
            return Dropped("no answer is given")
        answer, votes = found
        if votes < self.least:
            return Dropped(f"fewer than {self.least} of {self.n} answers agree")
        return noted(replace(task, reference=answer), agreement=votes / self.n)


@dataclass(frozen=True, slots=True)
class PassRate:
    """Keeps a task that a solver gets right often enough, and not too often: low <= right / judged <= high.

    The rate is noted in ``meta[note]``. Verdicts that abstain are left out; a task all of whose verdicts do is
    dropped with that reason. With low above 0 and high below 1 no kept task gives a group without variance.

    Args:
        n: replies.
        low, high: the window, both within it.
        by: role of the solver.
        sampling: of the replies.
        note: the name of the rate, for a pipeline in which several roles are asked.
        keep: whether the first reply that is right becomes the task's solution, in place of one it has.

    Raises:
        UsageError: no window in [0, 1], or no reply.
    """

    n: int = 8
    low: float = 0.125
    high: float = 0.875
    by: str = "solver"
    sampling: Sampling = SOLVING
    note: str = "pass_rate"
    keep: bool = False

    def __post_init__(self) -> None:
        if self.n < 1 or not 0 <= self.low <= self.high <= 1:
            raise UsageError(f"filter pass_rate: [{self.low}, {self.high}] of {self.n} replies is no window in [0, 1]")

    def __call__(self, task: Task, here: Here) -> Work:
        [replies] = yield [Want(task.prompt, self.n, self.sampling, self.by)]
        judged = [(r.text, v.passed) for r in replies if (v := here.judge(task, r.text)).passed is not None]
        if not judged:
            return Dropped("no reply can be judged")
        right = [text for text, passed in judged if passed]
        rate = len(right) / len(judged)
        if not self.low <= rate <= self.high:
            return Dropped("solved too seldom" if rate < self.low else "solved too often")
        kept = noted(task, **{self.note: rate})
        return replace(kept, solution=right[0]) if self.keep and right else kept
