"""A reward model of people's preferences: a number for a whole response, learned from which of two was preferred."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Prompt

if TYPE_CHECKING:
    import numpy as np


@part("reward", "preference_model")
class PreferenceModel:
    """R_i = r(x, y_i), the score of a Bradley-Terry model: P(y is preferred to y') = sigmoid(r(x, y) - r(x, y')).

    The model is a transformers sequence classifier with one output, as trained by :meth:`fit` or by TRL's
    ``RewardTrainer``; it reads prompt and response (in the tokenizer's chat template, where it has one) and scores at
    the last token. Verdicts are not used (take verifier ``none``), but a sample whose verifier failed has no reward,
    nor has a response that is too long for the model. Scores have no scale of their own: take a credit that divides by
    a deviation, or wrap the part in ``standardised``.

    Source: "Training language models to follow instructions with human feedback" (arXiv 2203.02155), section 3.5.

    Args:
        source: folder or hub id.
        max_length: tokens of prompt and response; what the model's configuration says if left out.
        token_budget: tokens of a pass.
        device: as torch writes it; the GPU, where there is one, if left out.

    Raises:
        UsageError: no such model, or not one output.
    """

    def __init__(
        self,
        source: str | Path,
        max_length: int | None = None,
        token_budget: int = 8192,
        device: str | None = None,
    ):
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(source)
            self.model: Any = AutoModelForSequenceClassification.from_pretrained(source, dtype=torch.float32)
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise UsageError(f"no reward model can be read from {str(source)!r}: {reason}") from None
        if self.model.config.num_labels != 1:
            raise UsageError(f"{source} has {self.model.config.num_labels} outputs; a reward model has one")
        self.model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.max_length = max_length or getattr(self.model.config, "max_position_embeddings", None)
        self.token_budget = token_budget

    def __call__(self, batch: Batch) -> Reward:
        found = self.scores([(t.prompt, e.text) for t, e in zip(batch.tasks, batch.episodes, strict=True)])
        fits = torch.tensor([s is not None for s in found], dtype=torch.bool)
        values = torch.tensor([s or 0.0 for s in found], dtype=batch.rewards.dtype)
        return Reward(values, valid=judged(batch) & fits, terms={"preference_model": values})

    def scores(self, pairs: Sequence[tuple[Prompt, str]]) -> list[float | None]:
        """Return r of each prompt and response; ``None`` for one that is too long."""
        return [None if found is None else found[0] for found in self.read(pairs)]

    @torch.no_grad()
    def read(self, pairs: Sequence[tuple[Prompt, str]]) -> list[tuple[float, Float[Tensor, "D"]] | None]:
        """Return r of each prompt and response, and the state of the last layer at its last token, which r is read off;
        ``None`` for one that is too long."""
        self.model.eval()
        rows = [self._read(prompt, response) for prompt, response in pairs]
        out: list[tuple[float, Tensor] | None] = [None] * len(rows)
        for chosen in self._parts(rows):
            scores, states = self._pass([rows[i] for i in chosen])
            for i, score, state in zip(chosen, scores.tolist(), states.float().cpu(), strict=True):
                out[i] = score, state
        return out

    def fit(
        self,
        preferences: Sequence[tuple[Prompt, str, str]],
        rng: np.random.Generator,
        lr: float = 1e-5,
        epochs: int = 1,
        batch: int = 64,
        centre: float = 0.0,
    ) -> list[float]:
        """Train on prompts with a preferred and another response; return the mean loss of each epoch.

        L = mean over pairs of -log sigmoid(r - r') + centre (r + r')^2, by AdamW.

        Args:
            preferences: (prompt, preferred, other).
            rng: orders the pairs.
            lr, epochs, batch: of AdamW; pairs per step.
            centre: keeps scores around 0, which the preferences leave open.

        Raises:
            UsageError: no pair whose responses both fit.
        """
        rows = [(self._read(p, good), self._read(p, bad)) for p, good, bad in preferences]
        rows = [pair for pair in rows if all(map(self._fits, pair))]
        if not rows:
            raise UsageError("the reward model has nothing to learn from: no pair of responses that fit it")
        self.model.train()
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        history = []
        for _ in range(epochs):
            order, total = rng.permutation(len(rows)), 0.0
            for start in range(0, len(rows), batch):
                chosen = [rows[int(i)] for i in order[start : start + batch]]
                optimizer.zero_grad(set_to_none=True)
                # Both responses of a pair in the same pass; as many pairs as the budget of tokens allows.
                size = max(1, self.token_budget // (2 * max(len(r) for pair in chosen for r in pair)))
                for at in range(0, len(chosen), size):
                    pairs = chosen[at : at + size]
                    r = self._forward([row for pair in pairs for row in pair]).reshape(-1, 2)
                    loss = -torch.nn.functional.logsigmoid(r[:, 0] - r[:, 1]) + centre * r.sum(-1).square()
                    (loss.sum() / len(chosen)).backward()
                    total += loss.sum().item()
                optimizer.step()
            history.append(total / len(rows))
        return history

    def save(self, folder: Path) -> None:
        """Write what the constructor reads."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def _read(self, prompt: Prompt, response: str) -> list[int]:
        if getattr(self.tokenizer, "chat_template", None):
            messages: list[Any] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
            text = self.tokenizer.apply_chat_template(
                [*messages, {"role": "assistant", "content": response}], tokenize=False
            )
            return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        text = prompt if isinstance(prompt, str) else "\n".join(m["content"] for m in prompt)
        ids = list(self.tokenizer(text + response)["input_ids"])
        end = self.tokenizer.eos_token_id
        return ids if end is None or ids[-1:] == [end] else [*ids, end]

    def _fits(self, row: Sequence[int]) -> bool:
        return len(row) > 0 and (self.max_length is None or len(row) <= self.max_length)

    def _forward(self, rows: Sequence[list[int]]) -> Float[Tensor, "N"]:
        return self._pass(rows)[0]

    def _pass(self, rows: Sequence[list[int]]) -> tuple[Float[Tensor, "N"], Float[Tensor, "N D"]]:
        """Scores of right-padded rows, and the states they are read off."""
        width, device = max(map(len, rows)), self.model.device
        # The classifier looks for the last token that is no padding, so padding is what no row ends with.
        ends = {row[-1] for row in rows}
        pad = next(i for i in range(self.model.config.vocab_size) if i not in ends)
        self.model.config.pad_token_id = pad
        ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows], device=device)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=device)
        found = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        return found.logits[:, 0].float(), found.hidden_states[-1][torch.arange(len(rows)), mask.sum(-1) - 1]

    def _parts(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Rows that fit, those of like length together, padded to no more than the budget where one alone is not."""
        parts: list[list[int]] = []
        for i in sorted((i for i, row in enumerate(rows) if self._fits(row)), key=lambda i: len(rows[i])):
            if not parts or (len(parts[-1]) + 1) * len(rows[i]) > self.token_budget:
                parts.append([])
            parts[-1].append(i)
        return parts
