# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""An unmarked statement of the right value that nothing ties to the question: ``I am 42 years old.``, ``Loss: 42``.

Nobody can list what else a number may measure. So something has to tie a statement to the question: a word of the
question, or of the quantity that it asks for, or one that announces an answer; without any of these all its words have
to be those of plain working. A label before a colon ties nothing by a part of its words: each has to be known.
"""

from __future__ import annotations

import functools
import re

from assay.verify.math.elsewhere import NO_THINGS, is_english
from assay.verify.math.english import plain_words
from assay.verify.math.final import Final
from assay.verify.math.foreign_doubt import prose
from assay.verify.math.frames import is_foreign
from assay.verify.math.units import lookup
from assay.verify.math.words import number_words

_WORD = re.compile(r"(?<![\\\w])[A-Za-z](?:[A-Za-z]|['’](?=[a-z]))*")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|textit|mbox)\s*\{([^{}]*)\}")
_ENDS = re.compile(r"(?<=[a-z0-9)$*}\]%][.!?])\s+(?=[A-Z0-9$€£\\*(])|\n+")
_LABEL = re.compile(
    r"^[\s*_#>•-]*(?P<label>[A-Za-z][^:=\n0-9$\\]{0,40}?)[*_]{0,2}:[*_]{0,2}\s*(?P<value>\S[^\n]{0,160})$"
)
_ANNOUNCING = frozenset("answer answers ans result results solution solutions".split())
_IMPLIED = (
    ("how many", "count number total amount quantity remaining left altogether overall possibilities ways"),
    (
        "how much",
        "cost costs price pay pays paid total amount spend spent spends worth value money charge charged bill sum "
        "altogether overall earn earns earned profit change left remaining fee buys",
    ),
    (
        "how far|how long|how tall|how high|how wide|how deep",
        "distance length time duration height width depth takes lasts took travels minutes hours total",
    ),
    ("how fast|speed", "speed velocity rate travels drives moves goes runs flies"),
    ("how heavy|weigh", "weight mass weighs"),
    ("how old", "age old years"),
    ("when|what time|which day|what day", "time date day hour clock ends starts arrives leaves"),
    ("percent", "percentage percent increase decrease rise change rate"),
    (
        "solve|find all|root|zero|inequal|equation",
        "roots root zeros zero values value solution set interval holds true satisfied satisfies between",
    ),
    (
        "simplif|evaluat|calculat|comput|what is|differentiat|integrat|factor|expand",
        "sum difference product quotient "
        "simplified simplifies derivative value expression equals total integral antiderivative form",
    ),
    ("fraction|ratio|probab|chance|likel", "fraction ratio probability chance proportion"),
    ("point|intersect|where|coordinat", "point intersection coordinates meet cross location"),
    ("price|cost|dollars|pays?|\\$|€", "price cost costs pay pays paying paid total amount you'd"),
    ("km/h|m/s|mph|per hour", "speed rate"),
    ("hours?|minutes?|days?|weeks?", "time duration takes lasts"),
    ("celsius|fahrenheit|degrees|°", "temperature"),
    ("area", "shape covers covered surface"),
    ("greatest common|gcd", "gcd hcf"),
    ("least common|lcm", "lcm"),
    ("average", "mean average"),
    ("how", "total number amount value"),
)
"""Quantities that a question asks for in other words."""
_PLAIN = frozenset(
    """
    the a an our my this that its it it's that's final correct right exact value number total sum amount what we i
    want needed required desired sought of to in exactly therefore thus hence then so indeed only unique is are was will
    be must get obtain find found have also equal equals one each per and or with as by at on there how many much which
    were exact simplest form simplified simplify simplifies simplifying reduces reduce reducing becomes gives give given
    giving yields yield leaves leaving makes comes out turns works evaluates amounts means finally altogether overall
    conclusion consequently accordingly clearly simply precisely approximately about roughly nearly rounded rounding
    round decimal fraction percent place places lowest terms into from for up all both total conclude concludes
    let's let us see can now here where when if since because after adding subtracting multiplying dividing solving
    combining expanding factoring substituting computing calculating evaluating differentiating integrating counting
    plus minus times divided over squared cubed square cube root roots power sqrt pi sin cos tan log ln mod remainder
    true false yes no either namely equivalently words writing written expressed expression equation equations function
    hours minutes variable variables has does do two three four five six seven eight nine ten there's i'd say you your
    term terms side sides left hand hold holds satisfies positive negative integer integers real whole numbers values
    unknown solve solved solves derivative integral limit matrix vector set sets interval point points
    pair pairs summarise summarize summary working through problem doing carefully calculation arrived arrive arriving
    resulting requested logarithm modulus discriminant pythagoras quadratic binomial theorem distribution standard
    converges converge cancelling canceling cancel prints print returns output need needs same
    end middle top bottom rule rationalising rationalizing multiply divide subtract add step step-by-step moving
    completing rewriting distributing sorting scaling starting swap swapping collecting like sorted net
    corresponds would that's done work worked out went using used greater less smaller larger than
    remain remains checking steps once more confirms confirm confirmed write count them while slope intercept back
    brings sure occur elements both lies reference quadrant list vanishes horizontal vertical arbitrary split constant
    euclid's euclidean algorithm nonzero last it'll divisible choose
    factorial favourable favorable outcomes likely hence
    pair pairs triangle rectangle circle area perimeter volume angle length probability mean median mode average product
    difference quotient ratio factor factors digits digit prime base degree degrees radians coefficient coefficients
    """.split()
)
_IN_LABEL = frozenset(
    """
    the a an our my your this final short full exact simplified decimal numeric numerical correct value values total
    totals sum output response conclusion verdict so thus hence therefore overall altogether finally in of to is as and
    we get obtain form here grand step slope intercept check verification summary explanation it equals units unit words
    that part
    choice option then now note them count swap solve all both tl dr
    """.split()
)
_LITTLE = frozenset("in of to is as and then now from by at on a an the".split())
_A_NUMBER = re.compile(
    r"\bis (?:just |only )?an? (?:\w+ )?(?:number|value|thing|figure|quantity|expression)\W*$", re.IGNORECASE
)
_ENGLISH = frozenset(["confidence", "certainty", "score", "loss"])
"""Words that the list of other languages knows, too."""
_WORKED = re.compile(
    r"(?:[0-9)}\]²³%]|(?<![A-Za-z])[A-Za-z])[\s$]*(?:[=+*/×÷·≡→≈⇒<>≤≥−:^]|-(?=[\s0-9(])|\\(?:times|cdot|div|equiv|to)\b)\s*"
    r"[-−√(\\$0-9A-Za-z]"
)
_NAMED = re.compile(r"\b[A-Za-z]\s?=|(?<=[0-9])[:/](?=[0-9])|(?<=[A-Za-z])[:/](?=\s?[A-Za-z])|(?<=[a-z]):(?=\s)")
_SUM = re.compile(r"\b(?=[0-9a-z]{0,2}[0-9a-z])[0-9a-z]+\s?[-+]\s?[0-9a-z]+")
_OF_A_VALUE = re.compile(
    r"[a-z-]+ths?|quarters|thirds|halves|half|third|past|noon|midnight|morning|afternoon|evening|night|cubic|squared?|"
    r"percent|inf|infty|infinity|sqrt|pi|array|matrix|pm|mars"
)
_IN_ENGLISH = frozenset("I i am is are the my this he she it of in for at a has was has that got".split())
_SPOKEN = re.compile(r"\b(?:we|it|i|you|he|she|is|are|by|from|if|with|there|this|that|to|go)\b|ing\b", re.IGNORECASE)
_MEASURED = frozenset(
    """
    problem problems question questions task exercise step steps point points age ages old older younger year years
    loss gain profit cost costs price prices money pay pays paid spend spends spent earn earns earned save saves saved
    worth sale discount tax bill fee speed velocity acceleration time times duration weight mass temperature force
    energy density pressure current voltage resistance charge frequency period people person persons item items object
    objects thing things piece pieces group groups chance chances odds page name word letter capital city country
    author made way ways date day week month hour clock century stay stays put say says know known see count
    """.split()
)
"""Things that numbers measure in all kinds of sentences: they tie nothing to a question that does not ask for them."""
_STRANGER = re.compile(
    r"\b(he|she|they|his|her|their)\b(?! (?:has|have|had|now|still|will|needs?|gets|pays?)\b)", re.IGNORECASE
)
_OF_THE_TASK = re.compile(r"^\W*(?:this|the|that|our|my) (?:problem|question|task|exercise|text)\b", re.IGNORECASE)
_CAPITALS = re.compile(r"\b[A-Z]{2,4}\b")
_STEM = 4
_SHORT = 3


def off_topic(final: Final, response: str, question: str, reference: str) -> str | None:
    """Return the words of an unmarked statement that tie it to another thing, ``None`` if it may answer the question.

    Args:
        final: the answer found, which agrees with the reference.
        response: the response.
        question: one in another language than English is not asked about.
        reference: its words are known; one without a digit is not asked about.
    """
    if final.marker or not any(map(str.isdigit, reference)) or not is_english(question):
        return None
    sentence = _sentence(final, response)
    if not any(map(str.isalpha, sentence)) or _is_foreign(sentence):
        return None
    if (a_number := _A_NUMBER.search(sentence)) is not None and "number" not in question.casefold():
        return a_number.group()
    asked = _asked(f"{question} {reference}")
    label = _LABEL.match(sentence)
    if label is not None and (_SPOKEN.search(label["label"]) is None or len(label["label"].split()) == 1):
        worked = _WORKED.search(_bare(label["value"], reference)) is not None
        return None if worked else _label(label["label"], question, asked)
    if _WORKED.search(_bare(sentence, reference)) is not None:
        return None  # work that leads to the value ties itself
    words = [word for word in _words(_CAPITALS.sub(" ", sentence)) if not _is_value(word)]
    if any(word in _ANNOUNCING or _is_asked(word, question, asked) for word in words):
        return None
    if (holds := _OF_THE_TASK.search(sentence)) is not None:
        return holds.group()
    known = _PLAIN | (NO_THINGS - _MEASURED)
    stranger = _STRANGER.search(sentence)
    if stranger is not None and re.search(rf"\b{stranger[1]}\b", question, re.IGNORECASE) is None:
        return stranger.group()
    return next((word for word in words if _is_strange(word, known)), None)


def _is_strange(word: str, known: frozenset[str]) -> bool:
    return word not in known and len(word) > 2 and not word.endswith("ly")


def _sentence(final: Final, response: str) -> str:
    """The sentence of the response that holds the answer."""
    end = len(response) - len(final.after) if final.after and response.endswith(final.after) else len(response)
    place = response.rfind(final.text, 0, end)
    if place < 0 or not final.text:
        return f"{final.lead} {final.text}{final.after}".strip().partition("\n")[0]
    stop = place + len(final.text)
    told = [piece for piece in _ENDS.split(response[max(place - 300, 0) : stop]) if piece.strip(" *_$.")]
    valued = [piece for piece in told if _holds_a_value(piece)] or told
    if not valued or final.text.endswith((".", "!", "?")):
        return valued[-1] if valued else ""
    return valued[-1] + _ENDS.split(response[max(stop - 1, 0) : stop + 200])[0][1:]


def _holds_a_value(piece: str) -> bool:
    said = any(map(str.isdigit, piece)) or "\\" in piece
    return said or any(number_words(word) is not None for word in _words(piece.replace("-", " ")))


def _is_foreign(sentence: str) -> bool:
    if not is_foreign(sentence):
        return False
    words = [word for word in _words(sentence) if not _is_value(word)]
    accented = any(char.isalpha() and not char.isascii() and not "α" <= char.casefold() <= "ω" for char in sentence)
    if accented or (len(words) > 1 and not _IN_ENGLISH & {*words, *sentence.split()}):
        return _LABEL.match(sentence) is None or accented
    return any(
        len(word) > 2 and word not in plain_words() and word not in NO_THINGS and word not in _ENGLISH
        for word in _words(sentence)
    )


def _label(label: str, question: str, asked: frozenset[str]) -> str | None:
    words = _words(label)
    if not words or len(words) > _SHORT or _ANNOUNCING & set(words):
        return None
    if all(word in _LITTLE for word in words):
        return label
    for word in words:
        if len(word) < 2 or word in _IN_LABEL or _is_asked(word, question, asked):
            continue
        if not _is_value(word):
            return word
    return None


def _is_value(word: str) -> bool:
    return lookup(word) is not None or number_words(word) is not None or _OF_A_VALUE.fullmatch(word) is not None


def _bare(text: str, reference: str) -> str:
    """A text without names of variables before "=", and without operators where they may be the value's own."""
    text = _NAMED.sub(" ", text)
    return _SUM.sub(" ", text) if "+" in reference or "-" in reference else text


def _words(text: str) -> list[str]:
    plain = prose(_TEXT.sub(r" \1 ", text)) if any(map(text.__contains__, "$\\{<")) else text
    return [match.group().casefold().replace("’", "'") for match in _WORD.finditer(plain) if len(match.group()) > 1]


def _is_asked(word: str, question: str, asked: frozenset[str]) -> bool:
    return len(word) > 2 and (word[:_STEM] in asked or word in _implied(question))


@functools.lru_cache(256)
def _implied(question: str) -> frozenset[str]:
    found = [words for asked, words in _IMPLIED if re.search(rf"(?<![a-z])(?:{asked})", question, re.IGNORECASE)]
    return frozenset(" ".join(found).split())


_STOPS = frozenset(
    "the and for are was were has have had with what which who how many much that this from does is".split()
)


@functools.lru_cache(256)
def _asked(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in _WORD.findall(text.casefold()) if len(word) > 2 and word not in _STOPS)


__all__ = ["off_topic"]
