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
_WHETHER = re.compile(
    r"(?<!\bof )(?<!matter )(?<!\bon )\bwhether\b(?! or not)|\b(?:see|know|check|verify|find out|test|tell|ask|"
    r"wonder|decide|"
    r"examine|investigate|determine|prove|confirm|unsure|sure|unclear|certain|curious|question|idea|clue) if\b|"
    r"\b(?:jestli|zdali|zda|czy|ли|liệu|apakah|(?<!egal )ob)\b|是否|能否|(?<!\w)(?:هل|האם|آیا)(?!\w)",
    re.IGNORECASE,
)
"""What makes the clause after it a question."""
_ASKED_AFTER = re.compile(r"是否|かどうか|なのか|인지\b|일까|だろうか|でしょうか")
_OPEN = re.compile(
    r"\b(?:remains?|is|stays?|was|seems?|are)\b[^.!?\n]{0,24}\b(?:an? open|open (?:question|to|for)|left open|"
    r"unknown|unclear|"
    r"undecided|unsettled|debatable|anyone's guess|to be (?:seen|checked|verified|prove[dn]|shown|decided|determined|"
    r"confirmed))\b|\b(?:remains|stays) open\b",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(r"\bopen question\b|\banyone's guess\b|\bjury is (?:still )?out\b|\bwho knows\b", re.IGNORECASE)
_ERROR = re.compile(
    r"\b(?P<word>errors?|mistakes?|traps?|fallac(?:y|ies)|misconceptions?|pitfalls?|distractors?|blunders?|myths?)"
    r"(?: (?:here|to make|of students))?\W*(?:\b(?:is|was|would be|gives|reads)\b)?(?: (?:to (?:say|write|"
    r"answer)))?\W*$|"
    r"\b(?P<kind>incorrect|wrong|false|mistaken|erroneous|invalid|faulty|flawed|bogus) (?:\w+ )?"
    r"(?:value|answer|result|solution|response|reply|guess|claim|number|statement)s?\W*(?:\b(?:is|was|"
    r"would be)\b)?\W*$",
    re.IGNORECASE,
)
_SOURCE = re.compile(
    rf"\baccording to (?:an?|some|my|his|her|their|one|certain)\b(?! (?:[\w'-]+ ){{0,2}}(?:{_KNOWN})\b)|"
    r"\b(?:legends?|rumou?rs?|folklore|tradition|gossip|hearsay|myths?|word) (?:has it|says?|tells?|goes)\b|"
    r"\b(?:website|forum|blog|chatbot|horoscope|rumou?r|gossip|comment section)s?\b[^,.;:]{0,12},?\s",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\bdifferent from\b[^,.;:]{0,12}$|\b(?:pretend|imagine|suppose|assume|deny|verifico se|controllo se|"
    r"vediamo se)\b"
    r"[^,.;:]{0,24}$|\b(?:i|we|you|one|they)\b (?:\w+ )?(?:don't|do not|doesn't|didn't|"
    r"did not|cannot|can't|"
    r"never|wouldn't|would not|couldn't|won't) (?:\w+ )?(?:think|believe|say|claim|know|mean|accept|agree|trust|buy|"
    r"suppose|guess|see (?:how|why))\b(?! (?:you|we) need)",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"\b(?:i|we) (?:was|were|am|have been|'ve been) (?:told|informed)\b|\b(?:my|his|her|our|the|a|one|some|"
    r"another|every) "
    r"(?:\w+ )?(?:teacher|friend|student|classmate|colleague|neighbou?r|brother|sister|father|mother|uncle|aunt|"
    r"cousin|"
    r"tutor|professor|people|person|man|woman|book|textbook|solver|calculator|assistant)s?\b (?:\w+ )?(?:says?|said|"
    r"claims?|claimed|thinks?|thought|believes?|believed|insists?|insisted|suggests?|suggested|swears?|told)\b",
    re.IGNORECASE,
)
_BADLY = re.compile(
    r"^\W*(?:if|when|by|with)\b.*\b(?:carelessly|wrongly|incorrectly|mistakenly|erroneously|forget|forgets|forgot|"
    r"forgetting|naively|by mistake)\b[^.;:!?]*$",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"^\W*(?:is|are|was|could|might|should|shall|does|would) (?:it|this|that|the (?:\w+ )?(?:answer|value|result))\b",
    re.IGNORECASE,
)
_IS_WRONG = re.compile(
    r"^[\s$)*\]},.]*(?:(?:is|was|are|would be) (?:an?|the|one|just an?) (?:\w+ ){0,2}(?:error|mistake|trap|fallacy|"
    r"misconception|blunder|myth|distractor|template|placeholder|sample|specimen|dummy)s?\b|\(\s?not\s?\))",
    re.IGNORECASE,
)
_PERHAPS = re.compile(
    r"\b(?:could|might|may)(?: \w+){0,2} be(?: that)?(?:\W*$|(?: (?!the\b|an?\b)|\W)[^,;:]{0,80}=[\s$]*$)",
    re.IGNORECASE,
)
_ONE_OF = re.compile(
    r"\b(?:one|some|any|either|which) of (?:these|those|them|the (?:following|below|(?:\w+ )?(?:values|numbers|options|"
    r"candidates|possibilities|choices|answers)))\b[^0-9]{0,40}[:,—–]|\bone of:",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_SLOT = re.compile(
    r"\[\s?(?:insert|your|fill|put|enter|write|type)\b|\b(?:insert|fill in|put|type|"
    r"enter)\b[^.]{0,16}\b(?:answer|value) here\b|\byour (?:final )?answer(?: here| goes)\b|"
    r"_{3,}\W*\(|\bformat: |\be\.g\.|\{\{[^{}]*\||\bformat(?:ted)?\b[^.:]{0,40}\b(?:like this|as follows|this way)\b|"
    r"\b(?:example|sample|illustration|specimen|template|model) (?:of|for) (?:an?|the|how|what|your|"
    r"my) (?:[\w-]+ ){0,3}?"
    r"(?:reply|answer|response|output|submission|format\w*|box|to (?:answer|reply|respond))\b|"
    r"\b(?:sample|example|specimen|dummy|template|mock) (?:reply|answer|response|output)s?\b|"
    r"\byour (?:final |own )?(?:answer|result|response|reply|solution) (?:\w+ ){0,3}?(?:as|like)\b|"
    r"\bplease (?:reply|respond|answer|write|type|return)\b (?:\w+ ){0,4}?(?:with|as|like)\b",
    re.IGNORECASE,
)
UNSOLVED = re.compile(
    r"\b(?:i|we) (?:have not|haven't|did not|didn't|never|could not|couldn't|cannot|can't|don't|do not)(?: \w+)? "
    r"(?:solved?|work(?:ed)? (?:it|this|that|anything) out|read|attempt(?:ed)?|do|done|answer(?:ed)?|comput\w+|"
    r"calculated?|"
    r"look(?:ed)? at|understand|understood)(?: (?:the|this|that|your|any) (?:\w+ )?(?:problem|question|exercise|task|"
    r"text|statement|equation)| (?:it|this|that|anything))\b(?! (?:by|using|with|numerically|directly|in|for|"
    r"because|as|since)\b)",
    re.IGNORECASE,
)
_TEST = re.compile(
    r"\bthis is (?:only |just |merely )?an? (?:test|sample|dummy|template|demo)\b(?! (?:of|"
    r"for) (?:the )?(?:hypoth|converg))",
    re.IGNORECASE,
)
_BUT_NO = re.compile(
    r"^[\s$)*\]},]*(?:\(?not\)?[\s.!]*$|(?:and|but) (?:also )?no\b|et non\b|und nein\b|y no\b|e n[aã]?o\b|"
    r"и нет\b|ولا(?!\w)|"
    r"和否|又不是|でもあり)",
    re.IGNORECASE,
)
_CROSSED = re.compile(r"(?:×|\\times)[\s$]*$")
_SPOKEN = re.compile(r"(?<!\\)(?<![^\W\d_])[^\W\d_]{2}|[^\W\d_A-Za-z]")
_NOT_SO = re.compile(r"[.!…]\s*\(?NOT\b[\s.!)]*$")
_JOKE = re.compile(
    r"なんちゃって|冗談|本当は|농담|开玩笑|開玩笑|\b(?:just |only )?(?:kidding|joking)\b|\bscherzo\b|\bbroma\b|"
    r"\bblague\b|"
    r"\bopposite day\b|\b(?:psych|sike|as if|yeah,? right)\s*[!.]|\bin your dreams\b|\bapril fools?\b|"
    r"\bnot really\s*[!.]|"
    r"\bscherz\b|\bшучу\b|\bшутка\b|\bżartuj?ę?\b|\bşaka\b",
    re.IGNORECASE,
)
_THINGS = (
    r"fingers?|toes?|teeth|phone|locker|shoe|jersey|shirt|pages?|exercises?|problems?|questions?|chapters?|"
    r"lines?|sections?|"
    r"rooms?|houses?|lucky|favou?rite|birthday|pin|password|grades?|scores?"
)
_OF_MINE = re.compile(
    rf"\bmy (?:own )?(?P<mine>{_THINGS})\b|\b(?:the|this) (?P<page>pages?|exercises?|chapters?|"
    rf"sections?)\b[^.,;:]{{0,60}}"
    r"\b(?:is|has|was|bears)(?: the)? (?:number\s*)?\W*$",
    re.IGNORECASE,
)
_IS_MINE = re.compile(
    rf"^[\s$)*\]}}]*is (?:the |an? |my |our )?(?P<thing>{_THINGS}) (?:number|i|we|that|of|on)\b", re.IGNORECASE
)
_CONDITION = re.compile(
    r"^\W*(?:if|suppos\w+|assum\w+|were|imagine|kdyby|gdyby|pokud|jeśli|wenn|falls|"
    r"(?:si|se) (?:fuera|fuese|es|era|fosse|for|è|on|l'on|nous|c'était|\$|[a-z]\b)|если|якщо|jika|nếu|eğer|om|als)\b"
    r"(?! (?:you|we|one|man|on|wij|vi)\b)[^,;:]*$|^\W*(?:如果|假如|若|もし|만약)[^,，、;:]*$",
    re.IGNORECASE,
)
_PROMISED = re.compile(
    r"^\W*(?:je vais|nous allons|ich werde|ich will|wir werden|voy a|vamos a|vou|vado a|proviamo a|zkus[ií]me?|"
    r"hned|spróbuję|"
    r"zaraz|попробую|сейчас|проверю|спробую|akan saya|saya akan|tôi sẽ|jag ska|ik ga|i(?:'ll| will| shall|"
    r" am going to)|"
    r"let me|soon (?:we|i))\b[^,;:]*$|^\W*(?:让我|我来|接下来|これから|まず)[^,，、;:：。]*$",
    re.IGNORECASE,
)
_IN_ALL = re.compile(r"(?:一共|总共|總共|合计|合計|共(?!同))[是为要]?\s?(-?[0-9][0-9.,]*[0-9]|[0-9])")
_TRIGGER = Caseless(
    r"pretend|suppose|assume|deny|verifico|controllo|vediamo|told|teacher|friend|student|classmate|colleague|"
    r"neighbo|brother|sister|father|mother|uncle|aunt|cousin|"
    r"tutor|professor|legend|tradition|reply|respon|answer|opposite|psych|sike|as if|yeah|dreams|april|folklore|"
    r"hearsay|has it|\{\{|example|sample|illustration|specimen|template|model|"
    r"people|person|\bman\b|woman|book|solver|calculator|assistant|careless|forget|forgot|naively|^\W*(?:is|are|"
    r"was|could|"
    r"might|should|shall|does|would)\b|whether| if|jestli|zda|czy|\bли\b|liệu|apakah|\bob\b|是否|能否|هل|האם|"
    r"آیا|かどうか|なのか|인지|일까|"
    r"だろうか|でしょうか|"
    r"\bopen\b|guess|jury|knows|unknown|unclear|undecided|unsettled|debatable|to be |error|mistake|trap|fallac|"
    r"misconcep|"
    r"pitfall|distractor|blunder|myth|incorrect|wrong|false|erroneous|invalid|faulty|flawed|bogus|according|"
    r"website|forum|"
    r"blog|chatbot|horoscope|rumo|gossip|comment|different from|n't\b|\bnot\b|never|cannot|could|might|\bmay\b|one of|"
    r"(?:some|any|either|which) of|"
    r"\[|insert|"
    r"fill in|here\b|___|format|e\.g\.|this is|and no|but no|et non|und nein|y no\b|\be n[aã]?o\b|и нет|ولا|"
    r"和否|又不是|でもあり|"
    r"×|\\times|なんちゃって|冗談|本当は|농담|玩笑|kidding|joking|scherz|broma|blague|шу[чт]|żart|şaka|\bmy\b|"
    r"\bpages?\b|exercise|"
    r"chapter|section|^\W*(?:if|suppos|assum|were|imagine|kdyby|gdyby|pokud|jeśli|wenn|falls|si|se|если|якщо|"
    r"jika|nếu|eğer|"
    r"om|als|如果|假如|若|もし|만약|je vais|nous|ich|wir|vo[yu]|vamos|vado|proviamo|zkus|hned|spróbuję|zaraz|"
    r"попробую|сейчас|"
    r"проверю|спробую|akan|saya|tôi|jag|ik|i\b|let|soon|让我|我来|接下来|これから|まず)|一共|总共|總共|合[计計]|"
    r"共[是为要]?\s?[0-9]"
)
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
    if _TRIGGER.search(whole) is None and UNSOLVED.search(after[:300]) is None and _JOKE.search(after[:120]) is None:
        return False
    if _NOT_SO.search(whole):
        return True
    if UNSOLVED.search(after[:300]) or _TEST.search(whole) or _JOKE.search(f"{said} {after[:120]}"):
        return True
    if (slot := _SLOT.search(whole)) is not None and slot.group() not in question:
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


def _held_open(sentence: str, clause: str, behind: str) -> bool:
    """Say whether the clause with the answer is a question, or left open."""
    if _WHETHER.search(clause) or _UNDECIDED.search(sentence):
        return True
    rest = re.split(r"[.!?。！？](?:\s|$)|\n", behind)[0]
    return _ASKED_AFTER.search(rest) is not None or _OPEN.search(rest) is not None
