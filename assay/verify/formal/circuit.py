"""What is read from a circuit in Verilog: its ports, whether it keeps state, and what it must not contain."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass

from assay.verify.formal.tool import Result, Syntax, Tool, Unstable, blank, first_error

YOSYS = Tool("yosys", "apt-get install yosys")
IVERILOG = Tool("iverilog", "apt-get install iverilog")
VVP = Tool("vvp", "apt-get install iverilog")
SYNTAX = Syntax("//", ("/*", "*/"), nested=False, escape=True)
NAME = re.compile(r"[A-Za-z_]\w{0,99}")
READ = "read_verilog -sv -noassert -noassume -norestrict"
_FUNCTIONS = "signed|unsigned|clog2|bits|countones|onehot|onehot0"
_ESCAPES = re.compile(
    rf"\$(?!(?:{_FUNCTIONS})\b)\w*|`(?:include|line|pragma)\b|``|`\"|\\\S+|"
    r"\b(?:bind|force|release|import|export|assume|restrict|program|config|defparam)\b"
)
_STATE = re.compile(r"dff|latch|mem|\$sr$|\$ff$")


@dataclass(frozen=True, slots=True)
class Port:
    """``direction``: ``input``, ``output`` or ``inout``; ``width`` in bits."""

    name: str
    direction: str
    width: int


@dataclass(frozen=True, slots=True)
class Circuit:
    """A module as yosys reads it: ``state``: it has registers, latches or memories; ``empty``: nothing at all."""

    ports: tuple[Port, ...]
    state: bool
    empty: bool


def escape(source: str, bench: str = "") -> str:
    """Return the first thing in a response's Verilog that a circuit has no use for and a cheat has, or nothing.

    System tasks (``$display``, ``$finish``, ``$fopen`` ...), directives that read files or paste names, statements that
    reach into other modules, escaped names (which can look like comments); with a test bench of the task's, also any
    name of a module or instance in it.
    """
    code = blank(source, SYNTAX)
    found = _ESCAPES.search(code)
    if found:
        return found.group()
    if bench:
        text = blank(bench, SYNTAX)
        modules = set(re.findall(r"\bmodule\s+(\w+)", text))
        names = modules | set(re.findall(r"\b(\w+)\s*(?:#\s*\([^;]*?\)\s*)?\b(?:\w+)\s*\(\s*\.", text))
        inner = set(re.findall(r"\b(?:reg|integer|wire|logic|int|real|event)\b[^;]*?\b(\w+)\s*[;,=]", text))
        for head in re.findall(r"(?<![\w.])([A-Za-z_]\w*)\s*\.\s*[A-Za-z_]", code):
            if head in names | inner:
                return f"{head}."
        for word in re.findall(r"[A-Za-z_]\w*", code):
            if word in modules:
                return word
    return ""


def read(source: str, module: str, seconds: float) -> tuple[Circuit | None, Result]:
    """Return what yosys finds in ``module``; ``None`` if it does not synthesise."""
    script = f"{READ} main.v; hierarchy -check -top {module}; prep -flatten -top {module}; write_json main.json"
    result = YOSYS.run(["-q", "-p", script], {"main.v": source}, seconds, ("main.json",))
    if not result.ok or "main.json" not in result.files:
        return None, result
    found = json.loads(result.files["main.json"])["modules"][module]
    ports = tuple(Port(name, p["direction"], len(p["bits"])) for name, p in found["ports"].items())
    state = any(_STATE.search(cell["type"]) for cell in found["cells"].values()) or bool(found.get("memories"))
    # Yosys takes a module without content, or marked as a black box, for a promise of one.
    empty = "blackbox" in found["attributes"]
    return Circuit(ports, state, empty), result


@functools.lru_cache(maxsize=256)
def _known(source: str, module: str, seconds: float) -> tuple[Circuit | None, Result]:
    found = read(source, module, seconds)
    if found[1].status in ("fault", "limit"):
        raise Unstable(found[1])
    return found


def read_task(source: str, module: str, seconds: float) -> tuple[Circuit | None, str]:
    """As :func:`read`, remembered; with the reason where it fails."""
    try:
        circuit, result = _known(source, module, seconds)
    except Unstable as error:
        circuit, result = None, error.result
    return circuit, "" if circuit else result.reason if result.status == "fault" else first_error(result.stderr)


def equivalent(golden: str, source: str, module: str, seconds: float) -> tuple[bool | None, str]:
    """Say whether two circuits without state give the same outputs for all inputs, by a SAT proof; and why not.

    An output that is x in ``golden`` may be anything; one that ``source`` leaves undriven is taken to be the worst.
    ``None``: it could not be told.
    """
    cheats = " ".join(f"t:${kind}" for kind in ("assume", "anyconst", "anyseq", "allconst", "allseq"))
    script = "; ".join(
        [
            f"{READ} golden.v; prep -flatten -top {module}; design -stash golden",
            f"{READ} main.v; hierarchy -check -top {module}; prep -flatten -top {module}",
            f"select -assert-none {cheats}; setundef -undriven -anyseq; design -stash main",
            f"design -copy-from golden -as golden {module}; design -copy-from main -as main {module}",
            "miter -equiv -ignore_gold_x -make_assert -flatten golden main miter; hierarchy -top miter",
            f"sat -prove-asserts -enable_undef -set-def-inputs -show-inputs -timeout {int(seconds) + 1} miter",
        ]
    )
    result = YOSYS.run(["-p", script], {"golden.v": golden, "main.v": source}, seconds + 5)
    if result.ok and "no model found: SUCCESS" in result.stdout:
        return True, ""
    if result.ok and "model found: FAIL" in result.stdout:
        rows = re.findall(r"^\s*\\in_(\w+)\s+(\d+|--)\s", result.stdout, re.MULTILINE)
        where = ", ".join(f"{name} = {value}" for name, value in dict(rows).items())
        return False, f"differs from the reference for {where}" if where else "differs from the reference"
    if result.status == "refused" and "Selection contains" in result.stdout + result.stderr:
        return False, "contains a cell for formal tools"
    return None, result.reason if result.status != "refused" else first_error(result.stderr, "ERROR")
