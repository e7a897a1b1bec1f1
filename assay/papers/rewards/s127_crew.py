"""S127: how sure the policy is of its answer, as reward; and pairs of right and wrong between which it is widest."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.objectives.picked_pairs import PickedPairs
from assay.objectives.preference import DPO
from assay.rewards.likelihood.confidence import Confidence
from assay.rewards.outcome.noted import Noted
from assay.select.pairs import Pairs
from assay.signals.answer_tokens import AnswerTokens


@paper(
    "S127",
    "CRew",
    arxiv="2510.13501",
    seams=["curriculum", "rollout", "reward", "select", "objective", "inference"],
    essentials={
        "the reward: mean probability of the tokens of the final answer, 0 without one": "test_the_worked_example",
        "read off sampling, or off the scoring model for solutions of any author": (
            "test_probabilities_are_those_of_one_sequence_by_itself"
        ),
        "best-of-n by confidence, and the vote weighted by it": "test_vote_and_best_by_hand",
        "CRew-DPO: of all pairs of right and wrong, those of widest confidence": "test_the_pairs_of_the_worked_example",
        "DPO on these pairs against the policy that training starts from": "test_dpo_over_picked_pairs_by_hand",
        "pairs of a fixed policy's responses, made once": "test_a_round_of_pairs_is_that_of_a_fixed_policy",
        "a second round: pairs by the confidence of the policy that the first trained, from the first weights again": (
            "test_a_second_round_is_of_the_policy_that_the_first_trained"
        ),
        "training data: right responses of low confidence": (
            "test_right_responses_of_low_confidence_can_be_chosen_alone"
        ),
        "in training the right answers of pairs gain on the wrong ones": (
            "test_the_method_prefers_sure_right_answers_to_unsure_wrong_ones"
        ),
    },
    choices=(
        "the difference of confidence is signed; option rank = 'gap' takes the absolute one",
        "beta of DPO: 0.3; 10 pairs of a prompt, the paper's number for MATH",
        "pairs are of every step's responses; of a fixed policy's with rounds, of 100 steps and 30 responses to a task",
        "every prompt weighs the same however many pairs it has; the paper does not say that its pairs are weighted",
    ),
)
def crew(
    count: int = 10,
    beta: float = 0.3,
    rank: Literal["margin", "gap"] = "margin",
    source: Literal["sampled", "policy", "reference"] = "sampled",
    rules: tuple[str, ...] | None = None,
    rounds: int = 0,
    steps: int = 100,
    tries: int = 30,
    pool: int | None = None,
) -> Method:
    r"""CRew-DPO in place of GRPO: of all pairs of a right and a wrong response, DPO on those of widest confidence.

        c_i = mean over the tokens of the final answer of pi(y_t | x, y_<t), 0 without an answer
        pairs (w, l): w right, l wrong; the ``count`` of a prompt with the largest c_w - c_l
        L = -log sigmoid(beta (log pi(y_w)/pi_ref(y_w) - log pi(y_l)/pi_ref(y_l))), pi_ref as RL began

    The reward alone is CRew, which needs no verdicts: ``make_method("grpo", reward="S127")``. At test time it picks or
    weighs responses: inference ``answer_confidence``. To fine-tune on right responses of low confidence, of which
    weaker models were seen to learn most, chain select ``verdict`` and ``{name = "ranked", lowest = 1}`` before
    ``sft``.

    Args:
        count: pairs of a prompt; the paper takes 10 (MATH) and 15 (GSM8K) of 30 responses.
        beta: of DPO.
        rank: ``margin`` as above, ``gap`` for the largest |c_w - c_l|, which also takes wrong answers the policy is
            sure of.
        source: of the probabilities, see :class:`~assay.rewards.likelihood.confidence.Confidence`.
        rules: where answers stand; as the task's verifier reads them if left out, see
            :class:`~assay.signals.answer_tokens.AnswerTokens`.
        rounds: the paper's one or two rounds of pairs from fixed policies, ``steps`` steps each: before a round all of
            the data is answered ``tries`` times, the first time by the policy as RL began, then by the one that the
            round before has trained, and each time training begins from the initial one, see
            :class:`~assay.curriculum.rounds.Rounds`. 0 makes pairs of every step's responses, by the policy of the
            step.
        steps, tries, pool: of rounds; an endless source needs a ``pool`` to take from it.

    A round over responses of others is rollout ``recorded`` with ``source="reference"``: the responses are those of
    ``task.meta["responses"]``, and their confidence that of the policy as RL began. The paper does not say whether the
    difference is signed.

    Source: Confidence as a Reward (arXiv 2510.13501), section 3 and appendix A.2.
    """
    reward = Confidence(source=source, answer=AnswerTokens(rules))
    pairs = Pairs(better="verdict", count=count, rank=rank)
    if not rounds:
        return Method(reward=reward, select=pairs, objective=PickedPairs(DPO(beta=beta)))
    return Method(
        reward=Noted(reward),
        select=pairs,
        objective=PickedPairs(DPO(beta=beta)),
        curriculum={"name": "rounds", "rounds": rounds, "steps": steps, "tries": tries, "pool": pool},
        rollout="recorded",
    )


def in_lab(over: str) -> dict[str, Any]:
    """An arm of the setting ``references``: the reward alone, without verdicts."""
    return {"name": "grpo", "reward": {"name": "confidence", "over": over, "answer": {"rules": ["regex:=(.*)"]}}}


claims(
    Claim(
        paper="S127",
        text="As a reward without a verifier, the mean probability of the answer's tokens teaches more than that of "
        "all the response's tokens.",
        setting="references",
        options={"depth": 4, "branching": 3, "length": 2, "spread": 1.0},
        arms={over: in_lab(over) for over in ("answer", "response")},
        better="answer",
        baseline="response",
        measure="right/area",
        sweep={"lr": (0.1, 0.3, 1.0, 3.0)},
    )
)
