"""What training did to a model: the two evaluations, the two models and their weights compared, in one record."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.diagnose.change_spectrum import Spectrum
from assay.diagnose.readings import Readings
from assay.evaluate.answers import Answers, answer_entropy, answers_of
from assay.evaluate.paired import Change, PairedSamples, change, paired_samples
from assay.records.evaluation import Evaluation, ladder
from assay.records.sample import TRUNCATED, Sample
from assay.statistics.crossing import Crossing, crossing
from assay.statistics.pass_at_k import pass_curve
from assay.statistics.support import Support, SupportIntervals, least_reachable, support_curve, support_intervals

SCHEMA = "assay-diagnosis/1"
MOVED = 10
"""Tasks that are named as lost, and as gained."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A task that was lost or gained: right samples among how many, before and after, and a response of either side:
    a right one of the side that had some, the first wrong one of the other."""

    task: str
    prompt: str
    before: tuple[int, int]
    after: tuple[int, int]
    responses: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A comparison before and after training. All means are over tasks, all intervals 95%.

    Attributes:
        before, after: what is compared, in words.
        tasks: compared tasks; ``left_out`` had too few judged samples.
        k: samples per task and side that support and answers rest on.
        abstained: samples that could not be judged, before and after.
        curve: pass@k at each of ``ks``.
        crossing: where the curves cross.
        support: over tasks, within reach of ``k`` samples.
        answers: over right answers of tasks, found with ``k`` samples of each model.
        reach: expected support over tasks at each of ``ks``.
        reachable: least probability that ``k`` samples see with 95% confidence.
        measures: by name: ``score``, ``length`` (tokens), ``truncated``, ``answer_entropy`` (nats), ``answers``
            (distinct ones), ``right_answers``, ``unsure`` (p (1 - p), what a group of samples can teach), and where the
            samples have it ``token_entropy``, of the distributions that tokens were drawn from (nats): its mean over
            the tokens of a response, and of these over responses.
        lost, gained: the clearest cases.
        readings: what the models tell, where they were loaded.
        weights: by kind of matrix and over ``all``, see :func:`assay.diagnose.weight_change.by_kind`.
        spectrum: of the change of the weights.
        notes: what was not done, and why.
    """

    before: str
    after: str
    tasks: int
    left_out: int
    k: int
    abstained: tuple[int, int]
    ks: tuple[int, ...]
    curve: tuple[Change, ...]
    crossing: Crossing
    support: SupportIntervals
    answers: SupportIntervals
    reach: tuple[Support, ...]
    reachable: float
    measures: Mapping[str, Change]
    lost: tuple[Moved, ...]
    gained: tuple[Moved, ...]
    readings: Readings | None = None
    weights: Mapping[str, Mapping[str, float]] | None = None
    spectrum: Spectrum | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return the record; NaN is ``null``, an infinite k is ``"beyond"``."""
        record = {"schema": SCHEMA, **asdict(self)}
        record["crossing"]["verdict"] = self.crossing.verdict
        for name in ("support", "answers"):
            counts = record[name].pop("counts")
            record[name] = {**counts, **record[name]}
        for aid in (record["readings"] or {}).get("aids", ()):
            aid["with"] = aid.pop("with_")
        return json.dumps(_plain(record), indent=1, ensure_ascii=False)


def diagnose(
    before: Evaluation,
    after: Evaluation,
    *,
    labels: tuple[str, str] = ("before", "after"),
    readings: Readings | None = None,
    weights: Mapping[str, Mapping[str, float]] | None = None,
    spectrum: Spectrum | None = None,
    notes: Sequence[str] = (),
) -> Diagnosis:
    """Compare two evaluations of the same tasks, and keep what else is known of the two models beside them.

    Args:
        before, after: with the same tasks, and several samples of each.
        labels: how the two are called.
        readings, weights, spectrum: of the models, if they were at hand.
        notes: what was not done, and why.

    Raises:
        UsageError: different tasks, or nothing judged in both.
    """
    pairs = paired_samples(before, after)
    first, second = pairs.counts()
    ks = tuple(ladder(pairs.k))
    curves = [pass_curve(*side, ks) for side in (first, second)]
    found = [answers_of(b[: pairs.k], a[: pairs.k]) for b, a in zip(pairs.before, pairs.after, strict=True)]
    reach = [(i, *r) for i, answers in enumerate(found) for r in answers.reach()]
    hits = pairs.hits()
    return Diagnosis(
        before=labels[0],
        after=labels[1],
        tasks=len(pairs.tasks),
        left_out=pairs.left_out,
        k=pairs.k,
        abstained=pairs.abstained,
        ks=ks,
        curve=tuple(change(curves[0][:, j], curves[1][:, j], bounds=(0, 1)) for j in range(len(ks))),
        crossing=crossing(first, second, pairs.k),
        support=support_intervals(*hits),
        answers=support_intervals([r[1] for r in reach], [r[2] for r in reach], [r[0] for r in reach]),
        reach=tuple(support_curve(first, second, ks)),
        reachable=least_reachable(pairs.k),
        measures=_measures(pairs, found),
        lost=_moved(pairs, hits[0] & ~hits[1]),
        gained=_moved(pairs, ~hits[0] & hits[1]),
        readings=readings,
        weights=weights,
        spectrum=spectrum,
        notes=tuple(notes),
    )


def _measures(pairs: PairedSamples, answers: Sequence[Answers]) -> dict[str, Change]:
    def of(what: Any, bounds: tuple[float, float] | None = None) -> Change:
        sides = [[float(np.mean([what(s) for s in rows])) for rows in side] for side in (pairs.before, pairs.after)]
        return change(sides[0], sides[1], bounds)

    def told(what: Any) -> Change:
        return change([what(a.before, a) for a in answers], [what(a.after, a) for a in answers])

    n, right = zip(*pairs.counts(), strict=True)
    # p (1 - p) without bias.
    unsure = [c * (m - c) / np.maximum(m * (m - 1), 1) for m, c in zip(n, right, strict=True)]
    out = {
        "score": of(lambda s: s.score),
        "length": of(lambda s: s.length),
        "truncated": of(lambda s: s.stop in TRUNCATED, (0, 1)),
        "answer_entropy": told(lambda given, a: answer_entropy(given)),
        "answers": told(lambda given, a: float(len({g for g in given if g >= 0}))),
        "right_answers": told(lambda given, a: float(len({g for g in given if g in a.right}))),
    }
    if all(s.entropy is not None for side in (pairs.before, pairs.after) for rows in side for s in rows):
        entropies = [[_per_response(rows) for rows in side] for side in (pairs.before, pairs.after)]
        out["token_entropy"] = change(entropies[0], entropies[1])
    return out | ({"unsure": change(unsure[0], unsure[1], bounds=(0, 0.5))} if pairs.k > 1 else {})


def _per_response(rows: Sequence[Sample]) -> float:
    """Mean over a task's responses of the mean entropy of their tokens; NaN where there are no tokens."""
    known = [s.entropy or 0.0 for s in rows if s.length]
    return math.fsum(known) / len(known) if known else math.nan


def _moved(pairs: PairedSamples, which: NDArray[np.bool_]) -> tuple[Moved, ...]:
    """The tasks that moved furthest, by the difference of their rates."""
    rows = []
    for i in np.flatnonzero(which):
        b, a = pairs.before[i], pairs.after[i]
        counts = (sum(s.passed is True for s in b), len(b)), (sum(s.passed is True for s in a), len(a))
        # What is out of reach has no right sample among its first.
        shown = [next((s for s in side if s.passed is True), side[0]) for side in (b[: pairs.k], a[: pairs.k])]
        rows.append(Moved(pairs.tasks[i], b[0].prompt, *counts, (shown[0].response, shown[1].response)))
    rows.sort(key=lambda m: -abs(m.before[0] / m.before[1] - m.after[0] / m.after[1]))
    return tuple(rows[:MOVED])


def _plain(value: Any) -> Any:
    """What JSON can hold."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "beyond"
    return value
