"""A process reward model: a token classifier that reads a solution step by step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from assay.errors import UsageError
from assay.types import Task

if TYPE_CHECKING:
    import numpy as np

IGNORED = -100


class ClassifierPRM:
    """Scores step k by r_k = P(good) - P(bad) at the separator after it, having read the question and steps 0 to k.

    It reads the prompt (in the tokenizer's chat template, where it has one), then every step, stripped, followed by the
    separator. The model is a transformers token classifier of two classes, bad and good, as trained by :meth:`fit` or
    by TRL's ``PRMTrainer``. It is causal or should be, so that a step's score does not depend on later steps.

    Source: PURE (arXiv 2504.15275), its process reward model; format of TRL's ``PRMTrainer``.

    Args:
        source: folder or hub id.
        separator: written after each step.
        token_budget: tokens of a pass.
        device: as torch writes it; the GPU, where there is one, if left out.

    Raises:
        UsageError: no such model, or not two classes.
    """

    def __init__(self, source: str | Path, separator: str = "\n", token_budget: int = 8192, device: str | None = None):
        from transformers import AutoModelForTokenClassification, AutoTokenizer

        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(source)
            self.model: Any = AutoModelForTokenClassification.from_pretrained(source, dtype=torch.float32)
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise UsageError(f"no classifier of steps can be read from {str(source)!r}: {reason}") from None
        if self.model.config.num_labels != 2:
            raise UsageError(f"{source} tells {self.model.config.num_labels} classes apart; a scorer of steps has 2")
        self.model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.separator = self.tokenizer(separator, add_special_tokens=False)["input_ids"]
        self.token_budget = token_budget

    @torch.no_grad()
    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float]]:
        """Return r_k of each step of each response, in [-1, 1]."""
        self.model.eval()
        rows = [self._read(task.prompt, steps) for task, steps in responses]
        out: list[list[float]] = [[] for _ in rows]
        for part in self._parts([ids for ids, _ in rows]):
            p = self._logits([rows[i][0] for i in part]).softmax(-1)
            for row, i in zip(p, part, strict=True):
                out[i] = [float(row[t, 1] - row[t, 0]) for t in rows[i][1]]
        return out

    def fit(
        self,
        examples: Sequence[tuple[Any, list[str], list[bool]]],
        rng: np.random.Generator,
        stages: Sequence[tuple[bool, float, int]] = ((True, 1e-4, 3), (False, 1e-6, 1)),
        batch: int = 64,
    ) -> list[float]:
        """Train on prompts, steps and whether each step is good; return the mean loss of each epoch.

        L = mean over labelled steps of the cross entropy at the step's separator. Each stage is (train the head alone,
        learning rate of AdamW, epochs); the default is the paper's.

        Args:
            examples: (prompt, steps, labels); labels may be fewer than the steps, the rest is read but not learned.
            rng: orders the examples.
            stages: see above.
            batch: examples per optimiser step.

        Raises:
            UsageError: no example has a label.
        """
        rows = [(*self._read(prompt, steps), labels) for prompt, steps, labels in examples]
        if not any(labels for *_, labels in rows):
            raise UsageError("the classifier of steps has nothing to learn from: no example labels a step")
        self.model.train()
        trunk = [p for name, p in self.model.named_parameters() if not name.startswith(("score", "classifier"))]
        history = []
        for head_only, lr, epochs in stages:
            for parameter in trunk:
                parameter.requires_grad_(not head_only)
            optimizer = torch.optim.AdamW([p for p in self.model.parameters() if p.requires_grad], lr=lr)
            for _ in range(epochs):
                losses, order = [], rng.permutation(len(rows))
                for start in range(0, len(rows), batch):
                    losses.append(self._step([rows[i] for i in order[start : start + batch]], optimizer))
                history.append(sum(losses) / len(losses))
        for parameter in trunk:
            parameter.requires_grad_(True)
        return history

    def save(self, folder: Path) -> None:
        """Write what the constructor reads."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def _step(self, rows: Sequence[tuple[list[int], list[int], list[bool]]], optimizer: torch.optim.Optimizer) -> float:
        """One optimiser step, by as many passes as the token budget asks for."""
        count = max(sum(min(len(labels), len(ends)) for _, ends, labels in rows), 1)
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for part in self._parts([ids for ids, *_ in rows]):
            logits = self._logits([rows[i][0] for i in part])
            targets = torch.full(logits.shape[:2], IGNORED, device=logits.device)
            for row, i in zip(targets, part, strict=True):
                for t, label in zip(rows[i][1], rows[i][2], strict=False):
                    row[t] = int(label)
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum"
            )
            (loss / count).backward()
            total += loss.item()
        optimizer.step()
        return total / count

    def _read(self, prompt: Any, steps: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the tokens to read, and the place of the last separator token after each step."""
        if getattr(self.tokenizer, "chat_template", None):
            messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
            text = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            ids = list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        else:
            text = prompt if isinstance(prompt, str) else "\n".join(m["content"] for m in prompt)
            ids = list(self.tokenizer(text)["input_ids"])
        ends = []
        for step in steps:
            ids += self.tokenizer(step.strip(), add_special_tokens=False)["input_ids"] + self.separator
            ends.append(len(ids) - 1)
        return ids, ends

    def _logits(self, rows: Sequence[list[int]]) -> Tensor:
        """Logits ``(N, T, 2)`` of right-padded rows."""
        width = max(map(len, rows))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows], device=self.model.device)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=self.model.device)
        return self.model(input_ids=ids, attention_mask=mask).logits.float()

    def _parts(self, rows: Sequence[list[int]]) -> list[list[int]]:
        """Rows of like length together, padded to no more than the token budget unless one alone is longer."""
        parts: list[list[int]] = []
        for i in sorted((i for i, row in enumerate(rows) if row), key=lambda i: len(rows[i])):
            if not parts or (len(parts[-1]) + 1) * len(rows[i]) > self.token_budget:
                parts.append([])
            parts[-1].append(i)
        return parts
