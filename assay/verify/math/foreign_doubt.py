"""Doubt, denial, choice and hearsay in sentences of other languages than English.

English words are looked up in context (:mod:`~assay.verify.math.against`, :mod:`~assay.verify.math.sentence`). In a
sentence of another language one such word is enough, which is stricter: what is left is the plain statement.
"""

from __future__ import annotations

import functools
import re

from assay.verify.caseless import Caseless

_ENGLISH = Caseless(
    r"\b(?:the|is|are|was|and|that|this|it|its|of|to|we|with|for|answer|final|so|therefore|hence|thus|result|because|"
    r"since|which|but|not|or|value|total|in|on|at|by|be|have|has|there|you|your|my|if|let|hope|thank|step|check|note|"
    r"dollars?|hours?|days?|minutes?)\b",
    frequent=True,
)
_FORMULA = re.compile(
    r"\$[^$]*\$|\\\(.*?\\\)|\\\[.*?\\\]|\\[A-Za-z]+|\{[^{}]*\}|<[^<>]*>|[0-9][A-Za-z0-9_.,/]*", re.DOTALL
)
_LETTERS = re.compile(r"[^\W\d_]{2,}|[^\W\d_A-Za-z]")


@functools.lru_cache(64)  # many rules ask about the same few sentences
def prose(text: str) -> str:
    """Return a text with blanks for its formulas and numbers."""
    return _FORMULA.sub(" ", text)


_OTHERS = (
    # Spanish, Portuguese, Italian, French
    "dicen? dijo según segun afirma cree supong\\w+ suponga\\w* supon supuesto sostiene piensa imagin\\w+ "
    "diz disse segundo afirma acha suponha\\w* supondo admitindo "
    "dice secondo sostiene crede supponiamo supposto ammettiamo pensa "
    "dit selon affirme prétend pense croit suppos\\w+ admettons imagin\\w+ paraît "
    # German, Dutch, Swedish
    "sagt sagte laut behauptet meint glaubt angenommen angeblich annahme vermeintlich gesetzt wäre "
    "zegt beweert denkt stel volgens zogenaamd säger påstår tror antag\\w* enligt "
    # Russian, Polish, Czech, Turkish, Vietnamese, Indonesian
    "говор\\w+ утвержда\\w+ дума\\w+ счита\\w+ допустим предположим якобы "
    "mówi twierdzi uważa załóżmy podobno rzekomo tvrdí říká předpokládejme "
    "diyor söylüyor iddia varsayalım farz nói cho giả katanya misalkan andaikan"
)
_DOUBTS = (
    "no(?!\\.) nunca menos salvo excepto tampoco jamás o u quizás? quizá acaso posiblemente podría puede "
    "también depende "
    "incorrect\\w+ equivoc\\w+ fals\\w+ error\\w* corrijo perdón alternativamente tal "
    "não nunca exceto menos ou talvez possivelmente poderia pode também depende errad\\w+ errei desculp\\w+ engan\\w+ "
    "non mai tranne eccetto oppure ovvero forse magari potrebbe anche dipende sbagli\\w+ errat\\w+ errore scus\\w+ "
    "pas sauf jamais aucun\\w* hormis ou soit soient peut-être peut éventuellement pourrait aussi dépend faux fausse "
    "erreur tromp\\w+ pardon attendez presque environ "
    "nicht kein\\w* außer ausser niemals nie oder entweder vielleicht eventuell möglicherweise womöglich wohl könnte "
    "auch beziehungsweise bzw falsch fehler irrtum quatsch unsinn geraten rate fast beinahe keinesfalls "
    "niet geen behalve nooit of misschien wellicht mogelijk kan ook fout\\w* verkeerd bijna inte ej aldrig utom eller "
    "kanske möjligen också fel\\w* nästan ikke eller måske kanskje ei tai ehkä nem vagy talán "
    "не нет ни кроме или либо может возможно наверное вероятно также ошиб\\w+ неправ\\w+ неверн\\w+ извини\\w* почти "
    "ні або чи можливо крім nie nigdy oprócz poza lub albo może chyba prawdopodobnie też błęd\\w+ błąd pomyli\\w+ "
    "przepraszam prawie ne není nikoli kromě nebo možná snad také nu sau poate greșit μη δεν όχι ή ίσως "
    "değil\\w* hariç veya ya belki muhtemelen olabilir yanlış hata\\w* neredeyse "
    "không trừ hoặc hay lẽ thể sai nhầm bukan tidak kecuali atau mungkin barangkali salah"
)
_WORDS_OTHERS = rf"\b(?:{'|'.join(dict.fromkeys(_OTHERS.split()))})\b"
_WORDS_DOUBTS = rf"(?<![-\w])(?:{'|'.join(dict.fromkeys(_DOUBTS.split()))})(?![-\w])"
_SCRIPT_OTHERS = (
    r"假设|假設|假定|假如|如果|设答案|声称|聲稱|认为|認為|据说|據說|说\s?$|说[:：,，]?|說|と言|という(?:人|説|"
    r"意見)|と主張|仮に|もし|とする|"
    r"라고|가정|만약|주장|말한|말하|이라는|لنفرض|يقول|يزعم|يدعي|افترض|إذا كان|मान ली|कहता|कहते|दावा|فرض|"
    r"می‌گوید|สมมติ|บอกว่า|נניח|אומר"
)
_SCRIPT_DOUBTS = (
    r"不|非|绝|絕|别(?!忘)|勿|莫|乱|亂|瞎|谎|骗|假(?!设|設|定|如)|陷阱|干扰|嘘|うそ|罠|却下|でたらめ|거짓|오답|함정|찍은|除了|除非|以外|或|可能|大概|也许|也許|或许|恐怕|估计|猜|错|"
    r"錯|误|誤|抱歉|更正|无法|無法|没有|"
    r"ない|ません|ではな|でな|どちらか|いずれか|どっちか|または|あるいは|かも|おそらく|たぶん|多分|らしい|間違|誤|ミス|すみません|訂正|ずっぽう|"
    r"아니|아닙|않|제외|또는|혹은|거나|지도|아마|틀[린렸]|잘못|실수|죄송|모르|"
    r"ليس|غير|إلا|\bأو\b|ربما|خطأ|أخطأ|عذر|नहीं|(?<!\w)या(?!\w)|शायद|सिवाय|गलत|ग़लत|क्षमा|نیست|(?<!\w)یا(?!\w)|شاید|"
    r"ไม่|หรือ|อาจ|ผิด|(?<!\w)(?:לא|אינ\w{1,3})(?!\w)|(?<!\w)או(?!\w)|אולי|না|হয়তো"
)
_HEARSAY = Caseless(f"{_WORDS_OTHERS}|{_SCRIPT_OTHERS}")
_DOUBT = Caseless(f"{_WORDS_DOUBTS}|{_SCRIPT_DOUBTS}|{_WORDS_OTHERS}|{_SCRIPT_OTHERS}")
_OR = re.compile(
    r"o|u|ou|oppure|oder|of|eller|или|або|чи|lub|albo|nebo|sau|veya|ya|hoặc|hay|atau|tai|vagy|ή|或|または|"
    r"あるいは|또는|혹은|أو|या"
)
_SEVERAL = re.compile(r"[,;±]|\\pm(?![a-z])|\bor\b|\band\b|\\\\")
_MATHEMATICAL = re.compile(r"[0-9]|\\(?!text|emptyset|varnothing|mathrm)|^[a-z]\b")
_REASON = re.compile(
    r"[,;:，；、(]\s?(?:da|weil|denn|porque|pues|ya que|car|puisque|parce que|perché|poiché|pois|já que|потому|так как|"
    r"поскольку|ведь|因为|因為|由于|なぜなら|왜냐|ponieważ|bo|gdyż|want|omdat|çünkü|eftersom|vì|karena|لأن|"
    r"क्योंकि|protože)\b",
    re.IGNORECASE,
)
_PLAIN = re.compile(
    r"(?:^|\|)\W*(?:menos(?=\s\w+\W*(?:\(|$))|hay(?=\s\$?[0-9]))|(?:^|[.,:;|]|\b(?:que|logo|então|assim|portanto|é|"
    r"com))\s*\bo"
    r"(?=\s(?!\w+[áé]s\b)[^\W\d_]{4,}\s[^\W\d_]+\s)|\bno total\b",
    re.IGNORECASE,
)
"""Words that doubt in another place or language: a sign, "there are", the Portuguese article."""
_CLAUSE = re.compile(r"[,;:，；、：]\s?")
_WRONG = Caseless(
    r"\b(?:perdón|equivoq?u?\w+|corrijo|corregid\w+|errata|pardon|erreurs?|tromp[ée]\w*|rectif\w+|"
    r"entschuldig\w+|falsch\w*|"
    r"fehler|irrtum|quatsch|unsinn|verrechnet|vertan|stimmen|scus\w+|sbagli\w+|errore|erro|errei|errad\w+|desculp\w+|"
    r"engan\w+|извин\w+|прост\w+|ошиб\w+|оговор\w+|неверн\w+|неправ\w+|sorry|fout\w*|verkeerd|vergist|"
    r"pomył\w+|pomyl\w+|"
    r"błąd|błędn\w+|przepraszam|özür|hata\w*|yanlış\w*|xin lỗi|nhầm|sai|maaf|salah|keliru|förlåt|fel\w*|"
    r"omyl\w*|chyb\w+|"
    r"desacuerdo|d'accord|de acuerdo|d'accordo|einverstanden|unsicher|dudo|doute|zweif\w+|dubit\w+|duvid\w+)\b|"
    r"抱歉|算错|错了|有错|更正|应该是|應該是|すみません|ミス|間違|正しくは|訂正|죄송|실수|올바른 값|정정|잘못|"
    r"عذر|أخطأ|خطأ|"
    r"الصحيح هو|क्षमा|गलत|ग़लत|सही मान|ببخشید|اشتباه|ขอโทษ|ผิด|סליחה|טעיתי|טעות"
)
_PROBED = Caseless(
    r"\b(?:kein\w*|keinerlei|ohne|ningún|sin|aucun\w*|sans|nessun\w*|senza|nenhum\w*|sem|без|bez|geen|zonder|yok)\b",
)
CORRECTED = (
    r"perdón|equivo[cq]|corrij|correg|pardon|erreur|tromp[ée]|rectif|entschuldig|falsch|fehler|irrtum|"
    r"korrigier|korrektur|"
    r"quatsch|scusa|sbagli|errore|desculp|\berrei|errad|извин|ошиб|исправ|неверн|неправ|抱歉|错|錯|正确|正確|更正|修正|"
    r"すみません|ミス|正しく|訂正|間違|죄송|실수|올바른|정정|잘못|عذر|خطأ|أخطأ|الصحيح|क्षमा|गलत|सही|\bfout|"
    r"verkeerd|pomy[lł]|błąd|"
    r"powinno|\bhata|yanlış|doğrusu|xin lỗi|nhầm|đúng ra|förlåt|rättelse|\bmaaf|salah"
)
"""Words between two answers that tell that the second corrects the first."""


def foreign(text: str) -> bool:
    """Say whether a text has words, and none of the commonest English ones."""
    bare = prose(text)
    return _LETTERS.search(bare) is not None and _ENGLISH.search(bare) is None


def reasoned(said: str) -> str:
    """``said`` up to the reason it gives."""
    return _REASON.split(said, maxsplit=1)[0]


def doubted(lead: str, said: str, reference: str) -> bool:
    """Say whether a foreign sentence around an answer, before (``lead``) and from it on, does not plainly state it."""
    if not foreign(f"{lead} {said}") or _MATHEMATICAL.search(reference) is None:
        return False
    if _HEARSAY.search(prose(lead)):
        return True
    clause = _PLAIN.sub(" ", f"{_CLAUSE.split(lead)[-1]} | {reasoned(said)}")
    found = _DOUBT.search(prose(clause))
    if found is not None and found.group() in "oO" and clause.partition("|")[0].strip(" \n*") in ("o", "O"):
        return False  # "o resultado é 84", cut behind its article
    if found is None or found.group().casefold() in reference.casefold():
        return False
    return not (_OR.fullmatch(found.group()) and _SEVERAL.search(reference))


_TELLS = Caseless(
    r"\b(?:jura|giura|jure|schwört|zweert|svär|przysięga|клян[её]тся|dice que|diz que|diz|dice|dit que|sagt|behauptet|"
    r"meint|glaubt|"
    r"afirma|affirme|prétend|croit|cree|acha|sostiene|sostém|crede|beweert|denkt|zegt|påstår|säger|tror|twierdzi|mówi|"
    r"uważa|"
    r"tvrdí|říká|утвержда\w+|говорит|счита\w+|думает|diyor|söylüyor|iddia)\b",
)
_MISSES = re.compile(
    r"\b(?:errou|errado|não acerta|se equivoc\w+|se tromp\w+|s'est trompée?|irrt|hat unrecht|sbaglia\w*|vergist|"
    r"ongelijk|"
    r"ошиб\w+|myli|mylí|yanılıyor)\b",
    re.IGNORECASE,
)


def told(lead: str, said: str, reference: str) -> bool:
    """Say whether a foreign sentence tells what somebody else says, or that he is wrong, where the answer is a word."""
    written = reference.strip(" $.").casefold()
    text = f"{lead} {said}"
    if _MATHEMATICAL.search(reference) is not None or len(written) < 3 or not foreign(text):
        return False
    before, found, behind = text.casefold().rpartition(written)
    return bool(found) and (
        _TELLS.search(_LAST.split(before)[-1]) is not None or _MISSES.search(behind[:200]) is not None
    )


_LAST = re.compile(r"[.!?。！？;]\s|\n")


def unsure(sentence: str) -> bool:
    """Say whether a foreign sentence holds a word of doubt, denial or choice, or tells what somebody else says."""
    bare = prose(sentence)
    return foreign(sentence) and (_DOUBT.search(bare) is not None or _HEARSAY.search(bare) is not None)


def retracted(after: str) -> bool:
    """Say whether one of the foreign sentences after an answer admits a mistake."""
    found = _WRONG.search(after)
    if found is None:
        return False
    around = after[max(found.start() - 60, 0) : found.end() + 60]
    return foreign(around) and not _PROBED.search(around)
