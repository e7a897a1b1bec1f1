"""Single turns from wherever whole episodes have been: every prefix of one is a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.engines.tokens import Tokens
from assay.environments.base import Action, EnvironmentFailure
from assay.environments.calls import find_calls
from assay.environments.played import Played
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.turns.multi_turn import MultiTurn
from assay.rollout.turns.noting import noted
from assay.rollout.turns.under_way import Live
from assay.types import Ask, Episode, Group, Task, Tool
from assay.verify.tool_calls.formats import Format


@dataclass(frozen=True, slots=True)
class Prefix:
    """Where an episode stood before one of its turns.

    Attributes:
        ask: what was asked; ``seed`` of the environment.
        tokens: ``(P,)`` all up to there.
        said: what was said in each turn so far; ``states`` the keys of the states that each led to.
    """

    ask: Ask
    seed: int
    tokens: np.ndarray
    said: tuple[str, ...]
    states: tuple[str | None, ...]

    @property
    def name(self) -> str:
        return f"{self.ask.task.id}@{len(self.said)}"


@part("rollout", "prefix_rows")
class PrefixRows:
    """Plays whole episodes, and asks for ``ask.n`` single turns after every prefix of each.

    The episodes are played as ``multi_turn`` plays them, with the same weights. A prefix is all that stands before a
    turn of one, its beginning among them (once for a task); its tokens are the prompt, nothing in it is learned from,
    and the responses are compared with each other. Each is one turn, taken in an environment that has been brought to
    the same place by the same actions; its verdict is that of the state it leads to. The whole episodes themselves are
    not learned from. Evaluations play whole episodes.

    A row's turn carries what the environment has noted of it (``Turn.info``), for rewards of single turns; what is left
    to do at a prefix is the state of the environment there.

    Args:
        environment, sampling, turns, calls, attempts, workers, seconds: see
            :class:`~assay.rollout.turns.multi_turn.MultiTurn`.
        trajectories: whole episodes of each task.
        prefixes: of a task, at most, drawn from all there are; ``None`` for all.

    Raises:
        UsageError: ``trajectories`` or ``prefixes`` below 1, or what ``multi_turn`` refuses.
    """

    def __init__(
        self,
        environment: str | dict[str, Any],
        sampling: Sampling,
        trajectories: int = 1,
        prefixes: int | None = None,
        turns: int = 20,
        calls: Format = "auto",
        attempts: int = 2,
        workers: int = 0,
        seconds: float = 60.0,
    ):
        if trajectories < 1 or (prefixes is not None and prefixes < 1):
            raise UsageError(
                f"rollout 'prefix_rows': trajectories {trajectories} and prefixes {prefixes} must be at least 1"
            )
        self.whole = MultiTurn(
            environment, sampling, turns, calls=calls, attempts=attempts, workers=workers, seconds=seconds
        )
        self.trajectories, self.prefixes, self.sampling = trajectories, prefixes, sampling
        self._metrics: dict[str, float] = {}

    def metrics(self) -> dict[str, float]:
        """Of the whole episodes, as ``multi_turn`` has them, and the ``prefixes`` there were."""
        return self._metrics

    def play(self, asks: Sequence[Ask], seeds: Sequence[int], engine: Engine) -> list[Group]:
        """Return whole episodes, see :meth:`~assay.rollout.turns.multi_turn.MultiTurn.play`."""
        return self.whole.play(asks, seeds, engine)

    def demonstrate(self, task: Task, engine: Engine) -> Episode:
        """See :meth:`~assay.rollout.turns.multi_turn.MultiTurn.demonstrate`."""
        return self.whole.demonstrate(task, engine)

    def collect(self, asks: Sequence[Ask], engine: Any, rng: np.random.Generator) -> list[Group]:
        """Return a group per prefix; its task is the one that was asked, its id ``ID@turns`` where some are behind."""
        seeds = rng.integers(2**63, size=len(asks)).tolist()
        played = self.play([replace(ask, n=self.trajectories) for ask in asks], seeds, engine)
        every: list[Prefix] = []
        for ask, seed, group in zip(asks, seeds, played, strict=True):
            found = self._prefixes(ask, seed, group)
            if self.prefixes is not None and len(found) > self.prefixes:
                kept = np.sort(rng.choice(len(found), self.prefixes, replace=False)).tolist()
                found = [found[i] for i in kept]
            every += found
        own = rng.integers(2**63, size=len(every)).tolist()
        made = engine.generate(
            [Request(Tokens(p.tokens), p.ask.n, self.sampling, s) for p, s in zip(every, own, strict=True)]
        )
        groups = [self._taken(p, turns, engine) for p, turns in zip(every, made, strict=True)]
        self._metrics = {**self.whole.metrics(), "prefixes": float(len(every))}
        return groups

    def _prefixes(self, ask: Ask, seed: int, group: Group) -> list[Prefix]:
        """Return where the episodes of a task have been, the beginning once; of a lost one, where it was till then."""
        found = []
        for i, episode in enumerate(group.episodes):
            for t, turn in enumerate(episode.turns):
                if t or not i:
                    tokens = _context(episode, turn.start)
                    before = episode.turns[:t]
                    said, states = tuple(b.text for b in before), tuple(b.next_state for b in before)
                    found.append(Prefix(ask, seed, tokens, said, states))
        return found

    def _taken(self, prefix: Prefix, made: Sequence[Episode], engine: Engine) -> Group:
        """Take each turn after the prefix; return them, judged."""
        ask = prefix.ask
        task = replace(ask.task, id=prefix.name) if prefix.said else ask.task
        rows = [self._row(prefix, turn, i, engine) for i, turn in enumerate(made)]
        return Group(
            replace(ask, task=task),
            tuple(live.episode(engine) for live in rows),
            tuple(live.verdict for live in rows if live.verdict is not None),
        )

    def _action(self, text: str, tools: Sequence[Tool]) -> Action:
        return Action(text, find_calls(text, tools, self.whole.calls) if tools else ())

    def _row(self, prefix: Prefix, made: Episode, number: int, engine: Engine) -> Live:
        played = Played(self.whole.worlds, prefix.ask.task, prefix.seed, self.whole.attempts)
        live = Live(f"{prefix.seed}/{prefix.name}/{number}", played, np.random.default_rng(0), prefix.tokens)
        if made.stop == "error":
            live.lose(str(made.meta.get("error", "generation failed")))
            return live
        live.add(made.tokens, made.logprobs, made.entropies, own=True)
        try:
            shown = played.reset()
            live.state = shown.state
            for said, state in zip(prefix.said, prefix.states, strict=True):
                live.state = played.step(self._action(said, shown.tools)).observation.state
                if live.state != state:
                    raise EnvironmentFailure("played again, the environment takes another course")
            action = self._action(made.text, shown.tools)
            step = played.step(action)
            live.turns.append(noted(live, made, 0, action.calls, step, None, engine))
            live.stop = made.stop
            live.verdict = played.verdict()
        except EnvironmentFailure as error:
            live.lose(str(error))
        finally:
            played.close()
        return live


def _context(episode: Episode, start: int) -> np.ndarray:
    """Return all that the turn beginning at ``start`` was sampled after."""
    prompt = episode.prompt if episode.sampled_prompt is None else episode.sampled_prompt
    since = 0
    for fork in episode.forks:
        if fork.start <= start:
            since, prompt = fork.start, fork.prompt
    return np.concatenate([prompt, episode.tokens[since:start]])
