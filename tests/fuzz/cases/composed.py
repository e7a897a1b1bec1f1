"""Verifiers made of verifiers."""

from __future__ import annotations

from fuzz.entry import Case, entry

BOTH = {"format": {"name": "format", "tags": ["answer"]}, "value": "exact"}
ANSWERS = ["<answer>5</answer>"]
CASES = [Case("5", ANSWERS), Case(["7", "x"], ["<answer>x</answer>"])]

for kind, options in (
    ("all_of", {"checks": BOTH}),
    ("any_of", {"checks": ["exact", "number", {"name": "text", "contains": True}]}),
    ("weighted", {"checks": BOTH, "weights": {"value": 3.0}, "threshold": 0.6}),
    ("gated", {"gate": BOTH["format"], "then": "exact"}),
    ("first", {"checks": ["none", "choice", "exact"]}),
    ("hybrid", {"rule": "text", "model": "exact"}),
    ("ensemble", {"checks": BOTH, "need": "majority"}),
):
    # What a check makes of white space outside of tags is its own.
    entry(kind, cases=CASES if kind != "any_of" else [Case("5", ["5", "It is 5."])], options=options, marked=False)
entry("flawed", cases=CASES, options={"verifier": "exact", "length": 0.5}, marked=False, spaces=False)
entry("by_kind", kind="by_kind", cases=CASES, options={"overrides": {"by_kind": "exact"}}, marked=False)
entry(
    "error_profile",
    kind="error_profile",
    cases=[Case("42", ["12 + 30 = 42, so \\boxed{42}", "x + 12 = 54, so x = 42. \\boxed{42}"])],
    marked=False,
)
