"""What each kernel option costs and saves in an update of a model, on whatever device is there.

    python benchmarks/kernels.py [--hidden 192] [--layers 4] [--heads 6] [--prompts 4] [--group 8] [--prompt 32]
        [--response 32] [--vocabulary 4096] [--rounds 5]

An update is ``assay.learning.update.update`` on one mini-batch: forward, backward, clipping, optimiser. Each option is
compared with the first row, everything else being equal: float32, padded rows (sdpa), AdamW, nothing compiled, nothing
recomputed. The rows take turns within a round, after rounds that warm them up; printed are each row's median seconds,
the median over rounds of the first row's time over its own (above 1: faster), the memory its optimiser keeps for each
weight, the bytes of activations a forward pass saves for the backward pass, on a GPU the most memory the update took,
and how far its log-probabilities before the first update are from the first row's (mean absolute).

Rows that a device or an installation lacks are named and left out: flex attention has a backward pass on GPUs only,
eight-bit moments need torchao, compiling needs a C++ compiler or Triton.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.errors import UsageError
from assay.learning.memory import keep_freed_memory
from assay.learning.optimizer import make_optimizer
from assay.learning.update import update
from assay.objectives.sft import SFT
from assay.policies.causal_lm import CausalLM
from assay.policies.nano import NanoConfig, nano_tokenizer
from assay.types import Ask, Episode, Group, Task


@dataclass(frozen=True)
class Option:
    """A row of the table: what differs from the first."""

    name: str
    policy: dict[str, Any] = field(default_factory=dict)
    dtype: torch.dtype = torch.float32
    optimizer: Any = "adamw"
    checkpointing: bool = False


OPTIONS = (
    Option("float32, sdpa", {"kernel": "sdpa"}),
    Option("flex attention", {"kernel": "flex"}),
    Option("compiled", {"kernel": "sdpa", "compile": True}),
    Option("checkpointing", {"kernel": "sdpa"}, checkpointing=True),
    Option("8-bit moments", {"kernel": "sdpa"}, optimizer="adamw8bit"),
    Option("bfloat16", {"kernel": "sdpa"}, torch.bfloat16),
    Option("bfloat16, 8-bit", {"kernel": "sdpa"}, torch.bfloat16, optimizer="adamw8bit"),
    Option("bfloat16, flex", {"kernel": "flex"}, torch.bfloat16),
    Option("bfloat16, all", {"kernel": "auto", "compile": True}, torch.bfloat16),
)


def model(arguments: argparse.Namespace) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=arguments.vocabulary,
            hidden_size=arguments.hidden,
            intermediate_size=arguments.hidden * 8 // 3 // 8 * 8,
            num_hidden_layers=arguments.layers,
            num_attention_heads=arguments.heads,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


def work(arguments: argparse.Namespace) -> Batch:
    """Prompts and responses of lengths from half to one and a half times the ones asked for."""
    rng = np.random.default_rng(0)

    def tokens(mean: int) -> np.ndarray:
        return rng.integers(4, arguments.vocabulary, int(rng.integers(mean // 2, mean * 3 // 2 + 1)))

    groups = []
    for i in range(arguments.prompts):
        prompt, episodes = tokens(arguments.prompt), []
        for _ in range(arguments.group):
            response = tokens(arguments.response)
            episodes.append(Episode(prompt, response, np.ones(len(response), dtype=bool), None, "", "eos"))
        groups.append(Group(Ask(Task(str(i), ""), arguments.group), tuple(episodes)))
    batch = Batch.from_groups(groups)
    batch.totals = batch.count()
    return batch


class Row:
    """An option with a model and an optimiser of its own."""

    def __init__(self, option: Option, arguments: argparse.Namespace, batch: Batch, device: torch.device):
        self.option, self.batch, self.budget = option, batch, arguments.budget
        made = model(arguments).to(device, option.dtype)
        if option.checkpointing:
            made.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        self.policy = CausalLM(made, nano_tokenizer(NanoConfig()), **option.policy)
        self.optimizer = make_optimizer(self.policy.module.parameters(), 1e-6, (0.9, 0.999), 0.0, option.optimizer)
        self.seconds: list[float] = []
        self.most = 0
        with torch.no_grad():
            part = self.policy.micro_batches(batch, self.budget)[0]
            self.logprobs = self.policy.forward(batch.rows(part)).logprobs.float().cpu()
        self.activations = saved_bytes(lambda: self.policy.forward(batch.rows(part)))

    def step(self) -> float:
        cuda = self.policy.device.type == "cuda"
        if cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        update(self.policy, SFT(), self.batch, self.optimizer, token_budget=self.budget)
        if cuda:
            torch.cuda.synchronize()
            self.most = torch.cuda.max_memory_allocated()
        return time.perf_counter() - start

    def bytes_per_weight(self) -> float:
        """What the optimiser's state takes."""
        states = self.optimizer.state_dict()["state"].values()
        kept = sum(v.numel() * v.element_size() for s in states for v in s.values() if isinstance(v, torch.Tensor))
        return kept / sum(p.numel() for p in self.policy.module.parameters())


def saved_bytes(forward: Callable[[], Any]) -> int:
    """Bytes that a forward pass saves for the backward pass, each storage counted once, weights among them.

    The block of logits that a batch keeps if it needs only one is not seen by torch's hooks.
    """
    saved: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward()
    return sum(saved.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"hidden": 192, "layers": 4, "heads": 6, "prompts": 4, "group": 8}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in {"prompt": 32, "response": 32, "vocabulary": 4096, "budget": 8192, "rounds": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--only", nargs="+", help="rows beside the first, by name")
    arguments = parser.parse_args()
    keep_freed_memory()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batch, rows = work(arguments), list[Row]()
    for option in OPTIONS:
        if option is not OPTIONS[0] and arguments.only and option.name not in arguments.only:
            continue
        try:
            rows.append(Row(option, arguments, batch, device))
        except UsageError as error:
            print(f"{option.name}: left out, {error}")
    for turn in range(arguments.rounds + 2):
        for row in rows:
            seconds = row.step()
            if turn >= 2:
                row.seconds.append(seconds)
    size = sum(p.numel() for p in rows[0].policy.module.parameters())
    where = torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print(
        f"{size / 1e6:.1f} M weights, {len(batch)} responses, {int(batch.lengths.sum())} tokens to learn from, "
        f"{where}, torch {torch.__version__}"
    )
    names = ("seconds", "ratio", "state B/weight", "saved MB", "most MB", "off by")
    print(f"{'':16}" + "".join(f" {name:>14}" for name in names))
    for row in rows:
        ratio = statistics.median(a / b for a, b in zip(rows[0].seconds, row.seconds, strict=True))
        off = float((row.logprobs - rows[0].logprobs).abs().mean())
        print(
            f"{row.option.name:16} {statistics.median(row.seconds):14.3f} {ratio:14.2f} {row.bytes_per_weight():14.2f} "
            f"{row.activations / 1e6:14.1f} {row.most / 1e6:14.0f} {off:14.1g}"
        )


if __name__ == "__main__":
    main()
