"""A rectified flow as a policy: its decisions are where the noisy steps from noise to a sample lead."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from copy import copy, deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops.denoising import noised, step, step_logprob
from assay.policies.base import DRAWING_QUANTITIES, PolicyOutput
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.samples import read
from assay.types import Episode, Prompt, pictures

CONFIG, WEIGHTS = "flow.json", "model.safetensors"
PIXELS = 64
"""Numbers of a sample that count as one token where passes are divided by how much they compute."""


class FlowPolicy:
    """Draws samples by steps from noise to data; each noisy step is a Gaussian decision (:mod:`assay.ops.denoising`).

    A response that it drew has a :class:`~assay.types.Drawing`, and its T decisions are the noisy steps; of one by
    another author, a demonstration, the sample is its text, its one decision is to draw that, and the log-probability
    stands for -mean over dimensions of (v - (x1 - x0))^2 at a level and with noise drawn for it: supervised learning
    is then flow matching. ``batch.signals["noised"]`` ``(N, 1 + D)``, levels and noise, takes the place of these draws.

    Args:
        config: what is drawn, and how.
        module: its ``velocity`` and, where it reads the prompt, ``prompt``.
        device: of the module.
    """

    quantities = DRAWING_QUANTITIES
    engine = "flow"
    """Which engine generates for it."""
    draws = True
    """Whether its decisions, or the last of them, are a drawing's."""
    adapter = None
    context = 4096
    """Longest prompt, in bytes."""

    def __init__(self, config: FlowConfig, module: torch.nn.ModuleDict, device: torch.device | str = "cpu"):
        self.config = config
        self.module: Any = module.to(device)
        # Of demonstrations seen: what is drawn for the next ones follows from it, in a resumed run too.
        self.module.register_buffer("drawn", torch.zeros((), dtype=torch.int64, device=device))
        self.device = torch.device(device)

    @property
    def model(self) -> Any:
        return self.module

    @property
    def size(self) -> int:
        """D, the numbers of a sample."""
        return math.prod(self.config.shape)

    @property
    def width(self) -> int:
        return self.size

    # Text and tokens

    def encode(self, prompt: Prompt) -> np.ndarray:
        """Return a prompt's bytes ``(P,)`` int64; of a chat, those of its messages, a line each.

        Raises:
            UsageError: it has pictures, which a flow does not see.
        """
        if pictures(prompt):
            raise UsageError("a prompt has pictures, which a flow does not see; leave them out")
        text = prompt if isinstance(prompt, str) else "\n".join(message["content"] for message in prompt)
        return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        """Return the one decision to draw the sample that a text is.

        Raises:
            UsageError: it is no sample of the flow's shape.
        """
        self._read(text)
        return np.zeros(1, dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        """Return the steps' numbers: a sample is the text of its episode."""
        return " ".join(str(int(token)) for token in tokens)

    def _read(self, text: str) -> np.ndarray:
        return _sample(text, self.config.shape)

    # Velocities

    def prompts(self, rows: Sequence[np.ndarray]) -> Tensor | None:
        """Return what prompts ``(N,)`` say ``(N, W)``, with the gradient; ``None`` where they are not read."""
        if not self.config.prompt:
            return None
        lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
        tokens = torch.zeros(len(rows), int(lengths.max()) if len(rows) else 0, dtype=torch.int64)
        for i, row in enumerate(rows):
            tokens[i, : len(row)] = torch.from_numpy(np.asarray(row))
        return self.module["prompt"](tokens.to(self.device), lengths.to(self.device))

    def velocity(
        self,
        x: Float[Tensor, "N D"],
        level: Float[Tensor, "N"],
        said: Tensor | None,
        draft: Float[Tensor, "N D"] | None = None,
    ) -> Float[Tensor, "N D"]:
        """Return the (guided) velocity, the same in sampling and in learning.

        Args:
            x, level: states and their noise levels.
            said: what :meth:`prompts` says.
            draft: for a flow that edits; without one it sees zeros.
        """
        if self.config.edits and draft is None:
            draft = torch.zeros_like(x)
        found = self.module["velocity"](x, level, said, draft)
        if self.config.guidance == 1:
            return found
        free = self.module["velocity"](x, level, self.module["prompt"].nothing.expand(len(x), -1), draft)
        return free + self.config.guidance * (found - free)

    def drafts(self, found: Sequence[np.ndarray | None]) -> Float[Tensor, "N D"] | None:
        """Return drafts ``(*shape)`` side by side, zeros for none; ``None`` where the flow sees none."""
        if not self.config.edits:
            return None
        nothing = np.zeros(self.config.shape, dtype=np.float32)
        rows = [nothing if draft is None else draft for draft in found]
        return torch.from_numpy(np.stack(rows)).to(self.device).flatten(1)

    # The policy

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        """See :class:`assay.policies.base.Policy`; log-probabilities are means over a sample's dimensions.

        Quantities are ``step_mean`` ``(N, T, D)`` and ``step_deviation`` ``(N, T)`` of the noisy steps, and
        ``sample@k`` ``(N, D)``: the samples as they come out of the last k steps, taken anew without noise.
        """
        drawings = [row for row, e in enumerate(batch.episodes) if e.drawing is not None]
        shown = [row for row, e in enumerate(batch.episodes) if e.drawing is None and len(e.tokens)]
        shape = batch.tokens.shape
        logprobs = torch.zeros(shape, device=self.device)
        tables = {
            "step_mean": torch.zeros(*shape, self.size, device=self.device),
            "step_deviation": torch.ones(shape, device=self.device),
        }
        said = self.prompts([e.prompt for e in batch.episodes])
        if drawings:
            # Decisions of all rows side by side, one pass for all.
            rows = torch.tensor([r for r in drawings for _ in batch.episodes[r].tokens], dtype=torch.int64)
            at = torch.cat([torch.arange(len(batch.episodes[r].tokens)) for r in drawings])
            mean, deviation, values = self._decided([batch.episodes[r] for r in drawings], said, rows, temperature)
            place = rows.to(self.device), at.to(self.device)
            logprobs = logprobs.index_put(place, values)
            tables["step_mean"] = tables["step_mean"].index_put(place, mean)
            tables["step_deviation"] = tables["step_deviation"].index_put(place, deviation)
        if shown:
            index = torch.tensor(shown, device=self.device)
            values = -self._errors(batch, shown, None if said is None else said[index])
            logprobs = logprobs.index_put((index, torch.zeros_like(index)), values)
        found = {name: tables[name] for name in live if name in tables}
        for name in live:
            if name.startswith("sample"):
                found[name] = self._samples(batch, said, int(name.partition("@")[2] or 1))
        return PolicyOutput(logprobs, found)

    def _decided(
        self, episodes: Sequence[Episode], said: Tensor | None, rows: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean ``(S, D)``, deviation and log-probability ``(S,)`` of every decision of some drawings."""
        drawings = [e.drawing for e in episodes if e.drawing is not None]
        column = lambda parts: torch.from_numpy(np.concatenate(parts)).to(self.device)  # noqa: E731
        x = column([d.states[d.taken] for d in drawings]).flatten(1)
        after = column([d.states[d.taken + 1] for d in drawings]).flatten(1)
        level = column([d.levels[d.taken] for d in drawings])[:, None]
        following = column([d.levels[d.taken + 1] for d in drawings])[:, None]
        first = column([np.full(len(d.taken), d.levels[1], dtype=np.float32) for d in drawings])[:, None]
        noise = column([np.full(len(d.taken), d.noise * temperature, dtype=np.float32) for d in drawings])[:, None]
        drafts = self.drafts([d.draft for d in drawings for _ in d.taken])
        v = self.velocity(x, level[:, 0], None if said is None else said[rows.to(self.device)], drafts)
        kinds = {d.sampler for d in drawings}
        if len(kinds) > 1:
            raise UsageError(
                f"a batch mixes samplers, {' and '.join(sorted(kinds))}; give rollouts of a run the same one"
            )
        sampler = drawings[0].sampler
        mean, deviation = step(x, v, level, following, first, noise, sampler)
        return mean, deviation[:, 0], step_logprob(after, mean, deviation, sampler)

    def _errors(self, batch: Batch, rows: Sequence[int], said: Tensor | None) -> Float[Tensor, "M"]:
        """Return the flow-matching errors of demonstrations, means over dimensions."""
        x0 = torch.from_numpy(np.stack([self._read(batch.episodes[r].text).reshape(-1) for r in rows])).to(self.device)
        given = batch.signals.get("noised")
        if given is not None:
            drawn = given[torch.tensor(rows)].to(x0)
            level, x1 = drawn[:, :1], drawn[:, 1:]
            hidden = None
        else:
            generator = np.random.default_rng([0x5EED, int(self.module.drawn)])
            if torch.is_grad_enabled():
                self.module.drawn += 1
            level = torch.from_numpy(generator.random((len(rows), 1), dtype=np.float32)).to(x0)
            x1 = torch.from_numpy(generator.standard_normal(x0.shape, dtype=np.float32)).to(x0)
            hidden = torch.from_numpy(generator.random(len(rows)) < self.config.dropout).to(self.device)
        if said is not None and hidden is not None:
            said = torch.where(hidden[:, None], self.module["prompt"].nothing, said)
        shown = [batch.tasks[row].meta.get("draft") for row in rows]
        drafts = self.drafts([None if draft is None else self._read(str(draft)) for draft in shown])
        v = self.module["velocity"](noised(x0, x1, level), level[:, 0], said, drafts)
        return ((v - (x1 - x0)) ** 2).mean(-1)

    def _samples(self, batch: Batch, said: Tensor | None, k: int) -> Float[Tensor, "N D"]:
        """Return the samples of a batch of drawings as the last ``k`` steps make them without noise."""
        drawings = [e.drawing for e in batch.episodes]
        if any(d is None for d in drawings):
            raise UsageError("a sample that is learned through must be drawn by the policy, not shown to it")
        known = [d for d in drawings if d is not None]
        take = lambda i: torch.from_numpy(np.stack([d.levels[i] for d in known])).to(self.device)[:, None]  # noqa: E731
        last, drafts = len(known[0].levels) - 1, self.drafts([d.draft for d in known])
        x = torch.from_numpy(np.stack([d.states[-1 - k] for d in known])).to(self.device).flatten(1)
        for i in range(last - k, last):
            x = x + self.velocity(x, take(i)[:, 0], said, drafts) * (take(i + 1) - take(i))
        return x

    def micro_batches(self, batch: Batch, budget: int) -> list[Int[Tensor, "M"]]:
        """See :class:`assay.policies.base.Policy`: rows in order; a step over D numbers counts as D / 64 tokens."""
        parts: list[list[int]] = []
        size = 0
        for row, episode in enumerate(batch.episodes):
            own = max(1, len(episode.tokens)) * max(1, self.size // PIXELS)
            if not parts or size + own > budget:
                parts.append([])
                size = 0
            parts[-1].append(row)
            size += own
        return [torch.tensor(part, dtype=torch.int64) for part in parts]

    # What flows have not: tokens other than those on record

    def continuations(self, *_: Any, **__: Any) -> Tensor:
        """A flow has no continuations. Raises UsageError."""
        raise _no_tokens()

    continuation_ranks = candidates = likeliest = continuations

    # Copies, and weights on disk

    def twin(self) -> FlowPolicy:
        """Return a trainable copy with weights of its own."""
        twin = copy(self)
        twin.module = deepcopy(self.module)
        return twin

    def frozen(self, folder: Path) -> FlowPolicy:
        """Return a copy with the weights in ``folder``, without gradients."""
        frozen = self.twin()
        frozen.load_weights(folder)
        frozen.module.requires_grad_(False).eval()
        return frozen

    def save(self, folder: Path) -> None:
        """Write ``flow.json`` and weights to a folder that a recipe's ``model.source`` can name."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / CONFIG).write_text(self.config.model_dump_json(indent=1), encoding="utf-8")
        state = {name: tensor.detach().contiguous() for name, tensor in self.module.state_dict().items()}
        save_file(state, Path(folder) / WEIGHTS, {"format": "pt"})

    def load_weights(self, folder: Path) -> None:
        """Take the weights that :meth:`save` wrote.

        Raises:
            UsageError: the folder holds the weights of another model.
        """
        state, own = load_file(Path(folder) / WEIGHTS), self.module.state_dict()
        odd = (own.keys() ^ state.keys()) | {k for k in own.keys() & state.keys() if own[k].shape != state[k].shape}
        if odd:
            raise UsageError(f"{folder} does not hold this flow's weights: {min(odd)} does not match")
        self.module.load_state_dict(state)


@lru_cache(maxsize=4096)
def _sample(text: str, shape: tuple[int, ...]) -> np.ndarray:
    return read(text, shape)


def _no_tokens() -> UsageError:
    return UsageError("a flow draws samples and has no tokens to go on with; the method wants a language model")
