"""Episodes whose thoughts are corrected turn by turn: what was thought stands, and what should have been is a label."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from assay.engines.asking import judge_of
from assay.engines.base import Engine, Request, Sampling
from assay.environments.base import EnvironmentFailure, Thoughtful
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.turns.labelling import Labelling, label_of
from assay.rollout.turns.under_way import Live
from assay.types import Ask, Episode, Group, Message, Span

OPEN, CLOSE = "<think>", "</think>"
THOUGHT = "thought"
"""Kind of the spans that a turn's thought has, its tags included."""
CORRECT = """Here is what somebody thought before acting in the situation above:
{thought}

Say what a right thought is: what is to be seen, and what follows. Correct what is wrong, keep what is right, and \
reply with the thought alone."""


def thought_of(text: str) -> str | None:
    """Return the thought that a turn begins with; ``None`` where its tags are not there, once each."""
    begun = text.lstrip()
    if not begun.startswith(OPEN) or text.count(OPEN) != 1 or text.count(CLOSE) != 1:
        return None
    return begun[len(OPEN) :].partition(CLOSE)[0].strip()


@part("rollout", "corrected")
class Corrected(Labelling):
    """Plays as ``multi_turn``, and notes after every turn, as a label, the thought that would have been right there.

    A turn is ``<think>thought</think>`` and an action. A label is the corrected thought in its tags, as a response to
    all that the turn was sampled after; it says nothing of the action. The corrector is a model that is shown the
    conversation and the thought, or the environment itself, which then must be
    :class:`~assay.environments.base.Thoughtful`. Where he fails, there is no label.

    Episodes get a span of kind ``thought`` for each turn that closes one. Metrics: ``thoughts/distinct``, different
    thoughts by the number of turns; ``thoughts/formed``, the share of turns that have one.

    Args:
        environment, sampling, turns, calls, attempts: see :class:`~assay.rollout.turns.multi_turn.MultiTurn`.
        corrector: an engine or the specification of one; ``None`` for the environment.
        tokens: of a model's correction, at most.

    Raises:
        UsageError: an environment that has no thoughts; of a step, an engine of several processes.

    Source: GTR (arXiv 2503.08525).
    """

    name = "corrected"

    def __init__(
        self,
        environment: str | dict[str, Any],
        sampling: Sampling,
        turns: int = 8,
        calls: Any = "auto",
        attempts: int = 2,
        corrector: Any = None,
        tokens: int = 512,
    ):
        super().__init__(environment, sampling, turns, calls=calls, attempts=attempts)
        self.corrector = None if corrector is None else judge_of(corrector, "rollout 'corrected'")
        self.correction = Sampling(tokens, 0.0)
        if self.corrector is None and not isinstance(self.worlds.here(), Thoughtful):
            raise UsageError(
                f"rollout 'corrected': environment {self.worlds.name!r} has no thoughts of its own; name a corrector"
            )

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        groups = super().collect(asks, engine, rng)
        groups = [
            g if g.derived else replace(g, episodes=tuple(spanned(e, engine) for e in g.episodes)) for g in groups
        ]
        said = [thought_of(turn.text) for g in groups if not g.derived for e in g.episodes for turn in e.turns]
        formed = [thought for thought in said if thought is not None]
        self._metrics["thoughts/distinct"] = len(set(formed)) / max(len(said), 1)
        self._metrics["thoughts/formed"] = len(formed) / max(len(said), 1)
        return groups

    def _said(self, going: Sequence[Live], engine: Any) -> list[Episode]:
        made = super()._said(going, engine)
        if self._labels is not None:
            thought = [(live, turn) for live, turn in zip(going, made, strict=True) if turn.stop != "error"]
            for (live, _), text in zip(thought, self._corrections(thought), strict=True):
                if text is not None:
                    right = f"{OPEN}{text}{CLOSE}"
                    ids = np.asarray(engine.encode_response(right, end=False), dtype=np.int64)
                    self.note(live, label_of(live.context, ids, right))
        return made

    def _corrections(self, turns: Sequence[tuple[Live, Episode]]) -> list[str | None]:
        """Return the right thought of each turn; ``None`` where the corrector failed."""
        if self.corrector is None:
            return [_own(live) for live, _ in turns]
        asked = []
        for live, turn in turns:
            told = CORRECT.replace("{thought}", thought_of(turn.text) or turn.text)
            messages = (*live.said, Message(role="user", content=told))
            asked.append(Request(messages, 1, self.correction, int(live.rng.integers(2**63))))
        replies = [reply for [reply] in self.corrector.generate(asked)] if asked else []
        texts = [reply.text.replace(OPEN, "").replace(CLOSE, "").strip() for reply in replies]
        return [text if text and r.stop != "error" else None for text, r in zip(texts, replies, strict=True)]


def _own(live: Live) -> str | None:
    try:
        return str(live.played.ask("thought"))
    except EnvironmentFailure:
        return None


def spanned(episode: Episode, engine: Engine) -> Episode:
    """Return an episode with the spans of its turns' thoughts: each turn's tokens up to those that close one."""
    spans = []
    for turn in episode.turns:
        tokens = episode.tokens[turn.start : turn.end]
        # Whether the first k tokens close a thought is false up to some k, and true from there.
        closed = bisect_left(range(len(tokens) + 1), True, key=lambda k: CLOSE in engine.decode(tokens[:k]))
        if closed <= len(tokens):
            spans.append(Span(THOUGHT, turn.start, turn.start + closed))
    return replace(episode, spans=(*episode.spans, *spans))
