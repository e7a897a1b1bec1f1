"""What stands around an answer in its own sentence, in other languages: compared, supposed, partial, somebody else's.

Unmarked sentences are judged by :func:`~assay.verify.math.frames.strange`. Around a box the same closed world holds for
the clause that leads to it and for the one behind it; and in all sentences a comparison or a first step is no answer,
though it is said in words that plain statements use.
"""

from __future__ import annotations

import re

from assay.verify.caseless import Caseless
from assay.verify.math import unspaced
from assay.verify.math.abroad import abroad
from assay.verify.math.english import plain_words
from assay.verify.math.foreign_doubt import foreign, prose
from assay.verify.math.foreign_words import concludes, explaining
from assay.verify.math.frames import known_words, words_around

_ENDS = re.compile(r"(?<=[^\W\d_]{2})[.!?…]+\s+|(?<=[0-9)$*%}])[.!?]+\s+(?=[^\W\d_])|\n|[。！？।]")
_CLAUSES = re.compile(
    r"[,;:，、；：]\s|[，、；：]|\s[–—-]\s|(?:所以|因此|故|则|よって|したがって|なので、?|따라서|그러므로|므로)"
)
_THAN = re.compile(
    r"(?:\b(?:mayor(?:es)?|menor(?:es)?|inferior|superior|maior(?:es)?|maggior[ei]|minor[ei]|inferiore|superiore|"
    r"supérieure?|inférieure?|(?:plus|moins) (?:grande?|petite?|élevée?)|más (?:grande|pequeñ[oa]|alto|bajo)|größer|"
    r"kleiner|höher|niedriger|groter|kleiner|hoger|lager|större|mindre|højere|lavere|større|wi[eę]ksz[aey]|"
    r"mniejsz[aey]|"
    r"wyższ[aey]|niższ[aey]|větší|menší|vyšší|nižší|больше|меньше|выше|ниже|büyük|küçük|lebih (?:besar|kecil|dari)|"
    r"(?:lớn|nhỏ|cao|thấp) hơn|mai (?:mare|mic)[ăe]?|suurempi|pienempi|nagyobb|kisebb|μεγαλύτερη|μικρότερη|"
    r"(?:más|menos|plus|moins|più|meno|mais|menos|mehr|weniger|meer|minder|mer|více|méně|więcej|mniej)(?= (?:de|di|"
    r"do|que|als|"
    r"dan|än|end|niż|než)\b))(?:\s(?:que|do que|de|di|à|al?|aux?|als|dan|än|end|niż|od|než|чем|dari(?:pada)?|decât|"
    r"kuin|mint|"
    r"από))?|(?:大|小|高|低|多|少|早|晚)[于於])[\s$*(]*(?=#)",
    re.IGNORECASE,
)
_LEAST = Caseless(
    r"\b(?:höchstens|mindestens|wenigstens|(?:maxima+l|minima+l)(?= #)|au plus|au moins|como máximo|como mínimo|"
    r"a lo sumo|al menos|por "
    r"lo menos|cuando más|no máximo|no mínimo|pelo menos|ao menos|al massimo|al minimo|almeno|al più|minstens|"
    r"hoogstens|"
    r"ten minste|ten hoogste|minst|högst|som mest|som minst|åtminstone|co najmniej|co najwyżej|"
    r"przynajmniej|nejméně|nejvýše|alespoň|maximálně|minimálně|как минимум|как максимум|по меньшей мере|"
    r"по крайней мере|"
    r"en az|en fazla|en çok|ít nhất|nhiều nhất|tối đa|tối thiểu|paling (?:banyak|sedikit|tidak|kecil|besar)|"
    r"setidaknya|"
    r"maksimal|cel puțin|cel mult|legalább|legfeljebb|ainakin|enintään|τουλάχιστον|το πολύ|على الأقل|على الأكثر|"
    r"कम से कम|अधिक से अधिक|ज़्यादा से ज़्यादा)\b|至少|至多|最多|最少|不超过|不少于|少なくとも|多くとも|以[上下](?!より|"
    r"から|の|、)|未満|最低|最高|적어도|많아야|이상|이하|"
    r"미만|초과|อย่างน้อย|อย่างมาก|ไม่เกิน"
)
_HEDGED = Caseless(
    r"\b(?:wahrscheinlich|vermutlich|schätzungsweise|ungefähr|etwa|circa|rund(?= #)|anscheinend|scheinbar|"
    r"probablemente|"
    r"seguramente|supuestamente|aparentemente|aproximadamente|alrededor de|cerca de|casi|provavelmente|"
    r"aparentemente|quase|por volta de|probabilmente|apparentemente|circa|quasi|intorno a|probablement|sans doute|"
    r"apparemment|à peu près|autour de|approximativement|waarschijnlijk|vermoedelijk|schijnbaar|ongeveer|"
    r"rond de|troligen|troligtvis|förmodligen|sannolikt|antagligen|ungefär|cirka|omkring|nästan|sandsynligvis|"
    r"sannsynligvis|omtrent|prawdopodobnie|zapewne|około|mniej więcej|pravděpodobně|je asi|zhruba|přibližně|téměř|"
    r"вероятно|"
    r"наверно|видимо|по-видимому|кажется|скорее всего|примерно|приблизительно|около|muhtemelen|galiba|herhalde|"
    r"sanırım|"
    r"yaklaşık|aşağı yukarı|có lẽ|có thể là|hình như|khoảng|gần|xấp xỉ|mungkin|kemungkinan|kira-kira|sekitar|hampir|"
    r"barangkali|probabil|aproximativ|cam|luultavasti|noin|ehkä|valószínűleg|talán|körülbelül|πιθανόν|πιθανώς|περίπου|"
    r"ίσως|غالبا|ربما|تقريبا|حوالي|लगभग|शायद|संभवतः|करीब|כנראה|בערך)\b|大概|大约|大約|约为|約|左右|接近|可能|也许|"
    r"也許|应该|應該|估计|"
    r"不确定|不確定|不知道|不清楚|没把握|猜|自信が|わから|分から|知りま|모르|자신이|확실하|好像|似乎|几乎|差不多|"
    r"おそらく|たぶん|多分|およそ|だいたい|ほぼ|くらい|ぐらい|ほど(?=です|$)|かな|かも|はず|と思|でしょう|だろう|"
    r"みたい|らしい|아마|대략|약 ?(?=#)|"
    r"정도|쯤|것 같|듯|거의|할걸|일걸|ประมาณ|อาจ|น่าจะ|ราว"
)
_FIRST = Caseless(
    r"\b(?:zuerst|zunächst|anfangs|anfänglich|am anfang|primero|al principio|al inicio|inicialmente|en principio|"
    r"primeiro|"
    r"no início|no começo|a princípio|prima(?= (?:si|ho|abbiamo|otteniamo|viene|di tutto))|all'inizio|inizialmente|"
    r"dapprima|in un primo|d'abord|au début|au départ|au premier|initialement|eerst|aanvankelijk|in het begin|först|"
    r"till en början|inledningsvis|først|najpierw|początkowo|na początku|nejprve|nejdříve|zpočátku|na začátku|сначала|"
    r"вначале|поначалу|сперва|для начала|önce|ilk başta|başlangıçta|başta|đầu tiên|ban đầu|lúc đầu|trước tiên|pertama|"
    r"awalnya|mula-mula|mai întâi|inițial|ensin|aluksi|először|eleinte|αρχικά|πρώτα|أولا|في البداية|पहले|शुरू में|"
    r"(?:im|in|der|dem) (?:ersten|zweiten|dritten|nächsten|erste) (?:schritt|ansatz|versuch)|zwischen(?:ergebnis|"
    r"schritt|"
    r"resultat|wert|summe)\w*|teilergebnis\w*|(?:primer|segundo|siguiente|primeiro|próximo) (?:paso|passo)|resultado "
    r"(?:intermedio|intermediário|parcial)|(?:première|deuxième|seconde|prochaine) étape|résultat (?:intermédiaire|"
    r"partiel|provisoire)|(?:primo|secondo) (?:passo|passaggio)|risultato (?:intermedio|parziale|provvisorio)|"
    r"(?:eerste|tweede|volgende) stap|tussen(?:resultaat|antwoord|stap)|(?:första|andra|nästa) steget|"
    r"mellan(?:resultat|"
    r"steg)\w*|(?:pierwszy|drugi|pierwszym) krok\w*|wynik (?:pośredni|częściowy)|(?:první|prvním|druhý) krok\w*|mezi"
    r"výsledek|(?:первый|первом|второй) шаг\w*|промежуточн\w+|ilk adım\w*|ara sonuç\w*|bước (?:đầu|một|1)|"
    r"kết quả trung "
    r"gian|langkah pertama|hasil (?:antara|sementara))\b|首先|起初|一开始|最初|第一步|先得|初步|中间|中間|初め|"
    r"はじめ|まず|途中|次に|"
    r"먼저|처음|우선|중간|ตอนแรก|ขั้นแรก|เริ่มแรก"
)
_SOMEBODY = Caseless(
    r"\b(?:un|una|une|um|uma|ein|eine|een|en|jeden|pewien|jeden z|один|одна|другой|otro|otra|otros|algunos|algunas|"
    r"un autre|"
    r"d'autres|certains|ein anderer|einige|manche|altri|alcuni|outros|alguns|sommige|andere|några|andra|niektórzy|"
    r"některí|"
    r"некоторые|другие|bir|seorang|một) (?:\w+ )?(?:estudiantes?|alumn[oa]s?|compañer[oa]s?|amig[oa]s?|élèves?|"
    r"étudiante?s?|"
    r"camarades?|amie?s?|schüler(?:in|innen)?|student(?:in|en|innen|s|e|i|ka|er|ler)?|freunde?s?|kollegen?|alun[oa]s?|"
    r"colegas?|leerlingen?|vriend(?:en|in)?|elev(?:er)?|vän|uczeń|uczniów|kolega|žák|kamarád|ученик\w*|студент\w*|"
    r"друг|"
    r"öğrenci|arkadaş\w*|siswa|teman|học sinh|bạn)\b"
)
_PART = Caseless(
    r"\b(?:hälfte|doppelte|dreifache|viertel|drittel|kehrwert|gegenteil|moitié|double|triple|tiers|quart|inverse|"
    r"opposé|"
    r"carré|mitad|doble|tercio|cuarto|inverso|opuesto|cuadrado|metade|dobro|terço|oposto|quadrado|metà|doppio|triplo|"
    r"terzo|quadrato|opposto|helft|dubbele|drievoud|kwart|kwadraat|hälften|dubbla|tredjedel|fjärdedel|halvdelen|"
    r"połowa|"
    r"podwojon\w+|dwukrotność|kwadrat|polovina|dvojnásobek|třetina|половина|половине|удвоенн\w+|квадрат|yarısı|"
    r"iki katı|"
    r"karesi|nửa|gấp đôi|setengah|dua kali|separuh) (?:(?:de|of) (?:la|le|l')?|del?|della|da|do|dell['’]|der|des|"
    r"von|van|"
    r"av|af|z|dari|của)? ?(?:la |le |l['’]|el |a |o |het |de |die |der |des |meiner |unserer )?(?:antwort|"
    r"ergebniss?\w*|lösung|"
    r"réponse|résultat|solution|respuesta|resultado|solución|resposta|solução|risposta|risultato|soluzione|antwoord|"
    r"resultaat|uitkomst|oplossing|svar\w*|resultat\w*|odpowied\w+|wynik\w*|odpověd\w+|výsledk\w*|ответ\w*|"
    r"результат\w*|câu trả lời|đáp án|kết quả|jawaban\w*|hasil\w*)|(?:cevabın|sonucun|yanıtın) (?:yarısı|iki katı|"
    r"üç katı|karesi)|"
    r"(?:答案|结果|答え|結果|답|정답)(?:的|の|의) ?(?:一半|两倍|兩倍|三倍|平方|半分|[2-9二三]倍|二乗|절반|두 배|"
    r"세 배|제곱|반)|"
    r"(?:의 ?(?:두|세|네) ?배|の(?:[2-9二三]倍|半分)|的(?:[2-9二两三]倍|一半)|(?:보다|より)(?=\s?(?:크|큽|큰|작|많|"
    r"적|大|小|多|少|高|低)))"
)
_INEXACT = re.compile(r"≈|\\approx|[0-9][.,][0-9]{2}")
MAX_CLAUSE = 200


def elsewise(statement: str, behind: str, question: str, reference: str, framed: bool) -> str | None:
    """Return the words of another language that make the value of a sentence no answer, ``None`` if there are none.

    Args:
        statement: the sentence up to its value.
        behind: the rest of it.
        question: its words are known.
        reference: so are those of the answer.
        framed: whether the value is marked, so that the words around it are all there are.
    """
    around = f"{statement}{behind}"
    if not any(map(str.isalpha, prose(around))):
        return None
    if not abroad(around[-400:]) and not (foreign(around[-400:]) and abroad(question)):
        return None
    sentences = [piece for piece in _ENDS.split(_VALUE.sub(" # ", around)) if piece.strip(" .\n*$")]
    if not sentences:
        return None
    text = sentences[-1]
    known = f"{question} {reference}".casefold()
    for pattern in (_LEAST, _HEDGED, _FIRST, _SOMEBODY, _PART):
        if (found := pattern.search(text)) is not None and found.group().casefold() not in known:
            if _concluded(text[found.end() :]):
                continue
            if pattern is _HEDGED and _INEXACT.search(f"{text} {reference}") and not _DOUBTS.search(found.group()):
                continue
            return found.group()
    found = _THAN.search(text)
    if (
        found is not None
        and "#" not in text[found.end() + 1 :]
        and found.group().casefold().strip() not in known
        and not _SIGNED.search(reference)
    ):
        return found.group()
    if _ASKS.search(text) is not None or around.rstrip(" .。*$)")[-1:] in ("?", "？", "؟"):
        return "?"
    if unspaced.LETTER.search(text):
        return _unknown_pieces(text, known)
    return _unknown(text, known) if framed else None


_ASKS = re.compile(r"吗|吧(?!\w)")


_SUMS = re.compile(
    r"(?:#\s*(?:加上?|减去?|減|乘以?|除以|たす|ひく|かける|わる|足す|引く|더하기|빼기|곱하기|나누기|[와과])\s*)+(?=#)"
)

_COUNTED = re.compile(
    r"#\s*(?:[个個颗棵只条張张本支块]?(?:(?![不没未非上下左右多少大小倍半约近错误对加减乘除再就都而但约])[\u4e00-\u9fff]){1,3}|"
    r""
    r"(?:(?!배|쯤|보다|정도|이상|이하|미만|초과|아니|않|절반|더하|빼)[\uac00-\ud7af]){1,2}(?=\s*(?:입니다|이다|"
    r"$)))(?=\s*[^\s\u4e00-\u9fff]|\s*$)"
)
"""What is counted, where the question does not name it."""


def _unknown_pieces(text: str, known: str) -> str | None:
    """The clause that holds the last value and those behind it, unless they are known."""
    clauses = _CLAUSES.split(text.replace("**", "").rstrip(" .。!！"))
    last = max((place for place, clause in enumerate(clauses) if "#" in clause), default=0)
    rest = _SUMS.sub("# ", " ".join(clauses[last:]))
    if unspaced.known_pieces(rest, known) or unspaced.known_pieces(_COUNTED.sub("#", rest), known):
        return None
    return rest.strip()


_VALUE = re.compile(
    r"\$*\\(?:boxed|fbox)\s?\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}\$*|\\boxed\s?\{.*|<answer>.*|"
    r"\$[^$\n]{1,200}\$|\\\(.{1,200}?\\\)|\*\*[^*\n]{1,100}\*\*(?<=[0-9)}\]$%π°]\*\*)|"
    r"\\?[(\[{][^\W_]?[-−0-9][^()\[\]{}]{0,40}\\?[)\]}]|"
    r"[-−+]?[$€£¥]?\s?[0-9](?:[0-9.,:/^πi]*[0-9πi])?(?:[a-z](?=[-+\s*^]|"
    r"$)(?:\^?[0-9])?)?(?:\s?[-+*/=^]\s?[0-9a-z]+(?![^\W_]))*"
)
_SIGNED = re.compile(r"[<>≤≥]|\\(?:[lg]eq?|[lg]t)(?![a-z])|∞|\\infty")
_DOUBTS = re.compile(
    r"wahrsch|vermut|schein|prob|segur|supuest|aparent|prova|appar|sans doute|waarsch|vermoed|schijn|trolig|förmod|"
    r"sanno|antag|"
    r"sands|sanns|prawdo|zapewne|pravd|je asi|вероят|навер|видимо|кажется|скорее|muhte|galiba|herhalde|sanı|có |"
    r"hình|mungkin|barang|"
    r"ίσως|πιθαν|ربما|غالبا|शायद|संभव|可能|也|应该|應該|估计|好像|似乎|不确定|不確定|不知道|不清楚|没把握|猜|自信|"
    r"わから|分から|知りま|모르|자신|확실|おそらく|たぶん|多分|かな|かも|はず|思|でしょ|だろ|みたい|らしい|아마|것|"
    r"듯|걸|อาจ|น่า",
    re.IGNORECASE,
)


def _concluded(rest: str) -> bool:
    """Say whether a later clause concludes: ``Zuerst 3 + 4 = 7, also``"""
    return (
        any(concludes(word) for word in re.findall(r"[^\W\d_]+", rest))
        or re.search(r"所以|因此|故|よって|따라서|므로", rest) is not None
    )


_REMINDS = re.compile(
    r"لا تنس\w*|n['’]oublions pas|no olvidemos|nicht zu vergessen|non dimentichiamo|unutmayalım", re.IGNORECASE
)


def _unknown(text: str, known: str) -> str | None:
    """The first unknown word of the clauses around a marked value."""
    before, found, after = text.rpartition("#")
    if not found:
        return None
    clauses = _CLAUSES.split(_REMINDS.sub(" ", before).rstrip(" :"))
    for word in words_around(clauses[-1][-MAX_CLAUSE:], after[:MAX_CLAUSE]):
        if not (known_words(word, known) or explaining(word) or word.lower() in plain_words()):
            return word
    return None
