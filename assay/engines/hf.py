"""The transformers engine: our own decode loop over a :class:`~assay.policies.causal_lm.CausalLM`.

A prompt is computed once however many responses it gets; all rows write the same column of one key-value block, which
prompts enter left-padded; a finished row leaves at once; log-probabilities are recorded while sampling, so that no
second pass is needed to know the behaviour policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from assay.engines.base import Request, Sampling
from assay.engines.sampling import draw, uniforms
from assay.errors import UsageError
from assay.policies.attention import Decode, KeyValueCache, Prefill
from assay.policies.causal_lm import CausalLM, distinct
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

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        rows: dict[Sampling, list[_Row]] = {}
        for i, request in enumerate(requests):
            prompt = self.encode(request.prompt)
            room = self.policy.context - len(prompt)
            if room < 1:
                text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1]["content"]
                raise UsageError(
                    f"a prompt of {len(prompt)} tokens does not fit the model's context of {self.policy.context}: "
                    f"{text[:60]!r}...; leave the task out or use a model with a longer context"
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
        prompts, prompt_of = distinct([r.prompt for r in rows])
        width, steps = max(map(len, prompts)), max(r.limit for r in rows)
        cache = KeyValueCache(len(rows), width)
        prefill = Prefill([torch.from_numpy(p) for p in prompts], torch.tensor(prompt_of), cache, device)
        hidden = policy.hidden(prefill.tokens, prefill)[prefill.last[torch.tensor(prompt_of, device=device)]]
        cache.start(min(steps, 256))

        lengths = torch.tensor([len(r.prompt) for r in rows], device=device)
        bias = None
        if int(lengths.min()) < width:
            visible = torch.arange(width + steps, device=device)[None] >= (width - lengths)[:, None]
            bias = torch.where(visible, 0.0, -torch.inf)[:, None, None].to(hidden.dtype)
        uniform = torch.from_numpy(np.stack([noise[r.request][r.sample] for r in rows])).to(device)
        limits = torch.tensor([r.limit for r in rows], device=device)
        stop_ids = torch.tensor(policy.stop_ids, device=device)
        head = policy.head

        tokens = torch.zeros(len(rows), steps, dtype=torch.int64, device=device)
        logprobs = torch.zeros(len(rows), steps, device=device)
        entropies = torch.zeros(len(rows), steps, device=device)
        counts = torch.zeros(len(rows), dtype=torch.int64, device=device)
        texts_done = np.zeros(len(rows), dtype=bool)
        order = torch.arange(len(rows), device=device)  # row of the output that each cache row writes

        for step in range(steps):
            logp = head.logits(hidden, sampling.temperature or 1.0).log_softmax(-1)
            token = draw(logp, uniform[order, step], sampling.temperature == 0, sampling.top_k, sampling.top_p)
            tokens[order, step] = token
            logprobs[order, step] = logp.gather(-1, token[:, None])[:, 0]
            entropies[order, step] = -(logp.exp() * logp.clamp(min=-1e30)).sum(-1)
            done = torch.isin(token, stop_ids) | (limits[order] == step + 1)
            if sampling.stop:
                ended = self._stopped(tokens[order, : step + 1].cpu().numpy(), sampling.stop)
                texts_done[order.cpu().numpy()] |= ended
                done |= torch.from_numpy(ended).to(device)
            if bool(done.any()):
                counts[order[done]] = step + 1
                keep = self._compact(cache, done, width + step)
                order, token, done = order[keep], token[keep], done[keep]
                lengths = lengths[keep]
                bias = None if bias is None else bias[keep]
            if len(order) == 0:
                break
            cache.reserve(width + step)
            layout = Decode(cache, lengths + step, len(order), width + step, bias)
            hidden = policy.hidden(token, layout)

        self._collect(rows, tokens, logprobs, entropies, counts, texts_done, out)

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

    def _stopped(self, tokens: np.ndarray, stops: tuple[str, ...]) -> np.ndarray:
        """Tell which rows contain a stop string; only as many last tokens are read as could have completed one."""
        tail = max(map(len, stops)) * 4 + 8
        texts = self.policy.tokenizer.batch_decode(tokens[:, -tail:], skip_special_tokens=True)
        return np.array([any(s in text for s in stops) for text in texts])

    def _collect(
        self,
        rows: list[_Row],
        tokens: torch.Tensor,
        logprobs: torch.Tensor,
        entropies: torch.Tensor,
        counts: torch.Tensor,
        texts_done: np.ndarray,
        out: list[list[Episode | None]],
    ) -> None:
        ids, lp, h, n = (x.cpu().numpy() for x in (tokens, logprobs, entropies, counts))
        responses = [ids[i, : n[i]].copy() for i in range(len(rows))]
        texts = self.policy.tokenizer.batch_decode(responses, skip_special_tokens=True)
        ends = set(self.policy.stop_ids)
        for i, row in enumerate(rows):
            stop: Stop = "length"
            if int(responses[i][-1]) in ends:
                stop = "eos"
            elif texts_done[i]:
                stop = "stop"
            elif len(row.prompt) + len(responses[i]) >= self.policy.context:
                stop = "context"
            out[row.request][row.sample] = Episode(
                prompt=row.prompt,
                tokens=responses[i],
                mask=np.ones(len(responses[i]), dtype=bool),
                logprobs=lp[i, : n[i]].copy(),
                entropies=h[i, : n[i]].copy(),
                text=texts[i],
                stop=stop,
            )
