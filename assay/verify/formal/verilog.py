"""Circuits in Verilog: interface, equivalence with a reference circuit by SAT, simulation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.sandbox.pool import sandbox
from assay.types import Task, Verdict
from assay.verify.formal.circuit import IVERILOG, NAME, YOSYS, Circuit, Port, equivalent, escape, read, read_task
from assay.verify.formal.simulate import agrees, outputs, printed, simulate
from assay.verify.formal.tool import first_error, program_of
from assay.verify.text.exact import shorten

RANDOM = 200
"""Inputs a circuit with state is compared with its reference on."""


@part("verify", "verilog")
@dataclass(frozen=True, slots=True)
class Verilog:
    """Right iff the response's module synthesises, has the ports asked for, and does what it should.

    ``task.reference`` has ``module``, the name, and one or more of

    - ``golden``: a module that is right. Without state the two are proved equal for all inputs (yosys, SAT); with state
      they are simulated on the same 200 random inputs (``clock`` names the clock, ``reset`` is ``{"rst": 1}``, held
      so in the first two cycles and now and then, else at the complement);
    - ``vectors``: ``[{"inputs": {"a": 1}, "outputs": {"y": 2}}, ...]``, with ``clock`` one per cycle; an output may
      also be binary text in which x is any bit;
    - ``testbench`` with ``top``, its module, and ``pass`` (and ``fail``), texts it prints; right iff a line has the
      first and none the second;

    and where there is no golden module ``ports``: ``{"a": ["input", 8], ...}`` (unless a test bench alone decides).

    A response cannot print: system tasks, and names of the test bench, are refused before anything runs. Of vectors and
    golden modules the values wanted are compared outside the simulation.

    ``parts``: ``compiles``, ``interface``, then ``test 0`` ... for vectors, ``equivalent``, ``testbench``. The score is
    ``w_c compiles + w_i interface + w_f share of the rest``, 1 where all is right.

    Args:
        seconds: of processor time of each tool.
        weights: (w_c, w_i, w_f), not negative, sum 1; e.g. (0.2, 0.1, 0.7).

    Raises:
        UsageError: yosys or iverilog is not installed, or weights are wrong.
    """

    seconds: float = 20.0
    weights: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        YOSYS.require("verilog")
        IVERILOG.require("verilog")
        if min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-9:
            raise UsageError(f"verifier 'verilog': weights {self.weights} must not be negative and add up to 1")

    def ready(self) -> None:
        """Raise UsageError where the sandbox does not start."""
        sandbox().check()

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            wanted = self._wanted(task.reference)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            return Verdict.abstain(f"task {task.id}: its reference cannot be used: {error}")
        reference, module, golden, ports = wanted
        parts: dict[str, float | None] = {"compiles": 0.0, "interface": 0.0}
        source = program_of(response, ("verilog", "systemverilog", "v", "sv"))
        if source is None or not source.strip():
            return self._verdict(parts, "no module found")
        if found := escape(source, str(reference.get("testbench", ""))):
            return self._verdict(parts, f"uses {shorten(found)}, which a circuit has no use for")
        mine, result = read(source, module, self.seconds)
        if result.status == "fault":
            return Verdict.abstain(result.reason)
        if mine is None:
            why = first_error(result.stderr, "ERROR") if result.status == "refused" else result.reason
            return self._verdict(parts, f"does not synthesise: {why}")
        parts["compiles"] = 1.0
        complaint = unlike(ports, mine.ports) if ports is not None else ""
        if complaint:
            return self._verdict(parts, complaint)
        parts["interface"] = 1.0
        if mine.empty:
            return self._verdict(parts, "the module is empty")
        clock = reference.get("clock")
        complaints = []
        if golden is not None and not golden.state:
            same, why = equivalent(reference["golden"], source, module, self.seconds)
            parts["equivalent"] = None if same is None else float(same)
            complaints += [why] if why else []
        elif golden is not None:
            inputs = stimuli(reference, golden.ports)
            right, _ = outputs(reference["golden"], module, golden.ports, inputs, clock, self.seconds)
            if len(right) < len(inputs):
                return Verdict.abstain(f"task {task.id}: its golden module does not simulate")
            found_parts, why = self._compare(source, module, golden.ports, inputs, right, clock)
            if found_parts is None:
                return Verdict.abstain(why)
            parts["equivalent"] = float(all(found_parts))
            complaints += [why] if why else []
        if "vectors" in reference:
            inputs = [dict(v["inputs"]) for v in reference["vectors"]]
            expected = [dict(v["outputs"]) for v in reference["vectors"]]
            found_parts, why = self._compare(source, module, ports or mine.ports, inputs, expected, clock)
            if found_parts is None:
                return Verdict.abstain(why)
            parts |= {f"test {i}": float(ok) for i, ok in enumerate(found_parts)}
            complaints += [why] if why else []
        if "testbench" in reference:
            files = {"main.v": source, "bench.v": str(reference["testbench"])}
            lines, ran = simulate(files, str(reference["top"]), self.seconds)
            if ran.status == "fault":
                return Verdict.abstain(ran.reason)
            failed = "fail" in reference and printed(lines, str(reference["fail"]))
            fine = ran.ok and printed(lines, str(reference["pass"])) and not failed
            parts["testbench"] = float(fine)
            complaints += [] if fine else [f"the test bench fails: {ran.reason or first_error(' '.join(lines[-3:]))}"]
        return self._verdict(parts, complaints[0] if complaints else "")

    def _wanted(self, reference: Any) -> tuple[Mapping[str, Any], str, Circuit | None, tuple[Port, ...] | None]:
        module = str(reference["module"])
        if not NAME.fullmatch(module):
            raise ValueError(f"{module!r} is no module's name")
        if "golden" in reference:
            golden, why = read_task(str(reference["golden"]), module, self.seconds)
            if golden is None:
                raise ValueError(f"its golden module does not synthesise: {why}")
            return reference, module, golden, golden.ports
        if "ports" in reference:
            ports = tuple(Port(str(n), str(d), int(w)) for n, (d, w) in reference["ports"].items())
            return reference, module, None, ports
        if "testbench" not in reference:
            raise ValueError("it has no golden module, no ports and no test bench")
        return reference, module, None, None

    def _compare(
        self,
        source: str,
        module: str,
        ports: Sequence[Port],
        inputs: Sequence[Mapping[str, int]],
        expected: Sequence[Mapping[str, int | str]],
        clock: str | None,
    ) -> tuple[list[bool] | None, str]:
        """Per input whether all outputs are as expected, and the first that are not; ``None`` with a fault of ours."""
        got, ran = outputs(source, module, ports, inputs, clock, self.seconds)
        if ran.status == "fault":
            return None, ran.reason
        widths = {p.name: p.width for p in ports}
        fine, complaint = [], ""
        for i, wanted in enumerate(expected):
            there = got[i] if i < len(got) else {}
            wrong = [n for n, w in wanted.items() if not agrees(there.get(n, ""), w, widths.get(n, 1))]
            fine.append(not wrong)
            if wrong and not complaint:
                shown = there.get(wrong[0])
                complaint = f"input {i}: {wrong[0]} is {shown}, not {wanted[wrong[0]]}" if shown else f"input {i}: "
                if not shown:
                    complaint += ran.reason or "the simulation ended before it"
        return fine, complaint

    def _verdict(self, parts: Mapping[str, float | None], complaint: str) -> Verdict:
        rest = [v for k, v in parts.items() if k not in ("compiles", "interface")]
        if None in rest and not any(v == 0 for v in rest):
            return Verdict(0.0, None, parts, complaint)
        share = sum(v or 0.0 for v in rest) / len(rest) if rest else 0.0
        compiles, interface, function = self.weights
        passed = not complaint
        score = compiles * (parts["compiles"] or 0) + interface * (parts["interface"] or 0) + function * share
        return Verdict(1.0 if passed else min(score, 1.0), passed, parts, complaint)


def unlike(wanted: Sequence[Port], found: Sequence[Port]) -> str:
    """Return how the ports found differ from those wanted, or nothing; their order does not count."""
    mine = {p.name: p for p in found}
    for port in wanted:
        other = mine.pop(port.name, None)
        if other is None:
            return f"has no port {port.name}"
        if other != port:
            return f"port {port.name} is {other.direction} of {other.width} bits, not {port.direction} of {port.width}"
    return f"has a port {next(iter(mine))} that is not asked for" if mine else ""


def stimuli(reference: Mapping[str, Any], ports: Sequence[Port]) -> list[dict[str, int]]:
    """Return random inputs that depend on the golden module alone; the reset is held for the first two."""
    seed = int.from_bytes(hashlib.blake2b(str(reference["golden"]).encode(errors="replace"), digest_size=8).digest())
    rng = np.random.default_rng(seed)
    reset = {str(k): int(v) for k, v in reference.get("reset", {}).items()}
    made = []
    for step in range(RANDOM):
        vector = {p.name: int.from_bytes(rng.bytes(-(-p.width // 8))) for p in ports if p.direction == "input"}
        # Now and then it is reset again.
        held = step < 2 or (reset and rng.random() < 0.02)
        made.append({**vector, **{k: v if held else 1 - v for k, v in reset.items()}})
    return made
