"""The final answer is the reference, as mathematics."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import re
from dataclasses import dataclass
from typing import Any, Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.commit import Marked, Refused, commit
from assay.verify.answer.extract import RULES, boxes, check_rules
from assay.verify.answer.place import marked, within
from assay.verify.answer.spans import Span
from assay.verify.answer.undress import Unfinished, ascii_digits, undress
from assay.verify.isolate.workers import Failure, Workers
from assay.verify.math.equal.matches import as_written, matches
from assay.verify.math.equal.pieces import pieces, same_pieces
from assay.verify.math.expressions.values import Items, Residue, Scalar, Text, Truth, Value
from assay.verify.math.question.context import Context, context_of
from assay.verify.math.question.demanded import echoed, undemanded
from assay.verify.math.read.latex import plain
from assay.verify.math.read.reading import MAX_LENGTH, read
from assay.verify.math.sentence import announced, concluded, last_words, states, truth, verdict_line
from assay.verify.text.exact import shorten

WORKERS = Workers("assay.verify.math.symbolic")
_HEAVY = re.compile(
    r"\\(?:int|sum|prod|lim|iint|oint|frac\{d|partial|nabla|det|begin\{cases|bmod|pmod|mod)(?![a-z])|∫|∑|∏"
)
_UNIT_BEHIND = re.compile(
    r"[\s$\\)\]]*((?:\\text\s?\{\s?)?[^\W\d_]{1,20}(?:\^?[23²³])?(?:/[^\W\d_]{1,10})?|[°%]\s?[CF]?)"
)
HEAVY_LENGTH = 600
HEAVY_POWERS = 12


@part("verify", "math")
@dataclass(frozen=True, slots=True)
class Math:
    r"""Right iff the response's final answer equals the reference; a verdict says which stage decided it.

    1. *undress*: thinking, comments and markup are put off (:func:`~assay.verify.answer.undress.undress`);
    2. *locate*: tags, boxes, ``####`` and announcements are found (:func:`~assay.verify.answer.extract.extract`);
    3. *commit*: the last mark decides, unless what touches it makes it none
       (:func:`~assay.verify.answer.commit.commit`);
    4. *demand*: an echo of the question or reference is no answer, and a form that the question demands counts
       (:mod:`~assay.verify.math.question.demanded`, :mod:`~assay.verify.math.question.form`);
    5. *read*: the text becomes values (:func:`~assay.verify.math.read.reading.read`);
    6. *equal*: they are compared exactly (:func:`~assay.verify.math.equal.matches.matches.matches`);
       :func:`~assay.verify.math.equal.numbers.rounds` states when a rounded decimal is accepted.

    Prose around a mark is not judged: a policy that marks the right value has found it. What the reader does not know
    (integrals, sums, limits) goes to math-verify in a worker process; if that takes too long the verifier abstains.

    ``task.reference`` is a number, plain text or LaTeX (an answer, or a solution with the answer in ``\boxed{}`` or
    after ``####``), or a list of answers any of which is accepted. The question (``task.question``) is only asked which
    unit and form it wants and which options it lists.

    Args:
        rules: what marks a final answer, see :func:`~assay.verify.answer.extract.extract`.
        unmarked: a response without a mark: ``last``, the value of its last sentence that holds one counts; ``refuse``,
            it is wrong, and the verdict's part ``marked`` is 0, so that a run can count such responses by themselves.
        digits: significant digits that a rounded decimal needs to stand for a number without finite expansion, >= 1.
        form: refuse the right value in another form than the question asks for (lowest terms, factored, expanded).
        symbolic: use math-verify where our own reader ends; needs ``assay[math]``.
        seconds: processor time for one such comparison.

    Raises:
        UsageError: an unknown rule, a value out of range, or ``symbolic`` without math-verify.
    """

    rules: tuple[str, ...] = RULES
    unmarked: Literal["last", "refuse"] = "last"
    digits: int = 6
    form: bool = True
    symbolic: bool = True
    seconds: float = 5.0

    def __post_init__(self) -> None:
        check_rules(self.rules, "verifier 'math'")
        if self.unmarked not in ("last", "refuse"):
            raise UsageError(f"verifier 'math': unmarked is {self.unmarked!r}, give 'last' or 'refuse'")
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
        kind = next(iter(read(accepted[0])), None)
        response, found = self._found(response, kind)
        if isinstance(found, Refused):
            return Verdict.wrong(f"{found.stage}: {found.reason}")
        if found is None and self.unmarked == "refuse":
            return Verdict(0.0, False, {"marked": 0.0}, "locate: no answer is marked")
        texts = _said(found, response, task.question, kind)
        if not texts:
            return Verdict.wrong("commit: several values are marked" if found else "locate: no sentence states a value")
        context = context_of(task.question, self.digits, self.form)
        failure = ""
        for reference, text in itertools.product(accepted, texts):
            passed = self._judge(reference, text, context)
            if passed is True:
                reason = undemanded(reference, text, found.rule if found else "", context)
                return Verdict.right() if reason is None else Verdict.wrong(f"demand: {reason}")
            failure = passed or failure
        if failure:
            return Verdict.abstain(failure)
        stage = "equal" if any(not isinstance(value, Text) for value in read(texts[0])[:1]) else "read"
        return Verdict.wrong(f"{stage}: answered {shorten(texts[0])!r}, expected {shorten(accepted[0])!r}")

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`: what the last mark frames, else what the last sentence states."""
        kind = next((v for one in references(task.reference)[:1] for v in read(one)[:1]), None)
        text, found = self._found(response, kind)
        if found is None:
            return within(response, (concluded(text, task.question) if self.unmarked == "last" else None) or "")
        if isinstance(found, Refused):
            return None
        said = announced(found.text) if found.rule == "phrase" else None
        return within(response, said or found.text, marked(response, (found.rule,), "none"))

    def _found(self, response: str, kind: Value | None) -> tuple[str, Marked | Refused | None]:
        """Undress a response and find what it commits to."""
        if not any(":" in rule for rule in self.rules):  # a pattern or a path is for the response as it stands
            try:
                response = undress(response)
            except Unfinished:
                return response, Refused("undress", "the thinking does not end")
        return response, commit(response, self.rules, lambda text: states(text, kind), _alike)

    def _judge(self, reference: str, text: str, context: Context) -> bool | str:
        """Compare one reference; a text is the reason why it could not be done."""
        if (wanted := pieces(reference)) is not None:
            found = pieces(text)
            if found is None:
                return reference.strip() == text.strip()
            return same_pieces(wanted, found, lambda a, b: matches(a, b, context))
        if not text or len(text) > 2 * max(len(reference), MAX_LENGTH):
            return False
        if as_written(text) == as_written(reference):
            return True  # many right answers need not be read
        if matches(reference, text, context):
            return True
        if _heavy(text) and echoed(text, context):
            return False  # what is to be computed, not what comes out
        if (_heavy(reference) or _heavy(text)) and not any(isinstance(v, Residue) for v in read(reference)[:1]):
            return self._symbolic(reference, text)
        return False

    def _symbolic(self, reference: str, answer: str) -> bool | str:
        if not _heavy(reference) and all(isinstance(value, Text) for value in read(reference)[:1]):
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


def _alike(one: str, other: str) -> bool:
    """Say whether two marked texts are the same answer."""
    if one == other:
        return True
    a, b = read(announced(one) or one), read(announced(other) or other)
    if bool(a) and bool(b) and (a[0] == b[0] or a[-1] == b[-1]):
        return True
    return (said := truth(one)) is not None and said == truth(other)


def _said(found: Marked | None, response: str, question: str, kind: Value | None) -> list[str]:
    """Return the text of the answer, and nothing where it is none or more than one."""
    if found is not None and found.beside:
        several = isinstance(kind, Items) and len(kind.items) == len(found.beside) > 1
        return [", ".join(found.beside)] if several else []
    if isinstance(kind, Truth):
        said = verdict_line(response) if found is None else truth(found.text)
        if said is not None:
            return ["yes" if said else "no"]
    if found is None:
        text = concluded(response, question)
        last = last_words(text, len(kind.words.split())) if text and isinstance(kind, Text) else None
        return [one for one in (text, last) if one]
    if found.rule == "phrase":
        return [text] if (text := announced(found.text)) is not None else []
    measured = isinstance(kind, Scalar) and kind.unit is not None and kind.unit.known
    unit = _UNIT_BEHIND.match(found.after) if measured and found.rule == "boxed" else None
    with_unit = f"{found.text} {unit[1]}" if unit is not None else ""
    known = any(isinstance(v, Scalar) and v.unit is not None and v.unit.known for v in read(with_unit)[:1])
    return [with_unit if known else found.text]


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
            found.append(_final_of(str(one)))
        except ValueError:  # an integer of more digits than Python prints
            continue
    return tuple(filter(None, found))


@functools.lru_cache(4096)
def _final_of(text: str) -> str:
    """The answer that a reference marks, or all of it; "" where it says nothing."""
    if "####" in text:
        text = text.rpartition("####")[2]
    if "boxed" in text and (found := boxes(text)):
        text = text[found[-1].start : found[-1].end]
    text = ascii_digits(text.strip())
    said = any(map(str.isalnum, text)) and plain(text).strip(" .,;:*`~_{}")
    return text if len(text) > MAX_LENGTH or said or not all(isinstance(v, Text) for v in read(text)[:1]) else ""


__all__ = ["Math", "plain", "references"]
