"""Thoughts ended by force after the step that brought the greatest progress, and answered right there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.registry import part
from assay.rollout.probed import Probed, shown
from assay.rollout.probes import CLOSED, PROBES, Probe, probes_of
from assay.rollout.single_turn import full_prompt
from assay.rollout.thinking import Judged
from assay.signals.entropy_steps import EntropySteps
from assay.signals.pattern_steps import PatternSteps
from assay.signals.steps import Steps
from assay.types import Ask, Episode, Group, Origin

CUT = "cut"
"""Key of ``episode.meta``: after how many tokens the thought was ended by force; not there where it was left whole."""


def best(probes: Sequence[Probe]) -> int | None:
    """Return the place of the greatest accuracy, the first of equals; ``None`` where none is known."""
    known = [(probe.accuracy, -k) for k, probe in enumerate(probes) if probe.scores]
    return -max(known)[1] if known else None


@part("rollout", "best_cut")
@dataclass(slots=True)
class BestCut:
    """Responses whose thought ends after the step after which answers are most often right.

    Each response is probed before its thought and after each of its steps, as :class:`assay.rollout.probed.Probed` does
    it: J_0 ... J_k. Where the greatest of these, the first of equals, is that of the whole thought, and it ended by
    itself, the response stays as it is. Else the thought is ended there by force, and ``probes`` answers are sampled
    and judged; the first right one, or without any the first, makes the response whole. All of its tokens can be
    learned from, those put in between too (origin ``TEACHER``), whose log-probabilities are not known. It keeps the
    probes up to the cut, so that its progress is J there less J_0, and has ``meta["cut"]``. A response without probes
    whose scores are known stays as it is.

    It is for imitation, ``objective = "sft"``: nobody sampled these responses as they are.

    Source: the STaR form of MRT (arXiv 2503.07572).

    Args:
        sampling, judge, more, curriculum: supplied by the run.
        inner, steps, grouped, probes, probe_tokens, end, forced, header, judged: as of ``probed``.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    more: Any = None
    curriculum: Any = None
    inner: Any = "single_turn"
    steps: Steps | PatternSteps | EntropySteps = field(default_factory=Steps)
    grouped: int = 1
    probes: int = 4
    probe_tokens: int = 512
    end: str | None = None
    forced: str | None = None
    header: str | None = None
    judged: Judged = "answer"
    _probed: Probed = field(init=False)
    _cut: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._probed = Probed(
            self.sampling,
            self.judge,
            self.more,
            self.curriculum,
            self.inner,
            self.steps,
            self.grouped,
            self.probes,
            self.probe_tokens,
            start=True,
            end=self.end,
            forced=self.forced,
            header=self.header,
            judged=self.judged,
        )

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        groups = self._probed.collect(asks, engine, rng)
        marks = self._probed.marks(engine)
        answering = replace(self.sampling, max_tokens=self.probe_tokens)
        cuts, requests = [], []
        for g, group in enumerate(groups):
            base, prompt = engine.encode(full_prompt(group.ask)), full_prompt(group.ask)
            for i, episode in enumerate(group.episodes):
                probes = probes_of(episode)
                place = best(probes)
                if place is None or (place == len(probes) - 1 and episode.meta[CLOSED]):
                    continue
                probe = probes[place]
                own = (*episode.prompt[len(base) :].tolist(), *episode.tokens[: probe.at].tolist())
                cuts.append((g, i, place))
                requests.append(
                    Request(prompt, self.probes, answering, int(rng.integers(2**63)), (*own, *probe.between))
                )
        answers = engine.generate(requests) if requests else []
        opened = [
            Group(groups[g].ask, tuple(replace(e, text=shown(e, request, marks, engine)) for e in episodes))
            for (g, _, _), request, episodes in zip(cuts, requests, answers, strict=True)
        ]
        made = [(list(group.episodes), list(group.verdicts)) for group in groups]
        for (g, i, place), group in zip(cuts, self.judge(opened) if opened else [], strict=True):
            right = [k for k, verdict in enumerate(group.verdicts) if verdict.passed]
            chosen = right[0] if right else 0
            made[g][0][i] = ended(groups[g].episodes[i], place, group.episodes[chosen], engine)
            made[g][1][i] = group.verdicts[chosen]
        self._cut = [float(CUT in e.meta) for episodes, _ in made for e in episodes]
        return [
            replace(group, episodes=tuple(episodes), verdicts=tuple(verdicts))
            for group, (episodes, verdicts) in zip(groups, made, strict=True)
        ]

    def metrics(self) -> dict[str, float]:
        """As of ``probed``; ``best_cut/cut``: the share of responses whose thought was ended by force."""
        return {**self._probed.metrics(), **({"best_cut/cut": float(np.mean(self._cut))} if self._cut else {})}


def ended(episode: Episode, place: int, answer: Episode, engine: Engine) -> Episode:
    """Return a response up to one of its probes, what was put after it, and an answer, as one."""
    probes = probes_of(episode)
    at, between = probes[place].at, probes[place].between
    size = at + len(between)
    tokens = np.concatenate([episode.tokens[:at], np.array(between, dtype=np.int64), answer.tokens])
    mask = np.concatenate([episode.mask[:at], np.ones(len(between), dtype=bool), answer.mask])
    origins = np.full(len(tokens), Origin.OWN, dtype=np.uint8)
    origins[at:size] = Origin.TEACHER
    if episode.origins is not None:
        origins[:at] = episode.origins[:at]
    logprobs = None
    if episode.logprobs is not None and answer.logprobs is not None:
        unknown = np.full(len(between), np.nan, dtype=episode.logprobs.dtype)
        logprobs = np.concatenate([episode.logprobs[:at], unknown, answer.logprobs])
    return replace(
        episode,
        tokens=tokens,
        mask=mask,
        logprobs=logprobs,
        text=engine.decode(tokens),
        stop=answer.stop,
        entropies=None,
        origins=origins,
        spans=tuple(span for span in episode.spans if span.end <= at),
        meta={**episode.meta, PROBES: probes[: place + 1], CLOSED: True, CUT: at},
    )
