"""What asking has cost, and a budget that is not exceeded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

MILLION = 1_000_000


@dataclass(slots=True)
class Usage:
    """What an engine has asked so far.

    Attributes:
        requests: sent over the network, each attempt counted.
        retries: of these, how many repeated one that had failed.
        cached: requests answered from the disk.
        failed: requests given up; their responses are episodes with ``stop == "error"``.
        prompt_tokens, cached_tokens, completion_tokens: as the server counts them; cached tokens are among the
            prompts'.
        cost: of these tokens, in the currency of the prices.
        doubtful: what attempts that broke off may have cost beyond that, at most.
    """

    requests: int = 0
    retries: int = 0
    cached: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    doubtful: float = 0.0

    def plain(self) -> dict[str, float]:
        return asdict(self)

    def __str__(self) -> str:
        """One line: ``12 requests (2 retries), 3 from the cache, 1 failed; 840 + 96 tokens; cost 0.0021``."""
        line = f"{self.requests} requests ({self.retries} retries), {self.cached} from the cache, {self.failed} failed"
        line += f"; {self.prompt_tokens} + {self.completion_tokens} tokens; cost {self.cost:.4g}"
        return line + (f", and at most {self.doubtful:.4g} for broken answers" if self.doubtful else "")


@dataclass(frozen=True, slots=True)
class Prices:
    """Per million tokens of prompts, of responses, and of prompts the server had cached (as others if left out)."""

    prompt: float = 0.0
    completion: float = 0.0
    cached: float | None = None

    def __call__(self, prompt: int, completion: int, cached: int = 0) -> float:
        reread = self.prompt if self.cached is None else self.cached
        return ((prompt - cached) * self.prompt + cached * reread + completion * self.completion) / MILLION


class OverBudget(Exception):
    """A request might cost more than what is left."""


class Ledger:
    """Adds up usage, and lets no request start that could lead beyond the budget.

    What a request may cost at most is set aside before it is sent, and what it did cost is booked afterwards. For an
    attempt that broke off without the server's count, all that was set aside is booked: the server may have charged it.

    Args:
        prices: of tokens.
        budget: none if left out.
    """

    def __init__(self, prices: Prices, budget: float | None = None):
        self.prices, self.budget, self.usage = prices, budget, Usage()
        self.restart()

    def restart(self) -> None:
        """Nothing is open, and what waits will wait in another event loop."""
        self.held = 0.0
        self.changed = asyncio.Event()

    async def hold(self, prompt: int, completion: int) -> float:
        """Set aside what a request of at most so many tokens may cost; waits while only open requests are in the way.

        Raises:
            OverBudget: there is not as much left.
        """
        most = max(self.prices(prompt, completion), self.prices(prompt, completion, prompt))
        if self.budget is not None:
            while self.held and not self._fits(self.held + most):
                self.changed.clear()
                await self.changed.wait()
            if not self._fits(most):
                spent = self.usage.cost + self.usage.doubtful
                raise OverBudget(
                    f"{spent:.4g} of the budget of {self.budget:.4g} is spent, and this might take {most:.4g}"
                )
        self.held += most
        return most

    def _fits(self, more: float) -> bool:
        assert self.budget is not None
        return self.usage.cost + self.usage.doubtful + more <= self.budget

    def book(self, held: float, counted: Mapping[str, Any] | None) -> None:
        """Book the server's ``usage``; without one, all that was set aside."""
        if counted is None:
            self.lose(held)
            return
        prompt, completion = _count(counted, "prompt_tokens"), _count(counted, "completion_tokens")
        details = counted.get("prompt_tokens_details")
        cached = min(prompt, _count(details, "cached_tokens")) if isinstance(details, Mapping) else 0
        self.usage.prompt_tokens += prompt
        self.usage.completion_tokens += completion
        self.usage.cached_tokens += cached
        self.usage.cost += self.prices(prompt, completion, cached)
        self.free(held)

    def lose(self, held: float) -> None:
        """Book what an attempt that broke off may have cost."""
        self.usage.doubtful += held
        self.free(held)

    def free(self, held: float) -> None:
        """Give back what was set aside."""
        self.held -= held
        if self.held < 1e-12:  # rounding
            self.held = 0.0
        self.changed.set()


def _count(counted: Mapping[str, Any], name: str) -> int:
    value = counted.get(name)
    return value if isinstance(value, int) and value > 0 else 0
