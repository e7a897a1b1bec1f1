"""Multiple choice: one label or several, by letter, by text or by both."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.commit import Marked, Refused, commit
from assay.verify.answer.extract import RULES, check_rules
from assay.verify.answer.options import Options, listed, options, plain
from assay.verify.answer.place import marked
from assay.verify.answer.spans import Span
from assay.verify.answer.undress import Unfinished, undress
from assay.verify.choice.read import DENIED, Said, read, show
from assay.verify.math.equal.matches import matches
from assay.verify.math.question.context import context_of
from assay.verify.math.sentence import announced
from assay.verify.math.verifier import Math
from assay.verify.text.exact import shorten

MAX_TAIL = 4000
"""Characters at the end of an unmarked response in which its last sentence is looked for."""
MAX_VALUE = 200
"""Characters of an answer that is compared with the options' texts as mathematics."""


@part("verify", "choice")
@dataclass(frozen=True, slots=True)
class Choice:
    r"""Right iff the answer chooses the reference's option, or exactly the reference's options.

    The stages are those of :class:`~assay.verify.math.verifier.Math`, and so is the rule: the last mark (or
    announcement, "the answer is B") commits, prose around it is not judged, and what would pay for a policy that does
    not know the answer is refused: several labels where one is asked, a label with another option's text, a negation
    that touches the label, an empty mark. A verdict says which stage decided.

    ``task.reference`` is a label (``"C"``), an option's text, a list of either (then several are to be chosen), or a
    mapping ``{"answer": ..., "options": ...}``. The options, as shown to the model, are in that mapping or in
    ``task.meta["options"]``: a list (labels A, B, C, ...) or a mapping from label to text; else they are read from the
    question (see :func:`~assay.verify.answer.options.listed`). Without options only the letters A to Z are known, and a
    reference in words (``yes``, ``increasing``) is compared as ``Math`` compares words.

    An answer is a label in any dress (``C``, ``(C)``, ``c.``, ``option C``, ``\boxed{\text{C}}``), an option's text (a
    value in any notation), or both, which must agree. Abstains where the reference is none of the options.

    Args:
        index: read a bare integer that is no option's label or text as an index counted from 0 or 1; ``None``: do not.
        content: accept an option's text instead of its label.
        partial: with several to choose, score the Jaccard index of the sets instead of 0 (``passed`` is unchanged).
        rules: what marks a final answer, see :func:`~assay.verify.answer.extract.extract`.
        unmarked: a response without a mark: ``last``, the one option that its last sentence to name any names counts;
            ``refuse``, it is wrong, and the verdict's part ``marked`` is 0.

    Raises:
        UsageError: an unknown rule, or another value of ``unmarked``.
    """

    index: Literal[0, 1] | None = None
    content: bool = True
    partial: bool = False
    rules: tuple[str, ...] = RULES
    unmarked: Literal["last", "refuse"] = "last"

    def __post_init__(self) -> None:
        check_rules(self.rules, "verifier 'choice'")
        if self.unmarked not in ("last", "refuse"):
            raise UsageError(f"verifier 'choice': unmarked is {self.unmarked!r}, give 'last' or 'refuse'")

    def __call__(self, task: Task, response: str) -> Verdict:
        reference: Any = task.reference
        given: Any = task.meta.get("options")
        if isinstance(reference, Mapping):
            reference, given = reference.get("answer"), reference.get("options", given)
        known = options(given if given is not None else listed(task.question) or None)
        wanted, several = _wanted(reference, known)
        if not wanted and given is None and isinstance(reference, str) and len(reference.strip()) > 1:
            return _words(self.rules, self.unmarked)(replace(task, reference=reference), response)
        if not wanted:
            return Verdict.abstain(f"task {task.id}: reference {shorten(str(reference))!r} is none of the options")
        if not any(":" in rule for rule in self.rules):  # a pattern or a path is for the response as it stands
            try:
                response = undress(response)
            except Unfinished:
                return Verdict.wrong("undress: the thinking does not end")
        judged = functools.partial(self._read, options=known, question=task.question)
        found = commit(
            response, self.rules, lambda text: _states(judged(text)), lambda a, b: _alike(judged(a), judged(b))
        )
        if isinstance(found, Refused):
            return Verdict.wrong(f"{found.stage}: {found.reason}")
        if found is None and self.unmarked == "refuse":
            return Verdict(0.0, False, {"marked": 0.0}, "locate: no answer is marked")
        said = _concluded(response, judged, several) if found is None else _committed(found, judged, known)
        if said.fault or (len(said.chosen) > 1 and not several):
            return Verdict.wrong(f"commit: {said.fault or f'it does not choose between {show(said.chosen)}'}")
        if not said.chosen:
            shown = f"{shorten(found.text)!r} is none of the options" if found else "no sentence names an option"
            return Verdict.wrong(f"{'read' if found else 'locate'}: {shown}")
        if said.chosen == wanted:
            return Verdict.right()
        feedback = f"equal: chose {show(said.chosen)}, expected {show(wanted)}"
        if several and self.partial:
            return Verdict(len(said.chosen & wanted) / len(said.chosen | wanted), False, {}, feedback)
        return Verdict.wrong(feedback)

    def answer(self, task: Task, response: str) -> Span | None:
        """See :class:`assay.verify.base.Locates`: what is marked, else the last line."""
        return marked(response, self.rules, "line" if self.unmarked == "last" else "none")

    def _read(self, text: str, options: Options, question: str) -> Said:
        """What a text says of the options: a label, a text, an index or a value that equals one option's."""
        said = read(text, options, self.content)
        if said.named:
            return said
        if self.index is not None and (digits := _INDEX.fullmatch(text)) is not None:
            at = int(digits[1]) - self.index
            labels = frozenset(list(options.written)[at : at + 1] if at >= 0 else ())
            return Said(labels, labels)
        if self.content and options.texts and len(text) <= MAX_VALUE and any(map(str.isdigit, text)):
            context = context_of(question)
            value = announced(text) or text
            equal = {k for k, v in options.written.items() if v.strip() and matches(v, value, context)}
            if len(equal) == 1:
                return Said(frozenset(equal), frozenset(equal))
        return Said()


_INDEX = re.compile(r"[\s*_$({]{0,4}([0-9]{1,3})[\s*_$)}.]{0,4}")


def _states(said: Said) -> bool:
    """Whether what follows an announcement chooses, be it too much, rather than talks or denies."""
    return bool(said.chosen) or said.fault not in ("", DENIED)


def _alike(one: Said, other: Said) -> bool:
    """Whether two marks choose the same."""
    return one.chosen == other.chosen and not one.fault


def _committed(found: Marked, judged: Callable[[str], Said], known: Options) -> Said:
    """What the last mark says, together with the marks beside it and a text that stands right behind it."""
    each = [judged(text) for text in found.beside or (found.text,)]
    chosen = frozenset[str]().union(*(said.chosen for said in each))
    fault = next((said.fault for said in each if said.fault), "")
    behind = known.named(plain(found.after).lstrip(" .,:;)=-")) if known.texts else frozenset()
    if chosen and behind and not behind & chosen:
        fault = f"{show(chosen)} with the text of {show(behind)}"
    return Said(chosen, chosen, fault)


_SENTENCES = re.compile(r"(?<=[.!?])(?<!\b[A-Za-z]\.)(?<!\d\.)\s+(?=[^\sa-z])|(?<=[。！？])|\n+")
_ENTRY = re.compile(r"[\s*_(\[•-]*([A-Za-z0-9]{1,3})[*_]*(?:[).:\]]|$)")


def _concluded(response: str, judged: Callable[[str], Said], several: bool) -> Said:
    """What the last sentence that names an option says, if it names no other one and is no line of a list of them."""
    sentences = [s.strip() for s in _SENTENCES.split(response[-MAX_TAIL:]) if s and s.strip()]
    for k in reversed(range(len(sentences))):
        said = judged(sentences[k])
        if not said.named:
            continue
        if sentences[k].endswith(("?", "？")):
            return Said(fault="its last sentence asks")
        entries = [_ENTRY.match(line) for line in sentences[max(k - 1, 0) : k + 1]]
        if len({entry[1].upper() for entry in entries if entry is not None and judged(entry[1]).named}) > 1:
            return Said(fault="it ends in a list of options")
        if not said.fault and not several and said.named != said.chosen:
            return Said(fault=f"it does not choose between {show(said.named)}")
        return said
    return Said()


@functools.lru_cache(16)
def _words(rules: tuple[str, ...], unmarked: Literal["last", "refuse"]) -> Math:
    return Math(rules=rules, unmarked=unmarked, symbolic=False)


def _wanted(reference: Any, known: Options) -> tuple[frozenset[str], bool]:
    """Return the labels to choose (empty if one is unknown) and whether several may be asked for."""
    several = isinstance(reference, list | tuple | set | frozenset)
    items = [
        item for item in (reference if several else [reference]) if item is not None and not isinstance(item, bool)
    ]
    labels = [_label_of(plain(str(item)), known) for item in items]
    if not several and not any(labels) and isinstance(reference, str):
        labels, several = _labels_of(plain(reference), known), True
    if not labels or not all(labels):
        return frozenset(), several
    return frozenset(k for k in labels if k is not None), several


def _label_of(text: str, known: Options) -> str | None:
    """The label of a reference that is a label, an option's text, or both."""
    if (label := known.bare(text)) is not None:
        return label
    if len(named := known.named(text)) == 1:
        return min(named)
    both = re.match(r"\(?([A-Za-z0-9]{1,3})[).:\s]\s?(.+)", text, re.DOTALL)
    label = known.label(both[1]) if both is not None else None
    return label if both is not None and label in known.named(both[2]) else None


def _labels_of(text: str, known: Options) -> list[str | None]:
    """The labels that a reference lists: ``A, C``, ``A and C``, ``AC``."""
    items = [item for item in re.split(r"[\s,;/&+()]+|\band\b", text) if item]
    if len(items) == 1 and list(text) == sorted(set(text)):
        items = list(text)
    return [item if item in known.written else None for item in items] if len(items) > 1 else []


__all__ = ["Choice"]
