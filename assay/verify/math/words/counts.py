r"""Binomial coefficients and numbers of arrangements beside ``\binom``: ``C(8, 2)``, ``{}_8C_2``, ``P(8, 2)``."""

from __future__ import annotations

import re

_MENTIONED = re.compile(r"[CP]|[cC]hoose|comb|binomial|perm|n[cp]r")
_N = r"\{?\s?([0-9]{1,4}|[a-z])\s?\}?"
_CALLED = re.compile(rf"(?<![A-Za-z\\])(?:C|nCr|ncr|[Cc]omb|[Bb]inomial|[Cc]hoose)\s?\(\s?{_N}\s?[,;]\s?{_N}\s?\)")
_BESIDE = re.compile(rf"(?<![A-Za-z0-9.])(?:\{{\s?\}}\s?)?[\^_]?{_N}\s?\*?\s?C\s?_?{_N}(?![A-Za-z0-9.])")
_STACKED = re.compile(rf"(?<![A-Za-z0-9}}.])C\s?_\s?{_N}\s?\^\s?{_N}")
_RAISED = re.compile(rf"(?<![A-Za-z0-9}}.])C\s?\^\s?{_N}\s?_\s?{_N}")
_SPOKEN = re.compile(rf"(?<![A-Za-z0-9.]){_N} choose {_N}(?![A-Za-z0-9.])", re.IGNORECASE)
_ARRANGED = re.compile(r"(?<![A-Za-z\\])(?:P|nPr|npr|[Pp]erm)\s?\(\s?([0-9]{1,3})\s?,\s?([0-9]{1,3})\s?\)")
_ARRANGED_BESIDE = re.compile(
    r"(?<![A-Za-z0-9.])(?:\{\s?\}\s?)?[\^_]?\{?([0-9]{1,3})\}?\s?P\s?_?\{?([0-9]{1,3})\}?(?![A-Za-z0-9.])"
)


def counted(text: str) -> str:
    r"""Return ``text`` with every binomial coefficient as ``\binom{n}{k}`` and every P(n, k) as a quotient."""
    if _MENTIONED.search(text) is None:
        return text
    for pattern in (_CALLED, _STACKED, _BESIDE, _SPOKEN):
        text = pattern.sub(r"\\binom{\1}{\2}", text)
    text = _RAISED.sub(r"\\binom{\2}{\1}", text)
    for pattern in (_ARRANGED, _ARRANGED_BESIDE):
        text = pattern.sub(_quotient, text)
    return text


def _quotient(match: re.Match[str]) -> str:
    n, k = int(match[1]), int(match[2])
    return f"({n}!/({n - k})!)" if k <= n else match[0]
