"""Whether the source that a response cites is the one which supports the claim, as a cross-encoder sees it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.place import Marked
from assay.verify.grounding.claims import RULES, cited_in
from assay.verify.support.cross_encoder import CrossEncoder
from assay.verify.support.passages import WORDS, passages_of
from assay.verify.text.exact import shorten


@part("verify", "supported")
class Supported(Marked):
    """Right iff of the sources offered no other supports the claim better than what is cited.

        S(source) = max over its passages of s(claim, passage);   score = e^{S(cited)} / sum over sources of e^S

    ``task.reference`` is ``{"claim": ..., "sources": {id: text}}``. The last ``<answer>`` of a response is read, which
    cites a source as ``[[id]]``; of several the one supporting least counts, so that citing all is no way out. A
    response that cites nothing, or what was not offered, is wrong. The scores of an encoder that learned to rank say
    which source is better, not whether one is good enough: hence the comparison.

    Args:
        model: folder of a cross-encoder, as ``assay citations train`` writes it.
        words: of a passage.

    Raises:
        UsageError: no such model.

    Source: the verification engine of SIDE (arXiv 2207.06220).
    """

    def __init__(self, model: str | Path, words: int = WORDS):
        self.encoder, self.words = CrossEncoder(model), words

    @property
    def rules(self) -> tuple[str, ...]:
        return RULES

    @property
    def fallback(self) -> Any:
        return "none"

    def __call__(self, task: Task, response: str) -> Verdict:
        known = task.reference
        sources = known.get("sources") if isinstance(known, Mapping) else None
        if not isinstance(sources, Mapping) or not sources or not isinstance(known.get("claim"), str):
            return Verdict.abstain(
                f"task {task.id}: reference is not {{'claim': ..., 'sources': {{id: text}}}}", "tests"
            )
        cited = cited_in(response)
        if not cited:
            return Verdict.wrong("cites no source")
        if missing := cited - set(sources):
            return Verdict.wrong(f"cites {shorten(', '.join(sorted(missing)))}, which is none of the sources")
        found = document_scores(self.encoder, known["claim"], {k: str(v) for k, v in sources.items()}, self.words)
        least = min(found[name] for name in cited)
        share = float(np.exp(least - np.logaddexp.reduce(list(found.values()))))
        better = [name for name, score in found.items() if score > least]
        return Verdict(share, not better, {}, f"{shorten(better[0])} supports it better" if better else "")


def document_scores(
    encoder: CrossEncoder, claim: str, sources: Mapping[str, str], words: int = WORDS, titles: Mapping[str, str] = {}
) -> dict[str, float]:
    """Return by source the largest score of its passages."""
    pairs = [(name, p) for name, text in sources.items() for p in passages_of(text, titles.get(name, ""), words)]
    scores = encoder.scores([(claim, p) for _, p in pairs])
    out: dict[str, float] = {}
    for (name, _), score in zip(pairs, scores.tolist(), strict=True):
        out[name] = max(score, out.get(name, score))
    return out
