"""The engine over a server that speaks OpenAI's protocol: judges, teachers, remote policies, evaluation."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from assay.engines.base import Request, Sampling
from assay.engines.ended import listener
from assay.engines.openai.address import Server
from assay.engines.openai.cache import Cache
from assay.engines.openai.client import Client, Failed
from assay.engines.openai.costs import Ledger, Prices, Usage
from assay.engines.openai.vocabulary import Alphabet, Tokenizer
from assay.engines.openai.wire import OPTIONAL, Api, Wire, failed
from assay.engines.openai.worker import Worker
from assay.errors import UsageError
from assay.policies.template import set_template
from assay.registry import part
from assay.types import Episode, Message, Prompt, Tool

Tell = Callable[[tuple[Request, str]], None]
"""Told of a response that is there: what was asked, and its text."""


class OpenAIEngine:
    """Asks a server; see :func:`openai_engine` for the settings.

    A response that could not be had is an episode with ``stop == "error"``, no tokens, and the reason in
    ``meta["error"]``; everything else in the call is unharmed.

    Args:
        server: where and how patiently to ask.
        wire: how requests are put.
        ledger: costs and the budget.
        cache: answers on disk, if any.
        max_n: responses asked for at once; 0 for as many as a request wants.
        window: tokens of the longest prompt with its response.
    """

    def __init__(
        self,
        server: Server,
        wire: Wire,
        ledger: Ledger,
        cache: Cache | None = None,
        max_n: int = 0,
        window: int = 2**31,
    ):
        self.window = window
        self.server, self.wire, self.ledger, self.cache, self.max_n = server, wire, ledger, cache, max_n
        self._worker = Worker()
        self._client: Client | None = None
        self._generation = 0

    @property
    def usage(self) -> Usage:
        """What has been asked so far, and what it cost."""
        return self.ledger.usage

    def encode(self, prompt: Prompt) -> np.ndarray:
        return self.wire.vocabulary.encode(prompt)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.wire.vocabulary.encode_response(text, end)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return self.wire.vocabulary.decode(tokens)

    @property
    def by_messages(self) -> bool:
        """Whether a conversation goes on from messages, because the server cannot be given tokens, or tells none."""
        return self.wire.api == "chat" or not isinstance(self.wire.vocabulary, Tokenizer)

    def opening(self, messages: Sequence[Message], tools: Sequence[Tool]) -> np.ndarray:
        """See :class:`assay.engines.base.Conversing`."""
        return self.wire.vocabulary.opening(messages, tools)

    def bridge(self, messages: Sequence[Message], ended: bool) -> np.ndarray:
        """See :class:`assay.engines.base.Conversing`."""
        return self.wire.vocabulary.bridge(messages, ended)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`.

        Log-probabilities are ``None`` where the server does not tell them, or tells those before temperature.

        Raises:
            UsageError: a request that the protocol cannot put; or the key, the address or the model is wrong, and
                nothing has been answered yet.
        """
        for request in requests:
            self.wire.check(request)
        before = self.usage.failed
        out = self._made(requests)
        if lost := self.usage.failed - before:
            reasons = [str(e.meta["error"]) for row in out for e in row if e.stop == "error"]
            log = logging.getLogger(__name__)
            log.warning("%d requests to %s failed, e.g.: %s", lost, self.server.base_url, reasons[0] if reasons else "")
        return out

    def reach(self) -> None:
        """Ask for one token, so that a server that does not answer is known of before anything builds on it.

        Raises:
            UsageError: it gave no answer, or the key, the address or the model is wrong.
        """
        [[reply]] = self.generate([Request("Say yes.", 1, Sampling(1, 0.0), 0)])
        if reply.stop == "error":
            reason = reply.meta["error"]
            raise UsageError(f"{self.server.base_url} does not answer: {reason}; start it, or mend its address")

    def close(self) -> None:
        """Close connections; the engine can still be used and opens new ones."""
        client, self._client = self._client, None
        if client is not None and self._generation == self._worker.generation:
            self._worker.run(client.close())
        self._worker.close()

    def _made(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """Return all responses; whoever listens hears of those of a call when its answer is there."""
        hear = listener()
        if hear is None:
            return self._worker.run(self._all(requests, lambda _: None))
        return self._worker.hearing(lambda said: hear(*said), partial(self._all, requests))

    async def _all(self, requests: Sequence[Request], tell: Tell) -> list[list[Episode]]:
        client = self._connected()
        tasks = [asyncio.ensure_future(self._responses(client, request, tell)) for request in requests]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    def _connected(self) -> Client:
        """Return the client of the running event loop."""
        if self._client is None or self._generation != self._worker.generation:
            self.ledger.restart()
            self._client, self._generation = Client(self.server, self.ledger, OPTIONAL), self._worker.generation
        return self._client

    async def _responses(self, client: Client, request: Request, tell: Tell) -> list[Episode]:
        size = self.max_n or request.n
        parts = [(start, min(size, request.n - start)) for start in range(0, request.n, max(1, size))]

        async def called(start: int, n: int) -> list[Episode]:
            found = await self._call(client, request, n, _seed(request.seed, start))
            for episode in found:
                if episode.stop != "error":
                    tell((request, episode.text))
            return found

        rows = await asyncio.gather(*(called(*part) for part in parts))
        return [episode for row in rows for episode in row]

    async def _call(self, client: Client, request: Request, n: int, seed: int) -> list[Episode]:
        """Return ``n`` responses, from the disk or from the server."""
        wire, path = self.wire, self.wire.path
        body = wire.body(request, n, seed)
        asked = dict(body)
        answer = None if self.cache is None else self.cache.get(path, asked)
        if answer is not None and wire.is_sound(answer, n):
            self.usage.cached += 1
            return wire.episodes(answer, request, n)
        reason = ""
        try:
            most = wire.most(body, n, request.sampling.max_tokens)
            answer = await client.ask(path, body, lambda answer: wire.sound(answer, n), most)
            if self.cache is not None:
                self.cache.put(path, asked, answer)
        except Failed as failure:
            self.usage.failed += 1
            answer, reason = failure.answer, str(failure)
        found = [] if answer is None else wire.episodes(answer, request, n)
        return found + [failed(request, wire.prompt_ids(request), reason) for _ in range(n - len(found))]


def _seed(seed: int, start: int) -> int:
    """Return the seed of the part of a request that begins at response ``start``; of the first, the request's own."""
    if start == 0:
        return seed
    return int.from_bytes(hashlib.blake2b(f"{seed} {start}".encode(), digest_size=7).digest(), "big")


@part("engine", "openai")
def openai_engine(
    model: str,
    base_url: str = "https://api.openai.com/v1",
    api: Api = "chat",
    api_key_env: str | None = None,
    tokenizer: str | None = None,
    logprobs: bool = True,
    logprobs_after_temperature: bool = False,
    continue_final_message: bool = False,
    json_schema: Mapping[str, Any] | None = None,
    max_n: int = 0,
    max_tokens_field: str = "max_tokens",
    omit: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
    concurrency: int = 32,
    requests_per_minute: int = 0,
    tokens_per_minute: int = 0,
    retries: int = 5,
    backoff: float = 1.0,
    timeout: float = 300.0,
    total_timeout: float = 1800.0,
    price_prompt: float = 0.0,
    price_completion: float = 0.0,
    price_cached: float | None = None,
    budget: float | None = None,
    cache: str | None = None,
    context: int | None = None,
    system: str | None = None,
) -> OpenAIEngine:
    """Return an engine that asks a server which speaks OpenAI's protocol.

    Args:
        model: its name there.
        base_url: up to and with ``/v1``.
        api: ``chat`` sends messages, and the server applies its template; ``completions`` sends plain text, or token
            ids in the template of ``tokenizer``.
        api_key_env: the environment variable that holds the key. Left out, it is OPENAI_API_KEY for OpenAI's own server
            and ASSAY_API_KEY for any other, if set.
        tokenizer: of the model, as ``model.source`` names it. With it, episodes hold the model's own token ids;
            without, ids of ours that mean nothing to a model, and bytes in place of tokens where the server tells none.
        logprobs: ask for log-probabilities; a server that refuses is asked without.
        logprobs_after_temperature: the server's log-probabilities are those after temperature (vLLM's
            ``--logprobs-mode processed_logprobs``). If not, they are used at temperature 1 and 0 only. ``assay serve``
            says so by itself.
        continue_final_message: the server continues a message of the assistant's that was begun.
        json_schema: what every response must look like, where the server can see to that.
        max_n: responses per call, for servers that give fewer than they are asked for; 0 is no limit.
        max_tokens_field: ``max_completion_tokens`` for servers that want that.
        omit: fields never sent, e.g. ``["seed"]``.
        extra: fields sent with every request, e.g. ``{reasoning_effort = "low"}``.
        concurrency: requests open at once.
        requests_per_minute, tokens_per_minute: not exceeded in any sixty seconds; 0 is no limit. Before an answer tells
            how many tokens there were, a request counts with as many as it may take.
        retries: attempts after the first that failed in a way that may pass: no connection, no answer in time, a broken
            or unreadable one, too few responses, status 408, 409, 425, 429 or 5xx.
        backoff: seconds before the second attempt, at least half of it at random; doubled each time, up to a minute. A
            server's ``Retry-After`` is waited for by all requests.
        timeout: seconds for an attempt, from the first byte sent to the last received.
        total_timeout: seconds for all attempts of a request with the waiting between them.
        price_prompt, price_completion, price_cached: per million tokens, in any currency; cached tokens cost as others
            unless given.
        budget: in the same currency. A request that might exceed it is not sent.
        cache: folder of answers. The same request, seed and all, is answered from there; processes may share it.
        context: tokens of the longest prompt with its response, which ends an episode of several turns; unbounded if
            left out.
        system: a system message before every conversation that has none.

    Raises:
        UsageError: an option does not fit; or an option is missing that another needs.
    """
    if max_n < 0:
        raise UsageError(f"engine 'openai': max_n must not be negative, not {max_n}")
    if min(price_prompt, price_completion, price_cached or 0.0) < 0:
        raise UsageError("engine 'openai': prices must not be negative")
    if budget is not None and not (price_prompt or price_completion):
        raise UsageError("engine 'openai': a budget needs price_prompt and price_completion, per million tokens")
    url = base_url.rstrip("/")
    server = Server(
        url, api_key_env, concurrency, requests_per_minute, tokens_per_minute, retries, backoff, timeout, total_timeout
    )
    vocabulary = Alphabet() if tokenizer is None else Tokenizer.load(tokenizer)
    if isinstance(vocabulary, Tokenizer):
        set_template(vocabulary.tokenizer, system=system)
    wire = Wire(
        model,
        vocabulary,
        api,
        logprobs,
        logprobs_after_temperature,
        continue_final_message,
        json_schema,
        max_tokens_field,
        frozenset(omit),
        dict(extra or {}),
        system,
    )
    try:
        kept = None if cache is None else Cache(Path(cache).expanduser(), url)
    except OSError as error:
        raise UsageError(f"engine 'openai': cache {cache}: {error.strerror or error}") from error
    ledger = Ledger(Prices(price_prompt, price_completion, price_cached), budget)
    return OpenAIEngine(server, wire, ledger, kept, max_n, context or 2**31)
