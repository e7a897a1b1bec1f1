"""The true world that a model is held against, and its steps, of which a developer may see one half."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from assay.verify.behaviour.drive import key
from assay.verify.behaviour.model import Case, Language, Model, PddlModel, PythonModel, Reply
from assay.verify.code.results import Abstain

WALKS = 6
"""Random episodes from each start."""
EFFORT = 2000
"""Steps that are taken to find a plan, and to look around each start."""


class Truth:
    """What a task's reference says: the true world as a program, where it begins, what can be done there.

    Its steps are divided: of each of the :func:`kinds` every other one, in an order that is drawn, is *visible*, and a
    tester may tell of it; the rest is *hidden*, and decides. So nothing that was told is asked again.

    Attributes:
        language, source, problems: of the world, as for :mod:`assay.verify.behaviour.model`.
        starts, actions: states, and for each the actions that are tried from it on.
        horizon: steps of an episode.
        count: hidden tests.
        effort: steps that are taken to find a plan, and to look around each start.
        seed: of what is drawn.

    Raises:
        Abstain: the reference is none, or its program does not run.
    """

    def __init__(self, reference: Mapping[str, Any]):
        try:
            self.language: Language = reference["language"]
            self.source = str(reference["source"])
            self.problems: Sequence[str] = tuple(reference.get("problems", ()))
            self.actions = [[str(a) for a in some] for some in reference["actions"]]
            self.horizon, self.count = int(reference.get("horizon", 12)), int(reference.get("hidden", 400))
            self.seed, self.effort = int(reference.get("seed", 0)), int(reference.get("effort", EFFORT))
            made = self.model(self.source, trusted=True)
            self.true: Model = made
            self.starts: list[Any] = list(reference.get("starts", ()))
            if isinstance(made, PddlModel):
                self.starts = [made.start(i) for i in range(len(self.problems))]
        except (KeyError, TypeError, ValueError) as error:
            raise Abstain(f"the reference describes no world: {error}") from None
        if self.language not in ("python", "pddl") or not self.starts or len(self.starts) != len(self.actions):
            raise Abstain("the reference describes no world: language, starts or actions are not what they have to be")

    def model(self, source: str, trusted: bool = False) -> Model:
        """Return the model that a text is, in the language of the world."""
        return PythonModel(source) if self.language == "python" else PddlModel(source, self.problems, trusted)

    @functools.cached_property
    def episodes(self) -> list[tuple[int, list[list[Any]]]]:
        """Episodes of the true world, each with the number of its start: one by plan, then random ones."""
        plans = self.driven("planned", [[s, a, self.horizon, self.effort] for s, a in self._begun()])
        walks = [
            [s, a, self.horizon, self.seed * 1009 + i * WALKS + k]
            for i, (s, a) in enumerate(self._begun())
            for k in range(WALKS)
        ]
        walked = self.driven("walk", walks)
        return [*enumerate(plans), *((i // WALKS, steps) for i, steps in enumerate(walked))]

    @functools.cached_property
    def cases(self) -> list[Case]:
        """Steps of the true world, each once: those of the episodes, and of every action in the states nearby."""
        [explored] = self.driven("explore", [[self.starts, self.actions, self.effort]])
        played = [[number, *step] for number, steps in self.episodes for step in steps]
        found: dict[tuple[str, str], Case] = {}
        for number, state, action, after, reward, done in [*played, *explored]:
            found.setdefault((key(state), action), Case(number, state, action, Reply(after, reward, done)))
        if not found:
            raise Abstain("the reference describes no world: nothing can be done in it")
        return [replace(case, kind=kind) for case, kind in zip(found.values(), kinds(found), strict=True)]

    @functools.cached_property
    def by_step(self) -> dict[tuple[str, str], Case]:
        """The cases by the key of their state and their action."""
        return {(key(case.state), case.action): case for case in self.cases}

    @functools.cached_property
    def _concealed(self) -> set[tuple[str, str]]:
        of: dict[str, list[Case]] = {}
        for case in spread(self.cases, len(self.cases), self.seed):
            of.setdefault(case.kind, []).append(case)
        return {(key(case.state), case.action) for some in of.values() for case in some[::2]}

    def hides(self, state: Any, action: str) -> bool:
        """Whether a step of the world is of the hidden half."""
        return (key(state), action) in self._concealed

    @functools.cached_property
    def visible(self) -> list[Case]:
        """What testers may tell of."""
        return [case for case in self.cases if not self.hides(case.state, case.action)]

    @functools.cached_property
    def hidden(self) -> list[Case]:
        """What decides: ``count`` of the hidden half, of every kind as many as there are."""
        return spread([case for case in self.cases if self.hides(case.state, case.action)], self.count, self.seed)

    def driven(self, name: str, calls: Sequence[Sequence[Any]]) -> list[Any]:
        """Return what is made of the true world, see :meth:`~assay.verify.behaviour.model.Model.drive`.

        Raises:
            Abstain: it fails.
        """
        made = self.true.drive(name, calls)
        if any(one is None for one in made):
            raise Abstain("the reference's program does not run")
        return made

    def _begun(self) -> list[tuple[Any, list[str]]]:
        return list(zip(self.starts, self.actions, strict=True))


def kinds(steps: Mapping[tuple[str, str], Case]) -> list[str]:
    """Return what tests of some steps, by state and action, test: the action's first word, and what comes of it.

    That is that the episode ``ends``, or the state ``changes``; or where it stays, that this is at the ``edge``, as the
    very action changes a state that is one step away; that it is ``beside``, as actions of that word change this one;
    or neither. Where a precondition is missing it shows in steps that are few among those that change nothing.
    """
    able = {where for where, case in steps.items() if case.right.after != case.state}
    verbs = {(state, _verb(action)) for state, action in able}
    near: dict[str, set[str]] = {}
    for state, action in able:
        after = key(steps[state, action].right.after)
        near.setdefault(state, set()).add(after)
        near.setdefault(after, set()).add(state)
    out = []
    for (state, action), case in steps.items():
        come = "stays"
        if case.right.done:
            come = "ends"
        elif (state, action) in able:
            come = "changes"
        elif any((other, action) in able for other in near.get(state, ())):
            come = "edge"
        elif (state, _verb(action)) in verbs:
            come = "beside"
        out.append(f"{_verb(action)} {come}")
    return out


def _verb(action: str) -> str:
    return action.strip("(").partition(" ")[0]


def spread(cases: Sequence[Case], count: int, seed: int) -> list[Case]:
    """Return ``count`` cases, or all: of each kind in turn one, in an order that is drawn."""
    of: dict[str, list[Case]] = {}
    for i in np.random.default_rng([seed, 5]).permutation(len(cases)).tolist():
        of.setdefault(cases[i].kind, []).append(cases[i])
    out: list[Case] = []
    for turn in range(max(map(len, of.values()), default=0)):
        out += [of[name][turn] for name in sorted(of) if turn < len(of[name])]
        if len(out) >= count:
            break
    return out[:count]


def truth_of(reference: Any) -> Truth:
    """Return the world of a reference; recent ones are kept with all that was played in them.

    Raises:
        Abstain: the reference is none.
    """
    if not isinstance(reference, Mapping):
        raise Abstain(f"the reference must be a mapping with a language and a source, not {reference!r:.60}")
    try:
        return _truth(json.dumps(dict(reference), sort_keys=True))
    except (TypeError, ValueError) as error:
        raise Abstain(f"the reference is no plain data: {error}") from None


@functools.lru_cache(maxsize=256)
def _truth(text: str) -> Truth:
    return Truth(json.loads(text))
