"""Verilog: interface, equivalence, simulation, and circuits that try to speak for themselves."""

from __future__ import annotations

from typing import Any

import pytest

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task
from assay.verify.formal.circuit import IVERILOG, YOSYS

from .support import needs

pytestmark = needs(YOSYS, IVERILOG)

MUX = "module mux(input [1:0] a, input [1:0] b, input s, output [1:0] y); assign y = s ? a : b; endmodule"
HEAD = "module mux(input [1:0] a, input [1:0] b, input s, output reg [1:0] y);"
COUNTER = (
    "module counter(input clk, input rst, input en, output reg [3:0] q);\n"
    "always @(posedge clk) if (rst) q <= 0; else if (en) q <= q + 1;\nendmodule"
)
BENCH = """
module tb; reg [1:0] a, b; reg s; wire [1:0] y; integer errors; mux dut(.a(a), .b(b), .s(s), .y(y));
initial begin errors = 0;
  a = 1; b = 2; s = 0; #1 if (y !== 2) errors = errors + 1;
  s = 1; #1 if (y !== 1) errors = errors + 1;
  if (errors == 0) $display("ALL PASS"); else $display("%0d FAILED", errors);
  $finish; end endmodule
"""


def judge(response: str, **reference: Any) -> Any:
    return build("verify", "verilog")(Task("t", "?", reference), response)


def test_combinational_circuits_are_proved_equal() -> None:
    always = f"{HEAD} always @* begin if (s) y = a; else y = b; end endmodule"
    for response in (MUX, always, f"```verilog\n// it may $display in a comment\n{always}\n```"):
        verdict = judge(response, module="mux", golden=MUX)
        assert verdict.passed is True, verdict
        assert verdict.parts == {"compiles": 1.0, "interface": 1.0, "equivalent": 1.0}
    wrong = judge(MUX.replace("s ? a : b", "(a == 3 && b == 1) ? 0 : s ? a : b"), module="mux", golden=MUX)
    assert wrong.passed is False and "a = 3" in wrong.feedback and "b = 1" in wrong.feedback


def test_a_constant_circuit_is_no_empty_one() -> None:
    constant = MUX.replace("s ? a : b", "2'd1")
    assert judge(constant, module="mux", golden=constant).passed is True
    assert judge(constant, module="mux", golden=MUX).passed is False


def test_what_the_reference_leaves_open_may_be_anything() -> None:
    golden = f"{HEAD} always @* case ({{a, s}}) 0: y = b; 1: y = ~b; default: y = 2'bx; endcase endmodule"
    mine = f"{HEAD} always @* y = s ? ~b : b; endmodule"
    assert judge(mine, module="mux", golden=golden).passed is True
    # But not the other way round.
    assert judge(golden, module="mux", golden=mine).passed is False


def test_circuits_with_state_are_compared_by_simulation() -> None:
    reference = {"module": "counter", "golden": COUNTER, "clock": "clk", "reset": {"rst": 1}}
    other = COUNTER.replace("if (rst) q <= 0; else if (en) q <= q + 1;", "q <= rst ? 4'd0 : q + {3'b0, en};")
    assert judge(other, **reference).passed is True
    assert judge(COUNTER.replace("q + 1", "(q == 14 ? 0 : q + 1)"), **reference).passed is False
    assert judge(COUNTER.replace("posedge", "negedge"), **reference).passed is False


def test_vectors_are_parts() -> None:
    vectors = [
        {"inputs": {"a": 1, "b": 2, "s": 0}, "outputs": {"y": 2}},
        {"inputs": {"a": 1, "b": 2, "s": 1}, "outputs": {"y": 1}},
        {"inputs": {"a": 3, "b": 2, "s": 1}, "outputs": {"y": "x1"}},
    ]
    ports = {"a": ["input", 2], "b": ["input", 2], "s": ["input", 1], "y": ["output", 2]}
    reference = {"module": "mux", "ports": ports, "vectors": vectors}
    assert judge(MUX, **reference).passed is True
    half = judge(MUX.replace("s ? a : b", "b"), **reference)
    assert half.passed is False
    assert [half.parts[f"test {i}"] for i in range(3)] == [1.0, 0.0, 0.0]
    weighted = build("verify", {"name": "verilog", "weights": [0.2, 0.1, 0.7]})
    assert weighted(Task("t", "?", reference), MUX.replace("s ? a : b", "b")).score == pytest.approx(0.3 + 0.7 / 3)
    assert weighted(Task("t", "?", reference), "module mux(").score == 0
    silent = judge(MUX.replace("assign y = s ? a : b;", ""), **reference)
    assert silent.passed is False and silent.parts == {"compiles": 1.0, "interface": 1.0}


def test_vectors_with_a_clock_are_cycles() -> None:
    cycle = [(1, 0, 0), (0, 1, 1), (0, 1, 2), (0, 0, 2), (0, 1, 3)]
    vectors = [{"inputs": {"rst": r, "en": e}, "outputs": {"q": q}} for r, e, q in cycle]
    ports = {"clk": ["input", 1], "rst": ["input", 1], "en": ["input", 1], "q": ["output", 4]}
    assert judge(COUNTER, module="counter", ports=ports, vectors=vectors, clock="clk").passed is True


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (MUX.replace("mux", "mux2"), "synthesise"),
        (MUX.replace("input s", "input sel").replace("s ?", "sel ?"), "no port s"),
        (MUX.replace("output [1:0] y", "output [2:0] y"), "3 bits"),
        (MUX.replace("input s,", "input s, input extra,"), "extra"),
        (MUX.replace("endmodule", ""), "synthesise"),
    ],
)
def test_the_interface_counts(response: str, said: str) -> None:
    verdict = judge(response, module="mux", golden=MUX)
    assert verdict.passed is False and said in verdict.feedback
    assert verdict.parts["interface"] == 0


def test_a_test_bench_of_the_task() -> None:
    reference = {"module": "mux", "testbench": BENCH, "top": "tb", "pass": "ALL PASS", "fail": "FAILED"}
    assert judge(MUX, **reference).passed is True
    assert judge(MUX.replace("s ? a : b", "b"), **reference).passed is False


FORGERIES = {
    "prints": f'{HEAD} initial begin $display("ALL PASS"); $finish; end endmodule',
    "prints by a macro": f'`define P $display\n{HEAD} initial `P("ALL PASS"); endmodule',
    "pastes": f'`define P(x) x``display\n{HEAD} initial `P($)("ALL PASS"); endmodule',
    "prints behind a name like a comment": f'{HEAD} wire \\a/* ; initial $display("ALL PASS"); // */\nendmodule',
    "finishes": f"{HEAD} initial $finish; endmodule",
    "reads files": f'{HEAD} integer f; initial f = $fopen("bench.v"); endmodule',
    "includes": f'`include "bench.v"\n{MUX}',
    "reaches up": f"{HEAD} always @* begin y = 0; tb.errors = 0; end endmodule",
    "reaches up by name of a signal": f"{HEAD} always @* begin y = 0; tb . errors = -1; end endmodule",
    "forces": f"{HEAD} initial force tb.errors = 0; endmodule",
    "brings a bench": f"{MUX} module tb; endmodule",
    "assumes": f"{HEAD} always @* assume (0); endmodule",
    "formal cell": f"{HEAD} \\$assume x(.A(1'b0), .EN(1'b1)); endmodule",
    "any value": f"{HEAD} always @* y = $anyconst; endmodule",
    "black box": "(* blackbox *) module mux(input [1:0] a, input [1:0] b, input s, output [1:0] y); endmodule",
    "nothing": f"{HEAD} endmodule",
    "loops for ever": f"{HEAD} initial while (1) ; endmodule",
    "garbage": "ALL PASS",
    "empty": "",
    "unicode": "\ud800 module \u2200",
    "text": f'{HEAD} reg [8*8:1] t; initial t = "ALL PASS"; endmodule',
}


@pytest.mark.parametrize("response", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_circuit_cannot_speak_for_itself(response: str) -> None:
    bench = {"testbench": BENCH, "top": "tb", "pass": "ALL PASS"}
    verdict = judge(response, module="mux", **bench)
    assert verdict.passed is False, verdict
    if response != FORGERIES["brings a bench"]:  # which is no cheat where there is none
        verdict = judge(response, module="mux", golden=MUX)
        assert verdict.passed is False, verdict


def test_bad_tasks_abstain_and_options_are_checked() -> None:
    for reference in (None, {}, {"module": "m"}, {"module": "m", "golden": "module ("}, {"module": "a b", "ports": {}}):
        assert build("verify", "verilog")(Task("t", "?", reference), MUX).passed is None
    with pytest.raises(UsageError, match="add up"):
        build("verify", {"name": "verilog", "weights": [1.0, 1.0, 1.0]})
