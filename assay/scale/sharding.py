"""A causal language model whose weights, gradients and optimiser state are sharded over ranks (FSDP2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.policies.attention import packed
from assay.policies.attention.flex import Attention, layout_for
from assay.policies.base import Policy, PolicyOutput
from assay.policies.causal_lm import CausalLM, WithoutAdapter
from assay.policies.causal_lm import _idle_adapter as idle_adapter
from assay.policies.loading import ModelConfig, device_of, no_progress_bar, sees
from assay.scale.ranks import Ranks

PASS = "assay_pass"
"""Name under which the model has our forward pass, so that FSDP's hooks run around it."""


class ShardedLM(CausalLM):
    """A :class:`~assay.policies.causal_lm.CausalLM` of which every rank holds a part of every weight.

    Each decoder layer is gathered when a pass reaches it and let go after it. What stands outside of the layers, with
    it the output layer that log-probabilities are computed with after the pass, stays whole until the backward pass is
    over, or until a pass without gradient has been read.

    Gradients are *summed* over ranks: losses divide by the totals of the whole mini-batch, and each rank passes over
    other rows of it. Every pass, forward or backward, is one of all ranks: each has to make as many.

    Weights are kept in float32. Where the recipe asks for less (``model.dtype``), layers are gathered, and computed, in
    that precision and gradients added up in float32, so the optimiser needs no copies of the weights.

    Args:
        make: makes the whole model, with the same weights on every rank, on the CPU.
        ranks: that share it.
        device: where the parts live, the compute is done.
        offload: keep the parts and the optimiser's state in the machine's memory.
        kernel: what computes attention on ``device``, see :data:`assay.policies.attention.flex.Attention`.
    """

    def __init__(
        self,
        make: Callable[[], CausalLM],
        ranks: Ranks,
        device: torch.device,
        offload: bool = False,
        kernel: Attention = "auto",
    ):
        whole = make()
        self.__dict__.update(whole.__dict__)
        self._make, self._ranks, self._offload, self._kernel = make, ranks, offload, kernel
        self.device = device
        self._depth = 0
        self._kept = False
        self.dtype = next(whole.model.parameters()).dtype
        if device.type != "cpu":
            # What was found to work where the whole was made says nothing of the device.
            there = torch.empty(0, dtype=self.dtype, device=device)
            self.layout = layout_for(
                kernel, SimpleNamespace(config=self.model.config, parameters=lambda: iter([there]))
            )
        self._shard()

    @classmethod
    def load_sharded(cls, config: ModelConfig, seed: int, ranks: Ranks, offload: bool = False) -> ShardedLM:
        """Return the policy that a recipe's ``[model]`` table describes, sharded over ``ranks``."""
        if sees(config):
            raise UsageError("models that see pictures are not divided over trainers here; set scale.trainers=1")
        device = device_of(config)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        # Layer by layer the parts go to the device, which need not hold the whole.
        plain = config.model_copy(update={"device": "cpu"})
        return cls(lambda: CausalLM.load(plain, seed), ranks, device, offload, config.attention)

    def _shard(self) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import (
            CPUOffloadPolicy,
            MixedPrecisionPolicy,
            OffloadPolicy,
            fully_shard,
            register_fsdp_forward_method,
        )

        low = self.dtype != torch.float32
        if low:
            for parameter in self.model.parameters():
                parameter.data = parameter.data.float()
        options: dict[str, Any] = {
            "mesh": init_device_mesh(self.device.type, (self._ranks.size,)),
            "mp_policy": MixedPrecisionPolicy(self.dtype, torch.float32) if low else MixedPrecisionPolicy(),
            "offload_policy": CPUOffloadPolicy() if self._offload else OffloadPolicy(),
        }
        for layer in decoder_layers(self.model):
            fully_shard(layer, **options)
        # Its weights are read after its pass, by the output layer: see ``_reading``.
        fully_shard(self.model, reshard_after_forward=False, **options)
        setattr(self.model, PASS, lambda run, *arguments: run(*arguments))
        register_fsdp_forward_method(self.model, PASS)
        for module in self._units:
            # Without this the reduction is one that gloo does not know.
            module.set_force_sum_reduction_for_comms(True)
            module.set_gradient_divide_factor(1.0)

    @property
    def _units(self) -> list[Any]:
        """The modules that are gathered one at a time; the first is the whole model."""
        from torch.distributed.fsdp import FSDPModule

        return [m for m in self.model.modules() if isinstance(m, FSDPModule)]

    # Passes

    def _hidden(
        self, tokens: Int[Tensor, "S"], layout: packed.Layout, depths: Sequence[float] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        def run(*arguments: Any) -> tuple[Tensor, list[Tensor]]:
            last, inner = super(ShardedLM, self)._hidden(*arguments)
            # FSDP puts hooks on what a pass returns, which a view would lose.
            return (last.clone(), [x.clone() for x in inner]) if torch.is_grad_enabled() else (last, inner)

        return getattr(self.model, PASS)(run, tokens, layout, depths)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """While log-probabilities are computed from a pass; afterwards the output layer is let go, unless a backward
        pass is to come, which does so."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth and not self._kept and not torch.is_grad_enabled():
                self._units[0].reshard()

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        """See :class:`assay.policies.base.Policy`; a pass of all ranks."""
        with self._reading():
            return super().forward(batch, live, temperature)

    def continuations(
        self,
        batch: Batch,
        at: Sequence[Sequence[int]],
        what: Sequence[Sequence[np.ndarray]],
        temperature: float = 1.0,
    ) -> Float[Tensor, "N K A"]:
        """See :class:`assay.policies.base.Policy`; a pass of all ranks."""
        with self._reading():
            return super().continuations(batch, at, what, temperature)

    def continuation_ranks(
        self, batch: Batch, at: Sequence[Sequence[int]], what: Sequence[Sequence[np.ndarray]]
    ) -> Int[Tensor, "N K A"]:
        """See :class:`assay.policies.base.Policy`; a pass of all ranks."""
        with torch.no_grad(), self._reading():
            return super().continuation_ranks(batch, at, what)

    def candidates(
        self, batch: Batch, n: int, temperature: float = 1.0, generator: torch.Generator | None = None
    ) -> Int[Tensor, "N T n"]:
        """See :class:`assay.policies.base.Policy`; a pass of all ranks."""
        with torch.no_grad(), self._reading():
            return super().candidates(batch, n, temperature, generator)

    def likeliest(self, batch: Batch, n: int) -> Int[Tensor, "N T n"]:
        """See :class:`assay.policies.base.Policy`; a pass of all ranks."""
        with torch.no_grad(), self._reading():
            return super().likeliest(batch, n)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Gather every weight, for passes without gradient that each rank makes as many of as it likes.

        Takes the memory of a whole model, in the precision of ``model.dtype``. Entered and left by all ranks together.
        """
        units = self._units
        units[0].set_reshard_after_forward(False)
        for unit in units:
            unit.unshard()
        self._kept = True
        try:
            yield
        finally:
            self._kept = False
            units[0].reset_iter_state()
            for unit in units[1:]:
                unit.set_reshard_after_forward(True, recurse=False)

    @property
    def width(self) -> int:
        """Length of a hidden state."""
        return int(self.model.get_output_embeddings().weight.shape[1])

    # Copies, and weights on disk

    def twin(self) -> CausalLM:
        """Refused: whoever trains a copy passes over all rows on every rank, and the gradients would be summed.

        Raises:
            UsageError: always.
        """
        raise UsageError("a second model is trained beside the policy, which cannot be sharded; set scale.trainers=1")

    def frozen(self, folder: Path) -> Policy:
        """See :meth:`CausalLM.frozen`; the copy is sharded as well."""
        if self.adapter is not None and idle_adapter(folder):
            return WithoutAdapter(self)
        frozen = ShardedLM(self._make, self._ranks, self.device, self._offload, self._kernel)
        frozen.load_weights(folder)
        frozen.module.requires_grad_(False).eval()
        return frozen

    def _sharded(self) -> dict[str, Tensor]:
        """This rank's part of every parameter, a tied one once; writing to it changes the weights."""
        for unit in self._units:
            unit.reshard()
        return dict(self.module.named_parameters())

    def full_state(self, trainable: bool = False) -> dict[str, Tensor]:
        """Return every weight of ``module``, or those that are trained, whole, on the CPU of rank 0; empty elsewhere.

        Every rank calls this, and one weight at a time is whole on each. Tied weights come under every name, as one
        tensor. Precision is that of ``model.dtype``.
        """
        first, out, known = self._ranks.first, dict[str, Tensor](), dict[int, Tensor]()
        self._sharded()
        for name, value in self.module.named_parameters(remove_duplicate=False):
            if trainable and not value.requires_grad:
                continue
            if id(value) not in known:
                full = value.detach().full_tensor()  # type: ignore[attr-defined]
                known[id(value)] = full.to("cpu", self.dtype) if first else full.new_empty(0)
            if first:
                out[name] = known[id(value)]
        if first and not trainable:
            parameters = set(out)
            out |= {k: v.cpu() for k, v in self.module.state_dict().items() if k not in parameters}
        return out

    def merged_state(self) -> Iterator[tuple[str, Tensor]]:
        """See :meth:`CausalLM.merged_state`; in the precision of ``model.dtype``, which engines compute in."""
        buffers = dict(self.model.named_buffers()).keys()
        for name, weight in super().merged_state():
            kept = name in buffers or not weight.is_floating_point()
            yield name, weight if kept else weight.to(self.dtype)

    def save(self, folder: Path) -> None:
        """As :meth:`CausalLM.save`, by rank 0; every rank calls it."""
        state = self.full_state(trainable=self.adapter is not None)
        if not self._ranks.first:
            return
        with no_progress_bar():
            if self.adapter is not None:
                self.adapter.save_pretrained(folder, save_embedding_layers=False, state_dict=state)
            else:
                self.model.save_pretrained(folder, state_dict=state, max_shard_size="1TB")
            self.tokenizer.save_pretrained(folder)

    def load_weights(self, folder: Path) -> None:
        """Take the weights that :meth:`save`, or one process, wrote; every rank reads them all.

        Raises:
            UsageError: the folder holds the weights of another model.
        """
        whole = self._make()
        whole.load_weights(folder)
        mine, theirs = self._sharded(), dict(whole.module.named_parameters())
        if mine.keys() != theirs.keys():
            raise UsageError(f"{folder} does not hold this model's weights")
        with torch.no_grad():
            for name, part in mine.items():
                part.copy_(like(theirs[name].detach(), part))


def like(whole: Tensor, part: Tensor) -> Tensor:
    """Return this rank's part of a tensor that it has whole, sharded as ``part`` is; the tensor itself if that is not.

    Nothing is sent: every rank has the same tensor.
    """
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(part, DTensor) or whole.shape != part.shape:
        return whole
    return distribute_tensor(whole.to(part.device), part.device_mesh, part.placements, src_data_rank=None)


def decoder_layers(model: Any) -> list[torch.nn.Module]:
    """Return the layers a transformers model is a stack of.

    Raises:
        UsageError: they are not to be found.
    """
    count = model.config.get_text_config().num_hidden_layers
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == count:
            return list(module)
    raise UsageError(
        f"models of type {model.config.model_type!r} cannot be sharded: they have no list of {count} layers; set "
        "scale.trainers=1"
    )
