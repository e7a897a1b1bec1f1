"""What a sentence adds behind the answer that it states: ``So you'd pay **€28** — a nice saving of €12!``"""

from __future__ import annotations

import re

from assay.verify.math.figures import near, numbers, plain, value
from assay.verify.math.set_remarks import stated_value

_AMOUNT = r"[$€£]?[0-9][0-9.,]*[0-9]?(?: ?%| [a-z]{1,12})?"
_NAMES = r"(?P<name>saving|savings|discount|profit|loss|gain|difference|deal|pace|bargain)"
_TAIL = re.compile(
    rf",? [—–-] an? (?:nice|good|great|tidy|decent|solid|big|handy) {_NAMES}(?: of {_AMOUNT})?(?P<end>[.!])|"
    rf", (?:making|for|leaving) an? {_NAMES.replace('name', 'made')} of {_AMOUNT}(?: (?:per|on each) [a-z]+)?\.|"
    r", (?:which makes (?:this|it)|making (?:this|it)|so (?:this|it) is) an? (?:acute|obtuse|isosceles|scalene"
    r"|equilateral) "
    r"triangle\.|"
    r", even though the (?:function|expression|fraction) (?:itself )?is (?:undefined|not defined) (?:at|for"
    r"|when) \$[^$]+\$\.|"
    r" \((?:(?:much|slightly|a bit) )?closer to (?P<side>[0-9.]+)\)\.|"
    r" \(an? [0-9]+-[0-9]+-[0-9]+ (?:right )?triangle,? (?:times|scaled by|multiplied by) [0-9]+\)\.|"
    r"(?:, or (?:roughly|about|approximately) | \((?:or )?(?:≈ ?|about |approximately "
    r"|roughly ))(?P<near>[0-9][0-9.,]*[0-9] ?%?)\)?\.",
    re.IGNORECASE,
)


def without_tail(text: str, question: str) -> str | None:
    """``text`` with its last sentence cut behind the answer, ``None`` where nothing understood is added there."""
    start = max(len(text) - 200, 0)
    found = next((m for m in _TAIL.finditer(text, start) if m.end() == len(text)), None)
    if found is None:
        return None
    kept = text[: found.start()].rstrip()
    sentence = kept.rpartition("\n")[2]
    if not numbers(sentence) and "$" not in sentence:
        return None
    name = found["name"] or found["made"]
    if name is not None and (name.lower()[:5] in question.lower() or name.lower()[:5] in sentence.lower()):
        return None
    if found["side"] is not None and plain(found["side"]) not in numbers(sentence):
        return None
    if found["near"] is not None:
        rounded, exact = value(found["near"]), stated_value(sentence)
        if rounded is None or exact is None or not near(rounded, exact, 0.005):
            return None
    return kept + "."
