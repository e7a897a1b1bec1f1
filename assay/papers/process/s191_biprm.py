"""S191: a step is read twice, after what came before it and after what comes later."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.inference.supervision.searches import Along
from assay.inference.supervision.train import PRMMethod
from assay.rewards.step_models.losses import Loss
from assay.rewards.step_models.saved import Kind, PRMSettings
from assay.rewards.step_models.training import StepTraining


@paper(
    "S191",
    "BiPRM",
    arxiv="2508.01682",
    seams=["policies", "verify", "inference"],
    essentials={
        "the steps are read in reverse too, by the same weights": "test_the_same_weights_read_both_ways",
        "scores are put back into order and fused by their mean": "test_scores_are_fused_in_the_order_of_steps",
        "or by a gate that reads both states": "test_a_gate_weighs_what_it_reads",
        "trained by the loss of the scorer that it is made of, on the same labels in both orders": (
            "test_both_orders_learn_the_same_labels"
        ),
        "with three objectives: cross entropy, squared error, ranking": "test_three_objectives",
        "scores are fused before the sigmoid, and the gate does not change the states it reads": (
            "test_the_gate_leaves_the_states_alone"
        ),
        "a step that only a later one contradicts is found": "test_what_only_a_later_step_shows",
        "made and used": "rewards/step_models/test_step_scorers.py::test_every_kind_learns_is_written_and_read_again",
    },
    choices=(
        "the gate begins at one half",
        "with the mean each order has a loss of its own, with the gate the fused score has it",
        "data are values along sampled responses, unless labelled solutions are given",
    ),
)
def biprm(
    kind: Kind = "whole",
    fuse: Literal["average", "gate"] = "gate",
    loss: Loss = "hard",
    responses: int = 4,
    n: int = 8,
    training: dict[str, Any] | None = None,
) -> PRMMethod:
    """A scorer that reads solutions both ways: ``assay train-prm RUN --method S191``, or ``--both-ways`` with others.

        forwards:  question, s_1 ... s_K, score of s_k at its end      backwards: question, s_K ... s_1, the same
        average  z_k = (z_k forwards + z_k backwards) / 2,   p_k = sigmoid(z_k)
        gate     z_k = g_k z_k forwards + (1 - g_k) z_k backwards,   g_k = sigmoid(MLP(h_k forwards, h_k backwards))

    Args:
        kind: ``whole``, a token classifier, which learns with its last layer; ``head`` or ``probe`` on frozen states.
        fuse: see above.
        loss: ``hard`` (of labels 1[p > 0], as in the paper's data), ``soft``, ``mse`` or ``ranking``.
        responses, n: of the data, see :class:`~assay.inference.supervision.searches.Along`.
        training: options of :class:`~assay.rewards.step_models.training.StepTraining`.

    Raises:
        UsageError: no such kind.

    At test time a solution is worth its least step, ``{name = "steps", reduce = "min"}``.

    Source: The Bidirectional Process Reward Model (arXiv 2508.01682) and its authors' code: the mean is its first
    version, the gate its second; its objectives are cross entropy, squared error and Q-value ranking.
    """
    if kind not in ("head", "probe", "whole"):
        raise UsageError(f"S191: kind {kind!r} is none of head, probe and whole")
    how: dict[str, Any] = {"loss": loss, "lr": 1e-3 if kind == "whole" else 0.01, **(training or {})}
    if kind == "whole":
        how = {"trunk_lr": how["lr"], **how}
    return PRMMethod(Along(responses, n), PRMSettings(kind, fuse), StepTraining(**how))


claims(
    Claim(
        paper="S191",
        text="Where a step is shown to be wrong by a later one alone, a scorer that reads the steps both ways tells "
        "wrong steps better than the same scorer that reads them in order.",
        setting="contradictions",
        evidence="construction",
        arms={
            "gate": {"both_ways": "gate"},
            "average": {"both_ways": "average"},
            "forwards": {"both_ways": "no"},
        },
        better="gate",
        baseline="forwards",
        measure="pr_auc",
        sweep={"lr": (0.003, 0.01)},
        tuning=(1000,),
    )
)
