# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Answers that a response mentions and does not give, whatever kind of answer they are.

``Whether it is 5 remains open.``, ``A common error: XLIV``, ``According to a website, the sum is 210.``, ``Yes (not).``
The answer is found in its sentence by its value or as it is written, so that words, names and formulas are looked at
like numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.caseless import Caseless
from assay.verify.math.forms import truth
from assay.verify.math.governed import BREAK, around

_KNOWN = r"theorem|formula|rule|law|identity|lemma|definition|result|property|table|principle|criterion|test|method"
_WHETHER = Caseless(
    r"(?<!\bof )(?<!matter )(?<!\bon )\bwhether\b(?! or not)|\b(?:see|know|check|verify|find out|test|tell|ask|"
    r"wonder|decide|"
    r"examine|investigate|determine|prove|confirm|unsure|sure|unclear|certain|curious|question|idea|clue) if\b|"
    r"\b(?:jestli|zdali|zda|czy|ли|liệu|apakah|(?<!egal )ob)\b|是否|能否|(?<!\w)(?:هل|האם|آیا)(?!\w)",
)
"""What makes the clause after it a question."""
_ASKED_AFTER = re.compile(r"是否|かどうか|なのか|인지\b|일까|だろうか|でしょうか")
_OPEN = Caseless(
    r"\b(?:remains?|is|stays?|was|seems?|are)\b[^.!?\n]{0,24}\b(?:an? open|open (?:question|to|for)|left open|"
    r"unknown|unclear|"
    r"undecided|unsettled|debatable|anyone's guess|to be (?:seen|checked|verified|prove[dn]|shown|decided|determined|"
    r"confirmed))\b|\b(?:remains|stays) open\b",
)
_UNDECIDED = Caseless(r"\bopen question\b|\banyone's guess\b|\bjury is (?:still )?out\b|\bwho knows\b")
_ERROR = Caseless(
    r"\b(?P<word>errors?|mistakes?|traps?|fallac(?:y|ies)|misconceptions?|pitfalls?|distractors?|blunders?|myths?)"
    r"(?: (?:here|to make|of students))?\W*(?:\b(?:is|was|would be|gives|reads)\b)?(?: (?:to (?:say|write|"
    r"answer)))?\W*$|"
    r"\b(?P<kind>incorrect|wrong|false|mistaken|erroneous|invalid|faulty|flawed|bogus) (?:\w+ )?"
    r"(?:value|answer|result|solution|response|reply|guess|claim|number|statement)s?\W*(?:\b(?:is|was|"
    r"would be)\b)?\W*$",
)
_SOURCE = Caseless(
    rf"\baccording to (?:an?|some|my|his|her|their|one|certain)\b(?! (?:[\w'-]+ ){{0,2}}(?:{_KNOWN})\b)|"
    r"\b(?:legends?|rumou?rs?|folklore|tradition|gossip|hearsay|myths?|word) (?:has it|says?|tells?|goes)\b|"
    r"\b(?:website|forum|blog|chatbot|horoscope|rumou?r|gossip|comment section)s?\b[^,.;:]{0,12},?\s",
)
_DENIED = Caseless(
    r"\bdifferent from\b[^,.;:]{0,12}$|\b(?:pretend|imagine|suppose|assume|deny|verifico se|controllo se|"
    r"vediamo se)\b"
    r"[^,.;:]{0,24}$|\b(?:i|we|you|one|they)\b (?:\w+ )?(?:don't|do not|doesn't|didn't|"
    r"did not|cannot|can't|"
    r"never|wouldn't|would not|couldn't|won't) (?:\w+ )?(?:think|believe|say|claim|know|mean|accept|agree|trust|buy|"
    r"suppose|guess|see (?:how|why))\b(?! (?:you|we) need)",
)
_TOLD = Caseless(
    r"\b(?:i|we) (?:was|were|am|have been|'ve been) (?:told|informed)\b|\b(?:my|his|her|our|the|a|one|some|"
    r"another|every) "
    r"(?:\w+ )?(?:teacher|friend|student|classmate|colleague|neighbou?r|brother|sister|father|mother|uncle|aunt|"
    r"cousin|"
    r"tutor|professor|people|person|man|woman|book|textbook|solver|calculator|assistant)s?\b (?:\w+ )?(?:says?|said|"
    r"claims?|claimed|thinks?|thought|believes?|believed|insists?|insisted|suggests?|suggested|swears?|told)\b",
)
_BADLY = Caseless(
    r"^\W*(?:if|when|by|with)\b.*\b(?:carelessly|wrongly|incorrectly|mistakenly|erroneously|forget|forgets|forgot|"
    r"forgetting|naively|by mistake)\b[^.;:!?]*$",
)
_ASKED = Caseless(
    r"^\W*(?:is|are|was|could|might|should|shall|does|would) (?:it|this|that|the (?:\w+ )?(?:answer|value|result))\b",
)
_IS_WRONG = Caseless(
    r"^[\s$)*\]},.]*(?:(?:is|was|are|would be) (?:an?|the|one|just an?) (?:\w+ ){0,2}(?:error|mistake|trap|fallacy|"
    r"misconception|blunder|myth|distractor|template|placeholder|sample|specimen|dummy)s?\b|\(\s?not\s?\))",
)
_PERHAPS = Caseless(
    r"\b(?:could|might|may)(?: \w+){0,2} be(?: that)?(?:\W*$|(?: (?!the\b|an?\b)|\W)[^,;:]{0,80}=[\s$]*$)",
)
_ONE_OF = Caseless(
    r"\b(?:one|some|any|either|which) of (?:these|those|them|the (?:following|below|(?:\w+ )?(?:values|numbers|options|"
    r"candidates|possibilities|choices|answers)))\b[^0-9]{0,40}[:,—–]|\bone of:",
)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_SLOT = Caseless(
    r"\[\s?(?:insert|your|fill|put|enter|write|type)\b|\b(?:insert|fill in|put|type|"
    r"enter)\b[^.]{0,16}\b(?:answer|value) here\b|\byour (?:final )?answer(?: here| goes)\b|"
    r"_{3,}\W*\(|\bformat: |\be\.g\.|\{\{[^{}]*\||\bformat(?:ted)?\b[^.:]{0,40}\b(?:like this|as follows|this way)\b|"
    r"\b(?:example|sample|illustration|specimen|template|model) (?:of|for) (?:an?|the|how|what|your|"
    r"my) (?:[\w-]+ ){0,3}?"
    r"(?:reply|answer|response|output|submission|format\w*|box|to (?:answer|reply|respond))\b|"
    r"\b(?:sample|example|specimen|dummy|template|mock) (?:reply|answer|response|output)s?\b|"
    r"\byour (?:final |own )?(?:answer|result|response|reply|solution) (?:\w+ ){0,3}?(?:as|like)\b|"
    r"\bplease (?:reply|respond|answer|write|type|return)\b (?:\w+ ){0,4}?(?:with|as|like)\b",
)
UNSOLVED = Caseless(
    r"\b(?:i|we) (?:have not|haven't|did not|didn't|never|could not|couldn't|cannot|can't|don't|do not)(?: \w+)? "
    r"(?:solved?|work(?:ed)? (?:it|this|that|anything) out|read|attempt(?:ed)?|do|done|answer(?:ed)?|comput\w+|"
    r"calculated?|"
    r"look(?:ed)? at|understand|understood)(?: (?:the|this|that|your|any) (?:\w+ )?(?:problem|question|exercise|task|"
    r"text|statement|equation)| (?:it|this|that|anything))\b(?! (?:by|using|with|numerically|directly|in|for|"
    r"because|as|since)\b)",
)
_TEST = Caseless(
    r"\bthis is (?:only |just |merely )?an? (?:test|sample|dummy|template|demo)\b(?! (?:of|"
    r"for) (?:the )?(?:hypoth|converg))",
)
_BUT_NO = Caseless(
    r"^[\s$)*\]},]*(?:\(?not\)?[\s.!]*$|(?:and|but) (?:also )?no\b|et non\b|und nein\b|y no\b|e n[aã]?o\b|"
    r"и нет\b|ولا(?!\w)|"
    r"和否|又不是|でもあり)",
)
_CROSSED = re.compile(r"(?:×|\\times)[\s$]*$")
_SPOKEN = re.compile(r"(?<!\\)(?<![^\W\d_])[^\W\d_]{2}|[^\W\d_A-Za-z]")
_NOT_SO = re.compile(r"[.!…]\s*\(?NOT\b[\s.!)]*$")
_JOKE = Caseless(
    r"なんちゃって|冗談|本当は|농담|开玩笑|開玩笑|\b(?:just |only )?(?:kidding|joking)\b|\bscherzo\b|\bbroma\b|"
    r"\bblague\b|"
    r"\bopposite day\b|\b(?:psych|sike|as if|yeah,? right)\s*[!.]|\bin your dreams\b|\bapril fools?\b|"
    r"\bnot really\s*[!.]|"
    r"\bscherz\b|\bшучу\b|\bшутка\b|\bżartuj?ę?\b|\bşaka\b",
)
_THINGS = (
    r"fingers?|toes?|teeth|phone|locker|shoe|jersey|shirt|pages?|exercises?|problems?|questions?|chapters?|"
    r"lines?|sections?|"
    r"rooms?|houses?|lucky|favou?rite|birthday|pin|password|grades?|scores?"
)
_OF_MINE = Caseless(
    rf"\bmy (?:own )?(?P<mine>{_THINGS})\b|\b(?:the|this) (?P<page>pages?|exercises?|chapters?|"
    rf"sections?)\b[^.,;:]{{0,60}}"
    r"\b(?:is|has|was|bears)(?: the)? (?:number\s*)?\W*$",
)
_IS_MINE = Caseless(rf"^[\s$)*\]}}]*is (?:the |an? |my |our )?(?P<thing>{_THINGS}) (?:number|i|we|that|of|on)\b")
_CONDITION = Caseless(
    r"^\W*(?:if|suppos\w+|assum\w+|were|imagine|kdyby|gdyby|pokud|jeśli|wenn|falls|"
    r"(?:si|se) (?:fuera|fuese|es|era|fosse|for|è|on|l'on|nous|c'était|\$|[a-z]\b)|если|якщо|jika|nếu|eğer|om|als)\b"
    r"(?! (?:you|we|one|man|on|wij|vi)\b)[^,;:]*$|^\W*(?:如果|假如|若|もし|만약)[^,，、;:]*$",
)
_PROMISED = Caseless(
    r"^\W*(?:je vais|nous allons|ich werde|ich will|wir werden|voy a|vamos a|vou|vado a|proviamo a|zkus[ií]me?|"
    r"hned|spróbuję|"
    r"zaraz|попробую|сейчас|проверю|спробую|akan saya|saya akan|tôi sẽ|jag ska|ik ga|i(?:'ll| will| shall|"
    r" am going to)|"
    r"let me|soon (?:we|i))\b[^,;:]*$|^\W*(?:让我|我来|接下来|これから|まず)[^,，、;:：。]*$",
)
_IN_ALL = re.compile(r"(?:一共|总共|總共|合计|合計|共(?!同))[是为要]?\s?(-?[0-9][0-9.,]*[0-9]|[0-9])")
_PARTS = (
    "answer|pretend|suppose|assume|deny|verifico|controllo|vediamo|told|teacher|friend|student|classmate|colleague|"
    "neighbo|brother|sister|father|mother|uncle|aunt|cousin|tutor|professor|legend|tradition|reply|respon|opposite|"
    "psych|sike|as if|yeah|dreams|april|folklore|hearsay|has it|{{|example|sample|illustration|specimen|template|model|"
    "people|person|woman|book|solver|calculator|assistant|careless|forget|forgot|naively|whether| if|jestli|zda|czy|"
    "apakah|guess|jury|knows|unknown|unclear|undecided|unsettled|debatable|to be |error|mistake|trap|fallac|misconcep|"
    "pitfall|distractor|blunder|myth|incorrect|wrong|false|erroneous|invalid|faulty|flawed|bogus|according|website|"
    "forum|blog|chatbot|horoscope|rumo|gossip|comment|different from|never|cannot|could|might|one of|some of|any of|"
    "either of|which of|[|insert|fill in|___|format|e.g.|this is|and no|but no|et non|und nein|\\times|kidding|joking|"
    "scherz|broma|blague|exercise|chapter|section"
).split("|")
_OPENING = Caseless(
    r"^\W*(?:is|are|was|could|might|should|shall|does|would)\b|"
    r"^\W*(?:if|suppos|assum|were|imagine|kdyby|gdyby|pokud|jeśli|wenn|falls|si|se|если|якщо|jika|nếu|eğer|"
    r"om|als|如果|假如|若|もし|만약|je vais|nous|ich|wir|vo[yu]|vamos|vado|proviamo|zkus|hned|spróbuję|zaraz|"
    r"попробую|сейчас|проверю|спробую|akan|saya|tôi|jag|ik|i\b|let|soon|让我|我来|接下来|これから|まず)",
    frequent=True,
)
_TRIGGER = Caseless(
    r"\bman\b|\bли\b|liệu|\bob\b|是否|能否|هل|האם|آیا|かどうか|なのか|인지|일까|だろうか|でしょうか|"
    r"\bopen\b|n't\b|\bnot\b|\bmay\b|here\b|y no\b|\be n[aã]?o\b|и нет|ولا|和否|又不是|でもあり|"
    r"×|なんちゃって|冗談|本当は|농담|玩笑|шу[чт]|żart|şaka|\bmy\b|\bpages?\b|一共|总共|總共|合[计計]|共[是为要]?\s?[0-9]"
)
_ANY_PART = re.compile("|".join(map(re.escape, _PARTS)), re.IGNORECASE)
"""What one of the patterns above needs."""


def mentioned(lead: str, said: str, after: str, question: str, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether a right answer is only mentioned.

    Args:
        lead: what stands before the answer in its sentence.
        said: the answer, or the sentence that states it, and the rest of its line.
        after: what follows the answer in the response.
        question: what it asks about is no reason against an answer.
        reference: what the answer is compared with.
        agrees: whether a text is the reference.
    """
    whole = f"{lead} {said}"[:900].strip()
    if _SPOKEN.search(whole) is None and not any(map(str.isalpha, after[:300])):
        return _CROSSED.search(whole) is not None  # no words at all
    if not _triggered(whole) and UNSOLVED.search(after[:300]) is None and _JOKE.search(after[:120]) is None:
        return False
    if _NOT_SO.search(whole):
        return True
    if UNSOLVED.search(after[:300]) or _TEST.search(whole) or _JOKE.search(f"{said} {after[:120]}"):
        return True
    if (slot := _SLOT.search(whole)) is not None and whole[slice(*slot.span())] not in question:
        return True
    before, behind = around(said, agrees, reference)
    start = f"{lead} {before}".strip()
    sentence = re.split(r"[.!?。！？]\s|\n", start)[-1]
    clause = BREAK.split(sentence)[-1]
    if _held_open(sentence, clause, behind) or (_BUT_NO.match(behind) and truth(reference.strip(" $.")) is not None):
        return True
    if _IS_WRONG.match(behind) or _TOLD.search(clause) or _BADLY.search(sentence) or _ASKED.match(sentence):
        return True
    if _SOURCE.search(sentence) or _DENIED.search(clause) or _PERHAPS.search(clause):
        return True
    if _ONE_OF.search(start) and any(not agrees(value) for value in _NUMBER.findall(start)):
        return True
    if _CROSSED.search(behind) or ((before or behind) and _PROMISED.match(sentence)):
        return True
    if _CONDITION.match(sentence) and (before or lead):
        return True
    asked = question.casefold()
    for pattern, text in ((_ERROR, start), (_OF_MINE, sentence), (_IS_MINE, behind)):
        found = pattern.search(text)
        if found is not None and next(filter(None, found.groups())).casefold()[:5] not in asked:
            return True
    total = _IN_ALL.search(said)
    return total is not None and not agrees(total[1])


def _triggered(text: str) -> bool:
    # Looking for a hundred words in small letters is faster than one pattern that looks for any of them.
    low = text.lower()
    if any(map(low.__contains__, _PARTS)) or (not text.isascii() and _ANY_PART.search(text) is not None):
        return True
    return _OPENING.match(text) is not None or _TRIGGER.search(text) is not None


def _held_open(sentence: str, clause: str, behind: str) -> bool:
    """Say whether the clause with the answer is a question, or left open."""
    if _WHETHER.search(clause) or _UNDECIDED.search(sentence):
        return True
    rest = re.split(r"[.!?。！？](?:\s|$)|\n", behind)[0]
    return _ASKED_AFTER.search(rest) is not None or _OPEN.search(rest) is not None
