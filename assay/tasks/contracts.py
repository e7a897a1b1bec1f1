"""Programming problems with a contract: to write the code, the specification, the proof, or all of them."""

from __future__ import annotations

import functools
import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Literal

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index
from assay.types import Task
from assay.verify.formal.backends import BuiltIn
from assay.verify.formal.imperative.parse import parse
from assay.verify.formal.imperative.syntax import Method, Program, Type, written
from assay.verify.formal.spec_tests import Case, negatives, outputs, truths

Ask = Literal["code", "spec", "proof", "all"]
ASKS: tuple[Ask, ...] = ("code", "spec", "proof", "all")
_WANTED = {
    "code": "Write the method with its body. It is run on tests.",
    "spec": "Write the method's head with requires and ensures, without a body. It is tried on right and wrong values.",
    "proof": "Write the program again with invariants, decreases and assertions, so that it verifies; no more.",
    "all": "Write the method with requires and ensures, its body, and the invariants that prove it.",
}
_SMALL = (0, 1, -1, 2, -2, 3, 7, 10, -10, 100)


@dataclass(frozen=True, slots=True)
class Problem:
    """A text, a program that verifies, and what makes any values into inputs, as the body of a method."""

    text: str
    source: str
    inputs: str = ""


@functools.cache
def problems() -> tuple[Problem, ...]:
    """The problems that the package brings."""
    text = resources.files("assay.tasks").joinpath("contracts.toml").read_text(encoding="utf-8")
    return tuple(Problem(**one) for one in tomllib.loads(text)["problem"])


def generator(problem: Problem) -> Program:
    """Return the method that makes inputs of any values, whose postcondition is the problem's precondition.

    It is proved once (:func:`proven`), so that inputs keep to the precondition without being looked at.
    """
    program = parse(problem.source)
    params = program.method.params
    given = ", ".join(f"{n}0: {t}" for n, t in params)
    made = ", ".join(f"{n}: {t}" for n, t in params)
    body = problem.inputs or "{ " + " ".join(f"{n} := {n}0;" for n, _ in params) + " }"
    method: Method = parse(f"method inputs({given}) returns ({made}) {body}").method
    return Program(program.functions, replace(method, ensures=program.method.requires))


@functools.cache
def proven(problem: Problem) -> str:
    """Return the text of the generator, once the prover has shown that it keeps to the precondition.

    Raises:
        UsageError: it cannot be shown.
    """
    text = written(generator(problem))
    checked = BuiltIn().check(text)
    if not checked.proved:
        raise UsageError(f"inputs of {problem.text!r} are not shown to keep to the precondition: {checked}")
    return text


def positives(problem: Problem, count: int, seed: int = 0) -> list[Case]:
    """Return up to ``count`` inputs with the right outputs, no two alike: half broadly random, half corner cases.

    Fewer where the problem has not as many.
    """
    text, kinds = proven(problem), [t for _, t in parse(problem.source).method.params]
    rng = random.Random(f"{problem.source}{seed}")
    found: dict[str, list[Any]] = {}
    for tried in range(20):
        makes = _broad if tried % 2 == 0 else _corner
        drawn = [[makes(rng, t) for t in kinds] for _ in range((count + 1) // 2)]
        most = (count + 1) // 2 if tried == 0 else count
        for x in outputs(text, drawn):
            if len(found) < most and isinstance(x, list):
                found.setdefault(repr(x), x)
    inputs = list(found.values())
    return [(x, y) for x, y in zip(inputs, outputs(problem.source, inputs), strict=True) if isinstance(y, list)]


def rejects(problem: Problem, count: int, seed: int = 0) -> list[list[Any]]:
    """Return up to ``count`` values that the precondition has to refuse."""
    kinds = [t for _, t in parse(problem.source).method.params]
    rng = random.Random(f"{problem.source}{seed}")
    drawn = [[makes(rng, t) for t in kinds] for makes in (_broad, _corner) for _ in range(2 * count)]
    refused = (x for x, fine in zip(drawn, truths(problem.source, "requires", drawn), strict=True) if fine is False)
    return list({repr(x): x for x in refused}.values())[:count]


def _broad(rng: random.Random, kind: Type) -> Any:
    if kind == "seq<int>":
        span = rng.choice((1, 3, 9, 50))
        return [rng.randint(-span, span) for _ in range(rng.randint(0, 8))]
    return rng.randint(-50, 50) if kind == "int" else rng.random() < 0.5


def _corner(rng: random.Random, kind: Type) -> Any:
    if kind != "seq<int>":
        return rng.choice(_SMALL) if kind == "int" else rng.random() < 0.5
    length = rng.choice((0, 1, 2, 3, 20))
    start, step = rng.choice(_SMALL), rng.choice((0, 1, -1, 2))
    found = [start + step * i for i in range(length)]
    if found and rng.random() < 0.5:
        found[rng.randrange(length)] = rng.choice(_SMALL)
    return found


@functools.cache
def _tests(problem: Problem, count: int, seed: int) -> tuple[list[Case], list[Case], list[list[Any]]]:
    positive = positives(problem, count, seed)
    return positive, negatives(problem.source, positive), rejects(problem, count, seed)


def bare(problem: Problem) -> str:
    """The program without annotations: what a proof is asked for."""
    return written(parse(problem.source), proof=False)


@part("tasks", "contracts")
@dataclass(frozen=True, slots=True)
class Contracts:
    """Problems whose programs are written in a subset of Dafny, judged by the verifier ``prover``.

    Positive tests come from inputs proved to keep to the precondition and the outputs of a verified program; ten times
    as many negative ones from its faulty variants and changed outputs (:mod:`assay.verify.formal.spec_tests`).

    Args:
        ask: what is to be written, any of ``code``, ``spec``, ``proof``, ``all``; each problem is asked in each way.
        positive: tests of a problem, at most; the paper has 150 to 200.
        seed: of the inputs.
        kind: the verifier, ``prover`` or ``verina``.

    Raises:
        UsageError: something unknown is asked, or fewer than 1 test.

    Source: VeriContest (arXiv 2605.08553), whose pipeline makes the tests; the problems are ours.
    """

    ask: Sequence[Ask] = ("code", "spec", "proof", "all")
    positive: int = 150
    seed: int = 0
    kind: Literal["prover", "verina"] = "prover"

    def __post_init__(self) -> None:
        if not self.ask or set(self.ask) - set(ASKS) or self.positive < 1:
            raise UsageError(f"tasks 'contracts': ask {list(self.ask)} of {', '.join(ASKS)}, positive at least 1")
        BuiltIn().require()

    @property
    def size(self) -> int:
        return len(problems()) * len(self.ask)

    def __getitem__(self, index: int) -> Task:
        check_index(index, self.size)
        which, asked = divmod(index, len(self.ask))
        return made(problems()[which], self.ask[asked], self.positive, self.seed, self.kind)


def made(problem: Problem, ask: Ask, count: int, seed: int = 0, kind: str = "prover") -> Task:
    """Return the task of a problem."""
    program = parse(problem.source)
    method = program.method
    head = written(replace(program, functions=(), method=replace(method, requires=(), ensures=(), body=None))).strip()
    shown = bare(problem) if ask == "proof" else head
    reference: dict[str, Any] = {"ask": ask, "source": problem.source}
    if ask != "proof":
        reference["positive"], negative, refused = _tests(problem, count, seed)
        if ask != "code":
            reference |= {"negative": negative, "reject": refused}
    solution = {
        "code": written(replace(program, functions=(), method=replace(method, requires=(), ensures=())), proof=False),
        "spec": written(replace(program, method=replace(method, body=None))),
    }.get(ask, written(program))
    return Task(
        f"contracts/{method.name}/{ask}",
        f"{problem.text}\n\n{shown}\n\n{_WANTED[ask]}",
        reference,
        kind,
        solution=solution,
        meta={"category": ask},
    )
