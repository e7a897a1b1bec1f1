"""The transformers engine: our own decode loop over a :class:`~assay.policies.causal_lm.CausalLM`.

A prompt is computed once however many responses it gets; all rows write the same column of one key-value block, which
prompts enter left-padded; a finished row leaves at once; log-probabilities are recorded while sampling, so that no
second pass is needed to know the behaviour policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.engines.base import Request, Sampling
from assay.engines.beam import Beams, check_beam
from assay.engines.collecting import collect, nothing
from assay.engines.ended import listener
from assay.engines.lean import Hidden, hidden_of
from assay.engines.packed import packed_linears
from assay.engines.sampling import sample, uniforms
from assay.engines.sessions import Kept, Sessions
from assay.engines.speaking import Speaking
from assay.engines.stream import Row, Stream
from assay.engines.target import resolve
from assay.engines.trie import Trie
from assay.errors import RunError, UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.policy import load_policy
from assay.policies.room import rows_that_fit
from assay.registry import part
from assay.types import Episode


class HFEngine(Speaking):
    """Generates with the very weights that are trained; nothing is copied after an update.

    Args:
        policy: the model.
        max_rows: responses decoded together, or fewer, as many as :func:`assay.policies.room.rows_that_fit` says; more
            wait for the next round.
        kept_bytes: keys and values that may be kept for the next turns of conversations.
    """

    def __init__(self, policy: CausalLM, max_rows: int = 1024, kept_bytes: int = 4 * 2**30):
        self.policy = policy
        self.max_rows = max_rows
        self.sessions = Sessions(kept_bytes)
        self._work = 0

    def end_sessions(self, sessions: Iterable[str]) -> None:
        """See :class:`assay.engines.base.Keeping`."""
        for session in sessions:
            self.sessions.end(session)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`.

        Raises:
            UsageError: a prompt leaves no room for a response in the model's context.
            RunError: the model gives something else than probabilities.
        """
        alike: dict[tuple[Any, ...], list[Row]] = {}
        if any(r.session is not None for r in requests):
            self.sessions.begin(list(self.policy.module.parameters()))
        going_on = len(self.sessions) > 0
        out: list[list[Episode | None]] = [[None] * r.n for r in requests]
        for i, request in enumerate(requests):
            check_beam(request)
            prompt = self.encode(request.prompt)
            if len(request.prefix):
                prompt = np.concatenate([prompt, np.asarray(request.prefix, dtype=np.int64)])
            room = self.policy.context - len(prompt)
            if room < 1 and room + len(request.prefix) > 0 and not request.beam:
                out[i] = [nothing(prompt, "context") for _ in out[i]]
                continue
            if room < 1:
                text = request.prompt if isinstance(request.prompt, str) else request.prompt[-1]["content"]
                raise UsageError(
                    f"a prompt of {len(prompt)} tokens leaves no room for a response in the model's context of "
                    f"{self.policy.context}: {text[:60]!r}...; set tasks.max_prompt or use a longer context"
                )
            limit = min(request.sampling.max_tokens, room)
            if limit < 1:
                out[i] = [nothing(prompt, "length") for _ in out[i]]
                continue
            # How long a response may be is its row's affair.
            key = replace(request.sampling, max_tokens=0), request.within, request.n if request.beam else None
            session, kept = request.session if request.n == 1 and not request.beam else None, None
            if session is not None:
                kept = self.sessions.take(session, prompt)
            alike.setdefault(key, []).extend(Row(i, j, prompt, limit, session, kept) for j in range(request.n))
        noise = [uniforms(r) for r in requests]
        training = self.policy.module.training
        self.policy.module.eval()
        work = sum(row.work for same in alike.values() for row in same)
        if going_on:
            # What is kept was computed in one of two ways, whose keys do not fit together.
            work = self._work
        self._work = work
        try:
            with torch.inference_mode():
                hidden = self._states(work)
            with torch.inference_mode(), packed_linears(self.policy.model, work):
                for (sampling, within, beam), same in alike.items():
                    # Prompts of like length decode together, so that little is padded; a prompt's rows stay together.
                    same.sort(key=lambda r: (r.kept is None, len(r.prompt), r.request))
                    together = self._together(same)
                    together = together if beam is None else max(1, together // beam) * beam
                    for start in range(0, len(same), together):
                        rows = same[start : start + together]
                        if beam is None:
                            self._decode(hidden, rows, sampling, within, noise, out, requests)
                        else:
                            self._search(hidden, rows, sampling, within, beam, out)
        finally:
            self.policy.module.train(training)
        return [[e for e in episodes if e is not None] for episodes in out]

    def _together(self, rows: Sequence[Row]) -> int:
        """How many of the rows are decoded together."""
        columns = max((len(r.prompt) for r in rows), default=0) + max((r.limit for r in rows), default=0)
        room = rows_that_fit(self.policy.model, self.policy.device, columns)
        return self.max_rows if room is None else min(self.max_rows, room)

    def _decode(
        self,
        hidden: Hidden,
        rows: list[Row],
        sampling: Sampling,
        within: Trie | None,
        noise: list[np.ndarray],
        out: list[list[Episode | None]],
        requests: Sequence[Request],
    ) -> None:
        policy, device, hear = self.policy, self.policy.device, listener()
        stream = Stream(hidden, rows, device, policy.places)
        drawn = np.zeros((len(rows), stream.steps))
        for i, r in enumerate(rows):
            drawn[i, : r.limit] = noise[r.request][r.sample][: r.limit]
        uniform = torch.from_numpy(drawn).to(device)
        limits = torch.tensor([r.limit for r in rows], device=device)
        stop_ids = torch.tensor(policy.stop_ids, device=device)

        tokens = torch.zeros(len(rows), stream.steps, dtype=torch.int64, device=device)
        logprobs = torch.zeros(len(rows), stream.steps, device=device)
        entropies = torch.zeros(len(rows), stream.steps, device=device)
        counts = torch.zeros(len(rows), dtype=torch.int64, device=device)
        stopped = np.zeros(len(rows), dtype=bool)
        at = np.zeros(len(rows), dtype=np.int64)  # the node of ``within`` that each row has come to
        order = torch.arange(len(rows), device=device)  # row of the output that each cache row writes
        live = np.arange(len(rows))

        for step in range(stream.steps):
            token, logprobs[order, step], entropies[order, step] = self._sample(
                stream.hidden, uniform[order, step], sampling, within, at[live]
            )
            tokens[order, step] = token
            unwanted = self.observe(rows, live, token, logprobs[order, step])
            done = torch.isin(token, stop_ids) | (limits[order] == step + 1)
            if unwanted is not None:
                done |= unwanted
            if sampling.stop:
                stopped[live] = self._contains(tokens[order, : step + 1], sampling.stop)
            if within is not None:
                at[live] = within.follow(at[live], token.cpu().numpy())
                stopped[live] |= within.complete(at[live])
            if sampling.stop or within is not None:
                done |= torch.from_numpy(stopped[live]).to(device)
            if bool(done.any()):
                counts[order[done]] = step + 1
                if hear is not None:
                    over = order[done]
                    texts = policy.tokenizer.batch_decode(tokens[over, : step + 1].tolist(), skip_special_tokens=True)
                    for i, text in zip(over.tolist(), texts, strict=True):
                        hear(requests[rows[i].request], text)
                if any(r.session is not None for r in rows):
                    self._put_away(stream, torch.nonzero(done)[:, 0].tolist(), rows, order, tokens[:, :step])
                keep = stream.drop(done)
                order, token = order[keep], token[keep]
                live = order.cpu().numpy()
            if len(order) == 0:
                break
            stream.feed(token)

        collect(policy, rows, tokens, logprobs, entropies, counts, stopped, out)

    def _put_away(
        self, stream: Stream, done: Sequence[int], rows: Sequence[Row], order: torch.Tensor, tokens: torch.Tensor
    ) -> None:
        """Keep what has been computed of conversations whose turns are done: all but the last token's."""
        for i, row in ((i, rows[int(order[i])]) for i in done):
            if row.session is not None:
                ids = np.concatenate([row.prompt, tokens[order[i]].cpu().numpy()])
                before = 0 if row.kept is None else len(row.kept.tokens)
                self.sessions.keep(row.session, Kept.after(row.kept, ids, stream.written(i, before)))

    def _search(
        self,
        hidden: Hidden,
        rows: list[Row],
        sampling: Sampling,
        within: Trie | None,
        width: int,
        out: list[list[Episode | None]],
    ) -> None:
        """Answer requests for beam searches, ``width`` rows each."""
        policy, device = self.policy, self.policy.device
        stream = Stream(hidden, rows, device, policy.places)
        beams = Beams(len(rows) // width, width, stream.steps, within, device)
        limits = torch.tensor([r.limit for r in rows], device=device)
        stop_ids = torch.tensor(policy.stop_ids, device=device)

        def ends(parents: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
            return torch.isin(token, stop_ids) | (limits[parents] == beams.step + 1)

        while True:
            offers = []
            for start, logp, entropy in self._distributions(stream.hidden, sampling):
                offers.append((*beams.offers(logp, start), entropy))
            values, offered, entropies = (torch.cat(column) for column in zip(*offers, strict=True))
            parents, token = beams.advance(values, offered, entropies, ends)
            if beams.over:
                break
            everywhere = torch.arange(len(rows), device=device)
            stream.cache.move(parents, everywhere, stream.column)
            stream.feed(token)
        whole = np.zeros(len(rows), dtype=bool) if within is None else within.complete(beams.nodes)
        made = beams.tokens, beams.logprobs, beams.entropies, beams.lengths
        collect(policy, rows, *made, whole, out, beams.dead)

    def observe(
        self, rows: list[Row], live: np.ndarray, tokens: torch.Tensor, logprobs: torch.Tensor
    ) -> torch.Tensor | None:
        """Told of every token that is drawn, as it is drawn; for engines made of this one.

        Args:
            rows: what is decoded together.
            live: ``(B,)`` indices of the rows that got a token.
            tokens, logprobs: ``(B,)``.

        Returns:
            ``(B,)`` whether a row is to end here, as if its length were reached; ``None`` if none is.
        """
        return None

    def _states(self, work: int) -> Hidden:
        """Return what computes hidden states during a call of about so many tokens."""
        return hidden_of(self.policy, work)

    def _logits(self, hidden: torch.Tensor, sampling: Sampling) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield logits over the temperature, in blocks of rows with the first row's number."""
        head, start, temperature = self.policy.head, 0, sampling.temperature or 1.0
        plain = head.scale == 1.0 and head.softcap is None and hidden.dtype == torch.float32
        layer = self.policy.model.get_output_embeddings()
        for h in hidden.split(head.rows()):
            # The layer itself, where it is all there is to the head: its weights may be packed.
            logits = layer(h) if plain else head.logits(h, temperature)
            yield start, logits.div_(temperature) if plain and temperature != 1.0 else logits
            start += len(h)

    def _distributions(
        self, hidden: torch.Tensor, sampling: Sampling
    ) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        """Yield the distributions of next tokens and their entropies, in blocks of rows with the first row's number."""
        for start, logits in self._logits(hidden, sampling):
            logp = logits.log_softmax(-1)
            entropy = -(logp.exp() * logp.clamp(min=-1e4)).sum(-1)
            if not bool(entropy.isfinite().all()):
                raise RunError("the model gives NaN for probabilities, so its weights have diverged; lower train.lr")
            yield start, logp, entropy

    def _sample(
        self, hidden: torch.Tensor, uniform: torch.Tensor, sampling: Sampling, within: Trie | None, at: np.ndarray
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw a token per row; return tokens, their log-probabilities and entropies. Works through blocks of rows."""
        parts = []
        for start, logits in self._logits(hidden, sampling):
            rows = slice(start, start + len(logits))
            allowed = None
            if within is not None:
                allowed = torch.from_numpy(within.mask(at[rows], logits.shape[1])).to(logits.device)
            parts.append(sample(logits, uniform[rows], sampling, allowed))
        token, logprob, entropy = (torch.cat(column) for column in zip(*parts, strict=True))
        return token, logprob, entropy

    def _contains(self, tokens: torch.Tensor, stops: tuple[str, ...]) -> np.ndarray:
        """Tell which rows contain a stop string; only as many last tokens are read as could have completed one."""
        tail = max(map(len, stops)) * 4 + 8
        texts = self.policy.tokenizer.batch_decode(tokens[:, -tail:].tolist(), skip_special_tokens=True)
        return np.array([any(s in text for s in stops) for text in texts])


@part("engine", "hf")
def hf_engine(
    model: str | dict[str, Any] | None = None, max_rows: int = 256, seed: int = 0, policy: CausalLM | None = None
) -> HFEngine:
    """Return an engine over a policy, or over a model of its own, frozen: a judge, a teacher.

    Args:
        model: a recipe's ``[model]`` table, or its ``source`` alone; or a run's folder, or a checkpoint in one.
        max_rows: responses decoded together.
        seed: of the weights, where they are made here.
        policy: what is trained, in place of a model.

    Raises:
        UsageError: a key or a value that a ``[model]`` table has not; neither a model nor a policy.
    """
    from assay.config import load_config

    if policy is None:
        if model is None:
            raise UsageError('engine hf needs a model: {name = "hf", model = ...}')
        if isinstance(model, str) and (Path(model).expanduser() / "config.toml").is_file():
            policy = resolve(model).load()
        else:
            policy = load_policy(load_config({"model": model}).model, seed)
        policy.module.requires_grad_(False).eval()
    return HFEngine(policy, max_rows)
