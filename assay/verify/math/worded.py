"""Sentences that say there is no solution, no value, or no end of them: ``方程无解。``, ``The matrix has no inverse``.

The words that say it are known in some twenty languages. Everything else in the sentence, up to the reason it gives,
must be harmless or of the question, so that ``I have no solution for you`` and ``no solution unless`` say nothing.
"""

from __future__ import annotations

import re

from assay.verify.math.foreign_doubt import reasoned
from assay.verify.math.frames import known_words, words_around
from assay.verify.math.latex import plain
from assay.verify.math.sentence import hedged
from assay.verify.math.values import RealSet, Text, Value

MAX_LENGTH = 300
_NONE = (
    r"\b(?:there (?:is|are|exists?) )?(?:no|0|zero|not any) (?:(?:real|such|possible|valid|integer|complex|"
    r"common) ){0,2}"
    r"(?:solutions?|roots?|numbers?|values?|x)\b(?: (?:at all|does|do|exists?|satisf\w+))?|\bunsolvable\b|"
    r"\binconsistent\b|"
    r"\b(?:solution )?set (?:is|=) (?:the )?empty(?: set)?|\bempty set\b|"
    r"\bis never satisfied|\bnever (?:holds|true)|\bis impossible\b|"
    r"\bkeine? (?:reellen? |reelle )?lösung(?:en)?|\blösungsmenge ist (?:leer|die leere menge)|\bunlösbar|"
    r"\bnicht lösbar|"
    r"\bleere menge|"
    r"\b(?:n'(?:a|admet|y a|existe) )?(?:pas de|aucune|pas d'|sans) (?:racine|solutions?)(?: réelles?)?|"
    r"\bensemble vide|"
    r"\b(?:no (?:hay|tiene|existe|existen) )?(?:ninguna |sin |no )?soluci(?:ón|ones)(?: real(?:es)?)?(?<=\w)|"
    r"\bconjunto vac[ií]o|\bconjunto vazio|"
    r"\b(?:não (?:há|tem|existe|possui) |sem |nenhuma )(?:nenhuma )?soluç(?:ão|ões)(?: rea(?:l|is))?|"
    r"\b(?:non (?:ha|ci sono|esistono|esiste|c'è) |nessuna |senza )(?:alcuna )?soluzion[ei](?: real[ei])?|"
    r"\binsieme vuoto|"
    r"\b(?:нет|не имеет|не существует)(?: действительных| вещественных)? (?:решени[йя]|корней)|\bрешений нет|"
    r"\bпустое множество|无(?:实数)?解|無解|(?:没有|沒有)(?:实数)?(?:解|根)|空集|解(?:は|が)?(?:なし|ない|"
    r"ありません|存在しない|"
    r"存在しません)|실?근이 없|해[가는]? 없|공집합|\b(?:brak|nie ma) rozwiązań|\bsprzeczn\w+|\bgeen oplossing(?:en)?|"
    r"\bçözüm(?:ü)? yok(?:tur)?|\b(?:vô nghiệm|không có nghiệm(?: thực)?)|"
    r"\btidak (?:ada|punya|memiliki|mempunyai) (?:solusi|penyelesaian)|لا (?:يوجد|توجد) (?:حل|حلول)|कोई हल नहीं|"
    r"\b(?:ingen|saknar) (?:reell )?l(?:ö|ø)sning(?:ar|er)?|\bnemá řešení"
)
_UNDEFINED = (
    r"\b(?:does not|doesn't|do not|don't|did not) exist|\bundefined\b|\b(?:is )?not defined|"
    r"\bno (?:defined )?(?:limit|slope|"
    r"inverse|value)\b(?: exists?)?|\bnot invertible|\bhas no (?:defined )?(?:inverse|slope|value|limit)|"
    r"\bnon-?existent|"
    r"\bn'existe pas|\b(?:non|pas|n'est pas) (?:défini|inversible)e?|\bindéfinie?|\bexistiert nicht|"
    r"\b(?:nicht|un)\s?(?:definiert|invertierbar|bestimmt)|"
    r"\bno existe|\b(?:no está |no es |in)definid[oa]|\bno es invertible|\bnão existe|\b(?:não (?:está|é) |"
    r"in)definid[oa]|"
    r"\bnon esiste|\b(?:non è |in)definit[oa]|\bне существует|\bне определ[её]н\w*|不存在|未定义|无定义|沒有定義|"
    r"存在し(?:ない|ません)|定義され(?:ない|ません|ていない)|未定義|존재하지 않\w*|정의되지 않\w*|\bnie istnieje|"
    r"\bnieokreślon\w+|"
    r"\bbestaat niet|\bniet gedefinieerd|\btanımsız(?:dır)?|\bmevcut değil(?:dir)?|\bkhông (?:tồn tại|xác định)|"
    r"\btidak (?:ada|terdefinisi)|غير (?:معرف|موجود)|परिभाषित नहीं|\bfinns inte|\bodefinierad"
)
_MANY = (
    r"\binfinitely many\b|\ban infinite number(?: of)?|\binfinite(?:ly)? (?:many )?(?=solutions?|primes?)|∞|"
    r"\bunendlich viele\w*|\bune infinité(?: de)?|\binfinit[oa]s\b|\buna infinidad(?: de)?|\binfinite (?=soluzioni)|"
    r"\bun(?:'|a )infinità(?: di)?|\bбесконечно много|\bбесконечн(?:ое|ая) (?:число|количество|множество)|"
    r"无(?:穷|限)多|無[窮限]多|無数|無限に(?:多く|ある|存在)|무수히 많|무한히 많|\bnieskończenie wiele|"
    r"\boneindig veel|"
    r"\bsonsuz(?: sayıda)?|\bvô số|\btak (?:ber)?hingga banyak|عدد لا نهائي(?: من)?|अनंत|\boändligt många|"
    r"\bnekonečně mnoho"
)
_INFINITY = (
    r"∞|\binfinity\b|\bunendlich(?:keit)?\b|\bl'infini\b|\binfinito\b|\bбесконечност[ьи]|无穷大?|無限大|무한대?|"
    r"\bnieskończoność|\bsonsuz\b|\bvô cực|\btak hingga"
)
_MINUS = re.compile(
    r"[-−–]\s?$|(?:\b(?:minus|negative|moins|menos|meno|минус|min|eksi|âm)|负|負の|마이너스|음의)\s?$", re.IGNORECASE
)
_PATTERNS = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in (("none", _NONE), ("undefined", _UNDEFINED), ("many", _MANY), ("infinity", _INFINITY))
}
_SINCE = re.compile(r"[,;:(.]?\s(?:because|since|as|given that|weil|denn|car|porque|perché)\s", re.IGNORECASE)
_ANNOUNCED = re.compile(r"^(?:so )?(?:i|we) (?:get|find|obtain|conclude)(?: that)?\s", re.IGNORECASE)
_CLAUSES = re.compile(r"[,;:]\s|\.\s|\s[–—-]\s|[，。；]")
_FALSE = re.compile(
    r"\b(?:false|untrue|wrong|incorrect|неправда|неверно|falsch|stimmt nicht|nicht wahr|faux|inexact|falso|mentira|"
    r"nieprawda|yanlış|"
    r"onwaar|không đúng|salah)\b|거짓|틀|嘘|誤|错|錯|خطأ|गलत",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"\b(?:i|we|you|me|us|my|your|our|ich|wir|je|j|nous|yo|eu|io|noi|я|мы|sure|here|tengo|temos|abbiamo|avons|ho)\b",
    re.I,
)
_DOUBT = re.compile(
    r"[?？]|\b(?:if|unless|but|however|or|would|were|might|may|could|maybe|perhaps|wrong|false)\b", re.I
)


def worded(kind: Value, text: str, question: str) -> bool:
    """Say whether ``text`` says in words what ``kind`` is: no solution, undefined, infinitely many or infinity."""
    wanted = _wanted(kind)
    text = text.strip(" \t\n.!*_$")
    if not wanted or not text or len(text) > MAX_LENGTH or _DOUBT.search(text):
        return False
    text = plain(re.sub(r"\\(?:text|mathrm|textbf)\s*\{([^{}]*)\}", r"\1", text))
    said = _ANNOUNCED.sub("", _SINCE.split(reasoned(text), maxsplit=1)[0])
    pieces = _CLAUSES.split(said)
    if _FALSE.search(said):
        return False
    for begin in range(len(pieces)):
        if (before := " ".join(pieces[:begin])) and (hedged(before) or begin > 1):
            break
        if _states(wanted, pieces[begin], question):
            return not any(hedged(piece) for piece in pieces[begin + 1 :])
    return False


def absent(kind: Value) -> bool:
    """Say whether a value is the lack of one, or has no end."""
    return _wanted(kind) in ("none", "undefined", "many")


def _wanted(kind: Value) -> str:
    if isinstance(kind, RealSet):
        return "" if kind.pieces else "none"
    if not isinstance(kind, Text):
        return ""
    return {"undefined": "undefined", "infinitely many": "many", "∞": "+infinity", "-∞": "-infinity"}.get(
        kind.words, ""
    )


def _states(wanted: str, piece: str, question: str) -> bool:
    match = _PATTERNS[wanted.lstrip("+-")].search(piece)
    if match is None or _PERSON.search(piece):
        return False
    before, behind = piece[: match.start()], piece[match.end() :]
    if wanted[0] in "+-":
        minus = _MINUS.search(before)
        if (minus is not None) != (wanted[0] == "-"):
            return False
        before = before if minus is None else before[: minus.start()]
    following = words_around("", behind)
    if wanted == "many":
        following = following[1:]  # the noun that there are so many of
    return all(known_words(word, question) for word in (*words_around(before, ""), *following))
