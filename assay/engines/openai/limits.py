"""How much may be sent in a minute, and how long to wait before trying again."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

MINUTE = 60.0


class Window:
    """At most ``limit`` within any sixty seconds; 0 is no limit.

    What is larger than the limit by itself is let through once nothing else is in the window; it would wait for ever.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic):
        self.limit, self.clock = limit, clock
        self.sent: deque[list[float]] = deque()
        self.total = 0.0

    def delay(self, amount: float) -> float:
        """Return the seconds until ``amount`` more fits."""
        if not self.limit:
            return 0.0
        now = self.clock()
        while self.sent and self.sent[0][0] <= now - MINUTE:
            self.total -= self.sent.popleft()[1]
        over, wait = self.total + amount - self.limit, 0.0
        for when, size in self.sent:
            if over <= 0:
                break
            over -= size
            wait = when + MINUTE - now
        return wait

    def take(self, amount: float) -> list[float]:
        """Count ``amount`` from now on; return the entry that :meth:`settle` corrects."""
        entry = [self.clock(), amount]
        if self.limit:
            self.sent.append(entry)
            self.total += amount
        return entry

    def settle(self, entry: list[float], amount: float) -> None:
        """Replace what was expected of an entry by what it was."""
        if self.limit and self.sent and entry[0] >= self.sent[0][0]:
            self.total += amount - entry[1]
            entry[1] = amount


class Limiter:
    """Holds back requests, first come first served, until both limits and the server's own wish allow them.

    Args:
        requests, tokens: per minute; 0 is no limit.
        clock, sleep: time, for tests.
    """

    def __init__(
        self,
        requests: int = 0,
        tokens: int = 0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ):
        self.requests, self.tokens = Window(requests, clock), Window(tokens, clock)
        self.clock, self.sleep = clock, sleep
        self.quiet_until = 0.0
        self.turn = asyncio.Lock()

    async def admit(self, tokens: int) -> list[float]:
        """Wait until a request expected to take ``tokens`` may be sent; return its entry for :meth:`settle`."""
        async with self.turn:
            while True:
                wait = max(self.quiet_until - self.clock(), self.requests.delay(1), self.tokens.delay(tokens))
                if wait <= 0:
                    self.requests.take(1)
                    return self.tokens.take(tokens)
                await self.sleep(wait)

    def settle(self, entry: list[float], tokens: int) -> None:
        self.tokens.settle(entry, tokens)

    def quiet(self, seconds: float) -> None:
        """Send nothing for so long, since the server asked for it."""
        self.quiet_until = max(self.quiet_until, self.clock() + seconds)


def backoff(attempt: int, first: float, longest: float) -> float:
    """Return how long to wait after failure ``attempt`` (from 0): doubling, between half and all of it at random."""
    return min(longest, first * 2**attempt) * random.uniform(0.5, 1.0)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a server asks to wait, given as a number or as a date; nothing if it does not say."""
    said = headers.get("retry-after")
    if said is None:
        return None
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(said).timestamp() - time.time())
    except ValueError:
        return None
