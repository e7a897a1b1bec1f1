"""Parts of a whole that are not written as fractions: chances, per mille, basis points, repeating decimals in words."""

from __future__ import annotations

import re

_N = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)"
_CHANCE = re.compile(
    r"(?:(?:an? |the )?(?:probability|chance|odds|likelihood) (?:of|is) )?(?:an? )?([0-9]{1,12})(?:[ -]chances?)?"
    r"[ -](?:in|out of|of|from)[ -](?:every )?(?:an? )?([0-9]{1,12})(?: (?:chances?|probability|odds|cases|times))?",
    re.IGNORECASE,
)
_SMALL_PART = re.compile(
    rf"{_N}\s?(?:(percents?|pct\.?|per hundred)|(‰|per[- ]?mille?|promille?|per thousand)|(basis[- ]points?|bps?))",
    re.IGNORECASE,
)
_PERCENT_FIRST = re.compile(rf"(?:[%٪]|百分之)\s?{_N}")
_REPEATING = re.compile(
    r"(-?[0-9]{1,9})[.,]([0-9]{1,40})(?:\.\.\.)?,?\s?\(?(?:(?:with |where )?(?:the )?(?:digits? )?([0-9]{1,20}) )?"
    r"(?:is |are )?(?:repeat(?:ing|s|ed)?|recurring|periodic|périodique|periodisch|periódico|循环|循環)\)?",
    re.IGNORECASE,
)
_PERIOD = re.compile(r"(-?[0-9]{1,9}),([0-9]{0,20})\(([0-9]{1,20})\)")


def as_formula(text: str) -> str | None:
    """Return a fraction or decimal for ``1 in 56``, ``50 basis points``, ``0.36 repeating``, else ``None``."""
    if len(text) > 100 or not any(map(str.isdigit, text)):
        return None
    if (match := _CHANCE.fullmatch(text)) is not None:
        return f"{match[1]}/{match[2]}" if int(match[1]) <= int(match[2]) else None
    if (match := _PERCENT_FIRST.fullmatch(text)) is not None:
        return f"{match[1]}%"
    if (match := _SMALL_PART.fullmatch(text)) is not None:
        return f"{match[1]}%" if match[2] else f"{match[1]}/{1000 if match[3] else 10_000}"
    if (match := _REPEATING.fullmatch(text)) is not None:
        head, digits, cycle = match.groups()
        cycle = cycle or digits
        return f"{head}.{digits[: len(digits) - len(cycle)]}({cycle})" if digits.endswith(cycle) else None
    if (match := _PERIOD.fullmatch(text)) is not None:
        return f"{match[1]}.{match[2]}({match[3]})"
    return None
