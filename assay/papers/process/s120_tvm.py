"""S120: a value model whose label at every token is how often solutions with that beginning come out right."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Sampling
from assay.inference.heads.value_head import ByValueHead, ValueHead
from assay.inference.scoring.scorers import as_scorer
from assay.inference.search.beam import Beam


@paper(
    "S120",
    "TVM",
    arxiv="2407.12863",
    seams=["inference", "policies"],
    essentials={
        "the label of a token: how many of the solutions with that beginning are right": (
            "test_labels_of_four_sequences"
        ),
        "labels need no rollouts of their own and converge to the value": (
            "test_labels_converge_to_the_values_of_the_tree"
        ),
        "a head learns them at every token, by squared error": (
            "test_a_head_on_a_tree_learns_the_labels_and_outcome_labels_have_the_same_gradient"
        ),
        "the model under the head learns with it": (
            "test_a_value_model_of_its_own_learns_below_the_head_and_is_paid_for"
        ),
        "and keeps its language: both losses are learned together": "test_value_and_language_are_learned_together",
        "beam search over steps by the value at the last token": "test_a_beam_by_hand",
        "with exact values the search finds what is right": "test_search_by_exact_values_does_what_it_should",
    },
    choices=(
        "a sigmoid on the head, by which squared error is of probabilities",
        "the head alone learns where backbone_lr is 0, and the language weighs nothing unless given",
        "4 steps after each kept beginning, a line or 256 tokens each",
    ),
)
def tvm(
    head: Any,
    sampling: Sampling | None = None,
    branch: int = 4,
    stop: tuple[str, ...] = ("\n",),
    step: int = 256,
) -> Beam:
    """Beam search over steps by a token-supervised value model, and best-of-n by it at the end.

        V_it = #(right solutions j with y_j,1..t = y_i,1..t) / #(solutions j with y_j,1..t = y_i,1..t)
        L = mean over response tokens of (f(x, y_<=t) - V_it)^2 - language log pi(y_t | x, y_<t)
        f = sigmoid(w h_t + b)

    Labels come from N sampled solutions of each problem by counting, without further rollouts
    (:func:`~assay.inference.heads.value_training.prefix_values`);
    :class:`~assay.inference.heads.value_training.ValueTraining` fits f. A beginning is scored by f at its last token.
    The same f is a scorer of ``best_of_n``, ``weighted_majority`` and ``mcts``, as
    ``{name = "value", head = "head.safetensors"}``.

    Beginnings shared by several solutions have the same states, so that over all solutions of a problem the squared
    error (and the cross entropy) of these labels has the gradient of outcome labels: what they take away is the noise
    of mini-batches that hold some of a problem's solutions alone.

    Args:
        head: a :class:`~assay.inference.heads.value_head.ValueHead`, the file of one, or any scorer of beginnings.
        sampling: how tokens are drawn.
        branch, stop, step: see :class:`~assay.inference.search.beam.Beam`.

    Source: Token-supervised value models (arXiv 2407.12863). The sigmoid, and a head alone where ``backbone_lr`` is 0,
    are choices; N is 100 there.
    """
    file = isinstance(head, ValueHead) or (isinstance(head, str) and head.endswith(".safetensors"))
    scorer = ByValueHead(head) if file else as_scorer(head)
    return Beam(scorer, sampling or Sampling(), branch, stop, step)


claims(
    Claim(
        paper="S120",
        text="At equal tokens, a search over steps guided by the values of beginnings is right more often than the "
        "best of as many responses by the same values, and than their majority.",
        setting="guided",
        arms={
            **{
                name: {
                    "name": "beam",
                    "stop": (),
                    "step": 1,
                    "branch": 4,
                    "values": {"labels": labels, "epochs": 150, "lr": 0.1},
                }
                for name, labels in (("search", "tokens"), ("search, outcome labels", "outcome"))
            },
            "best of n": {"name": "best_of_n", "values": {"labels": "tokens", "epochs": 150, "lr": 0.1}},
            "majority": {"name": "majority", "ballot": {"equal": "exact"}},
        },
        better="search",
        baseline="best of n",
        measure="accuracy",
    )
)
