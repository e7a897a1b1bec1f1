"""Remarks of a set form: a slip warned of, what would be otherwise, another quantity, a rounded value, a comment.

``A frequent error here leads to 6.3, which is wrong.``, ``If order mattered, there would be 720.``, ``Its surface
area,
by the way, is 150 cm².``, ``Numerically this is about 8.485.``
"""

from __future__ import annotations

import re

from assay.verify.math.figures import near, numbers, other_quantity, plain, value
from assay.verify.math.remark_words import familiar

_VALUE = r"(?P<value>\$[^$]{1,120}\$|-?[0-9][0-9.,/]*[0-9]|[0-9]|[A-Z]{1,9})"
_SLIP = r"an? (?:common|frequent|typical|classic|popular) (?:error|mistake|slip|trap|pitfall|misconception)"
_ERROR = re.compile(
    rf"(?:(?:be careful|note|watch out|careful|caution)[:,!] )?(?:{_SLIP} (?:here )?(?:leads to|gives|is"
    rf"|is to (?:write|say|"
    rf"answer)) {_VALUE}(?:, which is (?:wrong|incorrect|not right))?|{_VALUE.replace('value', 'first')} is {_SLIP}"
    r"(?:, (?:as|because|since) (?P<reason>[^.!?]{4,120}))?)[.!]",
    re.IGNORECASE,
)


def _error(said: str, statement: str, _question: str) -> bool:
    """``A frequent error here leads to 6.3, which is wrong.``"""
    match = _ERROR.fullmatch(said)
    if match is None:
        return False
    named = (match["value"] or match["first"]).strip("$ .,")
    bare = re.sub(r"[\s$*\\{}]", "", statement)
    if re.sub(r"[\s\\{}]", "", named) in bare:
        return False
    mine, other = value(named), {value(number) for number in numbers(statement)}
    return mine not in other or mine is None


_HYPOTHETICAL = re.compile(
    r"if (?P<if>(?!you|we|i\b|it\b|this|that)[^,.!?]{3,80}), (?:there|he|she|they|we|you) (?:would|['’]d) "
    r"(?:be|have|need|get)\b(?P<then>[^.!?,]{2,80})(?:, so (?:he|she|they) (?:slowed|sped) (?:down"
    r"|up)(?: a bit)?)?[.!]",
    re.IGNORECASE,
)
_COUNTERFACTUAL = re.compile(r"\b(?:mattered|were|had (?!to\b)\w+|counted|allowed|was)\b", re.IGNORECASE)
_DEFENDED = re.compile(
    r"\b(?:i|me|my|answer\w*|correct\w*|right|wrong|real\w*|actual\w*|questions?|problem|exercise|ask\w*|grad\w+|key|"
    r"includ\w*|tax|properly|careful\w*|true|account|consider\w*|told|said|meant|read correct\w*|better|attention|"
    r"mistake\w*|error\w*|miss\w*|wanted|not|no|instead|proper\w*)\b",
    re.IGNORECASE,
)


def _elsewise(said: str, statement: str, question: str) -> bool:
    """``If order mattered, there would be 720.``"""
    match = _HYPOTHETICAL.fullmatch(said)
    if match is None or not _COUNTERFACTUAL.search(match["if"]) or _DEFENDED.search(said):
        return False
    return familiar(match["if"] + match["then"], f"{question} {statement}") and not numbers(said) & numbers(statement)


_ASIDE = r"(?:,? (?:by the way|in case you need it(?: too)?|for comparison|incidentally|on the other hand|meanwhile),?)"
_AMOUNT = r"(?P<amount>(?:about |roughly )?[$€£]?[0-9][0-9.,]* ?(?:square |cubic )?[A-Za-z/²³]{0,12}(?:\^[23])?)"
_NAMED = re.compile(
    rf"(?:by the way, |for comparison, |incidentally, )?(?:the|its) (?P<name>(?:[a-z]+ ){{0,2}}[a-z]+){_ASIDE} "
    rf"(?:is|would be) {_AMOUNT}[.!]|"
    r"(?:don['’]t|do not) (?:confuse|mix up) (?:this"
    r"|it) with the (?P<other>(?:[a-z]+ ){0,1}[a-z]+), which (?:is|would be) "
    r"(?P<its>[0-9][0-9.,]* ?[A-Za-z/²³]{0,12}(?:\^[23])?)[.!]",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"for comparison, (?P<list>(?:(?:and )?[0-9][0-9.,]* [a-z]{1,12} (?:is|are|would be) [0-9][0-9.,]* [a-z]{1,12}"
    r"(?:,? (?=and )|(?=\.)))+)\.",
    re.IGNORECASE,
)


def _quantity(said: str, statement: str, question: str) -> bool:
    """``Its surface area, by the way, is 150 cm².``, ``For comparison, 3 hours would be 180 minutes.``"""
    compared = _COMPARED.fullmatch(said)
    if compared is not None:
        given = numbers(question) | numbers(statement)
        pairs = re.findall(
            r"([0-9.,]+) ([a-z]+) (?:is|are|would be) ([0-9.,]+) ([a-z]+)", compared["list"], re.IGNORECASE
        )
        return bool(pairs) and not any(plain(a) in given or plain(b) in given or u == w for a, u, b, w in pairs)
    match = _NAMED.fullmatch(said)
    if match is None:
        return False
    name, amount = (match["name"], match["amount"]) if match["name"] else (match["other"], match["its"])
    return other_quantity(name, amount, statement, question)


_ABOUT = re.compile(
    r"(?:(?:numerically|as a decimal|in decimal form|as a percentage),? )?(?:(?:this|that|it)(?: is|['’]s)"
    r"|which is) (?:about|approximately|roughly|≈) "
    r"(?P<value>[$€£]?[0-9][0-9.,]*(?: (?:thousand|million|billion))?(?: ?%)?)(?P<unit> [a-z]{1,12})?[.!]",
    re.IGNORECASE,
)
_GIVEN = re.compile(r"\$([^$]+)\$|\*\*([^*]+)\*\*|\\\((.+?)\\\)|([0-9][0-9,]*(?:\.[0-9]+)?)")


def _about(said: str, statement: str, _question: str) -> bool:
    """``Numerically this is about 8.485.``, near the value that is stated."""
    match = _ABOUT.fullmatch(said)
    if match is None or (match["unit"] and match["unit"].strip() not in statement):
        return False
    rounded, exact = value(match["value"]), stated_value(statement)
    return rounded is not None and exact is not None and near(rounded, exact, 0.03 if "illion" in said else 0.003)


def stated_value(statement: str) -> float | None:
    """The number that a sentence states last: its last formula or bold piece, or its last number."""
    stated = [next(filter(None, found)) for found in _GIVEN.findall(statement)][-1:]
    return value(stated[0].rpartition("=")[2]) if stated else None


_COMPLEMENT = re.compile(
    r"in other words, (?:you|we|the customer) (?:only |just )?(?:pay|keep|have"
    r"|get)s? (?P<share>[0-9.]+) ?% of (?:the|its) "
    r"(?:\w+ ){0,2}\w+[.!]",
    re.IGNORECASE,
)


def _complement(said: str, statement: str, question: str) -> bool:
    """``In other words, you pay 85% of the original price.``"""
    match = _COMPLEMENT.fullmatch(said)
    if match is None or not familiar(
        said.partition(", ")[2], f"{question} only pay pays keep get customer original price"
    ):
        return False
    shares = re.findall(r"([0-9.]+) ?\\?%", statement)
    return len(set(shares)) == 1 and near(float(shares[0]) + float(match["share"].strip(".")), 100, 1e-9)


_COMMENT = re.compile(
    r"(?:that(?:['’]s| is)|what) (?:an?|quite an?) (?:(?:pretty|very|rather|really|quite) )?(?:brisk|nice|good"
    r"|steady|great|"
    r"solid|comfortable|decent|healthy|big|handy|fast|slow|lovely|leisurely|impressive) (?:pace|speed|saving"
    r"|savings|discount|"
    r"price|deal|distance|garden|profit|ride|trip|walk|score|harvest|collection|batch)"
    r"(?: for an? (?:[a-z]+ )?(?:ride|trip|walk|bike|car|run|train|garden|lamp|shirt|jacket|person|family"
    r"|cyclist|runner))?"
    r"[.!]|tough,? but doable[.!]|(?:nice|short|quick|easy) and (?:simple|easy|clean|neat|sweet)[.!]|"
    r"keep (?:up the good work|practi[cs]ing|going|it up)[.!]|you(?:['’]ve| have) got this[.!]|(?:great|good"
    r"|nice) (?:job|work)"
    r" (?:working (?:on|through) (?:this|it)|on the (?:setup|work))[.!]|enjoy(?: your (?:meal|ride|trip|walk"
    r"|rice|dinner))?[.!]|"
    r"(?:(?:all )?areas? (?:is|are)|volumes? (?:is|are)) (?:always )?(?:measured|given) in (?:square"
    r"|cubic) units[.!]|"
    r"this is an? (?:classic|standard|typical|common|simple) (?:[a-z]+ ){0,2}(?:problem|question|exercise"
    r"|application)[.!]|brr+[.!]|yum(?:my)?[.!]|bon app[eé]tit[.!]|happy (?:cycling|cooking|gardening|reading|"
    r"baking|shopping|learning|studying|hiking)[.!]|"
    r"i(?:['’]ve| have)? double-checked (?:each|every) step,? and everything (?:is consistent|checks out|agrees"
    r"|fits)[.!]|"
    r"i['’]d recommend (?:buying|getting|bringing) (?:a little|a bit|some) extra(?: to be on the safe side"
    r"|, just in case)?[.!]|"
    r"(?:don['’]t forget|remember) to (?:scale|adjust) the other ingredients(?: (?:by"
    r"|with) the same factor(?: of [0-9.]+)?)?"
    r"[.!]|(?:don['’]t forget|remember|be sure) to (?:write|include|state|mention|give|use) (?:the|your|square"
    r"|cubic) "
    r"(?:square |cubic )?units?[.!]|(?:don['’]t forget|(?:just )?remember|be sure) to count the decimal places[.!]|"
    r"fun fact: (?:those|these) are the (?:numbers|sides|digits) (?:from|of|on) the (?!wrong|other|next"
    r"|real)[a-z ]{3,40}[.!]|"
    r"it['’]s (?:always )?(?:good|wise) to check the domain: (?P<check>\$[^$]+\$), so the solution is valid[.!]",
    re.IGNORECASE,
)
"""What is said of the things of a problem, and advice about them; whole sentences."""


def _comment(said: str, _statement: str, _question: str) -> bool:
    return _COMMENT.fullmatch(said) is not None


def set_form(said: str, statement: str, question: str) -> bool:
    """Say whether a whole sentence is a remark of a set form that leaves the answer in ``statement`` as it is."""
    return any(
        kind(said, statement, question) for kind in (_error, _elsewise, _quantity, _about, _complement, _comment)
    )
