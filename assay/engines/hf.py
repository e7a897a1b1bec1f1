"""The transformers engine: our own decode loop over a :class:`~assay.policies.causal_lm.CausalLM`.

A prompt is computed once however many responses it gets; all rows write the same column of one key-value block, which
prompts enter left-padded; a finished row leaves at once; log-probabilities are recorded while sampling, so that no
second pass is needed to know the behaviour policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from assay.engines.base import Request, Sampling
from assay.engines.sampling import draw, uniforms
from assay.errors import RunError, UsageError
from assay.policies.attention import Decode, KeyValueCache, Prefill
from assay.policies.causal_lm import CausalLM, distinct
from assay.policies.logprobs import CHUNK_BYTES
from assay.registry import part
from assay.types import Episode, Prompt, Stop


@dataclass(frozen=True, slots=True)
class _Row:
    """One response to make: which request it answers, as which sample, after which prompt, at most how many tokens."""

    request: int
    sample: int
    prompt: np.ndarray
    limit: int


class HFEngine:
    """Generates with the very weights that are trained; nothing is copied after an update.

    Args:
        policy: the model.
        max_rows: responses decoded together; more wait for the next round.
    """

    def __init__(self, policy: CausalLM, max_rows: int = 1024):
        self.policy = policy
        self.max_rows = max_rows

    def encode(self, prompt: Prompt) -> np.ndarray:
        return self.policy.encode(prompt)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.policy.encode_response(text, end)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return self.policy.decode(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`.

        Raises:
            UsageError: a prompt leaves no room for a response in the model's context.
            RunError: the model gives something else than probabilities.
        """
        rows: dict[Sampling, list[_Row]] = {}
        for i, request in enumerate(requests):
            prompt = self.encode(request.prompt)
            if len(request.prefix):
                prompt = np.concatenate([prompt, np.asarray(request.prefix, dtype=np.int64)])
            room = self.policy.context - len(prompt)
            if room < 1:
                text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1]["content"]
                raise UsageError(
                    f"a prompt of {len(prompt)} tokens leaves no room for a response in the model's context of "
                    f"{self.policy.context}: {text[:60]!r}...; leave the task out or use a model with a longer context"
                )
            limit = min(request.sampling.max_tokens, room)
            rows.setdefault(request.sampling, []).extend(_Row(i, j, prompt, limit) for j in range(request.n))
        noise = [uniforms(r) for r in requests]
        out: list[list[Episode | None]] = [[None] * r.n for r in requests]
        training = self.policy.module.training
        self.policy.module.eval()
        try:
            with torch.inference_mode():
                for sampling, same in rows.items():
                    # Prompts of like length decode together, so that little is padded; a prompt's rows stay together.
                    same.sort(key=lambda r: (len(r.prompt), r.request))
                    for start in range(0, len(same), self.max_rows):
                        self._decode(same[start : start + self.max_rows], sampling, noise, out)
        finally:
            self.policy.module.train(training)
        return out  # type: ignore[return-value]

    def _decode(
        self, rows: list[_Row], sampling: Sampling, noise: list[np.ndarray], out: list[list[Episode | None]]
    ) -> None:
        policy, device = self.policy, self.policy.device
        prompts, of = distinct([r.prompt for r in rows])
        prompt_of = torch.tensor(of, device=device)
        width, steps = max(map(len, prompts)), max(r.limit for r in rows)
        cache = KeyValueCache()
        prefill = Prefill([torch.from_numpy(p) for p in prompts], cache, device)
        hidden = policy.hidden(prefill.tokens, prefill)[prefill.last[prompt_of]]
        cache.start(prompt_of, min(steps, 256))

        lengths = torch.tensor([len(r.prompt) for r in rows], device=device)
        bias = None
        if int(lengths.min()) < width:
            visible = torch.arange(width + steps, device=device)[None] >= (width - lengths)[:, None]
            bias = torch.where(visible, 0.0, -torch.inf)[:, None, None].to(hidden.dtype)
        uniform = torch.from_numpy(np.stack([noise[r.request][r.sample] for r in rows])).to(device)
        limits = torch.tensor([r.limit for r in rows], device=device)
        stop_ids = torch.tensor(policy.stop_ids, device=device)

        tokens = torch.zeros(len(rows), steps, dtype=torch.int64, device=device)
        logprobs = torch.zeros(len(rows), steps, device=device)
        entropies = torch.zeros(len(rows), steps, device=device)
        counts = torch.zeros(len(rows), dtype=torch.int64, device=device)
        stopped = np.zeros(len(rows), dtype=bool)
        order = torch.arange(len(rows), device=device)  # row of the output that each cache row writes

        for step in range(steps):
            token, logprobs[order, step], entropies[order, step] = self._sample(hidden, uniform[order, step], sampling)
            tokens[order, step] = token
            done = torch.isin(token, stop_ids) | (limits[order] == step + 1)
            if sampling.stop:
                ended = self._contains(tokens[order, : step + 1], sampling.stop)
                stopped[order.cpu().numpy()] = ended
                done |= torch.from_numpy(ended).to(device)
            if bool(done.any()):
                counts[order[done]] = step + 1
                keep = self._compact(cache, done, width + step)
                order, token, lengths = order[keep], token[keep], lengths[keep]
                bias = None if bias is None else bias[keep]
            if len(order) == 0:
                break
            cache.reserve(width + step)
            hidden = policy.hidden(token, Decode(cache, lengths + step, len(order), width + step, bias))

        self._collect(rows, tokens, logprobs, entropies, counts, stopped, out)

    def _sample(
        self, hidden: torch.Tensor, uniform: torch.Tensor, sampling: Sampling
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw a token per row; return tokens, their log-probabilities and entropies. Works through blocks of rows."""
        head = self.policy.head
        block = max(1, CHUNK_BYTES // (4 * len(head.weight)))
        parts = []
        for h, u in zip(hidden.split(block), uniform.split(block), strict=True):
            logp = head.logits(h, sampling.temperature or 1.0).log_softmax(-1)
            entropy = -(logp.exp() * logp.clamp(min=-1e4)).sum(-1)
            if not bool(entropy.isfinite().all()):
                raise RunError("the model gives NaN for probabilities, so its weights have diverged; lower train.lr")
            token = draw(logp, u, sampling.temperature == 0, sampling.top_k, sampling.top_p)
            parts.append((token, logp.gather(-1, token[:, None])[:, 0], entropy))
        token, logprob, entropy = (torch.cat(column) for column in zip(*parts, strict=True))
        return token, logprob, entropy

    @staticmethod
    def _compact(cache: KeyValueCache, done: torch.Tensor, column: int) -> torch.Tensor:
        """Fill the places of finished rows with the last unfinished ones; return the rows kept, in their new order."""
        left = int((~done).sum())
        holes = torch.nonzero(done[:left])[:, 0]
        movers = left + torch.nonzero(~done[left:])[:, 0]
        if len(holes):
            cache.move(movers, holes, column)
        keep = torch.arange(left, device=done.device)
        keep[holes] = movers
        return keep

    def _contains(self, tokens: torch.Tensor, stops: tuple[str, ...]) -> np.ndarray:
        """Tell which rows contain a stop string; only as many last tokens are read as could have completed one."""
        tail = max(map(len, stops)) * 4 + 8
        texts = self.policy.tokenizer.batch_decode(tokens[:, -tail:].tolist(), skip_special_tokens=True)
        return np.array([any(s in text for s in stops) for text in texts])

    def _collect(
        self,
        rows: list[_Row],
        tokens: torch.Tensor,
        logprobs: torch.Tensor,
        entropies: torch.Tensor,
        counts: torch.Tensor,
        stopped: np.ndarray,
        out: list[list[Episode | None]],
    ) -> None:
        lengths = counts.tolist()
        responses = [ids[:n] for ids, n in zip(tokens.tolist(), lengths, strict=True)]
        texts = self.policy.tokenizer.batch_decode(responses, skip_special_tokens=True)
        ids, chosen, entropy = (x.cpu().numpy() for x in (tokens, logprobs, entropies))
        ends = set(self.policy.stop_ids)
        for i, (row, n) in enumerate(zip(rows, lengths, strict=True)):
            stop: Stop = "length"
            if n and responses[i][-1] in ends:
                stop = "eos"
            elif stopped[i]:
                stop = "stop"
            elif len(row.prompt) + n >= self.policy.context:
                stop = "context"
            # Copies, so that an episode kept for long does not keep the whole table.
            out[row.request][row.sample] = Episode(
                prompt=row.prompt,
                tokens=ids[i, :n].copy(),
                mask=np.ones(n, dtype=bool),
                logprobs=chosen[i, :n].copy(),
                entropies=entropy[i, :n].copy(),
                text=texts[i],
                stop=stop,
            )


@part("engine", "hf")
def hf_engine(model: str | dict[str, Any], max_rows: int = 256, seed: int = 0) -> HFEngine:
    """Return an engine over a model of its own, frozen: a judge, a teacher.

    Args:
        model: a recipe's ``[model]`` table, or its ``source`` alone.
        max_rows: responses decoded together.
        seed: of the weights, where they are made here.

    Raises:
        UsageError: a key or a value that a ``[model]`` table has not.
    """
    from assay.config import load_config

    config = load_config({"model": model}).model
    policy = CausalLM.load(config, seed)
    policy.module.requires_grad_(False).eval()
    return HFEngine(policy, max_rows)
