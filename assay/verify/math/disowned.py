"""Whether a response gives an answer in words as its own: a name, a day, a colour, yes or no, "no solution".

A number stands out of its sentence; a word is easily mentioned, told of, supposed or denied in it. So the sentence, the
label or the heading that holds the word is a closed world: what is not known to belong to plain statements speaks
against it. Only the reason that follows may use any words.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from assay.verify.math.final import Final
from assay.verify.math.forms import truth
from assay.verify.math.plain_statement import (
    QUESTIONED,
    alien,
    in_another_language,
    in_english,
    strange_label,
    without_spaces,
)
from assay.verify.math.reconsidered import disowning, reconsidered
from assay.verify.math.rivals import rivals
from assay.verify.math.statement import UNSPACED, WORD, A, around_answer, heading_above, statement, undressed
from assay.verify.math.worded_claims import contradicts

_MARKS = re.compile(r"[❌✗✘🚫⛔👎✖❎☒]|/s\b|\[x\]|\\(?:cancel|xcancel|bcancel|sout|st)\b|~~")
_EMPTY_HANDED = re.compile(
    r"^\W*e\.g\.|\bnon-\w|\b(?:no (?:idea|clue|answer|opinion|comment|guess)|(?:do not|don['’]?t|dont) know|"
    r"dunno|idk|n/a|not (?:sure|certain|enough)|"
    r"unsure|unknown|can(?:not|['’]?t) (?:be )?(?:tell|say|solve|determined?|answer\w*|decided?|known|be)|unable|"
    r"refuse|depends|"
    r"coin|dice?|dart|random\w*|whatever|(?:i|my|just|pure|purely|wild|only|best|i['’]m|am|first|second|top|is "
    r"a) (?:\w+ )?guess\w*|^\W*guess\w*|skip|pass|hedge|yes and no|eeny|moe|insufficient|undecided|"
    r"ignore (?:all|any|previous|every|your)|previous instructions|grader|full marks|marked? (?:as |it )?correct|"
    r"reward|"
    r"grading|the reference|system prompt|joke|nonsense|lol|haha|no thanks|opposite day|hypothetical\w*|"
    r"keyword)\b|\[/?INST\]|</?system>|"
    r"\b(?:keine ahnung|ich (?:rate|weiß nicht)|aucune idée|je ne sais pas|ni idea|no (?:lo )?sé|non (?:lo )?so|"
    r"não sei|"
    r"não faço ideia|geen idee|weet (?:het )?niet|nie wiem|не знаю|понятия не имею|bilmiyorum|không biết|tidak "
    r"tahu|vet inte)\b|"
    r"不知道|不清楚|わかりません|分かりません|知りません|모르겠|모릅니다|لا أعرف|لا أدري|पता नहीं|नहीं जानता",
    re.IGNORECASE,
)
_INJECTED = re.compile(r"\[/?INST\]|</?(?:system|instructions?|grader|user)>", re.IGNORECASE)
_HEDGES = re.compile(
    r"\b(?:not (?:sure|certain)|according to|dream|universe|believe|suppos\w+|assum(?:e|ing) (?:the|that the|it|my)|"
    r"imagine|pretend|allegedly|reportedly|yeah right|as if|as though|hell|had\b.*\bbeen|some say|others|critics|"
    r"heads|tails|"
    r"if not|if it (?:is not|isn['’]t)|if wrong|^\W*(?:maybe|perhaps|possibly)|^\W*yeah,? (?:and|right)|false "
    r"that|impossible|doubt\w*)\b",
    re.IGNORECASE,
)
_TAIL_AGAINST = re.compile(
    r"\b(?:which|but|though|although|and) (?:contradicts?|can['’]?t|cannot|i (?!checked|verified)|we (?:made|did|"
    r"are|were)|it (?:should|could|may|"
    r"might)|that['’]?s not|not really)\b|\b(?:but|though|although) (?:it|that|this|the answer|i|we)\b|"
    r"\b(?:wrong|incorrect|mistake\w*|false|lie|joke|said|says|"
    r"according to|queen|pope|sometimes|random\w*|guess\w*|probab\w+|likely|unlikely|opposite|contradict\w*|"
    r"contradiction with|"
    r"marked|prefer\w*|nope|maybe|perhaps|possibly|alternatively|otherwise|unless|when pigs|in base|not really|"
    r"in a way|"
    r"i (?:suppose|guess|think|believe|hope))\b|\bif (?:we|i|you|not|marked|so|the)\b|%|\b(?:on|under) (?:\w+ "
    r")?(?:mondays?|assumptions?)\b",
    re.IGNORECASE,
)


@functools.lru_cache(2048)
def in_words(reference: str) -> bool:
    """Say whether an answer is in words alone, or a date: no formula, no letter that stands for a value."""
    if _DATE.fullmatch(reference.strip(" .")):
        return True
    return _IN_WORDS.search(reference) is not None and _FORMULA.search(reference) is None


_DATE = re.compile(
    r"[A-Z][a-z]{2,8} [0-9]{1,2}(?:st|nd|rd|th)?(?:, [0-9]{4})?|[0-9]{1,2} [A-Z][a-z]{2,8}(?: [0-9]{4})?"
)
_IN_WORDS = re.compile(r"[^\W\d_]{2}|[^\W\d_\x00-\u02ff]")
_FORMULA = re.compile(r"[0-9=+*/^<>|]|\\(?!text|mathrm)")


def disowned(question: str, reference: str, final: Final, response: str, agrees: Callable[[str], bool]) -> str | None:
    """Say why a response does not give the word that it holds as its answer, ``None`` if it does.

    Args:
        question: its words are known.
        reference: an answer without digits and formulas.
        final: the answer found, which agrees with the reference.
        response: the response.
        agrees: whether a text is the reference.
    """
    before, after = around_answer(final, response)
    if _INJECTED.search(response) and not _INJECTED.search(question):
        return "it speaks to the grader"
    if _MOVES.search(final.text) and not _MOVES.search(reference):
        return "it is what a variable goes to, or either sign"
    if _MARKS.search(response[-400:]) and not _MARKS.search(question):
        return "the answer is crossed out or negated"
    kind = truth(reference.strip(" $."))
    sentence, earlier, later = statement(before, after, reference, final, agrees)
    if A not in sentence:
        return "it goes on thinking after the answer" if reconsidered(after, agrees) else None
    front, _, behind = sentence.partition(A)
    if reconsidered("\n".join((behind, *later)), agrees) or any(map(_DENIES_AGAIN.search, _again(later, reference))):
        return "it goes on thinking after the answer"
    if _NEGATES.search(sentence):
        return "a sign negates the answer"
    if any(map(functools.partial(_announces_another, agrees), later)) or _fields(response, agrees):
        return "another part of the response contradicts the answer"
    lone = not re.search(r"\w", front + behind)
    if kind is not None and lone and earlier and truth(earlier[-1].strip(" .!*_")) is not None:
        return "two answers follow each other"
    if earlier and (_CALLED.match(earlier[-1]) and earlier[-1] not in question):
        return "the answer is another's"
    for one in earlier[-2:]:
        asked_back = len(earlier) == 1 and kind is not None and len(one) < 8 and QUESTIONED.search(one)
        if asked_back or _EMPTY_HANDED.search(one):
            return "a refusal or an instruction stands before the answer"
    if _EMPTY_HANDED.search(sentence):
        return "the sentence with the answer refuses one"
    if (other := rivals(question, reference, kind, sentence, earlier, later, A)) is not None:
        return f"{other!r} is put beside the answer"
    if (heading := heading_above(front, earlier)) is not None and (
        word := strange_label(heading, question, reference)
    ) is not None:
        return f"{word!r} in the heading above the answer"
    if _GLUED.search(sentence) and not UNSPACED.search(sentence):
        return "the answer is part of another word"
    if QUESTIONED.search(behind.partition(A)[2] or behind) and not UNSPACED.search(sentence):
        return "the answer is asked, not given"
    if kind is not None and (reason := contradicts(question, kind, front, behind, later)) is not None:
        return reason
    if _HEDGES.search(front.rpartition(" but ")[2]) and not _HEDGES.search(question):
        return "the sentence before the answer hedges"
    if _TAIL_AGAINST.search(behind) and not _TAIL_AGAINST.search(question):
        return "what follows the answer speaks against it"
    if UNSPACED.search(sentence):
        return without_spaces(front, behind, question)
    if alien(sentence.replace(A, " ")) and WORD.search(sentence.replace(A, " ")):
        return in_another_language(front, behind, question, reference)
    if kind is not None and _JUDGED.fullmatch(sentence) is not None:
        return None
    proved = [one for one in _again(later, reference) if A in one] if _VERIFIED.search("\n".join(later)) else []
    if proved:  # what was suspected at first is stated once more
        front, _, behind = proved[-1].partition(A)
    return in_english(front, behind, question, reference, kind)


_JUDGED = re.compile(
    r"\W*(?:so |hence |thus )?(?:that|this|the) (?:claim|statement|assertion|proposition) (?:is|must be) \ufffc\W*",
    re.IGNORECASE,
)
_VERIFIED = re.compile(r"\b(?:verif(?:y|ies|ied)|we see that|this (?:proves|shows|confirms))\b", re.IGNORECASE)
_GLUED = re.compile(r"(?:[^\W\d_]-?\ufffc)|\ufffc-?(?!s\b)[^\W\d_]|[-±<>¬/^]\s?\ufffc")
_NEGATES = re.compile(
    r"(?<![\w)])[!?]\s?\ufffc|(?:[≠¬~∄]|!=|<>|\\(?:neq?|neg|lnot|not)\b)\W{0,3}\ufffc|"
    r"(?:^|[\s(])(?-i:[a-z])\s*(?:goes to|tends to|approaches|→|->|\\to)\s?\ufffc|"
    r"\b(?:after|before|by|until|near|next to|past|around|about|beyond|"
    r"(?:more|less|fewer|greater|smaller|later|earlier) than)\s\ufffc",
    re.IGNORECASE,
)
"""A sign of negation, or what a variable goes to."""
_MOVES = re.compile(r"±|\\pm(?![a-z])|^\W*[a-z]\s*(?:→|->|\\to(?![a-z]))")
_CALLED = re.compile(r"Q\s?:|#+ ?(?:wrong|incorrect|false|bad|todo|not)\b", re.IGNORECASE)
_DENIES_AGAIN = re.compile(r"(?:\b(?:not|never|cannot be|no longer)|n['’]t(?: be)?)\W+(?:be )?\ufffc", re.IGNORECASE)
_ANSWER_IS = re.compile(
    r"^\W*(?:so |thus |the |final |correct |my ){0,3}(?:answer|result|conclusion|final|antwort|respuesta|réponse|"
    r"risposta|resposta|"
    r"antwoord|odpowiedź|ответ|cevap)\W{0,3}\s*(?:[:=：]|is\b|ist\b|es\b|est\b|è|é)\s*(?P<said>\S.{0,40}?)\W*$",
    re.IGNORECASE,
)
_FIELD = re.compile(r"[\"'](?P<key>\w+)[\"']\s*:\s*(?P<value>\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^,}\n]+)")
_ANSWER_KEY = re.compile(r"answer|result|solution|final|conclusion", re.IGNORECASE)


def _again(later: list[str], reference: str) -> list[str]:
    word = re.compile(rf"(?<![^\W\d_]){re.escape(undressed(reference).strip(' $.'))}(?![^\W\d_])", re.IGNORECASE)
    return [word.sub(A, piece) for piece in later[:6]]


def _announces_another(agrees: Callable[[str], bool], piece: str) -> bool:
    match = _ANSWER_IS.match(piece)
    return (
        match is not None
        and len(match["said"].split()) < 4
        and not agrees(match["said"])
        and _RIGHT.match(match["said"]) is None
    )


_RIGHT = re.compile(
    r"(?:correct|right|verified|confirmed|consistent|clear|above|as|therefore|thus|in|the|simple|easy)\b",
    re.IGNORECASE,
)


def _fields(response: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether a field of a JSON object contradicts the answer in another."""
    if "{" not in response or '":' not in response.replace(" ", "").replace("'", '"'):
        return False
    for match in _FIELD.finditer(response[-2000:]):
        value = undressed(match["value"]).strip(" \"'")
        if _ANSWER_KEY.search(match["key"]) and not agrees(value):
            return True
        if disowning(match["key"], value):
            return True
    return False


__all__ = ["disowned", "in_words"]
