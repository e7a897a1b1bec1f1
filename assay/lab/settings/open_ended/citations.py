"""Statements about a made-up country with the articles they cite, some altered so that nothing supports them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.environments.search.facts import RELATIONS, World, make_world
from assay.errors import UsageError
from assay.evaluate.citations import CitedClaim, Retrieval, check, examples, measures
from assay.verify.support.cross_encoder import CrossEncoder


@dataclass(frozen=True, slots=True)
class Setting:
    """An arm is who scores how well a passage supports a claim: ``score`` is ``encoder`` or ``overlap``.

    A claim says a fact of the country in words that no article has, and cites the article that tells it. A
    cross-encoder learns from ``train`` claims, all in order, which passage bears them (``how``, the arm's, ``soft_em``
    unless it says), against what else is found by words. Of ``test`` others, on facts that it has not seen, the share
    ``altered`` says another value of the same kind. ``overlap`` learns nothing: it is the share of the claim's words in
    the passage.

    Args:
        documents: of the corpus.
        train, test, altered: see above.
        words: of a passage.
        retrieved: documents found for a claim.
        epochs, lr, hidden: of the encoder.

    Raises:
        UsageError: an arm that is neither, or a country too small for as many claims.
    """

    documents: int = 120
    train: int = 150
    test: int = 200
    altered: float = 0.1
    words: int = 12
    retrieved: int = 4
    epochs: int = 12
    lr: float = 3e-3
    hidden: int = 32

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``flagged``, the share of altered claims among the tenth with the lowest scores; ``ranked``, the
        chance that an altered claim has a lower score than one in order; ``altered``, their share of all; ``first``,
        the share of claims in order whose own article is ranked first."""
        rng = np.random.default_rng([seed, 182])
        world = make_world(seed, self.documents)
        told = sorted(world.told)
        if len(told) < self.train + self.test:
            raise UsageError(f"setting 'citations': {len(told)} facts are told, fewer than train + test claims")
        facts = [told[i] for i in rng.permutation(len(told))[: self.train + self.test]]
        learnt = [self.claim(world, fact, False, rng) for fact in facts[: self.train]]
        fails = rng.permutation(self.test) < round(self.altered * self.test)
        asked = [self.claim(world, fact, bool(f), rng) for fact, f in zip(facts[self.train :], fails, strict=True)]
        retrieval = Retrieval(world.corpus, self.retrieved)
        scorer = self.scorer(arm, learnt, retrieval, world, seed)
        checked = check(asked, retrieval, scorer, self.words)
        low, high = ([c.score for c in checked if c.claim.fails is f] for f in (True, False))
        wins = np.mean([float(a < b) + 0.5 * (a == b) for a in low for b in high]) if low and high else 0.5
        found = measures(checked, self.retrieved)
        whole = [c.claim.source == c.ranked[0][0] for c in checked if not c.claim.fails]
        return {
            "flagged": found["flagged/fails"].value,
            "ranked": float(wins),
            "altered": found["fails"].value,
            "first": float(np.mean(whole)) if whole else 0.0,
        }

    def claim(self, world: World, fact: tuple[str, int], fails: bool, rng: np.random.Generator) -> CitedClaim:
        """Return a claim on a fact, true or altered, that cites the article on what it is of."""
        subject, r = fact
        relation, value = RELATIONS[r], world.facts[fact]
        if fails:
            value = str(rng.choice([v for v in world.kinds[relation.value] if v != value]))
        text = f"As to {subject}, the {relation.noun} is known to be {value}"
        return CitedClaim(f"{subject}/{r}", text, world.article[subject], better=world.article[subject], fails=fails)

    def scorer(
        self, arm: Mapping[str, Any], learnt: Sequence[CitedClaim], retrieval: Retrieval, world: World, seed: int
    ) -> Any:
        """Return what scores passages."""
        if arm["score"] == "overlap":
            return Overlap()
        if arm["score"] != "encoder":
            raise UsageError(f"setting 'citations': score is encoder or overlap, not {arm['score']!r}")
        taught = examples(learnt, retrieval, self.words)
        # Values are not known by heart: a word is known by its standing in both.
        texts = [text for e in taught for text in (e.claim, *e.positives, *e.negatives)]
        encoder = CrossEncoder.fresh(texts, seed, self.hidden, max_length=96)
        encoder.fit(taught, np.random.default_rng([seed, 46]), arm.get("how", "soft_em"), self.epochs, self.lr)
        return encoder


class Overlap:
    """Scores a passage by the share of the claim's words that stand in it."""

    def scores(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return the share of each pair, ``(N,)``."""
        out = []
        for claim, passage in pairs:
            said = {word.strip(".,").casefold() for word in claim.split()}
            out.append(len(said & {word.strip(".,").casefold() for word in passage.split()}) / len(said))
        return np.array(out)
