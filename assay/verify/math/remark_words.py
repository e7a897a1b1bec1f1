"""The words of remarks: those of mathematics and of the question, and none that takes a stand."""

from __future__ import annotations

import re

from assay.verify.math.foreign_doubt import prose

_STANCE = re.compile(
    r"\b(?:i|me|my|mine|he|him|his|she|her|they|us|nor?|or|never|none|nothing|nobody|noone|neither|if|unless|whether|"
    r"maybe|perhaps|may|might|could|should|must|ought|would|but|however|yet|still|though|although|instead"
    r"|rather|else|"
    r"otherwise|actual\w*|real|really|truth|true|right\b(?! (?:triangle|angle))|correct\w*|wrong\w*|false|answers?|"
    r"results?|solutions?|key|"
    r"grad(?:e|er|ing)|references?|teacher|friends?|mother|father|told|tells?|sa(?:y|ys|id)|ask\w*|lie|lies"
    r"|lied|lying|"
    r"invent\w*|made|make[sd]? up|chose|story|stor(?:y|ies)|jokes?|fool\w*|guess\w*|luck\w*|random\w*|trick\w*|also"
    r"|another|alternative\w*|better|best|clos(?:e|er|est)|double|more|less|fewer|least|most|plus|tax\w*"
    r"|fees?(?<!base fee)|"
    r"tips?|shipping|remov\w*|exclud\w*|omit\w*|miss\w*|forg[eo]t\w*|ignor\w*|chang\w*|replac\w*|edit|updat\w*"
    r"|again|redo|"
    r"finally|next|later|remain\w*|left|extra|additional\w*|claim\w*|idea|know|hope|wish|dream|trust|show(?!s|n|\b)|"
    r"different\w*|vary|varies|depend\w*(?<!not depend)|except|only|too|supposed|ridiculous|absurd|impossible"
    r"|nonsense|"
    r"crazy|silly|funny|useless|bad|poor|so-called|opposite|contrary|reverse|fake|sure|certain\w*|copied"
    r"|stole\w*|cheat\w*|"
    r"(?<!odd )(?<!even )(?<!prime )(?<!whole )numbers?|values?|figures?|given|(?<!same )factor of [0-9]"
    r"|in (?:feet|inch(?:es)?|yards?|miles?|meters?|metres?|(?:centi|milli|kilo)met(?:er|re)s?|[ckm]m|"
    r"grams?|kilograms?|pounds?|ounces?|liters?|litres?|gallons?|dollars?|cents?|euros?|pounds?|percent)"
    r"|formula is|sign|negative|minus|units?|april|today|pigs?|twice|thrice|triple|half of|(?:short|long|small"
    r"|larg|great|bigg|high|low|"
    r"cheap|old|young|fast|slow|tall|heavi|light|strict|few|thick|wid)er|costlier|round\w*|estimate\w*"
    r"|approximat\w*|about|around|roughly|nearly|almost)\b|n['’]t\b|[?❌✗✘\"“”«»]|\.\.\.|…",
    re.IGNORECASE,
)
"""What no remark holds: who speaks or is quoted, doubt, denial, judgement, a change, a further step."""
_NOT = re.compile(r"\bnot\b", re.IGNORECASE)
_NOT_FINE = re.compile(
    r"\b(?:is|are|but) not (?:0|zero|negative|prime|even|odd|divisible|a multiple|multiples)\b|\b(?:do"
    r"|does) not (?:divide|"
    r"matter|depend|affect)\b|, not \w{3,}ing\b",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"(?!this is an? (?:acute|obtuse|isosceles|scalene|equilateral|linear|quadratic|combination"
    r"|permutation)\b)\b(?:it|this|that|these|those|which|above|all|everything|anything|something|statement"
    r"|one)(?:['’]s|\s+"
    r"(?:is|was|are|were|has|had|will|can|cannot|does|seems?|looks?|sounds?|comes|goes|holds?|fails?))\b",
    re.IGNORECASE,
)
"""Words that speak of the answer without a name."""
_WORDS = """
the a an of in on at by to for from with and as is are be been has have had its their each every both all any some
which
that when where while into per between within because since here there why we you one those just as well so together
itself after
before over under than

triangle* rectangle* square* cube* circle* quadrilateral* polygon* hexagon* angle* side* leg* hypotenuse edge* face*
vertex
vertices corner* radius diameter circumference area* perimeter volume* length* width* height* base surface point*
line*
prime* factor* divisor* multiple* fraction* numerator* denominator* decimal* place* percent* digit* exponent* power*
root*
radicand square bracket* interval parabola* graph* slope function* expression* inequality variable* term* coefficient*
polynomial* discriminant determinant matrix inverse invertible theorem* formula pythagorean order* group* arrangement*
combination* permutation* outcome* probability event* sum difference product quotient remainder average mean median
range
pair* triple* integer* hour* minute* second* day* week* month* year* cent* dollar* fee fixed rule property definition

multipl* add adds adding subtract* divid* divis* squar* appl* use* using combin* simplif* factor* count* choose
means mean
gives give equals up opens lie matter* work* scal* includ* defin* measur* reduc* divide* write rewrit* split* comes
come
top undo undoes satisf* contain* hold* follow* recall read had pace old extra slowed down bit

even odd equal same positive complex acute obtuse isosceles common lowest highest longest shortest simplest largest
smallest
constant linear quadratic upward upwards downward downwards consecutive cubic whole boundary perfect greatest distinct
right interior exterior already two three four five six eight
"""
"""The words of remarks beside those of the question and of the statement; ``*`` stands for any end."""
_WHOLE_WORDS = frozenset(word for word in _WORDS.split() if not word.endswith("*"))
_STEMS = tuple(word.rstrip("*") for word in _WORDS.split() if word.endswith("*"))
_LETTERS = re.compile(r"[A-Za-z]+")


def harmless_words(text: str, known: str) -> bool:
    """Say whether every word is of mathematics or in ``known``, and none takes a stand."""
    without = _NOT_FINE.sub(" ", text)
    if _STANCE.search(without) or _POINTS.search(without) or _NOT.search(without):
        return False
    return familiar(text, known)


def familiar(text: str, known: str) -> bool:
    """Say whether every word of ``text`` is of mathematics or begins like one of ``known``."""
    there = {word.lower()[:5] for word in _LETTERS.findall(known) if len(word) > 2}
    words = [word.lower() for word in _LETTERS.findall(prose(_NOT_FINE.sub(" ", text)))]
    return all(
        word in _WHOLE_WORDS or len(word) < 2 or word.startswith(_STEMS) or (len(word) > 2 and word[:5] in there)
        for word in words
    )
