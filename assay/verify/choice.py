"""Multiple choice: one letter or several, by letter, by text or by both."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.compare import normalise, same
from assay.verify.exact import shorten
from assay.verify.extract import RULES, Fallback, Rule, extract

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
    ``task.meta["options"]``: a list (labels A, B, C, ...) or a mapping from label to text. Without options only the
    letters A to Z are known.

    An answer is a label in any dress (``C``, ``(C)``, ``C.``, ``option C``, ``\boxed{\text{C}}``), an option's text, or
    both; a label with the text of *another* option is wrong. So are a choice between several ("A or B"), a list of
    labels where one is asked for, and a negated label ("not C"). Abstains where the reference is none of the options.

    Args:
        index: read a bare integer that is no option's label or text as an index counted from 0 or 1; ``None``: do not.
        content: accept an option's text instead of its label.
        partial: with several to choose, score the Jaccard index of the sets instead of 0 (``passed`` is unchanged).
        rules, fallback: where the answer stands, see :func:`~assay.verify.extract.extract`.
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
        labelled = label(options)
        wanted, several = _wanted(reference, labelled)
        if not wanted:
            return Verdict.abstain(f"task {task.id}: reference {shorten(str(reference))!r} is none of the options")
        answer = extract(response, self.rules, self.fallback)
        if answer is None or not answer.strip():
            return Verdict.wrong("no final answer found")
        reading = self._read(answer, labelled, several)
        if reading.complaint:
            return Verdict.wrong(reading.complaint)
        if reading.chosen == wanted:
            return Verdict.right()
        feedback = f"chose {_show(reading.chosen)}, expected {_show(wanted)}"
        if several and self.partial:
            return Verdict(len(reading.chosen & wanted) / len(reading.chosen | wanted), False, {}, feedback)
        return Verdict.wrong(feedback)

    def _read(self, answer: str, options: Mapping[str, str], several: bool) -> _Reading:
        text = plain(answer[-MAX_CHARS:])
        if self.content and (named := _named(text, options)):
            # A label that is also some option's text ("B" for option A) would be ambiguous: the label wins.
            exact = _bare(text, options)
            return _Reading(exact or named)
        text = _LEAD.sub("", text, count=1).strip()
        if bare := _bare(text, options):
            return _Reading(bare)
        if self.content and (named := _named(text, options)):
            return _Reading(named)
        if self.index is not None and re.fullmatch(r"[0-9]{1,3}", text):
            at = int(text) - self.index
            if 0 <= at < len(options):
                return _Reading(frozenset([list(options)[at]]))
        listed = _list(text, options)
        if listed and (several or len(listed) == 1):
            return _Reading(listed)
        if (labelled := _LABELLED.match(text)) and not _ARTICLE.match(text):
            chosen = _known(labelled[1], options)
            if chosen is not None:
                rest = labelled[2].strip()
                if clash := self._clash(chosen, rest, options):
                    return _Reading(complaint=f"{chosen} with the text of {clash}")
        return self._mentioned(text, options, several)

    def _clash(self, chosen: str, rest: str, options: Mapping[str, str]) -> str | None:
        """Return the label of another option that ``rest`` is or begins with."""
        rest = normalise(rest)
        fits = [k for k, v in options.items() if normalise(v) and _begins(rest, normalise(v))]
        if not fits:
            return None
        longest = max(len(normalise(options[k])) for k in fits)
        best = [k for k in fits if len(normalise(options[k])) == longest]
        return None if chosen in best else best[0]

    def _mentioned(self, text: str, options: Mapping[str, str], several: bool) -> _Reading:
        kept, dropped = _mentions(text, options)
        if len(kept) == 1 or (kept and several and not _HEDGE.search(text)):
            return _Reading(frozenset(kept))
        if kept:
            return _Reading(complaint=f"does not decide between {_show(kept)}")
        if dropped:
            return _Reading(complaint=f"only says what it is not: {_show(dropped)}")
        if self.content and (found := _contained(text, options)):
            if len(found) == 1 or several:
                return _Reading(found)
            return _Reading(complaint=f"does not decide between {_show(found)}")
        return _Reading(complaint=f"{shorten(text)!r} is none of the options")


def label(options: Any) -> dict[str, str]:
    """Return the options by label: a list gets A, B, C, ...; without options the letters A to Z stand for nothing."""
    if isinstance(options, Mapping):
        return {str(k).strip().strip("().: "): str(v) for k, v in options.items()}
    if isinstance(options, Sequence) and not isinstance(options, str):
        return dict(zip(string.ascii_uppercase, map(str, options), strict=False))
    return dict.fromkeys(string.ascii_uppercase, "")


_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf|textbf|boxed|rm|bf|textit)\s?\{([^{}]*)\}")
_SPACES = re.compile(r"\\[,;:! ]|[`*$_~\"“”‘’\[\]{}<>]|\\[()\[\]]")


def plain(text: str) -> str:
    """Return ``text`` without LaTeX wrappers, emphasis and quotes, in NFKC."""
    text = unicodedata.normalize("NFKC", text)
    for _ in range(3):
        text = _WRAPPED.sub(r" \1 ", text)
    return " ".join(_SPACES.sub(" ", text).split())


def _wanted(reference: Any, options: Mapping[str, str]) -> tuple[frozenset[str], bool]:
    """Return the labels to choose (empty if one is unknown) and whether several may be asked for."""
    several = isinstance(reference, list | tuple | set | frozenset)
    items = list(reference) if several else [reference]
    labels = [_label_of(str(item), options) for item in items if item is not None and not isinstance(item, bool)]
    if labels and all(labels):
        return frozenset(k for k in labels if k is not None), several
    if not several and isinstance(reference, str) and (listed := _list(plain(reference), options)):
        return listed, True
    return frozenset(), several


def _label_of(text: str, options: Mapping[str, str]) -> str | None:
    bare = _bare(plain(text), options) or _named(plain(text), options)
    return next(iter(bare)) if len(bare) == 1 else None


def _known(text: str, options: Mapping[str, str]) -> str | None:
    """Return the label that ``text`` is, upper or lower case."""
    return next((k for k in (text, text.upper(), text.lower()) if k in options), None)


_DRESS = " \t().,:;#-"


def _bare(text: str, options: Mapping[str, str]) -> frozenset[str]:
    found = _known(text.strip(_DRESS), options)
    return frozenset() if found is None else frozenset([found])


def _named(text: str, options: Mapping[str, str]) -> frozenset[str]:
    """Return the one option whose text ``text`` is."""
    found = [k for k, v in options.items() if v.strip() and same(text, plain(v))]
    return frozenset(found) if len(found) == 1 else frozenset()


def _begins(text: str, start: str) -> bool:
    after = text[len(start) : len(start) + 1]
    return text.startswith(start) and not (start[-1:].isalnum() and after.isalnum())


_LEAD = re.compile(
    r"^(?:(?:so|thus|therefore|hence),?\s)?(?:the\s)?(?:(?:correct|right|best|final)\s)*(?:answers?|options?|choices?)"
    r"(?:\s(?:is|are)\b)?\s?:?\s?(?:(?:answers?|options?|choices?)\s)?",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"\(?([A-Za-z0-9]{1,3})(?:\s?[).:]\s?|\s[-–—=]\s|\s)(\S.*)$", re.DOTALL)
_ARTICLE = re.compile(r"(?:A|I)\s[a-z]")
_JOINT = re.compile(r"\s?(?:[,;/&+]|\band\b|\s)\s?", re.IGNORECASE)
_HEDGE = re.compile(r"\bor\b|\beither\b|\bnor\b|\bmaybe\b|\bperhaps\b|\bpossibly\b", re.IGNORECASE)


def _list(text: str, options: Mapping[str, str]) -> frozenset[str]:
    """Return the labels of a list such as ``A, C``, ``A and C`` or ``ACD``, empty if it is anything else."""
    text = text.strip(_DRESS)
    if len(text) > 8 * len(options) + 20:
        return frozenset()
    if 1 < len(text) == len(set(text)) <= len(options) and text.isupper() and set(text) <= options.keys():
        return frozenset(text)
    items = [item.strip(_DRESS) for item in _JOINT.split(text) if item.strip(_DRESS)]
    # Small letters are words in a list of several: "a and b" is not read.
    if not items or (len(items) > 1 and any(item not in options for item in items)):
        return frozenset()
    found = [_known(item, options) for item in items]
    return frozenset(k for k in found if k is not None) if all(found) else frozenset()


_NEGATED = re.compile(
    r"(?:\bnot|n't|\bnor|\bnever|\brather than|\bexcept|\bexclud\w*|\beliminat\w*|\brul\w* out|\binstead of)"
    r"(?:\s(?:be|the|an?|answers?|options?|choices?|either))*\s?\(?$",
    re.IGNORECASE,
)
_REFUTED = re.compile(
    r"\)?\s?(?:is|are|was|would be|cannot be|can't be|isn't|is not)?\s?"
    r"(?:\b(?:not|n't)\b|"
    r"(?:in(?:correct|valid)|wrong|false|ruled out|eliminated)\b|(?<=n't)|(?<=cannot be)|(?<=is not))",
    re.IGNORECASE,
)


def _mentions(text: str, options: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """Return the labels that stand by themselves in ``text``: those put forward and those denied."""
    kept: set[str] = set()
    dropped: set[str] = set()
    for match in re.finditer(r"(?<![\w'’^\\])[A-Za-z0-9]{1,3}(?![\w'’^])", text):
        symbol = match.group()
        before, after = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 40]
        if symbol not in options:
            # A small letter is a label only after "option" or in parentheses.
            if _known(symbol, options) is None or not (
                _cued(before) or (before.endswith("(") and after.startswith(")"))
            ):
                continue
            symbol = _known(symbol, options) or symbol
        elif not _cued(before) and not before.endswith("("):
            # "A dog", "I think", "5 metres": an article, a pronoun and a quantity are no labels.
            if symbol in ("A", "I", "a", "i") and re.match(r"\s[a-z]", after) and not _VERB.match(after):
                continue
            if symbol.isdigit() or symbol.islower():
                continue
        denied = _NEGATED.search(before) or _REFUTED.match(after)
        (dropped if denied else kept).add(symbol)
    return kept, dropped - kept


_VERB = re.compile(r"\s(?:is|was|because|since|and|or|as|must|seems|would|but|not|isn't|are|fits|matches)\b")


def _cued(before: str) -> bool:
    return bool(re.search(r"(?:answers?|options?|choices?)(?:\s(?:is|are))?\s?:?\s?\(?$", before, re.IGNORECASE))


def _contained(text: str, options: Mapping[str, str]) -> frozenset[str]:
    """Return the options whose texts occur in ``text`` as whole words and undenied, longest first."""
    text = normalise(text)
    found: set[str] = set()
    for key, value in sorted(options.items(), key=lambda item: -len(item[1])):
        wanted = normalise(plain(value))
        if not wanted or len(wanted) > len(text):
            continue
        pattern = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
        matches = list(pattern.finditer(text))
        if any(not _NEGATED.search(text[max(0, m.start() - 40) : m.start()]) for m in matches):
            found.add(key)
        text = pattern.sub(" ", text)
    return frozenset(found)


def _show(labels: Any) -> str:
    return ", ".join(sorted(labels)) or "nothing"
