"""Thoughts cut at several budgets, each followed by answers: what would it have said had it had to stop there?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.single_turn import SingleTurn, full_prompt
from assay.rollout.thinking import Marks
from assay.types import Ask, Episode, Group, Span, Verdict

Prior = Literal["linear", "uniform", "last"]


@part("rollout", "anytime")
@dataclass(slots=True)
class Anytime:
    """Samples ``ask.n`` thoughts, cuts each at every budget, and samples ``summaries`` answers from each cut.

    A thought no longer than a budget is not cut, and all budgets it fits in share its answers (as many for each). A cut
    thought is ended by force; a thought that ends the whole response without ending the thinking scores 0 from there
    on, as does an answer that ends the thinking once more. Where there are no marks, a thought that is a finished
    response is its own answer.

    Of an ask come its thoughts and their answers, judged. A thought is an episode with ``meta["role"] = "thinking"``,
    ``meta["prior"]`` P, a span of kind ``budget`` per segment, and a verdict with the mean score at budget j as part
    ``budget j`` and sum_j P_j r_j as score; it passes if more than half of its last answers do, and abstains where for
    some budget no answer was judged. An answer is an episode of its own (``role`` ``summary``), whose prompt is the cut
    thought with what was put after it, and which is compared with the answers from the same cut; with one answer per
    cut, with those of the other thoughts at the same budget.

    Source: AnytimeReasoner (arXiv 2505.13438), and its implementation for the texts put in.

    Args:
        sampling, judge: supplied by the run; ``max_tokens`` bounds a thought.
        budgets: tokens, or shares of ``max_tokens`` if the last is at most 1; rising.
        prior: P_j: ``linear`` in the budget, ``uniform``, or all on the ``last``.
        summaries: answers per budget.
        summary_tokens: longest answer.
        end, forced, header, stop, judged: see :class:`assay.rollout.thinking.Marks`.

    Raises:
        UsageError: budgets that do not rise or go beyond ``max_tokens``, or a number below 1.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    budgets: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)
    prior: Prior = "linear"
    summaries: int = 4
    summary_tokens: int = 128
    end: str | None = None
    forced: str | None = None
    header: str | None = None
    stop: bool = True
    judged: Literal["answer", "response"] = "answer"
    _metrics: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        found = self.cuts
        if not found or self.budgets[0] <= 0 or found[0] < 1 or sorted(self.budgets) != list(self.budgets):
            raise UsageError(f"rollout 'anytime': budgets {list(self.budgets)} must be positive and rise")
        if found[-1] > self.sampling.max_tokens:
            raise UsageError(
                f"rollout 'anytime': the budget of {found[-1]} tokens is above rollout.max_tokens = "
                f"{self.sampling.max_tokens}"
            )
        if self.summaries < 1 or self.summary_tokens < 1:
            raise UsageError("rollout 'anytime': summaries and summary_tokens must be at least 1")

    @property
    def cuts(self) -> list[int]:
        """The budgets in tokens."""
        whole = self.sampling.max_tokens
        shares = bool(self.budgets) and self.budgets[-1] <= 1
        return [max(1, round(b * whole)) if shares else int(b) for b in self.budgets]

    @property
    def weights(self) -> tuple[float, ...]:
        """P_j."""
        n = len(self.budgets)
        raw = {"linear": self.cuts, "uniform": [1] * n, "last": [0] * (n - 1) + [1]}[self.prior]
        return tuple(x / sum(raw) for x in raw)

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        marks = Marks.of(engine, self.end, self.forced, self.header, self.stop, self.judged)
        thought = marks.think(self.sampling, self.cuts[-1])
        thoughts = [
            [self._trace(e, marks, engine) for e in group.episodes]
            for group in SingleTurn(thought).collect(asks, engine, rng)
        ]
        answering = replace(self.sampling, max_tokens=self.summary_tokens)
        plan: list[tuple[int, int, _Cut]] = []
        requests: list[Request] = []
        for i, (ask, traces) in enumerate(zip(asks, thoughts, strict=True)):
            for g, trace in enumerate(traces):
                for cut in self._cuts_of(trace):
                    if not cut.answered:
                        continue
                    prefix = (*trace.tokens[: cut.at], *marks.after(cut.complete, engine))
                    prompt, n = full_prompt(ask), self.summaries * len(cut.budgets)
                    requests.append(Request(prompt, n, answering, int(rng.integers(2**63)), prefix))
                    plan.append((i, g, cut))
        found = engine.generate(requests) if requests else []
        tags = rng.integers(2**63, size=len(asks))
        answers: list[list[tuple[int, _Cut, Episode, bool]]] = [[] for _ in asks]
        for (i, g, cut), request, episodes in zip(plan, requests, found, strict=True):
            key = f"{tags[i]}/{cut.budgets[0]}" + (f"/{g}" if self.summaries > 1 else "")
            for episode in episodes:
                again = bool(marks.end) and marks.ends(episode.tokens.tolist(), engine)
                text = marks.header + episode.text
                if marks.judged == "response":
                    text = engine.decode([*request.prefix, *episode.tokens.tolist()])
                meta = {**episode.meta, "role": "summary", "budget": cut.budgets[0]}
                made = replace(episode, text=text, advantage_group=key, meta=meta)
                answers[i].append((g, cut, made, again))
        judged = self._judge(asks, answers, thoughts)
        self._metrics = self._measure(judged)
        return judged

    def _trace(self, episode: Episode, marks: Marks, engine: Engine) -> _Trace:
        """Cut a sampled thought where it ended, and say how."""
        tokens = episode.tokens.tolist()
        size = marks.finished(tokens, engine)
        complete = size is not None if marks.end else episode.stop in ("eos", "stop")
        size = len(tokens) if size is None else size
        spans, start = [], 0
        for s, budget in enumerate(self.cuts):
            if start < min(budget, size):
                spans.append(Span("budget", start, min(budget, size), {"index": s}))
                start = min(budget, size)
        short = replace(
            episode,
            tokens=episode.tokens[:size],
            mask=episode.mask[:size],
            logprobs=None if episode.logprobs is None else episode.logprobs[:size],
            entropies=None if episode.entropies is None else episode.entropies[:size],
            text=episode.text if size == len(tokens) else engine.decode(tokens[:size]),
            spans=(*episode.spans, *spans),
            meta={**episode.meta, "role": "thinking", "prior": self.weights},
        )
        # Without marks a finished response is its own answer; with them it ends a thought that never ended.
        own = complete and not marks.end
        lost = not complete and bool(marks.end) and episode.stop in ("eos", "stop")
        return _Trace(short, tuple(tokens[:size]), complete, own, lost)

    def _cuts_of(self, trace: _Trace) -> list[_Cut]:
        """Return where a thought is answered from, each with the budgets it stands for."""
        size = len(trace.tokens)
        places: dict[int, list[int]] = {}
        for s, budget in enumerate(self.cuts):
            places.setdefault(min(budget, size), []).append(s)
        whole = trace.complete or trace.lost or trace.own or trace.episode.stop in ("context", "error")
        out = []
        for at, budgets in places.items():
            last = at == size and whole
            answered = not last or (trace.complete and not trace.own)
            out.append(_Cut(at, tuple(budgets), last and trace.complete, answered))
        return out

    def _judge(
        self,
        asks: Sequence[Ask],
        answers: Sequence[Sequence[tuple[int, _Cut, Episode, bool]]],
        thoughts: Sequence[Sequence[_Trace]],
    ) -> list[Group]:
        """Judge the answers, and the thoughts that are their own, and give every thought its verdict."""
        out = []
        opened = [
            Group(ask, (*(e for _, _, e, _ in found), *(t.episode for t in traces if t.own)))
            for ask, found, traces in zip(asks, answers, thoughts, strict=True)
        ]
        for ask, found, traces, group in zip(asks, answers, thoughts, self.judge(opened), strict=True):
            verdicts = [
                Verdict(0.0, False, v.parts, "the answer ends the thinking again")
                if again and v.passed is not None
                else v
                for v, (_, _, _, again) in zip(group.verdicts, found, strict=False)
            ]
            own = iter(group.verdicts[len(found) :])
            thinking = []
            for g, trace in enumerate(traces):
                mine = next(own) if trace.own else None
                given = [(cut, v) for (h, cut, _, _), v in zip(found, verdicts, strict=True) if h == g]
                thinking.append(self._verdict(trace, given, mine))
            episodes = (*(t.episode for t in traces), *group.episodes[: len(found)])
            out.append(Group(ask, episodes, (*thinking, *verdicts)))
        return out

    def _verdict(self, trace: _Trace, given: Sequence[tuple[_Cut, Verdict]], own: Verdict | None) -> Verdict:
        """Return the verdict on a thought from those on its answers."""
        scores: list[float | None] = [None] * len(self.cuts)
        right: list[float] = [0.0] * len(self.cuts)
        for cut in self._cuts_of(trace):
            found = [v for c, v in given if c == cut] if cut.answered else [own] if own is not None else []
            known = [v for v in found if v.passed is not None]
            for s in cut.budgets:
                if known:
                    scores[s] = float(np.mean([v.score for v in known]))
                    right[s] = float(np.mean([bool(v.passed) for v in known]))
                elif trace.lost and not cut.answered:
                    scores[s] = 0.0
        parts = {f"budget {s}": score for s, score in enumerate(scores)}
        if None in scores:
            return Verdict(0.0, None, parts, "no answer could be judged for some budget")
        total = sum(p * s for p, s in zip(self.weights, scores, strict=True) if s is not None)
        return Verdict(total, right[-1] > 0.5, parts)

    def _measure(self, groups: Sequence[Group]) -> dict[str, float]:
        found = [
            v
            for group in groups
            for e, v in zip(group.episodes, group.verdicts, strict=True)
            if e.meta.get("role") == "thinking" and v.passed is not None
        ]
        out = {"anytime/accuracy": float(np.mean([v.score for v in found]))} if found else {}
        for s, budget in enumerate(self.cuts):
            if found:
                out[f"anytime/at {budget}"] = float(np.mean([v.parts[f"budget {s}"] for v in found]))
        return out

    def metrics(self) -> dict[str, float]:
        """``anytime/accuracy``: mean of sum_j P_j r_j over judged thoughts; ``anytime/at B``: mean score at B."""
        return self._metrics


@dataclass(frozen=True, slots=True)
class _Trace:
    """A thought: its tokens, whether it ended by itself, is its own answer, or ended the response without an answer."""

    episode: Episode
    tokens: tuple[int, ...]
    complete: bool
    own: bool
    lost: bool


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where a thought is cut, for which budgets, whether it is whole there, and whether answers are sampled from it."""

    at: int
    budgets: tuple[int, ...]
    complete: bool
    answered: bool
