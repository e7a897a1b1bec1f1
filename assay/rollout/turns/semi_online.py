"""Semi-online: an expert's episode is followed under the policy's own history, and its mistakes are patched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from assay.engines.base import Conversing, Engine, Request, Sampling, can
from assay.engines.tokens import Tokens
from assay.environments.base import Action, Agreement, Comparing, EnvironmentFailure, Guided
from assay.environments.calls import find_calls
from assay.environments.hosted.worlds import Worlds
from assay.environments.played import Played
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.rollout.single_turn import full_prompt
from assay.rollout.turns.under_way import Live
from assay.types import Ask, Episode, Group, Message, Task, Turn, Verdict
from assay.verify.tool_calls.formats import Format

WHY = "{seen}\n\nThe right action now is: {action}\nSay in a sentence why."
"""What the policy is asked for a thought of its own about the expert's action."""
EXACT, KIND, READ = 1.0, 0.5, 0.1
"""What an action is worth that is the expert's, of its kind alone, and readable at least."""


def step_reward(agreement: Agreement, formed: bool) -> float:
    """r = 0.1 [formed] + 0.9 a; a = 1 for the expert's action, 0.5 for its kind, 0.1 if it can be read, else 0."""
    found = EXACT if agreement.exact else KIND if agreement.kind else READ if agreement.read else 0.0
    return 0.1 * formed + 0.9 * found


@dataclass(slots=True)
class Following(Live):
    """A rollout along an expert's episode.

    Attributes:
        rows: its turns so far, each an episode.
        patches: made so far.
        matched: actions before the first that was not the expert's.
        missed: whether there was one; ``ended``: it will not go on.
    """

    rows: list[Episode] = field(default_factory=list)
    patches: int = 0
    matched: int = 0
    missed: bool = False
    ended: bool = False


@dataclass(slots=True)
class Lesson:
    """An expert's episode while it is played, and who follows it.

    ``plan`` are the expert's actions, ``seen`` the messages of what is observed now.
    """

    task: Task
    world: Played
    everyone: list[Following]
    plan: list[Action] = field(default_factory=list)
    seen: tuple[Message, ...] = ()

    def begin(self, engine: Any) -> None:
        shown = self.world.reset()
        self.plan, self.seen = list(self.world.ask("gold")), shown.messages
        if not self.plan:
            raise RunError(f"task {self.task.id}: the environment has no plan to follow")
        for f in self.everyone:
            f.prompt, f.tools = engine.opening(shown.messages, shown.tools), shown.tools

    def fail(self, reason: str, engine: Engine) -> None:
        for f in self.everyone:
            f.prompt = f.prompt if len(f.prompt) else engine.encode(self.task.prompt)
            f.ended = True
            f.lose(reason)


@part("rollout", "semi_online")
class SemiOnline:
    """Follows the environment's own plan ``ask.n`` times; every turn is a sample, in its trajectory of that name.

    What is observed is always what the expert's actions lead to. A turn is sampled after the rollout's own history; if
    its action is the expert's (:class:`~assay.environments.base.Comparing`) the response stays in the history as it
    is; if not, and fewer than ``patches`` were made, the expert's action takes its place there and the rollout goes on;
    else it ends. A turn that was no match is a ``reset``: no return flows back across it. ``Turn.reward`` is
    :func:`step_reward`, ``Turn.info`` has ``read``, ``kind``, ``exact``; the verdict of a turn passes where its action
    is the expert's.

    Evaluations play without patches, one response for each rollout: it passes if it has reached the expert's end, and
    its score is the share of the expert's actions before the first mismatch. TSR and PG are their means, and
    SOP = (PG + TSR) / 2, which the metrics ``sop`` tell of the rollouts that are trained on.

    Args:
        environment: a part's name, or a table with ``name`` and options.
        sampling: of one turn.
        patches: in a rollout, at most; 0 ends it at the first mismatch, -1 allows any number.
        thought: before the expert's action in a patch: ``none``; ``annotated``, ``task.meta["thoughts"]`` at that step;
            or ``own``, written by the policy, which is told the action.
        history: ``own``, or ``expert``, always the expert's actions: offline training, for comparisons.
        form: a regular expression that a whole response matches if it is well formed; without one it is where its
            action can be read.
        calls: notation of tool calls, see :mod:`assay.verify.tool_calls.formats`.
        attempts: environments an expert's episode may use up.

    Raises:
        UsageError: an option out of range, an expression that is none, or an environment without a plan or comparison.
        RunError: a task without the thoughts that it should have, or without a plan.

    Source: UI-S1 (arXiv 2509.11543), sections on semi-online rollout, the patch module and SOP.
    """

    def __init__(
        self,
        environment: str | dict[str, Any],
        sampling: Sampling,
        patches: int = 2,
        thought: Literal["none", "annotated", "own"] = "none",
        history: Literal["own", "expert"] = "own",
        form: str | None = None,
        calls: Format = "auto",
        attempts: int = 2,
    ):
        if patches < -1 or attempts < 1:
            raise UsageError(f"rollout 'semi_online': patches {patches} must be >= -1, and attempts {attempts} >= 1")
        try:
            self.form = None if form is None else re.compile(form, re.DOTALL)
        except re.error as error:
            raise UsageError(f"rollout 'semi_online': form {form!r} is no regular expression: {error}") from None
        self.worlds = Worlds(environment)
        world = self.worlds.here()
        if not isinstance(world, Guided) or not isinstance(world, Comparing):
            raise UsageError(
                f"rollout 'semi_online': environment {self.worlds.name!r} needs gold(), and compare(action, expert)"
            )
        self.sampling, self.patches, self.thought, self.history = sampling, patches, thought, history
        self.calls, self.attempts = calls, attempts
        self._metrics: dict[str, float] = {}

    def metrics(self) -> dict[str, float]:
        """Of the last collection: ``sop`` and what it is made of, and the mean number of patches."""
        return self._metrics

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        seeds = rng.integers(2**63, size=len(asks)).tolist()
        lessons = self._follow(asks, seeds, engine, self.patches, self.history == "own")
        whole = [(f, len(x.plan)) for x in lessons for f in x.everyone if f.stop != "error"]
        self._metrics = sop([(f.matched, n) for f, n in whole])
        self._metrics["semi_online/lost"] = 1 - len(whole) / max(1, sum(ask.n for ask in asks))
        if whole:
            self._metrics["semi_online/patches"] = float(np.mean([f.patches for f, _ in whole]))
        groups = []
        for ask, lesson in zip(asks, lessons, strict=True):
            rows = [(row, f) for f in lesson.everyone for row in f.rows or [f.episode(engine)]]
            verdicts = [f.verdict or _of_turn(row) for row, f in rows]
            groups.append(Group(ask, tuple(row for row, _ in rows), tuple(verdicts)))
        return groups

    def play(self, asks: Sequence[Ask], seeds: Sequence[int], engine: Engine) -> list[Group]:
        """Return a judged group per ask, its episodes ended at the first mismatch."""
        groups = []
        for ask, lesson in zip(asks, self._follow(asks, seeds, engine, 0, True), strict=True):
            n = len(lesson.plan)
            verdicts = [f.verdict or Verdict(f.matched / n, f.matched == n) for f in lesson.everyone]
            groups.append(Group(ask, tuple(f.episode(engine) for f in lesson.everyone), tuple(verdicts)))
        return groups

    def _follow(
        self, asks: Sequence[Ask], seeds: Sequence[int], engine: Engine, patches: int, own: bool
    ) -> list[Lesson]:
        """Return what was made of each ask; all rollouts take their t-th turn together."""
        if not can(engine, Conversing):
            raise UsageError(
                f"rollout 'semi_online': {type(engine).__name__} cannot go on from its own tokens; take hf or vllm"
            )
        lessons = []
        for k, (ask, seed) in enumerate(zip(asks, seeds, strict=True)):
            task = replace(ask.task, prompt=full_prompt(ask))
            played = Played(self.worlds, task, seed, self.attempts)
            draws = [np.random.default_rng([seed, i]) for i in range(ask.n)]
            everyone = [Following(f"{seed}/{k}/{i}", played, rng) for i, rng in enumerate(draws)]
            lessons.append(Lesson(task, played, everyone))
        try:
            for lesson in lessons:
                try:
                    lesson.begin(engine)
                except EnvironmentFailure as error:
                    lesson.fail(str(error), engine)
            t = 0
            while self._turn(lessons, t, engine, patches, own):
                t += 1
        finally:
            for lesson in lessons:
                lesson.world.close()
        for lesson in lessons:
            for f in lesson.everyone:
                f.stop = f.stop or ("eos" if f.matched == len(lesson.plan) else "limit")
        return lessons

    def _turn(self, lessons: Sequence[Lesson], t: int, engine: Any, patches: int, own: bool) -> bool:
        """Let everyone who goes on take turn t; return whether there was anyone."""
        # Who has no room left for a turn does not.
        going = [
            (lesson, f)
            for lesson in lessons
            for f in lesson.everyone
            if not f.ended and len(f.prompt) + f.length < engine.window
        ]
        if not going:
            return False
        made = [turn for [turn] in engine.generate([_request(f, self.sampling) for _, f in going])]
        patched = []
        for (lesson, f), turn in zip(going, made, strict=True):
            matched = self._matched(lesson, f, turn, t)
            last = t == len(lesson.plan) - 1
            f.matched += matched and not f.missed
            f.missed = f.missed or not matched
            f.ended = f.ended or last or (not matched and 0 <= patches <= f.patches)
            f.patches += not (matched or f.ended)
            if not f.ended and not (matched and own):
                patched.append((lesson, f))
        texts = self._patches(patched, t, engine)
        for (_, f), turn in zip(going, made, strict=True):
            if f.trajectory in texts:
                f.add(engine.encode_response(texts[f.trajectory]), None, None, own=False)
            elif turn.stop != "error":
                f.turns.append(replace(f.rows[-1].turns[0], start=f.length, end=f.length + len(turn.tokens)))
                f.add(turn.tokens, turn.logprobs, turn.entropies, own=True)
        for lesson in lessons:
            here = [(f, turn) for (of, f), turn in zip(going, made, strict=True) if of is lesson and not f.ended]
            if not here:
                continue
            try:
                lesson.seen = lesson.world.step(lesson.plan[t]).observation.messages
            except EnvironmentFailure as error:
                lesson.fail(str(error), engine)
                continue
            for f, turn in here:
                f.add(engine.bridge(lesson.seen, f.trajectory in texts or turn.stop == "eos"), None, None, own=False)
        return True

    def _matched(self, lesson: Lesson, f: Following, made: Episode, t: int) -> bool:
        """Note a turn as a row; return whether its action was the expert's."""
        if made.stop == "error":
            f.ended = True
            f.lose(str(made.meta.get("error", "generation failed")))
            return False
        calls = find_calls(made.text, f.tools, self.calls) if f.tools else ()
        try:
            found: Agreement = lesson.world.ask("compare", Action(made.text, calls), lesson.plan[t])
        except EnvironmentFailure as error:
            f.ended = True
            f.lose(str(error))
            found = Agreement(False, False, False)
        formed = found.read if self.form is None else self.form.fullmatch(made.text.strip()) is not None
        turn = Turn(
            t,
            0,
            len(made.tokens),
            reward=step_reward(found, formed),
            valid=found.read,
            reset=not found.exact,
            info={"read": found.read, "kind": found.kind, "exact": found.exact, "formed": formed},
        )
        f.rows.append(replace(made, turns=(turn,), trajectory=f.trajectory))
        return found.exact

    def _patches(self, patched: Sequence[tuple[Lesson, Following]], t: int, engine: Engine) -> dict[str, str]:
        """Return what stands in the histories in place of what was said, by the trajectory's name."""
        out = {f.trajectory: lesson.plan[t].text for lesson, f in patched}
        thoughts: dict[str, str] = {}
        if self.thought == "annotated":
            for lesson, f in patched:
                known = lesson.task.meta.get("thoughts", ())
                if t >= len(known):
                    raise RunError(
                        f"task {lesson.task.id}: meta['thoughts'] has none for step {t}; give it, or thought = \"own\""
                    )
                thoughts[f.trajectory] = str(known[t])
        elif self.thought == "own" and patched:
            prompts = [
                WHY.format(seen="\n".join(m["content"] for m in lesson.seen), action=out[f.trajectory])
                for lesson, f in patched
            ]
            asked = [
                Request(prompt, 1, self.sampling, int(f.rng.integers(2**63)))
                for prompt, (_, f) in zip(prompts, patched, strict=True)
            ]
            for (_, f), [made] in zip(patched, engine.generate(asked), strict=True):
                thoughts[f.trajectory] = re.sub(r"</?think>", "", made.text).strip()
        return out | {name: f"<think>{thought}</think>\n{out[name]}" for name, thought in thoughts.items()}


def _request(f: Following, sampling: Sampling) -> Request:
    prefix = tuple(np.concatenate(f.tokens).tolist()) if f.tokens else ()
    return Request(Tokens(f.prompt), 1, sampling, int(f.rng.integers(2**63)), prefix)


def _of_turn(row: Episode) -> Verdict:
    return Verdict.right() if row.turns[0].info["exact"] else Verdict.wrong("not the expert's action")


def sop(runs: Sequence[tuple[int, int]]) -> dict[str, float]:
    """Return semi-online performance: PG = mean of k / n, TSR = share with k = n, SOP = (PG + TSR) / 2.

    Args:
        runs: of each, the actions k before the first mismatch, and those of the expert, n.
    """
    if not runs:
        return {}
    progress, finished = float(np.mean([k / n for k, n in runs])), float(np.mean([k == n for k, n in runs]))
    return {"sop": (progress + finished) / 2, "sop/progress": progress, "sop/finished": finished}
