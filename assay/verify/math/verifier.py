"""The final answer is the reference, as mathematics."""

from __future__ import annotations

import functools
import importlib.util
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.exact import shorten
from assay.verify.extract import RULES, boxes, check_rules
from assay.verify.isolate import Failure, Workers
from assay.verify.math.chain import unchained
from assay.verify.math.conclusion import concluded
from assay.verify.math.context import Context, context_of
from assay.verify.math.contradicted import contradicted, unit_beside
from assay.verify.math.demanded import transforms, undemanded
from assay.verify.math.dressing import undress
from assay.verify.math.equal import matches
from assay.verify.math.final import Final, Missing, locate
from assay.verify.math.governed import negated, softened
from assay.verify.math.latex import plain
from assay.verify.math.offered import offered, repeated
from assay.verify.math.pieces import pieces, same_pieces, spoken_pieces
from assay.verify.math.read import MAX_LENGTH, read
from assay.verify.math.sentence import hedged, readable
from assay.verify.math.stance import uncommitted
from assay.verify.math.values import Choice, Items, Residue, Sign, Text, Truth
from assay.verify.math.within import another_option, in_sentence, pending, says_first

WORKERS = Workers("assay.verify.math.symbolic")
_HEAVY = re.compile(
    r"\\(?:int|sum|prod|lim|iint|oint|frac\{d|partial|nabla|det|begin\{cases|bmod|pmod|mod)(?![a-z])|∫|∑|∏"
)
_POWERS = re.compile(r"\^|\*\*")
HEAVY_LENGTH = 600
HEAVY_POWERS = 12


@part("verify", "math")
@dataclass(frozen=True, slots=True)
class Math:
    r"""Right iff the response's final answer equals the reference.

    ``task.reference`` is a number, plain text or LaTeX (an answer, or a solution with the answer in ``\boxed{}`` or
    after ``####``), or a list of answers any of which is accepted. The question (``task.question``) is only asked which
    unit and form it wants and which options it lists.

    The final answer is found by :func:`~assay.verify.math.final.locate` and read by
    :func:`~assay.verify.math.read.read`; :func:`~assay.verify.math.equal.matches` compares exactly, and
    :func:`~assay.verify.math.numbers.rounds` states when a rounded decimal is accepted. What our reader does not know
    (integrals, sums, limits) goes to math-verify in a worker process; if that takes too long the verifier abstains.

    Args:
        rules: markers of a final answer, see :func:`~assay.verify.extract.extract`.
        strict: a response without a marker is wrong; otherwise the last sentence that can hold an answer is read.
        digits: significant digits that a rounded decimal needs to stand for a number without finite expansion, >= 1.
        form: refuse the right value in another form than the question asks for (lowest terms, factored, expanded).
        symbolic: use math-verify where our own reader ends; needs ``assay[math]``.
        seconds: processor time for one such comparison.

    Raises:
        UsageError: an unknown rule, a number out of range, or ``symbolic`` without math-verify.
    """

    rules: tuple[str, ...] = RULES
    strict: bool = False
    digits: int = 6
    form: bool = True
    symbolic: bool = True
    seconds: float = 5.0

    def __post_init__(self) -> None:
        check_rules(self.rules, "verifier 'math'")
        if self.digits < 1 or not self.seconds > 0:
            raise UsageError(
                f"verifier 'math': digits {self.digits} must be at least 1 and seconds {self.seconds} above 0"
            )
        if self.symbolic and importlib.util.find_spec("math_verify") is None:
            raise UsageError(
                "verifier 'math' needs math-verify: pip install 'assay[math]', or set symbolic = false to "
                "abstain on what it reads"
            )

    def __call__(self, task: Task, response: str) -> Verdict:
        accepted = references(task.reference)
        if not accepted:
            return Verdict.abstain(f"task {task.id} has no reference to compare with")
        if not any(":" in rule for rule in self.rules):  # a pattern or a path is for the response as it stands
            response = undress(response)
        final = locate(response, self.rules, self.strict)
        if isinstance(final, Missing):
            return Verdict.wrong(final.reason)
        verdict = self._verdict(task, accepted, final, response)
        if (
            verdict.passed is False
            and not final.marker
            and (found := concluded(response, task.question, self.rules, self.strict)) is not None
        ):
            final, response = found
            second = self._verdict(task, accepted, final, response)
            return second if second.passed is not False else verdict
        return verdict

    def _verdict(self, task: Task, accepted: tuple[str, ...], final: Final, response: str) -> Verdict:
        context = context_of(task.question, self.digits, self.form)
        if not final.marker and (_echoes(response, task) or _copies(final.text, task.question, accepted)):
            return Verdict.wrong("it repeats the question")
        if not final.marker and (said := says_first(response)) is not None and said in read(accepted[0])[:1]:
            final = replace(final, text=response.strip())  # "False. A counterexample is 2."
        failure = ""
        named = final.framed and any(map(str.isalpha, final.after[:40]))
        behind = unit_beside("", final.text, final.after) if named else None
        for reference in accepted:
            passed = self._judge(reference, final, context)
            if passed is False and behind is not None:
                passed = self._judge(reference, replace(final, text=f"{final.text} {behind}"), context)
            if passed is True:
                reason = _refused(task.question, reference, final, context, response)
                return Verdict.right() if reason is None else Verdict.wrong(reason)
            if isinstance(passed, str):
                failure = passed
        if failure:
            return Verdict.abstain(failure)
        if not final.text and final.marked:
            return Verdict.wrong("several different answers are marked")
        return Verdict.wrong(f"answered {shorten(final.text)!r}, expected {shorten(accepted[0])!r}")

    def _judge(self, reference: str, final: Final, context: Context) -> bool | str:
        """Compare one reference; a text is the reason why it could not be done."""
        if (
            final.marked
            and _is_list(reference)
            and pieces(reference) is None
            and not any(matches(reference, one, context) for one in final.marked)
            and matches(reference, ", ".join(final.marked), context)
        ):
            return True
        text = final.text if (listed := unchained(final.text, context)) is None else listed
        wanted, found = pieces(reference), pieces(text)
        if wanted is not None:
            found = spoken_pieces(text) if found is None else found
            if found is None:
                return reference.strip() == text.strip()
            return same_pieces(wanted, found, lambda a, b: matches(a, b, context))
        if not text or len(text) > 2 * max(len(reference), MAX_LENGTH):
            return False
        kind = read(reference)[:1]
        textual = bool(kind) and isinstance(kind[0], Text | Truth | Choice | Sign)
        if (final.marker or textual or not (hedged(text) or pending(text, context))) and matches(
            reference, text, context
        ):
            return not (kind and isinstance(kind[0], Choice) and another_option(kind[0], final.after, context))
        if not final.framed or (textual and not readable(text)):
            passed = in_sentence(reference, final, context)
            if passed is not None:
                return passed
        if (_heavy(reference) or _heavy(text)) and not (kind and isinstance(kind[0], Residue)):
            return self._symbolic(reference, text)
        return False

    def _symbolic(self, reference: str, answer: str) -> bool | str:
        if not _heavy(reference) and not readable(reference):
            return False
        if (
            len(answer) > HEAVY_LENGTH
            or len(_POWERS.findall(answer)) > HEAVY_POWERS
            or re.search(r"\^\S{0,12}\^|!\s?!|[0-9]{40}", answer)
        ):
            return False
        if not self.symbolic:
            return "our reader does not know this expression, and symbolic = false"
        result = WORKERS.call("same", reference, answer, seconds=self.seconds)
        if isinstance(result, Failure):
            return f"math-verify: {result.reason}" if result.timed_out or result.cause == "unloaded" else False
        return bool(result)


def _heavy(text: str) -> bool:
    return _HEAVY.search(text) is not None


def references(reference: Any) -> tuple[str, ...]:
    """Return the accepted answers as texts; of a whole solution, the answer it marks."""
    several = reference if isinstance(reference, list | tuple) else [reference]
    found = []
    for one in several:
        if one is None or isinstance(one, dict | set | bytes):
            continue
        try:
            text = _final_of(str(one))
        except ValueError:  # an integer of more digits than Python prints
            continue
        readings = read(text)
        if len(text) > MAX_LENGTH or (readings and (any(map(str.isalnum, text)) or not isinstance(readings[0], Text))):
            found.append(text)
    return tuple(found)


@functools.lru_cache(4096)
def _final_of(text: str) -> str:
    if "####" in text:
        text = text.rpartition("####")[2]
    if "boxed" in text and (found := boxes(text)):
        text = text[found[-1].start : found[-1].end]
    return text.strip()


def _is_list(reference: str) -> bool:
    return any(isinstance(value, Items) and len(value.items) > 1 for value in read(reference))


def _refused(question: str, reference: str, final: Final, context: Context, response: str) -> str | None:
    """Say why an answer of the right value is none all the same, ``None`` if it is one."""
    # The same few texts are asked about again and again, the answer itself most of all; it was found to be right.
    agrees = functools.cache(functools.partial(_agrees, reference, context, final.text))
    if (reason := uncommitted(final, reference, agrees)) is not None:
        return reason
    if not _PLAIN.fullmatch(f"{final.lead}|{final.text}|{final.after[:200]}"):
        if (reason := _spoken_against(question, reference, final, response, agrees)) is not None:
            return reason
    elif repeated(response, final.after, reference, agrees):
        return "another answer is offered beside it"
    if not context.options and context.form and ("≈" in final.text or "approx" in final.text or transforms(question)):
        strictly = replace(context, approximate=False, exact=True)
        return undemanded(question, reference, final.text, functools.partial(_agrees, reference, strictly, ""))
    return None


_PLAIN = re.compile(
    r"\W*(?:(?:so|thus|hence|therefore),? )?(?:(?:the|our|my) )?(?:(?:final|correct) )?(?:answer|result)?(?: is)?\W*\|"
    r"(?:[-+0-9.,/ {}$]|\\d?frac)*\|[\s$.*)\]\\}]{0,200}",
    re.IGNORECASE,
)
"""A number with nothing said around it."""


def _spoken_against(
    question: str, reference: str, final: Final, response: str, agrees: Callable[[str], bool]
) -> str | None:
    line = final.after.partition("\n")[0][:200]
    said = f"{final.text} {line}"
    if negated(final.lead, said, final.marker, reference, agrees):
        return "the answer is denied"
    if softened(final.lead, said, question, reference, agrees):
        return "the answer is a guess"
    if offered(response, said, final.after, reference, agrees):
        return "another answer is offered beside it"
    return contradicted(question, reference, final.lead, final.text, final.after, agrees)


def _agrees(reference: str, context: Context, right: str, text: str) -> bool:
    """Say whether a text is the reference; ``right`` is one that is known to be, if it is a number."""
    if text == right and _NUMBER.fullmatch(text):
        return True
    return matches(reference, text, context)


_NUMBER = re.compile(r"-?[0-9][0-9.,/]*")


def _echoes(response: str, task: Task) -> bool:
    """Say whether a response without a marker only repeats the question, or ends in a sentence of it."""
    question = task.question
    if len(question) > 20_000 or len(response) > 20_000:
        return False
    flat = " ".join(response.split()).casefold().rstrip(" .?!")
    asked = " ".join(question.split()).casefold()
    if (len(flat.split()) >= 5 and flat in asked) or flat == asked.rstrip(" .?!"):
        return True
    last = re.split(r"(?<=[.!?])\s+", flat)[-1]
    if len(last.split()) >= 5 and last in asked:
        return True
    sentences = re.split(r"(?<=[.!?])\s+", asked)
    return any(len(s.split()) >= 5 and s.rstrip(" .?!") in last for s in sentences)


def _copies(text: str, question: str, accepted: tuple[str, ...]) -> bool:
    """Say whether an unmarked answer is a formula of the question, written alike, and no reference is."""
    if len(text) > 200 or len(question) > 20_000 or _OPERATOR.search(text) is None:
        return False
    said = _signature(text)
    return (
        len(said) >= 6
        and said in _signature(question)
        and not any(_signature(reference).endswith(said) for reference in accepted)
    )


_OPERATOR = re.compile(r"[-+*/^·×÷√²³⁴⁵⁶⁷⁸⁹]|\\(?:[dt]?frac|cdot|times|sqrt)")
_COMMAND = re.compile(r"\\[A-Za-z]+")


def _signature(text: str) -> str:
    """The letters, digits and signs of a formula, without commands, brackets and blanks."""
    bare = unicodedata.normalize("NFKC", _COMMAND.sub(" ", text)).replace("−", "-")
    return "".join(c for c in bare if c.isalnum() or c in "+-=")


__all__ = ["Math", "plain", "references"]
