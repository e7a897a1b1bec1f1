"""S086: a policy that thinks before it chats is rewarded for the answer alone."""

from __future__ import annotations

from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.gae import GAE
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.picked_pairs import PickedPairs
from assay.objectives.preference import DPO
from assay.rewards.shaping.answer_only import AnswerOnly, Missing
from assay.select.pairs import Pairs

INSTRUCTION = (
    "Think about the request first, in <think> and </think>: what is asked for, a plan, a draft and what is wrong with "
    "it. Then write the response, which is all that is read."
)
"""A system message for a model that was not taught the form: ``tasks.source.system`` of a file."""


@paper(
    "S086",
    "RLMT",
    arxiv="2509.20357",
    seams=["reward", "select", "objective"],
    essentials={
        "the reward model is shown what stands behind the thinking alone": "test_what_the_model_is_shown",
        "no change of the thinking changes the reward": "test_thinking_does_not_count",
        "without a delimiter: all of it, or in strict mode nothing": "test_what_the_model_is_shown",
        "strict mode closes the way around the delimiter": "test_the_way_around_is_closed",
        "GRPO with a small divergence and entropy bonus": "test_its_methods",
        "PPO with a critic and returns that are not discounted": "test_its_methods",
        "DPO on the best and the worst of a prompt's answers": "test_its_methods",
        "its released prompts are read as they are": "test_its_prompts_are_read",
        "in assay train": "test_it_acts_in_training",
    },
    choices=(
        "strict unless asked otherwise; the authors are strict with instruction-tuned models alone, and show a text "
        "[NULL] where nothing is shown here",
        "the words of the instruction for models without a warm start",
        "the run ends as its recipe says; the paper takes a checkpoint before the reward is over-optimised",
    ),
)
def rlmt(
    model: Any = None,
    delimiter: str = "</think>",
    end: str = "",
    missing: Missing = "empty",
    algorithm: Literal["grpo", "ppo", "dpo"] = "grpo",
    kl_weight: float = 0.001,
    entropy_weight: float = 0.001,
    beta: float = 0.1,
) -> Method:
    """RL with model-rewarded thinking: y = thought, delimiter, answer;   R = r(x, answer).

    GRPO with 8 responses a prompt, PPO with one, or DPO on the best and the worst of at least 4. With a warm start,
    ``[warmup]`` on tasks whose solutions are a teacher's thoughts and answers; without one, the model is told the form
    (:data:`INSTRUCTION`). The authors' 7,000 prompts and 6,000 teacher's replies are released on the hub (collection
    "RLMT experiments" of princeton-nlp), the prompts in their repository as well::

        [tasks.source]
        name = "file"
        path = "wildchat-if_train.parquet"
        reference = "auto"
        kind = "none"

    Args:
        model: the reward, such as ``{name = "preference_model", source = ...}``; it never sees the thinking.
        delimiter, end, missing: see :class:`~assay.rewards.shaping.answer_only.AnswerOnly`.
        algorithm: see above.
        kl_weight: of GRPO's objective; PPO has no divergence.
        entropy_weight: of both.
        beta: of DPO.

    Raises:
        UsageError: no model.

    Source: "Language Models that Think, Chat Better" (arXiv 2509.20357) and its authors' code.
    """
    if model is None:
        raise UsageError('S086: name the reward by model, such as {name = "preference_model", source = "FOLDER"}')
    reward = AnswerOnly(model, delimiter, end, missing)
    if algorithm == "dpo":
        return Method(reward=reward, select=Pairs(count=1), objective=PickedPairs(DPO(beta)))
    if algorithm == "ppo":
        return Method(reward=reward, credit=GAE(decay=1.0), objective=ClippedSurrogate(entropy_weight=entropy_weight))
    objective = ClippedSurrogate(kl_weight=kl_weight, entropy_weight=entropy_weight)
    return Method(reward=reward, credit=GRPO(), objective=objective)


claims(
    Claim(
        paper="S086",
        text="Where a response without a delimiter is scored as nothing, a policy learns to give good answers behind "
        "its thoughts; scored as a whole, by a model that likes length, it learns not to end its thoughts.",
        setting="unclosed_thoughts",
        evidence="construction",
        arms={
            "strict": {"name": "S086", "options": {"missing": "empty"}},
            "lenient": {"name": "S086", "options": {"missing": "whole"}},
        },
        better="strict",
        baseline="lenient",
        measure="quality",
    )
)
