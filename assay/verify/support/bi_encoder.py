"""An encoder of claims and documents apart, trained so that a claim lies near the document that it cites."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import UsageError
from assay.verify.support.vocabulary import word_tokenizer

NOTE = "bi_encoder.json"
"""Tells the folder of a bi-encoder from others; holds its scale."""
SCALE = 20.0


@dataclass(frozen=True, slots=True)
class Sought:
    """A claim, the document that it cites, and others that are like it: what the encoder learns from."""

    claim: str
    cited: str
    others: tuple[str, ...] = ()


def contrastive_loss(
    claims: Float[Tensor, "N d"], documents: Float[Tensor, "M d"], cited: Sequence[int], same: Bool[Tensor, "N M"]
) -> Float[Tensor, ""]:
    """Return -1/N sum_i log e^{q_i d_c(i)} / (e^{q_i d_c(i)} + sum of e^{q_i d_j} over documents j that are others).

    Args:
        claims, documents: embeddings, scaled.
        cited: c(i), by claim.
        same: documents with the text that a claim cites, which are no others.

    Source: Karpukhin et al., "Dense Passage Retrieval" (arXiv 2004.04906), equation 2, with in-batch negatives.
    """
    scores = claims @ documents.T
    own = torch.zeros_like(same)
    own[torch.arange(len(cited)), torch.tensor(cited)] = True
    scores = scores.masked_fill(same & ~own, -torch.inf)
    return torch.nn.functional.cross_entropy(scores, torch.tensor(cited, device=scores.device))


class BiEncoder:
    """Texts as vectors of length 1, the first token's last state of one transformers encoder for claims and documents.

    Texts are read from their beginning, as far as the model reads. It is called as whatever embeds texts is
    (:data:`assay.signals.embeddings.Embed`).

    Args:
        source: folder that :meth:`save` wrote, or a folder or hub id of any encoder.
        token_budget: tokens of a pass.

    Raises:
        UsageError: no such model.
    """

    def __init__(self, source: str | Path, token_budget: int = 8192):
        from transformers import AutoModel, AutoTokenizer

        try:
            model = AutoModel.from_pretrained(source, dtype=torch.float32)
            tokenizer = AutoTokenizer.from_pretrained(source)
        except (OSError, ValueError) as error:
            raise UsageError(f"no encoder can be read from {str(source)!r}: {str(error).splitlines()[0]}") from None
        self._take(model, tokenizer, token_budget)

    @classmethod
    def fresh(
        cls,
        texts: Sequence[str],
        seed: int = 0,
        hidden: int = 64,
        layers: int = 1,
        heads: int = 4,
        max_length: int = 256,
        token_budget: int = 8192,
    ) -> BiEncoder:
        """Return a small BERT that knows nothing, with a vocabulary of the words of ``texts``.

        Raises:
            UsageError: no texts.
        """
        from transformers import BertConfig, BertModel

        tokenizer = word_tokenizer(texts, max_length=max_length)
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=4 * hidden,
            max_position_embeddings=max_length,
            pad_token_id=0,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = BertModel(config, add_pooling_layer=False)
        made = cls.__new__(cls)
        made._take(model, tokenizer, token_budget)
        return made

    def _take(self, model: Any, tokenizer: Any, token_budget: int) -> None:
        self.model, self.tokenizer, self.token_budget = model, tokenizer, token_budget
        self.model.to("cuda" if torch.cuda.is_available() else "cpu")
        self.max_length = min(getattr(model.config, "max_position_embeddings", 512), tokenizer.model_max_length)

    def save(self, folder: str | Path) -> None:
        """Write what the constructor reads."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        (Path(folder) / NOTE).write_text(json.dumps({"scale": SCALE}) + "\n", encoding="utf-8")

    @torch.no_grad()
    def __call__(self, texts: list[str]) -> np.ndarray:
        """Return the vectors ``(n, d)`` of texts."""
        self.model.eval()
        out = np.zeros((len(texts), self.model.config.hidden_size))
        rows = [self._read(text) for text in texts]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        step = 0
        while step < len(order):
            # As many as fit, padded to the longest, which of a sorted run is the last.
            size = 1
            while step + size < len(order) and (size + 1) * len(rows[order[step + size]]) <= self.token_budget:
                size += 1
            part = order[step : step + size]
            out[part] = self._forward([rows[i] for i in part]).cpu().numpy()
            step += size
        return out

    def fit(
        self, examples: Sequence[Sought], rng: np.random.Generator, epochs: int = 3, lr: float = 3e-5, batch: int = 32
    ) -> list[float]:
        """Learn by AdamW to find what is cited among what the batch cites and finds; return each epoch's mean loss.

        The loss is :func:`contrastive_loss` of cosines times :data:`SCALE`.

        Args:
            examples: claims.
            rng: orders them.
            epochs, lr, batch: of AdamW; claims per step, whose documents are one another's negatives.

        Raises:
            UsageError: fewer than two claims, which have nothing to be told from.
        """
        if len({e.cited for e in examples}) < 2:
            raise UsageError("a retriever learns from claims that cite two documents or more")
        self.model.train()
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        history = []
        for _ in range(epochs):
            order, total = rng.permutation(len(examples)), 0.0
            for at in range(0, len(order), batch):
                chosen = [examples[int(i)] for i in order[at : at + batch]]
                documents = [*(e.cited for e in chosen), *(text for e in chosen for text in e.others)]
                same = torch.tensor([[text == e.cited for text in documents] for e in chosen])
                claims = self._forward([self._read(e.claim) for e in chosen])
                vectors = self._forward([self._read(text) for text in documents])
                loss = contrastive_loss(SCALE * claims, vectors, range(len(chosen)), same.to(claims.device))
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                total += loss.item() * len(chosen)
            history.append(total / len(examples))
        return history

    def _read(self, text: str) -> list[int]:
        return list(self.tokenizer(text, truncation=True, max_length=self.max_length)["input_ids"])

    def _forward(self, rows: Sequence[list[int]]) -> Float[Tensor, "N d"]:
        width, device = max(map(len, rows)), self.model.device
        pad = self.tokenizer.pad_token_id or 0
        ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows], device=device)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=device)
        states = self.model(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0].float()
        return torch.nn.functional.normalize(states, dim=-1)


def is_bi_encoder(source: str | Path) -> bool:
    """Whether a folder is one that :meth:`BiEncoder.save` wrote."""
    return (Path(source) / NOTE).is_file()
