"""Turns of kinds that the policy names itself, by a tag it puts them in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.environments.base import Action
from assay.environments.tools import say
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.turns.multi_turn import MultiTurn
from assay.rollout.turns.planned import Teller, planned
from assay.types import Ask, Episode, Group, Task, Turn

META = ("planning", "explore", "reflection", "monitor")
"""Plan, look for something, think again after a failure, go on by the plan."""
THOUGHTS = {
    "planning": "First:",
    "explore": "Not found yet. Next:",
    "reflection": "It failed. Instead:",
    "monitor": "Next:",
}
"""What the scripted teacher thinks."""


@part("rollout", "tagged_turns")
class TaggedTurns(MultiTurn, Teller):
    """As ``multi_turn``; a turn keeps the form if it has one thought ``<tag>...</tag>``, and then one action.

    Its tag is the thought's. Without the form, or with an empty thought, it has none. The action is
    ``<action>...</action>``, or a call; whether it can be taken is another question.

    The environment's own plan is shown (in the warm-up) with the tags of :data:`META`, which a scripted teacher gives
    (:func:`tag_of`), and the action in ``<action>``. With ``slips`` it also shows failures, which are not learned from,
    and what is thought after them.

    Args:
        environment, sampling, turns, tokens, attempts, workers, seconds: see
            :class:`assay.rollout.turns.multi_turn.MultiTurn`.
        tags: of the kinds of thought there are.
        explores: first words of actions that look for something.
        slips: chance of a failure before each action that is shown, in [0, 1].

    Source: RLVMR (arXiv 2507.22844), the projection of its authors' code.

    Raises:
        UsageError: no tags, or ``slips`` out of range.
    """

    def __init__(
        self,
        environment: str | dict[str, Any],
        sampling: Sampling,
        tags: Sequence[str] = META,
        turns: int = 8,
        tokens: int | None = None,
        attempts: int = 2,
        workers: int = 0,
        seconds: float = 60.0,
        explores: Sequence[str] = ("go", "open", "look", "search"),
        slips: float = 0.0,
    ):
        if not tags or isinstance(tags, str) or not 0 <= slips <= 1:
            raise UsageError(f"rollout 'tagged_turns': it needs a list of tags, and slips {slips:g} in [0, 1]")
        super().__init__(
            environment, sampling, turns=turns, tokens=tokens, attempts=attempts, workers=workers, seconds=seconds
        )
        self.tags, self.explores, self.slips = tuple(tags), frozenset(explores), slips

    def play(self, asks: Sequence[Ask], seeds: Sequence[int], engine: Engine) -> list[Group]:
        return [replace(g, episodes=tuple(map(self._kinds, g.episodes))) for g in super().play(asks, seeds, engine)]

    def demonstrate(self, task: Task, engine: Engine) -> Episode:
        made = planned(self.worlds.here, task, engine, self.calls, self)
        if not made.turns[-1].terminated:  # the failures took the turns that there are
            made = planned(self.worlds.here, task, engine, self.calls, _Steady(self))
        return self._kinds(made)

    def tell(self, turns: Sequence[Turn], action: Action) -> Action:
        tag = tag_of(turns, action.text, self.explores)
        said = action.text if action.calls else f"<action>{action.text}</action>"
        return replace(action, text=f"<{tag}>{THOUGHTS[tag]}</{tag}>{said}")

    def script(self, plan: Sequence[Action], rng: np.random.Generator) -> Sequence[Action]:
        """Return the plan with what cannot be done before some of its actions."""
        out = []
        for action in plan:
            out += [say(f"{action.text} at once")] * bool(rng.random() < self.slips) + [action]
        return out

    def _kinds(self, episode: Episode) -> Episode:
        return replace(episode, turns=tuple(replace(turn, tag=self._kind(turn)) for turn in episode.turns))

    def _kind(self, turn: Turn) -> str | None:
        return formed(turn.text, self.tags, bool(turn.calls))


class _Steady(Teller):
    """Tells as another does, and shows no failures."""

    def __init__(self, other: Teller):
        self.tell = other.tell  # type: ignore[method-assign]


def formed(text: str, tags: Sequence[str], called: bool = False) -> str | None:
    """Return the tag of the one thought that stands before the one action (or a call), ``None`` without that form."""
    flags = re.DOTALL | re.IGNORECASE
    frames = [(tag, f"<{re.escape(tag)}>(.*?)</{re.escape(tag)}>") for tag in tags]
    thoughts = [(tag, found) for tag, frame in frames for found in re.finditer(frame, text, flags)]
    actions = list(re.finditer("<action>.*?</action>", text, flags))
    if len(thoughts) != 1 or not (called or len(actions) == 1):
        return None
    tag, thought = thoughts[0]
    late = bool(actions) and thought.start() > actions[0].start()
    return None if late or not re.sub("<.*?>", "", thought[1], flags=re.DOTALL).strip() else tag


def tag_of(turns: Sequence[Turn], action: str, explores: frozenset[str]) -> str:
    """Return how a scripted teacher tags the next turn, after the turns there were.

    The first plans; one after a turn that failed reflects; of the others an action that begins with one of the words
    ``explores`` looks for something, and the rest follow the plan.
    """
    if not turns:
        return "planning"
    if not turns[-1].valid:
        return "reflection"
    return "explore" if action.partition(" ")[0] in explores else "monitor"
