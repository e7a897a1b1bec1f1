"""Verdicts on many episodes at once."""

from __future__ import annotations

from collections.abc import Sequence

from assay.types import Episode, Group, Task, Verdict
from assay.verify.base import Verifier
from assay.verify.guard import checked, judge


def judge_episodes(verifier: Verifier, pairs: Sequence[tuple[Task, Episode]]) -> list[Verdict]:
    """Return a verdict for each pair, in order; an episode whose generation failed is not judged.

    What is no verdict, or was raised, abstains with the reason: see :func:`~assay.verify.guard.judge`.

    A verifier with a ``map`` over pairs of tasks and responses, as :class:`~assay.verify.isolate.pool.VerifierPool`
    has, gets all of them together.
    """
    verdicts = [Verdict.abstain("generation failed")] * len(pairs)
    whole = [i for i, (_, episode) in enumerate(pairs) if episode.stop != "error"]
    asked = ((pairs[i][0], pairs[i][1].text) for i in whole)
    together = getattr(verifier, "map", None)
    found = map(checked, together(asked)) if together is not None else (judge(verifier, *pair) for pair in asked)
    for i, verdict in zip(whole, found, strict=True):
        verdicts[i] = verdict
    return verdicts


def judge_groups(verifier: Verifier, groups: Sequence[Group]) -> list[Group]:
    """Return the groups with a verdict per episode; those that have verdicts come back as they are."""
    open_ = [group for group in groups if not group.verdicts]
    verdicts = iter(judge_episodes(verifier, [(g.task, e) for g in open_ for e in g.episodes]))
    return [g if g.verdicts else g.judged([next(verdicts) for _ in g.episodes]) for g in groups]
