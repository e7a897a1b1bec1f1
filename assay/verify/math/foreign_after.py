"""Sentences of other languages behind an answer, of which it has to be known that they leave it as it is.

Nobody can list all ways to take an answer back in all languages ("C'est trop grand.", "Grapje.", "骗你的。"). So the
rule is turned round: such a sentence is an offer or a wish, gives the answer again, or checks or explains it in words
that are known to be harmless or stand in the question, with values that are the answer, given, or come out of a step.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.math import unspaced
from assay.verify.math.abroad import abroad, surely_english
from assay.verify.math.courtesy import courteous, without_pictures
from assay.verify.math.english import plain_words
from assay.verify.math.figures import equations
from assay.verify.math.final import Final
from assay.verify.math.foreign import foreign_number
from assay.verify.math.foreign_lead import elsewise
from assay.verify.math.foreign_values import values_in
from assay.verify.math.foreign_words import against, closes, concludes, cue, explaining, of_answers, points
from assay.verify.math.frames import known_words
from assay.verify.math.harmless import bare, framing

MAX_LENGTH = 1500
MAX_SENTENCES = 16
_SENTENCES = re.compile(r"(?<=[.!?;…])[\"'”’»)\]*_}$]*\s+|\n+|(?<=[。！？।؟；])")
_MARKUP = re.compile(r"\\(?:text|mathrm|textbf|mathbf|emph)\s?\{([^{}]*)\}|[*_`#]+|</?\w+>")
_WORD = re.compile(
    r"(?<!\\)[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0970-\u0dff]|"
    r"(?<=[^\W\d_])['’-](?=[^\W\d_]))*"
)
_DIVIDED = re.compile(r"(?<=[0-9)])\s?:\s?(?=[0-9(])")
_LETTER = re.compile(r"[A-Za-z]")
_FINITE = re.compile(r"[0-9]+(?:[.,:][0-9]+)*")
_NUMERIC = re.compile(r"[0-9]")
_LABEL = re.compile(r"^\W*(?:\w[\w'’-]*\s?){1,4}\s?[:：]")
_NO_DENIAL = re.compile(
    r"\bno (?=total\b|final\b|enunciado\b|problema\b|fim\b)|\bne (?=reste\b)|" "\\bmenos(?=\\s[0-9$])", re.IGNORECASE
)
_ELISION = re.compile(r"(?:^(?:[ldjnscmt]|qu|all|dell|nell|dall|sull|quest|jusqu|lorsqu|puisqu)['’])", re.IGNORECASE)
_UNIT_INSIDE = re.compile(
    r"(?<=[0-9])\s?(?:km/h|m/s|km|cm|mm|dm|m|kg|g|ml|l|h|min|s|°C|°|€|Euros?|USD|\$)[²³]?(?=\s?(?:[×·*/+=−÷]|-\s))"
)
_OPERATES = re.compile(
    r"\b(?:(?:se|si) (?:divide|dividen|multiplica|moltiplica|suman?|somma(?:no)?|resta|sottrae|calcula|calcola)|"
    r"on (?:divise|"
    r"multiplie|additionne|soustrait|calcule)|man (?:dividiert|teilt|multipliziert|addiert|subtrahiert)|"
    r"(?:dividiendo|multiplicando|sumando|restando|dividindo|somando|subtraindo|moltiplicando|sottraendo|dividendo|"
    r"sommando)|"
    r"(?:soma|divide|multiplica|subtrai)-se|we (?:delen|vermenigvuldigen|trekken|tellen))\b",
    re.IGNORECASE,
)
_CLOSINGS = re.compile(
    r"\W*(?:(?:das war|was) zu (?:zeigen|beweisen)(?: war)?|(?:c['’]est|voilà) la seule (?:valeur|solution|"
    r"réponse) possible|"
    r"quod erat demonstrandum|le compte est bon|ce qu['’]il fallait démontrer|come volevasi dimostrare|(?:como|"
    r"lo que) "
    r"(?:queríamos|quería|se quería) demostrar|como queríamos demonstrar|что и требовалось (?:доказать|найти)|"
    r"co było do "
    r"(?:okazania|pokazania)|bonne (?:chance|continuation|journée)|bon courage|viel (?:erfolg|glück|spaß)|"
    r"gern geschehen|buena suerte|"
    r"mucha suerte|mucho éxito|boa sorte|bons estudos|buona fortuna|buono studio|in bocca al lupo|veel (?:succes|"
    r"plezier)|"
    r"graag gedaan|lycka till|varsågod|held og lykke|lykke til|powodzenia|hodně štěstí|удачи|желаю удачи|успехов|"
    r"başarılar|iyi çalışmalar|kolay gelsin|chúc (?:bạn )?(?:may mắn|thành công|học tốt)|semoga (?:membantu|sukses|"
    r"berhasil|bermanfaat)|selamat belajar|mult succes|succes|onnea|sok sikert|καλή επιτυχία|بالتوفيق|शुभकामनाएँ|"
    r"spero (?:che )?(?:ti )?(?:sia|possa essere) (?:utile|d'aiuto)|espero ter (?:ajudado|sido útil)|"
    r"j'espère (?:que cela|vous|"
    r"t'|avoir)[^.!]{0,30}|(?:wenn|falls) du (?:noch )?fragen hast, frage? (?:gern|ruhig|einfach)|도움이 되(?:었길|"
    r"셨길|길|었으면) "
    r"(?:바랍니다|바라요|좋겠습니다)|q\.?\s?e\.?\s?d|c\.?q\.?f\.?d|w\.?z\.?b\.?w|ч\.?т\.?д)\W*",
    re.IGNORECASE,
)
_NAME = re.compile(r"[^\W\d_a-z][^\W\d_]{1,15}")
_MARKS = re.compile(r"[?？؟❌✗✘🚫⛔👎~≠]|\.\.\.|…|\\neq?\b|!=|\\(?:cancel|sout)")


def from_abroad(
    question: str, reference: str, final: Final, response: str, agrees: Callable[[str], bool]
) -> str | None:
    """Return the words of another language around or behind an answer that is right, on account of which it is none.

    Answers in words alone are not asked about.
    """
    place = len(response) if not final.after else response.rfind(final.after)
    before = response[max(place - 300, 0) : place] if place >= 0 else f"{final.lead} {final.text}"
    told = f"{before}{final.after[:MAX_LENGTH]}" if final.marker else f"{final.lead} {final.text}"
    if surely_english(told) and surely_english(question):
        return None  # before anything is looked at
    if _MATHEMATICAL.search(reference) is None:
        return None
    if final.marker and (words := taken_back_abroad(before, final.after, question, agrees)) is not None:
        return words
    if not final.marker:
        return elsewise(f"{final.lead} {final.text}", "", question, reference, False)
    line = _SENTENCES.split(final.after[:300])[0]
    return elsewise(_statement(before), line, question, reference, final.framed)


_MATHEMATICAL = re.compile(r"[0-9]|\\(?!text|mathrm|emptyset|varnothing)")


def taken_back_abroad(before: str, after: str, question: str, agrees: Callable[[str], bool]) -> str | None:
    """Return the first sentence of another language behind an answer that may not leave it as it is.

    Args:
        before: what ends in the answer; whether its own sentence is English is taken from it.
        after: what follows the answer, from the rest of its sentence on.
        question: its words are known.
        agrees: whether a text is the answer.
    """
    pieces = [piece for piece in _SENTENCES.split(after[:MAX_LENGTH]) if piece][: MAX_SENTENCES + 1]
    if len(pieces) < 2:
        return None
    own: bool | None = None
    explained = False
    for piece in pieces[1:]:
        said = _MARKUP.sub(r"\1", without_pictures(piece)).strip()
        if _WORD.search(said) is None:
            continue
        if not abroad(said):
            if own is None:
                own = abroad(_statement(before))
            if not own or _in_english(said):
                continue
        elif _NAME.fullmatch(said) and not abroad(_statement(before)):
            continue  # who signs
        if courteous(piece):
            continue
        if not _harmless(said, question, agrees, explained):
            return said
        if _LABEL.match(said) and _has_cue(said):
            explained = True
    return None


def _statement(before: str) -> str:
    """The sentence that ends in the answer."""
    pieces = [piece for piece in _SENTENCES.split(before.rstrip(" .!*。")) if piece]
    return pieces[-1] if pieces else ""


def _in_english(said: str) -> bool:
    words = re.findall(r"[^\W\d_]{2,}", said)
    return len(words) > 2 and all(word.lower() in plain_words() or word[0].isupper() for word in words)


def _has_cue(said: str) -> bool:
    return unspaced.explains(said) or any(cue(word) for word in _WORD.findall(said))


def _harmless(said: str, question: str, agrees: Callable[[str], bool], explained: bool) -> bool:
    if _MARKS.search(said) is not None:
        return False
    text, values = values_in(_UNIT_INSIDE.sub("", said))
    text = _NO_DENIAL.sub(" ", text).replace("²", " ").replace("³", " ")
    if not values and _CLOSINGS.fullmatch(said) is not None:
        return True
    if unspaced.LETTER.search(text):
        if unspaced.ends(said):
            return True
        if not unspaced.known_pieces(text, question, explaining=True):
            return False
        return _values(said, values, [], question, agrees, explained or unspaced.explains(said), nouns=False)
    words = [part for word in _WORD.findall(text) for part in _ELISION.split(word) if part]
    if not words:
        return False
    nouns = False
    spelled: list[str] = []
    for word in words:
        if against(word):
            return False
        if len(word) < 2:
            continue
        if foreign_number(word) is not None and not framing(word) and not explaining(word):
            spelled.append(word)
        elif not framing(word) and not explaining(word) and not closes(word):
            if not known_words(word, question):
                return False
            nouns = nouns or len(word) > 3
    if not values and len(words) < 3 and all(map(closes, words)):
        return True
    return _values(text, values, spelled, question, agrees, explained or any(map(cue, words)), nouns)


def _values(
    text: str,
    values: list[str],
    spelled: list[str],
    question: str,
    agrees: Callable[[str], bool],
    explains: bool,
    nouns: bool,
) -> bool:
    """Say whether the values of a sentence are the answer, given, or come out of a step."""
    if not values and not spelled:
        words = _WORD.findall(text)
        if any(map(of_answers, words)):
            return explains or (len(words) > 2 and all(of_answers(word) or points(word) for word in words))
        return explains or _OPERATES.search(text) is not None
    if all(_is(value, agrees) for value in values) and all(map(agrees, spelled)):
        return True
    sums = equations(_DIVIDED.sub("/", " ; ".join(values)))
    if any(not true for equation, true in sums if _LETTER.search(equation) is None):
        return False
    given = set(_FINITE.findall(question))

    def told(value: str) -> bool:
        return given.issuperset(_FINITE.findall(value))

    ended = values and not spelled and _is(values[-1].rpartition("=")[2], agrees)
    if ended and all("=" in value or _is(value, agrees) or told(value) for value in values[:-1]):
        return True  # a chain of steps that ends in the answer
    concluded = _last_concluded(text)
    steps = explains and any("=" in value for value in values)
    for place, value in enumerate(values):
        left, equals, right = value.rpartition("=")
        if _is(value, agrees) or (equals and _is(right, agrees)):
            continue
        if concluded is not None and concluded <= place == len(values) - 1:
            return False
        if equals:
            named = re.fullmatch(r"\s*[A-Za-z]\s*", value.partition("=")[0]) is not None
            before = explains and not any(map(agrees, _FINITE.findall(left)))  # no step from the answer on
            if named or not (before or (told(right) and _NUMERIC.search(left))):
                return False
        elif not steps and not ((explains or nouns) and told(value)):
            return False
    return all(agrees(word) or bare(word) in bare(question) or explains for word in spelled)


def _last_concluded(text: str) -> int | None:
    """How many values stand before the last word that draws a conclusion."""
    last = None
    for match in _WORD.finditer(text):
        if concludes(match.group()):
            last = text[: match.start()].count("#")
    return last if last is not None else None


_FOREIGN_EQUATION = re.compile(r"^\s*(?:[A-Za-z]|f\(x\)|y)\s*=\s*")


def _is(value: str, agrees: Callable[[str], bool]) -> bool:
    said = value.strip(" .,;:!()") if not re.match(r"\s*\\?[(\[{]", value) else value.strip(" .,;:!")
    return said != "" and (agrees(said) or agrees(_FOREIGN_EQUATION.sub("", said)))
