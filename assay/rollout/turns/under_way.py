"""An episode of several turns while it is played."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from assay.engines.base import Engine
from assay.environments.played import Played
from assay.types import Episode, Fork, Message, Origin, Stop, Tool, Turn, Verdict


@dataclass(slots=True)
class Live:
    """What an episode has so far: pieces of tokens, each sampled (``own``) or said by the environment.

    ``acting`` is it while its environment begins or takes a step, ``judging`` while it is judged; with a ``stop`` it is
    over. ``trajectory`` is its key.

    It goes on from ``context``: the prompt of its last fork, or its own, and what has been added since. ``opened`` are
    the messages it began with, ``said`` all that its conversation has, ``begun`` the tokens that every window of it
    begins with and ``recent`` those of the turns after them. It is trained under ``trained`` where that is another
    prompt than the one it is sampled under, which shows the ``hint``.
    """

    trajectory: str
    played: Played
    rng: np.random.Generator
    prompt: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    hint: str | None = None
    trained: np.ndarray | None = None
    tools: tuple[Tool, ...] = ()
    state: str | None = None
    tokens: list[np.ndarray] = field(default_factory=list)
    own: list[bool] = field(default_factory=list)
    logprobs: list[np.ndarray] = field(default_factory=list)
    entropies: list[np.ndarray] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    forks: list[Fork] = field(default_factory=list)
    row: int = 0
    opened: tuple[Message, ...] = ()
    said: list[Message] = field(default_factory=list)
    begun: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    recent: list[np.ndarray] = field(default_factory=list)
    summing_up: bool = False
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

    def fork(self, prompt: np.ndarray) -> None:
        """Go on from another prompt."""
        self.forks.append(Fork(self.length, prompt))
        self.row = len(self.tokens)

    @property
    def rooted(self) -> np.ndarray:
        """The prompt of what is under way."""
        return self.forks[-1].prompt if self.forks else self.prompt

    @property
    def added(self) -> np.ndarray:
        """The tokens since that prompt."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *self.tokens[self.row :]])

    @property
    def context(self) -> np.ndarray:
        """All that the next turn is sampled after."""
        return np.concatenate([self.rooted, self.added])

    @property
    def reach(self) -> int:
        """How long that is."""
        return len(self.rooted) + self.length - (self.forks[-1].start if self.forks else 0)

    def lose(self, reason: str) -> None:
        """End without a verdict, which is nobody's fault here."""
        self.stop, self.verdict = "error", Verdict.abstain(reason, "infrastructure")

    def episode(self, engine: Engine) -> Episode:
        """Return it as one response."""
        tokens = np.concatenate([np.zeros(0, dtype=np.int64), *self.tokens])
        own = np.repeat(np.asarray(self.own, dtype=bool), [len(t) for t in self.tokens])
        none = np.zeros(0, dtype=np.float32)
        return Episode(
            prompt=self.prompt if self.trained is None else self.trained,
            sampled_prompt=None if self.trained is None else self.prompt,
            tokens=tokens,
            mask=own,
            logprobs=np.concatenate([none, *self.logprobs]),
            text=engine.decode(tokens),
            stop=self.stop or "error",
            entropies=np.concatenate([none, *self.entropies]),
            origins=np.where(own, Origin.OWN, Origin.TOOL).astype(np.uint8),
            turns=tuple(self.turns),
            forks=tuple(fork for fork in self.forks if fork.start < self.length),
            trajectory=self.trajectory,
        )
