"""Questions that take one of a few tools, and a model that writes, names and calls them as a script has it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.inference.tools.evolution import ToolEvolution
from assay.inference.tools.library import Library
from assay.types import Episode, Task

PRIMITIVES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "sum_column": (
        "the sum of a column of CSV text",
        "def run(text: str, column: int) -> int:\n    '''The sum of a column of CSV text.'''\n    return {0}\n",
        (
            "sum(int(line.split(',')[column]) for line in text.splitlines())",
            "sum(map(int, [row.split(',')[column] for row in text.splitlines()]))",
        ),
    ),
    "count_word": (
        "how often a word stands in a text",
        "def run(text: str, word: str) -> int:\n    '''How often a word stands in a text.'''\n    return {0}\n",
        ("text.split().count(word)", "sum(w == word for w in text.split())"),
    ),
    "day_number": (
        "the day of the year of a date YYYY-MM-DD",
        "import datetime\ndef run(date: str) -> int:\n    '''The day of the year of a date.'''\n    return {0}\n",
        (
            "datetime.date.fromisoformat(date).timetuple().tm_yday",
            "int(datetime.date.fromisoformat(date).strftime('%j'))",
        ),
    ),
    "convert_length": (
        "centimetres of a length in metres and centimetres",
        "def run(metres: int, centimetres: int) -> int:\n    '''Centimetres of a length.'''\n    return {0}\n",
        ("100 * metres + centimetres", "metres * 100 + centimetres * 1"),
    ),
    "longest_line": (
        "the number of characters in the longest line",
        "def run(text: str) -> int:\n    '''Characters of the longest line.'''\n    return {0}\n",
        ("max(len(line) for line in text.splitlines())", "len(sorted(text.splitlines(), key=len)[-1])"),
    ),
}
"""What a tool does, its program with a gap, and what fills it."""
_SPEC = re.compile(r"\[(\w+) (\{.*?\})\]")


@dataclass(frozen=True, slots=True)
class Setting:
    """A stream of ``tasks`` questions, each of one primitive, at first the first ``domain`` of them, later all.

    The model is a script: it takes a tool of the library whose words are the primitive's, else asks for one, by a name
    whose words stand in either order and may end in a number; its programs differ in wording, and the first is broken
    in a share ``faulty`` of cases. An arm is ``{"keep": true}``, whose library stays, or ``{"keep": false}``, which
    begins every batch with none.

    Args:
        tasks, batch, domain: see above; the domain widens after half of the tasks.
        faulty: see above.

    Raises:
        UsageError: a number out of range.
    """

    tasks: int = 96
    batch: int = 8
    domain: int = 5
    faulty: float = 0.2

    def __post_init__(self) -> None:
        if self.tasks < 2 or self.batch < 1 or not 1 <= self.domain <= len(PRIMITIVES) or not 0 <= self.faulty <= 1:
            raise UsageError(f"setting 'toolmaking': {asdict(self)} is out of range")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return what the stream came to.

        ``generality``: 1 - EGL at the end; ``half``: at half of the tasks; ``tools``: in the library; ``right``: share
        of answers; ``tokens``: of a task; ``rollouts``: the model's replies.
        """
        rng = np.random.default_rng([seed, 174])
        tasks = [question(i, rng, self.domain if i < self.tasks // 2 else len(PRIMITIVES)) for i in range(self.tasks)]
        maker = Maker(np.random.default_rng([seed, 1]), self.faulty)
        strategy = ToolEvolution(batch=self.batch, sampling=Sampling(512))
        answers, half = [], 0.0
        for at in range(0, self.tasks, self.batch):
            if not arm["keep"]:
                strategy.library = Library(made=strategy.library.made, called=strategy.library.called)
            answers += strategy(tasks[at : at + self.batch], maker, 1, rng)
            half = strategy.library.egl if at < self.tasks // 2 else half
        return {
            "generality": 1 - strategy.library.egl,
            "half": 1 - half,
            "tools": float(len(strategy.library.tools)),
            "right": float(np.mean([a.text == str(t.reference) for a, t in zip(answers, tasks, strict=True)])),
            "tokens": float(np.mean([a.tokens for a in answers])),
            "rollouts": float(maker.replies),
        }


def question(index: int, rng: np.random.Generator, domain: int) -> Task:
    """Return a question of one of the first ``domain`` primitives; its specification stands in the prompt."""
    name = list(PRIMITIVES)[int(rng.integers(domain))]
    numbers = [int(n) for n in rng.integers(1, 12, size=6)]
    words = [f"w{n}" for n in numbers]
    text = "\n".join(f"{a},{b}" for a, b in zip(numbers[:3], numbers[3:], strict=True))
    every: dict[str, dict[str, Any]] = {
        "sum_column": {"text": text, "column": numbers[0] % 2},
        "count_word": {"text": " ".join(words), "word": words[0]},
        "day_number": {"date": f"2024-{numbers[0]:02d}-{numbers[1]:02d}"},
        "convert_length": {"metres": numbers[0], "centimetres": numbers[1]},
        "longest_line": {"text": "\n".join("x" * n for n in numbers)},
    }
    arguments = every[name]
    scope: dict[str, Any] = {}
    exec(source_of(name, 0), scope)  # our own text
    return Task(f"toolmaking/{index}", f"[{name} {json.dumps(arguments)}]", scope["run"](**arguments), "exact")


def source_of(name: str, variant: int) -> str:
    """Return a primitive's program, in one of its wordings."""
    _, frame, gaps = PRIMITIVES[name]
    return frame.format(gaps[variant])


class Maker:
    """The model of the script, in all roles; a token is a character."""

    def __init__(self, rng: np.random.Generator, faulty: float):
        self.rng, self.faulty, self.replies = rng, faulty, 0

    def encode(self, prompt: Any) -> np.ndarray:
        return np.frombuffer(str(prompt).encode(), dtype=np.uint8).astype(np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return bytes(int(t) for t in tokens).decode()

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            text, self.replies = self._reply(str(request.prompt)), self.replies + 1
            tokens = self.encode(text)
            logprobs = np.zeros(len(tokens), dtype=np.float32)
            made = Episode(self.encode(request.prompt), tokens, tokens > 0, logprobs, text, "eos")
            out.append([made])
        return out

    def _reply(self, prompt: str) -> str:
        if prompt.startswith("Write a tool"):
            return self._written(prompt)
        if prompt.startswith("Tools that were written"):
            return self._grouped(re.findall(r"^(\w+): ", prompt, re.MULTILINE))
        [(name, arguments)] = _SPEC.findall(prompt)[:1]
        have = [n for n in re.findall(r"^(\w+): ", prompt, re.MULTILINE) if sorted(_words(n)) == sorted(_words(name))]
        if prompt.startswith("Question:") and "Which of them" in prompt:
            return f"USE {have[0]}" if have else f"NEED {self._named(name)}: {PRIMITIVES[name][0]}"
        if prompt.startswith("Question:"):
            if " = " in prompt.rpartition("DONE.")[2] or not have:
                return "DONE"
            call = {"name": have[0], "arguments": json.loads(arguments)}
            return f"<tool_call>{json.dumps(call)}</tool_call>"
        found = re.findall(r" = (.*)$", prompt, re.MULTILINE)
        return found[-1] if found else "?"

    def _grouped(self, names: Sequence[str]) -> str:
        like: dict[str, list[str]] = {}
        for name in names:
            like.setdefault("_".join(sorted(_words(name))), []).append(name)
        lines = [f"SAME {words}: {', '.join(those)}" for words, those in like.items() if len(those) > 1]
        return "\n".join(lines) or "NONE"

    def _named(self, name: str) -> str:
        words = list(self.rng.permutation(_words(name)))
        return "_".join(words) + ("" if self.rng.random() < 0.5 else f"_{int(self.rng.integers(2, 9))}")

    def _written(self, prompt: str) -> str:
        purpose = prompt.partition(": ")[2].partition("\n")[0]
        [name] = [n for n, (what, *_) in PRIMITIVES.items() if what == purpose] or ["longest_line"]
        source = source_of(name, int(self.rng.integers(2)))
        if "This did not work" not in prompt and self.rng.random() < self.faulty:
            source = source.replace("return ", "return 1 / 0 + ")
        example = json.dumps(EXAMPLES[name])
        return f"```python\n{source}```\nEXAMPLE {example}"


EXAMPLES: dict[str, dict[str, Any]] = {
    "sum_column": {"text": "1,2\n3,4", "column": 1},
    "count_word": {"text": "a b a", "word": "a"},
    "day_number": {"date": "2024-03-01"},
    "convert_length": {"metres": 1, "centimetres": 5},
    "longest_line": {"text": "a\nbcd"},
}


def _words(name: str) -> list[str]:
    return [word for word in re.sub(r"(?:_?\d+)+$", "", name).split("_") if word]
