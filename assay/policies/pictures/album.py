"""Pictures among tokens: each position that a picture takes in a prompt has an id that no other picture's has.

A model's own placeholder is one and the same id for every picture, so that two prompts which differ in nothing but
their pictures would be equal. Here a position's id says whose it is: (first 45 bits of the picture's digest, a one
before them) and the position's number within the picture. So prompts are arrays of integers as ever: they are compared,
shared, kept and continued by whoever handles prompts, and only the policy knows that some ids are no words.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from jaxtyping import Int
from torch import Tensor

from assay.errors import RunError, UsageError
from assay.media import Picture
from assay.types import Prompt, pictures

PLACES = 16
"""Bits for a position within a picture."""
DIGEST = 45
"""Bits for which picture it is."""
FIRST = 1 << (DIGEST + PLACES)
"""The least id of a picture's position; words have smaller ones."""
KEPT = 2**30
"""Bytes of pictures, and of processed ones, that are kept."""


def ids(number: int, count: int) -> Int[np.ndarray, "n"]:
    """Return the ids of a picture's first ``count`` positions.

    Raises:
        UsageError: a picture of more positions than there are ids for.
    """
    if count > 1 << PLACES:
        raise UsageError(f"a picture takes {count} positions, more than {1 << PLACES}; make it smaller")
    return (number << PLACES) + np.arange(count, dtype=np.int64)


def numbers(tokens: Int[np.ndarray, "S"]) -> list[int]:
    """Return the number of each picture in a sequence, in order, once for each time that it stands there."""
    starts = tokens[(tokens >= FIRST) & (tokens & ((1 << PLACES) - 1) == 0)]
    return [int(start) >> PLACES for start in starts]


class Album:
    """The pictures that a policy has been shown.

    Args:
        process: what the model's vision tower wants of a picture, by name, as transformers' image processors say it.
    """

    def __init__(self, process: Callable[[Picture], Mapping[str, Tensor]]):
        self.process = process
        self._pictures: OrderedDict[int, tuple[Picture, bytes]] = OrderedDict()
        self._numbers: dict[Picture, int] = {}
        self._processed: OrderedDict[int, Mapping[str, Tensor]] = OrderedDict()
        self._shown = self._bytes = 0

    def number(self, picture: Picture) -> int:
        """Return the number by which a picture goes, and remember it; those of long ago are forgotten.

        Raises:
            RunError: another picture has the same number.
        """
        if picture in self._numbers:
            number = self._numbers[picture]
            self._pictures.move_to_end(number)
            return number
        digest = picture.digest
        number = 1 << DIGEST | int.from_bytes(digest[:8], "big") >> (64 - DIGEST)
        if number not in self._pictures:
            self._pictures[number] = picture, digest
            self._shown += _held(picture)
        elif self._pictures[number][1] != digest:
            raise RunError("two pictures have the same number; change a pixel of one of them")
        self._numbers[picture] = number
        while self._shown > KEPT and len(self._pictures) > 1:
            _, (old, _) = self._pictures.popitem(last=False)
            self._shown -= _held(old)
            self._numbers.pop(old, None)
        return number

    def add(self, prompts: Iterable[Prompt]) -> None:
        """Remember every picture in some prompts."""
        for prompt in prompts:
            for picture in pictures(prompt):
                self.number(picture)

    def processed(self, number: int) -> Mapping[str, Tensor]:
        """Return what the vision tower wants of a picture; as many as there is room for are kept.

        Raises:
            RunError: it was never shown.
        """
        if number in self._processed:
            self._processed.move_to_end(number)
            return self._processed[number]
        if number not in self._pictures:
            raise RunError("a prompt has a picture that this policy was never shown; its task has to be at hand")
        found = self._processed[number] = self.process(self._pictures[number][0])
        self._bytes += _size(found)
        while self._bytes > KEPT and len(self._processed) > 1:
            self._bytes -= _size(self._processed.popitem(last=False)[1])
        return found


def _held(picture: Picture) -> int:
    return len(picture.source) if isinstance(picture.source, bytes) else 0


def _size(tensors: Mapping[str, Tensor]) -> int:
    return sum(t.nbytes for t in tensors.values())
