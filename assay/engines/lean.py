"""The forward pass of a Llama-like model in as few calls as it takes, for as long as an engine generates.

A decoding step's tensors are small: beside its matrix products, most of its time on a CPU goes into calls and into
tensors that are written only to be read once. Here a layer is four products of packed weights (see
:mod:`assay.engines.packed`) that take activation, gate and residual sum along, two norms, a rotation, and the layout's
attention. Rows of the query and key weights are reordered, so that the pairs which the rotation turns lie side by side
and one complex product turns them all; scores are the same, for queries and keys are reordered alike.

Whether a model is Llama-like is found out by trying; others keep their own forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float, Int
from torch import Tensor

from assay.engines.packed import pays, plain
from assay.policies.attention.packed import KeyValueCache, Layout, Prefill
from assay.policies.causal_lm import CausalLM

Hidden = Callable[[Tensor, Layout], Tensor]
"""Last hidden states ``(S, D)`` of packed tokens, as :meth:`assay.policies.causal_lm.CausalLM.hidden`."""

Masks = list[tuple[float | None, int | None]]
"""Each layer's scale of scores and sliding window, as the model passes them to its attention function."""

_masks: WeakKeyDictionary[torch.nn.Module, Masks | None] = WeakKeyDictionary()


def hidden_of(policy: CausalLM, tokens: int) -> Hidden:
    """Return what computes a policy's hidden states fastest where no gradient is wanted.

    Args:
        tokens: about how many will be computed; packing the weights must pay, see :func:`assay.engines.packed.pays`.
    """
    model = policy.model
    if not pays(model, tokens) or any(m._forward_hooks or m._forward_pre_hooks for m in model.modules()):
        return policy.hidden
    if model not in _masks:
        _masks[model] = _try(policy)
    masks = _masks[model]
    return policy.hidden if masks is None else Lean(model, masks)


class Product:
    """y = f(x W' + b), with the weights of one or several linear layers packed as one."""

    def __init__(self, layers: Sequence[torch.nn.Linear], order: Int[Tensor, "N"] | None = None):
        weight, self.bias = torch.cat([m.weight for m in layers]), None
        if layers[0].bias is not None:
            self.bias = torch.cat([m.bias for m in layers])
        if order is not None:
            weight, self.bias = weight[order], None if self.bias is None else self.bias[order]
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, None)

    def __call__(self, x: Float[Tensor, "S K"], then: str = "none") -> Float[Tensor, "S N"]:
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, then, [], "")

    def with_other(self, x: Float[Tensor, "S K"], other: Float[Tensor, "S N"], how: str) -> Float[Tensor, "S N"]:
        """Add the product to ``other``, or multiply both."""
        return torch.ops.mkldnn._linear_pointwise.binary(x, other, self.weight, self.bias, how)


@dataclass(frozen=True, slots=True)
class Layer:
    """A decoder layer's weights and constants."""

    attention_norm: Callable[[Tensor], Tensor]
    qkv: Product
    out: Product
    mlp_norm: Callable[[Tensor], Tensor]
    gate: Product
    up: Product
    down: Product
    heads: list[int]


class Lean:
    """A model's forward pass with its weights as they are now; weights changed in place are packed again.

    Args:
        masks: see :data:`Masks`.

    Raises:
        AttributeError, ValueError: the model's parts are not a Llama's.
    """

    def __init__(self, model: Any, masks: Masks):
        self.base, self.masks = model.base_model, masks
        self.weights = list(self.base.parameters())
        self._pack()

    def _pack(self) -> None:
        self.version = sum(w._version for w in self.weights)
        self.layers = [_layer(module) for module in self.base.layers]
        self.norm = _norm(self.base.norm)

    def __call__(self, tokens: Int[Tensor, "S"], layout: Layout) -> Float[Tensor, "S D"]:
        if sum(w._version for w in self.weights) != self.version:
            self._pack()
        x = self.base.embed_tokens(tokens)
        turn = _turn(*self.base.rotary_emb(x[None], layout.position_ids))
        for number, (layer, mask) in enumerate(zip(self.layers, self.masks, strict=True)):
            heads = layer.qkv(layer.attention_norm(x)).unflatten(-1, (sum(layer.heads), -1))
            turned = heads[:, : -layer.heads[2]].unflatten(-1, (-1, 2))
            torch.view_as_complex(turned).mul_(turn)
            q, k, v = heads.transpose(0, 1)[None].split(layer.heads, 1)
            seen = layout.attend(number, q, k, v, *mask)
            x = layer.out.with_other(seen.reshape(len(x), -1), x, "add")
            h = layer.mlp_norm(x)
            x = layer.down.with_other(layer.up.with_other(h, layer.gate(h, "swish"), "mul"), x, "add")
        return self.norm(x)


def _layer(module: Any) -> Layer:
    attention, mlp = module.self_attn, module.mlp
    projections = [attention.q_proj, attention.k_proj, attention.v_proj]
    linears = [*projections, attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj]
    if not all(map(plain, linears)) or len({m.bias is None for m in projections}) > 1:
        raise ValueError("its linear layers are not just that")
    dim = attention.head_dim
    heads = [len(m.weight) // dim for m in projections]
    pairs = torch.arange(dim).view(2, -1).T.reshape(-1)
    rows = torch.arange(sum(heads) * dim).view(-1, dim)
    rows[: -heads[2]] = rows[: -heads[2], pairs]
    return Layer(
        attention_norm=_norm(module.input_layernorm),
        qkv=Product(projections, rows.flatten()),
        out=Product([attention.o_proj]),
        mlp_norm=_norm(module.post_attention_layernorm),
        gate=Product([mlp.gate_proj]),
        up=Product([mlp.up_proj]),
        down=Product([mlp.down_proj]),
        heads=heads,
    )


def _norm(module: Any) -> Callable[[Tensor], Tensor]:
    shape, epsilon = tuple(module.weight.shape), module.variance_epsilon
    return lambda x: F.rms_norm(x, shape, module.weight, epsilon)


def _turn(cos: Float[Tensor, "1 S D"], sin: Float[Tensor, "1 S D"]) -> Complex[Tensor, "S 1 D/2"]:
    """Return the unit numbers by which the pairs of a head are multiplied."""
    half = cos.shape[-1] // 2
    return torch.complex(cos[0, :, None, :half], sin[0, :, None, :half])


class _Noting(Prefill):
    """Two short prompts, early and late in a context; notes what attention is asked for."""

    def __init__(self, prompts: Sequence[Tensor], context: int, device: torch.device):
        super().__init__(prompts, KeyValueCache(), device)
        self.position_ids[:, len(prompts[0]) :] += max(0, min(context, 2**20) - len(prompts[1]))
        self.masks: Masks = []

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float | None, window: int | None) -> Tensor:
        self.masks.append((scale, window))
        return super().attend(layer, q, k, v, scale, window)


@torch.inference_mode()
def _try(policy: CausalLM) -> Masks | None:
    """Return what a model's layers ask of attention, if :class:`Lean` gives the hidden states that the model gives."""
    generator = torch.Generator().manual_seed(0)
    prompts = [torch.randint(len(policy.head.weight), (6,), generator=generator) for _ in range(2)]
    tokens, own = torch.cat(prompts), _Noting(prompts, policy.context, policy.device)
    expected = policy.hidden(tokens, own)
    try:
        got = Lean(policy.model, own.masks)(tokens, _Noting(prompts, policy.context, policy.device))
    except (AttributeError, ValueError, RuntimeError, TypeError):
        return None
    return own.masks if torch.allclose(got, expected, rtol=0, atol=1e-4 * float(expected.abs().max())) else None
