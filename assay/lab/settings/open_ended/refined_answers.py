"""Answers that are marked by the facts of a rubric, by a writer who can mend those that he is told of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.engines.base import Request
from assay.lab.settings.open_ended import rubric_answers
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, path_of, text_of
from assay.types import Episode


@dataclass(frozen=True, slots=True)
class Setting(rubric_answers.Setting):
    """As ``rubric_answers``, without flattery, in which a prompt may show an attempt and facts that it does not state.

    What is written then is the attempt in which each of those facts, with a chance of ``mends``, takes the place of
    words that state no fact, or one that is stated elsewhere; facts have one word. The policy's weights have no part in
    that, so that what comes of it is learned from the plain prompt or not at all.

    Args:
        mends: see above.
    """

    length: int = 3
    idle: int = 5
    flattery: bool = False
    mends: float = 0.5

    def engine(self, policy: TabularPolicy, seed: int) -> Counting:
        return Mending(policy, self, seed)


class Mending(Counting):
    """Samples paths, and mends attempts; see :class:`Setting`."""

    def __init__(self, policy: TabularPolicy, setting: Setting, seed: int):
        super().__init__(policy)
        self.setting, self.rng = setting, np.random.default_rng([seed, 31])

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        shown = [re.search(r"^\d+(?:/\d+)+$", str(r.prompt), re.MULTILINE) for r in requests]
        plain = iter(super().generate([r for r, attempt in zip(requests, shown, strict=True) if attempt is None]))
        out = []
        for request, attempt in zip(requests, shown, strict=True):
            if attempt is None:
                out.append(next(plain))
                continue
            self.sampled += request.n
            missing = [int(k) for k in re.findall(r"^states fact (\d+)$", str(request.prompt), re.MULTILINE)]
            out.append([self._mended(list(path_of(attempt[0]) or ()), missing) for _ in range(request.n)])
        return out

    def _mended(self, path: list[int], missing: Sequence[int]) -> Episode:
        for fact in missing:
            free = [t for t, word in enumerate(path) if word >= self.setting.facts or word in path[:t]]
            if free and self.rng.random() < self.setting.mends:
                path[free[0]] = fact
        tokens = np.asarray(path, dtype=np.int64)
        unknown: Any = np.full(len(path), np.nan, dtype=np.float32)
        return Episode(tokens[:0], tokens, np.ones(len(path), dtype=bool), unknown, text_of(path), "eos")
