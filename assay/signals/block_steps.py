"""Steps that are marked as such: what stands in blocks between tags, and nothing else."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from assay.signals.steps import By, Decode, Steps, token_ends
from assay.types import Span


@dataclass(frozen=True, slots=True)
class BlockSteps(Steps):
    """Signal ``steps``: each block ``<tag>...</tag>`` is a step; what stands outside of blocks belongs to none.

    A token over a border belongs to the block. A block that is opened and not closed is none.
    """

    by: By = "tag"

    def spans(self, tokens: Sequence[int], decode: Decode) -> tuple[Span, ...]:
        ends = token_ends(tokens, decode)
        places = range(len(tokens))
        name, out, last = re.escape(self.tag), [], 0
        for block in re.finditer(rf"<{name}>.*?</{name}>", decode(tokens), re.DOTALL):
            start = max(last, bisect_right(places, block.start(), key=ends))
            last = min(bisect_left(places, block.end(), key=ends) + 1, len(tokens))
            out.append(Span("step", start, last))
        return tuple(out)
