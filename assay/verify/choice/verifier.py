"""Multiple choice: one letter or several, by letter, by text or by both."""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import RULES, Fallback, Rule, extract
from assay.verify.choice import spoken as choice_spoken
from assay.verify.choice import text as choice_text
from assay.verify.choice.around import against
from assay.verify.choice.commit import Commitment, committed
from assay.verify.choice.fields import disowned
from assay.verify.choice.inline import inlined, struck
from assay.verify.math.conclusion import announced, parted
from assay.verify.math.context import context_of
from assay.verify.math.dressing import undress
from assay.verify.math.offered import left_open
from assay.verify.math.unmarked import FENCE, broken_off, declined, guesses, thinking
from assay.verify.math.verifier import Math
from assay.verify.text.compare import normalise
from assay.verify.text.exact import shorten

_STRUCK = re.compile(r"[\s*_$(\[{]*(?:[~¬≠!]|\\(?:neg?|neq|lnot|sim|not)(?![A-Za-z]))\s?[({]?[A-Z]\b")
"""A sign of negation in front of a label."""
MAX_CHARS = 4000
"""Characters at the end of an answer that are read."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """What an answer chooses: labels, or a complaint why it chooses nothing."""

    chosen: frozenset[str] = frozenset()
    complaint: str = ""


@part("verify", "choice")
@dataclass(frozen=True, slots=True)
class Choice:
    r"""Right iff the answer chooses the reference's option, or exactly the reference's options.

    ``task.reference`` is a label (``"C"``), an option's text, a list of either (then several are to be chosen), or a
    mapping ``{"answer": ..., "options": ...}``. The options, as shown to the model, are in that mapping or in
    ``task.meta["options"]``: a list (labels A, B, C, ...) or a mapping from label to text; else they are read from the
    question (``A) 5  B) 7``). Without options only the letters A to Z are known, and a reference in words (``yes``,
    ``increasing``) is compared as :class:`~assay.verify.math.verifier.Math` compares words.

    An answer is a label in any dress (``C``, ``(C)``, ``C.``, ``option C``, ``\boxed{\text{C}}``), an option's text, or
    both; a label with the text of *another* option is wrong. So are a choice between several ("A or B"), a list of
    labels where one is asked for, and a negated label ("not C"). Abstains where the reference is none of the options.

    Args:
        index: read a bare integer that is no option's label or text as an index counted from 0 or 1; ``None``: do not.
        content: accept an option's text instead of its label.
        partial: with several to choose, score the Jaccard index of the sets instead of 0 (``passed`` is unchanged).
        rules, fallback: where the answer stands, see :func:`~assay.verify.answer.extract.extract`.
    """

    index: Literal[0, 1] | None = None
    content: bool = True
    partial: bool = False
    rules: tuple[Rule, ...] = RULES
    fallback: Fallback = "line"

    def __call__(self, task: Task, response: str) -> Verdict:
        reference: Any = task.reference
        options: Any = task.meta.get("options")
        if isinstance(reference, Mapping):
            reference, options = reference.get("answer"), reference.get("options", options)
        if options is None:
            options = context_of(task.question).options or None
        labelled = label(options)
        wanted, several = _wanted(reference, labelled)
        if not wanted and options is None and isinstance(reference, str) and reference.strip():
            return _words(self.rules)(replace(task, reference=reference), response)
        if not wanted:
            return Verdict.abstain(f"task {task.id}: reference {shorten(str(reference))!r} is none of the options")
        if thinking(response):
            return Verdict.wrong("the thinking does not end")
        written, response = response, undress(response)
        if "```" in response:
            response = FENCE.sub("", response).rstrip()
        answer = extract(response, self.rules, self.fallback)
        if self.fallback == "line" and extract(response, self.rules, "none") is None:
            response, answer = self._concluded(response, task.question)
        if answer is None or not answer.strip():
            return Verdict.wrong("no final answer found")
        if _STRUCK.match(answer) or struck(response, labelled):
            return Verdict.wrong("only says what it is not")
        marked = extract(response, self.rules, "none") is not None
        verdicts = None if several or marked else choice_spoken.judged(response, labelled)
        if not several and not marked and verdicts is None and choice_text.listing(response, labelled):
            return Verdict.wrong("lists several options")
        if not marked and not several and guesses(response):
            return Verdict.wrong("it makes several guesses")
        if not marked and (cut := broken_off(response[-MAX_CHARS:].rstrip())) is not None:
            return Verdict.wrong(cut.reason)
        if not marked and declined(response):
            return Verdict.wrong("it declines to answer")
        reading = self._read(answer, labelled, several) if verdicts is None else _Reading(frozenset([verdicts]))
        if (clash := self._followed(answer, response, labelled)) is not None:
            return Verdict.wrong(f"{answer} with the text of {clash}")
        boxed = _boxed(response, self.rules)
        prose = not several and verdicts is None and set(self.rules) <= set(RULES)
        said: Commitment | None = None
        if prose and ((reading.complaint and not boxed) or reading.chosen == wanted):
            text = inlined(response) if boxed else response
            said = committed(text, labelled, task.question, lambda line: self._exact(line, labelled))
        if reading.complaint:
            if said is None or not self.content or not (said.alone or said.opens or (said.last and said.framed)):
                return Verdict.wrong(reading.complaint)
            reading = _Reading(frozenset([said.label]))
        if reading.chosen == wanted:
            if prose and (said is None or said.label not in wanted):
                return Verdict.wrong("no sentence commits to it" if said is None else f"it goes on to {said.label}")
            after = response[max(response.rfind(answer), 0) + len(answer) :][:2000]
            if not several and (left_open(after) or choice_text.announced(after, labelled, wanted)):
                return Verdict.wrong("another option is offered beside it")
            if choice_text.taken_back(response, answer, wanted, labelled):
                return Verdict.wrong("the answer is taken back")
            if not prose and choice_text.hesitates(response, answer, labelled):
                return Verdict.wrong("the answer is denied or left open")
            if not prose and not several:
                later = committed(after, labelled, task.question, lambda line: None)
                if later is not None and later.framed and later.label not in wanted:
                    return Verdict.wrong(f"it goes on to {later.label}")
            field = disowned(written, lambda text: self._read(text, labelled, False).chosen, wanted)
            if not several and field is not None:
                return Verdict.wrong(f"its field {field!r} speaks against it")
            if said is not None:
                reason = against(said, labelled, task.question, lambda line: self._exact(line, labelled) in wanted)
                if reason is not None:
                    return Verdict.wrong(reason)
            return Verdict.right()
        feedback = f"chose {_show(reading.chosen)}, expected {_show(wanted)}"
        if several and self.partial:
            return Verdict(len(reading.chosen & wanted) / len(reading.chosen | wanted), False, {}, feedback)
        return Verdict.wrong(feedback)

    def _exact(self, line: str, options: Mapping[str, str]) -> str | None:
        """The label that a line is, with or without "the answer is", or whose text it is."""
        for text in (line, choice_text.LEAD.sub("", line, count=1).strip()):
            found = choice_text.bare(text, options)
            if not found and self.content and len(text) < 400:
                found = choice_text.named(text, options)
            if len(found) == 1:
                return next(iter(found))
            for spoken in (choice_spoken.position, choice_spoken.unspaced, choice_spoken.by_name):
                if self.content and text and (label := spoken(text, options)) is not None:
                    return label
            if (at := self._indexed(text, options)) is not None:
                return at
        return None

    def _indexed(self, text: str, options: Mapping[str, str]) -> str | None:
        if self.index is None or not re.fullmatch(r"[0-9]{1,3}", text):
            return None
        at = int(text) - self.index
        return list(options)[at] if 0 <= at < len(options) else None

    def _concluded(self, response: str, question: str) -> tuple[str, str | None]:
        """The response up to its last sentence with any content, and the answer that this one announces."""
        kept, after = parted(response, question)
        if after:
            kept = undress(kept)
        answer = extract(kept, self.rules, self.fallback)
        if extract(kept, self.rules, "none") is None and (said := announced(kept)) is not None:
            answer = said[0]
        return f"{kept}{after}", answer

    def _read(self, answer: str, options: Mapping[str, str], several: bool) -> _Reading:
        text = choice_text.plain(answer[-MAX_CHARS:])
        if self.content and (named := choice_text.named(text, options)):
            # A label that is also some option's text ("B" for option A) would be ambiguous: the label wins.
            exact = choice_text.bare(text, options)
            return _Reading(exact or named)
        text = choice_text.LEAD.sub("", text, count=1).strip()
        if bare := choice_text.bare(text, options):
            return _Reading(bare)
        if self.content and (named := choice_text.named(text, options)):
            return _Reading(named)
        for spoken in (choice_spoken.position, choice_spoken.unspaced, choice_spoken.by_name):
            if self.content and (label := spoken(text, options)) is not None:
                return _Reading(frozenset([label]))
        if (at := self._indexed(text, options)) is not None:
            return _Reading(frozenset([at]))
        listed = choice_text.listed(text, options)
        if listed and (several or len(listed) == 1):
            return _Reading(listed)
        if (labelled := choice_text.LABELLED.match(text)) and not choice_text.ARTICLE.match(text):
            chosen = choice_text.known(labelled[1], options)
            if chosen is not None:
                rest = labelled[2].strip()
                if clash := self._clash(chosen, rest, options):
                    return _Reading(complaint=f"{chosen} with the text of {clash}")
        return self._mentioned(text, options, several)

    def _followed(self, answer: str, response: str, options: Mapping[str, str]) -> str | None:
        """Return the label of another option whose text follows a bare label: "D. 96", cut at its full stop."""
        place = response.rfind(f"{answer}. ") if answer in options else -1
        if place < 0:
            return None
        text = choice_text.plain(response[place + len(answer) + 1 : place + 400].partition("\n")[0])
        clash = self._clash(answer, text, options)
        if clash is not None and re.match(r"[\s,]+[^\W\d_]", text[len(choice_text.plain(options[clash])) :]):
            return None  # a sentence about the other option
        return clash

    def _clash(self, chosen: str, rest: str, options: Mapping[str, str]) -> str | None:
        """Return the label of another option that ``rest`` is or begins with."""
        rest = normalise(rest)
        fits = [k for k, v in options.items() if normalise(v) and choice_text.begins(rest, normalise(v))]
        if not fits:
            return None
        longest = max(len(normalise(options[k])) for k in fits)
        best = [k for k in fits if len(normalise(options[k])) == longest]
        return None if chosen in best else best[0]

    def _mentioned(self, text: str, options: Mapping[str, str], several: bool) -> _Reading:
        kept, dropped = choice_text.mentions(text, options)
        if len(kept) > 1 and not several and (settled := choice_text.settled(text, kept)):
            return _Reading(frozenset([settled]))
        if len(kept) == 1 or (kept and several and not choice_text.HEDGE.search(text)):
            return _Reading(frozenset(kept))
        if kept:
            return _Reading(complaint=f"does not decide between {_show(kept)}")
        if dropped:
            return _Reading(complaint=f"only says what it is not: {_show(dropped)}")
        if self.content and (found := choice_text.contained(text, options)):
            if len(found) == 1 or several:
                return _Reading(found)
            return _Reading(complaint=f"does not decide between {_show(found)}")
        return _Reading(complaint=f"{shorten(text)!r} is none of the options")


def _boxed(response: str, rules: Sequence[Rule]) -> bool:
    """Say whether another marker than words holds the answer: a tag, a box, hashes or a rule of the user's own."""
    return extract(response, [rule for rule in rules if rule != "phrase"], "none") is not None


@functools.lru_cache(16)
def _words(rules: tuple[Rule, ...]) -> Math:
    return Math(rules=rules, symbolic=False)


def label(options: Any) -> dict[str, str]:
    """Return the options by label: a list gets A, B, C, ...; without options the letters A to Z stand for nothing."""
    if isinstance(options, Mapping):
        return {str(k).strip().strip("().: "): str(v) for k, v in options.items()}
    if isinstance(options, Sequence) and not isinstance(options, str):
        return dict(zip(string.ascii_uppercase, map(str, options), strict=False))
    return dict.fromkeys(string.ascii_uppercase, "")


def _wanted(reference: Any, options: Mapping[str, str]) -> tuple[frozenset[str], bool]:
    """Return the labels to choose (empty if one is unknown) and whether several may be asked for."""
    several = isinstance(reference, list | tuple | set | frozenset)
    items = list(reference) if several else [reference]
    labels = [_label_of(str(item), options) for item in items if item is not None and not isinstance(item, bool)]
    if labels and all(labels):
        return frozenset(k for k in labels if k is not None), several
    if (
        not several
        and isinstance(reference, str)
        and (listed := choice_text.listed(choice_text.plain(reference), options))
    ):
        return listed, True
    return frozenset(), several


def _label_of(text: str, options: Mapping[str, str]) -> str | None:
    said = choice_text.plain(text)
    found = choice_text.bare(said, options) or choice_text.named(said, options)
    if not found and (both := choice_text.LABELLED.match(said)) is not None:  # "(A) Na"
        key = choice_text.known(both[1], options)
        found = choice_text.named(both[2], options) if key is not None else frozenset()
        found = found if found == {key} else frozenset()
    return next(iter(found)) if len(found) == 1 else None


def _show(labels: Any) -> str:
    return ", ".join(sorted(labels)) or "nothing"
