"""A model that analyses proofs and analyses of proofs, asked more than once, and labels from what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.engines.asking import filled, judge_of, seed_of
from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.verify.proofs.analysis import score_of, spoken
from assay.verify.proofs.prompts import ANALYSE, META

Opinion = tuple[float, str]
"""A score and the analysis it ends."""


@dataclass(frozen=True, slots=True)
class ProofJudge:
    """Asks for opinions on proofs, and for opinions on these.

    Args:
        judge: an engine, or the specification of one: the verifier.
        meta: the same of the meta-verifier; the verifier itself if left out.
        max_tokens, temperature: of an opinion.

    Raises:
        UsageError: no engine.

    Source: DeepSeekMath-V2, whose verifications have up to 64k tokens.
    """

    judge: Any
    meta: Any = None
    max_tokens: int = 65_536
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.judge is None:
            raise UsageError("proofs need a judge: give an engine, such as judge = {name = ...}")
        made = judge_of(self.judge, "the judge of proofs")
        object.__setattr__(self, "judge", made)
        object.__setattr__(self, "meta", made if self.meta is None else judge_of(self.meta, "the judge of analyses"))

    def analyses(self, items: Sequence[tuple[str, str]], n: int = 1) -> list[list[Opinion]]:
        """Return the opinions on each (problem, proof) that can be read, of n."""
        prompts = [filled(ANALYSE, problem=problem, proof=proof) for problem, proof in items]
        return self._opinions(self.judge, prompts, n)

    def qualities(self, items: Sequence[tuple[str, str, str]], n: int = 1) -> list[list[float]]:
        """Return the scores of each (problem, proof, analysis) that can be read, of n."""
        prompts = [filled(META, problem=p, proof=proof, analysis=text) for p, proof, text in items]
        return [[score for score, _ in some] for some in self._opinions(self.meta, prompts, n)]

    def _opinions(self, engine: Any, prompts: Sequence[str], n: int) -> list[list[Opinion]]:
        once, sampling = list(dict.fromkeys(prompts)), Sampling(self.max_tokens, self.temperature)
        replies = engine.generate([Request(p, n, sampling, seed_of(p)) for p in once]) if once else []
        said = {}
        for prompt, some in zip(once, replies, strict=True):
            read = [(score_of(r.text), spoken(r.text)) for r in some if r.stop != "error"]
            said[prompt] = [(score, text) for score, text in read if score is not None]
        return [said[p] for p in prompts]

    def label(self, items: Sequence[tuple[str, str]], n: int = 8, m: int = 3, k: int = 2) -> list[float | None]:
        """Return :func:`label_of` each (problem, proof), by n analyses, each objection voted on m times; ``None`` too
        where no analysis, or not every vote, can be read."""
        found = self.analyses(items, n)
        objections = [(*item, text) for item, some in zip(items, found, strict=True) for s, text in some if s < 1]
        votes = iter(self.qualities(objections, m))
        rows = [[(s, [v == 1 for v in next(votes)] if s < 1 else [True] * m) for s, _ in some] for some in found]
        known = [bool(row) and all(len(voted) == m for _, voted in row) for row in rows]
        return [label_of(row, k) if whole else None for row, whole in zip(rows, known, strict=True)]


def label_of(analyses: Sequence[tuple[float, Sequence[bool]]], k: int) -> float | None:
    """Return the label that analyses of a proof come to; ``None`` where a person should look.

    An analysis with a score below 1 is valid if more than half of the votes on it say so. With k valid analyses or more
    at the lowest score it is the label; where none of those with objections is valid the label is 1.

    Args:
        analyses: score, and the votes, of each; one at least.

    Source: DeepSeekMath-V2, the automated labelling; what a majority is, is a choice.
    """
    valid = [score for score, votes in analyses if score < 1 and 2 * sum(votes) > len(votes)]
    low = min(score for score, _ in analyses)
    if low < 1 and valid.count(low) >= k:
        return low
    return None if valid else 1.0


def proof_judge_of(spec: Any) -> ProofJudge:
    """Return the judge of proofs that something stands for: itself, a table of its options, or that of an engine."""
    if isinstance(spec, ProofJudge):
        return spec
    return ProofJudge(**spec) if isinstance(spec, Mapping) and "judge" in spec else ProofJudge(spec)
