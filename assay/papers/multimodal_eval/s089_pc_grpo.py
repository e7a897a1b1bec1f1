"""S089: puzzles that pictures ask about themselves, and groups that count by difficulty and by how answers differ."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.scaled.dispersion import Dispersion, dispersion
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.likelihood.consistency_bonus import ConsistencyBonus
from assay.rewards.shaping.monitored import Monitored
from assay.tasks.pictures.self_puzzles import SelfPuzzles
from assay.verify.lists.permutation import Permutation

__all__ = [
    "ConsistencyBonus",
    "Dispersion",
    "Monitored",
    "Permutation",
    "SelfPuzzles",
    "dispersion",
    "pc_grpo",
]


@paper(
    "S089",
    "PC-GRPO",
    arxiv="2512.14944",
    seams=["tasks", "verify", "reward", "credit", "objective"],
    essentials={
        "patches: one is what was covered, the others are altered or from elsewhere": "test_a_patch_fits_where_it_was",
        "turned by a known angle, undone by it": "test_turned_back_it_is_the_picture",
        "tiles in another order, put back by the answer and not by its inverse": "test_the_answer_puts_tiles_back",
        "a jigsaw's reward is the share of tiles in place, and 0 of what is no permutation": "test_permutations",
        "dispersion: entropy of the options chosen, or different permutations": "test_the_dispersion_of_answers",
        "the weight 4 d (1 - d) delta^.5 on rewards less their mean": "test_the_worked_weights",
        "a judge's word on rationales is logged, and never rewarded": "test_a_judge_is_asked_and_not_heard",
        "the bonus: right answers that their reasoning makes likelier than others', under a slow copy of the policy": (
            "test_the_worked_bonus"
        ),
        "the slow copy keeps .995 of itself every 10 steps": "test_the_slow_copy",
        "it trains a model that sees": "test_it_trains",
    },
    choices=(
        "the weight has the dispersion, as in equation 1; where the objective writes it, d is its only argument",
        "what is none of the options, or no permutation, is one kind of answer; of options the entropy counts it, and "
        "the dispersion is at most 1",
        "a patch is a quarter of the picture's side; of each four squares from elsewhere the one of the nearest mean "
        "colour is taken, and altered ones are as frequent",
        "pictures are the middle squares of files, or drawn scenes, in place of 82,783 photographs",
        "orders of tiles may be the right one, so that chance is one tile",
        "the bonus is as in the code of GRPO-CARE, and a group's difficulty without it; a response without an answer "
        "has none, where that code takes its likelihood for 1",
        "the model is one's own",
    ),
)
def pc_grpo(gamma: float = 0.5, judge: Any = None, every: int = 10, bonus: float = 0.0) -> Method:
    """GRPO on puzzles made of unlabelled pictures, where groups of medium difficulty and different answers count most.

        A_i = w (r_i - mean r),   w = 4 d (1 - d) delta^gamma,   d = mean r

    Tasks: ``tasks.source = "self_puzzles"``, with ``folder`` for pictures of one's own.

    Args:
        gamma: of the dispersion delta; 0 is the first version of the paper, whose weight is by difficulty alone.
        judge, every: see :class:`~assay.rewards.shaping.monitored.Monitored`.
        bonus: for rationales that support their answer, see
            :class:`~assay.rewards.likelihood.consistency_bonus.ConsistencyBonus`; 0.5 in the paper's runs that have it,
            with batches of 8.

    Source: Puzzle Curriculum GRPO (arXiv 2512.14944): groups of 8, temperature .9, top-p .95, learning rate 5e-7,
    batches of 16, no KL term, with Qwen2.5-VL-3B and 7B.
    """
    reward: Any = ConsistencyBonus(bonus=bonus) if bonus else "verdict"
    return Method(
        reward=Monitored(reward, judge, every),
        credit=Dispersion(gamma=gamma, of="task" if bonus else None),
        objective=ClippedSurrogate(aggregation="sequence_mean"),
    )


CENTRED = {"name": "S089", "credit": {"name": "grpo", "normalise": False}}

claims(
    Claim(
        paper="S089",
        text="Where pictures range from hard to easy, groups that count by difficulty and by how their answers differ "
        "lead to more right answers after as many responses than groups that all count alike.",
        setting="turned",
        arms={"weighted": {"name": "S089"}, "unweighted": CENTRED},
        better="weighted",
        baseline="unweighted",
        measure="area",
        sweep={"lr": (1.0, 3.0, 10.0, 30.0)},
    ),
    Claim(
        paper="S089",
        text="Of what is learned, less is from groups with one right or one wrong response of eight.",
        setting="turned",
        arms={"weighted": {"name": "S089"}, "unweighted": CENTRED},
        better="weighted",
        baseline="unweighted",
        measure="middle",
        sweep={"lr": (3.0,)},
        name="mechanism",
    ),
)
