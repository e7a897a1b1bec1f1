"""An answer in the form of its reference: prices per unit, changes in percent, sets by description, named values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from assay.verify.math.context import Context
from assay.verify.math.latex import plain
from assay.verify.math.notations import notations
from assay.verify.math.units import Dimension, read_unit
from assay.verify.math.words import roman

_MONEY = r"€|£|¥|₹|\$|eur|euros?|usd|dollars?|gbp|pounds?|cents?|eurocents?"
_PRICE = re.compile(
    rf"(?P<before>[€£¥₹$])?\s?(?P<value>[0-9]+(?:[.,][0-9]+)?)\s?(?P<after>{_MONEY})?\s?"
    r"(?:/|per|a|an|for (?:each|every|one|a)|each|every|pro|por|par|al|le|je)\s?(?:1\s?)?(?P<unit>[^\W\d_]{1,12}\.?)",
    re.IGNORECASE,
)
_CURRENCY = {"€": "€", "eur": "€", "euro": "€", "£": "£", "gbp": "£", "pound": "£", "$": "$", "usd": "$", "dollar": "$",
             "¥": "¥", "₹": "₹"}  # fmt: skip
_PERCENT = r"(?P<value>[0-9]+(?:[.,][0-9]+)?)\s?(?:%|per ?cent|pct)"
_UP = (
    r"increas(?:e[sd]?|ing)|ris(?:es?|en|ing)|rose|grow(?:s|n|th)?|grew|gain(?:s|ed)?|(?:go(?:es|ne)?|went) up|"
    r"higher|up"
)
_DOWN = (
    r"decreas(?:e[sd]?|ing)|f[ae]ll(?:s|en)?|drop(?:s|ped)?|reduc(?:es?|ed|tion)|declin(?:e[sd]?|ing)|"
    r"(?:go(?:es|ne)?|went) down|down|lower"
)
_CHANGE = re.compile(
    r"(?:(?:an?|the|it|this is|that is|is|was|has|there (?:is|was)|price|value|percentage|change|of|by|"
    r"the [a-z]{3,12}(?: of the [a-z]{3,12})?)\s){0,4}"
    rf"(?:(?:(?P<up>{_UP})|(?P<down>{_DOWN}))\s?(?:is |was )?(?:by |of |to be |: ?|= ?)?(?:about )?{_PERCENT}|"
    rf"(?P<sign>[-−+])\s?{_PERCENT.replace('value', 'signed')}|"
    rf"{_PERCENT.replace('value', 'first')}\s?(?:(?P<above>{_UP})"
    rf"|(?P<below>{_DOWN})))(?: in (?:the )?(?:price|value))?",
    re.IGNORECASE,
)
_ELLIPSIS = re.compile(
    r"(?:[a-z]\s?∈\s?)?[⦃{]\s?(-?[0-9]{1,4}(?:\s?,\s?-?[0-9]{1,4}){0,5})\s?,\s?(?:\.\.\.|…|\\[lc]?dots)\s?,\s?"
    r"(-?[0-9]{1,4}(?:\s?,\s?-?[0-9]{1,4}){0,5})\s?[⦄}]"
)
_BETWEEN = re.compile(
    r"[⦃{]\s?([a-z])\s?(?:∈\s?[ℤZ])?\s?[:|]\s?(?:\1\s?∈\s?[ℤZ],? ?)?(-?[0-9]{1,4})\s?(<=|≤|<)\s?\1\s?(<=|≤"
    r"|<)\s?(-?[0-9]{1,4})\s?[⦄}]"
)
_RANGE = re.compile(
    r"(?:all (?:of )?)?(?:the )?(?:integers?|whole numbers)(?: [a-z])?,? (?:ranging )?from (-?[0-9]{1,4})"
    r" (?:up )?(?:to|through) "
    r"(-?[0-9]{1,4}),? ?\(?(?:inclusive|both included|included|including both)?\)?",
    re.IGNORECASE,
)
_FORM = re.compile(
    r"[⦃{]\s?(?:[a-z]\s?=\s?)?(?P<set>[-+0-9a-z ]{2,24})\s?[:|]\s?[a-z]\s?∈\s?[ℤZ]\s?[⦄}]|"
    r"(?:all |the |any )?(?:integers?|numbers?)(?: [a-z])? of the form (?P<said>[-+0-9a-z ]{2,24}?)"
    r"(?:,? (?:with|where|for) .{1,40})?"
)
_BASE = re.compile(r"_\s?\{?\s?(?:\\text\s?\{)?\s?base[ -]?\s?\}?\s?([0-9]{1,2})\s?\}?")
_DRESS = re.compile(r"\\(?:mathtt|texttt|mathbin|mathrel|mathord|mathpunct)\s?(?:\{([^{}]{0,80})\}|(?=[:+]))")
_NAMED = re.compile(
    r"(?:\\lim(?:_\s?\{[^{}]{1,40}\})?|lim|(?:the )?(?:limit|mean|average|sum|total)|[a-zA-Z]\(x\))\s?=\s?"
)
_PRODUCT = re.compile(r"(?:\\vec )?([a-zA-Z])\s?[·⋅•∙*×]\s?(?:\\vec )?([a-zA-Z])\s?=\s?")
_MODULO = re.compile(r"(-?[0-9]{1,15})\s?\(?\s?(?:\\?p?mod(?:ulo)?)\s?([0-9]{1,15})\s?\)?")
_COLLECTIVE = re.compile(
    r"(?:the )?(?:terms|values|numbers|elements|integers|divisors|first [a-z]{3,6} terms)(?: are)?:?\s(?=-?[0-9])"
)
_AND_PART = re.compile(r"([0-9]{1,9}) and (?:a |one[ -])(half|third|quarter|fourth)")
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4}
_PER = re.compile(r"(.{1,60}?) (?:per|in each|for each|for every|each) ([a-z]{3,14})")
_SUPERLATIVE = re.compile(
    r"([A-Z][^\W\d_]{1,14}) (?:is|was|has) the ([a-z]{3,12}est)(?: (?:of|among) (?:the|all) [a-z]{3,8})?"
)
_ROMAN = re.compile(r"([0-9]{1,4}) ?= ?([IVXLCDM]{1,15})")
_LETTER = re.compile(
    r",?\s?(?:(?:where|with|for(?: any)?) )?[CK]\s?(?:∈|is an? |is any )\s?(?:ℝ|R|arbitrary constant"
    r"|real(?: number)?|constant)\.?$"
)
_CONST = re.compile(r"\+\s?(?:const(?:ant|\.)?|K)(?:\s?です)?$")
MAX_RANGE = 400


def recast(reference: str, answer: str, context: Context, agrees: Callable[[str, str, Context], bool]) -> bool:
    """Say whether ``answer`` is ``reference`` in another form; ``agrees`` compares what is left of them."""
    if len(answer) > 400 or len(reference) > 400:
        return False
    said, wanted = plain(_DRESS.sub(lambda m: m[1] or "", answer)).strip(" .*$"), plain(reference).strip(" .*$")
    if (price := _price(wanted)) is not None and (other := _price(said)) is not None:
        return price[:2] == other[:2] and price[2] & other[2] != frozenset()
    if "%" in wanted or "percent" in wanted:
        change = _change(wanted)
        if change is not None and (its := _change(said)) is not None:
            return change == its
    return any(agrees(reference, spelling, context) for spelling in _spellings(wanted, answer, said, context))


def _spellings(wanted: str, answer: str, said: str, context: Context) -> Iterator[str]:
    if (undressed := _DRESS.sub(lambda m: m[1] or "", answer)) != answer:
        yield undressed
    yield from notations(wanted, answer, said, context.question)
    if wanted[:1] in ("⦃", "{") and (listed := _listed(said)) is not None:
        yield listed
    if "mod" in wanted and (form := _FORM.fullmatch(said)) is not None:
        yield form["set"] or form["said"]
    if "base" in answer and (based := _BASE.sub(r"_{\1}", answer)) != answer:
        yield based
    if (named := _NAMED.match(said)) is not None and "=" not in wanted:
        yield said[named.end() :]
    if (product := _PRODUCT.match(said)) is not None and "=" not in wanted and " product" in context.question:
        yield said[product.end() :]
    if "mod" in said and "remainder" in context.question and (rest := _remainder(said, context.question)) is not None:
        yield rest
    if (several := _COLLECTIVE.match(said)) is not None:
        yield said[several.end() :]
    if (part := _AND_PART.fullmatch(said)) is not None:
        yield f"{part[1]} 1/{_PARTS[part[2]]}"
    if (share := _PER.fullmatch(said)) is not None and re.search(
        rf"\b(?:each|every|per) {share[2]}\b", _last_sentence(context.question)
    ):
        yield share[1]
    if (equation := _ROMAN.fullmatch(said)) is not None and roman(equation[2]) == int(equation[1]):
        yield equation[2] if roman(wanted) is not None else equation[1]
    if (first := _SUPERLATIVE.fullmatch(said)) is not None and f"the {first[2]}" in _last_sentence(context.question):
        yield first[1]
    if said in ("T", "F") and re.search(r"true or false", context.question, re.IGNORECASE):
        yield "true" if said == "T" else "false"
    if wanted.endswith("C") and (constant := _LETTER.search(said)) is not None:
        yield said[: constant.start()]
    if wanted.endswith("C") and (constant := _CONST.search(said)) is not None:
        yield f"{said[: constant.start()]}+C"


def _last_sentence(question: str) -> str:
    return re.split(r"(?<=[.!?])\s+", question.strip())[-1]


def _remainder(text: str, question: str) -> str | None:
    """The remainder of ``2 (mod 7)`` where the question divides by 7."""
    rest = _MODULO.fullmatch(text)
    if rest is None or not 0 <= int(rest[1]) < int(rest[2]):
        return None
    return rest[1] if re.search(rf"(?<![0-9.]){rest[2]}(?![0-9])", question) else None


def _price(text: str) -> tuple[Fraction, Dimension, frozenset[str]] | None:
    """``€1.80/kg`` and ``180 cents per kilogram`` as amount per base unit, unit and possible currencies."""
    match = _PRICE.fullmatch(text)
    if match is None or (match["before"] and match["after"]):
        return None
    money = (match["before"] or match["after"] or "").casefold().removesuffix("s")
    unit = read_unit(match["unit"])
    if not money or unit is None or not unit.known or unit.offset:
        return None
    value = Fraction(match["value"].replace(",", ".")) / unit.factor
    if money in ("cent", "eurocent"):
        return value / 100, unit.dimension, frozenset("€" if money == "eurocent" else "€$")
    return (value, unit.dimension, frozenset(_CURRENCY[money])) if money in _CURRENCY else None


def _change(text: str) -> Fraction | None:
    """A change in percent with its direction, ``None`` where the text names none."""
    match = _CHANGE.fullmatch(text)
    if match is None:
        return None
    value = Fraction((match["value"] or match["signed"] or match["first"]).replace(",", "."))
    falls = match["down"] or match["below"] or (match["sign"] or "+") in "-−"
    return -value if falls else value


def _listed(text: str) -> str | None:
    """The integers of a set that its bounds or its first and last elements give."""
    if (match := _BETWEEN.fullmatch(text)) is not None:
        low, high = int(match[2]) + (match[3] == "<"), int(match[5]) - (match[4] == "<")
    elif (match := _RANGE.fullmatch(text)) is not None:
        low, high = int(match[1]), int(match[2])
    elif (match := _ELLIPSIS.fullmatch(text)) is not None:
        first, last = ([int(n) for n in match[k].split(",")] for k in (1, 2))
        low, high = first[0], last[-1]
        if first != list(range(low, low + len(first))) or last != list(range(high - len(last) + 1, high + 1)):
            return None
    else:
        return None
    if not 0 <= high - low <= MAX_RANGE:
        return None
    return "{" + ", ".join(map(str, range(low, high + 1))) + "}"
