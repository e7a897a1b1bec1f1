"""Actions of agents by kind and parameters, and where these are wrong the thought's sub-goal."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.from_file import from_file, is_reference
from assay.registry import part
from assay.rewards.judged import judged

TEMPLATE = """Here is what an agent has thought before its next step on a screen, and what that step is for.

Thought: {thought}
What the step is for: {subgoal}

Find in the thought what the agent wants to do next, and say on a scale from 0 to 10 how well that agrees with what the
step is for; 0 if the thought says nothing of it. Reply with the number alone."""
FORM = r"\s*<think>.+?</think>\s*\S.*"
"""A thought, then the answer."""
_WORD = re.compile(r"\w+")

Scorer = Callable[[str, str], float]
"""From a thought and a sub-goal to how well they agree, 0 to 10."""


def shared_words(thought: str, subgoal: str) -> float:
    """Ten times the share of the sub-goal's different words that the thought has."""
    wanted = set(_WORD.findall(subgoal.lower()))
    return 10 * len(wanted & set(_WORD.findall(thought.lower()))) / len(wanted) if wanted else 0.0


@part("reward", "subgoal")
@dataclass(slots=True)
class SubgoalReward:
    """R_i = form F + answer a F: F whether the response has the form, a how right its answer is.

        a = type t + param     if the parameters are right (then so is t)
        a = type t + subgoal s / 10     otherwise

    t and the parameters are the verdict's parts ``type`` and ``param``; without these (points, boxes, any other answer)
    a is the verdict's score. s in [0, 10] is how well the thought agrees with ``task.meta["subgoal"]``; 0 without one.
    Thoughts are not scored where parameters are right. A scorer that fails, or says no number, leaves the sample out.

    Args:
        form, answer: weights of F and of a.
        type, param, subgoal: weights within a.
        scorer: a function ``(thought, subgoal) -> 0 to 10`` in a file, an engine's specification, or ``words``: ten
            times the share of the sub-goal's words that stand in the thought.
        pattern: a regular expression that a whole response matches if it has the form.

    Raises:
        UsageError: a negative weight, an expression that is none, or a scorer that is none.

    Source: InfiGUI-R1 (arXiv 2504.14239).
    """

    form: float = 0.1
    answer: float = 0.9
    type: float = 0.2
    param: float = 0.8
    subgoal: float = 0.2
    scorer: Any = "words"
    pattern: str = FORM

    def __post_init__(self) -> None:
        if min(self.form, self.answer, self.type, self.param, self.subgoal) < 0:
            raise UsageError("reward 'subgoal': weights must be at least 0")
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise UsageError(f"reward 'subgoal': pattern {self.pattern!r} is no regular expression: {error}") from None
        if isinstance(self.scorer, str) and is_reference(self.scorer):
            self.scorer = from_file(self.scorer, "scorer")
        elif self.scorer != "words" and not callable(self.scorer):
            self.scorer = judge_of(self.scorer, "reward 'subgoal'")

    def __call__(self, batch: Batch) -> Reward:
        formed = [re.fullmatch(self.pattern, e.text, re.DOTALL) is not None for e in batch.episodes]
        agents = ["type" in v.parts and "param" in v.parts for v in batch.verdicts]
        asked = [
            i
            for i, verdict in enumerate(batch.verdicts)
            if formed[i] and agents[i] and not verdict.parts["param"] and batch.tasks[i].meta.get("subgoal")
        ]
        pairs = [(thought_of(batch.episodes[i].text), str(batch.tasks[i].meta["subgoal"])) for i in asked]
        scores = dict(zip(asked, self._scored(pairs), strict=True))
        answers = []
        for i, verdict in enumerate(batch.verdicts):
            if not agents[i]:
                answers.append(verdict.score)
            elif verdict.parts["param"]:
                answers.append(self.type + self.param)
            else:
                answers.append(self.type * (verdict.parts["type"] or 0.0) + self.subgoal * (scores.get(i) or 0.0) / 10)
        unknown = torch.tensor([i in scores and scores[i] is None for i in range(len(batch))], dtype=torch.bool)
        f, a = (torch.tensor(x, dtype=batch.rewards.dtype) for x in (formed, answers))
        told = torch.tensor([scores.get(i) or 0.0 for i in range(len(batch))], dtype=batch.rewards.dtype)
        return Reward(
            f * (self.form + self.answer * a),
            valid=judged(batch) & ~unknown,
            terms={"form": f, "answer": f * a, "subgoal": told},
        )

    def _scored(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return the score of each thought, ``None`` where there is none to be had."""
        if not isinstance(self.scorer, Engine):
            score = shared_words if self.scorer == "words" else self.scorer
            return [min(max(float(score(*pair)), 0.0), 10.0) for pair in pairs]
        prompts = [filled(TEMPLATE, thought=thought, subgoal=subgoal) for thought, subgoal in pairs]
        replies = ask(self.scorer, prompts, Sampling(8, 0.0)) if prompts else []
        return [None if reply.stop == "error" else read_score(reply.text) for reply in replies]


def thought_of(text: str) -> str:
    """Return the thought of a response, without its tags."""
    return text.rpartition("</think>")[0].replace("<think>", "").strip()


def read_score(text: str) -> float | None:
    """Return the number from 0 to 10 that a reply begins with; ``None`` where it is none."""
    found = re.match(r"\s*(\d+(?:\.\d+)?)", text)
    return float(found[1]) if found and float(found[1]) <= 10 else None
