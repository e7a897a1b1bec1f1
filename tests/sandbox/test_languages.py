"""Programs in languages that are compiled or have a runtime of their own: they run, end truly, and stay confined."""

# ruff: noqa: E501  programs stand in texts

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.errors import UsageError
from assay.sandbox import Limits, Outcome, Program, Sandbox, compiled, java, languages
from assay.sandbox.languages import LANGUAGES, Language, language

from .support import needs_language, needs_sandbox

NAMES = ["java", "go", "rust", "typescript"]
SOME = [pytest.param(name, marks=pytest.mark.slow) if name != "typescript" else name for name in NAMES]
LIMITS = Limits(cpu_seconds=4, wall_seconds=6, memory=256 << 20, output=1 << 20, disk=16 << 20, processes=40)


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox(2) as made:
        yield made


def program(name: str, body: str, before: str = "") -> str:
    """A program in the language with ``body`` as its main part, which may throw."""
    return {
        "java": f"import java.util.*; import java.io.*; import java.net.*; import java.nio.file.*;\n{before}\npublic class Main {{ public static void main(String[] args) throws Exception {{ {body} }} }}",
        "go": f"package main\n{before}\nfunc main() {{ {body} }}",
        "rust": f"use std::io::*; use std::fs; use std::net; use std::thread; use std::process;\n{before}\n#[allow(unused)] fn main() {{ {body} }}",
        "typescript": f"import * as fs from 'fs';\nimport * as net from 'net';\nimport * as child from 'child_process';\n{before}\n{body}",
    }[name]


SUMS = {
    "java": "Scanner in = new Scanner(System.in); System.out.println(in.nextInt() + in.nextInt());",
    "go": "var a, b int; fmt.Scan(&a, &b); fmt.Println(a + b)",
    "rust": 'let mut s = String::new(); stdin().read_to_string(&mut s).unwrap(); println!("{}", s.split_whitespace().map(|x| x.parse::<i64>().unwrap()).sum::<i64>());',
    "typescript": "enum K { A }; const xs: number[] = fs.readFileSync(0, 'utf8').split(' ').map(Number); console.log(xs[0] + xs[1] + K.A)",
}
IMPORT = {"go": 'import "fmt"'}


@needs_sandbox
@pytest.mark.parametrize("name", NAMES)
def test_programs_run(box: Sandbox, name: str) -> None:
    needs_language(name)
    source = program(name, SUMS[name], IMPORT.get(name, ""))
    outcomes = box.run_many(Program(source, name), ["1 2\n", "40 2\n"], LIMITS)
    assert [(one.status, one.stdout) for one in outcomes] == [("ok", b"3\n"), ("ok", b"42\n")], outcomes
    assert all(0 < one.cpu_seconds < 4 and one.memory > 1 << 20 for one in outcomes)


BROKEN = {"java": "int x = ;", "go": "x :=", "rust": 'let x: i32 = "no";', "typescript": "let x: = 1"}
FAILING = {"java": "throw new RuntimeException(\"no\");", "go": 'panic("no")', "rust": 'panic!("no")', "typescript": "throw new Error('no')"}  # fmt: skip
ENDLESS = {"java": "while (true) {}", "go": "for {}", "rust": "loop {}", "typescript": "while (true) {}"}
HUNGRY = {
    "java": "List<long[]> all = new ArrayList<>(); while (true) all.add(new long[1 << 20]);",
    "go": "var all [][]byte; for { b := make([]byte, 1 << 20); for i := range b { b[i] = 1 }; all = append(all, b) }",
    "rust": "let mut all: Vec<Vec<u8>> = vec![]; loop { all.push(vec![1; 1 << 20]); }",
    "typescript": "const all: number[][] = []; while (true) all.push(new Array(1 << 16).fill(1.5))",
}


@needs_sandbox
@pytest.mark.parametrize("name", SOME)
def test_programs_end_truly(box: Sandbox, name: str) -> None:
    needs_language(name)
    short = Limits(cpu_seconds=1.5, wall_seconds=4, memory=256 << 20, processes=40)
    makes = bool(language(name).compile)  # type: ignore[union-attr]
    for bodies, status in (
        (BROKEN, "compile_error" if makes else "error"),
        (FAILING, "error"),
        (ENDLESS, "timeout"),
        (HUNGRY, "memory"),
    ):
        outcome = box.run(Program(program(name, bodies[name]), name), limits=short if bodies is ENDLESS else LIMITS)
        assert outcome.status == status, (bodies[name], outcome)


HOST_FILE = {
    "java": 'System.out.print(Files.readString(Path.of("{path}")));',
    "go": 'b, err := os.ReadFile("{path}"); if err != nil { panic(err) }; os.Stdout.Write(b)',
    "rust": 'print!("{}", fs::read_to_string("{path}").unwrap());',
    "typescript": "process.stdout.write(fs.readFileSync('{path}', 'utf8'))",
}
NETWORK = {
    "java": 'new Socket("1.1.1.1", 53); System.out.print("ESCAPED");',
    "go": 'if _, err := net.Dial("tcp", "1.1.1.1:53"); err != nil { panic(err) }; print("ESCAPED")',
    "rust": 'net::TcpStream::connect("1.1.1.1:53").unwrap(); print!("ESCAPED");',
    "typescript": "net.connect(53, '1.1.1.1', () => console.log('ESCAPED')).on('error', () => process.exit(3))",
}
BOMB = {
    "java": 'while (true) new ProcessBuilder("/bin/bash", "-c", "sleep 60").start();',
    "go": 'for { c := exec.Command("/bin/bash", "-c", "sleep 60"); if err := c.Start(); err != nil { panic(err) } }',
    "rust": 'loop { process::Command::new("/bin/bash").args(["-c", "sleep 60"]).spawn().unwrap(); }',
    "typescript": "while (true) { const made = child.spawn('/bin/bash', ['-c', 'sleep 60']); if (made.pid === undefined) process.exit(3) }",
}
GO_IMPORTS = {"file": 'import "os"', "network": 'import "net"', "bomb": 'import "os/exec"'}


@needs_sandbox
@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("kind", ["file", "network", "bomb"])
def test_hostile_programs_stay_confined(box: Sandbox, name: str, kind: str, tmp_path: Path) -> None:
    needs_language(name)
    secret = tmp_path / "secret"
    secret.write_text("ESCAPED")
    secret.chmod(0o644)
    before = GO_IMPORTS[kind] if name == "go" else ""
    bodies = {"file": HOST_FILE, "network": NETWORK, "bomb": BOMB}[kind]
    for path in (secret, "/etc/passwd", "/etc/shadow", f"/proc/{os.getpid()}/environ") if kind == "file" else ("",):
        body = bodies[name].replace("{path}", str(path))
        outcome = box.run(Program(program(name, body, before), name), limits=LIMITS)
        assert outcome.status in ("error", "timeout", "memory", "killed"), outcome
        assert b"ESCAPED" not in outcome.stdout and b"root:" not in outcome.stdout


UNRUNNABLE = {
    "c": "static volatile char big[1 << 30];\nint main(void) {return big[5];}",
    "rust": '#![crate_type = "lib"]\npub fn main() {}',
    "go": "package other\nfunc main() {}",
}


@needs_sandbox
@pytest.mark.parametrize("name", UNRUNNABLE)
def test_what_compiles_to_nothing_that_runs_is_no_fault_of_the_sandbox(box: Sandbox, name: str) -> None:
    needs_language(name)
    outcome = box.run(Program(UNRUNNABLE[name], name), limits=LIMITS)
    assert not outcome.failed_here, outcome


@needs_sandbox
def test_a_made_file_that_cannot_be_run_is_an_error(box: Sandbox) -> None:
    needs_language("c")
    outcome = box.run(Program("int main(void) {return 0;}", "c", options=("-c",)), limits=LIMITS)
    assert outcome.status == "error" and outcome.stderr == b"it cannot be run: Exec format error\n"


def test_what_is_compiled_is_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "LARGEST", 25)
    asked: list[str] = []

    def command(words: list[str], files: dict[str, str], *_: object, **__: object) -> Outcome:
        asked.append(files["main.c"])
        failed = files["main.c"] == "fails"
        return Outcome("infrastructure") if failed else Outcome("ok", files={"program": b"x" * 10})

    kept, way = compiled.Compiled(), LANGUAGES["c"][0]
    for source in ("a", "b", "a", "c", "a", "b", "fails", "fails"):
        kept.made(Program(source, "c"), way, command)
    # Room for two: "b" was the one asked for longest ago when "c" came; a failure of the sandbox is not kept.
    assert asked == ["a", "b", "c", "b", "fails", "fails"]


@pytest.mark.slow
@needs_sandbox
def test_many_classes_do_not_fill_the_sandbox(box: Sandbox) -> None:
    needs_language("java")
    many = "".join(f"class C{n} {{}}\n" for n in range(2500))
    outcome = box.run(Program(many + "public class Main { public static void main(String[] a) {} }", "java"))
    assert outcome.status == "compile_error" and "more than 2000 files" in outcome.reason


@needs_sandbox
def test_java_takes_its_stack_and_its_names_from_the_source(box: Sandbox) -> None:
    needs_language("java")
    deep = "static int f(int n) { return n == 0 ? 0 : 1 + f(n - 1); }"
    source = f"class Helper {{}}\nclass Deep {{ {deep} public static void main(String[] a) {{ System.out.print(f(100000)); }} }}"
    assert box.run(Program(source, "java"), limits=LIMITS).stdout == b"100000"
    shallow = box.run(Program(source, "java"), limits=Limits(memory=256 << 20, stack=512 << 10, processes=40))
    assert shallow.status == "error" and b"StackOverflowError" in shallow.stderr


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("public class Main { public static void main(String[] a) {} }", ("Main", "Main")),
        (
            "class Node {}\npublic class Solve { static class In {} public static void main(String[] a) {} }",
            ("Solve", "Solve"),
        ),
        ("class A {}\nclass B { public static void main(String[] a) {} }\nclass C {}", ("B", "B")),
        ("package a.b;\npublic class X { static void main(String[] a) {} }", ("X", "a.b.X")),
        (
            "// public class No {\n/* class Nor { */ class Yes { String s = \"class Not { void main(\"; char c = '{'; public static void main(String... a) {} }",
            ("Yes", "Yes"),
        ),
        ("public class Lib {}\nclass Run { public static void main(String[] a) {} }", ("Lib", "Run")),
        ("public final class F { void main() {} }", ("F", "F")),
        ('class T { String s = """\n class Q { """; public static void main(String[] a) {} }', ("T", "T")),
        ("", ("Main", "Main")),
        ("/*" * 50_000, ("Main", "Main")),
    ],
)
def test_names_in_java(source: str, named: tuple[str, str]) -> None:
    assert java.names(source) == named


def test_what_is_missing_is_said_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "located", lambda tool: "" if tool in ("rustc", "tsc") else "/usr/bin/node")
    monkeypatch.setattr(languages, "_succeeds", lambda command: False)
    for name, said in {
        "rust": "programs in rust need rustc (apt install rustc, or https://rustup.rs), which this machine does not have",
        "typescript": "programs in typescript need a newer node (install Node.js 22.7 or newer), or tsc (npm install --global typescript), which this machine does not have",
    }.items():
        with pytest.raises(UsageError) as raised:
            language(name)
        assert str(raised.value) == said


def test_the_first_way_that_works_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "located", lambda tool: f"/usr/bin/{tool}")
    for strips, file in ((True, ()), (False, "made")):
        monkeypatch.setattr(languages, "_succeeds", lambda command, strips=strips: strips)
        way = language("typescript")
        assert way is not None and bool(way.compile) is (not strips), file


def test_a_tool_in_a_home_shows_nothing_else_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder, shown in (("bin", "bin"), ("opt/go/bin", "opt/go")):
        tool = tmp_path / folder / "go"
        tool.parent.mkdir(parents=True)
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        monkeypatch.setattr(languages, "located", lambda _, tool=tool: str(tool))
        assert LANGUAGES["go"][0].folders() == (str(tmp_path / shown),)


def test_the_table_is_whole() -> None:
    for name, ways in LANGUAGES.items():
        for way in ways:
            assert isinstance(way, Language) and way.install and way.factor > 0, name
            assert all("{" + tool + "}" in (*way.run, *way.compile) for tool in way.tools), name
