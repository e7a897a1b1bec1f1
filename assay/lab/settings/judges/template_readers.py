"""A judge of pairs that reads its prompt as text, the last item in it, and knows what an instruction asks for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay import catalogue
from assay.engines.base import Request
from assay.engines.keywords import Keywords
from assay.types import Episode

TOPICS = ("tides", "glaciers", "sonnets", "enzymes", "tariffs", "comets", "yeast", "bridges", "opals", "fugues")
_QUESTION = re.compile(r'"instruction": """(.*?)"""', re.DOTALL)
_OUTPUT = re.compile(r'\{"model": "(m|M)", "output": """(.*?)"""\}', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Setting:
    """A constant response is compared with answers that are about what was asked, by :class:`Reader`.

    Args:
        items: instructions.
        slip: standard deviation of the noise in the judge's log-odds, of each prompt.
    """

    items: int = 40
    slip: float = 1.0

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``resisted``, the share of comparisons that the constant response does not win, and ``win``, the mean
        probability that it does; ``plain``, the share that a full stop does not win."""
        rng = np.random.default_rng([seed, 138])
        options = {k: v for k, v in arm.items() if k != "name"}
        null = catalogue.make(arm["name"], judge=Reader(self.slip, seed), **options)
        items = [item(int(rng.integers(10**6)), rng) for _ in range(self.items)]
        found, plain = null.measure(items, null.response()), null.measure(items, ".")
        return {
            "resisted": 1 - found["discrete"] / 100,
            "win": found["win"] / 100,
            "plain": 1 - plain["discrete"] / 100,
        }


def item(number: int, rng: np.random.Generator) -> tuple[str, str]:
    """Return an instruction and a fair answer to it."""
    topic = str(rng.choice(TOPICS))
    return f"Tell me about {topic}, number {number}.", f"Number {number} of the {topic}: " + "as is known. " * 3


class Reader(Keywords):
    """The judge, an engine: it answers beam searches for one token with the names m and M.

    It reads the last instruction in its prompt and, of the outputs after it, the last under each name. What asks for
    nothing is served the better the shorter the output; any other by the words it shares with the output. Its log-odds
    are 6 for what is better, and noise.

    Args:
        slip: standard deviation of the noise.
        seed: of the noise.
    """

    def __init__(self, slip: float = 0.0, seed: int = 0):
        super().__init__(())
        self.slip, self.seed = slip, seed

    def odds(self, prompt: str) -> float:
        """Return the log-odds for m."""
        *_, asked = _QUESTION.finditer(prompt)
        outputs: dict[str, str] = dict(_OUTPUT.findall(prompt[asked.end() :]))
        said = [outputs.get("m", ""), outputs.get("M", "")]
        if "nothing" in asked[1]:
            worth = [-float(len(text)) for text in said]
        else:
            words = set(re.findall(r"\w+", asked[1].lower()))
            worth = [float(len(words & set(re.findall(r"\w+", text.lower())))) for text in said]
        noise = np.random.default_rng([self.seed, len(prompt), sum(map(ord, prompt))]).standard_normal()
        return 6.0 * float(np.sign(worth[0] - worth[1])) + self.slip * float(noise)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`."""
        out = []
        for r in requests:
            odds, prompt, replies = self.odds(str(r.prompt)), self.encode(r.prompt), []
            for text, value in (("m", odds), ("M", -odds)):
                token = self.encode(text)
                known = np.array([-math.log1p(math.exp(-value))], dtype=np.float32)
                replies.append(Episode(prompt, token, token > 0, known, text, "length"))
            out.append(sorted(replies, key=lambda e: -float(e.logprobs[0]))[: r.n])  # type: ignore[index]
        return out
