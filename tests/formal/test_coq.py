"""Coq: proofs that hold, proofs that do not, and ways of cheating."""

from __future__ import annotations

import pytest

from assay.registry import build
from assay.types import Task
from assay.verify.formal.coq import COQC, unproved

from .support import needs

pytestmark = needs(COQC)

TASK = Task("t", "?", {"name": "add_zero", "statement": "forall n : nat, n + 0 = n"}, "coq")
TACTICS = "intros n. induction n as [|m IH]. reflexivity. simpl. rewrite IH. reflexivity."


@pytest.mark.parametrize(
    "response",
    [
        TACTICS,
        f"Proof. {TACTICS} Qed.",
        f"Here it is:\n```coq\nProof.\n  {TACTICS}\nQed.\n```\nDone.",
        f"```coq\nLemma helper : forall n, n + 0 = n. Proof. {TACTICS} Qed.\nTheorem add_zero : forall n, n + 0 = n.\n"
        "Proof. exact helper. Qed.\n```",
        "Definition add_zero (n : nat) : n + 0 = n := eq_sym (plus_n_O n).",
        f"(* Admitted. *) Theorem add_zero : forall n, n + 0 = n. Proof. {TACTICS} Qed.",
    ],
)
def test_a_proof_is_right(response: str) -> None:
    verdict = build("verify", "coq")(TASK, response)
    assert verdict.passed is True, verdict
    assert verdict.parts == {"compiles": 1.0, "statement": 1.0, "closed": 1.0}


CHEATS = {
    "admitted": "Theorem add_zero : forall n, n + 0 = n. Admitted.",
    "admit": "Proof. intros. admit. Admitted.",
    "axiom": "Axiom magic : forall P : Prop, P. Theorem add_zero : forall n, n + 0 = n. Proof. apply magic. Qed.",
    "parameter": "Parameter add_zero : forall n, n + 0 = n.",
    "section": "Section S. Variable h : False. Theorem add_zero : forall n, n + 0 = n. Proof. destruct h. Qed. End S.",
    "another statement": "Theorem add_zero : forall n : nat, n = n. Proof. reflexivity. Qed.",
    "true": "Theorem add_zero : True. exact I. Qed.",
    "shadowed type": "Inductive nat := O. Theorem add_zero : forall n : nat, n = n. Proof. reflexivity. Qed.",
    "shadowed equality": 'Notation "x = y" := True : type_scope. '
    "Theorem add_zero : forall n, n + 0 = n. Proof. auto. Qed.",
    "shadowed claim": "Definition assay_claim := True. Theorem add_zero : assay_claim. exact I. Qed.",
    "redefined module": "Module Spec. Definition assay_claim := True. End Spec. "
    "Theorem add_zero : Spec.assay_claim. exact I. Qed.",
    "no guard": "Unset Guard Checking. Fixpoint f (n : nat) : False := f n. Theorem add_zero : forall n, n + 0 = n. "
    "Proof. destruct (f 0). Qed.",
    "no guard, spelt with an attribute": "#[bypass_check(guard)] Fixpoint f (n : nat) : False := f n. "
    "Theorem add_zero : forall n, n + 0 = n. Proof. destruct (f 0). Qed.",
    "ends the proof early": "intros. Abort. Theorem add_zero : True. exact I. Qed. Theorem y : True. exact I",
    "forged report": 'Goal True. idtac "Closed under the global context". exact I. Qed.',
    "load behind a text in a comment": '(* " (* " *) Load "x". (* *) *)',
    "load": 'Load "x".',
    "garbage": "the answer is 42",
    "empty": "   ",
    "unicode": "\u2200 n, \ud800",
    "open comment": "(* " + TACTICS,
    "other language": "```python\nprint(1)\n```",
    "too long": "x" * 300_000,
}


@pytest.mark.parametrize("response", CHEATS.values(), ids=CHEATS.keys())
def test_anything_else_is_wrong(response: str) -> None:
    verdict = build("verify", "coq")(TASK, response)
    assert verdict.passed is False, verdict
    assert verdict.feedback


def test_what_is_assumed_is_named() -> None:
    verdict = build("verify", "coq")(TASK, CHEATS["axiom"])
    assert verdict.parts == {"compiles": 1.0, "statement": 1.0, "closed": 0.0}
    assert "magic" in verdict.feedback


def test_allowed_axioms() -> None:
    task = Task(
        "t",
        "?",
        {
            "name": "ext",
            "imports": "Require Import FunctionalExtensionality.",
            "statement": "forall f g : nat -> nat, (forall x, f x = g x) -> f = g",
        },
    )
    response = "intros f g H. apply functional_extensionality. exact H."
    assert build("verify", "coq")(task, response).passed is False
    allowed = build("verify", {"name": "coq", "axioms": ["functional_extensionality_dep"]})
    assert allowed(task, response).passed is True


def test_definitions_of_the_task_are_its_own() -> None:
    reference = {
        "name": "twice_even",
        "definitions": "Fixpoint twice (n : nat) := match n with 0 => 0 | S m => S (S (twice m)) end.",
        "statement": "forall n, twice n = n + n",
    }
    proof = "intros n; induction n; simpl; [reflexivity | rewrite IHn, <- plus_n_Sm; reflexivity]."
    assert build("verify", "coq")(Task("t", "?", reference), proof).passed is True
    mine = (
        "Definition twice (n : nat) := n + n. Theorem twice_even : forall n, twice n = n + n. Proof. reflexivity. Qed."
    )
    assert build("verify", "coq")(Task("t", "?", reference), mine).passed is False


def test_endless_proofs_are_wrong_and_bad_tasks_abstain() -> None:
    short = build("verify", {"name": "coq", "seconds": 1.0})
    assert short(TASK, "repeat (assert True by exact I).").passed is False
    assert short(Task("t", "?", {"name": "x", "statement": "forall n, n +"}), TACTICS).passed is None
    assert short(Task("t", "?", {"statement": "True"}), TACTICS).passed is None
    assert short(Task("t", "?", None), TACTICS).passed is None


def test_reports_of_assumptions() -> None:
    assert unproved("Closed under the global context\n") == ""
    assert unproved("Axioms:\nmagic : forall P : Prop, P\n") == "magic"
    assert unproved("Axioms:\nA.b :\n  long\n  type\nc : T\n", ("b", "c")) == ""
    assert unproved("Axioms:\nf is assumed to be guarded.", ("f",)) != ""
    assert unproved("") != ""
