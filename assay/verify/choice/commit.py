"""Which option a response in prose commits to: the one of the last sentence whose every other word is accounted for.

Nobody can list all ways to deny or doubt a label, so the rule is turned round. A sentence chooses an option if around
its label or text stand only words of a commitment (:mod:`~assay.verify.choice.frames`), words of the question, the
option's own text, a reason after it, or a lead from which a word like "so" concludes
(:mod:`~assay.verify.choice.prose`). What else stands there may be a denial in words that nobody foresaw.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from assay.verify.choice.admitted import ADMITTED
from assay.verify.choice.lexicon import GRADER
from assay.verify.choice.marks import NOUN
from assay.verify.choice.prose import UNSTATED, Prose
from assay.verify.choice.text import plain

MAX_READ = 4000
"""Characters at the end of a response that are read."""
_JSON = re.compile(
    r"(?:json\s*)?\{\s*\"(?:choice|option|letter|selection|selected|antwort|auswahl|respuesta|opcion|réponse|reponse|"
    r"resposta|risposta|ответ|答案|回答|answer)\"\s*:\s*\"([^\"]{1,200})\"\s*(?:,[^{}]*)?\}"
)
_BACK = re.compile(
    r"\W*(?:(?:oh|hmm|uh|um|well|but|no|nope|not|nah|wait|hold|on|actually|really|kidding|joking|joke|just|sorry|oops|"
    r"i'm|im|never|mind|scratch|that|psych|nein|doch|nicht|moment|halt|non|attends|attendez|pas|espera|perdón|não|espere|"
    r"aspetta|nee|wacht|nej|vänta|vent|nie|czekaj|ne|počkej|нет|ні|подожди|стоп|nu|nem|όχι|hayır|dur|لا|לא|نه|नहीं|không|"
    r"bukan|不|不对|不是|いや|いいえ|아니|아니요)\b\W*)+",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"\W*(?:is|isn't|isn’t|was|could|can|or|right|really|correct|no|am|but|does|oder|ou|o)\b[^?]*[?？]", re.IGNORECASE
)
"""What takes back or asks about an answer in a sentence of its own."""
_SPLIT = re.compile(r"(?<=[.!?؟।。！？])(?<![0-9]!)(?:\s+|(?<=[。！？]))|\n+")
_LABEL_DOT = re.compile(rf"[\s*_(]*(?:{NOUN}\s)?[\s*_(]*[^\W_]{{1,2}}[\s*_)]*\.", re.IGNORECASE)
_ENTRIES = re.compile(r"^[\s*_(>-]*[A-Z][.)]", re.MULTILINE)
"""Labels at the beginnings of lines: more than one is a list."""
_GOES_ON = re.compile(r"[*_]* [^\W\d_]")
_INITIAL = re.compile(r"\.[a-z]\.$|\s[F-HJ-Z]\.$")
_LAST_LABEL = re.compile(r"(?<!\w)\(?([^\W_]{1,3})\)?\.$")


@dataclass(frozen=True, slots=True)
class Commitment:
    """The label a response commits to; whether in its last sentence, by more than the label, and in its only one.

    ``before``, ``sentence`` and ``after`` are the parts of the text that was read.
    """

    label: str
    last: bool
    framed: bool
    alone: bool
    before: str
    sentence: str
    after: str

    @property
    def opens(self) -> bool:
        """Whether nothing but headings stands before it, and it has a line of its own."""
        headed = all(line.lstrip().startswith("#") for line in self.before.split("\n") if line.strip())
        return headed and self.after[:1] != " " and (self.before[-1:] in ("", "\n")) and "\n" in self.sentence[-3:]


def committed(
    response: str, options: Mapping[str, str], question: str, exact: Callable[[str], str | None]
) -> Commitment | None:
    """Return what the last sentence that commits to an option commits to, ``None`` if none does.

    A later sentence that speaks of the same label without committing to it, commits to another one in one of its
    clauses or takes something back leaves nothing. Linear time in the length of the response, of which the end is read.

    Args:
        response: prose, without its dress.
        options: text by label.
        question: its words are known, those of the options in it are not.
        exact: the label that a whole line is, or whose text it is, if any.
    """
    text = response.rpartition("</think>")[2][-MAX_READ:]
    if (given := _JSON.fullmatch(text.strip(" `\n"))) is not None:
        text = given[1]
    prose = reader(options, question)
    found: Commitment | None = None
    spans = [(start, end) for start, end in sentences(text, options) if any(map(str.isalnum, text[start:end]))]
    for place, (start, end) in enumerate(spans):
        piece = text[start:end]
        said = plain(piece)
        label = None if UNSTATED.search(piece) else exact(said)
        read: tuple[str, bool, bool] | None
        if label is not None:
            own = options[label] if options[label] in said else label
            read = (label, len(said) > len(own) + 5, False)
        else:
            read = prose.committed(said)
        if read is not None and not (read[2] and found is not None):
            last, alone = place == len(spans) - 1, len(spans) == 1
            found = Commitment(read[0], last, read[1], alone, text[:start], piece, text[end:])
        elif found is not None and (read is None or read[0] != found.label) and _undone(prose, said, found.label):
            found = None
    return None if found is None or _graded(text, question) else found


def reader(options: Mapping[str, str], question: str) -> Prose:
    """What reads sentences about the options of ``question``; the last few are kept."""
    return _prose(tuple(options.items()), question)


@functools.lru_cache(64)
def _prose(options: tuple[tuple[str, str], ...], question: str) -> Prose:
    return Prose(dict(options), question)


def _undone(prose: Prose, sentence: str, label: str) -> bool:
    if _BACK.fullmatch(sentence) or _DOUBTED.match(sentence) or ADMITTED.search(sentence):
        return True
    return prose.speaks_of(sentence, label) or prose.turns(sentence, label)


def _graded(text: str, question: str) -> bool:
    """Say whether the response speaks to whoever grades it."""
    match = GRADER.search(text)
    return match is not None and match.group().casefold() not in question.casefold()


def sentences(text: str, options: Mapping[str, str]) -> list[tuple[int, int]]:
    """Where sentences begin and end, which they do not behind a label before its text, an initial or ``i.e.``"""
    found: list[tuple[int, int]] = []
    start = 0
    for match in _SPLIT.finditer(text):
        piece = text[start : match.start()]
        if "\n" not in match.group():
            label = _LAST_LABEL.search(piece[-8:])
            value = options.get(label[1], "").strip().casefold() if label is not None else ""
            rest = text[match.end() : match.end() + len(value) + 8].lstrip(' *_$"').casefold()
            first = start == 0 and len(_ENTRIES.findall(text)) < 2
            if value and rest.startswith(value):
                if not _GOES_ON.match(rest[len(value) :]):
                    continue  # a label and its text, but not "The answer is B. Nitrogen makes up most of the air."
            elif (_LABEL_DOT.fullmatch(piece) and not first) or _INITIAL.search(piece[-8:]):
                continue
        found.append((start, match.end()))
        start = match.end()
    return [*found, (start, len(text))]
