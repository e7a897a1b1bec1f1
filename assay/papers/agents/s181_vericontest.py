"""S181: code with a contract and a proof, where a contract is tested in both directions before a proof of it counts."""

from __future__ import annotations

from typing import Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.verify.formal.backends import BACKENDS, ProverBackend, backend
from assay.verify.formal.prover import Prover
from assay.verify.formal.spec_tests import negatives


@paper(
    "S181",
    "VeriContest",
    arxiv="2605.08553",
    seams=["tasks", "verify", "evaluate"],
    essentials={
        "code passes all positive tests": "test_code_is_run_on_the_positive_tests",
        "a specification admits and accepts what is right and rejects what is wrong": ("test_specifications_by_hand"),
        "a proof verifies and leaves program and contract as they are, by a hash": (
            "test_a_proof_may_add_annotations_and_nothing_else"
        ),
        "escapes are refused although the prover accepts them": "test_what_takes_for_granted_has_proved_nothing",
        "a proof of a weak specification earns nothing": "test_a_proof_of_a_weak_contract_earns_nothing",
        "a prover of its own: weakest preconditions with loops, invariants and termination, decided by z3": (
            "formal/test_conditions.py::test_by_hand"
        ),
        "inputs are proved to keep to the precondition": "test_inputs_are_proved_and_not_filtered",
        "wrong outputs: of variants with a pass rate strictly between 0 and 1, then of changed outputs": (
            "test_variants_count_only_if_their_fault_shows_and_is_not_total"
        ),
        "ten negative tests for each positive one, at most eight of them from programs": (
            "test_ten_negative_tests_for_each_positive_one"
        ),
        "what cannot be executed is not judged": "test_quantifiers_without_bounds_are_an_abstention",
        "pass@1 of the tasks in an evaluation": "test_assay_eval_measures_it",
    },
    choices=(
        "the language: a subset of Dafny with its own prover; the paper's is Rust with Verus, used where installed",
        "problems: 14 of our own; a file of tasks in the format of the verifier brings others",
        "the strict reading of end to end: code and contract are tested and the proof has to hold",
        "semantic variants are given by who makes the tests; the tasks that ship have syntactic ones alone",
    ),
)
def vericontest(
    prover: Literal["builtin", "dafny"] = "builtin", untold: Literal["abstain", "wrong"] = "abstain"
) -> VeriContest:
    """A verifier and a source of tasks, not a training method.

        assay train RECIPE tasks.source=contracts         # verdicts of kind "prover"
        assay eval MODEL tasks.source=contracts           # pass@1 by what is asked: code, spec, proof, all
        assay verify prover rows.jsonl --out judged.jsonl

    Args:
        prover, untold: see :class:`~assay.verify.formal.prover.Prover`.

    Source: VeriContest (arXiv 2605.08553) and its authors' code.
    """
    return VeriContest(prover, untold)


class VeriContest:
    """See :func:`vericontest`."""

    def __init__(self, prover: Literal["builtin", "dafny"], untold: Literal["abstain", "wrong"]):
        self.verifier = Prover(prover, untold)
        self.backend: ProverBackend = self.verifier.backend
        self.negatives = negatives

    @staticmethod
    def provers() -> list[str]:
        """Names of what a whole program can be given to; see :func:`~assay.verify.formal.backends.backend`."""
        return [name for name in BACKENDS if backend(name)]


claims(
    Claim(
        paper="S181",
        text="Paid for code with a proved contract of its own, a policy learns contracts that say too little; it "
        "learns right ones where the contract is tested in both directions first.",
        setting="contracts",
        evidence="construction",
        arms={
            "proof alone": {"name": "grpo", "verifier": {"name": "prover", "spec_tests": False, "effort": 200_000}},
            "tests and proof": {"name": "grpo", "verifier": {"name": "prover", "effort": 200_000}},
        },
        better="tests and proof",
        baseline="proof alone",
        measure="right",
        sweep={"lr": (0.3, 1.0, 3.0)},
    )
)
