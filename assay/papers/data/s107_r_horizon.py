"""S107: problems in a chain, each of which needs the answer to the one before, asked as one."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import filled
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.tasks.making.filters import SOLVING, PassRate
from assay.tasks.making.work import Dropped, Here, Pipeline, Want, Work, noted
from assay.types import Task, Verdict
from assay.verify.lists.boxed_answers import By

KEY = """In the problem below the number {number} has been replaced by [?]. Can the problem be solved
without it?

Problem:
{question}

Say yes or no."""
FINAL = """Here [variablek] is the number that problem k needs, and [answerk] is the answer to problem k.

Solve the problems one after the other. End with a section of this form, each answer in a box:

### Final Answers
{lines}"""
_MATH = re.compile(r"\$\$.+?\$\$|\$[^$]+\$|\\\(.+?\\\)|\\\[.+?\\\]", re.DOTALL)
_INTEGER = re.compile(r"(?<![\w.,^_{}(\-+*/\\$])\d+(?![\w^_(]|[.,]\d|\s*[/%]|\})")
_IN_MATH = re.compile(r"(?<![\w.,^_{}(\-/\\])\d+(?![\w^_(]|[.,]\d|\s*/|\})")


class Number(NamedTuple):
    """An integer in a text: ``text[start:end]``, and whether that is inside a formula."""

    start: int
    end: int
    value: int
    formula: bool


def integers(text: str) -> list[Number]:
    """Return the integers of a text that a variable can stand for: not in fractions, exponents, decimals, words or
    arguments of functions, and without a sign of their own."""
    formulas = [(m.start(), m.end()) for m in _MATH.finditer(text)]
    out = []
    for formula, pattern in ((False, _INTEGER), (True, _IN_MATH)):
        for m in pattern.finditer(text):
            inside = any(a <= m.start() < b for a, b in formulas)
            if inside is formula and len(m[0]) <= 12:
                out.append(Number(m.start(), m.end(), int(m[0]), formula))
    return sorted(out)


def whole(reference: Any) -> int | None:
    """Return an answer that is an integer, ``None`` for any other."""
    text = str(reference).strip().replace(",", "")
    return int(text) if re.fullmatch(r"-?\d{1,12}", text) else None


@dataclass(frozen=True, slots=True)
class KeyNumber:
    """Notes in ``meta["key"]`` the integer of a problem that a variable will stand for; drops what has none.

    Where a judge is asked, it has to say that the problem cannot be solved without the number. Numbers outside formulas
    come first, and those that stand in the problem once.

    Args:
        ask: a judge; else the first number is taken.
        most: numbers of a problem that the judge is asked about.
    """

    ask: bool = True
    most: int = 4

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError where no two tasks can be chained."""
        if sum(whole(task.reference) is not None and bool(integers(task.question)) for task in tasks) < 2:
            raise UsageError("S107 chains problems that have an integer in their text and an integer as their answer; "
                             "fewer than two of the tasks do")  # fmt: skip

    def __call__(self, task: Task, here: Here) -> Work:
        if whole(task.reference) is None:
            return Dropped("its answer is no integer")
        found = integers(task.question)
        once = Counter(number.value for number in found)
        found.sort(key=lambda number: (number.formula, once[number.value] > 1, number.start))
        if not found:
            return Dropped("no integer in its text")
        if not self.ask:
            return noted(task, key=list(found[0]))
        text = task.question
        shown = [text[: k.start] + "[?]" + text[k.end :] for k in found[: self.most]]
        replies = yield [
            Want(filled(KEY, number=str(k.value), question=q), 1, Sampling(16, 0.0), "judge")
            for k, q in zip(found, shown, strict=False)
        ]
        for number, [reply] in zip(found, replies, strict=False):
            said = re.findall(r"\b(yes|no)\b", reply.text.lower())
            if said and said[-1] == "no":
                return noted(task, key=list(number))
        return Dropped("no number that it needs")


def composed(tasks: Sequence[Task], by: By = "last") -> Task:
    """Return the chain of problems: of each but the first, its key number is a function of the answer before.

        [variable k+1] = [answer k] + (m_{k+1} - a_k)

    Args:
        tasks: two or more, with integer references and ``meta["key"]``.
        by: what the reward goes by.
    """
    texts = [f"Problem 1: {tasks[0].question}"]
    for k, (before, task) in enumerate(pairwise(tasks), 2):
        start, end, value, formula = task.meta["key"]
        offset, name = int(value) - _answer(before), f"[variable{k}]"
        shown = f"{{{name}}}" if formula else name
        text = task.question[: int(start)] + shown + task.question[int(end) :]
        sign = "-" if offset < 0 else "+"
        texts.append(
            f"Problem {k}: Using the result [answer{k - 1}] from the previous calculation, "
            f"{name} = [answer{k - 1}] {sign} {abs(offset)}. {text}"
        )
    listed = "\n".join(f"Problem {k}: \\boxed{{[answer{k}]}}" for k in range(1, len(tasks) + 1))
    rates = [task.meta.get("pass_rate") for task in tasks]
    meta: dict[str, Any] = {"parents": tuple(task.id for task in tasks), "made": ("compose",)}
    if None not in rates:
        meta |= {"pass_rates": tuple(rates), "expected": math.prod(float(rate) for rate in rates if rate is not None)}
    return Task(
        "+".join(task.id for task in tasks),
        "\n\n".join([*texts, filled(FINAL, lines=listed)]),
        {"answers": [str(_answer(task)) for task in tasks], "by": by},
        "boxed_answers",
        meta=meta,
    )


def _answer(task: Task) -> int:
    answer = whole(task.reference)
    assert answer is not None, "KeyNumber drops tasks without an integer answer"
    return answer


@dataclass(frozen=True, slots=True)
class Chains:
    """Replaces all tasks by chains of ``n`` of them, each task in one chain of a round; no chain is made twice.

    Args:
        n: problems of a chain.
        rounds: how often each task is used.
        least: of the expected accuracy, the product of the pass rates, which has to be above it.
        by: what the reward goes by.
    """

    n: int = 2
    rounds: int = 1
    least: float = 0.25
    by: By = "last"

    def __post_init__(self) -> None:
        if self.n < 2 or self.rounds < 1:
            raise UsageError(f"S107: a chain has two problems or more, not {self.n}, and each is used once or more")

    def whole(self, tasks: Sequence[Task], here: Here) -> tuple[list[Task], Mapping[str, int]]:
        made: dict[str, Task] = {}
        dropped: Counter[str] = Counter()
        for _ in range(self.rounds):
            order = here.rng.permutation(len(tasks)).tolist()
            for start in range(0, len(order) - self.n + 1, self.n):
                chain = composed([tasks[i] for i in order[start : start + self.n]], self.by)
                if chain.meta.get("expected", 1.0) <= self.least:
                    dropped["expected to be too hard"] += 1
                else:
                    made.setdefault(chain.id, chain)
            dropped["left over"] += len(order) % self.n
        return list(made.values()), +dropped


@dataclass(frozen=True, slots=True)
class Horizon:
    """How a policy does on chains of one length, beside what its pass rates on single problems make expect.

    Attributes:
        last, all: shares of responses whose last answer is right, and whose answers all are.
        expected: mean product of the pass rates; ``None`` where they are not known.
        first_errors: how many responses first go wrong at each problem, from 1.
    """

    last: float
    all: float
    expected: float | None
    first_errors: Mapping[int, int]

    @property
    def gap(self) -> float | None:
        """What is lost by asking problems together: expected - all."""
        return None if self.expected is None else self.expected - self.all


def horizon(judged: Sequence[tuple[Task, Verdict]]) -> Horizon:
    """Return how responses to chains did; those that abstain, on the whole or on a problem, are left out.

    Raises:
        UsageError: none is left.
    """
    rows = [(task, v) for task, v in judged if v.passed is not None and None not in v.parts.values()]
    if not rows:
        raise UsageError("there is no judged response to a chain")
    last = every = 0.0
    errors: Counter[int] = Counter()
    for task, verdict in rows:
        scores = [verdict.parts.get(f"problem {k}") for k, _ in enumerate(task.reference["answers"], 1)]
        last, every = last + (scores[-1] == 1), every + all(score == 1 for score in scores)
        errors.update(_first(scores))
    expected = [float(task.meta["expected"]) for task, _ in rows if "expected" in task.meta]
    mean = sum(expected) / len(expected) if len(expected) == len(rows) else None
    return Horizon(last / len(rows), every / len(rows), mean, dict(sorted(errors.items())))


def _first(scores: Sequence[float | None]) -> Iterator[int]:
    """Yield the number of the first problem that is not right; of a response without answers, the first."""
    wrong = next((k for k, score in enumerate(scores, 1) if score != 1), None)
    if wrong is not None:
        yield wrong


@paper(
    "S107",
    "R-HORIZON",
    arxiv="2510.08189",
    seams=["tasks", "verify", "evaluate"],
    essentials={
        "problems with an integer answer and integers in their text": "test_integers_that_a_variable_can_stand_for",
        "a key number without which the problem cannot be solved": "test_the_judge_says_which_number_is_needed",
        "a number is replaced at its place by a function of the answer before": "test_a_chain_is_composed",
        "the gold of every problem stays": "test_a_chain_is_composed",
        "exactly n answers are read": "test_which_boxes_are_read",
        "R_last and R_all": "test_rewards_of_the_last_and_of_all",
        "expected accuracy, the gap, and where it first goes wrong": "test_expected_and_actual_accuracy",
        "chains that are too hard are left out": "test_chains_are_made_from_the_command_line",
        "it acts in training": "test_a_run_learns_from_chains",
    },
    choices=(
        "numbers with a sign of their own are not replaced",
        "of several key numbers the first outside formulas that stands in the problem once",
        "each problem is in one chain of a round",
        "one reply of the judge for each of at most 4 numbers",
        "it is shown the problem without the number; the authors' judge sees the number in it, and the answer",
        "R_last by default; the released training code has R_all alone",
        "the training is any method's on the file of chains: GRPO with clip_high = 0.265 in the paper",
    ),
)
def r_horizon(
    n: int = 2,
    rounds: int = 1,
    by: By = "last",
    tries: int = 8,
    least: float = 0.25,
    keys: Literal["judge", "first"] = "judge",
    sampling: Sampling = SOLVING,
) -> Pipeline:
    """Chains of problems: ``assay tasks make S107``.

        q_{k+1} with "[variable k+1]" in the place of its key number m,  [variable k+1] = [answer k] + (m - a_k)
        R_last = 1[answer n right],   R_all = 1[all right],   E[Acc_all] = prod_k p_k

    Args:
        n: problems of a chain.
        rounds: how often each problem is used.
        by: what a response to a chain is judged by: ``last`` or ``all``.
        tries: replies of the solver to each problem, for its pass rate; 0 asks for none, and leaves no chain out.
        least: of the expected accuracy of a chain, which has to be above it.
        keys: who says which number of a problem is needed: a ``judge``, or nobody, and the ``first`` is taken.
        sampling: of the solver.

    Source: R-HORIZON (arXiv 2510.08189) and its authors' code.
    """
    steps: list[tuple[str, Any]] = [("key", KeyNumber(keys == "judge"))]
    if tries:
        steps.append(("rate", PassRate(tries, 0.0, 1.0, "solver", sampling)))
    return Pipeline("S107", [*steps, ("compose", Chains(n, rounds, least, by))])


claims(
    Claim(
        paper="S107",
        text="A policy that learns from chains of two problems answers all of a chain of four more often than one that "
        "learns from the same number of responses to single problems.",
        setting="chained_problems",
        arms={"composed": {"n": 2, "by": "last"}, "single": {"n": 1, "by": "last"}, "all": {"n": 2, "by": "all"}},
        better="composed",
        baseline="single",
        measure="all of 4",
        sweep={"lr": (0.3, 1.0, 3.0)},
        evidence="construction",
    )
)
