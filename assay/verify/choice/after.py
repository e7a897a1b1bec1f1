# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""What may stand after the sentence that commits to an option: why it is so, the other options, a check, good wishes.

The sentences that speak of the answer or of the writer, and those of a few words, are judged by a closed world: each
word has to be known from plain explanations, since nobody can list all ways to take an answer back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from assay.verify.choice.lexicon import lexicon, words
from assay.verify.choice.marks import MARK, NOUN, Marker
from assay.verify.choice.prose import Prose
from assay.verify.choice.text import plain
from assay.verify.math.courtesy import courteous
from assay.verify.math.english import plain_words
from assay.verify.math.frames import known_words
from assay.verify.math.reconsidered import reconsidered

REFUSED = re.compile(
    r"\bno (?:idea|clue|answer|opinion|solution)\b|\b(?:do|ca|can|could|did|wo|would)(?: ?not|"
    r"n['’]t) (?:\w+ )?(?:know|tell|decide|solve|"
    r"answer|help|determine|say|be (?:determined|sure|certain|answered|solved|known))\b|\b(?:it|"
    r"that) depends\W*$|\byes and no\b|"
    r"^\W*whatever\W*$|^\W*(?:none|all|neither|both|any|some) of (?:the )?(?:above|these|them|those|options|"
    r"choices)\W*$|"
    r"\bignore (?:\w+ ){0,2}(?:previous|prior|above|instructions)\b|\b(?:refuse|decline)\b|\b(?:not able|"
    r"unable) to\b|\b(?:not enough|insufficient|lack of) "
    r"(?:information|data)\b|\bn/a\b|^\W*sorry\b|\bidk\b|\bwho knows\b|^\W*if not\b|\b(?:keine ahnung|"
    r"weiß (?:es )?nicht|"
    r"ni idea|no (?:lo )?sé|aucune idée|sais pas|non (?:lo )?so|não sei|geen idee|weet (?:het )?niet|nie wiem|"
    r"не знаю|bilmiyorum|ingen aning|vet inte|nevím)\b|不知道|わかりません|分かりません|모르겠|لا أعرف|नहीं पता|पता नहीं",
    re.IGNORECASE,
)
"""A refusal to answer, or words that leave the matter open."""
HEADING = re.compile(r"^\s*(?:#{1,6}\s.*|(?:\*\*|__)[^*_]+(?:\*\*|__):?|.*[:：][*_]*)\s*$")
_PIECES = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+|\n+|(?<=[。！？।])")
_SHORT = 4
"""Words of a fragment, which has no verb to say what it says."""
_TERSE = 2
"""Words of a fragment in another language than English."""
_RANK = re.compile(r"\b(?:first|second|any|more|each|both)$", re.IGNORECASE)
_LIST = re.compile(r",\s*(?:\.\.\.|…)")
"""Dots that go on a list."""
_CROSS = re.compile(r"^[\s.,*_)]*[❌✗✘✖👎🚫⛔]")
_ITSELF = re.compile(
    r"^\W*(?:(?:but|and|so|however|yet|then|also|in fact|still|at least)\W+)*(?:it|this|that|there|something|"
    r"everything|nothing|anything|all|don['’]t|do not|"
    r"never|(?:the|my|this|that) (?:\w+ )?(?:answer|result|choice|conclusion|reasoning|response|solution|logic|"
    r"assumption|selection|"
    r"premise|problem|question))(?:['’]\w+)?\b",
    re.IGNORECASE,
)
_WRITER = re.compile(r"\b(?:i|me|my|myself|i['’](?:m|ve|d|ll))\b", re.IGNORECASE)
_NUMERAL = re.compile(r"(?<=\w )[A-Z][a-z]+ I\b|^World War I\b")
"""``World War I`` is a numeral."""
_WRITERS = re.compile(
    r"\bi\b.{0,30}\b(?:check\w*|verif\w+|confirm\w*|chose|picked|choose|pick|ruled|eliminat\w+|used|computed|calculated|"
    r"compared|confident|"
    r"sure|certain|considered|looked|knew|know)\b",
    re.IGNORECASE,
)
_COURTEOUS = re.compile(
    r"^\W*(?:let me know if you|(?:please )?feel free|(?:i )?hope (?:this|that|it) (?:helps|clarifies|"
    r"makes sense|is correct)|"
    r"(?:i['’]m|i['’]d be|i am|i would be)? ?(?:happy|glad) to (?:help|explain|go|walk)|would you like|"
    r"do you want|if you (?:have|need|want|['’]d))\b",
    re.IGNORECASE,
)
_OF_OTHERS = re.compile(r"\b(?:others?|rest|options|choices|statements|distractors)\b", re.IGNORECASE)
_DOUBTS = re.compile(
    r"\b(?:not|no|never|could|might|may|would|if|wrong|n|un\w+|lie|guess\w*|hardly|barely|less|little|almost|"
    r"nearly|less|half|"
    r"maybe|perhaps|but|again)\b|n['’]t\b",
    re.IGNORECASE,
)
_EXPLAINS = frozenset(
    "explanation reasoning reason reasons why because justification rationale note solution working steps step "
    "proof source "
    "sources reference references verification check checks verified checked confirmed done correct right true "
    "qed indeed "
    "simple easy definition definitions key point points concept concepts fact facts formula hint summary "
    "conclusion details "
    "option options choice choices statement statements others other wrong incorrect false not confused confuse "
    "often "
    "sometimes mistaken distractor tempting plausible describes describe refers called known named located found "
    "contains "
    "responsible common mistake error errors misconception trap stands doesn't isn't aren't don't cannot can't "
    "n't nor never rather "
    "however although though while whereas unlike meaning hence analysis overview background context elimination "
    "process "
    "comparison compare supports matches match fits fit consistent definitely clearly exactly simply discovered "
    "invented wrote written "
    "hope helps helped luck great thanks thank welcome enjoy cheers question questions happy studying good "
    "excellent".split()
)
_ADMITS = frozenset("wrong incorrect false error errors mistake mistaken misconception trap tempting".split())
"""Words that tell of another option, or against the answer."""
_AGAINST = _ADMITS | frozenset(
    "not isn't isn’t wasn't wasn’t cannot can't never fails out excluded rejected eliminated ruled unlikely impossible "
    "untrue determined could might may would maybe perhaps doubtful retracted "
    "withdrawn nonsense guess joke lie distractor falsch faux "
    "fausse incorrecto incorrecta falso falsa errado errada sbagliato sbagliata fout fel nicht no não non".split()
)
"""Words that deny or doubt the option a sentence begins with."""
_REFUTES = re.compile(
    r"\b(?:not|nor|never|no|none|neither|cannot|rul\w+|eliminat\w+|exclud\w+|discard\w*|reject\w*|unlike|wrong|"
    r"incorrect|false|"
    r"distract\w+|instead of|than|confus\w+|mist\w+|differ\w*|contrast\w*|compar\w+|versus|vs|tempt\w+|trap|"
    r"between|from|about|"
    r"except|without|nicht|kein\w*|falsch\w*|pas|faux|fausse|ni|sino|incorrect\w+|não|nem|errad\w+|non|né|"
    r"sbagliat\w+|niet|geen|"
    r"fout|inte|fel|nie|ne|не|ни|неверн\w+|değil|yanlış|bukan|salah|không|sai|cross\w*|strik\w*|drop\w*|"
    r"fail\w*)\b|n['’]t\b|"
    r"不|错|錯|ない|間違|誤|아니|틀|ليس|خطأ|नहीं|गलत|[✗✘❌≠]",
    re.IGNORECASE,
)
_TOO = re.compile(
    r"\b(?:also|too|as well|fine|acceptable|possible|plausible|equally|accept|instead|prefer|either|better|"
    r"more (?:sense|likely|plausible))\b",
    re.IGNORECASE,
)
_AT_END = re.compile(
    r"[\s\"'”’»).!*:;,-]*(?:(?:instead|though|then|now|please|actually|after all|for (?:me|you|sure|\w+))\W*)?$"
)
_OUT = re.compile(
    r"\W*(?:cross|strike|rule|throw|toss|leave|take|put|cut)\b.{0,30}\b(?:out|away|back|aside|"
    r"off)\W*$",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"\W*(?:the|an?)\s", re.IGNORECASE)
_OPTION = re.compile(rf"\b{NOUN}s? \(?[A-Z]\b", re.IGNORECASE)
_SECOND = re.compile(
    r"(?:\W|\b(?:or|and|as|well|more|precisely|accurately|exactly|better|rather|actually|in|fact|maybe|perhaps|"
    r"possibly|also|else|"
    r"then|no|instead|hmm|if|you|prefer|please|read|for|me|to|be|precise)\b)*",
    re.IGNORECASE,
)
_EACH_FOR = re.compile(r"\bfor \w+,? (?:and|but)\W*$", re.IGNORECASE)
_SAYS = re.compile(r"\b(?:says?|said|prefers?|answers)\W*$", re.IGNORECASE)
_COPULA = re.compile(
    r"\b(?:it|that|this|one|answer|choice|option) (?:is|was|must be|should be)\W*(?:option|"
    r"choice|answer)?\W*$|\bit['’]s\W*$",
    re.IGNORECASE,
)
_UNMEANT = re.compile(r"\b(?:told me|says?|said)\W*(?:so\W*)?$", re.IGNORECASE)


def against_after(after: str, label: str, prose: Prose, english: bool, agrees: Callable[[str], bool]) -> str | None:
    """Return what in ``after`` speaks against the option ``label``, ``None`` if nothing does.

    Args:
        after: what stands after the sentence that commits to the option.
        prose: reads sentences about the options.
        english: whether English is expected.
        agrees: whether a text by itself is the answer.
    """
    after = whole(_LIST.sub(" etc.", after))
    if _CROSS.match(after):
        return "it is crossed out"
    if reconsidered(after, agrees):
        return "it goes on thinking about the answer"
    for piece in _split(after):
        text = plain(piece)
        marked = prose.marked(text)
        other = stated(marked, label, prose) or prose.asserted(marked)
        if other is not None and other != label:
            return f"it goes on to {other}"
        if _denied(marked, label, prose):
            return "the answer is denied"
        if REFUSED.search(text) and len(text.split()) <= _SHORT + 2:
            return "it declines to answer"
        if english and text.isascii():
            if not courteous(piece) and _doubtful(text, marked, prose):
                return f"what it says of the answer is not known to be harmless: {text[:60]!r}"
        elif not MARK.search(marked) and not HEADING.match(piece) and _terse(text, prose):
            return f"what it says of the answer is not known to be harmless: {text[:60]!r}"
    return None


def _terse(text: str, prose: Prose) -> bool:
    """Say whether a fragment of another language denies, or holds a word that is not known to be harmless."""
    said = words(text)
    if not 0 < len(said) <= _TERSE:
        return False
    return lexicon(text).no.search(text) is not None or not all(
        known_words(word, prose.stem) or prose.asks(word) for word in said
    )


def _doubtful(text: str, marked: str, prose: Prose) -> bool:
    """Say whether an English sentence speaks of the answer or the writer in words not known to be harmless."""
    if _COURTEOUS.match(text) or _OF_OTHERS.search(text):
        return False
    if _WRITER.search(_NUMERAL.sub(" ", text)) and (_WRITERS.search(text) is None or _DOUBTS.search(text)):
        return True
    if _OUT.match(text) or _UNMEANT.search(text):
        return True
    beside = words(MARK.sub(" ", marked))
    of_option = MARK.search(marked) is not None or _OPTION.search(text) is not None
    of_subject = _SUBJECT.match(text) is not None or (bool(beside) and prose.asks(beside[0]))
    fragment = 0 < len(beside) <= _SHORT and not of_subject and not of_option
    if (not fragment and not _ITSELF.match(text)) or any(map(str.isdigit, text)):
        return False
    if len(beside) < _SHORT and not of_option and beside[:1] == ["not"]:
        return True
    return any(not _plain(word, prose) or (word in _ADMITS and not of_option) for word in beside)


def whole(text: str) -> str:
    """``text`` with a full stop after a word that may end a sentence or begin a phrase: ``per second``."""
    text = text.rstrip()
    return f"{text}." if _RANK.search(text) else text


def _split(after: str) -> Iterator[str]:
    return (piece for piece in _PIECES.split(after[:4000]) if any(map(str.isalpha, piece)))


def _plain(word: str, prose: Prose) -> bool:
    return len(word) < 3 or word in plain_words() or word in _EXPLAINS or prose.asks(word)


def stated(marked: str, label: str, prose: Prose) -> str | None:
    """Return another option's label that a fragment ends in, or that is called possible too."""
    marked = Marker.joined(marked)
    for match in reversed(list(MARK.finditer(marked))):
        key = prose.marker.key(match)
        head, tail = marked[: match.start()], marked[match.end() :]
        if key == label or _REFUTES.search(head) or _REFUTES.search(tail):
            continue
        beside = words(MARK.sub(" ", head))
        ends = _AT_END.match(tail) is not None
        if ends and (match[2] != "t" or len(beside) <= 1) and (len(beside) <= 5 or _TOO.search(head)):
            return key
        if _EACH_FOR.search(head) and tail.lstrip(" )*.").startswith("for "):
            return key
        if match[2] != "t" and _SAYS.search(head):
            return key
        if ends and len(beside) <= 6 and (_SECOND.fullmatch(head) or _COPULA.search(head)):
            return key
        if _TOO.search(tail) and len(words(tail)) <= 5:
            return key
    return None


def _denied(marked: str, label: str, prose: Prose) -> bool:
    """Say whether the option's own text or label is denied: ``It can't be Mercury.``"""
    sign = prose.marker.sign(label)
    subject = re.match(rf"\W*(?:the |option )?\ue000{sign}.(?P<said>.*)", marked, re.IGNORECASE | re.DOTALL)
    if subject is not None and _AGAINST & {*words(subject["said"])[:6]}:
        return True
    found = re.search(
        rf"(?:\b(?:it|this|that|answer|one|i)\b.{{0,20}}(?:\bnot|n['’]t|\bnever|"
        rf"\bcannot)(?: \w+){{0,3}}['’]?s? ?\ue000{sign}.\W*$)|"
        rf"^\W*(?:\w+ )?\ue000{sign}. (?:is|was|can|could)(?:n['’]t| ?not| never)(?: be)?(?: (?:the|it|right|"
        rf"correct|\w+ answer).*)?\W*$",
        marked,
        re.IGNORECASE,
    )
    return found is not None
