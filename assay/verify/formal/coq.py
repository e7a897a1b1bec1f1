"""Proofs checked by Coq, about a statement that stands in a file of its own."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

from assay.registry import part
from assay.sandbox.pool import sandbox
from assay.types import Task, Verdict
from assay.verify.formal.tool import Result, Syntax, Tool, Unstable, blank, escape_in, first_error, program_of, verdict

COQC = Tool("coqc", "apt-get install coq", ("/etc/ocamlfind.conf",))
SYNTAX = Syntax(None, ("(*", "*)"), nested=True, escape=False, quoting=True)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_']{0,99}")
# What could act on the checker itself; anything unproved is found by Print Assumptions, whatever it is called.
_ESCAPES = re.compile(
    r"\b(?:Declare\s+ML\s+Module|Load|Redirect|Drop|Cd|Add\s+(?:Rec\s+)?(?:LoadPath|ML\s+Path)|Extraction|"
    r"Recursive\s+Extraction|Separate\s+Extraction|Unset\s+(?:Guard|Positivity|Universe)\s+Checking|bypass_check|"
    r"native_compute)\b"
)
_UNPROVED = re.compile(r"\b(?:Admitted|admit|give_up|Axioms?|Parameters?|Conjecture|Hypothes[ie]s|Variables?)\b")
_CLOSED = "Closed under the global context"


@part("verify", "coq")
@dataclass(frozen=True, slots=True)
class Coq:
    """Right iff Coq accepts the response as a proof of the task's statement, from allowed axioms only.

    ``task.reference`` is ``{"name": "add_zero", "statement": "forall n, n + 0 = n", "imports": "Require Import
    Arith.", "definitions": ...}``; the last two may be missing. The response is the proof (``Proof. ... Qed.``, or
    tactics alone) or a development in which ``name`` is proved, with lemmas of its own.

    Statement and definitions are compiled by themselves; the response is compiled against them in another sandbox; a
    third one, in which none of the response's notations, scopes or options hold, checks that its term has the
    statement's type and prints what it assumes. So a response can change neither the statement nor the report.

    ``parts``: ``compiles``, ``statement`` (the term has the statement's type), ``closed`` (no axiom but those
    allowed). Commands that act on the checker (``Load``, ``Declare ML Module``, ``Unset Guard Checking`` ...) are
    refused. A proof that takes more than its time is wrong; a statement that does not compile makes the verifier
    abstain.

    Args:
        seconds: of processor time for each of the three.
        axioms: that a proof may rest on, by full or last name, e.g. ``functional_extensionality_dep``.

    Raises:
        UsageError: Coq is not installed.
    """

    seconds: float = 30.0
    axioms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        COQC.require("coq")

    def ready(self) -> None:
        """Raise UsageError where the sandbox does not start."""
        sandbox().check()

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            name, spec, imports = _spec(task.reference)
        except (TypeError, KeyError, ValueError):
            return Verdict.abstain(f"task {task.id}: reference is not {{'name': ..., 'statement': ...}}")
        compiled = _compile_spec(spec, self.seconds)
        if not compiled.ok:
            why = compiled.reason if compiled.status == "fault" else first_error(compiled.stderr)
            return Verdict.abstain(f"task {task.id}: its statement does not compile: {why}")
        proof = program_of(response, ("coq", "rocq", "v", "ocaml"))
        if proof is None or not proof.strip():
            return verdict({"compiles": 0.0, "statement": None, "closed": None}, "no proof found")
        code = blank(proof, SYNTAX)
        if found := escape_in(code, _ESCAPES):
            return verdict({"compiles": None, "statement": None, "closed": 0.0}, f"uses {found}, which is not allowed")
        shared = {"Spec.vo": compiled.files["Spec.vo"]}
        answer = f"{imports}\nFrom Task Require Import Spec.\n{_development(name, proof, code)}\n"
        built = _coqc("Answer", {**shared, "Answer.v": answer}, self.seconds)
        if built.status == "fault":
            return Verdict.abstain(built.reason)
        if not built.ok or not built.files.get("Answer.vo"):
            why = first_error(built.stderr, r"^Error:?\s*\S|error") if built.status == "refused" else built.reason
            return verdict({"compiles": 0.0, "statement": None, "closed": None}, f"Coq refuses it: {why}")
        check = (
            f"From Task Require Spec Answer.\nDefinition assay_checked : Task.Spec.assay_claim := Task.Answer.{name}.\n"
            "Print Assumptions assay_checked.\n"
        )
        checked = _coqc("Check", {**shared, "Answer.vo": built.files["Answer.vo"], "Check.v": check}, self.seconds)
        if checked.status == "fault":
            return Verdict.abstain(checked.reason)
        if not checked.ok:
            return verdict({"compiles": 1.0, "statement": 0.0, "closed": None}, f"{name} does not prove the statement")
        bad = unproved(checked.stdout, self.axioms)
        word = f" ({found})" if bad and (found := escape_in(code, _UNPROVED)) else ""
        complaint = f"rests on {bad}{word}" if bad else ""
        return verdict({"compiles": 1.0, "statement": 1.0, "closed": float(not bad)}, complaint)


def unproved(report: str, allowed: tuple[str, ...] = ()) -> str:
    """Return the first thing ``Print Assumptions`` reports that is not allowed, or nothing.

    Anything but the line for a closed term, or a list of axioms all of which are allowed, counts.
    """
    text = report.strip()
    if text == _CLOSED:
        return ""
    lines = text.split("\n")
    if lines[0] != "Axioms:":
        return lines[0] or "something Coq does not name"
    for line in lines[1:]:
        if line.startswith(" "):
            continue
        match = re.match(r"([\w.']+)(?:\s*:|$)", line)
        if match is None or not {match[1], match[1].rpartition(".")[2]} & set(allowed):
            return match[1] if match else line
    return ""


def _spec(reference: Any) -> tuple[str, str, str]:
    name, imports = str(reference["name"]), str(reference.get("imports", ""))
    if not _NAME.fullmatch(name):
        raise ValueError(name)
    claim = f"Definition assay_claim : Prop :=\n{reference['statement']!s}\n."
    return name, f"{imports}\n{reference.get('definitions', '')!s}\n{claim}\n", imports


def _development(name: str, proof: str, code: str) -> str:
    """The response as it is if it states ``name`` itself, else as the proof of the statement."""
    if re.search(
        rf"\b(?:Theorem|Lemma|Fact|Remark|Corollary|Proposition|Definition|Example)\s+{re.escape(name)}\b", code
    ):
        return proof
    start = "" if re.match(r"\s*Proof\b", code) else "Proof.\n"
    end = "" if re.search(r"\b(?:Qed|Defined|Admitted)\s*\.\s*$", code) else "\nQed."
    # The claim is unfolded, so that tactics see the statement itself.
    body = re.sub(r"\s*Proof\b[^.]*\.", "", proof, count=1) if not start else proof
    return f"Theorem {name} : assay_claim.\nProof.\nunfold assay_claim.\n{body}{end}"


@functools.lru_cache(maxsize=256)
def _spec_compiled(spec: str, seconds: float) -> Result:
    found = _coqc("Spec", {"Spec.v": spec}, seconds)
    if found.status in ("fault", "limit"):
        raise Unstable(found)
    return found


def _compile_spec(spec: str, seconds: float) -> Result:
    try:
        return _spec_compiled(spec, seconds)
    except Unstable as error:
        return error.result


def _coqc(module: str, files: dict[str, str | bytes], seconds: float) -> Result:
    return COQC.run(["-q", "-Q", ".", "Task", f"{module}.v"], files, seconds, (f"{module}.vo",))
