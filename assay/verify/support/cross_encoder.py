"""How well a passage supports a claim, by a model that reads both together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.errors import UsageError
from assay.ops.latent import Latent, latent_positive_loss
from assay.verify.support.vocabulary import word_tokenizer

SEGMENTS = 2
"""Kinds of tokens that pretrained encoders tell apart: the claim's and the passage's."""


@dataclass(frozen=True, slots=True)
class Cited:
    """A claim, passages of the document that it cites, and passages of others: what the encoder learns from."""

    claim: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pass:
    """One time through the examples: the mean loss, and the share of claims whose best passage is a positive."""

    loss: float
    first: float


class CrossEncoder:
    """s(claim, passage), a transformers sequence classifier with one output that reads ``[claim] [passage]``.

    The end of a long claim is read, where the citation stands, and the beginning of a long passage. A model whose
    configuration tells four token types apart (:meth:`fresh` makes such) is told besides which words of either stand in
    the other, so that a small one need not learn to compare.

    Args:
        source: folder or hub id of a classifier with one output, or of any encoder, whose output layer then is new.
        claim_words: of a claim that are read, its last.
        token_budget: tokens of a pass.
        device: as torch writes it; the GPU, where there is one, if left out.

    Raises:
        UsageError: no such model, more than one output, or no tokenizer that tells where tokens stand.
    """

    def __init__(self, source: str | Path, claim_words: int = 100, token_budget: int = 8192, device: str | None = None):
        from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

        try:
            config = AutoConfig.from_pretrained(source)
            trained = any("SequenceClassification" in name for name in config.architectures or ())
            if not trained:
                config.num_labels = 1
            tokenizer = AutoTokenizer.from_pretrained(source)
            model = AutoModelForSequenceClassification.from_pretrained(source, config=config, dtype=torch.float32)
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise UsageError(f"no cross-encoder can be read from {str(source)!r}: {reason}") from None
        self._take(model, tokenizer, claim_words, token_budget, device)

    @classmethod
    def fresh(
        cls,
        texts: Sequence[str],
        seed: int = 0,
        hidden: int = 64,
        layers: int = 2,
        heads: int = 4,
        max_length: int = 256,
        vocabulary: int = 20_000,
        claim_words: int = 100,
        token_budget: int = 8192,
        device: str | None = None,
    ) -> CrossEncoder:
        """Return a small BERT that knows nothing, with a vocabulary of the words of ``texts``.

        Args:
            texts: claims and passages.
            seed: of the weights.
            hidden, layers, heads, max_length, vocabulary: of the model.
            claim_words, token_budget, device: see the class.

        Raises:
            UsageError: no texts.
        """
        from transformers import BertConfig, BertForSequenceClassification

        tokenizer = word_tokenizer(texts, vocabulary, max_length)
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=4 * hidden,
            max_position_embeddings=max_length,
            type_vocab_size=2 * SEGMENTS,
            pad_token_id=0,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        config.num_labels = 1
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = BertForSequenceClassification(config)
        made = cls.__new__(cls)
        made._take(model, tokenizer, claim_words, token_budget, device)
        return made

    def _take(self, model: Any, tokenizer: Any, claim_words: int, token_budget: int, device: str | None) -> None:
        if model.config.num_labels != 1:
            raise UsageError(f"the cross-encoder has {model.config.num_labels} outputs; it scores with one")
        if not tokenizer.is_fast or claim_words < 1 or token_budget < 1:
            raise UsageError("a cross-encoder needs a fast tokenizer, and claim_words and token_budget of 1 or more")
        self.model, self.tokenizer = model, tokenizer
        self.claim_words, self.token_budget = claim_words, token_budget
        self.model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        longest = getattr(model.config, "max_position_embeddings", 512)
        self.max_length = min(longest, tokenizer.model_max_length)
        self.matches = getattr(model.config, "type_vocab_size", 0) == 2 * SEGMENTS

    def save(self, folder: str | Path) -> None:
        """Write what the constructor reads."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    @torch.no_grad()
    def scores(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return s of each claim and passage, ``(N,)``."""
        self.model.eval()
        rows = [self._read(claim, passage) for claim, passage in pairs]
        out = np.zeros(len(rows))
        order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))
        for part in _parts(order, [len(ids) for ids, _ in rows], self.token_budget):
            out[part] = self._forward([rows[i] for i in part]).cpu().numpy()
        return out

    def fit(
        self,
        examples: Sequence[Cited],
        rng: np.random.Generator,
        how: Latent = "soft_em",
        epochs: int = 3,
        lr: float = 3e-5,
        batch: int = 16,
        sharpness: tuple[float, float] = (1.0, 1.0),
        sharpened: int = 0,
    ) -> list[Pass]:
        """Learn to score a passage that bears a claim above those of other documents; return what each epoch came to.

        L = mean over claims of :func:`~assay.ops.latent.latent_positive_loss`, by AdamW.

        Args:
            examples: those without a positive or a negative are left out.
            rng: orders the examples, and draws the positives of ``how = "random"``.
            how: which positive counts.
            epochs, lr, batch: of AdamW; claims per step.
            sharpness: of ``soft_em``, at the first step and from step ``sharpened`` on; linear between.
            sharpened: steps.

        Raises:
            UsageError: nothing to learn from.
        """
        rows = [
            ([self._read(e.claim, p) for p in (*e.positives, *e.negatives)], len(e.positives))
            for e in examples
            if e.positives and e.negatives
        ]
        if not rows:
            raise UsageError("the cross-encoder has nothing to learn from: no claim with a cited and another passage")
        self.model.train()
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        step, history = 0, []
        for _ in range(epochs):
            order, total, first = rng.permutation(len(rows)), 0.0, 0
            for at in range(0, len(rows), batch):
                chosen = [int(i) for i in order[at : at + batch]]
                sharp = sharpness[0] + (sharpness[1] - sharpness[0]) * (min(1.0, step / sharpened) if sharpened else 1)
                optimizer.zero_grad(set_to_none=True)
                sizes = [sum(len(ids) for ids, _ in rows[i][0]) for i in chosen]
                for part in _parts(range(len(chosen)), sizes, self.token_budget, padded=False):
                    these = [rows[chosen[k]] for k in part]
                    scored = self._forward([row for passages, _ in these for row in passages])
                    losses = []
                    for s, (_, n) in zip(scored.split([len(p) for p, _ in these]), these, strict=True):
                        positive = torch.arange(len(s), device=s.device) < n
                        losses.append(latent_positive_loss(s, positive, how, sharp, generator))
                        first += int(s.argmax()) < n
                    loss = torch.stack(losses).sum()
                    (loss / len(chosen)).backward()
                    total += loss.item()
                optimizer.step()
                step += 1
            history.append(Pass(total / len(rows), first / len(rows)))
        return history

    def _read(self, claim: str, passage: str) -> tuple[list[int], list[int]]:
        """Return the tokens of a pair and their types."""
        claim = " ".join(claim.split()[-self.claim_words :])
        read = self.tokenizer(
            claim,
            passage,
            truncation="longest_first",
            max_length=self.max_length,
            return_token_type_ids=True,
            return_offsets_mapping=self.matches,
        )
        types = list(read["token_type_ids"])
        if self.matches:
            sides = read.sequence_ids()
            said = [
                None if side is None else (claim, passage)[side][a:b].casefold()
                for side, (a, b) in zip(sides, read["offset_mapping"], strict=True)
            ]
            of = [{word for word, side in zip(said, sides, strict=True) if side == k} for k in (0, 1)]
            types = [
                t + SEGMENTS * (side is not None and word in of[1 - side])
                for t, word, side in zip(types, said, sides, strict=True)
            ]
        return list(read["input_ids"]), types

    def _forward(self, rows: Sequence[tuple[list[int], list[int]]]) -> Float[Tensor, "N"]:
        width, device = max(len(ids) for ids, _ in rows), self.model.device
        pad = self.tokenizer.pad_token_id or 0

        def padded(lists: Iterator[list[int]], fill: int) -> Tensor:
            return torch.tensor([row + [fill] * (width - len(row)) for row in lists], device=device)

        inputs = {"input_ids": padded((ids for ids, _ in rows), pad)}
        inputs["attention_mask"] = padded(([1] * len(ids) for ids, _ in rows), 0)
        if getattr(self.model.config, "type_vocab_size", 0) >= SEGMENTS:
            inputs["token_type_ids"] = padded((types for _, types in rows), 0)
        return self.model(**inputs).logits[:, 0].float()


def _parts(order: Sequence[int], sizes: Sequence[int], budget: int, padded: bool = True) -> list[list[int]]:
    """Return runs of ``order`` of at most ``budget`` tokens, padded to the longest or not; one too long is alone."""
    parts: list[list[int]] = []
    for i in order:
        held = 0 if not parts else len(parts[-1]) * sizes[i] if padded else sum(sizes[k] for k in parts[-1])
        if not parts or held + sizes[i] > budget:
            parts.append([])
        parts[-1].append(i)
    return parts
