"""The languages programs may be written in: how a source becomes something that runs."""

from __future__ import annotations

import functools
import glob
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.errors import UsageError, nearest
from assay.sandbox import java
from assay.sandbox.confine import visible

VISIBLE = ("/usr/bin/", "/usr/lib", "/usr/share/", "/usr/libexec/", "/bin/", "/lib")
"""Where every program that is not Python's sees this machine's files; see :data:`assay.sandbox.confine.TOOLS`."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language other than Python.

    In commands ``{node}`` is the path of the tool ``node``, and the words ``{sources}`` and ``{options}`` become the
    names of the source files and the compiler options; ``{entry}`` is what the source calls its main part,
    ``{megabytes}`` and ``{stack}`` the limits in MiB and KiB.

    Attributes:
        file: name its source gets, without ``{entry}`` the same for all.
        tools: what has to be installed, as commands.
        install: how to get them.
        run: command that runs a program.
        compile: command that makes ``made`` of the sources, for the languages that have one.
        made: the file or folder a compiler makes.
        sources: how the names of files end that are given to the compiler with the main one.
        names: reads from a source what its file has to be called, without its suffix, and its entry.
        reserves: whether its runtime reserves address space it does not use.
        factor: of the time a Python program is given; see ``time_factors`` of the verifier ``code``.
        compiling: processor seconds a compiler may take.
        environment: further variables.
        readable: patterns of folders of this machine that its tools need beside their own.
        probe: options that a tool of enough age knows: the command must succeed here.
    """

    file: str
    tools: tuple[str, ...]
    install: str
    run: tuple[str, ...]
    compile: tuple[str, ...] = ()
    made: str = "program"
    sources: tuple[str, ...] = ()
    names: Callable[[str], tuple[str, str]] = lambda _: ("", "main")
    reserves: bool = False
    factor: float = 1.0
    compiling: float = 30.0
    environment: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[str, ...] = ()
    probe: tuple[str, ...] = ()

    def file_of(self, source: str) -> str:
        return self.file.format(stem=self.names(source)[0])

    def words(
        self,
        command: Sequence[str],
        source: str,
        files: Sequence[str] = (),
        options: Sequence[str] = (),
        numbers: Mapping[str, int] | None = None,
    ) -> list[str]:
        """Return ``command`` for a program of ``source``, with other ``files`` and compiler ``options``.

        The first word is a path of this machine, the others are as the sandbox shows them.
        """
        tools = {tool: located(tool) for tool in self.tools}
        shown = {tool: visible(os.path.realpath(path)) if _own_folder(path) else path for tool, path in tools.items()}
        main = self.file_of(source)
        lists = {
            "{sources}": [main, *(f for f in files if f.endswith(self.sources) and f != main)],
            "{options}": list(options),
        }
        named = {**shown, **(numbers or {}), "entry": self.names(source)[1]}
        made = [command[0].format_map(tools)]
        for word in command[1:]:
            made += lists[word] if word in lists else [word.format_map(named)]
        return made

    def folders(self) -> tuple[str, ...]:
        """Folders of this machine that its tools need to see."""
        found = {folder for tool in self.tools if (folder := _own_folder(located(tool)))}
        found |= {path for pattern in self.readable for path in glob.glob(pattern)}
        return tuple(sorted(found))

    @property
    def missing(self) -> str:
        """Which of its tools this machine does not have; empty if it has them all."""
        lost = [tool for tool in self.tools if not located(tool)]
        if not lost and self.probe and not _succeeds((located(self.tools[0]), *self.probe)):
            return f"a newer {self.tools[0]}"
        return " and ".join(lost)


_NODE = ("--max-old-space-size={megabytes}",)
_STRIP = ("--experimental-transform-types", "--no-warnings")
_JVM = ("-XX:+UseSerialGC", "-XX:ActiveProcessorCount=2", "-XX:-UsePerfData")
# Type errors are none of the run's; codes from 1000 to 1999 are of texts that are no TypeScript.
_TSC = (
    '"$@" > log 2>&1; if grep -q "error TS1[0-9][0-9][0-9]:" log || ! test -f made/main.js; '
    "then cat log >&2; exit 1; fi"
)

LANGUAGES: dict[str, tuple[Language, ...]] = {
    "python": (),
    "c": (
        Language(
            "main.c",
            ("gcc",),
            "apt install gcc",
            ("./program",),
            ("{gcc}", "-O2", "-std=gnu17", "-o", "program", "{options}", "{sources}", "-lm"),
            sources=(".c",),
        ),
    ),
    "cpp": (
        Language(
            "main.cpp",
            ("g++",),
            "apt install g++",
            ("./program",),
            ("{g++}", "-O2", "-std=gnu++20", "-o", "program", "{options}", "{sources}"),
            sources=(".cpp", ".cc", ".cxx"),
        ),
    ),
    "java": (
        Language(
            "{stem}.java",
            ("java", "javac"),
            "apt install default-jdk-headless",
            ("{java}", *_JVM, "-Xmx{megabytes}m", "-Xss{stack}k", "-cp", "made", "{entry}"),
            (
                *("{javac}", *(f"-J{flag}" for flag in _JVM), "-J-XX:TieredStopAtLevel=1"),
                *("-encoding", "UTF-8", "-proc:none", "-nowarn", "-d", "made", "{options}", "{sources}"),
            ),
            made="made",
            sources=(".java",),
            names=java.names,
            reserves=True,
            factor=2.0,
            readable=("/etc/java-*-openjdk", "/etc/ssl/certs/java"),
        ),
    ),
    "go": (
        Language(
            "main.go",
            ("go",),
            "apt install golang-go, or https://go.dev/dl",
            ("./program",),
            ("{go}", "build", "-o", "program", "{options}", "{sources}"),
            sources=(".go",),
            reserves=True,
            # With an empty cache it compiles what it needs of its library too.
            compiling=180.0,
            environment={"GOCACHE": "/tmp/.go", "GOPATH": "/tmp/.go", "GO111MODULE": "off", "CGO_ENABLED": "0"},
        ),
    ),
    "rust": (
        Language(
            "main.rs",
            ("rustc",),
            "apt install rustc, or https://rustup.rs",
            ("./program",),
            ("{rustc}", "--edition=2021", "--crate-type=bin", "-O", "-o", "program", "{options}", "main.rs"),
            compiling=60.0,
        ),
    ),
    "javascript": (Language("main.js", ("node",), "apt install nodejs", ("{node}", *_NODE, "main.js"), reserves=True),),
    "typescript": (
        Language(
            "main.ts",
            ("node",),
            "install Node.js 22.7 or newer",
            ("{node}", *_NODE, *_STRIP, "main.ts"),
            reserves=True,
            probe=(*_STRIP, "--version"),
        ),
        Language(
            "main.ts",
            ("tsc", "node"),
            "npm install --global typescript",
            ("{node}", *_NODE, "made/main.js"),
            (
                *("/bin/sh", "-c", _TSC, "sh", "{tsc}", "--target", "es2022", "--module", "commonjs"),
                *("--outDir", "made", "--rootDir", ".", "--skipLibCheck", "{options}", "main.ts"),
            ),
            made="made",
            reserves=True,
        ),
    ),
    "bash": (Language("main.sh", ("bash",), "apt install bash", ("{bash}", "main.sh")),),
}
"""Each language with the ways to run it, the best first; Python's programs need none."""
FACTORS = {name: ways[0].factor if ways else 1.0 for name, ways in LANGUAGES.items()}


def known(name: str) -> tuple[Language, ...]:
    """Return the ways to run programs in ``name``; raise UsageError if no language is called so."""
    if name not in LANGUAGES:
        raise UsageError(f"no language is called {name!r}{nearest(name, LANGUAGES)}")
    return LANGUAGES[name]


def language(name: str) -> Language | None:
    """Return the language ``name``, ``None`` for Python; raise UsageError if it is unknown or its tools are missing."""
    ways = known(name)
    for way in ways:
        if not way.missing:
            return way
    if not ways:
        return None
    lost = ", or ".join(f"{way.missing} ({way.install})" for way in ways)
    raise UsageError(f"programs in {name} need {lost}, which this machine does not have")


def located(tool: str) -> str:
    """Return the path of a tool of this machine, the system's before others in ``PATH``; empty if there is none."""
    return _located(tool, os.environ.get("PATH", ""))


@functools.lru_cache(256)
def _located(tool: str, path: str) -> str:
    found = shutil.which(tool, path="/usr/bin:/bin") or shutil.which(tool, path=path) or ""
    if os.path.basename(os.path.realpath(found)) == "rustup":
        # A stand-in that chooses among toolchains by files the sandbox does not show: asked once, here.
        asked = subprocess.run([os.path.realpath(found), "which", tool], capture_output=True, text=True, check=False)
        return asked.stdout.strip()
    return found


def _own_folder(path: str) -> str:
    """The folder of a tool that stands apart, with its libraries: ``/opt/go`` of ``/opt/go/bin/go``."""
    real = os.path.realpath(path)
    if real.startswith(VISIBLE):
        return ""
    above = os.path.dirname(os.path.dirname(real))
    # What is in somebody's home is not shown for the sake of one tool in it.
    return os.path.dirname(real) if Path.home().is_relative_to(above) else above


@functools.lru_cache(64)
def _succeeds(command: tuple[str, ...]) -> bool:
    try:
        tried = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return tried.returncode == 0
