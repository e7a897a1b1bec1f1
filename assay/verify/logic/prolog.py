"""Prolog programs and queries, judged by their solutions; run by SWI-Prolog in the sandbox for untrusted programs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

from assay.errors import UsageError
from assay.registry import part
from assay.sandbox import Limits, Outcome, Program, SandboxUnavailable, sandbox
from assay.types import Verdict
from assay.verify.puzzles.puzzle import BadAnswer, Puzzle
from assay.verify.text.exact import shorten

_MEMORY = 1 << 30
_LINE = re.compile(r"^@@ ([0-9]+) (more|error|solution|done) (.*)$", re.MULTILINE)
_QUERY = re.compile(r"^\s*\?-")

# Solutions are written as sorted bindings of the query's named variables, so that their order does not count.
_DRIVER = r"""
:- module(driver, [main/0]).
:- use_module(library(apply)).
:- use_module(library(lists)).
:- use_module(library(solution_sequences)).
:- set_prolog_flag(verbose, silent).
main :-
    catch(load_files(user:'program.pl', [silent(true)]), E, (print_message(error, E))),
    open('queries.pl', read, S), ask(S, 1).
ask(S, I) :-
    catch(read_term(S, G, [variable_names(Vs), module(user)]), E, (report(I, error, E), fail)),
    ( G == end_of_file -> true ; answer(I, G, Vs), J is I + 1, ask(S, J) ).
answer(I, G, Vs) :-
    most(Most), Limit is Most + 1,
    exclude(anonymous, Vs, Named), sort(1, @<, Named, Sorted),
    ( catch(findall(Sorted, limit(Limit, user:G), All), E, (report(I, error, E), fail)) ->
        length(All, N),
        ( N > Most -> report(I, more, Most) ; sort(All, Set), forall(member(B, Set), report(I, solution, B)),
          length(Set, Count), report(I, done, Count) )
    ; true ).
anonymous(Name = _) :- sub_atom(Name, 0, 1, _, '_').
report(I, Kind, T) :-
    copy_term(T, C, _), numbervars(C, 0, _),
    format("~n@@ ~d ~w ", [I, Kind]),
    write_term(C, [quoted(true), ignore_ops(true), numbervars(true), max_depth(0)]), nl, flush_output.
"""

Results = tuple[frozenset[str] | str, ...]
"""For each query its solutions, or the error that it raised."""


@dataclass(frozen=True, slots=True)
class Questions:
    program: str
    queries: tuple[str, ...]
    facts: str
    ask: Literal["program", "query"]


@part("verify", "prolog")
@dataclass(frozen=True, slots=True)
class Prolog(Puzzle):
    """Right iff the program, or the query, in the answer has the solutions that the reference has.

    ``task.reference`` is ``{"program": text, "queries": [goals], "ask": ..., "facts": text}``.

    - ``"program"`` (default): the answer is a program; right iff, together with ``"facts"``, each query has the same
      set of solutions (bindings of the query's named variables) as with the reference program.
    - ``"query"``: the answer is a goal; right iff on the reference program it has the solutions of the only query
      given, with variables of the same names.

    The order and number of equal solutions do not count. Limits are part of what is asked: an answer that takes longer
    than ``seconds`` of processor time for all queries, or has more than ``most`` solutions, is wrong; where the
    reference does, or the sandbox fails, the verifier abstains. ``parts``: ``queries``, the share with the right
    solutions.

    Raises:
        UsageError: when made, if SWI-Prolog is not in ``/usr/bin``.
    """

    seconds: float = 5.0
    most: int = 10_000
    max_chars: int = 50_000
    shape: ClassVar[str] = "{'program': text, 'queries': [goals]}"

    def __post_init__(self) -> None:
        if shutil.which("swipl", path="/usr/bin:/bin") is None:
            raise UsageError("verifier 'prolog' needs SWI-Prolog (swipl) in /usr/bin: apt-get install swi-prolog-nox")

    def ready(self) -> None:
        """Raise SandboxUnavailable where this machine cannot run programs in isolation."""
        sandbox().check()

    def read(self, reference: Mapping[str, Any]) -> Questions:
        queries, ask = reference["queries"], reference.get("ask", "program")
        queries = (queries,) if isinstance(queries, str) else tuple(str(query) for query in queries)
        if not queries or ask not in ("program", "query") or (ask == "query" and len(queries) != 1):
            raise ValueError("'queries' is empty, or 'ask' is neither 'program' nor 'query' with one query")
        return Questions(str(reference["program"]), queries, str(reference.get("facts", "")), ask)

    def check(self, puzzle: Questions, answer: str) -> Verdict:
        expected = _reference(f"{puzzle.facts}\n{puzzle.program}", puzzle.queries, self.seconds, self.most)
        if isinstance(expected, str):
            return Verdict.abstain(f"the reference: {expected}")
        if puzzle.ask == "program":
            outcome = _run(f"{puzzle.facts}\n{answer}", puzzle.queries, self.seconds, self.most)
        else:
            goal = _QUERY.sub("", answer).strip().rstrip(".")
            outcome = _run(f"{puzzle.facts}\n{puzzle.program}", (goal,), self.seconds, self.most)
        if outcome.status == "infrastructure":
            return Verdict.abstain(f"the sandbox failed: {outcome.reason}")
        got = results_of(outcome, len(puzzle.queries))
        if isinstance(got, str):
            raise BadAnswer(f"the {puzzle.ask}: {got}")
        right = [mine == theirs for mine, theirs in zip(got, expected, strict=True)]
        share = sum(right) / len(right)
        complaint = ""
        if share < 1:
            first = right.index(False)
            complaint = f"query {shorten(puzzle.queries[first], 60)}: {_difference(got[first], expected[first])}"
        return self.verdict(complaint, share, {"queries": share})


def _run(program: str, queries: tuple[str, ...], seconds: float, most: int) -> Outcome:
    files: dict[str, str | bytes] = {
        "driver.pl": f"{_DRIVER}most({most}).\n",
        "program.pl": program.encode("utf-8", "replace"),
        "queries.pl": "".join(f"{query.rstrip(' .')}\n.\n" for query in queries).encode("utf-8", "replace"),
    }
    command = "exec swipl -q -f none --stack-limit=256m -g main -t halt driver.pl < /dev/null"
    limits = Limits(cpu_seconds=seconds, wall_seconds=10 * seconds, memory=_MEMORY)
    try:
        return sandbox().run(Program(command, "bash", files), limits=limits)
    except SandboxUnavailable as error:
        return Outcome("infrastructure", reason=str(error))


@lru_cache(maxsize=1024)
def _reference(program: str, queries: tuple[str, ...], seconds: float, most: int) -> Results | str:
    results = results_of(_run(program, queries, seconds, most), len(queries))
    if isinstance(results, str):
        return results
    failed = next((result for result in results if isinstance(result, str)), None)
    return results if failed is None else failed


def results_of(outcome: Outcome, count: int) -> Results | str:
    """Return what the driver wrote of ``count`` queries, or a phrase that says why it wrote nothing useful."""
    if outcome.status not in ("ok", "error"):
        return outcome.reason or f"ended with {outcome.status}"
    solutions: list[set[str]] = [set() for _ in range(count)]
    # A program that halts leaves queries unanswered, which is not the same as no solutions.
    failures = dict.fromkeys(range(count), "is not answered")
    for number, kind, text in _LINE.findall(outcome.stdout.decode("utf-8", "replace")):
        index = int(number[:9]) - 1
        if not 0 <= index < count:
            continue
        if kind == "solution":
            solutions[index].add(text)
        elif kind == "done":
            failures.pop(index, None)
        else:
            failures[index] = f"raises {shorten(text, 100)}" if kind == "error" else f"has more than {text} solutions"
    return tuple(failures.get(i, frozenset(found)) for i, found in enumerate(solutions))


def _difference(got: frozenset[str] | str, expected: frozenset[str] | str) -> str:
    if isinstance(got, str):
        return got
    assert not isinstance(expected, str)
    missing, extra = sorted(expected - got), sorted(got - expected)
    return f"lacks {shorten(missing[0], 80)}" if missing else f"has {shorten(extra[0], 80)}, which is not expected"
