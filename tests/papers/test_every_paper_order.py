"""What a method makes of a batch is the same whatever the order of its rows and however far they are padded."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from anything import NANO, SOME, method_of, signalled

from assay.batch import Batch
from assay.method import Method
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.types import Ask, Episode, Group, Task, Turn, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

WRITTEN: list[tuple[str, str, list[tuple[str, bool]]]] = [
    (
        "9+3=",
        "12",
        [
            ("<think>9+3</think><answer>12</answer>", True),
            ("<think>so\n\n3+9=12</think><answer>12</answer>", True),
            ("<thinking>9</thinking><answer>17</answer>", False),
            ("12", True),
        ],
    ),
    (
        "14+5=",
        "19",
        [
            ("<think>4,5</think><answer>18</answer>", False),
            ("<think>4\n\n5 6\n\n7 8</think><answer>18</answer>", False),
            ("<answer>1", False),
            ("<think>14+5</think><answer>19</answer>", True),
        ],
    ),
]
ORDERS = [[5, 0, 7, 2, 1, 6, 3, 4], [7, 6, 5, 4, 3, 2, 1, 0]]

DRAWN: dict[str, dict[str, Any]] = {
    "S070": {"wordings": None, "responses": None},
    "S179": {"n": 2, "length": None},
    "S206": {"draw": "uniform"},
}
"""Compare with all responses instead of some that are drawn; quote two characters; draw nothing."""
BY_PLACE = {
    "S069": "a bundle's papers are the k-th responses to its questions",
    "S094": "rewards are drawn one after the other, whatever the responses",
}
SILENT = {
    "S044": "it rewards proofs with an analysis of their own",
    "S125": "it judges as its environment's verdict says, and pays for calls of tools",
    "S114": "its reward model says the same of everything at first",
    "S143": "it keeps what has handed in a flag after calls of tools",
    "S146": "it compares turns that came nearer, and work handed in",
    "S172": "it keeps tasks that few of their trajectories solve",
    "S162": "its advantages are not read, and of what ended right alone they are 0",
    "S031": "its advantages are not read: what it learns from is what it has room to show",
    "S147": "its advantages are not read: what it learns from is what it has room to show",
    "S155": "its advantages are not read: what it learns from is what it has room to show",
    "S163": "its advantages are not read: what it learns from is chosen by select",
    "S176": "it learns from a teacher's labels, which its rollout brings",
    "S201": "what it learns from is said anew, between updates",
    "S216": "it compares answers in tags",
}


@pytest.fixture(scope="module")
def policy() -> CausalLM:
    torch.manual_seed(0)
    policy = CausalLM.load(ModelConfig(source="nano", nano={**NANO["nano"], "context": 128}), 0)
    policy.module.double()
    return policy


def written(policy: CausalLM) -> Batch:
    """Responses with reasoning and answers, some right, that every method values."""
    rng, groups = np.random.default_rng(0), []
    for i, (question, reference, responses) in enumerate(WRITTEN):
        episodes, verdicts = [], []
        for text, right in responses:
            tokens = policy.encode(text)[1:]  # without the begin token
            assert policy.decode(tokens) == text
            n, mask = len(tokens), np.ones(len(tokens), dtype=bool)
            logprobs, entropies = ((mean + 0.2 * rng.standard_normal(n)).astype(np.float32) for mean in (-2.5, 2.0))
            turn = Turn(0, 0, n, reward=float(right), verdict=Verdict(float(right), right))
            asked = policy.encode(question)
            episodes.append(Episode(asked, tokens, mask, logprobs, text, "eos", entropies, turns=(turn,)))
            proven = {"submitted": 1.0, "success": float(right), "valid": 1.0}
            verdicts.append(Verdict(float(right), right, {"a": float(right), **proven}))
        task = Task(f"t{i}", question, reference=reference, solution=reference, meta={"documents": [f"x 14+5 {text}"]})
        groups.append(Group(Ask(task, len(episodes)), tuple(episodes), tuple(verdicts)))
    return Batch.from_groups(groups, torch.float64)


def padded(batch: Batch, extra: int) -> Batch:
    """The batch with so many columns more at the end of every row of tokens."""
    width = batch.tokens.shape[1]

    def longer(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {k: longer(v, k) for k, v in value.items()}
        if isinstance(value, torch.Tensor) and value.ndim > 1 and value.shape[1] == width and name not in batch.whole:
            nothing = -1 if name in ("steps", "turn") else 0  # a token that is in no step, and in no turn
            return torch.cat([value, value.new_full((len(value), extra, *value.shape[2:]), nothing)], 1)
        return value

    return Batch(**{f.name: longer(getattr(batch, f.name), f.name) for f in fields(batch)})


def fresh(key: str) -> Method:
    return method_of(key, **DRAWN.get(key, {}))


def made_of(batch: Batch) -> dict[str, torch.Tensor]:
    found = {name: getattr(batch, name) for name in ("rewards", "valid", "weights", "advantages", "token_rewards")}
    return {name: value for name, value in (found | batch.reward_terms).items() if value is not None}


@pytest.mark.parametrize("key", SOME)
def test_order_and_padding_of_a_batch_change_nothing(key: str, policy: CausalLM) -> None:
    """Rewards, validity, weights and advantages of a batch whose rows are shuffled, and which is padded further."""
    batch = signalled(fresh(key), policy, written(policy))
    width = batch.tokens.shape[1]

    def values(given: Batch) -> dict[str, torch.Tensor]:
        return made_of(fresh(key).value(replace(given, signals={**given.signals})))

    own = values(batch)
    assert bool(own["advantages"].any()) is (key not in SILENT), "a batch that says nothing shows nothing"
    longer = values(padded(batch, 3))
    for name, value in own.items():
        torch.testing.assert_close(longer[name][:, :width] if value.ndim > 1 else longer[name], value)
        assert value.ndim == 1 or not bool(longer[name][:, width:].any())
    if key in BY_PLACE:
        return
    for order in map(torch.tensor, ORDERS):
        shuffled = values(batch.rows(order))
        assert shuffled.keys() == own.keys()
        for name, value in own.items():
            torch.testing.assert_close(shuffled[name], value[order])
