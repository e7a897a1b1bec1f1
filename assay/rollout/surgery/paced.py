"""A group sampled in rounds, each going on from as much of the solution as makes success as likely as failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.single_turn import full_prompt
from assay.rollout.spliced import Piece, extended
from assay.rollout.surgery.item_response import Prior
from assay.types import Ask, Episode, Group, Origin, Task, Verdict


@part("rollout", "paced")
@dataclass(slots=True)
class Paced:
    """A prompt's responses in ``rounds``, each round beginning with the same share p of its worked solution's tokens.

    The first round shows the share ``start``. After each, a curve of success by share is fitted to all of the prompt's
    rounds, see :class:`~assay.rollout.surgery.item_response.Prior`, and the next shows the share at which it is
    ``target``. A round of abstentions alone says nothing. A response is the shown tokens, of origin ``HINT`` and
    without log-probabilities, and what the policy writes after them, as one response to the plain prompt; the
    verifier judges the whole. All rounds are one group. A task without a solution is asked plainly, and so is one
    whose solution's first part would leave no room for a token of one's own.

    Args:
        sampling, judge: supplied by the run.
        rounds: at least 1; of a group of n responses each has n / rounds, the first ones one more where that is not
            whole.
        start: share of the solution in the first round, in [0, 1].
        target: chance of success that is aimed at, in (0, 1).
        prior: what is thought of a curve before anything was tried.

    Raises:
        UsageError: an option out of range.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    rounds: int = 4
    start: float = 0.5
    target: float = 0.5
    prior: Prior = field(default_factory=Prior)
    _seen: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.rounds < 1 or not 0 <= self.start <= 1 or not 0 < self.target < 1:
            raise UsageError(
                f"rollout 'paced': rounds {self.rounds} must be at least 1, start {self.start:g} in [0, 1], target "
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
        shares = [self.start if len(s) else 0.0 for s in solutions]
        done: list[list[tuple[Episode, Verdict]]] = [[] for _ in asks]
        tried: list[list[tuple[float, int, int]]] = [[] for _ in asks]
        gaps, last = list[float](), list(shares)
        for number in range(self.rounds):
            many = [a.n // self.rounds + (number < a.n % self.rounds) for a in asks]
            found = self._round(asks, solutions, shares, many, engine, rng)
            gaps = []
            for i, group in enumerate(found):
                known = [v.passed for v in group.verdicts if v.passed is not None]
                done[i] += zip(group.episodes, group.verdicts, strict=True)
                if not known:
                    continue
                gaps.append(abs(sum(known) / len(known) - self.target))
                tried[i].append((shares[i], sum(known), len(known)))
                last[i] = shares[i]
                if len(solutions[i]) and number + 1 < self.rounds:
                    shares[i] = self.prior.fit(*zip(*tried[i], strict=True)).share_for(self.target)
        overall = [sum(k for _, k, _ in t) / sum(n for *_, n in t) for t in tried if t]
        self._seen = {
            "pace/share": float(np.mean(last)) if last else 0.0,
            "pace/gap": float(np.mean(gaps)) if gaps else 0.0,
            "pace/accuracy": float(np.mean(overall)) if overall else 0.0,
        }
        return [
            Group(ask, tuple(e for e, _ in rows), tuple(v for _, v in rows))
            for ask, rows in zip(asks, done, strict=True)
        ]

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
                Group(replace(a, n=n), tuple(_begun(e, h, engine) for e in episodes))
                for a, n, h, episodes in zip(asks, many, shown, written, strict=True)
            ]
        )


def _begun(episode: Episode, shown: np.ndarray, engine: Engine) -> Episode:
    """Return the response that begins with what was shown."""
    n = len(shown)
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
