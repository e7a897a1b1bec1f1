"""Wrong responses that begin well are cut at their first wrong step, and go on from there by another hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import Any, Literal

import numpy as np

from assay.engines.asking import filled, judge_of, shared
from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.single_turn import SingleTurn, full_prompt
from assay.signals.steps import Steps, step_texts
from assay.types import Ask, Episode, Group, Origin, Task, Verdict

Source = Literal["suffix", "step", "gold"]


@dataclass(frozen=True, slots=True)
class Cut:
    """A response to be repaired: its place in the batch, how many steps and tokens of it stay, and its steps."""

    group: int
    index: int
    steps: int
    tokens: int
    total: int


@part("rollout", "spliced")
@dataclass(slots=True)
class Spliced:
    """Sampled responses, of which wrong ones are repaired: from their first wrong step on another hand goes on.

    With p_k in [0, 1] the scores of the K steps of a wrong response, k* = min {k: p_k < threshold} is where it goes
    wrong. It is repaired if there is such a step, not the first, and k* / K >= share; of a prompt's, the ``most`` with
    the largest k* / K. What stands before k* stays as it is: the same tokens with the log-probabilities they were
    sampled with. Then comes

    - ``suffix``: what the teacher writes to the end;
    - ``step``: the teacher's next step, and from there on what the policy writes;
    - ``gold``: the task's worked solution from its step k* on.

    The teacher's tokens, the solution's too, are of origin ``TEACHER``, and their log-probabilities are not known. A
    repair that the run's verifier passes takes the place of the response, with its verdict; any other is dropped, and
    so is one that could not be made. Repaired episodes have ``meta["spliced"]``, the number of tokens that stayed.

    Args:
        sampling, judge: supplied by the run.
        prm: ``verdict``, by which p_k is the verdict's part ``step k``; or a scorer of steps, an object as
            :class:`assay.rewards.process.step_scores.StepScorer`, whose scores s are p = (1 + s) / 2. Method S068 takes
            the names of such too.
        teacher: an engine, or the specification of one; the policy itself if ``None``, whose tokens are its own.
        source: see above.
        threshold, share: see above, in [0, 1].
        most: repairs of a prompt, at least 1.
        tries: continuations of each, of which the first right one is taken; at least 1.
        steps: how responses are cut.
        template: asks a teacher in words, with ``{question}`` and ``{prefix}``, where it cannot go on from tokens (a
            server of chats).

    Raises:
        UsageError: an option out of range, or a template without ``{prefix}``.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    prm: Any = "verdict"
    teacher: Any = None
    source: Source = "suffix"
    threshold: float = 0.5
    share: float = 0.5
    most: int = 1
    tries: int = 1
    steps: Steps = field(default_factory=Steps)
    template: str | None = None
    _seen: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not (0 <= self.threshold <= 1 and 0 <= self.share <= 1) or min(self.most, self.tries) < 1:
            raise UsageError(
                f"rollout 'spliced': threshold {self.threshold:g} and share {self.share:g} must be in [0, 1], most "
                f"{self.most} and tries {self.tries} at least 1"
            )
        if self.template is not None and "{prefix}" not in self.template:
            raise UsageError("rollout 'spliced': the template does not show the teacher the {prefix}")
        if self.teacher is not None:
            self.teacher = judge_of(self.teacher, "rollout 'spliced'")
        if self.prm != "verdict" and not hasattr(self.prm, "scores"):
            raise UsageError(
                f"rollout 'spliced': prm {self.prm!r} is neither \"verdict\" nor a scorer of steps; method S068 takes "
                "the name of one: method.options.prm"
            )

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        groups = self.judge(SingleTurn(self.sampling).collect(asks, engine, rng))
        cuts = self.cuts(groups, engine)
        made = self._repaired(groups, cuts, engine, rng)
        kept = 0
        for cut, tries in zip(cuts, made, strict=True):
            group = groups[cut.group]
            [judged] = self.judge([Group(replace(group.ask, n=len(tries)), tuple(tries))]) if tries else [group]
            right = [(e, v) for e, v in zip(judged.episodes, judged.verdicts, strict=True) if v.passed] if tries else []
            if right:
                groups[cut.group] = exchanged(group, cut.index, *right[0])
                kept += 1
        self._seen = {
            "splice/cut": float(len(cuts)),
            "splice/repaired": float(kept),
            "splice/diversity": float(np.mean([diversity([e.text for e in g.episodes]) for g in groups] or [0.0])),
        }
        return groups

    def metrics(self) -> dict[str, float]:
        """``splice/cut`` responses, those ``splice/repaired``, and ``splice/diversity``, see :func:`diversity`."""
        return self._seen

    def cuts(self, groups: Sequence[Group], engine: Engine) -> list[Cut]:
        """Return which responses are repaired, and where."""
        wrong = [
            (g, i)
            for g, group in enumerate(groups)
            for i, (e, v) in enumerate(zip(group.episodes, group.verdicts, strict=True))
            if v.passed is False and e.stop != "error" and len(e.tokens)
        ]
        spans = [self.steps.of(groups[g].episodes[i], engine.decode) for g, i in wrong]
        texts = [step_texts(groups[g].episodes[i], s, engine.decode) for (g, i), s in zip(wrong, spans, strict=True)]
        found: dict[int, list[Cut]] = {}
        rows = self._scores([(groups[g].task, t) for (g, _), t in zip(wrong, texts, strict=True)], groups, wrong)
        for (g, i), parts, row in zip(wrong, spans, rows, strict=True):
            first = next((k for k, p in enumerate(row or ()) if p < self.threshold), 0)
            if first and first / len(parts) >= self.share:
                found.setdefault(g, []).append(Cut(g, i, first, parts[first].start, len(parts)))
        best = [sorted(many, key=lambda c: (-c.steps / c.total, c.index))[: self.most] for many in found.values()]
        return [cut for many in best for cut in many]

    def _scores(
        self, responses: list[tuple[Task, list[str]]], groups: Sequence[Group], wrong: Sequence[tuple[int, int]]
    ) -> list[list[float] | None]:
        """Return p of each step of each wrong response; ``None`` where there are none."""
        if self.prm == "verdict":
            said = [groups[g].verdicts[i].parts for g, i in wrong]
            rows = [[p.get(f"step {k}") for k in range(len(t))] for p, (_, t) in zip(said, responses, strict=True)]
            return [None if None in row else [float(p or 0) for p in row] for row in rows]
        found = self.prm.scores(responses) if responses else []
        return [None if row is None else [(1 + x) / 2 for x in row] for row in found]

    def _repaired(
        self, groups: Sequence[Group], cuts: Sequence[Cut], engine: Engine, rng: np.random.Generator
    ) -> list[list[Episode]]:
        """Return the repairs of each cut that could be made."""
        old = [groups[c.group].episodes[c.index] for c in cuts]
        starts = [replace(e, tokens=e.tokens[: c.tokens]) for e, c in zip(old, cuts, strict=True)]
        if self.source == "gold":
            rest = [self._gold(groups[c.group].task, c) for c in cuts]
            return [
                [joined(e, c, self._given(text, engine), engine)] if text else []
                for e, c, text in zip(old, cuts, rest, strict=True)
            ]
        asks = [groups[c.group].ask for c in cuts]
        seeds = rng.integers(2**63, size=(2, len(cuts))).tolist()
        written = self._written(asks, starts, engine, seeds[0])
        out: list[list[Episode]] = []
        for e, c, replies in zip(old, cuts, written, strict=True):
            out.append([])
            for reply in replies:
                if reply.stop == "error" or not len(reply.tokens):
                    continue
                piece = self._piece(reply, engine, self.source == "step")
                out[-1].append(joined(e, c, piece, engine, reply.stop))
        if self.source == "step":
            return [
                self._gone_on(e, c, ask, tries, engine, seed)
                for e, c, ask, tries, seed in zip(old, cuts, asks, out, seeds[1], strict=True)
            ]
        return out

    def _written(
        self, asks: Sequence[Ask], starts: Sequence[Episode], engine: Engine, seeds: Sequence[int]
    ) -> list[list[Episode]]:
        """Ask who goes on for ``tries`` continuations of each start."""
        requests = []
        for ask, start, seed in zip(asks, starts, seeds, strict=True):
            left = self.sampling.max_tokens - len(start.tokens)
            sampling, prompt = replace(self.sampling, max_tokens=left), full_prompt(ask)
            text = engine.decode(start.tokens)
            if self.teacher is not None and self.template is not None:
                asked = filled(self.template, question=ask.task.question, prefix=text)
                requests.append(Request(asked, self.tries, sampling, seed))
                continue
            tokens = start.tokens if self.teacher is None else self.teacher.encode_response(text, end=False)
            requests.append(Request(prompt, self.tries, sampling, seed, prefix=tuple(np.asarray(tokens).tolist())))
        if not requests:
            return []
        return engine.generate(requests) if self.teacher is None else shared(engine, requests, self.teacher.generate)

    def _piece(self, reply: Episode, engine: Engine, one_step: bool) -> Piece:
        """Return what was written as tokens of the policy's; of ``one_step`` the first step alone."""
        if self.teacher is None:
            piece = Piece(reply.tokens, reply.logprobs, Origin.OWN)
        else:
            piece = self._given(reply.text, engine, reply.stop in ("eos", "stop"))
        if one_step:
            first = self.steps.spans(piece.tokens.tolist(), engine.decode)[0].end
            known = None if piece.logprobs is None else piece.logprobs[:first]
            piece = Piece(piece.tokens[:first], known, piece.origin)
        return piece

    def _given(self, text: str, engine: Engine, end: bool = True) -> Piece:
        return Piece(np.asarray(engine.encode_response(text, end=end), dtype=np.int64), None, Origin.TEACHER)

    def _gold(self, task: Task, cut: Cut) -> str:
        """The worked solution from its step k* on; nothing if it has none so long."""
        text = task.solution or ""
        borders = [0, *self.steps.cuts(text), len(text)] if self.steps.by != "fixed" else [0, len(text)]
        return text[borders[cut.steps] :] if cut.steps < len(borders) - 1 else ""

    def _gone_on(
        self, old: Episode, cut: Cut, ask: Ask, tries: Sequence[Episode], engine: Engine, seed: int
    ) -> list[Episode]:
        """Let the policy go on after the teacher's step."""
        open_ = [e for e in tries if len(e.tokens) < self.sampling.max_tokens]
        prompt = full_prompt(ask)
        requests = [
            Request(
                prompt,
                1,
                replace(self.sampling, max_tokens=self.sampling.max_tokens - len(e.tokens)),
                seed ^ k,
                prefix=tuple(e.tokens.tolist()),
            )
            for k, e in enumerate(open_)
        ]
        replies = engine.generate(requests) if requests else []
        return [
            extended(e, Piece(reply.tokens, reply.logprobs, Origin.OWN), engine, reply.stop)
            for e, [reply] in zip(open_, replies, strict=True)
            if reply.stop != "error"
        ]


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens of one author; their log-probabilities if they are known."""

    tokens: np.ndarray
    logprobs: np.ndarray | None
    origin: Origin


def joined(old: Episode, cut: Cut, piece: Piece, engine: Engine, stop: Any = "eos") -> Episode:
    """Return the response that begins as the old one does up to the cut, and goes on with the piece."""
    n = cut.tokens
    fresh = replace(
        old,
        tokens=old.tokens[:n],
        mask=old.mask[:n],
        logprobs=np.full(n, np.nan, dtype=np.float32) if old.logprobs is None else old.logprobs[:n],
        origins=np.zeros(n, dtype=np.uint8) if old.origins is None else old.origins[:n],
        entropies=None,
        spans=(),
        meta={**old.meta, "spliced": n},
    )
    return extended(fresh, piece, engine, stop)


def extended(episode: Episode, piece: Piece, engine: Engine, stop: Any) -> Episode:
    """Return the response with a piece at its end."""
    many = len(piece.tokens)
    known = np.full(many, np.nan, dtype=np.float32) if piece.logprobs is None else piece.logprobs
    assert episode.logprobs is not None and episode.origins is not None
    tokens = np.concatenate([episode.tokens, piece.tokens])
    return replace(
        episode,
        tokens=tokens,
        mask=np.concatenate([episode.mask, np.ones(many, dtype=bool)]),
        logprobs=np.concatenate([episode.logprobs, known]),
        origins=np.concatenate([episode.origins, np.full(many, piece.origin, dtype=np.uint8)]),
        text=engine.decode(tokens),
        stop=stop,
    )


def exchanged(group: Group, index: int, episode: Episode, verdict: Verdict) -> Group:
    """Return the group with another response in the place of one."""
    episodes, verdicts = list(group.episodes), list(group.verdicts)
    episodes[index], verdicts[index] = episode, verdict
    return replace(group, episodes=tuple(episodes), verdicts=tuple(verdicts))


def diversity(texts: Sequence[str]) -> float:
    """Return the mean over pairs of 1 - |A and B| / |A or B|, A and B the pairs of neighbouring words of two texts.

    Texts of one word are their word; 0 without a pair, and for equal texts.
    """
    grams: list[set[Any]] = [set(pairwise(words)) or set(words) for words in (t.split() for t in texts)]
    gaps = [1 - len(a & b) / len(a | b) if a | b else 0.0 for a, b in combinations(grams, 2)]
    return float(np.mean(gaps)) if gaps else 0.0
