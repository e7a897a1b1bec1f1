# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""An unmarked statement of the right value about something that the question does not speak of.

``There are 7 days in a week.`` answers no question about dice. Of a statement that something is, has or equals the
value every word that names a thing is looked up in the question: words of answers, of working and of school
mathematics name none, and a unit beside the value names none unless it is counted in another one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from assay.verify.caseless import Caseless
from assay.verify.math.foreign_doubt import prose
from assay.verify.math.frames import is_foreign
from assay.verify.math.governed import BREAK, around
from assay.verify.math.units import lookup

_ENDS = re.compile(r"(?<=[a-z0-9)$*}\]][.!?])\s+(?=[A-Z0-9$\\*(])|\n+")
_COPULA = Caseless(
    r"\b(?:is|are|was|were|equals|has|have|had|contains?|makes?)\b(?: (?:\w+ly|just|also|equal|to|about|exactly|the|"
    r"number|"
    r"a|an|total|of|only|now|then))*[\s$*\\({]*$",
)
_WORD = re.compile(r"(?<!\\)\b[A-Za-z]{3,}")
_COUNTED = re.compile(r"^[\s$*)}\]\\]*(?P<noun>[a-z]{3,}[^s\W])s\b")
_MANY = Caseless(r"\b(?:how many|number of|count|total|dimension|degree)\b")
_OF_THE_TASK = re.compile(
    r"\b(?:problem|question|exercise|task|item|page|chapter)(?:'s)? (?:number|no\.|#)(?: here)?(?: is| was|:)?\W*$",
    re.IGNORECASE,
)
_ASKS = Caseless(
    r"\b(?:the|what|how|find|solve|compute|calculate|evaluate|simplify|which|convert|determine|express|who|when|where|"
    r"each)\b",
    frequent=True,
)
NO_THINGS = frozenset(
    """
    neither either works counting middle problem problems question questions task exercise you need needs stand stay
    stays cancel cancels canceling cancelling the this that these those there their then than they them and are was
    were has have had for from with without into onto out off our your his her its she who whom whose which what
    when where why how all any both each every other another some such same only also just very more most less least
    few many much here now not nor but yet one two three four five six seven eight nine ten eleven twelve twenty
    thirty forty fifty hundred thousand million half third quarter first second last next final finally total totals
    sum sums difference product quotient remainder rest result results answer answers answered value values number
    numbers amount amounts count counts quantity figure solution solutions conclusion output outcome expression
    expressions equation equations formula formulas function functions term terms side sides left right hand given
    asked wanted required desired needed sought correct overall altogether together combined remaining remains over
    after before because since therefore thus hence consequently accordingly would will can could should must may
    might does did done doing make makes made making get gets got getting give gives gave giving take takes took
    taken taking find finds found finding use uses used using work worked working put puts putting let lets know
    known see seen say says compute computes computed computing computation calculate calculates calculated
    calculating calculation calculations evaluate evaluates evaluated evaluating evaluation simplify simplifies
    simplified simplifying simplification solve solves solved solving add adds added adding addition subtract
    subtracts subtracted subtracting subtraction multiply multiplies multiplied multiplying multiplication divide
    divides divided dividing division square squares squared cube cubes cubed power powers root roots factor factors
    factored factoring factorial reduce reduced reduces round rounded rounding convert converted conversion check
    checking checked verify verified step steps method follow follows followed following obtain obtained yield
    yields equal equals equivalent exactly precisely about approximately roughly nearest decimal decimals place
    places digit digits fraction fractions percent percentage percentages ratio proportion rate average mean median
    mode range variance deviation probability chance chances odds expected expectation area areas perimeter volume
    surface length lengths width height depth distance radius diameter circumference angle angles slope gradient
    intercept coordinate coordinates point points vertex vertices midpoint line lines edge edges face faces
    hypotenuse leg legs base bases triangle triangles rectangle circle polygon diagonal diagonals derivative
    derivatives integral antiderivative limit limits series sequence matrix determinant trace rank inverse transpose
    vector vectors magnitude norm modulus argument dot cross scalar eigenvalue eigenvalues real imaginary part parts
    complex conjugate integer integers prime primes even odd positive negative zero maximum minimum largest smallest
    greatest lowest highest biggest common multiple divisor divisors denominator numerator coefficient coefficients
    constant degree exponent logarithm log sine cosine tangent sin cos tan gcd lcm hcf domain discriminant variable
    unknown parameter polynomial quadratic linear set sets element elements subset subsets union intersection
    interval ways way choices combinations permutations arrangements possibilities possible cases case outcomes
    favourable favorable order pattern rule increase decrease change growth gain loss profit cost costs price prices
    money pay pays paid spend spends spent earn earns earned save saves saved worth sale discount tax bill fee speed
    velocity acceleration time times duration age ages old older younger years year weight mass temperature force
    energy density pressure current voltage resistance charge frequency period amplitude people person persons unit
    units item items object objects thing things piece pieces group groups pair pairs per apiece short long high low
    big small large new original initial previous above below between among within inside outside again once twice
    double triple simply directly clearly indeed obviously well binary hexadecimal octal roman notation form
    number's scientific standard simplest exact true false yes natural whole mixed improper proper absolute opposite
    reciprocal modulo mod congruent symbol atomic name word letter capital city country author date day week month
    hour clock o'clock century meaning that's it's looking
    """.split()
)
_IN_ONE = re.compile(
    r"\b(?:a|an|one|each|every) (?P<one>[a-z]{3,}) (?:has|have|contains|consists of|is|equals|"
    r"makes?)\b[^a-z]+(?P<other>[a-z]{3,})\b",
    re.IGNORECASE,
)
_OF_MINE = re.compile(
    r"\b(?:problem|question|exercise|task|item) (?:is|was) worth\W*$|\b(?:i|we) (?:worked|spent|thought|puzzled|"
    r"sat)\b[^,;:=]{0,40}$|"
    r"\b(?:took|cost) (?:me|us)\b[^,;:=]{0,30}$",
    re.IGNORECASE,
)
_WE = re.compile(r"\b(?:I|me|my|we|us|our|We|My)\b")
_RIVALS = (
    frozenset(("area", "perimeter", "volume", "circumference")),
    frozenset(("radius", "diameter")),
    frozenset(("numerator", "denominator")),
)
_QUANTITY = re.compile(r"\bthe (?P<name>[a-z]{4,})(?: (?:of|for)\b[^,;:]{0,40})? (?:is|equals)\W*$", re.IGNORECASE)
_OPERATOR = re.compile(r"\b(?:plus|minus|times|divided by)\b", re.IGNORECASE)
_WANTED = re.compile(r"\b(?:what(?:'s| is| are)|find|give|state) the (?P<thing>[a-z]{4,})\b", re.IGNORECASE)
_UNIT_PAIR = re.compile(
    r"\b(?P<one>[a-z]{3,})\b (?:in|per|to|make up|for)(?: (?:a|an|one|each|every|the|"
    r"any))?(?: \w+ of)?(?: an?)? (?P<other>[a-z]{3,})\b"
)


def elsewhere(lead: str, said: str, question: str, reference: str, agrees: Callable[[str], bool]) -> str | None:
    """Return what a statement is about that the question does not speak of, ``None`` if it may be about the answer.

    Args:
        lead: what stands before ``said`` in its sentence.
        said: an unmarked text that states the right value, and the rest of its line.
        question: one in another language than English is not looked up.
        reference: several answers in one, and one without a digit, are not asked about.
        agrees: whether a text is the reference.
    """
    if not any(map(str.isdigit, reference)) or "," in reference:
        return None
    before, behind = around(f"{lead} {said}", agrees)
    if not before.strip():
        return None
    before, behind = _ENDS.split(before)[-1], _ENDS.split(behind)[0]
    if (label := _OF_THE_TASK.search(before)) is not None and label.group()[:4].casefold() not in question.casefold():
        return label.group()
    if _calculated(before, question):
        return "another calculation"
    if (mine := _OF_MINE.search(before)) is not None and _WE.search(question) is None:
        return mine.group()
    if (rival := _rival(before, question)) is not None:
        return rival
    asked = _stems(question)
    counted = _COUNTED.match(behind)
    if counted is not None and _MANY.search(question) is None:
        noun = counted["noun"]
        spoken = set(_LETTERS.findall(question))
        if noun in spoken and f"{noun}s" not in spoken and lookup(noun) is None:
            return counted.group().strip()
    if _COPULA.search(before) is None or is_foreign(f"{before} {behind}") or not is_english(question):
        return None
    sentence = prose(f"{before} {behind}")
    if any(word[:4].casefold() in asked for word in _WORD.findall(sentence)):
        return None
    clause = prose(f"{before} {BREAK.split(behind)[0]}")
    words = [word for word in _WORD.findall(clause) if not word.endswith("ly")]
    things = [word for word in words if word.casefold() not in NO_THINGS]
    for pattern in (_UNIT_PAIR, _IN_ONE):
        pair = pattern.search(sentence)
        if pair is not None and _is_unit(pair["one"]) and _is_unit(pair["other"]):
            return pair.group()
    named = [word for word in things if not _is_unit(word)]
    return named[0] if named else None


_LETTERS = re.compile(r"[^\W\d_]+")


def _rival(before: str, question: str) -> str | None:
    """The perimeter where the area alone is asked for."""
    if (said := _QUANTITY.search(before)) is None:
        return None
    for names in _RIVALS:
        others = [name for name in names if name in question.casefold()]
        if said["name"].casefold() in names and others and said["name"].casefold() not in others:
            return None if any(name in before.casefold() for name in others) else said["name"]
    return None


def _calculated(before: str, question: str) -> bool:
    """Say whether a statement is about a sum or difference that the asked thing is a part of."""
    if _OPERATOR.search(before) is None or (asked := _WANTED.search(question)) is None:
        return False
    thing = asked["thing"]
    if thing.casefold() not in before.casefold() or _OPERATOR.search(question) is not None:
        return False
    operators = r"(?:plus|minus|times|divided by)"
    return (
        re.search(
            rf"\b(?:{operators} the {thing}|{thing} {operators})\b[^,;:=]*\b(?:is|equals)\b", before, re.IGNORECASE
        )
        is not None
    )


def is_english(question: str) -> bool:
    return _ASKS.search(question) is not None


@functools.lru_cache(1024)
def _is_unit(word: str) -> bool:
    unit = lookup(word.casefold())
    return unit is not None and unit.known


@functools.lru_cache(256)
def _stems(question: str) -> frozenset[str]:
    return frozenset(word[:4].casefold() for word in _WORD.findall(question) if word.casefold() not in _STOPS)


_STOPS = frozenset("the and for are was were has have had with what which who how many much that this from".split())

__all__ = ["NO_THINGS", "elsewhere", "is_english"]
