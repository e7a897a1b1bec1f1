"""S072: ten responses without content that open model judges, and the training data that closes them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.audit.key_rates import ATTACK, key_rates
from assay.audit.outcome import outcome
from assay.audit.robustness import Attempt
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.rewards.judges.reference_judge import ReferenceJudge, Unread
from assay.tasks.judging.answers import BLIND, TEMPLATE
from assay.tasks.judging.keys import MASTER_KEYS
from assay.types import Task
from assay.verify.base import Verifier
from assay.verify.guard import checked, judge


@paper(
    "S072",
    "Master-RM",
    arxiv="2507.08794",
    seams=["tasks", "verify", "evaluate", "policies"],
    essentials={
        "the ten master keys, to the letter": (
            "audit/test_audit_attacks.py::test_the_ten_master_keys_are_there_to_the_letter"
        ),
        "false-positive rate of each key on each set for each judge, mean and worst, with intervals": (
            "test_rates_of_keys_by_hand"
        ),
        "they are part of the audit of any judge": "test_the_audit_of_a_judge_says_which_keys_open_it",
        "the judge with and without the question in its prompt": "test_a_judge_can_be_spared_the_question",
        "first sentences of solutions are negatives beside the judged responses": (
            "test_beginnings_are_negatives_beside_what_was_judged"
        ),
        "none of them is one of the keys that the judge is tested with": "test_no_beginning_is_a_key",
        "the judge is fine-tuned on its reply to both": "test_a_judge_learns_from_them_in_training",
    },
    choices=(
        "negatives: first sentences of the judged responses themselves; the paper's are of chains of thought made anew",
        "one negative to eight judged responses, the paper's 20,000 to 160,000",
        "a sentence that states the reference, or is all of the response, is no negative",
        "the words of the prompt; replies 1 and 0",
        "a blank response is wrong without asking the judge",
    ),
)
def master_rm(
    judge: Any = None, question: bool = True, unread: Unread = "wrong", max_tokens: int = 4
) -> ReferenceJudge:
    """A judge that compares a response with the reference, as it is tested with the ten keys and trained against them.

        J(q, a*, o) in {1, 0};    FPR(key) = mean over tasks of 1[J(q, a*, key) = 1]

    The rates are :func:`false_positive_rates`, or those of ``assay audit --attack``, which sends the keys among its
    other attacks. The training data are tasks ``judging``: each judged response with its label, and first sentences
    labelled 0, one to eight of them, never a key; ``[warmup]`` on them is the fine-tuning.

    Args:
        judge: an engine, or the specification of one, such as ``{name = "hf", model = ...}``.
        question: whether the judge is shown the question; without it fewer keys pass.
        unread: what a reply is that is neither 1 nor 0.
        max_tokens: of the reply, which is greedy.

    Raises:
        UsageError: no engine.

    Source: "One Token to Fool LLM-as-a-Judge" (arXiv 2507.08794).
    """
    template = TEMPLATE if question else BLIND
    return ReferenceJudge(judge, "hard", "response", unread, max_tokens, template)


def false_positive_rates(
    judges: Mapping[str, Verifier], sets: Mapping[str, Sequence[Task]], keys: Sequence[str] = MASTER_KEYS
) -> dict[str, dict[str, Any]]:
    """Return for each judge what :func:`assay.audit.key_rates.key_rates` says of the keys on each set.

    Args:
        judges: verifiers by name; one with a ``map`` over pairs of tasks and responses is asked once for all.
        sets: tasks with references, by name.
        keys: responses without content.

    Raises:
        ValueError: no keys or no tasks.
    """
    tries = [Attempt(ATTACK, "rejected", t, key, name) for name, tasks in sets.items() for t in tasks for key in keys]
    if not tries:
        raise ValueError("rates of keys need a key and a task")
    out = {}
    for name, verifier in judges.items():
        together = getattr(verifier, "map", None)
        if together is not None:
            said = [checked(v, name) for v in together([(a.task, a.response) for a in tries])]
        else:
            said = [judge(verifier, a.task, a.response, name) for a in tries]
        found = key_rates(tries, [outcome(verdict, 0.0) for verdict in said])
        assert found is not None
        out[name] = found
    return out


claims(
    Claim(
        paper="S072",
        text="A judge fine-tuned on judged responses alone accepts master keys; with first sentences among its "
        "negatives it accepts the worst of them less often, and is as right about genuine responses.",
        setting="master_keys",
        evidence="construction",
        arms={"beginnings": {"negatives": 0.125}, "judged responses alone": {"negatives": 0.0}},
        better="beginnings",
        baseline="judged responses alone",
        measure="resisted",
    )
)
