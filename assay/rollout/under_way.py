"""An episode of several turns while it is played."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from assay.engines.base import Engine
from assay.environments.played import Played
from assay.types import Episode, Origin, Stop, Tool, Turn, Verdict


@dataclass(slots=True)
class Live:
    """What an episode has so far: pieces of tokens, each sampled (``own``) or said by the environment.

    ``acting`` is it while its environment begins or takes a step, ``judging`` while it is judged; with a ``stop`` it is
    over. ``trajectory`` is its key.
    """

    trajectory: str
    played: Played
    rng: np.random.Generator
    prompt: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    tools: tuple[Tool, ...] = ()
    state: str | None = None
    tokens: list[np.ndarray] = field(default_factory=list)
    own: list[bool] = field(default_factory=list)
    logprobs: list[np.ndarray] = field(default_factory=list)
    entropies: list[np.ndarray] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    length: int = 0
    spent: int = 0
    acting: bool = True
    judging: bool = False
    stop: Stop | None = None
    verdict: Verdict | None = None

    def add(self, tokens: np.ndarray, logprobs: np.ndarray | None, entropies: np.ndarray | None, own: bool) -> None:
        """Append a piece; what is not known of its distributions is NaN."""
        unknown = np.full(len(tokens), np.nan, dtype=np.float32)
        self.tokens.append(tokens)
        self.logprobs.append(unknown if logprobs is None else logprobs)
        self.entropies.append(unknown if entropies is None else entropies)
        self.own.append(own)
        self.length += len(tokens)

    def lose(self, reason: str) -> None:
        """End without a verdict, which is nobody's fault here."""
        self.stop, self.verdict = "error", Verdict.abstain(reason, "infrastructure")

    def episode(self, engine: Engine) -> Episode:
        """Return it as one response."""
        tokens = np.concatenate([np.zeros(0, dtype=np.int64), *self.tokens])
        own = np.repeat(np.asarray(self.own, dtype=bool), [len(t) for t in self.tokens])
        none = np.zeros(0, dtype=np.float32)
        return Episode(
            prompt=self.prompt,
            tokens=tokens,
            mask=own,
            logprobs=np.concatenate([none, *self.logprobs]),
            text=engine.decode(tokens),
            stop=self.stop or "error",
            entropies=np.concatenate([none, *self.entropies]),
            origins=np.where(own, Origin.OWN, Origin.TOOL).astype(np.uint8),
            turns=tuple(self.turns),
            trajectory=self.trajectory,
        )
