"""Steps that trajectories of one task share are worth what these are worth on average; where they differ, their own."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.environments.lines import read_action
from assay.errors import UsageError
from assay.ops.turns import Turns, numbered, turns_of
from assay.registry import build, part
from assay.signals.embeddings import MINILM, Embed, embedding, unit_vectors
from assay.types import Turn


@part("credit", "salt")
@dataclass(slots=True)
class Salt:
    """A_it = mean of the advantages A_j over the trajectories j that take the same step as trajectory i in its turn t.

    A_j is what ``base`` gives to the response. A step is an edge of the group's graph of states: steps are the same if
    they lead from the same state by the same action to the same state, after the same ``window`` steps. So trajectories
    that have parted may come together again. A step of one trajectory alone keeps A_j, one of the whole group has the
    group's mean, 0 where A is centred; a trajectory that takes a step twice counts once.

    A state is what the environment calls one, else what it said last. The advantages of a step add up to what they
    were: tokens that are alike in all of its turns are moved as by ``base``; what differs within it, thoughts and
    wordings of no consequence, is moved less.

    Source: SALT (arXiv 2510.20022); that its states are the environment's, and the window 1, are choices.

    Args:
        base: a credit of whole responses, relative to their group.
        window: steps before that have to be the same; ``None`` for all from the beginning.
        same: of actions: ``action``, the tool calls, or else the line that is the action (:func:`read_action`);
            ``text``, all that was said.
        states: whether states have to be the same. Without them ``window`` has to be at least 1: an action's name alone
            says nothing, and would praise the right action at the wrong time.
        similar: actions whose embeddings have this cosine are the same too; ``None`` for equal ones alone.
        embed: see :func:`assay.signals.embeddings.embedding`; used if ``similar`` is given.

    Raises:
        UsageError: an option out of range, or a base that is not as above.
    """

    base: Any = "grpo"
    window: int | None = 1
    same: Literal["action", "text"] = "action"
    states: bool = True
    similar: float | None = None
    embed: Embed | str = MINILM

    group_relative = True
    level = "token"

    def __post_init__(self) -> None:
        self.base = build("credit", self.base)
        if self.window is not None and self.window < 0:
            raise UsageError(f"credit 'salt': window {self.window} must be at least 0")
        if not self.states and self.window == 0:
            raise UsageError("credit 'salt': without states an action's name is all there is; set window = 1 or more")
        if self.similar is not None:
            if not -1 <= self.similar <= 1:
                raise UsageError(f"credit 'salt': similar {self.similar:g} must be a cosine")
            self.embed = embedding(self.embed)
        if getattr(self.base, "level", "response") == "token" or not getattr(self.base, "group_relative", False):
            raise UsageError("credit 'salt': its base gives one advantage to a response, compared with its group's")

    @property
    def members(self) -> list[Any]:
        return [self.base]

    @property
    def needs(self) -> Any:
        return getattr(self.base, "needs", frozenset())

    @property
    def summary(self) -> dict[str, str]:
        own = getattr(self.base, "summary", {"baseline": "", "normalisation": ""})
        return {**own, "baseline": f"{own['baseline']}, mean over a step's trajectories"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        turns = turns_of(batch)
        own = turns.means(self.base(batch))
        edge = self.edges(turns, batch)
        pairs = list(zip(edge.tolist(), turns.trajectory.tolist(), turns.active.tolist(), strict=True))
        firsts = {pair: m for m, pair in reversed(list(enumerate(pairs))) if pair[2]}
        rows = torch.tensor(sorted(firsts.values()), dtype=torch.int64)
        size = int(edge.max()) + 1 if len(edge) else 0
        total = torch.zeros(size, dtype=own.dtype).index_add_(0, edge[rows], own[rows])
        count = torch.zeros(size, dtype=own.dtype).index_add_(0, edge[rows], torch.ones_like(own[rows]))
        return turns.on_tokens((total / count.clamp(min=1))[edge], batch)

    def edges(self, turns: Turns, batch: Batch) -> Tensor:
        """Return a number for each turn, equal for those that are the same step."""
        actions = self.actions(turns, batch)
        steps: list[Hashable] = []
        keys: list[Hashable] = []
        trajectory = turns.trajectory.tolist()
        begun = 0
        for m, (turn, action, group) in enumerate(zip(turns.records, actions, turns.group.tolist(), strict=True)):
            begun = m if m == 0 or trajectory[m] != trajectory[m - 1] else begun
            ends = _states(turn, batch, int(turns.sample[m])) if self.states else None
            steps.append((action, ends))
            first = begun if self.window is None else max(begun, m - self.window)
            keys.append((group, tuple(steps[first : m + 1])))
        return numbered(keys)

    def actions(self, turns: Turns, batch: Batch) -> list[Hashable]:
        """Return what each turn did, equal for the same action."""
        said: list[str] = []
        for turn, row in zip(turns.records, turns.sample.tolist(), strict=True):
            own = batch.episodes[row].tokens[turn.start : turn.end].tolist()
            whole = turn.text or json.dumps(own)
            said.append(_action(turn) if self.same == "action" and turn.text else whole)
        if self.similar is None:
            return list(said)
        known = unit_vectors(self.embed, said)  # type: ignore[arg-type]
        first: list[str] = []  # each action that is like none before it
        alike: dict[str, str] = {}
        for text in dict.fromkeys(said):
            near = [other for other in first if float(known[text] @ known[other]) >= self.similar]
            alike[text] = near[0] if near else text
            first += [] if near else [text]
        return [alike[text] for text in said]


def _action(turn: Turn) -> str:
    """Return the tool calls of a turn, or the line that is its action."""
    if turn.calls:
        return json.dumps([[call.name, call.arguments] for call in turn.calls], sort_keys=True)
    return read_action(turn.text)


def _states(turn: Turn, batch: Batch, row: int) -> Hashable:
    """Return the states before and after a turn: what the environment calls them, or else what it said."""
    episode = batch.episodes[row]
    others = [t for t in episode.turns if t.index != turn.index]
    since = max((t.end for t in others if t.end <= turn.start), default=0)
    until = min((t.start for t in others if t.start >= turn.end), default=len(episode.tokens))
    before = turn.state if turn.state is not None else tuple(episode.tokens[since : turn.start].tolist())
    after = turn.next_state if turn.next_state is not None else tuple(episode.tokens[turn.end : until].tolist())
    return before, after
