"""The final answer is the reference, as mathematics."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import RULES, boxes, check_rules
from assay.verify.isolate.workers import Failure, Workers
from assay.verify.math.chain import unchained
from assay.verify.math.claims import claimed
from assay.verify.math.conclusion import concluded, remarked
from assay.verify.math.context import Context, context_of
from assay.verify.math.contradicted import unit_beside
from assay.verify.math.dressing import ascii_digits, undress
from assay.verify.math.echoes import copies, echoes
from assay.verify.math.equal import as_written, matches
from assay.verify.math.final import Final, Missing, locate
from assay.verify.math.held import refused
from assay.verify.math.latex import plain
from assay.verify.math.pieces import pieces, same_pieces, spoken_pieces
from assay.verify.math.plainly import plainly
from assay.verify.math.prefaces import stated
from assay.verify.math.read import MAX_LENGTH, read
from assay.verify.math.remainders import remainders
from assay.verify.math.sentence import hedged, readable
from assay.verify.math.several_parts import has_parts
from assay.verify.math.spoken import in_digits
from assay.verify.math.values import Choice, Items, RealSet, Residue, Sign, Text, Truth, Value
from assay.verify.math.within import another_option, in_sentence, pending, says_first
from assay.verify.math.worded import absent, worded
from assay.verify.text.exact import shorten

WORKERS = Workers("assay.verify.math.symbolic")
_HEAVY = re.compile(
    r"\\(?:int|sum|prod|lim|iint|oint|frac\{d|partial|nabla|det|begin\{cases|bmod|pmod|mod)(?![a-z])|∫|∑|∏"
)
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
        rules: markers of a final answer, see :func:`~assay.verify.answer.extract.extract`.
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
            if (found := remarked(response, task.question, self.rules, self.strict)) is None:
                return Verdict.wrong(final.reason)
            final, response = found
        verdict = self._verdict(task, accepted, final, response)
        if (
            verdict.passed is False
            and not final.marker
            and (found := concluded(response, task.question, self.rules, self.strict)) is not None
        ):
            final, response = found
            second = self._verdict(task, accepted, final, response)
            verdict = second if second.passed is not False else verdict
        if verdict.passed is False and final.text:
            further = _further if verdict.feedback.startswith("answered") else _prefaced
            for said in further(final, response, task.question, accepted):
                second = self._verdict(task, accepted, said, response)
                if second.passed is True:
                    return second
        return verdict

    def _verdict(self, task: Task, accepted: tuple[str, ...], final: Final, response: str) -> Verdict:
        context = context_of(task.question, self.digits, self.form)
        if not final.marker and (echoes(response, task) or copies(final.text, task.question, accepted)):
            return Verdict.wrong("it repeats the question")
        first = None if final.marker or final.framed else says_first(response)
        if first is not None and first in read(accepted[0])[:1]:
            final = replace(final, text=response.strip())  # "False. A counterexample is 2."
        failure = ""
        named = final.framed and any(map(str.isalpha, final.after[:40]))
        behind = unit_beside("", final.text, final.after) if named else None
        for reference in accepted:
            passed = self._judge(reference, final, context)
            if passed is False and behind is not None:
                passed = self._judge(reference, replace(final, text=f"{final.text} {behind}"), context)
            if passed is True:
                reason = refused(task.question, reference, final, context, response)
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
            and any(isinstance(value, Items) and len(value.items) > 1 for value in read(reference))
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
        if final.marker and not context.options and as_written(text) == as_written(reference):
            return True  # many right answers need not be read
        kind = read(reference)[:1]
        textual = bool(kind) and isinstance(kind[0], Text | Truth | Choice | Sign)
        stated = final.marker or textual or not ((not final.framed and hedged(text)) or pending(text, context))
        if stated and matches(reference, text, context):
            return not (kind and isinstance(kind[0], Choice) and another_option(kind[0], final.after, context))
        if not final.framed or (textual and not readable(text)):
            passed = in_sentence(reference, final, context)
            if passed is not None:
                told = _in_words(kind, text, context.question)
                return told or (passed and not absent(kind[0]))
        if _in_words(kind, text, context.question):
            return True
        if _heavy(text) and "".join(plain(text).split()).rstrip(".") in context.text:
            return False  # what is to be computed, not what comes out
        if (_heavy(reference) or _heavy(text)) and not (kind and isinstance(kind[0], Residue)):
            return self._symbolic(reference, text)
        return False

    def _symbolic(self, reference: str, answer: str) -> bool | str:
        if not _heavy(reference) and not readable(reference):
            return False
        if (
            len(answer) > HEAVY_LENGTH
            or answer.count("^") + answer.count("**") > HEAVY_POWERS
            or re.search(r"\^\S{0,12}\^|!\s?!|[0-9]{40}", answer)
        ):
            return False
        if not self.symbolic:
            return "our reader does not know this expression, and symbolic = false"
        result = WORKERS.call("same", reference, answer, seconds=self.seconds)
        if isinstance(result, Failure):
            return f"math-verify: {result.reason}" if result.timed_out or result.cause == "unloaded" else False
        return bool(result)


def _prefaced(final: Final, response: str, question: str, accepted: tuple[str, ...]) -> Iterator[Final]:
    """Yield what an unmarked sentence states apart from a preface that denies or supposes something else."""
    if final.marker:
        return
    kind = next(iter(read(accepted[0])), None)
    for text, exactly in stated(f"{final.lead} {final.text}", question, isinstance(kind, Truth)):
        yield replace(final, text=text, framed=exactly, lead="")


def _further(final: Final, response: str, question: str, accepted: tuple[str, ...]) -> Iterator[Final]:
    """Yield further texts that may be the final answer: several last lines, or less than the last sentence."""
    if not final.marker and any(has_parts(reference, question) for reference in accepted):
        lines = [line for line in response[-800:].split("\n") if line.strip()]
        for several in range(2, min(len(lines), 8) + 1):
            yield replace(final, text="\n".join(lines[-several:]), framed=True)
    yield from _prefaced(final, response, question, accepted)
    if not final.marker:
        for before, text in plainly(f"{final.lead} {final.text}".strip(), question):
            yield replace(final, text=text, framed=True, lead=before)
    wanted = any(any(map(str.isdigit, reference)) for reference in accepted)
    for before, text, behind in remainders(final.text, question):
        said = in_digits(text) if wanted and not any(map(str.isdigit, text)) else text
        if not wanted or any(map(str.isdigit, said)):
            lead, after = f"{final.lead} {before}".strip(), behind + final.after
            yield replace(final, text=said, framed=True, lead=lead, after=after)


def _in_words(kind: tuple[Value, ...], text: str, question: str) -> bool:
    """Say whether a text says in words what the reference is, where that is no number."""
    if kind and isinstance(kind[0], Truth):
        return claimed(kind[0], text, question)
    return bool(kind) and isinstance(kind[0], RealSet | Text) and worded(kind[0], text, question)


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
        said = any(map(str.isalnum, text)) and plain(text).strip(" .,;:*`~_{}")
        if len(text) > MAX_LENGTH or said or _mathematical(text):
            found.append(text)
    return tuple(found)


def _mathematical(text: str) -> bool:
    return any(not isinstance(value, Text) for value in read(text)[:1])


@functools.lru_cache(4096)
def _final_of(text: str) -> str:
    if "####" in text:
        text = text.rpartition("####")[2]
    if "boxed" in text and (found := boxes(text)):
        text = text[found[-1].start : found[-1].end]
    return ascii_digits(text.strip())


__all__ = ["Math", "plain", "references"]
