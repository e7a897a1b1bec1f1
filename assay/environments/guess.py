"""A hidden number, found by asking: the smallest world in which a turn must depend on what was seen before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.environments.base import Action, Agreement, Observation, Step
from assay.environments.tools import say
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Message, Task, Verdict


@dataclass(frozen=True, slots=True)
class GuessTasks:
    """Endless tasks ``1-16?``, each with a hidden number in its reference."""

    seed: int
    most: int
    asks: int

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        hidden = int(generator(self.seed, check_index(index, None)).integers(1, self.most + 1))
        return Task(
            id=f"guess/{self.seed}/{index}",
            prompt=f"1-{self.most}?",
            # The index tells tasks apart, so that a held-out one is not every task with its number.
            reference={"number": hidden, "index": index},
            kind="none",
            meta={"asks": self.asks},
        )


@part("environment", "guess")
class Guess:
    """A number is hidden; each guess is answered by ``higher``, ``lower`` or ``right``.

    The guess is the last whole number of a turn; a turn without one, or out of range, is invalid and counts. The
    verdict passes once the number was guessed; its score is then 1 - (guesses made before) / asks, so that sooner is
    better, and 0 otherwise. The state is the interval that is left.

    Args:
        most: the number is one of 1 to this.
        asks: guesses there are; by default as many as halving needs.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: an option out of range.
    """

    def __init__(self, most: int = 16, asks: int | None = None, seed: int = 0):
        check_seed("environment 'guess'", seed)
        if most < 2 or (asks is not None and asks < 1):
            raise UsageError(f"environment 'guess': most {most} must be at least 2, and asks {asks} at least 1")
        self.most, self.asks, self.seed = most, asks or most.bit_length(), seed
        self.number: int | None = None

    def tasks(self) -> GuessTasks:
        return GuessTasks(self.seed, self.most, self.asks)

    def reset(self, task: Task, seed: int) -> Observation:
        self.number, self.left = int(task.reference["number"]), self.asks
        self.low, self.high, self.found, self.made = 1, self.most, False, 0
        return Observation((Message(role="user", content=str(task.question)),), state=self._state())

    def step(self, action: Action) -> Step:
        if self.number is None or self.found or not self.left:
            raise RuntimeError("no episode is under way; call reset first")
        self.left -= 1
        numbers = re.findall(r"\d{1,18}", action.text)
        guess = int(numbers[-1]) if numbers else 0
        valid = 1 <= guess <= self.most
        self.found = guess == self.number
        self.made += not self.found
        reply = "right"
        if not valid:
            reply = f"a number from 1 to {self.most}"
        elif guess < self.number:
            reply, self.low = "higher", max(self.low, guess + 1)
        elif guess > self.number:
            reply, self.high = "lower", min(self.high, guess - 1)
        over = self.found or not self.left
        shown = Observation((Message(role="user", content=reply),), state=self._state())
        return Step(shown, terminated=over, valid=valid, error="" if valid else reply)

    def verdict(self) -> Verdict:
        if self.found:
            return Verdict(1 - self.made / self.asks, True)
        return Verdict.wrong(f"it was {self.number}")

    def close(self) -> None:
        self.number = None

    def state_json(self) -> Any:
        return {"low": self.low, "high": self.high, "left": self.left, "found": self.found}

    def judge(self, action: Action) -> Verdict:
        """A guess is right where it leaves as few numbers as any could, whatever the number is."""
        numbers = re.findall(r"\d{1,18}", action.text)
        guess, size = int(numbers[-1]) if numbers else 0, self.high - self.low + 1
        worst = max(guess - self.low, self.high - guess)
        return Verdict.right() if self.low <= guess <= self.high and worst <= size // 2 else Verdict.wrong()

    def compare(self, action: Action, expert: Action) -> Agreement:
        """Return how far a guess agrees with another: every number is of one kind."""
        one, two = (re.findall(r"\d{1,18}", a.text)[-1:] for a in (action, expert))
        return Agreement(bool(one), bool(one), bool(one) and int(one[0]) == int(two[0]))

    def gold(self) -> Sequence[Action]:
        """Return the guesses of halving."""
        out: list[int] = []
        low, high = self.low, self.high
        while not out or out[-1] != self.number:
            out.append((low + high) // 2)
            low, high = (out[-1] + 1, high) if out[-1] < (self.number or 0) else (low, out[-1] - 1)
        return [say(str(guess)) for guess in out]

    def _state(self) -> str:
        return f"{self.low}-{self.high}"
