"""Several files in one response: which blocks are files, what they are called, and which one is the program."""

# ruff: noqa: E501  programs stand in texts

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sandbox.support import needs_sandbox

from assay.types import Task, Verdict
from assay.verify.code.files import LONGEST, MOST, beside, path_of
from assay.verify.code.response import find_program
from assay.verify.code.verifier import Code

UTIL = "def double(x):\n    return 2 * x\n"
MAIN = "from util import double\nprint(double(int(input())))\n"
TESTS = [{"input": "4", "output": "8"}]


def judge(response: str, reference: Any = TESTS, **options: Any) -> Verdict:
    return Code(**options)(Task("t", "", reference, "code"), response)


def block(info: str, text: str) -> str:
    end = "" if text.endswith("\n") or not text else "\n"
    return f"```{info}\n{text}{end}```\n"


# --- what a block is called ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("info", "first", "path"),
    [
        ('python title="util.py"', "", "util.py"),
        ("python title='src/util.py' linenos", "", "src/util.py"),
        ("{.python filename=util.py}", "", "util.py"),
        ("python file: util.py", "", "util.py"),
        ("python name=data.bin", "", "data.bin"),
        ("util.py", "", "util.py"),
        ("python ./src/util.py", "", "src/util.py"),
        ("python:src/util.py", "", "src/util.py"),
        ("python", "# util.py", "util.py"),
        ("python", "# file: src/util.py", "src/util.py"),
        ("javascript", "// util.js", "util.js"),
        ("c", "/* util.h */", "util.h"),
        ("sql", "-- schema.sql", "schema.sql"),
        ("html", "<!-- page.html -->", "page.html"),
        ('python title="util.py"', "# other.py", "util.py"),
        # No names: what a comment says of something, paths that lead elsewhere, what is no path.
        ("python", "# util.py has the helpers", ""),
        ("python", "# numpy.array", ""),
        ("python", "# v1.2", ""),
        ("python", "#!/usr/bin/python3.py", ""),
        ("python3.11", "", ""),
        ("python", "# ../util.py", ""),
        ("python", "# /etc/util.py", ""),
        ('python title="../../util.py"', "", ""),
        ('python title="A helper"', "", ""),
        ("python", "#include <util.h>", ""),
        ("python", f"# {'a' * LONGEST}.py", ""),
    ],
)
def test_names_of_blocks(info: str, first: str, path: str) -> None:
    assert path_of(info, f"{first}\nx = 1\n" if first else "x = 1\n") == path


piece = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,8}", fullmatch=True)
paths = st.builds(lambda folders, name, end: "/".join([*folders, f"{name}.{end}"]), st.lists(piece, max_size=2), piece, st.sampled_from(["py", "txt", "json"]))  # fmt: skip
texts = st.text("abc =\n#'", max_size=30).map(lambda text: f"x{text}\n")
ways = st.sampled_from(['text title="{}"', "text file={}", "{}", "text {}", "text:{}", "#"])


@given(st.dictionaries(paths, st.tuples(texts, ways), max_size=6))
def test_files_are_read_as_they_were_written(files: dict[str, tuple[str, str]]) -> None:
    response, wanted = "", {}
    for path, (text, way) in files.items():
        wanted[path] = f"# {path}\n{text}" if way == "#" else text
        response += f"Here is a file.\n\n{block('text' if way == '#' else way.format(path), wanted[path])}\n"
    found = find_program(response + block("python", "print(1)\n"))
    assert found is not None and found.source == "print(1)\n" and not found.cut
    assert found.files == wanted


@given(st.text(st.sampled_from("`~# \n/.:=\"'ab_-{}pyfileintalm"), max_size=200), st.text(max_size=60))
@example('```python title="a.py"', "")
def test_whatever_is_written_a_path_stays_inside(text: str, more: str) -> None:
    found = find_program(f"```{text}\n{more}\n```\n```python\nprint(1)\n```")
    for path in found.files if found is not None else ():
        assert not path.startswith("/") and not {"", ".", ".."} & set(path.split("/"))
        assert path.isascii() and len(path) <= LONGEST


@given(st.dictionaries(paths, st.just(""), max_size=40), st.lists(paths, max_size=3))
@example({"a.py/b.py": "", "a.py": "", "data.txt/x.py": ""}, ["data.txt"])
def test_files_that_are_put_beside_others_fit(files: dict[str, str], taken: list[str]) -> None:
    kept = beside(files, taken, ["bundle"])
    names = [*taken, *kept]
    assert len(kept) <= MOST and not set(kept) & set(taken)
    assert not any(mine.startswith(f"{other}/") for mine in kept for other in names)
    assert not any(other.startswith(f"{mine}/") for mine in kept for other in names)


# --- which one is the program -------------------------------------------------------------------------------------------


@needs_sandbox
@pytest.mark.parametrize(
    "response",
    [
        block('python title="util.py"', UTIL) + block("python", MAIN),
        block("python", MAIN) + block('python title="util.py"', UTIL),
        block("util.py", UTIL) + block("main.py", MAIN),
        block("main.py", MAIN) + block("util.py", UTIL),
        block("python", f"# util.py\n{UTIL}") + block("python", f"# run.py\n{MAIN}"),
        block("util.py", "broken") + block("util.py", UTIL) + block("python", MAIN),
        block("python src/util.py", UTIL) + block("python", MAIN.replace("util", "src.util")),
        block("python", f"# solution.py\n{MAIN.replace('from util import double', UTIL)}"),
        block("text title=factor.txt", "2") + block("python", "print(int(open('factor.txt').read()) * int(input()))\n"),
    ],
)
def test_several_files(response: str) -> None:
    assert judge(response).passed is True


@needs_sandbox
def test_functions_are_found_in_the_file_that_defines_them() -> None:
    calls = {"fn_name": "f", "inputs": [[2]], "outputs": [4]}
    asserts = ["assert f(2) == 4"]
    own = block("python", "# answer.py\nfrom util import double\ndef f(x): return double(x)\n")
    for reference in (calls, asserts):
        assert judge(own + block("util.py", UTIL), reference).passed is True
        usage = block("python", "from answer import f\nprint(f(2))\n")
        assert judge(block("util.py", UTIL) + own + usage, reference).passed is True


@needs_sandbox
def test_files_are_there_too_where_tests_share_the_process() -> None:
    tests = "import solution\nfrom unittest import mock\ndef test_it():\n    with mock.patch('solution.double', lambda x: 5):\n        assert solution.f(1) == 5\n"
    response = block("util.py", UTIL) + block("python", "from util import double\ndef f(x): return double(x)\n")
    assert judge(response, {"unittest": tests}, allow_shared_process=True).passed is True


@needs_sandbox
def test_a_task_says_which_file_is_the_program() -> None:
    response = block("first.py", "print(8)\n") + block("second.py", "print(9)\n")
    assert judge(response, {"tests": TESTS, "main": "first.py"}).passed is True
    assert judge(response).passed is False


@needs_sandbox
def test_no_file_of_a_response_replaces_one_of_the_task() -> None:
    reference = {"tests": [{"input": "", "output": "ours"}], "files": {"data.txt": "ours"}}
    show = block("python", "print(open('data.txt').read())\n")
    assert judge(block("text title=data.txt", "theirs") + show, reference).passed is True
    # Nor can one make the sandbox fail, which would be no verdict.
    for path in ("data.txt/x.py", "bundle/x.py", "main.py/x.py", "bundle/a/b.py"):
        assert judge(block(f"text title={path}", "") + show, reference).passed is True
        both = block(f"text title={path}", "") + block("python", "def f(x): return x\n")
        assert judge(both, ["assert f(1) == 1"]).passed is True


@needs_sandbox
def test_a_file_that_was_cut_off_is_told() -> None:
    response = block("python", MAIN) + "```util.py\ndef double(x):\n    return 2 * x"
    assert judge(response).passed is True
    assert judge(response, cut=False).feedback == "the program's code block is not closed"


@needs_sandbox
@pytest.mark.parametrize(
    ("language", "files"),
    [
        ("c", {"add.h": "int add(int a);\n", "add.c": "int add(int a) {return 2 * a;}\n", "": '#include <stdio.h>\n#include "add.h"\nint main(void) {int a; scanf("%d", &a); printf("%d", add(a));}\n'}),
        ("cpp", {"add.cpp": "int add(int a) {return 2 * a;}\n", "": "#include <iostream>\nint add(int);\nint main() {int a; std::cin >> a; std::cout << add(a);}\n"}),
        ("javascript", {"lib/add.js": "exports.add = a => 2 * a\n", "": "const {add} = require('./lib/add')\nconsole.log(add(Number(require('fs').readFileSync(0, 'utf8'))))\n"}),
        ("java", {"Add.java": "class Add { static int twice(int a) { return 2 * a; } }\n", "Main.java": "import java.util.*;\npublic class Main { public static void main(String[] a) { System.out.println(Add.twice(new Scanner(System.in).nextInt())); } }\n"}),
        ("rust", {"add.rs": "pub fn add(a: i64) -> i64 { 2 * a }\n", "main.rs": 'mod add;\nfn main() { let mut s = String::new(); std::io::stdin().read_line(&mut s).unwrap(); println!("{}", add::add(s.trim().parse().unwrap())); }\n'}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_several_files_in_other_languages(language: str, files: dict[str, str]) -> None:
    from sandbox.support import needs_language

    needs_language(language)
    response = "".join(block(f"{language} {path}".strip(), text) for path, text in files.items())
    verdict = judge(response, {"tests": TESTS, "language": language})
    assert verdict.passed is True, verdict
