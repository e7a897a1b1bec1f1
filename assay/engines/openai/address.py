"""Where to ask, with which key, and how patiently."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from assay.errors import UsageError

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Server:
    """Where to ask and how patiently; see :func:`assay.engines.openai.engine.openai_engine`."""

    base_url: str
    api_key_env: str | None = None
    concurrency: int = 32
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    retries: int = 5
    backoff: float = 1.0
    timeout: float = 300.0
    total_timeout: float = 1800.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"base_url must look like http://host:port/v1, not {self.base_url!r}")
        if parts.username or parts.password:
            raise UsageError("base_url must not hold a password; name the environment variable of a key, api_key_env")
        for name in ("concurrency", "timeout", "total_timeout"):
            if getattr(self, name) <= 0:
                raise UsageError(f"engine 'openai': {name} must be positive, not {getattr(self, name)}")
        for name in ("requests_per_minute", "tokens_per_minute", "retries", "backoff"):
            if getattr(self, name) < 0:
                raise UsageError(f"engine 'openai': {name} must not be negative, not {getattr(self, name)}")
        if self.api_key_env and not os.environ.get(self.api_key_env):
            raise UsageError(f"the environment variable {self.api_key_env}, named by api_key_env, is not set")

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    def key(self) -> str | None:
        """Return the key, from the variable named; OPENAI_API_KEY goes to OpenAI alone, unless it is named."""
        usual = "OPENAI_API_KEY" if self.host == "api.openai.com" else "ASSAY_API_KEY"
        return os.environ.get(self.api_key_env or usual) or None
