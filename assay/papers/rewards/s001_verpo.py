"""S001: the first dense reward for code that is made of test results alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.errors import RunError
from assay.method import Method
from assay.ops import group_mean
from assay.rewards.outcome.weighted_tests import WeightedTests, attempts_of


@paper(
    "S001",
    "VeRPO",
    arxiv="2601.03525",
    seams=["reward", "credit"],
    essentials={
        "a test weighs exp(-alpha rho), rho its pass rate in the group at hand": "test_weights_by_hand",
        "weights are shared by tests that are passed alike": "test_weights_of_the_worked_example",
        "the dense reward is the sum of the weights of the tests passed; groups in which none passes all still teach": (
            "test_rewards_and_advantages_of_the_worked_example_where_no_response_passes_all"
        ),
        "many easy tests do not outweigh few hard ones": (
            "test_clones_of_a_test_move_the_calibrated_advantages_little_and_flip_the_others"
        ),
        "advantages of turn and trajectory are added, centred each, not divided by a deviation; the outcome decays "
        "with turns": "test_turns_have_advantages_of_their_own",
        "programs that pass more tests are learned where no outcome tells them apart": "test_it_acts_in_training",
        "a program is repaired over several turns, each of which has tests of its own": (
            "environments/test_attempts.py::test_attempts_are_credited_one_by_one"
        ),
    },
    choices=(
        "alpha 2, sigma 0.1, beta 1, gamma 1, delta 1e-6: the paper's values are not known here",
        "a test that could not be told counts as its pass rate",
    ),
)
def verpo(
    alpha: float = 2.0,
    sigma: float = 0.1,
    beta: float = 1.0,
    gamma: float = 1.0,
    calibrate: bool = True,
    memory: float = 0.0,
    tests: str = "",
) -> Method:
    """GRPO with advantages A_it = (R_i - mean_i R) + beta (L_it - mean_it L), not divided by a standard deviation.

    R_i = gamma^|i| 1[all tests pass] is the outcome of response i with |i| turns; L_it = sum_j w_j p_itj sums the
    weights of the tests that turn t passes. A test weighs more the fewer turns of the group pass it, and shares its
    weight with tests that are passed alike; see :class:`~assay.rewards.outcome.weighted_tests.WeightedTests` for w_j
    and the arguments. A group in which no response passes every test still teaches, unless all pass the same tests.

    With rollout ``multi_turn`` in the environment ``attempts`` a program may be mended over several turns, each judged
    by itself; in one turn it is what single responses are.

    The paper's own alpha, sigma, beta and gamma are not known; the defaults are choices.
    """
    reward = WeightedTests(alpha, sigma, beta=beta, gamma=gamma, calibrate=calibrate, memory=memory, tests=tests)
    return Method(reward=reward, credit=OutcomeAndTurns())


@dataclass(frozen=True, slots=True)
class OutcomeAndTurns:
    """A_it = (R_i - mean_i R) + (l_it - mean_it l) on the tokens of turn t; the second mean is over the group's turns.

    R_i is the reward term ``outcome``; l_it is the rest of the sample's reward plus the token rewards within turn t.
    Tokens outside every turn get those of the sample without a turn's deviation. Where every response is one turn this
    is the mean-centred reward.
    """

    group_relative = True

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        if batch.token_rewards is None:
            return GRPO(normalise=False)(batch)
        outcome = batch.reward_terms.get("outcome")
        if outcome is None:
            raise RunError("the credit of VeRPO needs the reward term 'outcome', which reward 'weighted_tests' gives")
        level = (batch.rewards - outcome)[:, None].expand(batch.mask.shape).clone()
        owner, values = [], []
        for i, (episode, verdict) in enumerate(zip(batch.episodes, batch.verdicts, strict=True)):
            start = 0
            for end, _ in attempts_of(episode, verdict):
                level[i, start:end] += batch.token_rewards[i, start:end].sum()
                owner.append(i)
                values.append(level[i, end - 1])
                start = end
        turn_of = torch.tensor(owner)
        per_turn = group_mean(torch.stack(values), batch.group[turn_of], batch.active[turn_of])
        # Every turn of a sample has the same baseline, its group's.
        baseline = torch.zeros_like(outcome).index_copy_(0, turn_of, per_turn)
        centred = outcome - group_mean(outcome, batch.group, batch.active)
        advantages = centred[:, None] + level - baseline[:, None]
        return torch.where(batch.mask & batch.active[:, None], advantages, 0)


claims(
    Claim(
        paper="S001",
        text="At equal rollouts, weighted partial success beside the outcome gives a better policy than the outcome "
        "alone.",
        setting="stack_programs",
        arms={
            "outcome": {"name": "grpo", "credit": {"name": "grpo", "normalise": False}},
            "verpo": {"name": "S001"},
        },
        better="verpo",
        baseline="outcome",
        measure="after",
    )
)
