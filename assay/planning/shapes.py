"""A model's shapes, and from them its parameters, its key-value bytes and the work of a token.

With L layers of width d, H query and K key heads of width e, an MLP of width m, and V tokens, a Llama-like model has

    V d (once more if the output matrix is its own) + L (d e (2 H + 2 K) + 3 d m) + norms and biases

parameters. Where a layer has E experts of width m of which a token uses k, the MLP is E 3 d m + d E parameters, of
which k 3 d m + d E work on a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from assay.errors import UsageError, nearest
from assay.planning.quantity import Number

FAMILIES = ("gemma3_text", "llama", "mistral", "mixtral", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe")
"""Model types whose parameters follow from their shapes here; others are counted on torch's meta device."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """The shapes of a causal language model.

    Attributes:
        intermediate: width of the dense layers' MLP.
        tied: the output matrix is the input embedding.
        matrices: of an MLP, 3 where it is gated.
        experts, experts_per_token, expert_intermediate, shared_intermediate: of the layers that have experts.
        expert_layers: how many layers have experts.
        extra: parameters of norms, biases and gates, in all.
        context: longest prompt plus response.
        counted: all parameters, where they were counted or given rather than computed.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool = False
    matrices: int = 3
    experts: int = 0
    experts_per_token: int = 0
    expert_intermediate: int = 0
    shared_intermediate: int = 0
    expert_layers: int = 0
    extra: int = 0
    context: int = 131_072
    counted: int | None = None

    # Parameters of matrices

    @property
    def attention(self) -> int:
        """Of one layer's four projections."""
        return self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)

    @property
    def expert(self) -> int:
        return self.matrices * self.hidden * self.expert_intermediate

    @property
    def always(self) -> int:
        """Of all layers, those that work on every token: attention, dense MLPs, routers, shared experts."""
        dense = (self.layers - self.expert_layers) * self.matrices * self.hidden * self.intermediate
        shared = self.matrices * self.hidden * self.shared_intermediate + self.hidden * self.experts
        return self.layers * self.attention + dense + self.expert_layers * shared

    @property
    def body(self) -> int:
        """Of all layers, those that work on a token; times 2 its forward FLOPs without attention scores and head."""
        return self.always + self.expert_layers * self.experts_per_token * self.expert

    @property
    def head(self) -> int:
        """Of the output matrix; as many are in the input embedding."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All of them."""
        if self.counted is not None:
            return self.counted
        return self.always + self.expert_layers * self.experts * self.expert + self.outside + self.extra

    @property
    def active_parameters(self) -> int:
        """All but those of the experts that a token does not use."""
        idle = self.expert_layers * (self.experts - self.experts_per_token) * self.expert
        return self.parameters - idle

    @property
    def outside(self) -> int:
        """Of what stands outside of the layers: embedding and output matrix."""
        return self.head * (1 if self.tied else 2)

    @property
    def layer(self) -> int:
        """Of the largest layer."""
        if not self.expert_layers:
            return self.attention + self.matrices * self.hidden * self.intermediate
        shared = self.matrices * self.hidden * self.shared_intermediate + self.hidden * self.experts
        return self.attention + self.experts * self.expert + shared

    def touched(self, rows: Number) -> Number:
        """Parameters that a decode step of ``rows`` tokens reads, experts as if chosen at random."""
        if not self.expert_layers:
            return self.always + self.head
        used = self.experts * (1 - (1 - self.experts_per_token / self.experts) ** rows)
        return self.always + self.head + self.expert_layers * used * self.expert

    def kv_bytes(self, size: int = 2) -> int:
        """Bytes of keys and values that a token leaves, of ``size`` bytes each."""
        return 2 * self.layers * self.kv_heads * self.head_dim * size

    @property
    def score_flops(self) -> int:
        """Forward FLOPs of attention scores and their use, per token and token seen: 4 L H e."""
        return 4 * self.layers * self.heads * self.head_dim


def from_config(config: Mapping[str, Any], name: str = "the model") -> Shapes:
    """Return the shapes that a transformers ``config.json`` describes.

    Raises:
        UsageError: a key is missing, or the model's parameters can neither be computed nor counted.
    """
    outer, config = config, {**config, **config.get("text_config", {})}
    kind = str(config.get("model_type", "llama"))
    hidden = _number(config, name, "hidden_size", "n_embd")
    heads = _number(config, name, "num_attention_heads", "n_head")
    layers = _number(config, name, "num_hidden_layers", "n_layer")
    dim = int(config.get("head_dim") or hidden // heads)
    kv = int(config.get("num_key_value_heads") or heads)
    shapes = Shapes(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv,
        head_dim=dim,
        intermediate=int(config.get("intermediate_size") or config.get("n_inner") or 4 * hidden),
        vocabulary=_number(config, name, "vocab_size"),
        tied=bool(outer.get("tie_word_embeddings", config.get("tie_word_embeddings", kind == "gemma3_text"))),
        context=int(config.get("max_position_embeddings") or 2**31),
    )
    if kind not in FAMILIES:
        return _counted(shapes, outer, kind)
    shapes = _with_experts(shapes, config, kind)
    bias = bool(config.get("attention_bias", False))
    query_bias = kind in ("qwen2", "qwen2_moe") or bias
    per_layer = (4 if kind == "gemma3_text" else 2) * hidden
    per_layer += (heads + 2 * kv) * dim * query_bias + hidden * (bias and kind == "llama")
    per_layer += 2 * dim * (kind in ("qwen3", "qwen3_moe", "gemma3_text"))
    per_layer += (2 * shapes.intermediate + hidden) * bool(config.get("mlp_bias", False))
    gates = shapes.expert_layers * hidden * (shapes.shared_intermediate > 0)
    return replace(shapes, extra=layers * per_layer + hidden + gates)


def from_options(options: Mapping[str, str], base: Shapes | None = None) -> Shapes:
    """Return shapes given as ``layers=32 hidden=4096 ...``, over those of ``base``.

    Without a base, ``layers``, ``hidden`` and ``heads`` are needed; the others default to those of a Llama: as many key
    heads as query heads, heads of width hidden / heads, an MLP 3.5 times as wide, 128,256 tokens. ``params`` replaces
    the computed number of parameters.

    Raises:
        UsageError: an unknown option, one that is no number, or one too few.
    """
    names = {f.name for f in fields(Shapes)} - {"name", "counted", "matrices", "extra", "context"} | {"params"}
    values: dict[str, Any] = {}
    for key, text in options.items():
        if key not in names:
            raise UsageError(f"--shape has no {key!r}{nearest(key, names)}")
        try:
            number = float(str(text).replace("_", "").replace("true", "1").replace("false", "0"))
        except ValueError:
            raise UsageError(f"--shape {key}={text}: expected a number") from None
        if number < 0 or (number == 0 and key in ("layers", "hidden", "heads", "kv_heads", "vocabulary", "params")):
            raise UsageError(f"--shape {key}={text}: expected a number above 0")
        values["counted" if key == "params" else key] = bool(number) if key == "tied" else int(number)
    if base is None:
        if missing := [k for k in ("layers", "hidden", "heads") if k not in values]:
            raise UsageError(
                f"--shape lacks {', '.join(missing)}; give layers, hidden and heads, e.g. --shape layers=32"
            )
        hidden, heads = values["hidden"], values["heads"]
        defaults = {"kv_heads": heads, "head_dim": hidden // heads, "intermediate": 7 * hidden // 2}
        extra = hidden * (2 * values["layers"] + 1)
        values = {"name": "given shapes", "vocabulary": 128_256, "extra": extra, **defaults, **values}
        shapes = Shapes(**values)
    else:
        # Other shapes than the counted ones make another count.
        shapes = replace(base, **{"counted": None, **values})
    if shapes.experts and not (shapes.experts_per_token and shapes.expert_intermediate):
        raise UsageError("--shape experts=... also takes experts_per_token=... and expert_intermediate=...")
    if shapes.experts and not shapes.expert_layers:
        shapes = replace(shapes, expert_layers=shapes.layers)
    return shapes


def _number(config: Mapping[str, Any], name: str, *keys: str) -> int:
    """Return a size by any of its names."""
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    raise UsageError(f"{name}: its config has no {keys[0]!r} above 0; give --shape layers=... hidden=... heads=...")


def _with_experts(shapes: Shapes, config: Mapping[str, Any], kind: str) -> Shapes:
    if kind not in ("mixtral", "qwen2_moe", "qwen3_moe"):
        return shapes
    chosen: dict[str, Any] = {
        "experts": _number(config, shapes.name, "num_experts", "num_local_experts"),
        "experts_per_token": _number(config, shapes.name, "num_experts_per_tok"),
    }
    if kind == "mixtral":
        return replace(shapes, **chosen, expert_intermediate=shapes.intermediate, expert_layers=shapes.layers)
    every, dense = config.get("decoder_sparse_step", 1), set(config.get("mlp_only_layers") or ())
    sparse = [i for i in range(shapes.layers) if i not in dense and (i + 1) % every == 0]
    return replace(
        shapes,
        **chosen,
        expert_intermediate=_number(config, shapes.name, "moe_intermediate_size"),
        shared_intermediate=config.get("shared_expert_intermediate_size", 0) if kind == "qwen2_moe" else 0,
        expert_layers=len(sparse),
    )


def _counted(shapes: Shapes, config: Mapping[str, Any], kind: str) -> Shapes:
    """Count the parameters of an architecture whose formula is not here, without making its weights."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    if any("expert" in key for key in config):
        raise UsageError(
            f"{shapes.name}: how a {kind} lays out its experts is not known here; give --shape layers=... hidden=... "
            "heads=... experts=... experts_per_token=... expert_intermediate=..."
        )
    try:
        known = AutoConfig.for_model(kind, **{k: v for k, v in config.items() if k != "model_type"})
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(known)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{shapes.name}: transformers makes no model of a {kind}: {str(error).splitlines()[0]}; give --shape"
        ) from None
    inner, tied = model.get_input_embeddings(), model.get_output_embeddings()
    return replace(
        shapes, counted=sum(p.numel() for p in model.parameters()), tied=tied is None or inner.weight is tied.weight
    )
