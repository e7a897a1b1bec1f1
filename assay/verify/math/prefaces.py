"""Words in front of an answer that deny or suppose something else than the answer.

``Nicht Zürich, sondern Bern.``, ``No hace falta calculadora: 12 · 60 = 720``, ``If we divide by 5 we get 2/3``,
``Tak, bo nie dzieli się przez 2``: a negation or a condition that is about another value, about the working or in the
reason. What is left without them is judged like any other answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay.verify.math.forms import truth

MAX_LENGTH = 300
_ARTICLE = (
    r"(?:(?:it(?:'s| is)|is|the|c'est|das ist|es ist|der|die|das|el|la|lo|il|è|é|es|fue|foi|η|ο|το|để là|là|"
    r"det är|to|"
    r"это|це)\s+|l')?"
)
_CONTRAST = re.compile(
    r"(?:(?:it(?:'s| is| was)|that's|this is|ce|c'|es|det är|это|це|to|non|on)\s)?"
    r"(?:not|isn't|nicht|kein\w*|no|n'est|(?:n'est )?pas|non|não|niet|не|ні|nie|není|ne|inte|ikke|ei|nem|nu|bukan|"
    r"không phải|όχι|δεν|ليست?|לא|نه|不是|并非|ไม่ใช่)(?:\s?(?P<other>[^.:!?\n]{1,70}?))(?:[,;，、]?\s?"
    r"(?:(?<=[\s,;])(?:but(?: rather)?|sondern|sino|mais|c'est|bensì|ma|mas(?: sim)?|maar|а|але|ale|lecz|nýbrž|"
    r"utan|men|"
    r"vaan|hanem|ci|melainkan|tetapi|mà|αλλά|بل|אלא|بلکه)\s|而是|แต่(?:คือ|เป็น)|:\s))"
    rf"{_ARTICLE}(?P<meant>[^,;:.!?\n]{{1,60}})[.!。]?",
    re.IGNORECASE,
)
_CONTRAST_BEHIND = re.compile(
    r"(?P<other>[^.:!?。\n]{1,40}?)\s?(?:ではなくて?|じゃなくて?|[이가] 아니라|नहीं,? बल्कि|değil,?)[、,]?\s?"
    r"(?P<meant>[^,;:.!?、。\n]{1,40}?)(?:です|だ|입니다|이다|है)?[.。।]?",
)
_IGNORANT = re.compile(
    r"\b(?:i|we|you|me|that|know|sure|think|only|because|sé|sais|weiß|weiss|so|sei|sabe\w*|знаю|wiem|vím|vet|"
    r"tudom|știu|"
    r"tahu|biết|ξέρω|tiedä|weet|bilmi\w*|que|dass|che|что|że|hogy|att|että)\b|知道|知ら|分か|모르|جانتا|पता",
    re.IGNORECASE,
)
"""Who knows nothing denies no value."""
_NO_NEED = re.compile(
    r"(?:no hace falta|no es necesari\w+|no hay que olvidar|no olvid\w+|sin olvidar|non serve|non occorre|"
    r"non dimenti\w+|"
    r"não (?:é preciso|precis\w+|esque\w+)|nie trzeba|nie potrzeba|nie zapom\w+|není třeba|nezapom\w+|netřeba|"
    r"nem kell|"
    r"ne felejts\w+|nu (?:avem|e(?:ste)?) nevoie|nu uita\w*|tidak perlu|tak perlu|jangan lupa\w*|không cần|đừng quên|"
    r"δεν χρειάζεται|μην ξεχ\w+|(?:man |vi |du )?behöver (?:inte|ej)|glöm inte|laskinta ei tarvita|ei tarvita|"
    r"(?:je |we )?hoeft? niet|vergeet niet|(?:не (?:нужно|надо|нужен|нужна|потрібно|потрібен|треба|забуд\w+))|"
    r"(?:il )?(?:ne )?faut pas oublier|n'oubli\w+|(?:attention à )?ne pas oublier|pas besoin|inutile|"
    r"man braucht kein\w*|nicht (?:zu )?vergessen|don't (?:lose|forget|drop|miss)|do not (?:lose|forget|drop|miss)|"
    r"no need (?:for|to)|no calculator|without forgetting|gerek yok|"
    r"لا (?:نحتاج|حاجة|داعي)|לא צריך|אין צורך|لازم نیست|نیازی نیست|不用|不必|不需要|无需|別忘|别忘|ไม่ต้อง|"
    r"आवश्यकता नहीं)"
    r"(?P<what>[^.:;,!?0-9：；，。]{0,50})(?:[:;：；，؛]|,(?=\s?[0-9(-])|\s(?=คำตอบ))\s?(?P<rest>\S.{0,200})",
    re.IGNORECASE | re.DOTALL,
)
_SAYS_MORE = re.compile(
    r"\b(?:not|wrong|false|true|right|correct\w*|fals\w*|falsch\w*|faux|vero|es|is|ist|est|que|dass|that|che|"
    r"что|że|hogy|"
    r"att|si|if|ob|or|oder|ou|believ\w+|say|decir|dire|sagen)\b|不|错|对",
    re.IGNORECASE,
)
"""What makes a preface more than that something is not needed."""
_WORKING = re.compile(
    r"(?:if|when|wenn|falls|si|se|als|om|jeśli|jeżeli|pokud|když|если|якщо|nếu|jika|kalau|αν|εάν|dacă|ha|jos|"
    r"إذا|אם|اگر|"
    r"如果|若)\s?(?P<working>[^.;:!?\n]{0,40}?"
    r"(?:\b(?:add|subtract|divide|multipl|simplif|halve|reduce|take|deelt?\b|delar|divid|subtrah|addier|multiplizier|"
    r"abzieh|teil|kürz|podziel|dziel|odejm|doda|pomno|vyděl|přičt|odečt|раздел|подел|поділ|перенес|слож|вычт|"
    r"прибав|умнож|"
    r"додат|відн|sum|rest|ajout|soustra|multipli|chia|cộng|trừ|nhân|dibagi|bagi|tambah|kurang|προσθ|αφαιρ|διαιρ|"
    r"πολλαπλ|"
    r"împărț|adun|scăd)\w*|\bподілити|قسمنا|جمعنا|طرحنا|ضربنا|מחלקים|מצמצמים|מוסיפים|מחסרים|כופלים|کم کنیم|"
    r"تقسیم کنیم|"
    r"اضافه کنیم|减去|加上|除以|乘以)[^.;:!?\n]{0,50}?)[,，،]?\s?(?:(?:then|so|dann|also|alors|entonces|allora|"
    r"então|то|то "
    r"мы|thì|maka|就|那么|则)\s?)?"
    r"(?:(?<!would )\b(?:we|you|one|i) (?:get|obtain|find|arrive at|have)|it gives|that gives|erhält man|"
    r"erhalten wir|"
    r"ergibt sich|bekommt man|on (?:obtient|arrive à|trouve)|obtenemos|se obtiene|nos queda|si ottiene|"
    r"otteniamo|obtemos|"
    r"obtém-se|krijg(?:en)? (?:je|we)|får (?:vi|man)|otrzymamy|otrzymujemy|dostaneme|получим|получаем|отримаємо|"
    r"матимемо|(?:ta )?được|(?:kita )?(?:peroleh|dapatkan)|παίρνουμε|έχουμε|obținem|حصلنا على|נקבל|מקבלים|得到|得)\s?"
    r"(?P<rest>\S.{0,120}?)(?:\s?به دست می‌آید)?[.。]?",
    re.IGNORECASE,
)
_BADLY = re.compile(
    r"\b(?:wrong\w*|incorrect\w*|careless\w*|mistak\w*|forget\w*|instead|not|n't|\w+ed(?= by)|nicht|falsch|pas|"
    r"non|não|"
    r"niet|не|nie|inte|không|tidak|δεν|nu|źle|błędn\w+|mal|male|mauvais\w*|schlecht|versehentlich|fel|chybn\w+|"
    r"špatn\w+|"
    r"неправильн\w+|ошибочн\w+|неверн\w+|помилков\w+|salah|sai|errad\w+|errônea\w*|verkeerd|foutief|yanlış|λάθος|"
    r"greșit|rosszul|väärin|por error|par erreur|per sbaglio)\b|n't\b|不|错|錯|乱|忘|خطأ|غلط|اشتباه|לא|בטעות",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\W*(?P<word>[^\W\d_][^\W_]{0,11})[,،，]\s?(?:because|since|as|for|porque|pues|ya que|car|parce que|"
    r"puisque|perché|"
    r"poiché|pois|weil|denn|da|omdat|want|потому что|так как|ведь|бо|оскільки|bo|ponieważ|gdyż|protože|neboť|"
    r"eftersom|"
    r"fordi|koska|mert|pentru că|deoarece|karena|vì|çünkü|επειδή|γιατί|διότι|كونه|فهو|لأن\w*|כי|چون|زیرا|因为|"
    r"क्योंकि)"
    r"(?!\w)(?P<reason>[^?？\n]{1,200})",
    re.IGNORECASE,
)
_YET = re.compile(
    r"\b(?:but|however|although|though|yet|or|maybe|perhaps|wrong|guess|wait|actually|aber|doch|oder|pero|mais|"
    r"ma|mas|maar|"
    r"но|але|ale|lecz|men|mutta|de|dar|tapi|nhưng|ama|αλλά|или|або|albo|lub|o|ou|said|says|dice|dit|sagt)\b|"
    r"但|लेकिन|لكن|אבל|اما|或|या",
    re.IGNORECASE,
)
_CLUELESS = re.compile(
    r"\b(?:i|you|he|she|they|know|idea|sure|guess\w*|think|feel\w*|ich|yo|je|io|eu|ik|ja|я|jag|sé|sais|weiß|"
    r"знаю|wiem|vím|vet|"
    r"tudom|știu|tahu|biết|ξέρω|tiedä|weet|grader?|key)\b|知道|わから|모르",
    re.IGNORECASE,
)
"""A reason that speaks of people explains nothing."""
_PASSIVE = re.compile(
    r"(?P<what>[^.!?,;:]{3,60}) (?:was|is|were|has been) (?:first )?(?P<verb>[a-z]{2,10}(?:ed|en|nd|ung)) by "
    r"(?P<rest>[^,;:.!?]{2,50})[.!]?"
)
_DOUBTFUL = re.compile(
    r"\b(?:i|you|we|doubt\w*|said|says?|claim\w*|believ\w+|maybe|perhaps|possibly|allegedly|supposedly|think\w*|"
    r"thought|"
    r"den\w+|if|whether|suppos\w+|pretend|imagine|assum\w+|reportedly|probably|neither|nobody|until)\b",
    re.IGNORECASE,
)
_WHO = re.compile(r"\bwho\b", re.IGNORECASE)
_STARTS = re.compile(
    r"\W{0,3}(?:it|that|this|ce|c'|es|det|это|це|to|non?|not|isn|nicht|kein|n'|pas|não|niet|не|ні|nie|ne|inte|"
    r"ikke|ei|nem|"
    r"nu|bukan|không|όχι|δεν|لي?س?|לא|نه|不|并|ไม่|if|when|wenn|falls|si|se|als|om|je|po|kd|если|якщо|nếu|jika|"
    r"kalau|αν|"
    r"ε|da|ha|jos|إذا|אם|اگر|如|若|don|do not|sin|tidak|tak|jangan|đừng|μην|man|vi|du|glöm|laskinta|we|hoef|"
    r"vergeet|il|"
    r"faut|attention|inutile|without|gerek|نی|无|別|别|आ)",
    re.IGNORECASE,
)


def stated(text: str, question: str, yes_or_no: bool) -> Iterator[tuple[str, bool]]:
    """Yield what ``text`` states apart from a preface, and whether that is exactly the answer.

    Args:
        text: the sentence with the answer.
        question: who is asked for is looked up there.
        yes_or_no: whether yes or no is asked for, which a reason may follow.
    """
    said = text.strip().strip("*")
    if not said or len(said) > MAX_LENGTH:
        return
    if yes_or_no:
        reason = _REASON.fullmatch(said)
        if reason is not None and truth(reason["word"]) is not None and _explains(reason["reason"]):
            yield reason["word"], True
        return
    if _STARTS.match(said) is not None:
        contrast = _CONTRAST.fullmatch(said)
        if contrast is not None and not _IGNORANT.search(contrast["other"]):
            yield contrast["meant"].strip(" *"), True
        needless = _NO_NEED.fullmatch(said)
        if needless is not None and not _SAYS_MORE.search(needless["what"]):
            yield needless["rest"], False
        working = _WORKING.fullmatch(said)
        if working is not None and not _BADLY.search(working["working"]):
            yield working["rest"], False
    if any(mark in said for mark in ("なく", "아니라", "बल्कि", "değil")):
        behind = _CONTRAST_BEHIND.fullmatch(said)
        if behind is not None and not _IGNORANT.search(behind["other"]):
            yield behind["meant"].strip(" *"), True
    made = _PASSIVE.fullmatch(said) if " by " in said and _WHO.match(question.strip()) else None
    if made is not None and not any(p.search(made["what"]) for p in (_BADLY, _YET, _DOUBTFUL)):
        yield made["rest"].strip(" *"), True


def _explains(reason: str) -> bool:
    """Say whether what follows "because" is a reason: more than a word or two, about no person, with no "but"."""
    long = len(reason.split()) > 2 or any(map(str.isdigit, reason))
    return long and not _YET.search(reason) and not _CLUELESS.search(reason)
