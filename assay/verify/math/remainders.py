"""A value in a sentence that nothing else could read: what is left of it when words that say nothing are taken off.

``La recta es y = 2x``, ``Das Verhältnis ist 3 : 2``, ``Each piece is forty centimetres long``. Of a sentence that
concludes ("..., so x = 4") only the conclusion is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay.verify.caseless import Caseless
from assay.verify.math.frames import cores, counts_anything, is_foreign, known_words, words_around
from assay.verify.math.read import read
from assay.verify.math.sentence import hedged
from assay.verify.math.values import Text

MAX_LENGTH = 600
MAX_TRIED = 8
_CONCLUDES = re.compile(
    r"(?:^|[\s,;:.])(?:so|hence|thus|therefore|then|i\.e\.,?|that is,?|which (?:gives|is|means)|giving|we (?:get|"
    r"have|"
    r"obtain)|this (?:gives|means)|leaving|also|daher|somit|folglich|d\.h\.|donc|d'où|soit|ainsi|luego|así que|"
    r"por lo "
    r"tanto|es decir|entonces|quindi|dunque|cioè|logo|portanto|ou seja|поэтому|значит|итак|следовательно|т\.е\.|dus|"
    r"on obtient|on trouve|se obtiene|obtenemos|ergibt sich|erhalten wir|erhält man|risulta|otteniamo|получаем|"
    r"otrzymujemy|"
    r"więc|czyli|zatem|takže|tedy|yani|vậy|jadi)[\s,:]+|(?:⇒|=>|→|⟹|∴|所以|因此|故|よって|したがって|따라서|"
    r"그러므로)[\s，,、:]*",
    re.IGNORECASE,
)
_BREAKS = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_a-z])|\n+|(?<=[。！？])")
_TEXT = re.compile(r"\\(?:text|textrm|mbox|mathrm)\s*\{([^{}]*)\}")
_BOLD = re.compile(r"\*\*|__")
_ASIDE = re.compile(r"(?<=[\w$}\])°%])(?:\s\((?:[^()\n]{2,60})\)|\s?,?\s[–—-]{1,2}\s[^–—\n]{4,60})[\s.]*$")
_COMPARED = Caseless(r"\bratio\b|\bthan\b|\bdifference\b|:|\bversus\b|\bor\b|\bnot\b", frequent=True)
"""What makes the order of the question's words matter."""
_PERSON = re.compile(r"\b(?:i|we|me|you|your|my|us|today|here)\b", re.IGNORECASE)
"""Whose "no solution" is no result."""
_AGAINST = re.compile(
    r"\b(?:not|never|no|nor|or|maybe|perhaps|possibly|guess\w*|wrong\w*|incorrect|mistak\w*|false|if|unless|either|"
    r"suppos\w*|"
    r"assum\w*|claim\w*|says?|said|thinks?|thought|would|could|might|may|nicht|kein\w*|falsch|pas|faux|falso|non|"
    r"não|не|нет|"
    r"si|wenn|falls|если|oder|ou|или)\b|n['’]t\b|[?？]|不|错|如果|或",
    re.IGNORECASE,
)
_BECAUSE = re.compile(
    r"(?:(?:so|thus|hence|therefore),? )?(?:(?:it|that|this|the answer)(?:'s| is) )?"
    r"(?P<head>\$[^$]{1,80}\$|[^,;:.!?]{1,60}|-?[0-9][0-9.,/]*[0-9]),? (?:because|since)\s(?P<reason>.{3,300})",
    re.IGNORECASE | re.DOTALL,
)
_NO_REASON = re.compile(
    r"\b(?:if|unless|maybe|perhaps|guess\w*|think|thought|says?|said|told|claim\w*|heard|key|grader|reference|would|could|"
    r"might|may|wrong|incorrect|but|however|or|i|my|so|actually|wait)\b|[?!]",
    re.IGNORECASE,
)
_NEXT_DAY = re.compile(r"(?<=[0-9mM.])\s(?:on )?(?:the )?(?:next|following) (?:day|morning)\W*$", re.IGNORECASE)
_WORD = re.compile(r"(?<!\\)(?<![^\W\d_])[^\W\d_]{2}")


def remainders(text: str, question: str) -> Iterator[tuple[str, str, str]]:
    """Yield what stands before a value that ``text`` may state, the value, and what stands behind it."""
    if len(text) > MAX_LENGTH or _WORD.search(text) is None:
        return
    if "\\" in text:
        text = _TEXT.sub(r"\1", text)
    text = _BOLD.sub("", text).strip()
    because = "because" in text or "since" in text
    if because and (given := _BECAUSE.fullmatch(text)) is not None and not _NO_REASON.search(given["reason"]):
        head = given["head"].strip(" *")
        if head and (readings := read(head)) and not isinstance(readings[0], Text):
            yield text[: given.start("head")], head, text[given.end("head") :]
    tried: set[str] = {text}
    known = "" if _COMPARED.search(question) else question[-2000:]
    for sentence in _sentences(text):
        if _PERSON.search(sentence) and not any(map(str.isdigit, sentence)):
            continue
        for left in (sentence, *cores(sentence, known)):
            core = left.strip(" *_").rstrip(".!")
            if not core or core in tried or len(tried) > MAX_TRIED:
                continue
            tried.add(core)
            readings = read(core)
            if (
                not readings
                or (isinstance(readings[0], Text) and core[:1] not in "$\\")
                or (counts_anything(core) and is_foreign(sentence))
            ):
                continue
            before, _core, behind = text.rpartition(core)
            if behind and counts_anything(core):
                continue
            yield before, core, behind


def _sentences(text: str) -> Iterator[str]:
    """The last sentence, what it concludes, and either without what is said aside."""
    last = [piece for piece in _BREAKS.split(text) if piece.strip()][-1:]
    for whole in last:
        yield whole
        sentence = whole
        concluded = list(_CONCLUDES.finditer(sentence))
        if concluded and _AGAINST.search(sentence, 0, concluded[-1].start()) is None:
            yield sentence[concluded[-1].end() :]
            sentence = sentence[concluded[-1].end() :]
        if (day := _NEXT_DAY.search(sentence)) is not None:
            yield sentence[: day.start()]
        if (aside := _ASIDE.search(sentence)) is not None and _is_remark(sentence, aside.group()):
            yield sentence[: aside.start()]


def _is_remark(sentence: str, aside: str) -> bool:
    """Say whether what is said aside cannot be against the answer; in another language every word has to be known."""
    if is_foreign(sentence) or is_foreign(aside):
        return all(known_words(word, "") for word in words_around(aside, ""))
    return not hedged(aside)
