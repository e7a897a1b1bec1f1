"""Which keys a reference may have. A key that nobody reads is a limit, a checker or tests that nobody applies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.errors import nearest

TESTS = frozenset(
    [
        *("inputs", "outputs", "input", "output", "input_output", "ground_truth", "tests", "test_cases"),
        *("public_test_cases", "private_test_cases", "public_tests", "private_tests", "generated_tests"),
        *("fn_name", "func_name", "metadata"),
        *("test_list", "assert_case", "challenge_test_list", "test_imports", "test_setup_code", "setup"),
        *("test", "pytest", "unittest", "doctest", "test_files", "module", "names", "classes", "entry_point"),
        *("prompt", "code", "canonical_solution"),
    ]
)
"""What says what the tests are."""
SETTINGS = frozenset(
    [
        *("language", "packages", "files", "main", "prelude", "compiler_options"),
        *("time_limit", "time_factor", "memory_limit", "memory_limit_bytes", "stack_limit", "process_limit"),
        *("output_limit", "weights", "groups", "points"),
        *("compare", "numbers", "checker", "interactor"),
    ]
)
"""What says how they are run and judged."""
COLUMNS = frozenset(
    [
        # APPS and TACO
        *("id", "problem_id", "question", "solutions", "difficulty", "url", "starter_code", "raw_tags", "name"),
        *("source", "tags", "skill_types", "date", "picture_num"),
        *("Expected Auxiliary Space", "Expected Time Complexity"),
        # LiveCodeBench
        *("question_title", "question_content", "platform", "question_id", "contest_id", "contest_date"),
        # CodeContests
        *("description", "incorrect_solutions", "cf_contest_id", "cf_index", "cf_points", "cf_rating", "cf_tags"),
        *("is_description_translated", "untranslated_description", "input_file", "output_file"),
        # HumanEval, MBPP and their like
        *("task_id", "text", "source_file", "title"),
        *("declaration", "docstring", "signature", "instruction", "buggy_solution", "bug_type", "failure_symptoms"),
        *("example_test", "complete_prompt", "instruct_prompt", "code_prompt", "libs", "doc_struct"),
    ]
)
"""Further columns of the published data sets, which say nothing about how to judge."""
TEST = frozenset(
    [
        *("input", "output", "stdin", "stdout", "args", "expected", "expected_output", "testtype"),
        *("weight", "group", "time_limit", "memory_limit"),
    ]
)
PROGRAM = frozenset(["source", "language", "files", "compiler_options"])
CHECKER = PROGRAM | {"function", "args", "accept"}
INTERACTOR = PROGRAM
COMPARER = frozenset(["source", "function", "packages"])


def check_keys(given: Mapping[str, Any], known: frozenset[str], whose: str = "the reference") -> None:
    """Raise ValueError for a key of ``given`` that is not ``known``, naming the one that may have been meant."""
    for key in given:
        if key not in known:
            raise ValueError(f"{whose} has a key {str(key)[:60]!r} that nobody reads{nearest(str(key), known)}")


def check_reference(given: Mapping[str, Any]) -> None:
    """Raise ValueError for unknown keys of a reference and of the programs in it."""
    known = TESTS | SETTINGS
    for key in given:
        if key not in known and key not in COLUMNS:
            check_keys({key: None}, known)
    for name, keys in (("checker", CHECKER), ("interactor", INTERACTOR), ("compare", COMPARER)):
        if isinstance(given.get(name), Mapping):
            check_keys(given[name], keys, f"the reference's {name}")
