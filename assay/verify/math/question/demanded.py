r"""Whether an answer of the right value is the answer that the question asks for, by its spelling.

:mod:`~assay.verify.math.question.form` compares values; here what is written counts: "Convert 300° to radians" is not
answered by 300°, "Write 756 as a product of primes" not by 4 * 189. Where no form is demanded, any will do.
"""

from __future__ import annotations

import re

from assay.verify.math.expressions.values import Named, Scalar
from assay.verify.math.question.context import Context
from assay.verify.math.read.latex import plain
from assay.verify.math.read.reading import read

_DEGREES = re.compile(r"°|\\circ|\bdeg(?:rees?)?\b")
_RADIANS = re.compile(r"π|\\?\bpi\b|\brad(?:ians?)?\b")
_DECIMAL = re.compile(r"-?[0-9]*\.[0-9]+(?:\.\.\.|…)?|-?[0-9]*\.[0-9]*(?:⟦[0-9]+⟧|\([0-9]+\))")
_PERCENT = re.compile(r".{1,30}(?:\\?%|\bper ?cent)")
_FRACTION = re.compile(r"-?(?:\\frac\{-?[0-9]+\}\{[0-9]+\}|[0-9]+\s?[/:÷]\s?[0-9]+|[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])")
_GIVEN = re.compile(r"\\frac\{-?[0-9]+\}\{[0-9]+\}|(?:[0-9]+ )?[0-9]+\s?[/:÷]\s?[0-9]+|[0-9]+(?:\.[0-9]+)?\s?%")
_MIXED = re.compile(
    r"-?[0-9]+\s?(?:\+|and)?\s?(?:\\frac\{[0-9]+\}\{[0-9]+\}|(?<=\s)[0-9]+\s?/\s?[0-9]+|[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])"
)
_POWERS = re.compile(r"\{?([0-9]{1,15})\}?(?:\s?\^\s?\{?[0-9]{1,3}\}?)?")
_TIMES = re.compile(r"\s?(?:\*\*?|·|×|⋅|\\cdot|\\times|\bx\b)\s?")
_MANTISSA = re.compile(
    r"-?[1-9](?:[.,][0-9]+)?\s?(?:(?:\*|·|×|⋅|x|\\cdot|\\times)\s?10\s?(?:\^|\*\*)?\s?[({]?\s?[-+−]?\s?[0-9]+\s?[)}]?|"
    r"[eE][-+]?[0-9]+)"
)
_ROOT_BELOW = re.compile(
    r"/\s?\(?-?[0-9]*\s?\*?\s?(?:\\?sqrt|√)|\\frac\{(?:[^{}]|\{[^{}]*\})*\}\{[^{}]*(?:sqrt|√)|"
    r"\^\s?[({]?\s?-\s?(?:1/|\\frac|0?\.5|[0-9]/)"
)
_NUMERAL = re.compile(r"[-+]?(?:[$€£¥₹]\s?)?[0-9][0-9, ]*(?:\.[0-9]+)?")
_SPREAD = re.compile(r"\.[0-9]|sqrt|√|π|pi|/|\\frac|\^")
"""What rounding would change: a decimal, a root, a fraction, pi."""
_CHAIN = re.compile(r"(?<![<>!])=|≈|\\approx|\\simeq|~(?=\s?[0-9])")
_VALUE = re.compile(r"(?:[A-Za-z] ?= ?)?[-+$€£¥₹ ]*[0-9][0-9.,]*\s?(?:\\?%|[^\W\d_]{0,20}\.?)?")
_WRITTEN = r"(?![\w^{/])(?!\.[0-9])(?!\s?[/^])"
_BLANKS = r"\s*"


def undemanded(reference: str, answer: str, rule: str, context: Context) -> str | None:
    """Say why an answer of the right value does not do, ``None`` if it does.

    Args:
        reference: what the answer is compared with.
        answer: the final answer.
        rule: what marked it; "" where nothing did.
        context: the question.
    """
    if not context.question or not context.form or answer.strip() == reference.strip() or len(answer) > 600:
        return None
    last, model = plain(chain_end(answer)), plain(reference)
    if not last or last == model:
        return None
    asked = frozenset({"transforms"} & context.says if "free" in context.says else context.says)
    if ("transforms" in asked or not rule) and _echoes(context.question, model, {plain(answer), last}):
        return "it repeats what the question gives"
    if "decimal" in asked and not _gives(context.question, last):
        asked -= {"decimal"}  # a fraction that the question does not give is the writer's own work
    if (form := _misformed(asked, model, last)) is not None:
        return f"the question demands another form: {form}"
    if "rounded" in asked and _NUMERAL.fullmatch(model) and _SPREAD.search(last) and _exactly(model) != _exactly(last):
        return "the rounded value is not stated"
    return None


def echoed(answer: str, context: Context) -> bool:
    """Say whether a formula stands in the question as it is."""
    return "".join(plain(answer).split()).rstrip(".") in context.text


def chain_end(text: str) -> str:
    """Return the last member of a chain of equations and approximations."""
    return _CHAIN.split(text)[-1].strip(" $").rstrip(".;")


def _exactly(text: str) -> object:
    value = next(iter(read(text)), None)
    value = value.value if isinstance(value, Named) else value
    return value.node if isinstance(value, Scalar) else text


def _gives(question: str, fraction: str) -> bool:
    """Say whether the question holds a fraction or percentage of the same value as one in plain spelling."""
    value = next(iter(read(fraction.replace(":", "/"))), None)
    if not isinstance(value, Scalar):
        return False
    given = (next(iter(read(match.group())), None) for match in _GIVEN.finditer(plain(question[:4000])))
    return any(isinstance(one, Scalar) and one.node == value.node for one in given)


def _misformed(asked: frozenset[str], model: str, last: str) -> str | None:
    """The form that the reference has, the question demands and the answer has not."""
    fraction, decimal, percent = _FRACTION.fullmatch(last), _DECIMAL.fullmatch(last), _PERCENT.fullmatch(last)
    mixed = None if fraction else _MIXED.fullmatch(last)
    lacking = {
        "radians": not _DEGREES.search(model) and _DEGREES.search(last),
        "degrees": not _RADIANS.search(model) and _RADIANS.search(last),
        "primes": (_TIMES.search(model) or "^" in model) and _composite(last),
        "decimal": _DECIMAL.match(model) and (fraction or mixed or percent),
        "percent": ((fraction or mixed) and (_PERCENT.fullmatch(model) or _DECIMAL.fullmatch(model)))
        or (decimal and _PERCENT.fullmatch(model) and _exactly(model.strip("\\% ")) != _exactly(last)),
        "mixed": _MIXED.fullmatch(model) and (fraction or decimal),
        "improper": _FRACTION.fullmatch(model) and (mixed or decimal),
        "fraction": _FRACTION.fullmatch(model) and (decimal or percent),
        "scientific": _MANTISSA.fullmatch(model)
        and not _MANTISSA.fullmatch(last)
        and re.fullmatch(r"[-0-9.,eE+*^×·(){}\\a-z ]+", last),
        "rational": not _ROOT_BELOW.search(model) and _ROOT_BELOW.search(last),
    }
    return next((form for form, missing in lacking.items() if form in asked and missing), None)


def _composite(product: str) -> bool:
    """Say whether a product of numbers has a factor that is no prime."""
    factors = [_POWERS.fullmatch(factor.strip(" ()")) for factor in _TIMES.split(product)]
    return all(factor is not None for factor in factors) and any(
        not _prime(int(factor[1])) for factor in factors if factor is not None
    )


def _prime(n: int) -> bool:
    return n > 1 and all(n % k for k in range(2, min(int(n**0.5), 100_000) + 1))


def _echoes(question: str, model: str, spellings: set[str]) -> bool:
    """Say whether an expression stands in the question as it is, and is no mere number that the reference is too."""
    asked = plain(question[:4000])
    unspaced = "".join(asked.split())
    for text in spellings:
        flat = "".join(text.split()).rstrip(".")
        if not 2 <= len(flat) <= 200 or flat == "".join(model.split()) or not re.search(r"[0-9]", flat):
            continue
        if _NUMERAL.fullmatch(flat.strip("()")) and _VALUE.fullmatch(model):
            continue
        # A pattern made for one text costs more to compile than to search.
        if flat in unspaced and re.search(rf"(?<![\w.^/{{]){_BLANKS.join(map(re.escape, flat))}{_WRITTEN}", asked):
            return True
    return False
