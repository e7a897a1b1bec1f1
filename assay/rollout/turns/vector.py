"""Policies of numbers act in many worlds at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.environments.base import Numeric
from assay.environments.control.returns import normalised_return, scale_of
from assay.environments.foreign.vectors import sizes, taken, vector
from assay.errors import UsageError
from assay.registry import build, part
from assay.types import Ask, Episode, Group, Path, Stop, Turn, Verdict

NONE = np.zeros(0, dtype=np.int64)


@dataclass(eq=False)
class Going:
    """An episode under way."""

    world: Any
    rng: np.random.Generator
    seen: np.ndarray
    states: list[np.ndarray] = field(default_factory=list)
    actions: list[np.ndarray] = field(default_factory=list)
    after: list[np.ndarray] = field(default_factory=list)
    tokens: list[np.ndarray] = field(default_factory=list)
    logprobs: list[np.ndarray] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    stop: Stop | None = None
    verdict: Verdict | None = None

    def step(self, tokens: np.ndarray, action: np.ndarray, logprobs: np.ndarray, last: bool) -> None:
        """Take a step; what the world raises is its own failure, and the episode abstains."""
        space = self.world.world
        try:
            seen, reward, over, cut, _ = self.world.take(taken(space.action_space, action))
        except Exception as error:
            self.lose(error)
            return
        after = vector(space.observation_space, seen)
        cut = not over and (cut or last)
        start = len(self.turns) * len(tokens)
        turn = Turn(len(self.turns), start, start + len(tokens), reward=reward, terminated=over, truncated=cut)
        self.turns.append(turn)
        for kept, value in (
            (self.states, self.seen),
            (self.actions, action),
            (self.after, after),
            (self.tokens, tokens),
            (self.logprobs, logprobs),
        ):
            kept.append(value)
        self.seen = after
        if over or cut:
            self.stop = "eos" if over else "limit"
            self.verdict = self.world.verdict()

    def lose(self, error: Exception) -> None:
        said = " ".join(str(error).split()) or type(error).__name__
        self.stop, self.verdict = "error", Verdict.abstain(f"the world failed: {type(error).__name__}: {said}")

    def episode(self) -> Episode:
        if self.stop == "error" or not self.turns:
            reason = "" if self.verdict is None else self.verdict.feedback
            return Episode(NONE, NONE, NONE > 0, NONE.astype(np.float32), "", "error", meta={"error": reason})
        tokens, logprobs = np.concatenate(self.tokens), np.concatenate(self.logprobs).astype(np.float32)
        total, count = sum(turn.reward or 0.0 for turn in self.turns), len(self.turns)
        return Episode(
            NONE,
            tokens,
            np.ones(len(tokens), dtype=bool),
            logprobs,
            f"return {total:.6g} in {count} steps",
            self.stop or "limit",
            turns=tuple(self.turns),
            path=Path(np.stack(self.states), np.stack(self.actions), np.stack(self.after)),
        )


@part("rollout", "vector")
class Vector:
    """Plays ``ask.n`` episodes of each task by a policy of numbers; groups come back with their worlds' verdicts.

    All episodes take their k-th step together, each by draws of its own, and those of an ask begin alike. An episode is
    over (``terminated``), or cut by the world or after ``steps`` (``truncated``); each turn says which. Episodes that
    their world ends by raising abstain.

    Args:
        sampling: its temperature counts; 0 takes the likeliest action.
        environment: a part that is played by numbers, by name or as a table; that of ``model.control`` if left out.
        steps: of an episode, at most.
        normalised: whether returns are told beside those of uniform actions and of the world's script.

    Raises:
        UsageError: ``steps`` below 1, or an environment that is not played by numbers.
    """

    def __init__(
        self,
        sampling: Sampling,
        environment: str | dict[str, Any] | None = None,
        steps: int = 1000,
        normalised: bool = False,
    ):
        if steps < 1:
            raise UsageError(f"rollout 'vector': steps {steps} must be at least 1")
        self.sampling, self.environment, self.steps = sampling, environment, steps
        self.normalised = normalised
        self._scale: tuple[float, float] | None = None
        self._worlds: list[Any] = []
        self._metrics: dict[str, float] = {}

    def metrics(self) -> dict[str, float]:
        """``return/mean`` of the last collection's episodes, undiscounted, and ``return/steps``, their mean number;
        where that is wanted ``return/normalised``, see
        :func:`~assay.environments.control.returns.normalised_return`."""
        return self._metrics

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        seeds = rng.integers(2**63, size=len(asks)).tolist()
        groups = self.play(asks, seeds, engine)
        played = [e.turns for group in groups for e in group.episodes if e.turns]
        returns = [sum(turn.reward or 0.0 for turn in turns) for turns in played]
        counts = [len(turns) for turns in played]
        means = {"return/mean": float(np.mean(returns)), "return/steps": float(np.mean(counts))} if played else {}
        if self.normalised and played:
            self._scale = self._scale or scale_of(self.environment or engine.policy.config.environment)  # type: ignore[attr-defined]
            means["return/normalised"] = normalised_return(means["return/mean"], *self._scale)
        self._metrics = means
        return groups

    def play(self, asks: Sequence[Ask], seeds: Sequence[int], engine: Engine) -> list[Group]:
        """Return a judged group per ask, which depends on its seed and on no other ask.

        Raises:
            UsageError: the engine's policy does not act by numbers, or by other numbers than the world's.
        """
        policy: Any = getattr(engine, "policy", None)
        if not hasattr(policy, "act"):
            raise UsageError("rollout 'vector' acts by a policy of numbers; set model.source = control")
        count = sum(ask.n for ask in asks)
        while len(self._worlds) < count:
            self._worlds.append(self._made(policy))
        worlds, groups = iter(self._worlds), []
        for ask, seed in zip(asks, seeds, strict=True):
            groups.append([self._begun(next(worlds), ask, np.random.default_rng([seed, i])) for i in range(ask.n)])
        everyone = [going for group in groups for going in group]
        for step in range(self.steps):
            live = [going for going in everyone if going.stop is None]
            if not live:
                break
            states = np.stack([going.seen for going in live])
            made = policy.act(states, [going.rng for going in live], self.sampling.temperature)
            for going, *decision in zip(live, *made, strict=True):
                going.step(*decision, last=step + 1 == self.steps)
        return [
            Group(ask, tuple(g.episode() for g in group), tuple(g.verdict for g in group if g.verdict is not None))
            for ask, group in zip(asks, groups, strict=True)
        ]

    def _made(self, policy: Any) -> Any:
        spec = self.environment or policy.config.environment
        made = build("environment", spec)
        if not isinstance(made, Numeric):
            raise UsageError(f"rollout 'vector': environment {spec!r} is not played by numbers; take gymnasium")
        if (found := sizes(made.world)) != policy.sizes:
            raise UsageError(
                f"rollout 'vector': a world of {found[0]} numbers seen and {found[1]} decided is not the policy's, of "
                f"{policy.sizes[0]} and {policy.sizes[1]}; name one environment for both"
            )
        return made

    def _begun(self, world: Any, ask: Ask, rng: np.random.Generator) -> Going:
        going = Going(world, rng, NONE)
        try:
            seen, _ = world.begin(ask.task)
            going.seen = vector(world.world.observation_space, seen)
        except UsageError:
            raise
        except Exception as error:
            going.lose(error)
        return going
