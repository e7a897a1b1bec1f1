"""A tournament in which nobody is out before a second defeat."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

Match = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Result:
    """How a tournament of n players ended.

    Attributes:
        places: of each player, 0 for the winner; those who are out in the same round share the mean of their places.
        losses: of each, two of all but the winner and, without a second final, the runner-up's second.
        matches: how many were played.
    """

    places: tuple[float, ...]
    losses: tuple[int, ...]
    matches: int


def double_elimination(n: int) -> Generator[list[Match], Sequence[bool], Result]:
    """Play n players: yields the matches of a round, is sent whether the first of each won, and returns the result.

    A round pairs those without a defeat with each other, and those with one, in the order of their numbers; the last of
    an odd number waits. When one of either kind is left they play the final, and once more if the undefeated one lost
    it. Who beats everybody wins; where the better one always wins the second best is second.

    Source: the double elimination that RM-NLHF's policies are ranked by (arXiv 2601.07349); pairing by numbers and
    shared places are choices.

    Raises:
        ValueError: no players.
    """
    if n < 1:
        raise ValueError("a tournament needs a player")
    losses, out, matches = [0] * n, list[list[int]](), 0
    while True:
        kinds = [[i for i in range(n) if losses[i] == k] for k in (0, 1)]
        if len(kinds[0]) + len(kinds[1]) == 1:
            break
        pairs = [(a, b) for some in kinds for a, b in zip(some[::2], some[1::2], strict=False)]
        if not pairs:
            pairs = [(kinds[0][0], kinds[1][0])]
        won = yield pairs
        matches += len(pairs)
        for (a, b), first in zip(pairs, won, strict=True):
            losses[b if first else a] += 1
        gone = [i for i in sorted({*(x for pair in pairs for x in pair)}) if losses[i] == 2]
        if gone:
            out.append(gone)
    [winner] = [i for i in range(n) if losses[i] < 2]
    places, next_ = [0.0] * n, 1
    for gone in reversed(out):
        for i in gone:
            places[i] = next_ + (len(gone) - 1) / 2
        next_ += len(gone)
    assert places[winner] == 0
    return Result(tuple(places), tuple(losses), matches)
