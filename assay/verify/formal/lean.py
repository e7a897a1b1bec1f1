"""Proofs checked by Lean 4, about a statement that stands in a file of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from assay.registry import part
from assay.sandbox.pool import sandbox
from assay.types import Task, Verdict
from assay.verify.formal.tool import Result, Syntax, Tool, blank, escape_in, first_error, program_of, verdict

LEAN = Tool("lean", "install elan, https://lean-lang.org/install, and put lean in PATH")
SYNTAX = Syntax("--", ("/-", "-/"), nested=True, escape=True)
STANDARD = ("propext", "Classical.choice", "Quot.sound")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_'.]{0,99}")
# What runs code while the file is read, or changes what the kernel is shown; unproved terms are found in the report.
_ESCAPES = re.compile(
    r"\b(?:import|unsafe|extern|implemented_by|csimp|initialize|builtin_initialize|run_cmd|run_elab|run_meta|run_tac|"
    r"elab|elab_rules|macro|builtin_macro|macro_rules|notation|infix[lr]?|prefix|postfix|unif_hint|syntax|declare_syntax_cat|skipKernelTC|addDecl\w*|ofReduceBool|trustCompiler|"
    r"include_str|eval_expr|by_elab)\b|#eval|debug\."
)
# Texts that blanking does not know, behind which a word could hide.
_QUOTES = re.compile(r"'\\?\"'|\br#*\"")
_NATIVE = re.compile(r"\b(?:native_decide|bv_decide)\b")
_REPORT = re.compile(r"'assay_checked' (does not depend on any axioms|depends on axioms: \[([^\]]*)\])")


@part("verify", "lean")
@dataclass(frozen=True, slots=True)
class Lean:
    """Right iff Lean 4 accepts the response as a proof of the task's statement, from allowed axioms only.

    ``task.reference`` is ``{"name": "add_zero", "statement": "forall n : Nat, n + 0 = n", "imports": "import Mathlib",
    "definitions": ...}``; the last two may be missing. The response is a term, ``by`` and tactics, or a development in
    which ``name`` is proved. Statement and response are compiled apart, and a third file checks the proof's type and
    prints its axioms, where ``sorry`` shows as ``sorryAx``. What a file brings to those that import it is refused,
    since it could change that check's meaning: notations, macros and their like; so are commands that run programs
    while the file is read (``#eval``, ``elab``, ``initialize`` ...).

    ``parts``: ``compiles``, ``statement``, ``closed``. A proof that takes more than its time is wrong; a statement that
    does not compile makes the verifier abstain.

    Args:
        seconds: of processor time of each of the three.
        axioms: that a proof may rest on.
        native: allow ``native_decide``, whose proofs trust the compiler.
        path: where further compiled libraries are, as in ``LEAN_PATH``.

    Raises:
        UsageError: Lean is not installed.
    """

    seconds: float = 120.0
    axioms: tuple[str, ...] = STANDARD
    native: bool = False
    path: str = ""

    def __post_init__(self) -> None:
        LEAN.require("lean")

    def ready(self) -> None:
        """Raise UsageError where the sandbox does not start."""
        sandbox().check()

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            name, spec, imports = _spec(task.reference)
        except (TypeError, KeyError, ValueError):
            return Verdict.abstain(f"task {task.id}: reference is not {{'name': ..., 'statement': ...}}")
        built = self._lean("Spec", {"Spec.lean": spec})
        if not built.ok:
            why = built.reason if built.status != "refused" else first_error(built.stdout + built.stderr)
            return Verdict.abstain(f"task {task.id}: its statement does not compile: {why}")
        shared = {"Spec.olean": built.files.get("Spec.olean", b"")}
        proof = program_of(response, ("lean", "lean4"))
        if proof is None or not proof.strip():
            return verdict({"compiles": 0.0, "statement": None, "closed": None}, "no proof found")
        proof = re.sub(r"^import [\w. ]+$", "", proof, flags=re.MULTILINE)
        code = blank(proof, SYNTAX)
        found = (
            escape_in(code, _ESCAPES) or escape_in(proof, _QUOTES) or ("" if self.native else escape_in(code, _NATIVE))
        )
        if found:
            return verdict({"compiles": None, "statement": None, "closed": 0.0}, f"uses {found}, which is not allowed")
        answer = f"{imports}\nimport Spec\n{development(name, proof, code)}\n"
        built = self._lean("Answer", {**shared, "Answer.lean": answer})
        if built.status == "fault":
            return Verdict.abstain(built.reason)
        if not built.ok or "Answer.olean" not in built.files:
            why = built.reason if built.status != "refused" else first_error(built.stdout + built.stderr)
            return verdict({"compiles": 0.0, "statement": None, "closed": None}, f"Lean refuses it: {why}")
        statement = f"theorem assay_checked : _root_.AssayClaim := @{name}"
        check = f"import Spec\nimport Answer\n{statement}\n#print axioms assay_checked\n"
        checked = self._lean("Check", {**shared, "Answer.olean": built.files["Answer.olean"], "Check.lean": check})
        if checked.status == "fault":
            return Verdict.abstain(checked.reason)
        if not checked.ok:
            return verdict({"compiles": 1.0, "statement": 0.0, "closed": None}, f"{name} does not prove the statement")
        native = ("Lean.ofReduceBool", "Lean.trustCompiler") if self.native else ()
        bad = unproved(checked.stdout, (*self.axioms, *native))
        return verdict({"compiles": 1.0, "statement": 1.0, "closed": float(not bad)}, f"rests on {bad}" if bad else "")

    def _lean(self, module: str, files: dict[str, str | bytes]) -> Result:
        where = {"LEAN_PATH": f".:{self.path}" if self.path else "."}
        return LEAN.run(["-o", f"{module}.olean", f"{module}.lean"], files, self.seconds, (f"{module}.olean",), where)


def unproved(report: str, allowed: tuple[str, ...]) -> str:
    """Return the first axiom of ``#print axioms`` that is not allowed, or nothing; what is no such report counts."""
    found = _REPORT.findall(report)
    if len(found) != 1:
        return "something Lean does not name"
    return next((a for a in re.split(r"[,\s]+", found[0][1].strip()) if a and a not in allowed), "")


def development(name: str, proof: str, code: str) -> str:
    """The response as it is if it states ``name`` itself, else as the proof of the statement."""
    if re.search(rf"\b(?:theorem|lemma|def|abbrev)\s+{re.escape(name)}(?![\w'.])", code):
        return proof
    body = proof.strip().removeprefix(":=")
    return f"theorem {name} : AssayClaim := {body}"


def _spec(reference: Any) -> tuple[str, str, str]:
    name, imports = str(reference["name"]), str(reference.get("imports", ""))
    if not _NAME.fullmatch(name):
        raise ValueError(name)
    claim = f"abbrev AssayClaim : Prop :=\n  {reference['statement']!s}"
    return name, f"{imports}\n{reference.get('definitions', '')!s}\n{claim}\n", imports
