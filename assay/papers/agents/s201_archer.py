"""S201: an off-policy critic of whole utterances above, a policy gradient of tokens below."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.reinforce import Reinforce
from assay.method import Method
from assay.objectives.policy_gradient import PolicyGradient
from assay.rewards.outcome.verdict import VerdictReward
from assay.select.off_policy.archer import Archer


@paper(
    "S201",
    "ArCHer",
    arxiv="2402.19446",
    seams=["rollout", "credit", "select", "objective", "policies"],
    essentials={
        "twin critics of utterances and of states, on [e(s), e(a)] and e(s)": "test_critics_are_twins_on_one_encoder",
        "targets from slow copies: r + (1 - done) gamma V'(s'), and Q'(s, a~) for a~ of the policy now": (
            "test_targets_by_hand"
        ),
        "slow copies follow by Polyak averaging": "test_slow_copies_follow",
        "a replay buffer of transitions over all policies so far": "test_the_buffer_holds_what_all_policies_did",
        "no bootstrap where the episode is over": "test_turns_are_transitions",
        "actions are sampled anew in the critic's update and in the actor's": (
            "test_actions_are_sampled_anew_in_both_updates"
        ),
        "A = min Q - min V, detached, on all tokens of the utterance": "test_advantages_and_loss_by_hand",
        "an optional baseline for tokens": "test_the_token_baseline",
        "critic alone during warm-up": "test_the_actor_waits_for_the_critic",
        "values of a fixed policy on a chain are discounted steps to go": "test_values_of_a_chain",
        "it trains in an environment of several turns": "test_it_learns_the_corridor",
    },
    choices=(
        "encoder: learned vectors of hashed runs of tokens, in place of a pretrained RoBERTa",
        "the critic's epochs are updates of one drawn batch each; AdamW without decay for both",
        "what an episode has spent its budget on is bootstrapped no further",
    ),
)
def archer(
    critic_updates: int = 50,
    actor_updates: int = 3,
    warm_up: int = 20,
    rows: int = 256,
    discount: float = 0.95,
    rate: float = 0.1,
    lr: float = 1e-3,
    batch: int = 256,
    capacity: int = 100_000,
    width: int = 64,
    max_tokens: int = 64,
    baseline: bool = False,
) -> Method:
    """Utterances are actions: their values are learned off-policy, their tokens by policy gradient.

        critic:  Q_k(s, a) -> r + gamma V'_k(s'),   V_k(s) -> Q'_k(s, a~),  a~ from the policy now;  s, a, r, s'
        replayed
        actor:   -mean over s replayed of A sum_h log pi(a~_h | s, a~_<h),  A = min Q(s, a~) - min V(s)

    Rewards are those of turns (reward ``turns`` beside ``verdict``, say) and the verdict's on the last one. The rollout
    is that of the recipe, ``multi_turn`` for several turns.

    Args:
        critic_updates, actor_updates, warm_up, rows: see :class:`~assay.select.off_policy.archer.Archer`.
        discount, rate, lr, batch, capacity, width, max_tokens, baseline: of the critic, see
            :class:`~assay.signals.transitions.utterance.UtteranceCritic`.

    Source: ArCHer (arXiv 2402.19446), sections 3 and 4, and its authors' code.
    """
    select = Archer(
        critic_updates=critic_updates,
        actor_updates=actor_updates,
        warm_up=warm_up,
        rows=rows,
        discount=discount,
        rate=rate,
        lr=lr,
        batch=batch,
        capacity=capacity,
        width=width,
        max_tokens=max_tokens,
        baseline=baseline,
    )
    return Method(VerdictReward(), Reinforce(), select, PolicyGradient(aggregation="sequence_sum"))


claims(
    Claim(
        paper="S201",
        text="At equal episodes a policy learned from an off-policy critic of turns gets further than one learned from "
        "the returns of its own episodes alone.",
        setting="environment",
        arms={
            "archer": {
                "name": "S201",
                "options": {"warm_up": 1, "critic_updates": 10, "rows": 32, "batch": 32, "width": 16, "lr": 0.01},
            },
            "reinforce": {
                "name": "grpo",
                "credit": "reinforce",
                "objective": {"name": "reinforce", "aggregation": "sequence_sum"},
            },
        },
        better="archer",
        baseline="reinforce",
        measure="area",
        options={
            "environment": {"name": "corridor", "rooms": 5, "moves": 8},
            "tasks": [3],
            "turns": 7,
            "steps": 25,
            "prompts": 1,
            "group": 8,
        },
        sweep={"lr": (1.0, 3.0, 10.0, 30.0, 100.0)},
        unequal="beside as many episodes it samples single turns anew, with which the environment is not asked",
    )
)
