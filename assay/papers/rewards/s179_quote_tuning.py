"""S179: prefer the response that quotes more of a trusted corpus, of two about as long as each other."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.objectives.picked_pairs import PickedPairs
from assay.objectives.preference import DPO
from assay.rewards.text.quip import Quip
from assay.select.pairs import Pairs


@paper(
    "S179",
    "Quote-Tuning",
    arxiv="2404.03862",
    seams=["reward", "select", "objective"],
    essentials={
        "QUIP: the share of a response's n-grams of characters that are in the corpus": (
            "test_quip_by_hand_is_that_of_the_exact_index"
        ),
        "the corpus is a Bloom filter of a known rate of false positives": (
            "test_memory_and_false_positives_are_as_told"
        ),
        "pairs that differ in QUIP by delta_quip and in length by at most delta_len": (
            "test_the_pair_with_the_most_quoted_in_all"
        ),
        "short responses do not win by being short": "test_short_responses_do_not_win_by_being_short",
        "DPO on them against the policy that training starts from": (
            "papers/rewards/test_s127_crew.py::test_dpo_over_picked_pairs_by_hand"
        ),
        "pairs are made once, of the initial policy's responses": "test_pairs_of_recorded_responses_stay_what_they_are",
        "in training more of the corpus is quoted": "test_the_setting_reads_as_its_corpus",
    },
    choices=(
        "both deltas 0.1 and beta 0.1, of the paper's values; one pair a prompt, the one that quotes most in all",
        "pairs are of every step's responses; of the initial policy's, made once, with rollout 'recorded'",
        "case, white space and kinds of quotes do not matter",
    ),
)
def quote_tuning(
    corpus: tuple[Path, ...] = (),
    n: int = 25,
    error: float | None = 1e-3,
    margin: float = 0.1,
    length: float | None = 0.1,
    count: int | None = 1,
    rank: Literal["total", "margin"] = "total",
    beta: float = 0.1,
) -> Method:
    """DPO in place of GRPO, on pairs of responses of which one quotes more of a corpus.

        QUIP(y) = (n-grams of characters of y that are in the corpus) / (n-grams of y)
        pairs (w, l): QUIP(w) - QUIP(l) >= margin,  |len w - len l| / min(len w, len l) <= length, in tokens
        of these the one with the largest QUIP(w) + QUIP(l)
        L = -log sigmoid(beta (log pi(y_w)/pi_ref(y_w) - log pi(y_l)/pi_ref(y_l))), pi_ref as RL began

    Short responses reach a high QUIP more easily; the bound on lengths keeps that from being learned. No labels are
    used. The reward can be used by itself: ``make_method("grpo", reward="S179")``.

    Args:
        corpus: text files, or one filter made before; without it, each task's documents. See
            :class:`~assay.rewards.text.quip.Quip`.
        n: characters of an n-gram.
        error: rate of false positives of the Bloom filter that holds the corpus; ``None``: an exact index.
        margin, length: see above; the paper takes 0.1 for both. ``None``: any lengths.
        count: pairs of a prompt, of 32 responses in the paper.
        rank: ``total`` as above, ``margin`` for the largest difference first.
        beta: of DPO; the paper takes 0.05 or 0.1.

    A response of fewer than n characters has no QUIP and is in no pair. The authors' code takes, of the pairs that may
    be picked, the one with the best w and a random l. The paper makes pairs once, from the initial policy; here they
    are made of every step's responses, or, with rollout ``recorded``, of those in ``task.meta["responses"]``.

    Source: Quote-Tuning (arXiv 2404.03862) and the authors' code; the corpus index is that of Data Portraits
    (Marone and Van Durme, 2023).
    """
    return Method(
        reward=Quip(tuple(corpus), n, error, short="leave_out"),
        select=Pairs(margin=margin, length=length, count=count, rank=rank),
        objective=PickedPairs(DPO(beta=beta)),
    )


claims(
    Claim(
        paper="S179",
        text="Pairs of about the same length make answers quote more of the corpus in all; without the bound on "
        "lengths they quote a larger share of less.",
        setting="phrases",
        arms={
            "any length": {"name": "S179", "select": {"length": None}},
            "bounded": {"name": "S179"},
        },
        better="bounded",
        baseline="any length",
        measure="quoted/area",
        sweep={"lr": (0.03, 0.1, 0.3, 1.0)},
    )
)
