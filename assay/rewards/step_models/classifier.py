"""A process reward model: a token classifier that reads a solution step by step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from assay.errors import UsageError
from assay.rewards.step_models.examples import StepExample
from assay.rewards.step_models.training import Logits, StepTraining
from assay.types import Task

if TYPE_CHECKING:
    import numpy as np


class ClassifierPRM:
    """Scores step k by r_k = P(good) - P(bad) at the separator after it, having read the question and steps 0 to k.

    It reads the prompt (in the tokenizer's chat template, where it has one), then every step, stripped, followed by the
    separator. The model is a transformers token classifier of two classes, bad and good, as trained by :meth:`fit`, by
    ``assay train-prm --kind whole`` or by TRL's ``PRMTrainer``. It is causal or should be, so that a step's score does
    not depend on later steps.

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
        for part in packed([len(ids) for ids, _ in rows], self.token_budget):
            p = self._pass([rows[i][0] for i in part]).logits.float().softmax(-1)
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
        learning rate of AdamW, epochs); the default is the paper's. Soft labels, pairs and other losses:
        :class:`~assay.rewards.step_models.training.StepTraining`, which this is.

        Args:
            examples: (prompt, steps, labels); labels may be fewer than the steps, the rest is read but not learned.
            rng: orders the examples.
            stages: see above.
            batch: examples per optimiser step.

        Raises:
            UsageError: no example has a label.
        """
        rows = [
            StepExample(Task("", prompt), tuple(steps), tuple(map(float, labels))) for prompt, steps, labels in examples
        ]
        history: list[float] = []
        for head_only, lr, epochs in stages:
            training = StepTraining("hard", epochs=epochs, batch=batch, lr=lr, trunk_lr=0.0 if head_only else lr)
            history += training.fit(self, rows, rng)
        return history

    def read(self, rows: Sequence[StepExample]) -> list[tuple[Tensor, Tensor]]:
        """See :class:`~assay.rewards.step_models.training.StepModel`: z is the gap of both classes' logits."""
        found: list[tuple[Tensor, Tensor]] = [(torch.zeros(0), torch.zeros(0, self.width))] * len(rows)
        texts = [self._read(row.task.prompt, row.steps) for row in rows]
        for part in packed([len(ids) for ids, _ in texts], self.token_budget):
            out = self._pass([texts[i][0] for i in part], states=True)
            z = out.logits.float()
            for j, i in enumerate(part):
                ends = texts[i][1]
                found[i] = z[j, ends, 1] - z[j, ends, 0], out.hidden_states[-1][j, ends].float()
        return found

    def train(self, learning: bool) -> None:
        self.model.train(learning)

    def views(self, rows: Sequence[StepExample]) -> list[Logits]:
        return [[z for z, _ in self.read(rows)]]

    def groups(self, lr: float, trunk_lr: float) -> list[dict[str, object]]:
        head: list[torch.nn.Parameter] = []
        trunk: list[torch.nn.Parameter] = []
        for name, parameter in self.model.named_parameters():
            new = name.startswith(("score", "classifier"))
            parameter.requires_grad_(new or trunk_lr > 0)
            (head if new else trunk).append(parameter)
        return [{"params": head, "lr": lr}, *([{"params": trunk, "lr": trunk_lr}] if trunk_lr else [])]

    def parts(self, rows: Sequence[StepExample]) -> list[list[int]]:
        return packed([len(self._read(row.task.prompt, row.steps)[0]) for row in rows], self.token_budget)

    @property
    def width(self) -> int:
        """Length of a hidden state."""
        return int(self.model.config.hidden_size)

    def save(self, folder: Path) -> None:
        """Write what the constructor reads."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

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

    def _pass(self, rows: Sequence[list[int]], states: bool = False) -> Any:
        """The model's reading of right-padded rows: logits ``(N, T, 2)``, and hidden states if wanted."""
        width = max(map(len, rows))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows], device=self.model.device)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=self.model.device)
        return self.model(input_ids=ids, attention_mask=mask, output_hidden_states=states)


def packed(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Divide rows into parts of like length, padded to no more than ``budget`` tokens unless one alone is longer.

    Args:
        lengths: tokens of each row; empty ones are left out.
        budget: tokens of a part.
    """
    parts: list[list[int]] = []
    for i in sorted((i for i, n in enumerate(lengths) if n), key=lambda i: lengths[i]):
        if not parts or (len(parts[-1]) + 1) * lengths[i] > budget:
            parts.append([])
        parts[-1].append(i)
    return parts
