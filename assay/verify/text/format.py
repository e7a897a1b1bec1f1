"""Whether a response has the form that was asked for: tags, sections, lengths, phrases, no repetition."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal

from assay.errors import UsageError
from assay.registry import call, part
from assay.types import Task, Verdict
from assay.verify.text.text import tokens


@part("verify", "format")
@dataclass(frozen=True, slots=True)
class Format:
    """Right iff every requirement is met; each is a part with score 0 or 1.

    Requirements can be changed for one task: the mapping ``task.reference["format"]`` goes before the options.

    Args:
        tags: names, e.g. ``("think", "answer")``: ``<name>...</name>`` stands exactly once each, in this order, one
            after another, with something other than white space inside. Parts ``tag:NAME`` and ``tags:order``.
        outside: how many characters other than white space may stand outside the tags; ``None`` for any number.
            Part ``tags:outside``.
        prefilled: the prompt already ended in the first opening tag, so a response may begin inside it.
        sections: texts that begin a line, each exactly once, in this order, with something between them. A line's
            marks for headings, lists and bold type (``#``, ``*``, ``-``, digits) are passed over. Part ``sections``.
        min_chars, max_chars, min_words, max_words, min_tokens, max_tokens: bounds, inclusive. Tokens are what white
            space separates; words are that too, but in scripts written without blanks each character is a word.
            Parts ``chars``, ``words``, ``tokens``.
        contain, avoid: texts that must and must not occur. Parts ``contain:TEXT`` and ``avoid:TEXT``.
        ignore_case: of ``contain``, ``avoid`` and ``sections``.
        max_repeats: no ``ngram`` consecutive words occur more than this many times. Part ``repeats``.
        ngram: the number of words looked at together by ``max_repeats``.
        score: ``all``: 1 if every requirement is met, else 0; ``fraction``: of the requirements met.

    Raises:
        UsageError: when made, for bounds that exclude each other or are negative, and for tags that are not names.
    """

    tags: tuple[str, ...] = ()
    outside: int | None = 0
    prefilled: bool = False
    sections: tuple[str, ...] = ()
    min_chars: int | None = None
    max_chars: int | None = None
    min_words: int | None = None
    max_words: int | None = None
    min_tokens: int | None = None
    max_tokens: int | None = None
    contain: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    ignore_case: bool = False
    max_repeats: int | None = None
    ngram: int = 8
    score: Literal["all", "fraction"] = "all"

    def __post_init__(self) -> None:
        for name in self.tags:
            if not re.fullmatch(r"[\w.:-]{1,100}", name):
                raise UsageError(f"verifier 'format': {name!r} is not the name of a tag; write it without < and >")
        if len(set(self.tags)) != len(self.tags):
            raise UsageError(f"verifier 'format': a tag is named twice in {self.tags}")
        for unit in ("chars", "words", "tokens"):
            low, high = getattr(self, f"min_{unit}"), getattr(self, f"max_{unit}")
            if (low or 0) < 0 or (high is not None and high < (low or 0)):
                raise UsageError(f"verifier 'format': no length is from min_{unit} {low} to max_{unit} {high}")
        if self.ngram < 1 or (self.max_repeats is not None and self.max_repeats < 1):
            raise UsageError(
                f"verifier 'format': ngram {self.ngram} and max_repeats {self.max_repeats} must be at least 1"
            )
        if not all((*self.sections, *self.contain, *self.avoid)):
            raise UsageError("verifier 'format': sections, contain and avoid must not hold an empty text")

    def __call__(self, task: Task, response: str) -> Verdict:
        asked = self
        if isinstance(task.reference, Mapping) and "format" in task.reference:
            try:
                asked = self._changed(task.reference["format"])
            except (UsageError, ValueError) as error:
                return Verdict.abstain(f"task {task.id}: {error}")
        parts: dict[str, float | None] = {}
        complaints: list[str] = []
        for name, complaint in asked._check(response):
            parts[name] = float(not complaint)
            if complaint:
                complaints.append(complaint)
        if not parts:
            return Verdict.abstain(f"task {task.id}: no format is asked for")
        met = sum(v or 0.0 for v in parts.values()) / len(parts)
        passed = not complaints
        return Verdict(met if asked.score == "fraction" else float(passed), passed, parts, "; ".join(complaints)[:300])

    def _changed(self, options: Any) -> Format:
        if not isinstance(options, Mapping):
            raise ValueError("reference['format'] is not a mapping")
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        changed: Format = call(Format, {**given, **options}, "reference['format']")
        return changed

    def _check(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield each requirement's name and what is wrong with it, nothing if it is met."""
        if self.tags:
            yield from self._tags(text)
        if self.sections:
            yield "sections", self._sections(text)
        yield from self._lengths(text)
        folded = text.casefold() if self.ignore_case else text
        for wanted in self.contain:
            found = (wanted.casefold() if self.ignore_case else wanted) in folded
            yield f"contain:{wanted}", "" if found else f"does not contain {wanted!r}"
        for barred in self.avoid:
            found = (barred.casefold() if self.ignore_case else barred) in folded
            yield f"avoid:{barred}", f"contains {barred!r}" if found else ""
        if self.max_repeats is not None:
            yield "repeats", self._repeats(text)

    def _tags(self, text: str) -> Iterator[tuple[str, str]]:
        if self.prefilled and not text.lstrip().startswith(f"<{self.tags[0]}>"):
            text = f"<{self.tags[0]}>{text}"
        spans: list[tuple[int, int]] = []
        for name in self.tags:
            opening, closing = f"<{name}>", f"</{name}>"
            start, end = text.find(opening), text.find(closing)
            if text.count(opening) != 1 or text.count(closing) != 1 or end < start:
                yield f"tag:{name}", f"{opening}...{closing} does not stand exactly once"
                continue
            yield f"tag:{name}", "" if text[start + len(opening) : end].strip() else f"{opening} is empty"
            spans.append((start, end + len(closing)))
        ordered = all(before[1] <= after[0] for before, after in pairwise(spans))
        ordered = ordered and len(spans) == len(self.tags)
        yield "tags:order", "" if ordered else f"the tags {', '.join(self.tags)} do not follow one another"
        if self.outside is not None:
            edges = [0, *(edge for span in spans for edge in span), len(text)]
            # The length of what lies outside is known only where every tag is in its place.
            extra = (
                sum(len("".join(text[a:b].split())) for a, b in zip(edges[::2], edges[1::2], strict=True))
                if ordered
                else None
            )
            allowed = extra is not None and extra <= self.outside
            yield "tags:outside", "" if allowed else "there is text outside the tags" if ordered else "tags are missing"

    def _sections(self, text: str) -> str:
        wanted = [s.casefold() if self.ignore_case else s for s in self.sections]
        seen: list[int] = []
        filled = True
        content = True
        for line in text.splitlines():
            head = line.lstrip(_MARKS)
            head = head.casefold() if self.ignore_case else head
            # The longest section that fits: "Results and discussion" is not "Results".
            fits = [i for i, s in enumerate(wanted) if head.startswith(s) and not _runs_on(head, len(s))]
            if not fits:
                content = content or bool(line.strip())
                continue
            which = max(fits, key=lambda i: len(wanted[i]))
            filled = filled and content
            seen.append(which)
            content = bool(head[len(wanted[which]) :].strip(" :*#_.-\t"))
        if seen == list(range(len(wanted))):
            return "" if filled and content else "a section is empty"
        return f"the sections {', '.join(self.sections)} do not stand once each in this order"

    def _lengths(self, text: str) -> Iterator[tuple[str, str]]:
        for unit, count in (("chars", len), ("words", lambda t: len(tokens(t))), ("tokens", lambda t: len(t.split()))):
            low, high = getattr(self, f"min_{unit}"), getattr(self, f"max_{unit}")
            if low is None and high is None:
                continue
            n = count(text)
            short, long = low is not None and n < low, high is not None and n > high
            yield (
                unit,
                f"{n} {unit}, at least {low} asked" if short else f"{n} {unit}, at most {high} asked" if long else "",
            )

    def _repeats(self, text: str) -> str:
        words = tokens(text.casefold())
        # Hashes of the words instead of copies of them: n-grams of a long response would fill the memory.
        grams = Counter(hash(tuple(words[i : i + self.ngram])) for i in range(len(words) - self.ngram + 1))
        most = max(grams.values(), default=0)
        assert self.max_repeats is not None
        return f"{self.ngram} words in a row occur {most} times" if most > self.max_repeats else ""


_MARKS = " \t#*_->0123456789.)("


def _runs_on(head: str, end: int) -> bool:
    """Say whether the word that ends at ``end`` goes on."""
    return head[end - 1].isalnum() and head[end : end + 1].isalnum()
