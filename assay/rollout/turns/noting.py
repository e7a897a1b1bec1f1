"""What a played turn leaves in its episode, and what a collection of them is like."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from assay.engines.base import Engine
from assay.environments.base import Step
from assay.rollout.turns.under_way import Live
from assay.types import Episode, Stop, ToolCall, Turn


def noted(
    live: Live, made: Episode, start: int, calls: Sequence[ToolCall], step: Step, over: Stop | None, engine: Engine
) -> Turn:
    """Return what is known of a turn once it has been answered."""
    placed = tuple(_placed(call, made, start, engine) for call in calls)
    return Turn(
        index=len(live.turns),
        start=start,
        end=start + len(made.tokens),
        calls=placed,
        reward=step.reward,
        verdict=step.verdict,
        state=live.state,
        next_state=step.observation.state,
        valid=step.valid and not any(call.problem for call in calls),
        error=step.error,
        tag=step.tag,
        terminated=step.terminated,
        truncated=over is not None and not step.terminated,
        info=step.info,
        text=made.text,
        reply="\n".join(message["content"] for message in step.observation.messages),
    )


def _placed(call: ToolCall, made: Episode, start: int, engine: Engine) -> ToolCall:
    """Return a call whose place is in the response's tokens: the fewest that hold all of its characters."""

    def reach(characters: int) -> int:
        """The fewest tokens whose text is longer than so many characters."""
        ids = made.tokens
        return bisect_left(range(len(ids)), True, key=lambda k: len(engine.decode(ids[: k + 1])) > characters)

    return replace(call, start=start + reach(call.start), end=start + min(reach(call.end - 1) + 1, len(made.tokens)))


def measured(episodes: Sequence[Episode]) -> dict[str, float]:
    """Return means over trajectories; those lost count for ``lost`` alone."""
    whole = [e for e in episodes if e.stop != "error"]
    out = {"environment/lost": sum(e.stop == "error" for e in episodes) / max(1, len(episodes))}
    if whole:
        turns = [turn for e in whole for turn in e.turns]
        out["environment/turns"] = len(turns) / len(whole)
        out["environment/truncated"] = sum(e.stop in ("turns", "limit", "context") for e in whole) / len(whole)
        share = [np.mean([not turn.valid for turn in e.turns]) for e in whole if e.turns]
        out["environment/invalid"] = float(np.mean(share)) if share else 0.0
        out["environment/forks"] = sum(len(e.forks) for e in whole) / len(whole)
        out["environment/calls"] = sum(len(turn.calls) for turn in turns) / len(whole)
    return out
