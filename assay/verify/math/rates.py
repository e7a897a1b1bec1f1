"""Parts of a whole that are not written as fractions: chances, per mille, basis points, repeating decimals in words."""

from __future__ import annotations

import re

_N = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)"
_CHANCE = re.compile(
    rf"(?:(?:an? |the )?(?:probability|chance|odds|likelihood|proportion|fraction) (?:of|"
    rf"is) )?(?:an? )?{_N}(?:[ -]chances?)?"
    rf"[ -](?:in|out of|of|from)[ -](?:every )?(?:an? )?{_N}(?: (?:chances?|probability|odds|cases|times))?",
    re.IGNORECASE,
)
_CHINESE_PERCENT = re.compile(r"百分之\s?([0-9]{1,9}(?:\.[0-9]{1,9})?)")
_SMALL_PARTS = (
    (re.compile(rf"{_N}\s?(?:basis[- ]points?|bps?|bips?)", re.I), 10_000),
    (re.compile(rf"{_N}\s?(?:‰|per[- ]?mill?e?|promill?e?|pour mille|por mil|per thousand)", re.I), 1000),
    (re.compile(rf"{_N}\s?(?:ppm|parts per million)", re.I), 10**6),
    (re.compile(rf"{_N}\s?(?:ppb|parts per billion)", re.I), 10**9),
    (re.compile(rf"{_N}\s?(?:percents?|pct\.?|p\.?c\.?|per hundred|in every hundred)", re.I), 100),
    (re.compile(rf"[%٪]\s?{_N}"), 100),
)
_REPEATING = re.compile(
    r"(-?[0-9]{1,9})[.,]([0-9]{1,40})\s?(?:\.\.\.)?,?\s?\(?\s?(?:with (?:the )?(?:digits? )?(?:block )?|"
    r"where (?:the )?(?:digits? )?|the |"
    r"(?=[0-9]+ (?:is |are )?(?:repeat|recur)))?(?:([0-9]{1,20})(?:['s]{0,2}) )?(?:is |are |being |that )?"
    r"(?:repeat(?:ing|s|ed)?|recurring|recurs?|periodic|périodique|periodisch|periódico|indefinitely|forever|循环|循環)"
    r"(?: (?:forever|indefinitely|infinitely|decimal|digits?))?\s?\)?",
    re.IGNORECASE,
)
_PART_OF_PERCENT = re.compile(r"(?:an? |one )?(half|quarter)(?: of)?(?: an?| one)?\s?%", re.IGNORECASE)
_PERIOD = re.compile(r"(-?[0-9]{1,9}),([0-9]{0,20})\(([0-9]{1,20})\)")


def as_formula(text: str) -> str | None:
    """Return a fraction or decimal for ``1 in 56``, ``50 basis points``, ``0.36 repeating``, else ``None``."""
    if text[-1] == "%" and (match := _PART_OF_PERCENT.fullmatch(text)) is not None:
        return f"{'0.5' if match[1].lower() == 'half' else '0.25'}%"
    if len(text) > 100 or not any(map(str.isdigit, text)):
        return None
    if (match := _CHANCE.fullmatch(text)) is not None:
        part, whole = float(match[1]), float(match[2])
        return f"{match[1]}/{match[2]}" if part <= whole and "." not in match[1] + match[2] else None
    if (match := _CHINESE_PERCENT.fullmatch(text)) is not None:
        return f"{match[1]}%"
    if text[0] not in "-0123456789%٪":
        return None
    for pattern, scale in _SMALL_PARTS if text[0] != "-" else ():
        if (match := pattern.fullmatch(text)) is not None:
            return f"{match[1]}%" if scale == 100 else f"{match[1]}/{scale}"
    if (match := _REPEATING.fullmatch(text)) is not None:
        head, digits, cycle = match.groups()
        cycle = cycle or digits
        return f"{head}.{digits[: len(digits) - len(cycle)]}({cycle})" if digits.endswith(cycle) else None
    if (match := _PERIOD.fullmatch(text)) is not None:
        return f"{match[1]}.{match[2]}({match[3]})"
    return None
