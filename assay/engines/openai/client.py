"""One request to the server, as often as it takes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from assay.engines.openai.address import LOOPBACK, Server
from assay.engines.openai.costs import Ledger, OverBudget
from assay.engines.openai.limits import Limiter, backoff, retry_after
from assay.errors import UsageError, nearest

LONGEST_WAIT = 60.0
"""Seconds between two attempts at most, unless the server asks for more."""

PASSING = {408, 409, 425, 429}
"""Statuses below 500 that may be another the next time."""

DENIED = {401, 403, 404, 405}
"""Statuses that say that every request will fail: a wrong key, address or model."""


LONGEST_TEXT = 2000
"""Bytes of an answer that an error message may quote from."""

LARGEST = 64 << 20
"""Bytes of an answer that are read, at most: many responses with their log-probabilities fit, a flood does not."""


class Failed(Exception):
    """A request was given up. ``answer`` is what came of it, where that is incomplete but sound."""

    def __init__(self, reason: str, answer: dict[str, Any] | None = None):
        super().__init__(reason)
        self.answer = answer


class Unsound(Exception):
    """An answer is not what was asked for; ``answer`` is the part of it that can be used."""

    def __init__(self, reason: str, answer: dict[str, Any] | None = None):
        super().__init__(reason)
        self.answer = answer


class _Passing(Exception):
    """An attempt failed in a way that another may not. ``charged``: the server may have done the work."""

    def __init__(self, reason: str, charged: bool, after: float | None = None, down: bool = False, answer: Any = None):
        super().__init__(reason)
        self.charged, self.after, self.down, self.answer = charged, after, down, answer
        self.took = 0.0


class _Refused(Exception):
    """The server refuses a request for good: its status, what it says, and the field of the body that it names."""

    def __init__(self, status: int, message: str, field: str):
        super().__init__(message)
        self.status, self.field = status, field


class Client:
    """Sends requests from one event loop.

    Args:
        server: where to, and how patiently.
        ledger: costs and the budget.
        optional: fields of a body that may be left out where the server refuses them.
    """

    def __init__(self, server: Server, ledger: Ledger, optional: frozenset[str] = frozenset()):
        try:
            import httpx2
        except ImportError as error:
            raise UsageError("engine 'openai' needs httpx2: pip install assay[openai]") from error
        self.server, self.ledger, self.optional = server, ledger, optional
        self.slots = asyncio.Semaphore(server.concurrency)
        self.limiter = Limiter(server.requests_per_minute, server.tokens_per_minute)
        self.refused: set[str] = set()
        self.answered = False
        self.down = False
        self.key = server.key()
        headers = {"Content-Type": "application/json", "User-Agent": "assay"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        # Time limits are of whole attempts and set there; a proxy has no way to this machine's own servers.
        self.http = httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(None, connect=min(30.0, server.timeout)),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=server.concurrency),
            trust_env=server.host not in LOOPBACK,
        )

    async def close(self) -> None:
        await self.http.aclose()

    async def ask(
        self, path: str, body: dict[str, Any], check: Callable[[dict[str, Any]], None], most: tuple[int, int]
    ) -> dict[str, Any]:
        """Return the server's answer.

        Args:
            path: below the base URL.
            body: see OpenAI's protocol; optional fields may be removed from it.
            check: raises :class:`Unsound` for an answer that is not what was asked for.
            most: tokens of the prompt and of the responses, at most.

        Raises:
            Failed: it was given up.
            UsageError: the key, the address or the model is wrong, and the server has answered nothing yet.
        """
        left = self.server.total_timeout  # waiting for one's turn does not count
        attempt = 0
        while True:
            for name in self.refused:
                body.pop(name, None)
            try:
                async with self.slots:
                    return await self._attempt(path, body, check, most, attempt > 0, min(self.server.timeout, left))
            except OverBudget as over:
                raise Failed(f"not asked: {over}") from None
            except _Refused as refusal:
                if refusal.field in self.optional and refusal.field in body:
                    self.refused |= {"logprobs", "top_logprobs"} if "logprobs" in refusal.field else {refusal.field}
                    continue
                raise await self._refusal(refusal, body) from None
            except _Passing as failure:
                wait = max(backoff(attempt, self.server.backoff, LONGEST_WAIT), failure.after or 0.0)
                left -= failure.took + wait
                tries = f"after {attempt + 1} attempts" if attempt else "at the first attempt"
                # Once a request has found nobody there however patiently, others need not find it out as slowly.
                if attempt >= self.server.retries or (failure.down and self.down):
                    self.down = self.down or failure.down
                    raise Failed(f"{failure}, {tries}", failure.answer) from None
                if left <= 0:
                    raise Failed(
                        f"{failure}, {tries}; the next would be past {self.server.total_timeout:g} s", failure.answer
                    ) from None
                if failure.after:
                    self.limiter.quiet(failure.after)
            await asyncio.sleep(wait)
            attempt += 1

    async def _attempt(
        self,
        path: str,
        body: dict[str, Any],
        check: Callable[[dict[str, Any]], None],
        most: tuple[int, int],
        again: bool,
        limit: float,
    ) -> dict[str, Any]:
        held = await self.ledger.hold(*most)
        charged = True
        try:
            entry = await self.limiter.admit(sum(most))
            self.ledger.usage.requests += 1
            self.ledger.usage.retries += again
            began = asyncio.get_running_loop().time()
            try:
                answer = await self._post(path, body, limit)
            except _Passing as failure:
                charged, failure.took = failure.charged, asyncio.get_running_loop().time() - began
                raise
            except _Refused:
                charged = False
                raise
            counted = answer.get("usage")
            self.ledger.book(held, counted if isinstance(counted, Mapping) else None)
            held = 0.0
            if isinstance(counted, Mapping) and isinstance(counted.get("total_tokens"), int):
                self.limiter.settle(entry, counted["total_tokens"])
        finally:
            if held and charged:
                self.ledger.lose(held)
            else:
                self.ledger.free(held)
        try:
            check(answer)
        except Unsound as fault:
            raise _Passing(str(fault), charged=False, answer=fault.answer) from None
        self.answered = True
        return answer

    async def _post(self, path: str, body: dict[str, Any], limit: float) -> dict[str, Any]:
        import httpx2

        url = self.server.base_url + path
        try:
            async with asyncio.timeout(limit):
                response, data = await self._read("POST", url, json.dumps(body).encode())
        except TimeoutError:
            raise _Passing(f"no answer from {url} within {limit:g} s", charged=True) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise _Passing(f"no connection to {url}: {_line(error)}", charged=False, down=True) from None
        except httpx2.HTTPError as error:
            raise _Passing(f"the answer of {url} broke off: {_line(error)}", charged=True) from None
        self.down = False
        status = response.status_code
        if data is None:
            raise _Passing(f"{url} answered with more than {LARGEST >> 20} MB", charged=True)
        answer, text = _parsed(data), data[:LONGEST_TEXT].decode("utf-8", "replace")
        message, code, field = self._complaint(answer, text)
        if status == 429 and code == "insufficient_quota":
            raise _Refused(status, message, field)
        if status in PASSING or status >= 500:
            raise _Passing(f"{url} said {status}: {message}", charged=False, after=retry_after(response.headers))
        if status != 200:
            raise _Refused(status, message, field)
        if not isinstance(answer, dict):
            raise _Passing(f"{url} answered what is no JSON object: {text[:60]!r}", charged=True)
        if answer.get("error"):
            raise _Passing(f"{url} answered with an error: {message}", charged=True)
        return answer

    async def _read(self, method: str, url: str, content: bytes | None = None) -> tuple[Any, bytes | None]:
        """Return a response and its body, nothing in place of one that is larger than :data:`LARGEST`."""
        async with self.http.stream(method, url, content=content) as response:
            parts, size = [], 0
            async for part in response.aiter_bytes():
                size += len(part)
                if size > LARGEST:
                    return response, None
                parts.append(part)
            return response, b"".join(parts)

    def _complaint(self, answer: Any, text: str) -> tuple[str, str, str]:
        """Return an error's message without the key, its code, and the field of the body it is about."""
        error = answer.get("error", answer) if isinstance(answer, dict) else None
        if not isinstance(error, dict):
            error = {"message": error if isinstance(error, str) else text}
        message = " ".join(str(error.get("message") or error.get("detail") or text).split())[:300] or "nothing else"
        if self.key is not None:
            message = message.replace(self.key, "***")
        field = str(error.get("param") or "").partition(".")[0].partition("[")[0]
        if not field:
            field = next((name for name in sorted(self.optional, key=len, reverse=True) if name in message), "")
        return message, str(error.get("code") or ""), field

    async def _refusal(self, refusal: _Refused, body: Mapping[str, Any]) -> Exception:
        """Return the error to raise: of the user where nothing can have worked so far, of this request elsewhere."""
        url = self.server.base_url
        said = f"{refusal.status}: {refusal}"
        everywhere = refusal.status in DENIED or refusal.status == 429 or 300 <= refusal.status < 400
        everywhere = everywhere or (refusal.field in body and refusal.field not in ("messages", "prompt", "max_tokens"))
        if self.answered or not everywhere:
            return Failed(f"{url} refused the request ({said})")
        if refusal.status in (401, 403):
            named = self.server.api_key_env
            hint = f"is the key in {named} right?" if named else "name the environment variable of a key, api_key_env"
            return UsageError(f"{url} does not let us in ({said}); {hint}")
        if refusal.field in body and refusal.status in (400, 422):
            return UsageError(f"{url} does not take the field {refusal.field} ({said})")
        if refusal.status == 429:
            return UsageError(f"{url} does no more for this key ({said})")
        models = await self._models()
        if models is None:
            return UsageError(f"nothing at {url} speaks OpenAI's protocol ({said}); does base_url end in /v1?")
        if body["model"] not in models:
            return UsageError(f"{url} has no model {body['model']!r}{nearest(str(body['model']), models)} ({said})")
        return UsageError(f"{url} does not serve this kind of request ({said}); try the other api, chat or completions")

    async def _models(self) -> list[str] | None:
        """Return the names of the server's models, if it has such a list."""
        import httpx2

        try:
            async with asyncio.timeout(min(30.0, self.server.timeout)):
                _, data = await self._read("GET", f"{self.server.base_url}/models")
            return [str(model["id"]) for model in _parsed(data or b"")["data"]]
        except (TimeoutError, httpx2.HTTPError, KeyError, TypeError):
            return None


def _parsed(data: bytes) -> Any:
    """Return what JSON says, nothing where it is none or nested deeper than can be read."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
