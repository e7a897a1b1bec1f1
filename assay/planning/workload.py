"""What a step has to do, read from a recipe: responses, tokens, passes, precisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from assay.config import RunConfig
from assay.errors import UsageError
from assay.planning.lengths import Lengths
from assay.policies.loading import LoraConfig

SIZES = {"float32": 4, "bfloat16": 2, "float16": 2}
STATES = {("adamw", 4): (4, 8), ("adamw", 2): (4, 12), ("adamw8bit", 4): (4, 2), ("adamw8bit", 2): (2, 2)}
"""Bytes of a gradient and of the optimiser's state, per trained parameter, by optimiser and bytes of a weight."""
SAMPLED = 64
"""Tasks whose prompts are measured."""

EngineKind = Literal["hf", "vllm"]
Weights = Literal["store", "broadcast"]


@dataclass(frozen=True, slots=True)
class Workload:
    """One step's work.

    Attributes:
        prompts, group: prompts per step, and responses to each.
        prompt_tokens: of a prompt, on average.
        size: bytes of a weight, and of a number that is kept for the backward pass.
        optimizer: ``adamw`` or ``adamw8bit``.
        lora: adapters that alone are trained.
        quantised: the weights of linear layers are kept in four bits.
        checkpointing: a layer's inner values are computed again in the backward pass.
        readers: models that read the step's tokens once more, before the update; ``reference`` has weights of its own
            unless there are adapters, which it is without.
        engine: ``hf`` decodes at most ``max_rows`` together and waits for the last, ``vllm`` fills places up at once.
        verify_seconds: seconds of one verdict.
        verify_workers: processes that judge.
        steps: of the run.
        weights: how engines on other devices get new ones, see :class:`assay.config.ScaleConfig`.
    """

    prompts: int
    group: int
    prompt_tokens: float
    lengths: Lengths
    token_budget: int = 8192
    epochs: int = 1
    mini_batches: int = 1
    size: int = 2
    optimizer: str = "adamw"
    lora: LoraConfig | None = None
    quantised: bool = False
    checkpointing: bool = False
    readers: tuple[str, ...] = ()
    engine: EngineKind = "vllm"
    max_rows: int = 1024
    verify_seconds: float = 0.002
    verify_workers: int = 1
    steps: int = 100
    weights: Weights = "store"

    def stored(self, trainers: int) -> tuple[int, int, int]:
        """Return bytes of a stored weight, of a gradient, and of the optimiser's state, per trained parameter.

        Weights that are sharded are kept in float32, and gathered in the precision they are computed in.
        """
        size = self.size if trainers == 1 else 4
        return size, *STATES[self.optimizer, size]

    @property
    def responses(self) -> int:
        return self.prompts * self.group

    @property
    def response_tokens(self) -> float:
        """Sampled in a step."""
        return self.responses * self.lengths.mean

    @property
    def longest(self) -> float:
        """Tokens of the longest sequence."""
        return self.prompt_tokens + self.lengths.longest

    @property
    def copies(self) -> float:
        """How often a prompt stands in the packed batch: once in each micro-batch that its group is spread over."""
        room = max(self.token_budget - self.prompt_tokens, self.lengths.mean)
        return min(float(self.group), max(1.0, self.group * self.lengths.mean / room))

    @property
    def packed_tokens(self) -> float:
        """Of all micro-batches: prompts as often as they stand there, and responses."""
        return self.prompts * self.copies * self.prompt_tokens + self.response_tokens

    @property
    def seen_tokens(self) -> float:
        """Sum over the step's sequences of half their squared length: how many earlier tokens their tokens see."""
        p, m = self.prompt_tokens, self.lengths.mean
        return self.responses * (p * p + 2 * p * m + self.lengths.square()) / 2


def adapter_parameters(shapes: Any, lora: LoraConfig) -> int:
    """Return how many parameters the adapters of all or some of a layer's projections have, r (in + out) of each."""
    d, q, kv = shapes.hidden, shapes.heads * shapes.head_dim, shapes.kv_heads * shapes.head_dim
    m, dense = shapes.intermediate, shapes.layers - shapes.expert_layers
    sums = {
        "q_proj": shapes.layers * (d + q),
        "k_proj": shapes.layers * (d + kv),
        "v_proj": shapes.layers * (d + kv),
        "o_proj": shapes.layers * (d + q),
        "gate_proj": dense * (d + m),
        "up_proj": dense * (d + m),
        "down_proj": dense * (d + m),
    }
    wanted = sums if lora.targets == "all-linear" else [lora.targets] if isinstance(lora.targets, str) else lora.targets
    return lora.rank * sum(sums.get(name, 0) for name in wanted)


def readers_of(config: RunConfig) -> tuple[tuple[str, ...], list[str]]:
    """Return the models that read the step's tokens for the method's signals, and notes on what is not counted."""
    from assay.learning.signals import source, wants_reference
    from assay.method import make_method

    parts = config.method.model_dump(exclude={"name"})
    method = make_method(config.method.name, **parts)
    models = {source(n)[0] for n in method.needs if isinstance(n, str)}
    own = [n.name for n in method.needs if not isinstance(n, str)]
    if own and wants_reference(method.needs):
        models.add("reference")
    notes = []
    if own:
        notes.append(f"signals of the method's own ({', '.join(sorted(own))}) are not counted")
    if method.learners:
        notes.append("the method's learners (a critic, a reward model) are not counted")
    return tuple(sorted(models)), notes


def mean_prompt(config: RunConfig) -> float:
    """Return the mean number of tokens of the recipe's first prompts, with the tokenizer that the model has here.

    Raises:
        UsageError: the tasks or the tokenizer are not here; the message says to give the number.
    """
    from assay.policies.context import prompt_counter
    from assay.registry import build

    try:
        source = build("tasks", config.tasks.source)
        count = SAMPLED if source.size is None else min(SAMPLED, source.size)
        tokens = prompt_counter(config.model)
        lengths = [tokens(source[i].prompt) for i in range(count)]
    except UsageError as error:
        raise UsageError(f"the recipe's prompts cannot be measured, give --prompt-tokens: {error}") from None
    if not lengths:
        raise UsageError("the recipe's task source is empty; give --prompt-tokens")
    return sum(lengths) / len(lengths)
