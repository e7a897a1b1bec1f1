"""S188: small judges of proofs, asked by several specialised prompts that a search finds, each of which may object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.audit.measure import Confusion
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.evaluate.chain_judge import ChainJudge
from assay.statistics.judging import Consistency, self_consistency
from assay.types import Task, Verdict
from assay.verify.compose import Need, tally

_SHOWN = r"""

Statement:
{question}

Proposed proof:
{response}

End with \boxed{True} if it passes, and \boxed{False} if not."""
GENERAL = "Is the following proof complete and correct? Go through it step by step." + _SHOWN
PROMPTS = (
    "Look for steps of the following proof that are claimed and not justified. It passes if there is none." + _SHOWN,
    "Look for cases that the following proof leaves out. It passes if there is none." + _SHOWN,
    "Compare what the following proof proves with the statement. It passes if it is all of the statement." + _SHOWN,
    "Do every calculation of the following proof again. It passes if all of them are right." + _SHOWN,
)
"""Prompts of the failures that general ones let pass, to begin with; each is to be answered True or False."""

PROPOSAL = """A judge of proofs was asked with the prompts below. It accepted the flawed proofs that follow, and
rejected the sound ones. Write one more prompt, aimed at {failure}, that would have told it better. The prompt contains
{question} and {response} where statement and proof are put in, and asks to end with \\boxed{True} or \\boxed{False}.
Write it between <prompt> and </prompt>.

Prompts:
{prompts}

{cases}"""
_PROPOSED = re.compile(r"<prompt>(.*?)</prompt>", re.DOTALL)
SHOWN = 3
"""Failures of each kind that a proposer is shown."""

Graded = tuple[str, str, bool]
"""Statement, proof, and whether the proof is correct."""


@paper(
    "S188",
    "Proof verification with small models",
    arxiv="2604.02450",
    seams=["verify", "inference", "evaluate"],
    essentials={
        "self-consistency: agreement of pairs of judgments of the same proof, undefined for one": (
            "test_consistency_by_hand"
        ),
        "balanced accuracy, and rates by either convention of what is positive": "test_the_convention_is_named",
        "an ensemble of prompts: accepted if all, m or most of them accept": "test_three_prompts_in_numbers",
        "prompts are found by a model that reads the failures on a development set": "test_the_search_keeps_what_helps",
        "the development set is apart from the test set": "test_what_was_searched_on_is_no_test",
        "the ensemble is a verifier, and a scorer at test time": "test_the_ensemble_is_a_verifier",
    },
    choices=(
        "the prompts to begin with, and the proposer's: ours",
        "the search: one prompt at a time is added if balanced accuracy on the development set grows",
        "an ensemble is a veto (all) unless asked for otherwise; one opinion by each prompt",
        "opinions that cannot be read abstain, and the ensemble does where they might decide",
    ),
)
def proof_verify_small(
    judge: Any,
    prompts: Sequence[str] = (GENERAL, *PROMPTS),
    need: Need = "all",
    n: int = 1,
    sampling: Sampling | None = None,
) -> ProofVerifier:
    """A verifier of proofs that asks a model with several prompts, all of which have to be satisfied.

        v = proof_verify_small(engine)
        v(task, proof); v.map(pairs)                              # one verdict by all prompts
        found = v.search(dev, proposer); found.verifier           # more prompts, by failures on a development set
        found.measure(test)                                       # balanced accuracy; refuses what it was searched on

    Args:
        judge: an engine, or the specification of one.
        prompts: each with ``{question}`` and ``{response}``; the last box of the reply holds True or False.
        need: of the opinions, see :func:`assay.verify.compose.tally`.
        n: opinions by each prompt.
        sampling: of the opinions.

    Raises:
        UsageError: no engine, no prompts, one that shows no proof, ``n`` below 1, or a ``need`` that there cannot be.

    Source: "Do We Need Frontier Models to Verify Mathematical Proofs?" (arXiv 2604.02450).
    """
    if judge is None:
        raise UsageError("S188: the judge must be an engine or the specification of one")
    made = judge_of(judge, "S188")
    return ProofVerifier(made, tuple(prompts), need, n, sampling or Sampling(max_tokens=8192))


@dataclass(frozen=True, slots=True)
class ProofVerifier:
    """See :func:`proof_verify_small`."""

    judge: Any
    prompts: tuple[str, ...]
    need: Need = "all"
    n: int = 1
    sampling: Sampling = field(default_factory=Sampling)

    def __post_init__(self) -> None:
        if not self.prompts or any("{question}" not in p or "{response}" not in p for p in self.prompts):
            raise UsageError("S188: give prompts, each with {question} and {response}")
        if self.n < 1:
            raise UsageError(f"S188: n {self.n} must be 1 or more")
        tally([None] * (len(self.prompts) * self.n), self.need)

    def opinions(self, pairs: Sequence[tuple[str, str]], repeats: int = 1) -> list[list[list[bool | None]]]:
        """Return for each (statement, proof) ``repeats`` rows of opinions, n by each prompt in turn."""
        judges = [ChainJudge(self.judge, self.n * repeats, prompt, self.sampling) for prompt in self.prompts]
        votes = [one.votes(pairs) for one in judges]
        rows = range(0, self.n * repeats, self.n)
        return [[[v for by in votes for v in by[i][r : r + self.n]] for r in rows] for i in range(len(pairs))]

    def map(self, pairs: Iterable[tuple[Task, str]]) -> list[Verdict]:
        """Judge many proofs; each prompt is asked about all of them together. The score is the share that accept."""
        asked = [(task.question, response) for task, response in pairs]
        return [self._verdict(row) for [row] in self.opinions(asked)]

    def __call__(self, task: Task, response: str) -> Verdict:
        [verdict] = self.map([(task, response)])
        return verdict

    def _verdict(self, row: Sequence[bool | None]) -> Verdict:
        passed, known = tally(row, self.need), [v for v in row if v is not None]
        parts = {f"opinion {k}": None if v is None else float(v) for k, v in enumerate(row, 1)}
        words = {True: "", False: f"{known.count(False)} of {len(row)} opinions object", None: "too few can be read"}
        return Verdict(0.0 if passed is None else sum(known) / len(known), passed, parts, words[passed])

    def consistency(self, pairs: Sequence[tuple[str, str]], repeats: int = 3) -> Consistency:
        """Return how far the verdict on each proof is the same when it is judged ``repeats`` times."""
        return self_consistency([[tally(row, self.need) for row in rows] for rows in self.opinions(pairs, repeats)])

    def search(self, dev: Sequence[Graded], proposer: Any, rounds: int = 4) -> Searched:
        """Add prompts that a model proposes after reading where this verifier fails.

        Each round shows the proposer failures of the kind that is more frequent, and asks for a prompt against it: one
        is kept if balanced accuracy on the development set grows. It ends early where nothing fails.

        Args:
            dev: graded proofs, of both kinds.
            proposer: an engine, or the specification of one.
            rounds: prompts that are proposed at most.

        Raises:
            UsageError: proofs of one kind only, or no engine.
        """
        if len({good for _, _, good in dev}) < 2:
            raise UsageError("S188: a development set has correct and flawed proofs")
        asked_of = judge_of(proposer, "S188's search")
        best, history = self, [proof_rates(self.judged(dev), dev)]
        for k in range(rounds):
            passed = best.judged(dev)
            wrong = {
                kind: [(q, r) for (q, r, good), p in zip(dev, passed, strict=True) if p is kind and good is not kind]
                for kind in (True, False)
            }
            if not wrong[True] and not wrong[False]:
                break
            prompt = _proposal(best.prompts, wrong, len(wrong[True]) >= len(wrong[False]), k)
            [reply] = ask(asked_of, [prompt], Sampling(2048))
            proposed = _PROPOSED.search(reply.text)
            if reply.stop == "error" or proposed is None or not _is_prompt(proposed[1]):
                continue
            tried = replace(best, prompts=(*best.prompts, proposed[1].strip()))
            found = proof_rates(tried.judged(dev), dev)
            if found["balanced"] > history[-1]["balanced"]:
                best = tried
                history.append(found)
        return Searched(best, tuple(history), frozenset(q for q, _, _ in dev))

    def judged(self, items: Sequence[Graded]) -> list[bool | None]:
        """Return the verdict on each graded proof."""
        return [v.passed for v in self.map([(Task("", q), r) for q, r, _ in items])]


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found: the verifier, its numbers on the development set after each prompt that was kept, and the
    statements of that set."""

    verifier: ProofVerifier
    history: tuple[dict[str, float], ...]
    seen: frozenset[str]

    def measure(self, test: Sequence[Graded]) -> dict[str, float]:
        """Return :func:`proof_rates` on a test set.

        Raises:
            UsageError: a statement of it is in the development set.
        """
        shared = sorted({q for q, _, _ in test} & self.seen)
        if shared:
            raise UsageError(
                f"S188: {len(shared)} statements of the test set are in the development set, as {shared[0][:60]!r}"
            )
        return proof_rates(self.verifier.judged(test), test)


def proof_rates(passed: Sequence[bool | None], items: Sequence[Graded]) -> dict[str, float]:
    """Return how well proofs were judged; what has no verdict counts in ``undecided`` alone.

        balanced = (accepted share of correct proofs + rejected share of flawed ones) / 2

    ``false_accepts`` are of flawed proofs, ``false_rejects`` of correct ones. The paper's positive class is a *flawed*
    proof: its false-negative rate is ``false_accepts``, and its false-positive rate ``false_rejects``, the other way
    round than where an accepted answer is positive, as everywhere else in assay.
    """
    names = {True: "accepted", False: "rejected", None: "abstained"}
    found = Confusion.count((good, names[p]) for p, (_, _, good) in zip(passed, items, strict=True))  # type: ignore[misc]
    return {
        "balanced": found.balanced_accuracy,
        "accuracy": found.accuracy.value,
        "false_accepts": found.false_positive_rate.value,
        "false_rejects": found.false_negative_rate.value,
        "undecided": 1 - found.decided / len(items) if items else 0.0,
    }


def _is_prompt(text: str) -> bool:
    return all(f"{{{name}}}" in text for name in ("question", "response"))


def _proposal(prompts: Sequence[str], wrong: dict[bool, list[tuple[str, str]]], accepts: bool, turn: int) -> str:
    cases = []
    for kind, words in ((True, "Accepted, and flawed"), (False, "Rejected, and correct")):
        some = wrong[kind][turn % max(len(wrong[kind]), 1) :][:SHOWN]
        cases += [f"{words}:\nStatement: {q}\nProof: {r}" for q, r in some]
    failure = "flaws that were missed" if accepts else "sound proofs that were rejected"
    return filled(PROPOSAL, failure=failure, prompts="\n---\n".join(prompts), cases="\n\n".join(cases))


claims(
    Claim(
        paper="S188",
        text="Of a judge that misses half of the flaws but seldom objects to a sound proof, three prompts that are "
        "looked at for any objection are right more often, in balanced accuracy, than one prompt.",
        setting="proof_judges",
        evidence="construction",
        arms={
            "veto of 3": {"name": "S188", "count": 3, "need": "all"},
            "majority of 3": {"name": "S188", "count": 3, "need": "majority"},
            "one prompt": {"name": "S188", "count": 1, "need": "all"},
        },
        better="veto of 3",
        baseline="one prompt",
        measure="balanced",
        unequal="an ensemble asks once by each prompt",
    )
)
