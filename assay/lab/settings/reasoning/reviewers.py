"""A solver that writes steps, doubts itself and errs, and a reviewer that errs too: engines whose truth is known."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request, Sampling
from assay.engines.recall.remembering import Remembering
from assay.evaluate.strategies.comparison import compare_strategies
from assay.inference.named import make_strategy
from assay.lab.settings.reasoning._words import Words, answer_of, right_answer, right_step
from assay.types import Task, Verdict


@dataclass(frozen=True, slots=True)
class Setting:
    """An arm is a strategy at test time, with its options; where it has a scorer, that is the reviewer.

    The solver writes ``length`` steps of about ``wordy`` words, each a number, and their sum as the answer. A task is
    solved with a probability from Beta(a, b) if nothing goes wrong on the way; a wrong step is mostly the same one, so
    that wrong answers agree. It may stop to think before it has an answer, and after it may double-check, which costs
    as many words as three steps, repairs some wrong answers and spoils some right ones, about as many. Asked in
    passing, it mostly knows whether it has an answer. Told which step of an earlier solution is wrong, it keeps the
    steps before it and errs a third as often in that one.

    The reviewer is right about the first wrong step with a probability that depends on whether the solution is a hard
    one to judge, more often when it thinks, in ten times as many words. Asked for true or false, it says true of right
    solutions at rate ``tpr``, of wrong ones at ``fpr``, some solutions being more convincing than others.

    Args:
        a, b: of the Beta distribution.
        length, wordy: steps of a solution, and words of a step.
        misled: share of wrong steps that are the usual wrong one.
        pause, doubt: chance of a hesitation before a step, and of double-checking, up to three times.
        repair, spoil: chance that double-checking changes a wrong answer to the right one, a right one to a wrong one.
        hard: share of solutions that are hard to judge.
        quick, slow: how often the reviewer is right, of easy and of hard solutions.
        tpr, fpr, bias: see above; bias is the standard deviation on the log-odds, by solution.
        tasks: answered by each run.
        budget: of each task, as ``--budgets`` takes it; an arm may have its own.
    """

    a: float = 1.0
    b: float = 1.5
    length: int = 5
    wordy: int = 12
    misled: float = 0.7
    pause: float = 0.1
    doubt: float = 0.7
    repair: float = 0.07
    spoil: float = 0.1
    hard: float = 0.4
    quick: tuple[float, float] = (0.95, 0.55)
    slow: tuple[float, float] = (0.97, 0.9)
    tpr: float = 0.7
    fpr: float = 0.25
    bias: float = 0.5
    tasks: int = 200
    budget: str = "16"

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return shares of tasks: ``accuracy``, ``answered``, ``honesty`` = right - wrong; and ``tokens`` per task.

        ``accuracy`` counts an abstention as not right.
        """
        words = Words()
        chances = np.random.default_rng([seed, 7]).beta(self.a, self.b, self.tasks)
        solver, reviewer = Solver(self, words, chances), Reviewer(self, words)
        options = dict(arm)
        budget = options.pop("budget", self.budget)
        spec = options.pop("scorer", None)
        if spec is not None:
            options["scorer"] = _reviewed(spec, reviewer)
        options.setdefault("sampling", Sampling(max_tokens=20 * self.length * self.wordy))
        tasks = [Task(f"{i}", f"Task {i}.") for i in range(self.tasks)]

        def verifier(task: Task, response: str) -> Verdict:
            right = answer_of(response) == right_answer(int(task.id), self.length)
            return Verdict.right() if right else Verdict.wrong()

        engine = Remembering(solver)
        found = compare_strategies(
            tasks, engine, verifier, {"arm": make_strategy(options)}, [budget], seed=seed, chunk=self.tasks
        )
        row = found.points[0].summary()
        return {
            "accuracy": row["accuracy"]["value"],
            "answered": row["answered"],
            "honesty": row["honesty"]["value"],
            "tokens": row["tokens"]["value"],
        }


def _reviewed(spec: Mapping[str, Any], reviewer: Any) -> Any:
    """Return the judge or the verifier of steps that an arm describes, with the reviewer in it."""
    from assay.inference.scoring.flex import Flex
    from assay.inference.scoring.judge import Judge
    from assay.signals.steps import Steps

    options = {k: v for k, v in spec.items() if k != "name"}
    if spec["name"] == "judge":
        return Judge(reviewer, sampling=Sampling(max_tokens=40), **options)
    short, long = Sampling(max_tokens=40), Sampling(max_tokens=400)
    return Flex(reviewer, by=Steps("newline"), skip="", quick=short, slow=long, **options)


class Solver:
    """An engine that writes solutions, see :class:`Setting`."""

    def __init__(self, setting: Setting, words: Words, chances: np.ndarray):
        self.setting, self.words, self.chances = setting, words, chances

    def encode(self, prompt: Any) -> np.ndarray:
        return self.words.encode(str(prompt))

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.words.encode(text)

    def decode(self, tokens: Any) -> str:
        return self.words.decode(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Any]]:
        """See :class:`assay.engines.base.Engine`."""
        out = []
        for r in requests:
            begun = self.decode(r.prefix)
            drawn = [np.random.default_rng([r.seed % 2**32, r.seed >> 32, j]) for j in range(r.n)]
            out.append([self.words.episode(r, self._pieces(str(r.prompt), begun, rng)) for rng in drawn])
        return out

    def _pieces(self, prompt: str, text: str, rng: np.random.Generator) -> Any:
        """Yield what comes next, piece by piece, until the response ends."""
        if text.rstrip().endswith("Reply Yes or No."):
            known = answer_of(text) is not None
            yield "Yes" if known == (rng.random() < 0.95) else "No"
            return
        task = int(re.findall(r"Task (\d+)\.", prompt)[0])
        chance = float(self.chances[task]) ** (1 / self.setting.length)
        blamed = re.search(r"Step (\d+) is wrong", prompt)
        draft = prompt.partition("An earlier solution:")[2].partition("A reviewer")[0]
        told = int(blamed[1]) if blamed else -1
        # The reviewer counts lines, the solver its own steps.
        lines = draft.strip().splitlines()
        told = int(m[1]) if 0 <= told < len(lines) and (m := re.match(r"Part (\d+)", lines[told])) else -1
        kept = [int(v) for v in re.findall(r"^Part \d+ gives (\d+)", draft, re.MULTILINE)][: max(told, 0)]
        values = [int(v) for v in re.findall(r"^Part \d+ gives (\d+)", text, re.MULTILINE)]
        checks = text.count("double-check")
        first = True
        if text.endswith("Wait,") and answer_of(text) is None:
            text += " let me think about this part again.\n"
            yield " let me think about this part again.\n"
        while answer_of(text) is None:
            k = len(values)
            if k == self.setting.length:
                piece = f"#### {sum(values)}\n"
            elif k and not text.rstrip().endswith("again.") and rng.random() < self.setting.pause:
                piece = "Wait, let me think about this part again.\n"
            else:
                better = 1 - (1 - chance) / 3 if k == told else chance
                right = right_step(task, k)
                usual = rng.random() < self.setting.misled
                wrong = right + 1 + (0 if usual else int(rng.integers(1, 8)))
                values.append(kept[k] if k < len(kept) else right if rng.random() < better else wrong)
                piece = f"Part {k} gives {values[-1]} because{' of what came before' * (self.setting.wordy // 4)}.\n"
            first = False
            text += piece
            yield piece
        truth = right_answer(task, self.setting.length)
        doubting = text.endswith("Wait,")
        while checks < 3 and (doubting or rng.random() < self.setting.doubt):
            answer = answer_of(text)
            change = self.setting.spoil if answer == truth else self.setting.repair
            if rng.random() < change:
                answer = truth if answer != truth else truth + 1 + int(rng.integers(8))
            checks += 1
            said = "It was said that this follows from that. " * (3 * self.setting.wordy // 8)
            piece = f"{'' if doubting else chr(10) + 'Wait,'} let me double-check. {said}\n#### {answer}\n"
            doubting = False
            text += piece
            yield piece
        if first and checks == 0:
            yield "\n"


class Reviewer(Solver):
    """An engine that reviews solutions, see :class:`Setting`."""

    def __init__(self, setting: Setting, words: Words):
        super().__init__(setting, words, np.zeros(0))

    def generate(self, requests: Sequence[Request]) -> list[list[Any]]:
        out = []
        for r in requests:
            drawn = [np.random.default_rng([r.seed % 2**32, r.seed >> 32, j, 1]) for j in range(r.n)]
            out.append([self.words.episode(r, [self._review(str(r.prompt), r, rng)]) for rng in drawn])
        return out

    def _review(self, prompt: str, request: Request, rng: np.random.Generator) -> str:
        task = int(re.findall(r"Task (\d+)\.", prompt)[0])
        solution = np.random.default_rng(zlib.crc32(prompt.encode()))
        if "first step that is wrong" not in prompt:
            true = answer_of(prompt) == right_answer(task, self.setting.length)
            rate = self.setting.tpr if true else self.setting.fpr
            odds = np.log(rate / (1 - rate)) + self.setting.bias * solution.standard_normal()
            said = rng.random() < 1 / (1 + np.exp(-odds))
            return f"{'It can be seen that this step follows. ' * 3}\\boxed{{{said}}}"
        lines = re.findall(r"^\[(\d+)\] (.*)$", prompt, re.MULTILINE)
        truth = -1
        for index, line in lines:
            part = re.match(r"Part (\d+) gives (\d+)", line)
            if part and int(part[2]) != right_step(task, int(part[1])):
                truth = int(index)
                break
        # An answer that double-checking has changed is wrong in the last line that states one.
        if truth < 0 and answer_of(prompt) != right_answer(task, self.setting.length):
            truth = max((int(i) for i, line in lines if line.startswith("####")), default=-1)
        thinks = request.sampling.max_tokens > 100
        rates = self.setting.slow if thinks else self.setting.quick
        says = truth
        if rng.random() >= rates[int(solution.random() < self.setting.hard)]:
            others = [-1] * (truth >= 0) + [int(i) for i, _ in lines if int(i) != truth]
            # A missed error is the usual mistake.
            says = -1 if truth >= 0 and rng.random() < 0.7 else others[int(rng.integers(len(others)))]
        return f"{'It can be seen that this step follows. ' * (30 if thinks else 3)}\\boxed{{{says}}}"
