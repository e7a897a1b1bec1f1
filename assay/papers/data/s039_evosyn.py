"""S039: a strategy that ranks programs and tests is evolved, and then says which problems can be trusted."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from assay.audit.suite.trials import Problem, Test, reference, trial
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import filled
from assay.engines.base import Engine, Sampling
from assay.engines.writing import ask, patched, pieces
from assay.errors import UsageError
from assay.tasks.making.rankings import COUNTED, DISCRIMINATING, Ranking, ranked
from assay.tasks.making.work import Dropped, Here, Pipeline, Want, Work, noted
from assay.types import Task

MUTATE = """The Python function below ranks candidate programs, and tests for them, by which program passes which test.
It is good where the program it puts first is right, and the test it puts first tells right programs from wrong ones.

## The function, which is good on a share of {fitness} of the problems

{source}

## Others that did well

{others}

## Reply

Change it so that it does better, in one or more blocks, and nothing else:
<patch>
<<<<<<< SEARCH
lines of the function, as they stand
=======
lines in their place
>>>>>>> REPLACE
</patch>"""
SOLVE = """Write a Python program that reads standard input and writes standard output.

{question}

Write the program between <program> and </program>."""
TESTS = """Write cases that test programs for the problem below: inputs that cover what it says and the edges of it, and
the right output of each.

{question}

Write each input between <input> and </input>, and after it its output between <output> and </output>."""


@dataclass(frozen=True, slots=True)
class SeedProblem:
    """A problem whose programs people have judged.

    Attributes:
        passed: ``(S, T)`` bool, which program passes which generated test.
        right: ``(S,)`` bool, which program passes the tests that people wrote.
    """

    passed: np.ndarray
    right: np.ndarray


def holds(ranking: Ranking, problem: SeedProblem, ends: int = 1) -> bool:
    """Whether a ranking is good on a problem.

    (1) the program it puts first is right; (2) for its ``ends`` best and ``ends`` worst programs, the verdict of the
    test it puts first is that of people.
    """
    order = np.argsort(-ranking.programs, kind="stable")
    looked = [*order[:ends], *order[-ends:]]
    top = problem.passed[:, ranking.order()[0]]
    return bool(problem.right[order[0]]) and all(bool(top[s]) == bool(problem.right[s]) for s in looked)


def fitness(source: str, problems: Sequence[SeedProblem], ends: int = 8) -> float | str:
    """Return the share of problems on which a strategy :func:`holds`, or why it cannot be used."""
    found = ranked(source, [p.passed for p in problems])
    if isinstance(found, str):
        return found
    return sum(holds(one, p, ends) for one, p in zip(found, problems, strict=True)) / len(problems)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy as source, and its fitness."""

    source: str
    fitness: float

    @property
    def cell(self) -> tuple[int, int]:
        """Its place in the archive: by its length in lines, and by its number of branches."""
        return min(len(self.source.splitlines()) // 8, 4), min(self.source.count("if ") // 2, 3)


@dataclass(frozen=True, slots=True)
class Evolved:
    """The best strategy, the fitness of the best after every iteration, and what was wrong with replies."""

    best: Strategy
    history: tuple[float, ...]
    faults: tuple[str, ...]


def evolve(
    problems: Sequence[SeedProblem],
    engine: Engine,
    iterations: int = 20,
    population: int = 20,
    archive: int = 10,
    islands: int = 3,
    elites: float = 0.2,
    exploit: float = 0.7,
    ends: int = 8,
    first: str = COUNTED,
    sampling: Sampling = Sampling(2048, 0.7),  # noqa: B008  # frozen
    seed: int = 0,
) -> Evolved:
    """Evolve a strategy on problems that people have judged, by MAP-Elites on islands, and return the best.

    Each iteration takes an island in turn; with probability ``exploit`` a parent from the archive, which holds the
    fittest of every cell, else one of the island; shows the model the parent and the best of the archive; applies the
    blocks that it replies; and keeps what can be run on the island, whose least fit make room, and in the archive.

    Args:
        problems: one or more.
        engine: writes the changes.
        iterations, population, archive, islands: counts; the population is that of all islands.
        elites: share of the archive that is shown and drawn from.
        exploit: see above.
        ends: programs at both ends that criterion (2) looks at.
        first: what evolution begins with.
        sampling: of replies.
        seed: of all draws.

    Raises:
        UsageError: no problem, a count below 1, or a first strategy that cannot be run.
    """
    if not problems or min(iterations, population, archive, islands) < 1:
        raise UsageError(
            "S039: evolution needs problems, iterations, a population, an archive and an island, each 1 or more"
        )
    start = fitness(first, problems, ends)
    if isinstance(start, str):
        raise UsageError(f"S039: the first strategy cannot be run: {start}")
    draw = random.Random(seed)
    adam = Strategy(first, start)
    lands: list[list[Strategy]] = [[adam] for _ in range(islands)]
    cells: dict[tuple[int, int], Strategy] = {adam.cell: adam}
    history: list[float] = []
    faults: list[str] = []
    for number in range(iterations):
        land = lands[number % islands]
        best = sorted(cells.values(), key=lambda s: -s.fitness)
        shown = best[: max(1, round(elites * len(best)))]
        parent = draw.choice(shown) if draw.random() < exploit else draw.choice(land)
        others = "\n\n".join(s.source for s in best[:3] if s.source != parent.source) or "(none)"
        prompt = filled(MUTATE, fitness=f"{parent.fitness:.3f}", source=parent.source, others=others)
        reply = ask(engine, prompt, sampling, seed * 1_000_003 + number)
        source, wrong = parent.source, [] if pieces(reply, "patch") else ["there is no patch"]
        for patch in pieces(reply, "patch"):
            source, more = patched(source, patch)
            wrong += more
        found = wrong[0] if wrong else fitness(source, problems, ends)
        if isinstance(found, str):
            faults.append(found)
        else:
            child = Strategy(source, found)
            land.append(child)
            land.sort(key=lambda s: -s.fitness)
            del land[max(1, population // islands) :]
            if child.cell not in cells or cells[child.cell].fitness < child.fitness:
                cells[child.cell] = child
            if len(cells) > archive:
                cells.pop(min(cells, key=lambda c: cells[c].fitness))
        history.append(max(s.fitness for s in cells.values()))
    return Evolved(max(cells.values(), key=lambda s: s.fitness), tuple(history), tuple(faults))


@dataclass(frozen=True, slots=True)
class Trials:
    """Has programs and tests written for a problem, runs all on all, and keeps the problem with what ranks highest.

    A test is the cases of one reply, and a program passes it by passing all of them. Dropped is a problem all of whose
    programs, or all of whose tests, have equal scores (zero variance), and one with no test that the best program
    passes and some program fails. The task is of the kind ``code``: its reference holds the cases of the best tests,
    its solution is the best program.

    Args:
        strategy: source of the strategy.
        programs, tests: to be written.
        keep: tests that are kept, each with all of its cases.
        strict: keep tests alone that some program fails.
        sampling: of replies.
    """

    strategy: str = DISCRIMINATING
    programs: int = 16
    tests: int = 16
    keep: int = 1
    strict: bool = True
    sampling: Sampling = Sampling(2048, 1.0)  # noqa: RUF009  # frozen

    def __post_init__(self) -> None:
        if min(self.programs, self.tests) < 2 or self.keep < 1:
            raise UsageError("S039: two programs, two tests and one that is kept are the fewest")

    def __call__(self, task: Task, here: Here) -> Work:
        solved, tested = yield [
            Want(filled(SOLVE, question=task.question), self.programs, self.sampling, "solver"),
            Want(filled(TESTS, question=task.question), self.tests, self.sampling),
        ]
        programs = list(dict.fromkeys(p[-1] for reply in solved if (p := pieces(reply.text, "program"))))
        pairs = [(pieces(reply.text, "input"), pieces(reply.text, "output")) for reply in tested]
        named = [[Test(i + "\n", o + "\n") for i, o in zip(a, b, strict=True)] for a, b in pairs if len(a) == len(b)]
        tests = list(dict.fromkeys(tuple(dict.fromkeys(cases)) for cases in named if cases))
        if len(programs) < 2 or len(tests) < 2:
            return Dropped("fewer than two programs or tests are written")
        problem = Problem(task.question, "")
        cases = list(dict.fromkeys(case for test in tests for case in test))
        at = {case: k for k, case in enumerate(cases)}
        passed = [[cell.passed for cell in row] for row in trial(problem, cases, programs, ()).right]
        if any(ok is None for row in passed for ok in row):
            return Dropped("a program could not be run here")
        table = np.array([[all(row[at[case]] for case in test) for test in tests] for row in passed], dtype=bool)
        [found] = self._ranked(table)
        if why := unsettled(found):
            return Dropped(why)
        ranked = [t for t in found.order() if table[found.best, t]]
        order = [t for t in ranked if not (self.strict and table[:, t].all())][: self.keep]
        if not order:
            return Dropped("no test that the best program passes and another fails")
        made = reference(problem, list(dict.fromkeys(case for t in order for case in tests[t])))
        facts = {"passed": table.astype(int).tolist(), "made": (*task.meta.get("made", ()), "trials")}
        kept = noted(task, **facts, parents=(task.id,))
        return Task(task.id, task.prompt, made, "code", f"```python\n{programs[found.best]}\n```", meta=kept.meta)

    def _ranked(self, table: np.ndarray) -> list[Ranking]:
        found = ranked(self.strategy, [table])
        if isinstance(found, str):
            raise UsageError(f"S039: the strategy cannot be run: {found}")
        return found


def unsettled(ranking: Ranking) -> str:
    """Return why a ranking says nothing, empty where it does: zero-variance pruning."""
    if np.ptp(ranking.programs) == 0:
        return "all programs score equal"
    return "all tests score equal" if np.ptp(ranking.tests) == 0 else ""


@paper(
    "S039",
    "EvoSyn",
    arxiv="2510.17928",
    seams=["tasks", "verify", "select"],
    essentials={
        "a strategy ranks programs and tests by the matrix of passes": "test_the_strategies_worked_by_hand",
        "it is good where its first program is right and its first test agrees with people at both ends": (
            "test_what_makes_a_strategy_good"
        ),
        "a model changes its source; the fittest of cells are kept, on islands": "test_evolution_finds_a_better_one",
        "what a model writes runs in the sandbox": "test_strategies_that_cannot_be_used",
        "programs and tests are written and all run on all": "test_problems_are_made_with_their_tests",
        "problems of zero variance are pruned": "test_zero_variance_is_pruned",
        "what is evolved is better on other problems": "test_the_evolved_strategy_holds_on_other_problems",
    },
    choices=(
        "cells of the archive are by length and branches",
        "tests that every program passes are not kept: strict = false keeps them, as the paper's strategy may",
        "programs and tests that are written twice count once",
        "a test that the best program fails is passed over; the authors note it of the best test",
        "the words of prompts",
    ),
)
def evosyn(
    strategy: Path | None = None, programs: int = 16, tests: int = 16, keep: int = 1, strict: bool = True
) -> Pipeline:
    """Programming problems with tests that can be trusted: ``assay tasks make S039``.

        sq[s] = mean_t M[s, t];   tq[t] = mean sq of programs that pass t - mean sq of those that fail it
        pruned: all sq equal, or all tq equal

    The solver writes programs, the writer tests. The strategy is that of the paper, or one that :func:`evolve` found.

    Args:
        strategy: a Python file that defines ``rank(passed)``.
        programs, tests, keep, strict: see :class:`Trials`.

    Source: EvoSyn (arXiv 2510.17928) and its authors' code.
    """
    try:
        source = DISCRIMINATING if strategy is None else strategy.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"S039: strategy {strategy} cannot be read: {error.strerror or error}") from None
    return Pipeline("S039", [("trials", Trials(source, programs, tests, keep, strict))])


claims(
    Claim(
        paper="S039",
        text="A strategy that was evolved on problems with human tests ranks programs and tests of other problems "
        "rightly more often than the one that evolution began with, where some generated tests are wrong.",
        setting="faulty_tests",
        arms={"evolved": {"iterations": 12}, "counted": {"iterations": 0}},
        better="evolved",
        baseline="counted",
        measure="held out",
        evidence="mechanism",
        unequal="nothing is sampled from a policy",
    )
)
