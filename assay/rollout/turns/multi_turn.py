"""Many turns: the policy acts in an environment, sees what came of it, and acts again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from assay.engines.base import Conversing, Engine, Keeping, Request, Sampling, can
from assay.engines.tokens import Tokens
from assay.environments.base import Action, EnvironmentFailure, Observation, Oracle, Step
from assay.environments.calls import find_calls
from assay.environments.hosted.worlds import Worlds
from assay.environments.played import Played
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.single_turn import full_prompt
from assay.rollout.turns.by_messages import as_messages
from assay.rollout.turns.contexts import Context, Kind, Layout
from assay.rollout.turns.noting import measured, noted
from assay.rollout.turns.planned import planned
from assay.rollout.turns.under_way import Live
from assay.types import Ask, Episode, Group, Message, Stop, Task, ToolCall, Turn, Verdict
from assay.verify.tool_calls.formats import Format

BESIDE = 256
"""Environments that are asked at a time."""


@part("rollout", "multi_turn")
class MultiTurn:
    """Plays ``ask.n`` episodes of each task; groups come back with the verdicts of their environments' final states.

    An episode is one response: the turns' tokens, sampled, and between them what the environment said, masked out and
    of origin ``TOOL``. Nothing that was sampled is tokenised again. All episodes take their k-th turn together, so a
    run repeats itself whatever each of them does. A turn cut by ``max_tokens`` is taken as it stands.

    An environment that fails (whatever it raises) is made anew and brought to the same place by the same actions; where
    that fails too the episode abstains. In processes of its own (``workers``) it may hang or die as well, and the
    episodes' steps are taken beside each other. An episode that has spent its turns, tokens, context or time ends there
    and is judged by the state it has reached.

    Of an engine that cannot be given tokens (engine ``openai`` by chat, or without a tokenizer) each turn is asked for
    by the messages so far, tools told of in words: such episodes can be judged, and not trained on.

    Args:
        environment: a part's name, or a table with ``name`` and options.
        sampling: of one turn.
        turns: of an episode, at most.
        tokens: of the policy's own in an episode, at most; ``None`` for any number.
        calls: notation of tool calls, see :mod:`assay.verify.tool_calls.formats`.
        attempts: environments an episode may use up.
        workers: processes that environments live in; 0 for this one, where each step waits for the one before.
        seconds: wall time of one step, in a process; one that takes longer has failed.
        patience: seconds after which a call that has not been answered is put to another environment as well, played
            to the same place, and after as many again to a further one while ``attempts`` are left; what answers first
            counts. ``None`` waits for ``seconds``.
        wall, processor: seconds of an episode's steps together; ``None`` for any. What stops by a clock does not
            repeat itself.
        arrival: whether an episode takes its next turn as soon as its environment has answered, and does not wait for
            the others: faster where answers take time, but a run does not repeat itself bit for bit.
        oracle: ask the environment of every action, before it is taken, whether it is right; what it says is the turn's
            verdict.
        context, layout, keep, room: what each turn is sampled after, see :class:`assay.rollout.turns.contexts.Context`.
        show_hints: put the task's own hints before the question where the curriculum gives none.
        keep_hint: train an episode under the prompt with the hint it was sampled under; else under the one without,
            for which an episode must be one row.

    Raises:
        UsageError: a limit below 1, ``arrival`` without ``workers``, or ``oracle`` of an environment that has none.
    """

    def __init__(
        self,
        environment: str | dict[str, Any],
        sampling: Sampling,
        turns: int = 8,
        tokens: int | None = None,
        calls: Format = "auto",
        attempts: int = 2,
        workers: int = 0,
        seconds: float = 60.0,
        patience: float | None = None,
        wall: float | None = None,
        processor: float | None = None,
        arrival: bool = False,
        oracle: bool = False,
        context: Kind = "whole",
        layout: Layout = "row",
        keep: int = 4,
        room: int = 4096,
        show_hints: bool = False,
        keep_hint: bool = True,
    ):
        if min(turns, attempts, 1 if tokens is None else tokens) < 1:
            raise UsageError(f"rollout 'multi_turn': turns {turns}, tokens {tokens}, attempts {attempts} must be >= 1")
        if min(wall or 1, processor or 1) <= 0 or 0 in (wall, processor):
            raise UsageError(f"rollout 'multi_turn': wall {wall} and processor {processor} must be above 0")
        if patience is not None and (not workers or not 0 < patience < seconds):
            raise UsageError(
                f"rollout 'multi_turn': patience {patience:g} must be above 0 and below seconds {seconds:g}, and needs "
                "environments beside each other; set workers = 2"
            )
        if arrival and not workers:
            raise UsageError("rollout 'multi_turn': arrival needs environments beside each other; set workers = 2")
        self.worlds = Worlds(environment, workers, seconds)
        if not keep_hint and (context, layout) != ("whole", "row"):
            raise UsageError("rollout 'multi_turn': keep_hint = false is for episodes of one row: context whole")
        self.show_hints, self.keep_hint = show_hints, keep_hint
        self.sampling, self.turns, self.tokens, self.calls, self.attempts = sampling, turns, tokens, calls, attempts
        if oracle and not isinstance(self.worlds.here(), Oracle):
            raise UsageError(f"rollout 'multi_turn': environment {self.worlds.name!r} has no oracle of single actions")
        self.oracle, self.context = oracle, Context(context, layout, keep, room)
        self.patience = patience
        self.wall, self.processor = wall or math.inf, processor or math.inf
        self.waits = FIRST_COMPLETED if arrival else ALL_COMPLETED
        self._beside = ThreadPoolExecutor(BESIDE, "environments") if workers else None
        self._metrics: dict[str, float] = {}

    def metrics(self) -> dict[str, float]:
        """Means over the trajectories of the last collection."""
        return self._metrics

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        return self.play(asks, rng.integers(2**63, size=len(asks)).tolist(), engine)

    def demonstrate(self, task: Task, engine: Engine) -> Episode:
        """Return the episode that the environment's own plan makes of a task, for a supervised warm-up.

        Raises:
            UsageError: the environment has no plan.
        """
        return planned(self.worlds.here, task, engine, self.calls)

    def play(self, asks: Sequence[Ask], seeds: Sequence[int], engine: Engine) -> list[Group]:
        """Return a judged group per ask, which depends on its seed and on no other ask.

        Of several processes whose engines work together, each plays some of the asks.

        Raises:
            UsageError: the engine cannot go on from tokens of its own.
        """
        if not can(engine, Conversing):
            raise UsageError(
                f"rollout 'multi_turn': {type(engine).__name__} cannot go on from its own tokens; take hf or vllm"
            )
        forks = self.context.kind == "summary" or self.context.layout == "turns"
        if forks and getattr(engine, "by_messages", False):
            raise UsageError(
                "rollout 'multi_turn': an engine that is asked by messages has no summaries and no layout turns; with "
                "engine openai set api = 'completions' and a tokenizer"
            )
        divided = getattr(engine, "divided", None)
        asked = [(ask, seed, f"{seed}/{k}") for k, (ask, seed) in enumerate(zip(asks, seeds, strict=True))]
        groups = self._played(asked, engine) if divided is None else divided(asked, self._played, lambda x: x[0].n)
        self._metrics = measured([e for group in groups for e in group.episodes])
        return groups

    def _played(self, asked: Sequence[tuple[Ask, int, str]], engine: Engine) -> list[Group]:
        self._keeps, self._by_messages = can(engine, Keeping), getattr(engine, "by_messages", False)
        groups = []
        for ask, seed, key in asked:
            hint = ask.hint
            if hint is None and self.show_hints and ask.task.hints:
                hint = "\n".join(ask.task.hints)
            task = replace(ask.task, prompt=full_prompt(replace(ask, hint=hint)))
            # Every episode of a group begins in the same world.
            played = [Played(self.worlds, task, seed, self.attempts, self.oracle, self.patience) for _ in range(ask.n)]
            groups.append([Live(f"{key}/{i}", p, np.random.default_rng([seed, i])) for i, p in enumerate(played)])
            for live in groups[-1]:
                live.hint = None if self.keep_hint else hint
        everyone = [live for group in groups for live in group]
        self.worlds.start()
        try:
            self._play(everyone, engine)
        except BaseException:
            # Nobody waits for steps that are still being taken.
            self.worlds.close()
            raise
        finally:
            for live in everyone:
                live.played.close()
            self._forget(everyone, engine)
        return [
            Group(
                ask,
                tuple(live.episode(engine) for live in group),
                tuple(live.verdict for live in group if live.verdict is not None),
            )
            for (ask, _, _), group in zip(asked, groups, strict=True)
        ]

    def _play(self, everyone: Sequence[Live], engine: Any) -> None:
        """Play to the end: whoever has been answered takes a turn, all together or as answers arrive."""
        asked = {self._aside(live.played.reset): partial(self._begun, live, engine) for live in everyone}
        while any(live.verdict is None for live in everyone):
            done, _ = wait(asked, return_when=self.waits)
            # In the order they were asked in.
            for answer in [a for a in asked if a in done]:
                asked.pop(answer)(answer)
            for live in everyone:
                if live.stop is not None and not live.judging and live.verdict is None:
                    live.judging = True
                    self._forget([live], engine)
                    asked[self._aside(live.played.verdict)] = partial(_judged, live)
            if going := [live for live in everyone if live.stop is None and not live.acting]:
                for live, turn in zip(going, self._said(going, engine), strict=True):
                    if live.stop is not None:
                        continue
                    if turn.stop == "error":
                        live.lose(str(turn.meta.get("error", "generation failed")))
                        continue
                    if live.summing_up:
                        self._summary(live, turn, engine)
                        continue
                    calls = find_calls(turn.text, live.tools, self.calls) if live.tools else ()
                    live.acting = True
                    answer = self._aside(live.played.step, Action(turn.text, calls))
                    asked[answer] = partial(self._turn, live, turn, calls, engine)

    def _said(self, going: Sequence[Live], engine: Any) -> list[Episode]:
        """Return the next turn of each."""
        return [turn for [turn] in engine.generate([self._request(live) for live in going])]

    def _forget(self, lives: Sequence[Live], engine: Any) -> None:
        """End the sessions of episodes that are over."""
        if self._keeps:
            engine.end_sessions([live.trajectory for live in lives])

    def _aside(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Return what a call will return: beside this thread where environments are in other processes."""
        if self._beside is not None:
            return self._beside.submit(call, *arguments)
        answer: Future[Any] = Future()
        try:
            answer.set_result(call(*arguments))
        except EnvironmentFailure as error:
            answer.set_exception(error)
        return answer

    def _begun(self, live: Live, engine: Any, answer: Future[Observation]) -> None:
        live.acting = False
        try:
            shown = answer.result()
        except EnvironmentFailure as error:
            live.prompt = engine.encode(live.played.task.prompt)
            live.lose(str(error))
            return
        live.tools, live.state = shown.tools, shown.state
        live.prompt = live.begun = engine.opening(shown.messages, shown.tools)
        live.opened, live.said = shown.messages, list(shown.messages)
        if live.hint is not None:
            live.trained = engine.opening(_unhinted(shown.messages, live.hint), shown.tools)
        if len(live.prompt) >= engine.window:
            live.stop = "context"

    def _request(self, live: Live) -> Request:
        """Return what is asked for the next turn."""
        sampling = self.sampling
        if self.tokens is not None and self.tokens - live.spent < sampling.max_tokens:
            sampling = replace(sampling, max_tokens=self.tokens - live.spent)
        session, seed = live.trajectory if self._keeps else None, int(live.rng.integers(2**63))
        if self._by_messages:
            return Request(as_messages(self.context.shown(live), live.tools), 1, sampling, seed)
        return Request(Tokens(live.rooted), 1, sampling, seed, tuple(live.added.tolist()), session=session)

    def _summary(self, live: Live, made: Episode, engine: Any) -> None:
        """Note a summary, and go on from it."""
        start = live.length
        live.add(made.tokens, made.logprobs, made.entropies, own=True)
        live.spent += len(made.tokens)
        turn = Turn(len(live.turns), start, live.length, state=live.state, next_state=live.state, tag="summary")
        live.turns.append(replace(turn, text=made.text))
        prompt = self.context.summed_up(live, made.text, engine)
        if len(live.turns) >= self.turns:
            live.stop = "turns"
        elif self.tokens is not None and live.spent >= self.tokens:
            live.stop = "limit"
        elif len(prompt) >= engine.window:
            live.stop = "context"
        else:
            live.fork(prompt)

    def _turn(self, live: Live, made: Episode, calls: Sequence[ToolCall], engine: Any, answer: Future[Step]) -> None:
        """Note a turn and what came of it."""
        live.acting = False
        start = live.length
        live.add(made.tokens, made.logprobs, made.entropies, own=True)
        live.spent += len(made.tokens)
        try:
            step = answer.result()
        except EnvironmentFailure as error:
            live.lose(str(error))
            return
        over: Stop | None = None
        bridge, prompt = np.zeros(0, dtype=np.int64), None
        if step.terminated:
            over = made.stop if made.stop in ("eos", "stop") else "eos"
        elif step.truncated or live.played.seconds > self.wall or live.played.processor > self.processor:
            over = "limit"
        elif len(live.turns) + 1 >= self.turns:
            over = "turns"
        elif self.tokens is not None and live.spent >= self.tokens:
            over = "limit"
        else:
            messages = step.observation.messages
            bridge, prompt = self.context.go_on(live, made.text, made.stop == "eos", messages, engine)
            if (live.reach + len(bridge) if prompt is None else len(prompt)) >= engine.window:
                over = "context"
        live.turns.append(noted(live, made, start, calls, step, over, engine))
        live.state, live.stop = step.observation.state, over
        if over is None and prompt is not None:
            live.fork(prompt)
        elif over is None:
            live.add(bridge, None, None, own=False)


def _unhinted(messages: Sequence[Message], hint: str) -> tuple[Message, ...]:
    """Return what was shown at first, without the hint.

    Raises:
        UsageError: the environment has not shown it.
    """
    for i, message in enumerate(messages):
        before, found, after = message["content"].partition(f"{hint}\n")
        if found:
            return (*messages[:i], {**message, "content": before + after}, *messages[i + 1 :])
    raise UsageError("rollout 'multi_turn': keep_hint = false, but the environment does not show its task's prompt")


def _judged(live: Live, answer: Future[Verdict]) -> None:
    live.verdict = answer.result()
    live.played.close()
