"""Proofs, verified programs, circuits, and programs judged without running them."""

from __future__ import annotations

from fuzz.entry import Case, entry

PLUS = {"name": "add_zero", "statement": "forall n : nat, n + 0 = n"}
entry(
    "coq",
    soup="coq",
    seconds=20.0,
    options={"seconds": 5.0},
    share=0.02,
    marked=False,
    spaces=False,
    cases=[
        Case(PLUS, ["Proof. intros n. induction n; simpl; congruence. Qed."]),
        Case({"name": "t", "statement": "True"}, ["exact I."]),
    ],
    apart=False,
)
entry(
    "lean",
    soup="coq",
    seconds=60.0,
    options={"seconds": 20.0},
    share=0.01,
    marked=False,
    spaces=False,
    cases=[Case({"name": "t", "statement": "forall n : Nat, n + 0 = n"}, ["by intro n; rfl"])],
)
entry(
    "dafny",
    soup="coq",
    seconds=60.0,
    options={"seconds": 20.0},
    share=0.01,
    marked=False,
    spaces=False,
    cases=[
        Case(
            {"source": "method Twice(x: int) returns (y: int)\n  ensures y == 2 * x\n"},
            ["```dafny\nmethod Twice(x: int) returns (y: int)\n  ensures y == 2 * x\n{\n  y := x + x;\n}\n```"],
        )
    ],
)
entry(
    "verus",
    soup="coq",
    seconds=60.0,
    options={"seconds": 20.0},
    share=0.01,
    marked=False,
    spaces=False,
    cases=[
        Case(
            {
                "source": "use vstd::prelude::*;\nverus! {\nfn same(x: u32) -> (y: u32)\n    ensures y == x,\n"
                "{\n{{body}}\n}\nfn main() {}\n}\n"
            },
            ["x"],
        )
    ],
)
entry(
    "verilog",
    soup="verilog",
    seconds=20.0,
    options={"seconds": 4.0},
    share=0.02,
    marked=False,
    spaces=False,
    cases=[
        Case(
            {"module": "both", "golden": "module both(input a, input b, output y); assign y = a & b; endmodule"},
            ["```verilog\nmodule both(input a, input b, output y);\n  assign y = ~(~a | ~b);\nendmodule\n```"],
        )
    ],
)
entry(
    "static",
    soup="code",
    marked=False,
    share=0.5,
    apart=False,
    cases=[Case(None, ["```python\ndef f(x):\n    return x * x\n```", "```python\nprint(1)\n```"])],
)

ABS = """method abs(x: int) returns (r: int)
  ensures r >= 0 && (r == x || r == -x)
{ if x >= 0 { r := x; } else { r := -x; } }"""
CONTRACT = {
    "source": ABS,
    "positive": [[[-3], [3]], [[0], [0]], [[5], [5]]],
    "negative": [[[-3], [-3]], [[-3], [4]], [[0], [1]], [[5], [-5]]],
}
for name in ("prover", "verina"):
    entry(
        name,
        soup="contract",
        seconds=60.0,
        options={"effort": 200_000, "seconds": 5.0},
        share=0.2,
        marked=False,
        spaces=False,
        apart=False,
        abstains="cannot be tried out",
        needs=("z3",),
        cases=[
            Case({"ask": "all", **CONTRACT}, [ABS, f"```dafny\n{ABS}\n```"]),
            Case({"ask": "code", **CONTRACT}, [ABS, ABS.replace(">= 0 {", "> 0 {")]),
            Case({"ask": "spec", **CONTRACT}, [ABS.partition("{")[0]]),
            Case({"ask": "proof", **CONTRACT}, [ABS.replace("r := -x;", "r := -x; assert r == -x;")]),
        ],
    )

entry(
    "claims",
    soup="smt",
    seconds=60.0,
    marked=False,
    apart=False,
    needs=("z3",),
    cases=[
        Case(
            {"constants": {"age": "Int", "adult": "Bool"}, "context": ["if age >= 18 then adult", "age = 20"]},
            ["adult", "age is at least 18\nadult", "- (>= age 18)"],
        )
    ],
)
