"""Many turns: the policy acts in an environment, sees what came of it, and acts again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from assay.engines.base import Conversing, Engine, Request, Sampling
from assay.engines.tokens import Tokens
from assay.environments.base import Action, EnvironmentFailure, Step
from assay.environments.calls import find_calls
from assay.environments.played import Played
from assay.errors import UsageError
from assay.registry import call, find, part
from assay.rollout.single_turn import with_hint
from assay.types import Ask, Episode, Group, Origin, Stop, Tool, ToolCall, Turn, Verdict
from assay.verify.tool_calls.formats import Format


@dataclass(slots=True)
class _Live:
    """An episode under way."""

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
    stop: Stop | None = None
    verdict: Verdict | None = None

    def add(self, tokens: np.ndarray, logprobs: np.ndarray, entropies: np.ndarray, own: bool) -> None:
        self.tokens.append(tokens)
        self.logprobs.append(logprobs)
        self.entropies.append(entropies)
        self.own.append(own)
        self.length += len(tokens)

    def lose(self, reason: str) -> None:
        self.stop, self.verdict = "error", Verdict.abstain(reason, "infrastructure")


@part("rollout", "multi_turn")
class MultiTurn:
    """Plays ``ask.n`` episodes of each task; groups come back with the verdicts of their environments' final states.

    An episode is one response: the turns' tokens, sampled, and between them what the environment said, masked out and
    of origin ``TOOL``. Nothing that was sampled is tokenised again. All episodes take their k-th turn together, so a
    run repeats itself whatever each of them does. A turn cut by ``max_tokens`` is taken as it stands.

    An environment that fails (whatever it raises) is made anew and brought to the same place by the same actions; where
    that fails too the episode abstains. An episode that has spent its turns, tokens or context ends there and is judged
    by the state it has reached.

    Args:
        environment: a part's name, or a table with ``name`` and options.
        sampling: of one turn.
        turns: of an episode, at most.
        tokens: of the policy's own in an episode, at most; ``None`` for any number.
        calls: notation of tool calls, see :mod:`assay.verify.tool_calls.formats`.
        attempts: environments an episode may use up.

    Raises:
        UsageError: a limit below 1.
    """

    def __init__(
        self,
        environment: str | dict[str, Any],
        sampling: Sampling,
        turns: int = 8,
        tokens: int | None = None,
        calls: Format = "auto",
        attempts: int = 2,
    ):
        if min(turns, attempts, 1 if tokens is None else tokens) < 1:
            raise UsageError(f"rollout 'multi_turn': turns {turns}, tokens {tokens}, attempts {attempts} must be >= 1")
        options = {"name": environment} if isinstance(environment, str) else dict(environment)
        name = str(options.pop("name", ""))
        # Found once: a file that names it is not run again for every episode.
        self.make: Callable[[], Any] = partial(call, find("environment", name), options, f"environment {name!r}")
        self.sampling, self.turns, self.tokens, self.calls, self.attempts = sampling, turns, tokens, calls, attempts
        self.make()  # what is wrong with its options is said at once
        self._metrics: dict[str, float] = {}

    def metrics(self) -> dict[str, float]:
        """Means over the trajectories of the last collection."""
        return self._metrics

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        return self.play(asks, rng.integers(2**63, size=len(asks)).tolist(), engine)

    def play(self, asks: Sequence[Ask], seeds: Sequence[int], engine: Engine) -> list[Group]:
        """Return a judged group per ask, which depends on its seed and on no other ask.

        Raises:
            UsageError: the engine cannot go on from tokens of its own.
        """
        if not isinstance(engine, Conversing):
            raise UsageError(
                f"rollout 'multi_turn': {type(engine).__name__} cannot go on from its own tokens; take hf or vllm"
            )
        groups = []
        for ask, seed in zip(asks, seeds, strict=True):
            task = replace(ask.task, prompt=with_hint(ask.task.prompt, ask.hint))
            # Every episode of a group begins in the same world.
            played = [Played(self.make, task, seed, self.attempts) for _ in range(ask.n)]
            groups.append([_Live(p, np.random.default_rng([seed, i])) for i, p in enumerate(played)])
        everyone = [live for group in groups for live in group]
        try:
            for live in everyone:
                self._begin(live, engine)
            while going := [live for live in everyone if live.stop is None]:
                self._wave(going, engine)
            for live in everyone:
                if live.verdict is None:
                    live.verdict = live.played.verdict()
        finally:
            for live in everyone:
                live.played.close()
        self._metrics = _measured(everyone)
        return [
            Group(
                ask,
                tuple(self._episode(live, engine, f"{seeds[k]}/{k}/{i}") for i, live in enumerate(group)),
                tuple(live.verdict for live in group if live.verdict is not None),
            )
            for k, (ask, group) in enumerate(zip(asks, groups, strict=True))
        ]

    def _begin(self, live: _Live, engine: Any) -> None:
        try:
            shown = live.played.reset()
        except EnvironmentFailure as error:
            live.prompt = engine.encode(live.played.task.prompt)
            live.lose(str(error))
            return
        live.tools, live.state = shown.tools, shown.state
        live.prompt = engine.opening(shown.messages, shown.tools)
        if len(live.prompt) >= engine.window:
            live.stop = "context"

    def _wave(self, going: Sequence[_Live], engine: Any) -> None:
        """Take one turn of each."""
        requests = []
        for live in going:
            sampling = self.sampling
            if self.tokens is not None and self.tokens - live.spent < sampling.max_tokens:
                sampling = replace(sampling, max_tokens=self.tokens - live.spent)
            prefix = tuple(np.concatenate(live.tokens).tolist()) if live.tokens else ()
            requests.append(Request(Tokens(live.prompt), 1, sampling, int(live.rng.integers(2**63)), prefix))
        for live, [made] in zip(going, engine.generate(requests), strict=True):
            self._turn(live, made, engine)

    def _turn(self, live: _Live, made: Episode, engine: Any) -> None:
        if made.stop == "error":
            live.lose(str(made.meta.get("error", "generation failed")))
            return
        start, n = live.length, len(made.tokens)
        unknown = np.full(n, np.nan, dtype=np.float32)
        live.add(
            made.tokens,
            unknown if made.logprobs is None else made.logprobs,
            unknown if made.entropies is None else made.entropies,
            True,
        )
        live.spent += n
        calls = find_calls(made.text, live.tools, self.calls) if live.tools else ()
        try:
            step = live.played.step(Action(made.text, calls))
        except EnvironmentFailure as error:
            live.lose(str(error))
            return
        over: Stop | None = None
        bridge = np.zeros(0, dtype=np.int64)
        if step.terminated:
            over = made.stop if made.stop in ("eos", "stop") else "eos"
        elif step.truncated:
            over = "limit"
        elif len(live.turns) + 1 >= self.turns:
            over = "turns"
        elif self.tokens is not None and live.spent >= self.tokens:
            over = "limit"
        else:
            bridge = engine.bridge(step.observation.messages, made.stop == "eos")
            if len(live.prompt) + live.length + len(bridge) >= engine.window:
                over, bridge = "context", bridge[:0]
        live.turns.append(_noted(live, made, start, calls, step, over, engine))
        live.state, live.stop = step.observation.state, over
        if len(bridge):
            nothing = np.full(len(bridge), np.nan, dtype=np.float32)
            live.add(bridge, nothing, nothing, False)

    def _episode(self, live: _Live, engine: Engine, trajectory: str) -> Episode:
        tokens = np.concatenate([np.zeros(0, dtype=np.int64), *live.tokens])
        own = np.repeat(np.asarray(live.own, dtype=bool), [len(t) for t in live.tokens])
        none = np.zeros(0, dtype=np.float32)
        return Episode(
            prompt=live.prompt,
            tokens=tokens,
            mask=own,
            logprobs=np.concatenate([none, *live.logprobs]),
            text=engine.decode(tokens),
            stop=live.stop or "error",
            entropies=np.concatenate([none, *live.entropies]),
            origins=np.where(own, Origin.OWN, Origin.TOOL).astype(np.uint8),
            turns=tuple(live.turns),
            trajectory=trajectory,
        )


def _noted(
    live: _Live, made: Episode, start: int, calls: Sequence[ToolCall], step: Step, over: Stop | None, engine: Engine
) -> Turn:
    placed = tuple(_placed(call, made, start, engine) for call in calls)
    return Turn(
        index=len(live.turns),
        start=start,
        end=start + len(made.tokens),
        calls=placed,
        reward=step.reward,
        state=live.state,
        next_state=step.observation.state,
        valid=step.valid and not any(call.problem for call in calls),
        error=step.error,
        tag=step.tag,
        terminated=step.terminated,
        truncated=over is not None and not step.terminated,
    )


def _placed(call: ToolCall, made: Episode, start: int, engine: Engine) -> ToolCall:
    """Return a call whose place is in the response's tokens: the fewest that hold all of its characters."""

    def reach(characters: int) -> int:
        """The fewest tokens whose text is longer than so many characters."""
        ids = made.tokens
        return bisect_left(range(len(ids)), True, key=lambda k: len(engine.decode(ids[: k + 1])) > characters)

    return replace(call, start=start + reach(call.start), end=start + min(reach(call.end - 1) + 1, len(made.tokens)))


def _measured(everyone: Sequence[_Live]) -> dict[str, float]:
    """Return means over trajectories; those lost count for ``lost`` alone."""
    whole = [live for live in everyone if live.stop != "error"]
    out = {"environment/lost": sum(live.stop == "error" for live in everyone) / max(1, len(everyone))}
    if whole:
        turns = [turn for live in whole for turn in live.turns]
        out["environment/turns"] = len(turns) / len(whole)
        out["environment/truncated"] = sum(live.stop in ("turns", "limit", "context") for live in whole) / len(whole)
        share = [np.mean([not turn.valid for turn in live.turns]) for live in whole if live.turns]
        out["environment/invalid"] = float(np.mean(share)) if share else 0.0
        out["environment/calls"] = sum(len(turn.calls) for turn in turns) / len(whole)
    return out
