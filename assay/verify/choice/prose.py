"""Whether a sentence commits to an option: every word around the label or text has to be accounted for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from assay.verify.choice.lexicon import (
    UNSPACED,
    UNSPACED_BECAUSE,
    UNSPACED_MILD,
    UNSPACED_OPENS,
    UNSPACED_SO,
    Lexicon,
    lexicon,
    words,
)
from assay.verify.choice.marks import MARK, MAX_MARKED, NOUN, Marker
from assay.verify.choice.text import plain
from assay.verify.math.english import plain_words
from assay.verify.math.frames import known_words
from assay.verify.math.units import lookup

MAX_LABELS = 12
"""Marks of a sentence that are tried, from its end."""
_STEM = 5
"""Letters by which a word of the question is known again."""
_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_BOUNDARY = re.compile(r"[,;，；、،](?![0-9])|\s[-–—](?=\s)|[–—]|→|⇒|⟹|=>|->|∴|(?<=[^\W\d_])\.\s")
_ARROW = re.compile(r"(?:→|⇒|⟹|=>|->|∴|\\to|\\rightarrow|\\Rightarrow|\\therefore)\s*$")
_STOPS = re.compile(r"[;:：；(（]|\s[-–—]\s|[–—]")
UNSTATED = re.compile(
    r"[?？؟]|[✗✘❌✕✖🚫⛔👎≠]|(?:\.\.\.?|…)[\s\"')}*]*$|"
    r"^\W*(?:the )?(?:options|choices)\b|\ban? (?:option|choice|answer)\b",
    re.IGNORECASE,
)
"""Questions, crosses, dots at the end and lists."""
_OTHERS = re.compile(
    r"^\W*(?:is|are|should|must|would|do|does|did|can|could|will|shall|here|there|"
    r"which(?! (?:corresponds|matches|means|leaves|gives|makes|is \W*\ue000))|"
    r"what(?! remains)|why|ist|sind|är|er|est-ce)\b|"
    r"\bthey (?:\w+ )?(?:choose|pick|select|settle|think|believe|go)\b",
    re.IGNORECASE,
)
"""Questions without their mark, and what others choose."""
_NAMED = r"(?:options|choices|answers|alternatives|four|five|three|possibilities|statements)"
_PHRASES = re.compile(
    r"\b(?:to (?:summari[sz]e|conclude|sum up|repeat|restate|recap|reiterate|be clear)|once (?:again|more)|"
    r"in (?:conclusion|the end|summary|sum|short|total)|all in all|at last|"
    r"on reflection|(?<=answer )to (?:the|this) question|"
    r"(?:option|choice|answer|statement|one) (?:that|which) (?:best )?"
    r"(?:describes|fits|matches|explains|satisfies|completes)"
    r"(?: (?:this|it|these|the (?:question|description|definition|statement|conditions?|criteria)))?|"
    r"as (?:required|desired|was to be shown)|putting (?:it all|everything|this|all of this) together|"
    r"\bwe (?:find|obtain|get|see|have|deduce)(?: that)?|"
    r"after checking (?:all|each)(?: of)?(?: the| them)?(?: four| five| three| options)?|of course|"
    r"(?:without (?:a |any )?|no |beyond (?:a |any )?)doubt|"
    rf"(?:looking at|given|out of|among|of) (?:all |both )?(?:of )?(?:the|these|those) (?:\w+ )?{_NAMED}|"
    r"(?<=\bi)(?:['’]d| would)(?= (?:\w+ )?(?:go|choose|pick|select|settle|answer)\b)|i(?:['’]d| would) say)\b",
    re.IGNORECASE,
)
"""Phrases whose words would not be harmless by themselves."""
_IS = re.compile(
    r"\b(?:comes|works|turns) out (?:as|to be)\b|(?:(?<=answer)|(?<=choice)|(?<=option)|(?<=\bthat)) would be\b|"
    r"(?<=this) gives\b",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"\bwhatever\b[^,]*,|\b(?:first|initial) (?:thought|guess)\b|\bi (?:\w+ )?(?:thought|believed|guessed)\b",
    re.IGNORECASE,
)
_QUOTATION = re.compile('["“«„]([^"“”«»„]{2,60})["”»“]')
_MILD = re.compile(
    r"but|however|yet|though|or|aber|jedoch|oder|mais|ou|cependant|toutefois|pero|o|u|aunque|mas|porém|ma|però|oppure|"
    r"maar|of|men|eller|mutta|tai|ale|lub|albo|nebo|alebo|але|або|чи|но|или|либо|dar|sau|de|vagy|αλλά|ή|ama|fakat|veya|"
    r"لكن|أو|אבל|או|اما|ولی|یا|लेकिन|या|কিন্তু|বা|nhưng|hoặc|tetapi|tapi|atau|하지만|또는|"
    r"wrong\w*|incorrect|falsch\w*|fel",
    re.IGNORECASE,
)
"""Alternatives, contrasts and errors: harmless in what a conclusion is drawn from."""
_CONTRAST = re.compile(
    r"(?:but|however|yet|aber|jedoch|mais|pero|mas|ma|però|maar|men|mutta|ale|але|но|dar|de|αλλά|ama|fakat|"
    r"لكن|אבל|اما|ولی|लेकिन|কিন্তু|nhưng|tetapi|tapi)\b",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"\b(?:wrong|incorrect|false|distractor|trap|falsch\w*|faux|fausse|incorrect[oa]|errad[oa])\b", re.IGNORECASE
)
_LEADING = re.compile(
    r"\W*(?:because|since|weil|da|parce que|puisque|comme|porque|como|poiché|siccome|omdat|eftersom|fordi|koska|"
    r"ponieważ|protože|pretože|так как|поскольку|оскільки|mivel)\b",
    re.IGNORECASE,
)
"""A reason before the answer."""
_ADVERBIAL = re.compile(
    r"\W*(?:after|based on|given|by|using|considering|comparing|looking|having)\b"
    r"(?!.*\b(?:coin|dice|die|toss|flip|roll|guess\w*|gut|random\w*|instinct|feeling|hunch|luck)\b).*,\s*$",
    re.IGNORECASE,
)
_WORKING = frozenset(
    {"analysis", "reasoning", "explanation", "evidence", "definition", "information", "passage", "text", "elimination"}
    | {"discussion", "principle", "options", "choices"}
)
_FORMULA = re.compile(r"\\[A-Za-z]+|\b\w*[0-9]\w*\b")
_NEVER = frozenset(
    {"after", "before", "next", "following", "previous", "preceding", "opposite", "but", "other", "others", "besides"}
    | {"beyond", "not", "no", "none", "never", "nor", "except", "wrong", "false", "incorrect", "out", "without"}
    | {"least", "last", "less", "zero", "minus", "second", "third", "nicht", "kein", "keine", "pas", "aucun", "non"}
    | {"ningún", "não", "nie", "niet", "geen", "inte", "ikke", "ei", "не", "нет", "nem", "nu", "δεν", "değil"}
    | {"yanlış", "falsch", "faux", "falso", "errado"}
    | {"zweite", "zweiter", "zweites", "dritte", "dritter", "vierte", "vierter", "deuxième", "troisième", "quatrième"}
    | {
        "segundo",
        "segunda",
        "tercero",
        "tercera",
        "tercer",
        "cuarto",
        "cuarta",
        "terceiro",
        "terceira",
        "quarto",
        "quarta",
    }
    | {
        "secondo",
        "seconda",
        "terzo",
        "terza",
        "tweede",
        "derde",
        "vierde",
        "andra",
        "tredje",
        "fjärde",
        "druga",
        "drugi",
    }
    | {"второй", "вторая", "третий", "третья", "четвёртый", "четвёртая", "third", "fourth"}
    | {"close", "near", "nearly", "almost", "far", "half", "old", "former", "different", "placeholder"}
)
"""Words that are no commitment though the question or a list of harmless words has them."""
_ELIDED = ("l'", "l’", "d'", "d’", "j'", "j’")
_TRUTHS = {
    "true": {"wahr", "richtig", "vrai", "verdadero", "verdadeiro", "vero", "waar", "sant", "prawda", "верно", "правда"},
    "false": {"falsch", "faux", "falso", "onwaar", "falskt", "fałsz", "nepravda", "неверно", "ложь", "false"},
    "yes": {"ja", "oui", "sí", "sim", "sì", "tak", "ano", "да", "так", "igen", "evet"},
    "no": {"nein", "non", "não", "nee", "nej", "nie", "ne", "нет", "ні", "nem", "hayır"},
}
_TRUTH_WORDS = frozenset(_TRUTHS).union(*_TRUTHS.values())


class Prose:
    """Reads what single sentences say about the options of one question.

    Args:
        options: text by label.
        question: its words are known; those of the options in it are not.
    """

    def __init__(self, options: Mapping[str, str], question: str) -> None:
        self.marker = Marker(options)
        truths: dict[str, set[str]] = {
            key: _TRUTHS.get(value.casefold(), set()) for key, value in self.marker.values.items()
        }
        self.own = {key: self.marker.words(key) | truths[key] for key in self.marker.labels}
        self.stems = {
            key: frozenset(word[:_STEM] for word in own if len(word) >= _STEM) for key, own in self.own.items()
        }
        stem = plain(question[-MAX_MARKED * 2 :])
        for value in self.marker.values.values():
            stem = stem.replace(value, " ") if len(value) > 1 else stem
        self.stem = stem
        self.asked = frozenset(word[:_STEM] for word in words(stem) if len(word) > 1)
        self.quoted = [plain(said) for said in _QUOTATION.findall(question[-MAX_MARKED * 2 :])]

    def committed(self, sentence: str) -> tuple[str, bool, bool] | None:
        """Return the label that ``sentence`` commits to, whether words say so, and whether it says more of its text."""
        if len(sentence) > MAX_MARKED or UNSTATED.search(sentence):
            return None
        marked = self.marked(sentence)
        if _OTHERS.search(marked):
            return None
        joined = Marker.joined(marked)
        for text in (joined, marked) if joined != marked else (joined,):
            for key, kind, before, behind, lexis in self._places(text):
                is_text = kind == "t"
                head, tail = self._without_denied(before, key, lexis), self._without_denied(behind, key, lexis)
                both = kind == "b" and not _beside(head) and lexis.no.search(tail) is None
                whole = both or (len(_beside(head)) > 1 and self._accounted(head, key, lexis, False))
                leads = self._led(head, key, lexis, is_text, bool(_beside(tail)))
                if leads and self._followed(tail, key, lexis, is_text, whole):
                    return key, bool(_beside(head) or _beside(tail)), is_text and bool(_beside(tail))
        return None

    def turns(self, sentence: str, label: str) -> bool:
        """Say whether a clause of the sentence would by itself commit to another option: ``Wait, no, it is A.``"""
        for key, _, head, tail, lexis in self._places(self.marked(sentence)):
            clause = _BOUNDARY.split(head)[-1]
            defined = f"\ue000{self.marker.sign(key)}" in clause  # "A is Venus"
            stated = (
                key != label and bool(_beside(clause)) and not defined and self._accounted(clause, key, lexis, False)
            )
            if stated and self._followed(_BOUNDARY.split(tail)[0], key, lexis, False, False):
                return True
        return False

    def chosen(self, sentence: str) -> str | None:
        """Return the option that a sentence chooses by its label."""
        read = self.committed(sentence)
        if read is None:
            return None
        return read[0] if self.speaks_of(sentence, read[0]) else None

    def asserted(self, marked: str) -> str | None:
        """Return the one option of which a marked sentence says nothing but what is asked: ``Venus is closest.``"""
        found = {self.marker.key(match): match for match in MARK.finditer(marked)}
        if len(found) != 1:
            return None
        (key, match) = found.popitem()
        lexis = lexicon(MARK.sub(" ", marked))
        said = [word for word in _beside(marked) if len(word) > 1]
        if match[2] == "l" or self.own[key] & _TRUTH_WORDS or _FORMULA.search(MARK.sub(" ", marked)):
            return None
        known = all(word in lexis.frame or (word[:_STEM] in self.asked and word not in _NEVER) for word in said)
        return key if known and not UNSTATED.search(marked) else None

    def frames(self, heading: str, key: str) -> bool:
        """Say whether a heading over an option says nothing but that it is the answer."""
        marked = self.marked(heading)
        lexis = lexicon(MARK.sub(" ", marked))
        return not UNSTATED.search(marked) and self._accounted(marked, key, lexis, False)

    def asks(self, word: str) -> bool:
        """Say whether a word is one of the question or of an option."""
        return word[:_STEM] in self.asked or any(word in own for own in self.own.values())

    def speaks_of(self, sentence: str, label: str) -> bool:
        """Say whether the label itself occurs in the sentence."""
        return any(self.marker.key(m) == label and m[2] == "l" for m in MARK.finditer(self.marked(sentence)))

    def marked(self, sentence: str) -> str:
        """``sentence`` with its options marked, without phrases that say nothing about them."""
        text = _PHRASES.sub(" ", _IS.sub(" is", sentence[:MAX_MARKED]))
        for said in self.quoted:
            text = text.replace(said, "it")
        return self.marker.mark(text)

    def _places(self, marked: str) -> Iterator[tuple[str, str, str, str, Lexicon]]:
        """Each mark, from the last one on: its option and kind, what stands before and behind it.

        A text counts as one only in a sentence that speaks of what is asked, and where it stands without its label.
        """
        lexis = lexicon(MARK.sub(" ", marked))
        labelled = Marker.labelled(marked)
        asking = any(word[:_STEM] in self.asked for word in _beside(marked) if word not in lexis.frame)
        for match in reversed(list(MARK.finditer(marked))[-MAX_LABELS:]):
            kind = "l" if match[2] == "t" and (not asking or match[1] in labelled) else match[2]
            yield self.marker.key(match), kind, marked[: match.start()], marked[match.end() :], lexis

    def _without_denied(self, text: str, key: str, lexis: Lexicon) -> str:
        """Leave out ``not A``, ``and not Sydney``, ``not oxygen but``, where these are other options."""
        if "\ue000" not in text:
            return text
        mark = rf"(?:{NOUN} )?\ue000(?!{self.marker.sign(key)}).."
        listed = rf"{mark}(?:\s*(?:,|\b\w{{1,4}}\b)?\s*{mark})*\)?(?:,? (?:but|sondern|sino|mais|mas)\b)?"
        denied = rf"[\s,;(—–-]*(?:\b\w{{1,3}} )?{lexis.no.pattern}(?: (?:the|la|el|der|die|das))?\s*{listed}"
        return re.sub(denied, " , ", text, flags=re.IGNORECASE)

    def _led(self, head: str, key: str, lexis: Lexicon, is_text: bool, said: bool) -> bool:
        """Say whether what stands before an option leads to it; ``said``: words behind it say that it is the one."""
        if self._accounted(head, key, lexis, is_text):
            return True
        if _ARROW.search(head):
            return not self._open(head, lexis)
        ends = [match.end() for match in _BOUNDARY.finditer(head)]
        if _ASIAN.search(head):
            ends += [match.end() for match in re.finditer(r"[\s:：]+", head)]
        if said and head.rstrip().endswith((",", ";")) and (_LEADING.match(head) or head.rstrip()[-1] == ";"):
            return not self._open(head, lexis)
        last = max((end for end in ends if head[end:].strip(" (*")), default=0)
        lead, frame = (head[:last], head[last:].strip()) if last else ("", head)
        if (contrast := _CONTRAST.match(frame)) is not None:
            frame = frame[contrast.end() :]
        concluded = lexis.so.search(frame) is not None or UNSPACED_SO.search(frame) is not None
        apart = lead.rstrip().endswith((";", "；")) or (_LEADING.match(lead) is not None and bool(_beside(frame)))
        turned = contrast is not None and len(_beside(frame)) > 1
        if lead and (concluded or apart or turned) and self._accounted(frame, key, lexis, False):
            return not self._open(lead, lexis)
        if self._adverbial(lead, lexis) and len(_beside(frame)) > 1 and self._accounted(frame, key, lexis, False):
            return True
        # "Na is sodium and therefore B": the conclusion begins within the clause.
        so = [match.start() for match in lexis.so.finditer(head)]
        if so and so[-1] and self._accounted(head[so[-1] :], key, lexis, False):
            return not self._open(head[: so[-1]], lexis)
        return False

    def _adverbial(self, lead: str, lexis: Lexicon) -> bool:
        """Say whether a lead like ``Based on the analysis above,`` is all in plain words."""
        if _ADVERBIAL.match(lead) is None or MARK.search(lead) or self._open(lead, lexis):
            return False
        return all(
            len(word) < 3
            or word in lexis.frame
            or word in _WORKING
            or word in plain_words()
            or word[:_STEM] in self.asked
            for word in _beside(lead)
        )

    def _followed(self, tail: str, key: str, lexis: Lexicon, is_text: bool, whole: bool) -> bool:
        """Say whether what stands behind an option leaves it chosen; ``whole``: the statement is whole without it."""
        reason = lexis.because.search(tail) or UNSPACED_BECAUSE.search(tail)
        if reason is not None and not self._open(tail[reason.end() :], lexis):
            tail = tail[: reason.start()]
        if self._accounted(tail, key, lexis, is_text):
            return True
        # What follows a whole statement may explain it: "B is right: it has two; C has three".
        stop = _STOPS.search(tail)
        if stop is None:
            return False
        said, more = tail[: stop.start()], tail[stop.end() :]
        if not self._accounted(said, key, lexis, is_text) or lexis.no.match(more.strip()):
            return False
        if not (_beside(said) or (is_text and self.own[key] & {*_beside(more)})):
            told = "\ue000" in more or re.search("[0-9]", more) is not None or any(map(self.asks, _beside(more)))
            if not (whole and told and (stop.group() not in "(（" or f"\ue000{self.marker.sign(key)}" in more)):
                return False
        return self._of_another(more, key, lexis) or not self._open(more, lexis, mild=False)

    def _of_another(self, more: str, key: str, lexis: Lexicon) -> bool:
        """Say whether ``more`` begins with another option and denies it: ``B is a common wrong pick``."""
        mark = MARK.match(more.lstrip(" (*"))
        if mark is None or self.marker.key(mark) == key:
            return False
        return lexis.no.search(more) is not None or _WRONG.search(more) is not None

    def _open(self, text: str, lexis: Lexicon, mild: bool = True) -> bool:
        """Say whether ``text`` supposes, quotes or doubts; with ``mild`` it may contrast and err."""
        text = _SAID.sub(" ", text)
        if any(not (mild and _MILD.fullmatch(found.group())) for found in lexis.opens.finditer(text)):
            return True
        return UNSPACED_OPENS.search(text) is not None or (not mild and UNSPACED_MILD.search(text) is not None)

    def _accounted(self, text: str, key: str, lexis: Lexicon, is_text: bool) -> bool:
        """Say whether every word is accounted for and no other option is spoken of."""
        if any(self.marker.key(match) != key for match in MARK.finditer(text)):
            return False
        text = MARK.sub(" ", text)
        measured = re.search("[0-9]", text) is not None
        return all(self._known(word, key, lexis, is_text, measured) for word in words(_FORMULA.sub(" ", text)))

    def _known(self, word: str, key: str, lexis: Lexicon, is_text: bool, measured: bool) -> bool:
        if _ASIAN.search(word):
            return UNSPACED.fullmatch(word) is not None or (is_text and word in self.stem)
        if word[:2] in _ELIDED:
            word = word[2:]
        if (len(word) == 1 and word.isascii()) or word in lexis.frame or word in self.own[key]:
            return True
        if word[:_STEM] in self.stems[key]:
            return True  # the option's text in a related language
        if measured and (word == "per" or lookup(word) is not None):
            return True
        if word in _NEVER or word.endswith(("n't", "n’t")):
            return False
        if word[:_STEM] in self.asked:
            return True
        return is_text and lexis.opens.fullmatch(word) is None and known_words(word, self.stem)


def _beside(text: str) -> list[str]:
    """The words of a text beside its marks."""
    return words(MARK.sub(" ", text))
