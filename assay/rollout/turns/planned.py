"""A demonstration of several turns: an environment is played by its own plan."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from assay.engines.base import Conversing, Engine, can
from assay.environments.base import Action, Environment, Guided
from assay.environments.calls import written
from assay.environments.played import Played
from assay.errors import UsageError
from assay.rollout.turns.under_way import Live
from assay.types import Episode, Task, Turn
from assay.verify.tool_calls.formats import Format


class Teller:
    """How a plan is shown; as it is, unless overridden."""

    def script(self, plan: Sequence[Action], rng: np.random.Generator) -> Sequence[Action]:
        """Return the actions that are shown."""
        return plan

    def tell(self, turns: Sequence[Turn], action: Action) -> Action:
        """Return an action as it is said after the turns there were."""
        return action


def planned(
    make: Callable[[], Environment],
    task: Task,
    engine: Engine,
    form: Format = "auto",
    teller: Teller = Teller(),  # noqa: B008, it has no state
) -> Episode:
    """Return the episode that follows the environment's plan for a task, as the policy would have said it.

    The plan's turns are the policy's own, each ended; what the environment says stands between them. A turn that failed
    is shown, but not to be learned. The environment's seed is of the task's id, so that a task is demonstrated in one
    way.

    Args:
        make: makes the environment.
        task: demonstrated.
        engine: of the policy: writes text as tokens.
        form: notation of the calls.
        teller: what is shown of the plan, and in which words.

    Raises:
        UsageError: the environment has no plan, or the engine cannot go on from tokens.
        EnvironmentFailure: it failed.
    """
    if not can(engine, Conversing):
        raise UsageError(f"{type(engine).__name__} cannot demonstrate several turns")
    digest = hashlib.blake2b(task.id.encode("utf-8", "replace"), digest_size=7).digest()
    played = Played(make, task, int.from_bytes(digest, "big"))
    try:
        shown = played.reset()
        if not isinstance(played.world, Guided):
            raise UsageError(f"task {task.id} has no solution and its environment no plan; set warmup.steps = 0")
        rng = np.random.default_rng(played.seed)
        live = Live(task.id, played, rng, engine.opening(shown.messages, shown.tools), stop="turns")
        for index, shown_action in enumerate(teller.script(played.world.gold(), rng)):
            action = teller.tell(live.turns, shown_action)
            text = written(action.calls, form) if action.calls and form == "python" else action.text
            if live.turns:
                live.add(engine.bridge(step.observation.messages, True), None, None, own=False)
            tokens = engine.encode_response(text)
            step = played.step(action)
            live.add(tokens, None, None, own=step.valid)
            start, end = live.length - len(tokens), live.length
            live.turns.append(
                Turn(
                    index,
                    start,
                    end,
                    action.calls,
                    valid=step.valid,
                    error=step.error,
                    terminated=step.terminated,
                    truncated=step.truncated,
                    text=text,
                )
            )
            if step.terminated or step.truncated:
                live.stop = "eos"
                break
    finally:
        played.close()
    return live.episode(engine)
