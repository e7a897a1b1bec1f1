"""What was found by asking for answers on the way through a response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.types import Episode, Verdict

PROBES = "probes"
"""Key of ``episode.meta``: a tuple of :class:`Probe`, in the order of ``at``."""

CLOSED = "closed"
"""Key of ``episode.meta``: whether the thought ended by itself."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a response would have answered after its first tokens.

    Attributes:
        at: after how many.
        between: tokens put between them and the answer.
        scores: of the answers that could be judged, each in [0, 1].
        confidence: mean over the answers of exp(- mean entropy of their tokens), in (0, 1]; ``None`` where not known.
    """

    at: int
    between: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    confidence: float | None = None

    @property
    def accuracy(self) -> float:
        """Mean score; NaN where no answer could be judged."""
        return float(np.mean(self.scores)) if self.scores else float("nan")


def confidence(answers: Sequence[Episode]) -> float | None:
    """Mean over answers of exp(- mean entropy of the distributions that their tokens were drawn from).

    ``None`` where there is no answer with tokens, or the engine reports no entropies.
    """
    known = [e.entropies for e in answers if e.entropies is not None and len(e.entropies)]
    return float(np.mean([np.exp(-np.mean(x)) for x in known])) if known else None


def scores_of(answers: Sequence[Episode], verdicts: Sequence[Verdict]) -> tuple[float, ...]:
    """Return the scores of the answers that could be judged; none where some ran out of context, as long ones do."""
    if any(answer.stop == "context" for answer in answers):
        return ()
    return tuple(verdict.score for verdict in verdicts if verdict.passed is not None)


def probes_of(episode: Episode) -> tuple[Probe, ...]:
    """Return what :class:`assay.rollout.probed.Probed` found of an episode; nothing for any other."""
    found: tuple[Probe, ...] = episode.meta.get(PROBES, ())
    return found


def measure(episodes: Sequence[Episode]) -> dict[str, float]:
    """Return what :meth:`assay.rollout.probed.Probed.metrics` says of these episodes."""
    found = [probes_of(e) for e in episodes if probes_of(e)]
    if not found:
        return {}
    places = [p for probes in found for p in probes]
    out = {
        "probes/places": len(places) / len(found),
        "probes/unknown": float(np.mean([not p.scores for p in places])),
    }
    for name, k in (("first", 0), ("last", -1)):
        known = [probes[k].accuracy for probes in found if probes[k].scores]
        if known:
            out[f"probes/{name}"] = float(np.mean(known))
    means = [np.mean([p.accuracy for p in probes if p.scores]) for probes in found if any(p.scores for p in probes)]
    return {**out, "probes/regret": 1 - float(np.mean(means))} if means else out
