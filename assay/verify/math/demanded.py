# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
r"""Whether an answer of the right value has the form that the question demands, and is not the question's own input.

:mod:`~assay.verify.math.form` compares parsed values; here it is the spelling that counts: "Convert 300° to radians"
is not answered by 300°, "Write 756 as a product of primes" not by 4 * 189. Where no form is demanded, any will do.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from fractions import Fraction

from assay.verify.caseless import Caseless, Worded
from assay.verify.math.evaluate import approximate
from assay.verify.math.latex import plain
from assay.verify.math.nodes import variables
from assay.verify.math.read import read
from assay.verify.math.values import Named, Scalar

_TRANSFORMS = re.compile(  # of a text in small letters, as all that is looked for in questions: much faster
    r"\b(?:convert|factor(?:i[sz]e)?|expand|simplify|rewrite|express|transform|change|reduce|round|evaluate|"
    r"rationali[sz]e|"
    r"complete the square|decompose|multiply out|solve|rearrange|turn|differentiate|integrate|calculate|compute|"
    r"(?:write|give|put)\b.{0,80}?\b(?:as|in|into|to|without|using)|prime factori[sz]ation)\b",
    re.DOTALL,
)
_DEMANDS: dict[str, Worded] = {
    name: Worded(pattern)
    for name, pattern in {
        "primes": r"\bprime factori[sz]|\bproduct of (?:its |the |powers of )?prime|\bprime decomposition|"
        r"\bprime factors of|"
        r"\binto (?:its )?primes?\b|\binto prime factors",
        "decimal": r"\b(?:as|to|into|in) (?:an? |the )?(?:\w+ )?decimals?\b(?! places?| numeral| system)(?: "
        r"(?:number|form|notation|"
        r"fraction|expansion))?",
        "fraction": r"\b(?:as|to|into|in) (?:an? )?(?:(?:common|simplified|reduced|proper|single|ordinary|"
        r"simple|vulgar|exact|"
        r"irreducible|quotient) ){0,2}(?:fractions?\b(?! of)|fractional form)|\blowest terms",
        "improper": r"\bimproper fraction",
        "mixed": r"\bmixed (?:number|fraction|numeral)",
        "percent": r"\b(?:as|to|into) (?:an? |the )?percent(?:age)?s?\b",
        "scientific": r"\bscientific notation|\bexponential notation|\bstandard (?:index )?form\b.{0,24}10",
        "rounded": r"\bround(?:ed)?\b|\bnearest (?!neighbou?r|to\b|point)|\bdecimal places?\b|\bsignificant "
        r"(?:figures?|digits?)|"
        r"\bcorrect to\b|\bto (?:one|two|three|four|[1-6]) (?:decimals?|d\.?p)\b",
        "radians": r"\b(?:to|in|into) radians?\b|\bradian measure",
        "degrees": r"\b(?:to|in|into) degrees?\b(?! (?:celsius|fahrenheit|c\b|f\b))|\bdegree measure",
        "rational": r"\brationali[sz]e\b|\brational denominator|\bwithout (?:a |any )?(?:radicals?|roots?|"
        r"surds?) in the denominator",
        "ten": r"\b(?:to|in|into) (?:the )?(?:decimal|denary|base[- ](?:10|ten)\b|base \$?10)",
    }.items()
}
_SIGNS = (
    "convert factor expan simplif writ express transform chang reduc round evaluat "
    "rational complete decompos multipl solv arrang turn differen integra calculat comput "
    "give put prime decimal fraction terms percent mixed notation form nearest "
    "significant correct radian degree base "
).split()
"""Parts of words one of which is in every question that asks for a form; looking for them is faster."""
_DEGREES = re.compile(r"°|\\circ|\bdeg(?:rees?)?\b")
_RADIANS = re.compile(r"π|\\?\bpi\b|\\pi|\brad(?:ians?)?\b")
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
_CHAIN = re.compile(r"=|≈|\\approx|≃|\\simeq|≅|\\cong|≐|\\doteq|~(?=\s?[0-9])")
_NOTE = re.compile(
    r"\s?(?:\\text\{)?\s*\((?=[^()]{0,20}[A-Za-z])[^()0-9=]{0,12}[0-9]{0,2}[^()0-9=]{0,30}\)\}?$|\\ldots"
)
_ENDLESS = re.compile(r"\.\.\.|…|\\[lcd]?dots")
_FREE = Caseless(
    r"\baccepted\b|\bany (?:\w+ )?form\b|\b(?:may|can) be (?:given|written|left)|\bneed not\b|\bor (?:as "
    r")?an? (?:fraction|decimal)",
    frequent=True,
)
_SPAN = re.compile(r"\$\$?([^$\n]{1,400}?)\$\$?|\\\((.{1,400}?)\\\)|\\\[(.{1,400}?)\\\]|\*\*([^*\n]{1,200})\*\*")
_SAID = re.compile(r"\b(?:is|are|equals|gives|gets?|get|becomes?|obtain|as|to|yields)\b\s*|:\s+")
_WRITTEN = r"(?![\w^{/])(?!\.[0-9])(?!\s?[/^])"
_BLANKS = r"\s*"


@functools.lru_cache(1024)
def transforms(question: str) -> bool:
    """Say whether a question asks to change something's form, or demands a form."""
    low = question[:4000].casefold()
    if not any(map(low.__contains__, _SIGNS)):
        return False
    return _TRANSFORMS.search(low) is not None or bool(demands(question))


@functools.lru_cache(1024)
def demands(question: str) -> frozenset[str]:
    """Return the forms that a question demands, by name."""
    head = question[:4000].casefold()
    if _FREE.search(head):
        return frozenset()
    return frozenset(name for name, pattern in _DEMANDS.items() if pattern.search(head))


def chain_end(text: str) -> str:
    """Return the last member of a chain of equations and approximations."""
    return _CHAIN.split(_NOTE.sub("", text))[-1].strip(" $").rstrip(".;")


def _stated(text: str) -> str:
    """The expression that an answer, or the sentence around it, states."""
    spans = [next(group for group in match.groups() if group) for match in _SPAN.finditer(text)]
    if spans and re.search(r"[0-9\\]", _SPAN.sub(" ", text)) is None:
        text = spans[-1]
    elif re.search(r"[A-Za-z]{3}", text) and "\\" not in text:
        text = _SAID.split(text)[-1]
    return text.strip().strip("$* ").rstrip(".")


_AS_ASKED = re.compile(r",? as (?:was )?(?:required|requested|asked|wanted|needed|desired)[\s.!]*$", re.I)


def undemanded(question: str, reference: str, answer: str, exactly: Callable[[str], bool]) -> str | None:
    """Say why an answer of the right value does not do, ``None`` if it does.

    Args:
        question: the task's text.
        reference: what the answer is compared with.
        answer: the final answer, or the sentence that states it.
        exactly: whether a text is the reference, with no rounding allowed.
    """
    if not question or answer.strip() == reference.strip() or len(answer) > 600:
        return None
    said = _stated(_AS_ASKED.sub("", answer))
    written = plain(said)
    last = plain(chain_end(said))
    model = plain(reference)
    if not last or last == model:
        return None
    if _CHAIN.search(said) and _misrounded(reference, last, _ENDLESS.search(answer) is not None):
        return "the last member of the chain is another value"
    if _TRANSFORMS.search(question[:4000].casefold()) and _echoed(question, model, written, last):
        return "it repeats what the question gives"
    asked = demands(question)
    if not asked:
        return None
    if "decimal" in asked and not _gives(question, last):
        asked -= {"decimal"}  # a fraction that the question does not give is the writer's own work
    forms = _misformed(asked, model, last)
    if forms is not None:
        return f"the question demands another form: {forms}"
    if "rounded" in asked and _NUMERAL.fullmatch(model) and _spread(last) and not exactly(last):
        return "the rounded value is not stated"
    return None


def _gives(question: str, fraction: str) -> bool:
    """Say whether the question holds a fraction or percentage of the same value as one in plain spelling."""
    value = next(iter(read(fraction.replace(":", "/"))), None)
    if not isinstance(value, Scalar):
        return False
    given = (next(iter(read(match.group())), None) for match in _GIVEN.finditer(plain(question[:4000])))
    return any(isinstance(one, Scalar) and one.node == value.node for one in given)


def _misrounded(reference: str, last: str, cut: bool) -> bool:
    """Say whether a decimal that ends a chain is not the reference's value rounded (or ``cut``) to its places."""
    value = next(iter(read(reference)), None)
    value = value.value if isinstance(value, Named) else value
    if not isinstance(value, Scalar) or value.unit or value.percent or not re.fullmatch(r"-?[0-9]+\.[0-9]{1,12}", last):
        return False
    rough = approximate(value.node) if not variables(value.node) else None
    unit = 10.0 ** -len(last.partition(".")[2])
    error = unit if cut else unit / 2
    return rough is not None and abs(rough.imag) < 1e-9 and abs(rough.real - float(last)) > error + 1e-9 * unit


def _spread(last: str) -> bool:
    """Say whether an expression is one that rounding would change: a decimal, a root, a fraction, pi."""
    return (
        re.search(r"\.[0-9]|sqrt|√|π|pi|/|\\frac|\^", last) is not None
        and re.search(r"[a-z]{3,}", last.replace("sqrt", "").replace("frac", "")) is None
    )


def _misformed(asked: frozenset[str], model: str, last: str) -> str | None:
    if "radians" in asked and not _DEGREES.search(model) and _DEGREES.search(last):
        return "radians"
    if "degrees" in asked and not _RADIANS.search(model) and _RADIANS.search(last):
        return "degrees"
    if "primes" in asked and (_TIMES.search(model) or "^" in model) and _composite(last):
        return "primes"
    fraction, decimal = _FRACTION.fullmatch(last), _DECIMAL.fullmatch(last)
    mixed = None if fraction else _MIXED.fullmatch(last)
    if "decimal" in asked and _DECIMAL.match(model) and (fraction or mixed or _PERCENT.fullmatch(last)):
        return "decimal"
    if "percent" in asked and (fraction or mixed) and (_PERCENT.fullmatch(model) or _DECIMAL.fullmatch(model)):
        return "percentage"
    if (
        "percent" in asked
        and _PERCENT.fullmatch(model)
        and decimal
        and Fraction(model.strip("\\% ") or 0) != Fraction(last.strip(". …"))
    ):
        return "percentage"
    if "mixed" in asked and _MIXED.fullmatch(model) and (fraction or decimal):
        return "mixed number"
    if "improper" in asked and _FRACTION.fullmatch(model) and (mixed or decimal):
        return "improper fraction"
    if "fraction" in asked and _FRACTION.fullmatch(model) and (decimal or _PERCENT.fullmatch(last)):
        return "fraction"
    if (
        "scientific" in asked
        and _MANTISSA.fullmatch(model)
        and not _MANTISSA.fullmatch(last)
        and re.fullmatch(r"[-0-9.,eE+*^×·(){}\\a-z ]+", last)
    ):
        return "scientific notation"
    if "rational" in asked and not _ROOT_BELOW.search(model) and _ROOT_BELOW.search(last):
        return "rational denominator"
    if (
        "ten" in asked
        and re.fullmatch(r"[0-9]+", model)
        and (base := re.search(r"_\{?\(?([0-9]{1,2})", last))
        and base[1] != "10"
    ):
        return "base ten"
    return None


def _composite(product: str) -> bool:
    """Say whether a product of numbers has a factor that is no prime."""
    factors = [_POWERS.fullmatch(factor.strip(" ()")) for factor in _TIMES.split(product)]
    return all(factor is not None for factor in factors) and any(
        not _prime(int(factor[1])) for factor in factors if factor is not None
    )


def _prime(n: int) -> bool:
    return n > 1 and all(n % k for k in range(2, min(int(n**0.5), 100_000) + 1))


def _echoed(question: str, model: str, written: str, last: str) -> bool:
    """Say whether an expression stands in the question as it is, and is no mere number that the reference is too."""
    asked = _unsized(plain(question[:4000]))
    unspaced = "".join(asked.split())
    for text in {written, last}:
        flat = _unsized("".join(text.split())).rstrip(".")
        if not 2 <= len(flat) <= 200 or flat == "".join(model.split()) or not re.search(r"[0-9]", flat):
            continue
        if _NUMERAL.fullmatch(flat.strip("()")) and _plain_number(model):
            continue
        # A pattern made for one text costs more to compile than to search.
        if flat in unspaced and re.search(rf"(?<![\w.^/{{]){_BLANKS.join(map(re.escape, flat))}{_WRITTEN}", asked):
            return True
    return False


def _unsized(text: str) -> str:
    return text.replace("\\left", "").replace("\\right", "")


def _plain_number(model: str) -> bool:
    """Say whether the reference is a number, perhaps with a unit or in a name: "x = 5", "5 cm"."""
    return re.fullmatch(r"(?:[A-Za-z] ?= ?)?[-+$€£¥₹ ]*[0-9][0-9.,]*\s?(?:\\?%|[^\W\d_]{0,20}\.?)?", model) is not None
