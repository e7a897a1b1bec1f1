"""A language model that judges the turns of an agent by principles which it chooses itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.types import Episode, Task

TEMPLATE = """You judge strictly one turn of an agent that answers a question with the help of a search tool. A turn
need not answer the question: judge what it does with what is known by then. Choose the principles that matter here and
score each by itself. Those that mostly matter: what the turn takes from the information it was given is right and bears
on the question; its search query, if it has one, asks for what is missing; it searches where it should, and only there.
A turn with text outside of <think>, <search>, <information> and <answer> scores 0.

Question: {question}

Before this turn:
{before}

The turn:
{turn}

Reply with two lines:
Analysis: a reason and a score for each principle.
Scores: <final_score>SCORE,MAX_SCORE</final_score>, their sum and the most it could be. \
For example: <final_score>4,6</final_score>."""

Unread = Literal["abstain", "zero"]


class PrincipleJudge:
    """A scorer of turns that asks a model for scores by principles of its choice: 2 SCORE / MAX_SCORE - 1.

    It is shown the question, the turns before, and the turn. A request that failed leaves the whole response without
    scores; so does a reply without a score in [0, MAX_SCORE], unless ``unread`` is ``zero``: then SCORE is 0.

    Source: PPR (arXiv 2509.25598) and its authors' code, whose form of reply it is; the wording is a choice.

    Args:
        engine: an engine, or the specification of one.
        last: judge the last turn too; else it scores 0, which says nothing.
        unread: see above.
        max_tokens: of the reply, which is greedy.
        template: with ``{question}``, ``{before}`` and ``{turn}``.

    Raises:
        UsageError: no engine, or a template that does not show the turn.
    """

    def __init__(
        self,
        engine: Any,
        last: bool = False,
        unread: Unread = "abstain",
        max_tokens: int = 4096,
        template: str = TEMPLATE,
    ):
        if "{turn}" not in template:
            raise UsageError("the judge of turns: the template does not show the judge the {turn}")
        self.engine, self.sampling = judge_of(engine, "the judge of turns"), Sampling(max_tokens, 0.0)
        self.last, self.unread, self.template = last, unread, template

    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float] | None]:
        out: list[list[float] | None] = [[0.0] * len(turns) for _, turns in responses]
        for (i, k, _), reply in self.replies(responses):
            share = None if reply.stop == "error" else read_share(reply.text)
            if share is None and reply.stop != "error" and self.unread == "zero":
                share = 0.0
            row = out[i]
            if share is None or row is None:
                out[i] = None
            else:
                row[k] = 2 * share - 1
        return out

    def replies(self, responses: Sequence[tuple[Task, list[str]]]) -> list[tuple[tuple[int, int, str], Episode]]:
        """Ask about every turn that is judged; return response, turn and question of each, and the reply."""
        asked = [
            (i, k, filled(self.template, question=task.question, before="".join(turns[:k]) or "nothing", turn=turn))
            for i, (task, turns) in enumerate(responses)
            for k, turn in enumerate(turns if self.last else turns[:-1])
        ]
        found = ask(self.engine, [prompt for *_, prompt in asked], self.sampling)
        return list(zip(asked, found, strict=True))


def distillation(responses: Sequence[tuple[Task, list[str]]], teacher: PrincipleJudge) -> list[Task]:
    """Return tasks that teach a small model to judge turns as ``teacher`` does.

    Each asks the teacher's question about a turn and has its reply, with the analysis, as worked solution, so that a
    warm-up on solutions is the distillation. Questions that come twice are kept once; replies whose score cannot be
    read are left out.
    """
    made: dict[str, Task] = {}
    for (i, k, prompt), reply in teacher.replies(responses):
        if reply.stop != "error" and read_share(reply.text) is not None and prompt not in made:
            made[prompt] = Task(f"{responses[i][0].id}/turn {k} {len(made)}", prompt, kind="none", solution=reply.text)
    return list(made.values())


def read_share(reply: str) -> float | None:
    """Return SCORE / MAX_SCORE of the last ``<final_score>SCORE,MAX_SCORE</final_score>``; nothing if out of range."""
    found = re.findall(r"<final_score>\s*(\d+(?:\.\d+)?)\s*,\s*(\d+(?:\.\d+)?)\s*</final_score>", reply)
    if not found:
        return None
    score, most = (float(x) for x in found[-1])
    return score / most if most > 0 and score <= most else None
