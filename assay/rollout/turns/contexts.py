"""What of an episode its next turn is sampled after: all of it, its last turns or rounds, or a summary.

Where that is not all that stands before, the episode forks (:class:`assay.types.Fork`). Nothing is sampled twice: what
a later row repeats of earlier turns is a prompt there, and no part of the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from assay.errors import UsageError
from assay.rollout.turns.under_way import Live
from assay.types import Message, pictures

Kind = Literal["whole", "window", "rounds", "summary"]
Layout = Literal["row", "turns"]

SUMMARISE = Message(
    role="user",
    content="The conversation is too long to go on. Say in a few sentences what has been done and found so far, and "
    "what is still to be done. You will go on from the task and these sentences alone.",
)
SUMMARY = "What has been done so far:\n"
THOUGHT = "</think>"


@dataclass(frozen=True, slots=True)
class Context:
    """How an episode goes on.

    A chat template that leaves out what earlier turns thought is followed in any case.

    Args:
        kind: ``whole``, all of it; ``window``, its beginning and the last ``keep`` turns; ``rounds``, the task, the
            last ``keep`` rounds of what was seen and done then, and what is seen now; ``summary``, as long as it has at
            most ``room`` tokens all of it, then its beginning and what the policy, asked for it in a turn of tag
            ``summary``, says has happened.
        layout: ``turns`` makes every turn a row of its own, after the very same tokens.
        keep, room: see ``kind``.

    Raises:
        UsageError: of another kind or layout, or ``keep`` or ``room`` below 1; ``keep`` of ``rounds`` may be 0.
    """

    kind: Kind = "whole"
    layout: Layout = "row"
    keep: int = 4
    room: int = 4096

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind) or self.layout not in get_args(Layout):
            raise UsageError(
                f"rollout 'multi_turn': context {self.kind!r} is none of {', '.join(get_args(Kind))}, or layout "
                f"{self.layout!r} none of {', '.join(get_args(Layout))}"
            )
        if min(self.keep + (self.kind == "rounds"), self.room) < 1:
            raise UsageError(f"rollout 'multi_turn': keep {self.keep} and room {self.room} must be >= 1")

    def go_on(
        self, live: Live, text: str, ended: bool, messages: Sequence[Message], engine: Any
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the bridge to the next turn, and the prompt it is sampled after where that is a row of its own.

        Args:
            live: with its last turn.
            text: of that turn, which its last token ``ended`` or not.
            messages: that came after it.
        """
        live.said += [Message(role="assistant", content=text), *messages]
        bridge = engine.bridge(messages, ended)
        live.recent.append(np.concatenate([live.tokens[-1], bridge]))
        drops = getattr(engine, "drops_thinking", lambda _: False)
        if self.kind == "summary" and live.reach + len(bridge) > self.room:
            live.summing_up = True
            bridge = engine.bridge([*messages, SUMMARISE], ended)
        elif self.kind == "rounds" and len(live.recent) > self.keep:
            shown = self.shown(live)
            live.recent = live.recent[len(live.recent) - self.keep :]
            if any(THOUGHT in m["content"] for m in shown) and drops(messages):
                return bridge, engine.opening(shown, live.tools)
            first = engine.opening(shown[: len(live.opened)], live.tools)
            return bridge, np.concatenate([first, *live.recent])
        elif THOUGHT in text and drops(messages):
            live.recent = []  # the turns before are other tokens now
            return bridge, engine.opening(live.said, live.tools)
        elif self.kind == "window" and len(live.recent) > self.keep:
            live.recent = live.recent[-self.keep :]
            return bridge, np.concatenate([live.begun, *live.recent])
        if self.layout == "turns":
            return bridge, np.concatenate([live.context, bridge])
        return bridge, None

    def shown(self, live: Live) -> Sequence[Message]:
        """Return the messages that the next turn is sampled after."""
        after = range(len(live.opened), len(live.said))
        turns = [i for i in after if live.said[i]["role"] == "assistant"]
        gone = len(turns) - self.keep
        if self.kind not in ("window", "rounds") or gone < 1:
            return live.said
        rest = live.said[turns[gone] :] if self.keep else []
        if self.kind == "window":
            return [*live.opened, *rest]
        seen = live.said[turns[gone - 1] + 1 : turns[gone] if self.keep else None]
        *before, last = live.opened
        told, question = last["content"], live.played.task.question
        # What was seen at first stands after the question, or in a message of its own.
        kept = question if told.startswith(question) else "" if before else told
        text = "\n\n".join(filter(None, [kept, *(m["content"] for m in seen)]))
        shown = pictures((*([last] if kept == told else []), *seen))
        merged: Message = {**last, "content": text}
        merged.pop("images", None)
        return [*before, {**merged, "images": shown} if shown else merged, *rest]

    def summed_up(self, live: Live, text: str, engine: Any) -> np.ndarray:
        """Return the prompt to go on from after a summary."""
        live.summing_up = False
        *before, last = live.opened
        last = {**last, "content": f"{last['content']}\n\n{SUMMARY}{text.strip()}"}
        live.said, live.recent = [*before, last], []
        live.begun = engine.opening(live.said, live.tools)
        return live.begun
