"""Simulation of a circuit whose outputs are compared outside the simulation."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence

from assay.verify.formal.circuit import IVERILOG, VVP, Port
from assay.verify.formal.tool import Result

Vector = Mapping[str, int]


def bench(module: str, ports: Sequence[Port], inputs: Sequence[Vector], clock: str | None, mark: str) -> str:
    """Return a test bench that applies ``inputs`` in turn and prints the outputs after each, in binary, after ``mark``.

    Without a clock outputs are read ten units after the inputs change. With one, inputs change while it is low, and
    outputs are read five units after it has risen.
    """
    given = [p for p in ports if p.direction == "input"]
    read = [p for p in ports if p.direction != "input"]
    lines = [f"module {mark};"]
    lines += [f"reg [{p.width - 1}:0] \\{mark}{p.name} = 0;" for p in given]
    lines += [f"wire [{p.width - 1}:0] \\{mark}{p.name} ;" for p in read]
    connections = ", ".join(f".{p.name}(\\{mark}{p.name} )" for p in ports)
    lines += [f"{module} {mark}dut({connections});", "initial begin"]
    shown = ", ".join(f"\\{mark}{p.name} " for p in read)
    form = " ".join("%b" for _ in read)
    for vector in inputs:
        for port in given:
            if port.name != clock:
                lines.append(f"\\{mark}{port.name} = {port.width}'d{vector.get(port.name, 0) % (1 << port.width)};")
        lines.append(f"#5 \\{mark}{clock} = 1; #5" if clock else "#10")
        lines.append(f'$display("{mark} {form}", {shown});')
        if clock:
            lines.append(f"\\{mark}{clock} = 0;")
    return "\n".join([*lines, "$finish;", "end", "endmodule"]) + "\n"


def outputs(
    source: str, module: str, ports: Sequence[Port], inputs: Sequence[Vector], clock: str | None, seconds: float
) -> tuple[list[dict[str, str]], Result]:
    """Return the outputs after each input, in binary by port name: as many as were reached.

    The bench's names cannot be known to the circuit, and the values wanted are not in the simulation.
    """
    mark = f"t{secrets.token_hex(12)}"
    # A time scale in the circuit's file would otherwise be the bench's too, or the other way round.
    files = {"main.v": source, "bench.v": f"`resetall\n`timescale 1ns/1ns\n{bench(module, ports, inputs, clock, mark)}"}
    lines, result = simulate(files, mark, seconds)
    names = [p.name for p in ports if p.direction != "input"]
    found = []
    for line in lines:
        words = line.split()
        if len(words) == len(names) + 1 and words[0] == mark:
            found.append(dict(zip(names, words[1:], strict=True)))
    return found, result


def simulate(files: Mapping[str, str], top: str, seconds: float) -> tuple[list[str], Result]:
    """Compile ``files`` in order with ``top`` as the only root, run, and return the lines printed."""
    options = ["-g2012", "-s", top, "-o", "main.vvp", *files]
    built = IVERILOG.run(options, files, seconds, ("main.vvp",))
    if not built.ok or "main.vvp" not in built.files:
        return [], built
    ran = VVP.run(["-n", "main.vvp"], {"main.vvp": built.files["main.vvp"]}, seconds)
    return ran.stdout.splitlines(), ran


def agrees(got: str, wanted: int | str, width: int) -> bool:
    """Whether binary ``got`` is ``wanted``: a number, or binary in which x stands for any bit."""
    if isinstance(wanted, int):
        return got == format(wanted % (1 << width), f"0{width}b")
    return len(got) == len(wanted) and all(w in "xXzZ" or g == w for g, w in zip(got, wanted, strict=True))


def printed(lines: Sequence[str], pattern: str) -> bool:
    """Whether a line contains ``pattern`` (a text, in any case)."""
    return any(re.search(re.escape(pattern), line, re.IGNORECASE) for line in lines)
