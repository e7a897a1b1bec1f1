"""Questions that take several passages to answer, written with the passages they need, and rated."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.engines.asking import filled
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.tasks.making.work import Dropped, Here, Want, Work, child, noted
from assay.types import Task

ASK = """Below are {count} passages of one long text, numbered from 0. Write one question and its answer, such that
- the answer takes what several of the passages say, as many as can be, and stands in none of them alone;
- it has at most 40 words, and the passages leave no doubt about it;
- neither of the two mentions passages or their numbers, and both call people and things by their names.

Reply with one JSON object and nothing else:
{"question": "...", "answer": "...", "evidence": [0, 2]}
Evidence are the numbers of all passages that the answer takes. If no such question can be asked of these passages, \
reply with {"question": null}.

{passages}"""
RATE = """How good are the question and its answer below, which were made of these passages of a long text?

Passages:
{passages}

Question: {question}

Answer: {answer}

Ask yourself whether the answer is right and the passages support it, which counts most; whether the question is of \
weight and takes what several passages say; whether the answer is complete; whether both are clear to somebody who \
sees the whole text, without words such as "he" or "the man" that could mean somebody else; and how much of the \
passages is made use of.

Reply with a number from 0, worthless, to 10, nothing to be improved, in double brackets and nothing else, such as \
[[7.5]]."""
SKIPPED = "no question can be asked of the passages"
_RATING = re.compile(r"\[\[\s*(\d+(?:\.\d+)?)\s*\]\]")


def numbered(passages: Sequence[str]) -> str:
    """Return passages with their numbers, from 0."""
    return "\n\n".join(f"[Passage {i}]\n{text}" for i, text in enumerate(passages))


def read_question(reply: str, count: int, least: int = 2) -> tuple[str, str, list[int]] | str:
    """Return question, answer and evidence of a reply; or why there is none.

    Args:
        reply: with one JSON object, whatever stands around it.
        count: passages that it is about.
        least: different ones that have to be its evidence.
    """
    start, end = reply.find("{"), reply.rfind("}")
    try:
        said = json.loads(reply[start : end + 1]) if start >= 0 else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, Mapping) or "question" not in said:
        return "no question is written"
    question, answer = said["question"], said.get("answer")
    if question is None:
        return SKIPPED
    if not isinstance(question, str) or not isinstance(answer, str) or not question.strip() or not answer.strip():
        return "no question is written"
    named = said.get("evidence")
    numbers = [_number(x) for x in named] if isinstance(named, list) else []
    if not numbers or any(n is None or n >= count for n in numbers):
        return "its evidence is no passage"
    evidence = sorted({n for n in numbers if n is not None})
    if len(evidence) < least:
        return f"fewer than {least} passages are its evidence"
    return question.strip(), answer.strip(), evidence


def _number(said: Any) -> int | None:
    """Return the number of a passage, however it is written; ``None`` of what is none."""
    if isinstance(said, int) and not isinstance(said, bool):
        return said if said >= 0 else None
    return int(said) if isinstance(said, str) and re.fullmatch(r"[0-9]{1,6}", said.strip()) else None


def read_rating(reply: str) -> float | None:
    """Return the last rating of a reply, at most 10; ``None`` where there is none."""
    found = _RATING.findall(reply)
    return min(float(found[-1]), 10.0) if found else None


@dataclass(frozen=True, slots=True)
class ClusterQuestions:
    """Replaces a cluster by questions about its passages, with an answer and the passages that it takes.

    Reads ``meta["passages"]`` and ``meta["cluster"]``, see :class:`~assay.tasks.making.documents.clusters.Clustered`.
    What it makes has the question as prompt, and as reference ``answer`` and ``evidence``, numbers of the document's
    passages. A cluster of which nobody has made a question is left out.

    Args:
        n: replies, each of one question.
        least: passages that a question has to need.
        template: of the request, with ``{count}`` and ``{passages}``.
        sampling: of the replies.

    Raises:
        UsageError: a number below 1.

    Source: LongRLVR (arXiv 2603.02146) and its authors' code.
    """

    n: int = 3
    least: int = 2
    template: str = ASK
    sampling: Sampling = Sampling(2048, 0.6)  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        if min(self.n, self.least) < 1:
            raise UsageError(f"step questions: n {self.n} and least {self.least} must be at least 1")

    def __call__(self, task: Task, here: Here) -> Work:
        cluster = task.meta["cluster"]
        passages = [task.meta["passages"][i] for i in cluster]
        asked = filled(self.template, count=str(len(passages)), passages=numbered(passages))
        [replies] = yield [Want(asked, self.n, self.sampling)]
        read = [
            read_question(reply.text, len(passages), self.least) if reply.stop in ("eos", "stop") else "cut off"
            for reply in replies
        ]
        found = dict.fromkeys((q, a, tuple(e)) for q, a, e in (one for one in read if not isinstance(one, str)))
        if not found:
            return Dropped(str(read[0]))
        return [
            child(
                task,
                "question",
                k,
                prompt=question,
                reference={"answer": answer, "evidence": [cluster[i] for i in evidence]},
            )
            for k, (question, answer, evidence) in enumerate(found)
        ]


@dataclass(frozen=True, slots=True)
class RatedQuestions:
    """Keeps a question about passages that a judge rates well enough; ``meta["rating"]`` is in [0, 10].

    Args:
        least: rating that is kept.
        template: of the request, with ``{passages}``, ``{question}`` and ``{answer}``.
        by: role of who is asked.
        sampling: of the reply.

    Raises:
        UsageError: ``least`` outside [0, 10].

    Source: LongRLVR (arXiv 2603.02146) and its authors' code.
    """

    least: float = 8.0
    template: str = RATE
    by: str = "judge"
    sampling: Sampling = Sampling(1024, 0.1)  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        if not 0 <= self.least <= 10:
            raise UsageError(f"step rated: least {self.least:g} must lie in [0, 10]")

    def __call__(self, task: Task, here: Here) -> Work:
        passages = numbered([task.meta["passages"][i] for i in task.meta["cluster"]])
        asked = filled(self.template, passages=passages, question=task.question, answer=task.reference["answer"])
        [[reply]] = yield [Want(asked, 1, self.sampling, self.by)]
        rating = read_rating(reply.text)
        if rating is None:
            return Dropped("the judge gives no rating")
        if rating < self.least:
            return Dropped(f"rated below {self.least:g}")
        return noted(task, rating=rating)


@dataclass(frozen=True, slots=True)
class BestOfCluster:
    """Keeps of the questions about a cluster the one that is rated best; of equals the first."""

    def whole(self, tasks: Sequence[Task], here: Here) -> tuple[list[Task], Mapping[str, int]]:
        best: dict[str, Task] = {}
        for task in tasks:
            cluster = str(task.meta["parents"][0])
            if cluster not in best or task.meta["rating"] > best[cluster].meta["rating"]:
                best[cluster] = task
        kept = {id(task) for task in best.values()}
        left = [task for task in tasks if id(task) in kept]
        return left, {"another of its cluster is rated better": len(tasks) - len(left)}
