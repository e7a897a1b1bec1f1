"""What is stored of a response beside its verdict: its answer, its likelihood, a scorer's and a chain judge's word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.engines.base import Engine
from assay.evaluate.chain_judge import ChainJudge, Rule, Votes, settle
from assay.evaluate.source import check_equal
from assay.inference.scoring.base import Scorer
from assay.records.sample import Sample
from assay.rewards.outcome.vote import vote
from assay.types import Episode, Task, Verdict
from assay.verify.answer.extract import RULES, extract
from assay.verify.kind import KindVerifier
from assay.verify.text.compare import same


@dataclass(frozen=True, slots=True)
class Detail:
    """What is found out of every response.

    Args:
        equal: when two answers of a task are one: ``same`` text or number, ``exact`` text, or by the task's own
            ``verifier``, given one as the reference.
        scorer: gives the confidence of a response; nothing where it is ``None``.
        chain: a judge of the reasoning, which is asked about responses with a right answer; or a scorer of it, asked
            about all, by whom a response is sound where it gives more than one half.
        rule: how a judge's votes are settled.
        every: ask a judge about responses with a wrong answer too.

    Raises:
        UsageError: no such ``equal``.
    """

    equal: str = "same"
    scorer: Scorer | None = None
    chain: ChainJudge | Scorer | None = None
    rule: Rule = "majority"
    every: bool = False

    def __post_init__(self) -> None:
        check_equal(self.equal)

    def add(
        self, pairs: Sequence[tuple[Task, Episode]], samples: Sequence[Sample], engine: Engine, rng: np.random.Generator
    ) -> list[Sample]:
        """Return the samples, one for each pair, with what there is to know of them."""
        many = len(pairs)
        confidence: list[float | None] = [None] * many
        sound, votes = self.sound(pairs, samples, engine, rng)
        if self.scorer is not None:
            confidence = [s.value for s in self.scorer.score(pairs, engine, rng)]
        answers: list[str | None] = [None] * many
        rows: dict[str, list[int]] = {}
        for i, (task, _) in enumerate(pairs):
            rows.setdefault(task.id, []).append(i)
        for mine in rows.values():
            found = final_answers(pairs[mine[0]][0], [pairs[i][1].text for i in mine], self.equal)
            for i, answer in zip(mine, found, strict=True):
                answers[i] = answer
        return [
            replace(
                sample,
                answer=answers[i],
                confidence=confidence[i],
                logprob=_mean(episode.logprobs, episode.mask),
                entropy=_mean(episode.entropies, episode.mask),
                sound=sound[i],
                votes=votes[i],
            )
            for i, (sample, (task, episode)) in enumerate(zip(samples, pairs, strict=True))
        ]

    def sound(
        self, pairs: Sequence[tuple[Task, Episode]], samples: Sequence[Sample], engine: Engine, rng: np.random.Generator
    ) -> tuple[list[bool | None], list[Votes]]:
        """Return whether each chain is right, and the votes that say so."""

        votes: list[Votes] = [()] * len(pairs)
        if self.chain is None:
            return [None] * len(pairs), votes
        if not isinstance(self.chain, ChainJudge):
            return [None if s.value is None else s.value > 0.5 for s in self.chain.score(pairs, engine, rng)], votes
        wanted = [i for i, s in enumerate(samples) if s.passed or (self.every and s.passed is not None)]
        asked = [(pairs[i][0].question, pairs[i][1].text) for i in wanted]
        for i, row in zip(wanted, self.chain.votes(asked, engine), strict=True):
            votes[i] = row
        return [settle(row, self.rule) for row in votes], votes


def final_answers(task: Task, responses: Sequence[str], equal: str = "same") -> list[str | None]:
    """Return the final answer of each response to a task, in the words of the first one that says the same."""
    said = [extract(text, RULES, "line") or None for text in responses]
    # Each text once: a thousand responses mostly give a few answers.
    texts = list(dict.fromkeys(a for a in said if a))
    first = {a: responses[said.index(a)] for a in texts}
    verify = KindVerifier()

    def agree(a: int, b: int) -> bool:
        if equal == "exact":
            return False
        if equal == "same":
            return same(texts[b], texts[a])
        verdict: Verdict = verify(replace(task, reference=texts[a]), first[texts[b]])
        return verdict.passed is True

    clusters = vote(texts, agree).clusters
    named = {c: texts[clusters.index(c)] for c in set(clusters)}
    label = {text: named[c] for text, c in zip(texts, clusters, strict=True)}
    return [label[a] if a else None for a in said]


def _mean(values: np.ndarray | None, mask: np.ndarray) -> float | None:
    if values is None or not mask.any():
        return None
    mean = float(values[mask].astype(np.float64).mean())
    return mean if np.isfinite(mean) else None
