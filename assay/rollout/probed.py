"""Responses probed on the way: what would each have answered had it had to stop thinking after a step?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import build, part
from assay.rollout.base import Rollout
from assay.rollout.probes import CLOSED, PROBES, Probe, confidence, measure, scores_of
from assay.rollout.single_turn import full_prompt
from assay.rollout.thinking import Judged, Marks
from assay.signals.entropy_steps import EntropySteps
from assay.signals.pattern_steps import PatternSteps
from assay.signals.steps import Steps
from assay.types import Ask, Episode, Group, Span, Verdict


@part("rollout", "probed")
@dataclass(slots=True)
class Probed:
    """Has the asks answered by another rollout, and samples ``probes`` answers after the steps of each response.

    The thought of a response, all of it where there are no marks, is cut into steps, which become its spans of kind
    ``step``. After each, thinking is ended by force, as :class:`assay.rollout.anytime.Anytime` does it, and answers
    are sampled and judged; after a thought that ended by itself only the header is put. A response that ended without
    ending its thought, or without marks at all, is its own answer after its last step. The responses come back judged,
    with ``meta["probes"]``, a tuple of :class:`assay.rollout.probes.Probe`; the answers are not learned from.

    What cannot be told has no scores: answers on which the verifier abstains; steps after which there is no room for an
    answer, or one of them ran out of context; all of a response that failed, is empty, or is under another prompt than
    its task's.

    Args:
        sampling, judge, more, curriculum: supplied by the run.
        inner: the rollout that answers the asks.
        steps: how thoughts are cut.
        grouped: so many of these are one step; the last may be fewer.
        probes: answers after a step.
        probe_tokens: longest answer.
        temperature: of the answers; that of responses if ``None``.
        start: probe before the first step too.
        last: probe after the last step.
        most: probe at the first so many places only.
        score: judge the answers; else they tell confidence alone.
        end, judged: see :class:`assay.rollout.thinking.Marks`.
        forced, header: likewise, with ``{end}`` for the end of thinking. Where ``end`` is left out and the engine has
            none, nothing is put.

    Raises:
        UsageError: a number below 1.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    more: Any = None
    curriculum: Any = None
    inner: Any = "single_turn"
    steps: Steps | PatternSteps | EntropySteps = field(default_factory=Steps)
    grouped: int = 1
    probes: int = 4
    probe_tokens: int = 128
    temperature: float | None = None
    start: bool = False
    last: bool = True
    most: int | None = None
    score: bool = True
    end: str | None = None
    forced: str | None = None
    header: str | None = None
    judged: Judged = "answer"
    _inner: Rollout = field(init=False)
    _metrics: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if min(self.grouped, self.probes, self.probe_tokens, 1 if self.most is None else self.most) < 1:
            raise UsageError("rollout 'probed': grouped, probes, probe_tokens and most must be at least 1")
        given = {"sampling": self.sampling, "judge": self.judge, "more": self.more, "curriculum": self.curriculum}
        self._inner = build("rollout", self.inner, **given)

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        return self.probe(self.judge(self._inner.collect(asks, engine, rng)), engine, rng)

    def metrics(self) -> dict[str, float]:
        """Of responses with probes, means: ``probes/places``, ``probes/first`` and ``probes/last`` accuracy.

        ``probes/regret`` is one minus the mean accuracy over the places; ``probes/unknown`` the share of places without
        scores.
        """
        return {**getattr(self._inner, "metrics", dict)(), **self._metrics}

    def marks(self, engine: Engine) -> Marks:
        """Return the texts that are put in."""
        found = Marks.of(engine, self.end, self.forced, self.header, False, self.judged)
        if not found.end and self.end is None:
            return replace(found, forced="", header="")
        texts = {name: getattr(found, name).replace("{end}", found.end) for name in ("forced", "header")}
        return replace(found, **texts)

    def probe(
        self,
        groups: Sequence[Group],
        engine: Engine,
        rng: np.random.Generator,
        which: Callable[[Episode], bool] = lambda episode: True,
    ) -> list[Group]:
        """Return judged groups with steps and probes on the episodes that ``which`` picks."""
        marks = self.marks(engine)
        context = getattr(getattr(engine, "policy", None), "context", None)

        def room(episode: Episode, at: int, between: Sequence[int]) -> bool:
            return context is None or len(episode.prompt) + at + len(between) < context

        plan: list[_Place] = []
        made: list[list[Episode]] = []
        for g, group in enumerate(groups):
            made.append(list(group.episodes))
            base = engine.encode(full_prompt(group.ask))
            for i, (episode, verdict) in enumerate(zip(group.episodes, group.verdicts, strict=True)):
                if not which(episode):
                    continue
                spans, size, complete = self.cut(episode, marks, engine)
                kept = tuple(s for s in episode.spans if s.kind != "step")
                meta = {**episode.meta, PROBES: (), CLOSED: complete}
                made[g][i] = replace(episode, spans=(*kept, *spans), meta=meta)
                if not _continues(episode.prompt, base):
                    continue
                own = complete if not marks.end else not complete and episode.stop in ("eos", "stop")
                for at in self._places(spans):
                    if own and at == size:
                        told = (verdict.score,) if verdict.passed is not None and self.score else ()
                        plan.append(_Place(g, i, Probe(at, (), told), None))
                        continue
                    between = marks.after(complete and at == size, engine)
                    prefix = (*episode.prompt[len(base) :].tolist(), *episode.tokens[:at].tolist(), *between)
                    plan.append(_Place(g, i, Probe(at, between), prefix if room(episode, at, between) else None))
        self._ask(groups, made, plan, marks, engine, rng)
        self._metrics = measure([e for episodes in made for e in episodes])
        return [replace(group, episodes=tuple(es)) for group, es in zip(groups, made, strict=True)]

    def cut(self, episode: Episode, marks: Marks, engine: Engine) -> tuple[list[Span], int, bool]:
        """Return the steps of an episode's thought, how long it is, and whether it ended by itself."""
        tokens = episode.tokens.tolist()
        size = marks.finished(tokens, engine)
        complete = size is not None if marks.end else episode.stop in ("eos", "stop")
        size = len(tokens) if size is None else size
        if episode.stop == "error" or not size:
            return [], 0, False
        entropies = None if episode.entropies is None else episode.entropies[:size]
        thought = replace(episode, tokens=episode.tokens[:size], entropies=entropies)
        ends = [span.end for span in self.steps.of(thought, engine.decode) if span.end < size]
        # The last step holds what is left, and where the thought ends is always a border.
        borders = [0, *ends[self.grouped - 1 :: self.grouped], size]
        return [Span("step", a, b) for a, b in pairwise(borders)], size, complete

    def _places(self, spans: Sequence[Span]) -> list[int]:
        """Return after how many tokens to probe."""
        ends = [span.end for span in spans]
        places = [0] * (self.start and bool(ends)) + (ends if self.last else ends[:-1])
        return places[: self.most]

    def _ask(
        self,
        groups: Sequence[Group],
        made: list[list[Episode]],
        plan: Sequence[_Place],
        marks: Marks,
        engine: Engine,
        rng: np.random.Generator,
    ) -> None:
        """Sample and judge the answers of all probes, and put the probes into the episodes' ``meta``."""
        warmth = self.sampling.temperature if self.temperature is None else self.temperature
        answering = replace(self.sampling, max_tokens=self.probe_tokens, temperature=warmth)
        requests, asked = [], []
        for k, place in enumerate(plan):
            if place.prefix is not None:
                ask = groups[place.group].ask
                prompt, seed = full_prompt(ask), int(rng.integers(2**63))
                requests.append(Request(prompt, self.probes, answering, seed, place.prefix))
                asked.append(k)
        found = engine.generate(requests) if requests else []
        answers: dict[int, list[Episode]] = {}
        for k, request, episodes in zip(asked, requests, found, strict=True):
            answers[k] = [replace(e, text=shown(e, request, marks, engine)) for e in episodes]
        verdicts = self._verdicts(groups, plan, answers) if self.score else {}
        for k, place in enumerate(plan):
            given = answers.get(k, [])
            known = scores_of(given, verdicts[k]) if k in verdicts else place.probe.scores
            probe = replace(place.probe, scores=known, confidence=confidence(given))
            episode = made[place.group][place.episode]
            meta = {**episode.meta, PROBES: (*episode.meta[PROBES], probe)}
            made[place.group][place.episode] = replace(episode, meta=meta)

    def _verdicts(
        self, groups: Sequence[Group], plan: Sequence[_Place], answers: dict[int, list[Episode]]
    ) -> dict[int, list[Verdict]]:
        """Judge all answers, those to one ask together."""
        of = [[k for k, place in enumerate(plan) if place.group == g and k in answers] for g in range(len(groups))]
        opened = [
            Group(group.ask, tuple(e for k in mine for e in answers[k])) for group, mine in zip(groups, of, strict=True)
        ]
        out: dict[int, list[Verdict]] = {}
        for mine, group in zip(of, self.judge(opened), strict=True):
            verdicts = iter(group.verdicts)
            out |= {k: [next(verdicts) for _ in answers[k]] for k in mine}
        return out


@dataclass(frozen=True, slots=True)
class _Place:
    """Where to probe which episode of which group, and what to continue; nothing where no answer is asked for."""

    group: int
    episode: int
    probe: Probe
    prefix: tuple[int, ...] | None


def _continues(prompt: np.ndarray, base: np.ndarray) -> bool:
    """Whether a prompt begins with another, so that a request for that one can stand for it."""
    return len(prompt) >= len(base) and bool((prompt[: len(base)] == base).all())


def shown(answer: Episode, request: Request, marks: Marks, engine: Engine) -> str:
    """Return what the verifier sees of an answer."""
    if marks.judged == "response":
        return engine.decode([*request.prefix, *answer.tokens.tolist()])
    return marks.header + answer.text
