"""Rust programs checked by Verus, with the task's specification as it was given."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.registry import part
from assay.sandbox.pool import sandbox
from assay.types import Task, Verdict
from assay.verify.formal.tool import Syntax, Tool, balanced, blank, escape_in, first_error, program_of, verdict

VERUS = Tool("verus", "get a release of https://github.com/verus-lang/verus and put verus in PATH")
SYNTAX = Syntax("//", ("/*", "*/"), nested=True, escape=True)
HOLE = "{{body}}"
_ESCAPES = re.compile(
    r"\b(?:assume|admit|assume_specification|external_body|external|external_fn_specification|unsafe|axiom|"
    r"unimplemented|include|include_str|macro_rules|extern|mod)\b|#!?\s*\[|r#*\"|'[{}]'"
)
_QUOTES = re.compile(r"'\\?\"'")
_RESULTS = re.compile(r"verification results:: (\d+) verified, (\d+) errors")


@part("verify", "verus")
@dataclass(frozen=True, slots=True)
class Verus:
    """Right iff Verus verifies the task's program with the response in the place left for it.

    ``task.reference`` is ``{"source": text}``, a Rust file for Verus in which ``{{body}}`` stands, once, inside the
    braces of the function to write. The response is that body. Its braces have to match, so that nothing before or
    after the place can be changed; attributes, ``assume``, ``admit``, ``unsafe`` and other ways round the proof are
    refused. ``parts``: ``parses`` and ``verifies``. A body that takes more than its time is wrong.

    Args:
        seconds: of processor time.

    Raises:
        UsageError: Verus is not installed.
    """

    seconds: float = 120.0

    def __post_init__(self) -> None:
        VERUS.require("verus")

    def ready(self) -> None:
        """Raise UsageError where the sandbox does not start."""
        sandbox().check()

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            source = str(task.reference["source"])
        except (TypeError, KeyError):
            source = ""
        if source.count(HOLE) != 1:
            return Verdict.abstain(f"task {task.id}: reference is not {{'source': a file with {HOLE} in it once}}")
        body, complaint = body_of(response)
        if complaint:
            return verdict({"parses": 0.0, "verifies": None}, complaint)
        result = VERUS.run(["main.rs"], {"main.rs": source.replace(HOLE, body)}, self.seconds)
        if result.status == "fault":
            return Verdict.abstain(result.reason)
        found = _RESULTS.findall(result.stdout + result.stderr)
        fine = result.ok and len(found) == 1 and found[0][1] == "0" and found[0][0] != "0"
        why = result.reason if result.status == "limit" else first_error(result.stderr, r"^error")
        return verdict({"parses": float(bool(found)), "verifies": float(fine)}, "" if fine else f"not verified: {why}")


def body_of(response: str) -> tuple[str, str]:
    """Return the body in a response, without braces of its own round it, and what speaks against it, or nothing."""
    body = (program_of(response, ("rust", "verus", "rs")) or "").strip()
    if not body:
        return "", "no body found"
    code = blank(body, SYNTAX)
    if found := escape_in(code, _ESCAPES) or escape_in(body, _QUOTES):
        return body, f"uses {found}, which is not allowed"
    if not balanced(code) or code.count('"') % 2:
        return body, "its braces or quotes do not match"
    # A comment that the body leaves open would take in what follows it.
    if "/*" in body and not blank(f"{body}\nX", SYNTAX).endswith("X"):
        return body, "its comments do not end"
    return body, ""
