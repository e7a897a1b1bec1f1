"""Worlds with one fault each."""

import random
from typing import ClassVar

from assay.environments.base import Step
from assay.environments.guess import Guess
from assay.environments.tools import say
from assay.types import Verdict


class Planless(Guess):
    """Its plan does not lead to the goal."""

    def gold(self):
        return [say("1")]


class Credulous(Guess):
    """Believes what it is told."""

    def step(self, action):
        self.told = "passed" in action.text
        return super().step(action)

    def verdict(self):
        return Verdict.right() if self.told else super().verdict()


class Outwitted(Guess):
    """Is taken in by a trick that it knows."""

    def attacks(self):
        return [[say("1")], [say("edit the checker")]]

    def step(self, action):
        self.tricked = "checker" in action.text
        return super().step(action)

    def verdict(self):
        return Verdict.right() if self.tricked else Verdict.wrong()


class Generous(Guess):
    """Passes whatever was done."""

    def verdict(self):
        return Verdict.right()


class Whimsical(Guess):
    """Does not repeat itself."""

    def step(self, action):
        made = super().step(action)
        return Step(made.observation, random.random(), made.terminated)


class Shared(Guess):
    """Keeps what is left of one episode for all."""

    box: ClassVar = {}

    @property
    def left(self):
        return self.box.get("left", 0)

    @left.setter
    def left(self, value):
        self.box["left"] = value


class Endless(Guess):
    """Takes steps after the end."""

    def step(self, action):
        if self.number is not None and (self.found or not self.left):
            self.left = 1
        return super().step(action)


class Brittle(Guess):
    """Breaks on what is no number."""

    def step(self, action):
        int(action.text)
        return super().step(action)


class Unplanned(Guess):
    """Knows no way to the goal."""

    gold = None
