"""S197: a model that learns which responses are right, as a log-ratio, has learned rewards of steps."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.objectives.outcome_classifier import OutcomeClassifier
from assay.objectives.preference import DPO, KTO, NCA


@paper(
    "S197",
    "Implicit PRM",
    arxiv="2412.01981",
    seams=["rollout", "objective", "inference"],
    essentials={
        "the model that learns from outcomes is beta log phi / ref, by cross entropy": (
            "test_the_losses_of_the_worked_example"
        ),
        "or by DPO, KTO or NCA": "test_the_four_losses_are_objectives_by_verdict",
        "it is then the soft value of every prefix, exactly": "test_the_value_of_a_prefix_is_exact",
        "the reward of a step is the sum over its tokens; a response is worth its least": "test_the_worked_example",
        "it finds the wrong step that no label names": "test_the_wrong_step_has_the_least_reward",
        "the value at the end of a step below a threshold is the first error": "test_the_rule_of_the_first_error",
        "trained from recorded responses, it chooses among a model's own": (
            "test_it_is_trained_from_records_and_chooses_among_samples"
        ),
        "without the reference": "test_the_reference_may_be_left_out",
    },
    choices=(
        "right and wrong responses of a mini-batch weigh the same in the cross entropy; the paper balances its data",
        "the threshold of the first error is the caller's",
        "as a weight of votes a score is at the beta of training, 0.05, where the released code takes 0.001",
        "KTO's reference point is the mean log-ratio of the mini-batch's responses",
    ),
)
def implicit_prm(loss: Literal["ce", "dpo", "kto", "nca"] = "ce", beta: float = 0.05, balanced: bool = True) -> Method:
    """A reward model of steps from verdicts on recorded responses, in place of a policy.

        Q_T = beta sum_t (log phi(y_t) - log ref(y_t));   ce: -log sigmoid(+-Q_T);   dpo: -log sigmoid(Q_T^+ - Q_T^-)

    Whatever the loss, Q_t = beta log E_ref[exp(Q_T / beta) | y_<=t]: the soft value of the prefix; the reward of a step
    is what it adds. phi is what the run trains, from the model that is also ref; responses are those on record,
    ``task.meta["responses"]``. The run's folder is then a scorer: ``{name = "implicit", prm = "runs/prm"}`` in
    ``best_of_n`` and ``weighted_majority``, and a scorer of steps wherever one may be named.

    Args:
        loss: ``ce``, for which no pairs are needed, ``dpo``, ``kto`` or ``nca``.
        beta: above 0.
        balanced: of ``ce``, see :class:`assay.objectives.outcome_classifier.OutcomeClassifier`.

    Source: "Free process rewards without process labels" (arXiv 2412.01981) and its implementation.
    """
    objectives: dict[str, Any] = {
        "ce": OutcomeClassifier(beta, "verdict", balanced=balanced),
        "dpo": DPO(beta, "verdict"),
        "kto": KTO(beta, by="verdict"),
        "nca": NCA(beta, "verdict"),
    }
    return Method(rollout="recorded", objective=objectives[loss])


TAUGHT = {"epochs": 300, "lr": 0.3}

claims(
    Claim(
        paper="S197",
        text="The best of n by rewards of steps that outcomes alone taught is right more often than the majority.",
        setting="guided",
        arms={
            **{
                f"{loss}, {reduce}": {
                    "name": "best_of_n",
                    "implicit": {**TAUGHT, "reduce": reduce, "method": {"name": "S197", "options": {"loss": loss}}},
                }
                for loss, reduce in (("ce", "min"), ("ce", "sum"), ("dpo", "min"))
            },
            "value head": {"name": "best_of_n", "values": {"labels": "tokens", "epochs": 150, "lr": 0.1}},
            "majority": {"name": "majority", "ballot": {"equal": "exact"}},
        },
        better="ce, min",
        baseline="majority",
        measure="accuracy",
    )
)
