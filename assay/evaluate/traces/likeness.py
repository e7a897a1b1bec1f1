"""How much of a step is grounded in another one, by what a language model makes of the two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM

Form = Literal["gain", "rollout"]
BEFORE = "A step of a solution in other words.\n"
BETWEEN = "\n"


def roll_out(attentions: Sequence[Float[Tensor, "H L L"]]) -> Float[Tensor, "L L"]:
    """Return the product over layers, the last one first, of W + I with rows of sum 1, W the mean over heads.

    Source: attention rollout (arXiv 2005.00928).
    """
    length = attentions[0].shape[-1]
    eye = torch.eye(length, dtype=torch.float32)
    rolled = eye
    for layer in attentions:
        mixed = layer.float().mean(0).cpu() + eye
        rolled = (mixed / mixed.sum(-1, keepdim=True)) @ rolled
    return rolled


class Likeness:
    """Likeness in [0, 1] of a step p with a reference step g, by a language model.

    - ``gain``: clip(exp(mean log P(p_t | g, p_<t)) - exp(mean log P(p_t | p_<t)), 0, 1): how much likelier the step is
      once the reference is known;
    - ``rollout``: sum_t w_t P(p_t | g, p_<t), with w = softmax_t(a_t / tau) and a_t what :func:`roll_out` of the
      attention at p_t puts on g.

    Args:
        policy: the model.
        form: see above.
        tau: temperature of the weights, above 0.

    Raises:
        UsageError: tau out of range; when called, two steps that are too long for the model together.

    Source: StepSTEM's code, which has both; its paper's formula for the second is another one.
    """

    def __init__(self, policy: CausalLM, form: Form = "gain", tau: float = 0.3):
        if not tau > 0:
            raise UsageError(f"likeness by attention: tau {tau:g} must be above 0")
        self.policy, self.form, self.tau = policy, form, tau

    def __call__(self, given: Sequence[str], reference: Sequence[str]) -> Float[np.ndarray, "m n"]:
        """Return how much each given step is grounded in each reference step."""
        found = np.zeros((len(given), len(reference)))
        with torch.no_grad(), plain_attention(self.policy.model):
            alone = [self._chances("", step)[0] for step in given] if self.form == "gain" else []
            for j, known in enumerate(reference):
                for i, step in enumerate(given):
                    logs, rolled = self._chances(known, step)
                    if self.form == "gain":
                        value = logs.mean().exp() - alone[i].mean().exp()
                    else:
                        value = ((rolled / self.tau).softmax(-1) * logs.exp()).sum()
                    found[i, j] = min(max(float(value), 0.0), 1.0)
        return found

    def _chances(self, known: str, step: str) -> tuple[Float[Tensor, "T"], Float[Tensor, "T"]]:
        """Return log-probabilities of a step's tokens after a reference step, and what each sees of that."""
        before, known_ids, between, ids = (self._ids(text) for text in (BEFORE, known, BETWEEN if known else "", step))
        start, end = len(before), len(before) + len(known_ids)
        whole = [*before, *known_ids, *between, *ids]
        if not ids or len(whole) > self.policy.context:
            raise UsageError(
                f"a step of {len(ids)} tokens beside one of {len(known_ids)} does not fit into the model's context of "
                f"{self.policy.context}, or is empty: {step[:60]!r}"
            )
        tokens = torch.tensor([whole], device=self.policy.device)
        out = self.policy.model(input_ids=tokens, use_cache=False, output_attentions=self.form == "rollout")
        logs = out.logits[0].float().log_softmax(-1).cpu()
        places = range(len(whole) - len(ids), len(whole))
        found = torch.stack([logs[t - 1, whole[t]] for t in places])
        if self.form == "gain":
            return found, found
        return found, roll_out([layer[0] for layer in out.attentions])[list(places), start:end].sum(-1)

    def _ids(self, text: str) -> list[int]:
        return self.policy.encode_response(text, end=False).tolist() if text else []


@contextmanager
def plain_attention(model: Any) -> Iterator[None]:
    """Have a model compute attention by itself, whose weights it can tell, and not over packed responses."""
    training, before = model.training, model.config._attn_implementation
    model.eval()
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)
        model.train(training)
