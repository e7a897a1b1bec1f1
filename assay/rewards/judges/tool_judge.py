"""A language model as verifier that computes with tools before it says whether an answer is right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from assay.engines.asking import judge_of, seed_of
from assay.engines.base import Sampling
from assay.environments.checking.cases import task_of
from assay.errors import UsageError
from assay.ops.turns import own_turns
from assay.rewards.judges.reference_judge import Unread
from assay.rewards.text.embedding import texts_of
from assay.rollout.turns.multi_turn import MultiTurn
from assay.tasks.judging.words import said_word
from assay.types import NOTE, Ask, Episode, Task, Verdict

THOUGHT = "</think>"
LONGEST = 16_384
"""Characters of a response that are shown, its last ones."""


def answered(response: str) -> str:
    """Return what of a response is judged: what stands behind its thinking, the end of it where it is very long."""
    _, found, behind = response.partition(THOUGHT)
    return (behind if found else response)[-LONGEST:]


@dataclass(frozen=True, slots=True)
class ToolJudge:
    """A verifier that plays environment ``checking`` with a model, and takes what it says at last.

    Of a response the model is shown what stands behind its thinking, see :func:`answered`.

    It abstains if the judge or the sandbox failed, if the task has no reference, and without a verdict in the end
    unless ``unread`` is ``wrong``. A note on the part ``judge`` says how many ``tokens`` the judge wrote.

    Args:
        judge: an engine, or the specification of one.
        calls: of tools, at most; 0 for a judge that has none.
        max_tokens: of a turn, which is greedy.
        unread: what no verdict comes to.

    Raises:
        UsageError: no engine, or calls below 0.

    Source: CoSineVerifier (arXiv 2512.01224) and its authors' code.
    """

    judge: Any
    calls: int = 5
    max_tokens: int = 2048
    unread: Unread = "abstain"
    _player: MultiTurn = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.calls < 0:
            raise UsageError(f"a judge with tools: calls {self.calls} must be 0 or more")
        object.__setattr__(self, "judge", judge_of(self.judge, "a judge with tools"))
        world = {"name": "checking", "calls": self.calls}
        sampling = Sampling(self.max_tokens, 0.0)
        object.__setattr__(self, "_player", MultiTurn(world, sampling, turns=self.calls + 1))

    def __call__(self, task: Task, response: str) -> Verdict:
        [verdict] = self.map([(task, response)])
        return verdict

    def map(self, pairs: Iterable[tuple[Task, str]]) -> list[Verdict]:
        """Judge many responses, their turns beside each other."""
        pairs = list(pairs)
        rows = [i for i, (task, _) in enumerate(pairs) if texts_of(task)]
        references = [" / ".join(texts_of(pairs[i][0])) for i in rows]
        asked = [
            task_of(pairs[i][0].question, reference, answered(pairs[i][1]), str(i))
            for i, reference in zip(rows, references, strict=True)
        ]
        seeds = [seed_of(task.question) for task in asked]
        groups = self._player.play([Ask(task, 1) for task in asked], seeds, self.judge) if asked else []
        said = {i: self._read(group.episodes[0]) for i, group in zip(rows, groups, strict=True)}
        return [
            said[i] if i in said else Verdict.abstain(f"task {task.id} has no reference to compare with")
            for i, (task, _) in enumerate(pairs)
        ]

    def _read(self, episode: Episode) -> Verdict:
        if episode.stop == "error":
            return Verdict.abstain("the judge or its tools failed")
        turns = own_turns(episode)
        right = said_word(turns[-1].text or episode.text)
        notes: dict[str, float | None] = {f"judge{NOTE}tokens": float(episode.mask.sum())}
        if right is None:
            return Verdict(0.0, None if self.unread == "abstain" else False, {"judge": None, **notes}, "no verdict")
        return Verdict(float(right), right, {"judge": float(right), **notes})
