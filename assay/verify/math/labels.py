"""Values with labels, and several values at once, as they are said: ``y is -6 and x is 7``, ``either 2 or 3``."""

from __future__ import annotations

import re

_SAID = re.compile(
    r"(?<![A-Za-z0-9_])(\"?'?[A-Za-z](?:_?[0-9])?'?\"?)\s?(?:is equal to|is|equals|are|:|->|⇒|est|es|ist|"
    r"ist gleich|é|è)\s?"
    r"(?=[-+]?\s?(?:[0-9.(√\\]|\$))"
)
_SEVERAL = re.compile(
    r"(?:both|either|the (?:two )?(?:roots|solutions|zeros|values|numbers|primes)(?: are)?)\s(?=.*(?: and | or |, ))",
    re.IGNORECASE,
)
_OR = re.compile(
    r"(?<=\S)\s?(?:或者?|또는|または|或|∨|\|\|)\s?(?=\S)|\s(?:oder|ou|o bien|o|lub|veya|ili|или|albo|eller|of|або|או|"
    r"أو|"
    r"या|hoặc|atau|ή)\s(?!(?:is|equals|=)\b|=)(?=[-+a-zA-Z0-9($\\])"
)
_AND = re.compile(
    r"(?<=\S)\s?(?:和|以及|與|与|と|과|∧|&&)\s?(?=\S)|\s(?:et|und|y|e|и|oraz|i|en|og|och|ve|та|and also|as well as|"
    r"plus also|και|और|dan|và|و)\s(?!(?:is|equals)\b|=)(?=[-+a-zA-Z0-9($\\])"
)
_POINT = re.compile(
    r"(?:the |at |at the |in )*(?:at(?= \()|point|vertex|pair|vector|coordinates?|ordered (?:pair|"
    r"triple))\s(?:with |where |is |are |at )?(?=\S)",
    re.IGNORECASE,
)
_MAPPING = re.compile(r"[A-Za-z]\s?:\s?[a-z]\s?(?:⇒|->)\s?")
_DECIMAL = re.compile(r"(?<=[0-9]),(?=[0-9])")
_QUOTES = re.compile(r"[\"']")


def relabelled(text: str) -> str | None:
    """Return ``text`` with equations for "x is 7" and English connectives, ``None`` if there is nothing to change."""
    if len(text) > 400:
        return None
    said = _POINT.sub("", text, count=1) if _POINT.match(text) else text
    said = _SEVERAL.sub("", said, count=1) if _SEVERAL.match(said) else said
    if " " in said or "|" in said or "&" in said or not said.isascii():
        said = _AND.sub(" and ", _OR.sub(" or ", said))
    said = _MAPPING.sub("", said, count=1) if _MAPPING.match(said) else said
    if said[:1] == "(" and said[-1:] == ")" and "," in said and (";" in said or "|" in said):
        said = re.sub(r"\s?[;|]\s?", ", ", _DECIMAL.sub(".", said))  # "(0,5; -3)"
    equations = _SAID.sub(lambda m: f"{_QUOTES.sub('', m[1])} = ", said)
    if equations != said and "," in equations and equations[:1] in "{⦃" and equations[-1:] in "}⦄":
        equations = equations[1:-1]
    return equations if equations != text else None
