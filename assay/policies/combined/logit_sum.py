"""One policy whose logits are a weighted sum of those of several, which all read the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import UsageError
from assay.policies.attention import packed
from assay.policies.base import Policy
from assay.policies.causal_lm import CausalLM, WithoutAdapter
from assay.policies.logprobs import Head
from assay.policies.tabular import TabularPolicy


def logit_sum(terms: Sequence[tuple[Any, float]]) -> Policy:
    """Return the policy with logits z = sum_i w_i z_i, for passes without a gradient.

    Of language models the vocabulary is that of the first; a token that another does not have gets 0 from it. As a
    softmax sees no constant, logits may be read as log-probabilities.

    Args:
        terms: policies of one kind and their weights, the first with all the tokens.

    Raises:
        UsageError: none, policies of different kinds or over different trees, or a model that caps its logits.
    """
    if not terms:
        raise UsageError("a sum of logits needs a policy")
    first = terms[0][0]
    if isinstance(first, TabularPolicy):
        for other, _ in terms:
            if not (isinstance(other, TabularPolicy) and torch.equal(other.tree.children, first.tree.children)):
                raise UsageError("logits can be added of policies over one tree only")
        with torch.no_grad():
            logits = sum((w * p.logits for p, w in terms), torch.zeros_like(first.logits))
        return TabularPolicy(first.tree, logits, first.logits.dtype)
    return LogitSum(terms)


class LogitSum(CausalLM):
    """Language models whose states stand side by side, under one output layer made of all of theirs.

    z = sum_i w_i s_i (W_i h_i + b_i) = [w_1 s_1 W_1, w_2 s_2 W_2, ...] [h_1, h_2, ...] + sum_i w_i s_i b_i

    with s_i the scale that some architectures put on logits. The layout of a pass is that of the first model.
    """

    def __init__(self, terms: Sequence[tuple[Any, float]]):
        for policy, _ in terms:
            if not isinstance(policy, CausalLM | WithoutAdapter):
                raise UsageError(f"logits of a language model and of a {type(policy).__name__} cannot be added")
            if policy.head.softcap is not None:
                raise UsageError("logits of a model that caps them cannot be added: they are no sum of its states")
        first = terms[0][0]
        self.__dict__.update(vars(first.adapted if isinstance(first, WithoutAdapter) else first))
        self.terms = list(terms)
        self.context = min(policy.context for policy, _ in terms)

    def _hidden(
        self, tokens: Int[Tensor, "S"], layout: packed.Layout, depths: Sequence[float] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        if depths:
            raise UsageError("a sum of logits has no layers in between")
        found = [policy.hidden(tokens, layout) for policy, _ in self.terms]
        return torch.cat([h.to(found[0]) for h in found], -1), []

    @property
    def head(self) -> Head:
        """The output layers side by side; bias and scale are in it."""
        heads = [(policy.head, weight) for policy, weight in self.terms]
        size = heads[0][0].weight.shape[0]
        weight = torch.cat([fitted(w * head.scale * head.weight, size) for head, w in heads], -1)
        biases = [fitted(w * head.scale * head.bias, size) for head, w in heads if head.bias is not None]
        return Head(weight, sum(biases[1:], biases[0]) if biases else None)


def fitted(rows: Float[Tensor, "V *D"], size: int) -> Float[Tensor, "size *D"]:
    """Return the first ``size`` rows, zeros where there are fewer."""
    if len(rows) >= size:
        return rows[:size]
    return torch.cat([rows, rows.new_zeros(size - len(rows), *rows.shape[1:])])
