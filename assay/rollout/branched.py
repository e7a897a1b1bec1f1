"""Thoughts that go on from a random point of a thought, and answers given right there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.probed import Probed, shown
from assay.rollout.probes import PROBES, Probe, confidence, probes_of, scores_of
from assay.rollout.single_turn import SingleTurn, full_prompt
from assay.rollout.thinking import Judged
from assay.signals.entropy_steps import EntropySteps
from assay.signals.pattern_steps import PatternSteps
from assay.signals.steps import Steps
from assay.types import Ask, Episode, Group

TERMINATED = "terminated"
"""``meta["role"]`` of an episode that was made to answer."""


@part("rollout", "branched")
@dataclass(slots=True)
class Branched:
    """Cuts a thought at random and samples ``ask.n`` episodes from there: thoughts that go on, and answers.

    A response is sampled for each ask, cut after some of its steps (none, up to all but one, all equally likely), and
    dropped. round(share n) episodes end the thought there by force and answer (``meta["role"] = "terminated"``), the
    others go on (``continued``); at least one does either. All are judged, those that go on together with what they
    go on from, which is part of their prompt. These have ``meta["probes"]``, see
    :class:`assay.rollout.probed.Probed`: where they begin, with the scores of those who answered, and after their first
    step.

    Args:
        sampling, judge: supplied by the run.
        share: see above.
        learned: whether the answers may be learned from; else they are masked.
        steps, grouped, probes, probe_tokens, end, forced, header, judged: as of ``probed``.

    Raises:
        UsageError: ``share`` outside (0, 1); while collecting, a group of one.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    share: float = 0.5
    learned: bool = False
    steps: Steps | PatternSteps | EntropySteps = field(default_factory=Steps)
    grouped: int = 1
    probes: int = 4
    probe_tokens: int = 512
    end: str | None = None
    forced: str | None = None
    header: str | None = None
    judged: Judged = "answer"
    _probed: Probed = field(init=False)
    _kept: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise UsageError(f"rollout 'branched': share {self.share:g} must be in (0, 1)")
        self._probed = Probed(
            self.sampling,
            self.judge,
            steps=self.steps,
            grouped=self.grouped,
            probes=self.probes,
            probe_tokens=self.probe_tokens,
            most=1,
            end=self.end,
            forced=self.forced,
            header=self.header,
            judged=self.judged,
        )

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        if any(ask.n < 2 for ask in asks):
            raise UsageError("rollout 'branched' needs one to go on and one to answer; set rollout.group to 2 or more")
        marks = self._probed.marks(engine)
        between = marks.after(False, engine)
        answering = replace(self.sampling, max_tokens=self.probe_tokens)
        traces = SingleTurn(self.sampling).collect([replace(ask, n=1) for ask in asks], engine, rng)
        requests: list[Request] = []
        self._kept = []
        for ask, trace in zip(asks, traces, strict=True):
            [episode] = trace.episodes
            prefix = tuple(episode.tokens[: self._cut(episode, len(between), engine, rng)].tolist())
            self._kept.append(len(prefix) / max(len(episode.tokens), 1))
            prompt, (a, b) = full_prompt(ask), rng.integers(2**63, size=2)
            ended = self._ended(ask)
            requests.append(Request(prompt, ask.n - ended, self.sampling, int(a), prefix))
            requests.append(Request(prompt, ended, answering, int(b), (*prefix, *between)))
        found = engine.generate(requests)
        groups = []
        for k, ask in enumerate(asks):
            on, off = requests[2 * k : 2 * k + 2]
            going = [self._continued(e, on, engine) for e in found[2 * k]]
            answers = [self._answered(e, shown(e, off, marks, engine)) for e in found[2 * k + 1]]
            groups.append(Group(ask, (*going, *answers)))
        judged = self._probed.probe(self.judge(groups), engine, rng, lambda e: e.meta["role"] != TERMINATED)
        return [self._begun(group, between) for group in judged]

    def metrics(self) -> dict[str, float]:
        """As of ``probed``; ``branched/kept``: mean share of a response's tokens before the cut."""
        kept = {"branched/kept": float(np.mean(self._kept))} if self._kept else {}
        return {**self._probed.metrics(), **kept}

    def _ended(self, ask: Ask) -> int:
        return min(max(round(self.share * ask.n), 1), ask.n - 1)

    def _cut(self, episode: Episode, between: int, engine: Engine, rng: np.random.Generator) -> int:
        """Draw after how many tokens to cut, where there is room for an answer."""
        spans, _, _ = self._probed.cut(episode, self._probed.marks(engine), engine)
        context = getattr(getattr(engine, "policy", None), "context", None)
        starts = [
            span.start for span in spans if context is None or len(episode.prompt) + span.start + between < context
        ]
        return int(rng.choice(starts)) if starts else 0

    def _continued(self, episode: Episode, request: Request, engine: Engine) -> Episode:
        text = engine.decode([*request.prefix, *episode.tokens.tolist()])
        return replace(episode, text=text, meta={**episode.meta, "role": "continued"})

    def _answered(self, episode: Episode, text: str) -> Episode:
        mask = episode.mask if self.learned else np.zeros(len(episode.tokens), dtype=bool)
        return replace(episode, text=text, mask=mask, meta={**episode.meta, "role": TERMINATED})

    def _begun(self, group: Group, between: tuple[int, ...]) -> Group:
        """Put what those who answered found before the probes of those who go on."""
        pairs = zip(group.episodes, group.verdicts, strict=True)
        answers, verdicts = zip(*((e, v) for e, v in pairs if e.meta["role"] == TERMINATED), strict=True)
        first = Probe(0, between, scores_of(answers, verdicts), confidence(answers))
        episodes = tuple(
            e if e.meta["role"] == TERMINATED else replace(e, meta={**e.meta, PROBES: (first, *probes_of(e))})
            for e in group.episodes
        )
        return replace(group, episodes=episodes)
