"""Responses that are items of a catalogue: the best ones by beam search, or samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.engines.trie import Trie
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.single_turn import full_prompt
from assay.signals.likelihood import text_of_reference
from assay.types import Ask, Episode, Group, Origin

RANK = "rank"
"""Key of ``episode.meta``: place of the response in its beam search, 0 for the best."""

Decode = Literal["beam", "sample", "distinct"]


@part("rollout", "catalogue")
@dataclass(slots=True)
class Catalogue:
    """Every response is an item of a catalogue: each next token is one that continues some item.

    ``beam``: the G items that a beam search of width G finds, best first, all different; ``meta["rank"]`` says which.
    ``sample``: G samples. ``distinct``: of int(1.5 G) samples G are kept: right ones, then each other item once, the
    most frequent first, then items again. Log-probabilities are always those of the whole vocabulary, as the trainer
    computes them, so neither beams nor what is kept of samples follows the policy: an intended bias.

    Source: ReRe (authors' code); see :func:`assay.papers.rewards.s061_rere.rere`.

    Args:
        sampling, judge: supplied by the run.
        items: texts, or a file with one per line; without them a response may be anything.
        decode: see above.
        add_target: where the task's reference is in the catalogue but not among the responses, it takes the place of
            the last. Its author is a teacher.

    Raises:
        UsageError: no such file, no items, or settings that sampling alone has (top_p, top_k, stop strings); when
            collecting, an item longer than the longest response, or a group larger than the catalogue.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    items: Sequence[str] | Path | None = None
    decode: Decode = "beam"
    add_target: bool = False
    _texts: list[str] | None = field(default=None, init=False)
    _known: tuple[Engine, Trie] | None = field(default=None, init=False)
    _seen: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._texts = None if self.items is None else texts_of(self.items)
        if self.decode == "distinct" and self._texts is None:
            raise UsageError("rollout 'catalogue': decode = 'distinct' needs items")

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        within = self.within(engine)
        most = max((ask.n for ask in asks), default=0)
        if within is not None and self.decode == "beam" and most > len(within):
            raise UsageError(f"rollout 'catalogue': {len(within)} items cannot fill a group of {most}")
        counts = [int(1.5 * ask.n) if self.decode == "distinct" else ask.n for ask in asks]
        requests = [
            Request(
                full_prompt(ask),
                n,
                self.sampling,
                int(seed),
                within=within,
                beam=self.decode == "beam",
            )
            for ask, n, seed in zip(asks, counts, rng.integers(2**63, size=len(asks)), strict=True)
        ]
        found = [tuple(episodes) for episodes in engine.generate(requests)]
        if self.decode == "beam":
            found = [tuple(replace(e, meta={**e.meta, RANK: k}) for k, e in enumerate(group)) for group in found]
        groups = [Group(ask, group) for ask, group in zip(asks, found, strict=True)]
        if self.decode == "distinct":
            groups = [kept(group) for group in self.judge(groups)]
        if self.add_target:
            groups = [self._with_target(group, engine, within) for group in groups]
        groups = self.judge(groups)
        self._seen = hits(groups)
        return groups

    def within(self, engine: Engine) -> Trie | None:
        """Return the items as the engine's tokens, each with the end token.

        Raises:
            UsageError: an item is longer than the longest response.
        """
        if self._texts is None:
            return None
        if self._known is None or self._known[0] is not engine:
            self._known = engine, Trie(engine.encode_response(text) for text in self._texts)
        within = self._known[1]
        if within.depth > self.sampling.max_tokens:
            raise UsageError(
                f"rollout 'catalogue': an item has {within.depth} tokens, a response at most "
                f"{self.sampling.max_tokens}; raise rollout.max_tokens"
            )
        return within

    def metrics(self) -> dict[str, float]:
        """See :func:`hits`: ``catalogue/found``, and with beams ``catalogue/ndcg``."""
        return self._seen

    def _with_target(self, group: Group, engine: Engine, within: Trie | None) -> Group:
        text = text_of_reference(group.task)
        if not text or not group.episodes:
            return group
        tokens = engine.encode_response(text)
        if (within is not None and tokens not in within) or any(
            np.array_equal(e.tokens, tokens) for e in group.episodes
        ):
            return group
        last = group.episodes[-1]
        target = Episode(
            prompt=last.prompt,
            tokens=tokens,
            mask=np.ones(len(tokens), dtype=bool),
            logprobs=None,
            text=engine.decode(tokens),
            stop="eos",
            origins=np.full(len(tokens), Origin.TEACHER, dtype=np.uint8),
            meta=last.meta,
        )
        return Group(group.ask, (*group.episodes[:-1], target))


def texts_of(items: Sequence[str] | Path) -> list[str]:
    """Return the items of a catalogue; raise UsageError if there are none."""
    if isinstance(items, str | Path):
        path = Path(items)
        if not path.is_file():
            raise UsageError(f"rollout 'catalogue': no file {path}")
        items = path.read_text(encoding="utf-8").splitlines()
    texts = list(dict.fromkeys(text for text in items if text.strip()))
    if not texts:
        raise UsageError("rollout 'catalogue' has no items")
    return texts


def kept(group: Group) -> Group:
    """Return the ``ask.n`` episodes that ``distinct`` keeps of a judged group, see :class:`Catalogue`."""
    right = [i for i, v in enumerate(group.verdicts) if v.passed]
    others = [i for i, v in enumerate(group.verdicts) if not v.passed]
    texts = [e.text for e in group.episodes]
    counts = Counter(texts[i] for i in others)
    seen: Counter[str] = Counter()
    keys = {}
    for i in others:
        # Each round takes one of every item that is left.
        keys[i] = seen[texts[i]], -counts[texts[i]], texts.index(texts[i])
        seen[texts[i]] += 1
    others.sort(key=keys.__getitem__)
    chosen = [*right, *others][: group.ask.n]
    return Group(group.ask, tuple(group.episodes[i] for i in chosen), tuple(group.verdicts[i] for i in chosen))


def hits(groups: Sequence[Group], k: int | None = None) -> dict[str, float]:
    """Return how judged groups fare as recommendations of one right item each.

    ``catalogue/found``, the hit ratio: the share of groups with a right item among the first ``k`` (all if left out);
    and if they are ranked, ``catalogue/ndcg``: the mean of 1 / log2(rank + 2) of the first right item, 0 without one.
    Empty for no groups.
    """
    if not groups:
        return {}
    first = [next((i for i, v in enumerate(group.verdicts[:k]) if v.passed), None) for group in groups]
    out = {"catalogue/found": float(np.mean([place is not None for place in first]))}
    if all(RANK in e.meta for group in groups for e in group.episodes):
        out["catalogue/ndcg"] = float(np.mean([0.0 if place is None else 1 / np.log2(place + 2) for place in first]))
    return out
