"""A group sampled in rounds, each going on from as much of the solution as makes success as likely as failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.proposing import accuracy
from assay.rollout.single_turn import full_prompt
from assay.rollout.spliced import Piece, extended
from assay.rollout.surgery.item_response import fit
from assay.types import Ask, Episode, Group, Origin, Task, Verdict


@part("rollout", "paced")
@dataclass(slots=True)
class Paced:
    """A prompt's responses in ``rounds``, each round beginning with the same share p of its worked solution's tokens.

    The first round shows the share that the task's latest round showed, as curriculum ``paced`` remembers it, or at
    first ``start``. After each, a curve of success by share is fitted to all of the prompt's rounds, see
    :func:`~assay.rollout.surgery.item_response.fit`, and the next shows the share at which it is ``target``. A round
    of abstentions alone says nothing. A response is the shown tokens, of origin ``HINT`` and without
    log-probabilities, and what the policy writes after them, as one response to the plain prompt; the verifier judges
    the whole, and ``meta["share"]`` is the round's share. All rounds are one group. A task without a solution is asked
    plainly, and so is one whose solution's first part would leave no room for a token of one's own.

    Args:
        sampling, judge, curriculum: supplied by the run.
        rounds: at least 1; of a group of n responses each has n / rounds, the first ones one more where that is not
            whole.
        start: share of the solution in the first round of a task, in [0, 1]; ``None`` for all but its last token.
        target: chance of success that is aimed at, in (0, 1).

    Raises:
        UsageError: an option out of range.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    curriculum: Any = None
    rounds: int = 4
    start: float | None = None
    target: float = 0.5
    _seen: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.rounds < 1 or not 0 <= (self.start or 0) <= 1 or not 0 < self.target < 1:
            raise UsageError(
                f"rollout 'paced': rounds {self.rounds} must be at least 1, start {self.start} in [0, 1], target "
                f"{self.target:g} in (0, 1)"
            )

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError if no task has a worked solution to show."""
        if tasks and not any(task.solution for task in tasks):
            raise UsageError(
                f"rollout 'paced' shows beginnings of worked solutions, and task {tasks[0].id} has none; give its "
                "tasks solutions, or take another method"
            )

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        solutions = [
            np.asarray(engine.encode_response(a.task.solution, end=False) if a.task.solution else (), dtype=np.int64)
            for a in asks
        ]
        shares = [self._first(ask.task, len(s)) for ask, s in zip(asks, solutions, strict=True)]
        done: list[list[tuple[Episode, Verdict]]] = [[] for _ in asks]
        tried: list[list[tuple[float, float]]] = [[] for _ in asks]
        for number in range(self.rounds):
            many = [a.n // self.rounds + (number < a.n % self.rounds) for a in asks]
            found = self._round(asks, solutions, shares, many, engine, rng)
            for i, group in enumerate(found):
                done[i] += zip(group.episodes, group.verdicts, strict=True)
                right = accuracy(group)
                if right is None:
                    continue
                tried[i].append((shares[i], right))
                if len(solutions[i]) and number + 1 < self.rounds:
                    shares[i] = fit(*zip(*tried[i], strict=True)).share_for(self.target)
        groups = [
            Group(ask, tuple(e for e, _ in rows), tuple(v for _, v in rows))
            for ask, rows in zip(asks, done, strict=True)
        ]
        overall = [right for group in groups if (right := accuracy(group)) is not None]
        last = [rounds[-1][0] if rounds else share for rounds, share in zip(tried, shares, strict=True)]
        gaps = [abs(rounds[-1][1] - self.target) for rounds in tried if rounds]
        self._seen = {
            "pace/share": float(np.mean(last)) if last else 0.0,
            "pace/gap": float(np.mean(gaps)) if gaps else 0.0,
            "pace/accuracy": float(np.mean(overall)) if overall else 0.0,
        }
        return groups

    def _first(self, task: Task, tokens: int) -> float:
        """Return what share of a solution of so many tokens the first round shows."""
        if not tokens:
            return 0.0
        known: float | None = getattr(self.curriculum, "shown_shares", {}).get(task.id)
        start = (tokens - 1) / tokens if self.start is None else self.start
        return start if known is None else known

    def metrics(self) -> dict[str, float]:
        """``pace/share`` shown and ``pace/gap``, how far accuracy was from ``target``, in each prompt's last round;
        ``pace/accuracy`` over all rounds. Means over prompts."""
        return self._seen

    def _round(
        self,
        asks: Sequence[Ask],
        solutions: Sequence[np.ndarray],
        shares: Sequence[float],
        many: Sequence[int],
        engine: Engine,
        rng: np.random.Generator,
    ) -> list[Group]:
        """Sample and judge a round."""
        most = self.sampling.max_tokens
        shown = [s[: min(round(p * len(s)), most - 1)] for s, p in zip(solutions, shares, strict=True)]
        seeds = rng.integers(2**63, size=len(asks)).tolist()
        requests = [
            Request(full_prompt(a), n, replace(self.sampling, max_tokens=most - len(h)), seed, tuple(h))
            for a, n, h, seed in zip(asks, many, shown, seeds, strict=True)
        ]
        written = engine.generate(requests)
        return self.judge(
            [
                Group(replace(a, n=n), tuple(_begun(e, h, p, engine) for e in episodes))
                for a, n, h, p, episodes in zip(asks, many, shown, shares, written, strict=True)
            ]
        )


def _begun(episode: Episode, shown: np.ndarray, share: float, engine: Engine) -> Episode:
    """Return the response that begins with what was shown, a share of the solution."""
    n = len(shown)
    episode = replace(episode, meta={**episode.meta, "share": share})
    if not n or episode.stop == "error":
        return episode
    beginning = replace(
        episode,
        prompt=episode.prompt[: len(episode.prompt) - n],
        tokens=shown,
        mask=np.ones(n, dtype=bool),
        logprobs=np.full(n, np.nan, dtype=np.float32),
        origins=np.full(n, Origin.HINT, dtype=np.uint8),
        entropies=None,
        spans=(),
        meta={**episode.meta, "shown": n},
    )
    return extended(beginning, Piece(episode.tokens, episode.logprobs, Origin.OWN), engine, episode.stop)
