"""What a remark behind an answer says, and whether it leaves the answer as it is.

``Note that 33 is odd.``, ``Since 11 is prime, the fraction is in lowest terms.`` A remark is understood by the
words that
open it, and by what it lacks: every word of it is of mathematics or of the question, none of them doubts, denies,
corrects or judges the answer, and no number in it is a value of what is asked for. What is not understood is no
remark.
"""

from __future__ import annotations

import re

from assay.verify.math.figures import consistent, numbers, true_sums
from assay.verify.math.foreign_doubt import retracted
from assay.verify.math.remark_words import harmless_words
from assay.verify.math.set_remarks import set_form
from assay.verify.math.withdrawal import HARD

MAX_LENGTH = 300
WHOLE = re.compile(r"[.!][*_)\s]*$|[A-Za-z0-9$][.!]?\)[.!*_\s]*$")
_TOKENS = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_STEP = re.compile(
    r"\W*(?:then )?(?:we |you )?(?:add|subtract|multiply|divide|take|use|square|halve|cut|split|choose|count"
    r"|combine|apply|"
    r"reduce|simplify|write|rewrite|include|measure|scale|read|come|to)\b(?! (?:up|the exponents)\b)",
    re.IGNORECASE,
)
"""A further step of working, which no note is."""


def remark(sentence: str, statement: str, question: str, before: str) -> bool:
    """Say whether ``sentence`` is a remark that leaves the answer as it is.

    Args:
        sentence: a whole sentence, or several in brackets.
        statement: the sentence before it that gives the answer.
        question: what is asked.
        before: all that stands before the remark.
    """
    said = sentence.strip(" \t_\n").replace("*", "").strip()
    inside = said.startswith("(") and said.rstrip(".! ").endswith(")")
    if inside:
        said = said.rstrip(".! ")[1:-1].strip(" *_")
        said += "" if said.endswith((".", "!")) else "."
    if len(said) > MAX_LENGTH or not WHOLE.search(said):
        return False
    understood = _understood(said, inside, statement, question, before)
    return understood and not HARD.search(said) and not retracted(said)


def _understood(said: str, inside: bool, statement: str, question: str, before: str) -> bool:
    if set_form(said, statement, question):
        return True
    if inside and true_sums(said) and not numbers(statement) & numbers(said):
        return True
    opened = _OPENED.match(said)
    if opened is None or _ON_TOP.search(said) or _NUMERIC.search(statement) is None:
        return False
    rest = said[opened.end() :]
    if not _enough(rest) or _STEP.match(rest) or not harmless_words(_EXAMPLE.sub(" ", rest), f"{question} {statement}"):
        return False
    if opened["example"]:
        return true_sums(rest) or (_ORDERED.search(before[-200:]) is not None and _EXAMPLE.fullmatch(rest) is not None)
    if opened["restated"] and not (true_sums(rest) and set(list(_TOKENS.findall(rest))[-1:]) <= numbers(statement)):
        return False
    return consistent(rest, statement, before, question)


_ON_TOP = re.compile(r"\bon top\b", re.IGNORECASE)
_NUMERIC = re.compile(r"[0-9]|^\W*(?:true|false|yes|no)\b|\b(?:true|false)\W*$", re.IGNORECASE)
"""A statement of a value; names are known from the question, and a remark may give another one."""
_OPENED = re.compile(
    r"(?:(?P<restated>equivalently|in other words|put differently|that is(?: to say)?),? |"
    r"(?P<example>(?:for|as an) (?:example|instance),? )|"
    r"(?:please |just |also )?(?:note|notice|recall|remember|observe|keep in mind"
    r"|bear in mind)(?: also)?(?:[:,] | that )|"
    r"(?:(?:fun|bonus|quick) fact|(?:quick |pro |study )?tip|side note|one thing to note)[:,] |by the way, "
    r"|interestingly, |"
    r"incidentally, |as a side note, |in general, |"
    r"(?:this|that|it)(?: is| works| holds| makes sense|['’]s) (?:because|since) |(?:because"
    r"|since) (?=[^,]{3,150}, )|"
    r"(?:you|we) can (?:check|verify|confirm) (?:this|it|that) by (?:[a-z]+ing){1}(?: back)?: |"
    r"(?:as a (?:quick )?(?:sanity )?check|to (?:double-)?check|to verify|(?:quick )?(?:sanity )?check)[,:] )",
    re.IGNORECASE,
)


def _enough(text: str) -> bool:
    return len(text.split()) > 2 or true_sums(text)


_ORDERED = re.compile(r"[<>≤≥∞\[]|\\(?:geq?|leq?|infty|cup)\b")
_EXAMPLE = re.compile(
    r"\$?(?P<name>[a-z])\s?=\s?(?P<at>[-−]?[0-9.]+)\$? gives \$?[-−0-9. ]+(?:\\[gl]eq?"
    r"|[<>≤≥=])[-−0-9. ]+\$?,? which is "
    r"true\.",
    re.IGNORECASE,
)
