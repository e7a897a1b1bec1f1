"""Right where there is an answer, and silent where there is none: each by itself, and both together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from assay.errors import UsageError
from assay.records.evaluation import Evaluation
from assay.records.sample import Sample

THERE = ("true positive", "false negative", "wrong: another is there", "unread: somebody is there")
NOBODY = ("true negative", "false positive", "unread: nobody is there")


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Shares, ``None`` where there are no such items.

    Attributes:
        answerable, unanswerable: numbers of items.
        ans: of the answerable, those answered rightly.
        attempted: of the answerable, those in which it did not abstain (1 - FA).
        ta: of the unanswerable, those in which it abstained.
        cal: of all, those answered rightly or rightly left.
        avg: the mean of ``attempted`` and ``ta``.
    """

    answerable: int
    unanswerable: int
    ans: float | None
    attempted: float | None
    ta: float | None
    cal: float
    avg: float | None


class CalibratedScores:
    """What an evaluation on tasks of kind ``persona`` comes to, as a whole and by a field of the tasks' meta.

    ``Cal = (right and not abstaining answerable + abstaining unanswerable) / N`` is the accuracy that ``assay eval``
    prints. Samples that the verifier abstained from are left out.

    Source: Omni-Persona (arXiv 2605.09996) and its authors' code.
    """

    def __call__(self, run: Evaluation) -> Calibrated:
        """Return the scores.

        Raises:
            UsageError: no sample was judged, or one by another verifier.
        """
        return self.of(run.samples)

    def of(self, samples: Sequence[Sample]) -> Calibrated:
        """Return the scores of some samples; see above."""
        counts = Counter(s.feedback for s in samples if s.passed is not None)
        if not counts or set(counts) - {*THERE, *NOBODY}:
            other = next(iter(set(counts) - {*THERE, *NOBODY}), "nothing")
            raise UsageError(f"calibrated scores are of tasks of kind 'persona'; a verdict says {other[:60]!r}")
        there, nobody = (sum(counts[name] for name in names) for names in (THERE, NOBODY))
        right, left = counts["true positive"], counts["true negative"]
        attempted = (there - counts["false negative"]) / there if there else None
        ta = left / nobody if nobody else None
        return Calibrated(
            answerable=there,
            unanswerable=nobody,
            ans=right / there if there else None,
            attempted=attempted,
            ta=ta,
            cal=(right + left) / (there + nobody),
            avg=None if attempted is None or ta is None else (attempted + ta) / 2,
        )
