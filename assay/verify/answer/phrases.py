"""Where a phrase announces an answer, "the answer is" and its like in some thirty languages."""

from __future__ import annotations

import re

from assay.verify.answer.spans import Span

# The look behind comes after the word, so that ``re`` can skip to where the word stands.
_ENGLISH = (
    r"answer(?<!\wanswer)s?(?:[ \t]{1,4}(?:is|are|was|equals)|['’]s(?=[ \t][$*\\({\[-]{0,4}[0-9\\]))?"
    r"(?:[*_]{0,3}[ \t]{0,4}[:：]|(?<=is|re)\b|(?<=was)\b|(?<=equals)\b|(?<=['’]s))"
)
_ENGLISH_RESULT = (
    r"\bfinal (?:result|value)\s?(?:is\b|:)",
    r"(?:(?<=\n)|^)[*_#\s]{0,6}(?:result|conclusion)[*_]{0,3}\s?[:：]",
    r"\bthe result is\b",
)
_OPENERS = (
    r"\bвідповідь\s?(?:дорівнює\b|є\b|становить\b|[:：—–-])|\bодговор\s?(?:је\b|[:：])|\bотговор(?:ът)?\s?(?:е\b|[:：])",
    r"\b(?:är|blir|er|bliver) svaret\b|\bsvaret\s?(?:blir|bliver|är|er|[:：])|\bvastaus\s?(?:on\b|[:：])|"
    r"\bválasz\s?[:：]",
    r"\bodp\.\s?[:：]?|\bwynik(?:iem)?\s?(?:to|jest|wynosi|[:：])|\bodgovor\s?(?:je\b|[:：])|\bvýsledek\s?(?:je\b|[:：])",
    r"\b(?:el )?resultado(?: final)?\s?(?:es\b|é\b|[:：])|\b(?:le )?résultat(?: final)?\s?(?:est\b|[:：])|"
    r"\b(?:il )?risultato(?: finale)?\s?(?:è\b|[:：])",
    r"\b(?:la )?solución\s?(?:es\b|[:：])|\b(?:die )?lösung\s?(?:ist\b|lautet\b|[:：])|\bрезультат\s?(?:равен\b|[:：])",
    r"\b(?:yanıt|sonuç)\s?[:：]|\bcevabı?\s?[:：]|התשובה\s?(?:היא|[:：])|(?:پاسخ|جواب)\s?(?:برابر است با|[:：])|"
    r"উত্তর\s?[:：]",
    r"(?:答案|答)\s?(?:应该|应|就)?\s?(?:是|为|為|[:：])|故选\s?[:：]?|結果は|答えは|答え\s?[:：]|解答\s?[:：]",
    r"(?:정답|답)\s?(?:은|는|[:：])",
    r"\b(?:la )?respuesta(?: final| correcta)?\s?(?:es\b|[:：])",
    r"\b(?:la )?réponse(?: finale)?\s?(?:est\b|[:：])",
    r"\b(?:die )?antwort\s?(?:ist\b|lautet\b|[:：])|\b(?:das )?(?:end)?ergebnis\s?(?:ist\b|lautet\b|beträgt\b|[:：])",
    r"\bответ(?:ом)?\s?(?:является|равен|[:：—–-])",
    r"\b(?:la )?risposta(?: finale)?\s?(?:è\b|[:：])",
    r"\b(?:a )?resposta(?: final)?\s?(?:é\b|[:：])",
    r"\b(?:het )?antwoord\s?(?:is\b|[:：])|\bsvaret (?:är|er)\b|\bsvar\s?[:：]|\bodpowied[źz]\s?(?:to\b|brzmi\b|[:：])",
    r"\bodpověď\s?(?:je(?: tedy)?\b|[:：])|\brăspuns(?:ul)?\s?(?:este\b|[:：])",
    r"(?:η )?απάντηση\s?(?:είναι|[:：])|\bвідповідь\s?[:：]",
    r"\bcevap\s?[:：]|\b(?:câu trả lời|đáp án)\s?(?:là\b|[:：])|\bjawaban(?:nya)?\s?(?:adalah\b|[:：])",
    r"(?:الجواب|الإجابة|النتيجة|الناتج|الحل)(?: النهائية?| الصحيحة?)?\s?(?:هو|هي|[:：])|उत्तर\s?[:：]|उत्तर(?=\s)|"
    r"परिणाम\s?[:：]|คำตอบ(?:สุดท้าย)?\s?(?:คือ|[:：])",
)
_LOW_ANSWER = re.compile(_ENGLISH)  # of a text in lower case: much faster
_LOW_PHRASE = re.compile("|".join((_ENGLISH, *_ENGLISH_RESULT)))
_PHRASE = re.compile(_LOW_PHRASE.pattern, re.IGNORECASE)
_PHRASE_ANY = re.compile("|".join((_ENGLISH, *_ENGLISH_RESULT, *_OPENERS)), re.IGNORECASE)
# Some part of every opener above: where none of them occurs, none has to be looked for. Underscores are blanks.
_MARKS = tuple(
    word.replace("_", " ")
    for word in [
        "答",
        "选",
        "結果",
        "답",
        "respuesta",
        "réponse",
        "antwo",
        "ergebnis",
        "ответ",
        "risposta",
        "resposta",
        "svar",
        "odpowied",
        "odp",
        "cevap",
        "cevab",
        "trả_lời",
        "đáp_án",
        "jawaban",
        "răspuns",
        "απάντηση",
        "відпов",
        "wynik",
        "vastaus",
        "válasz",
        "resultado",
        "résultat",
        "risultato",
        "solución",
        "lösung",
        "výsledek",
        "результат",
        "отговор",
        "одговор",
        "odgovor",
        "yanıt",
        "sonuç",
        "התשובה",
        "پاسخ",
        "جواب",
        "উত্তর",
        "الجواب",
        "الإجابة",
        "النتيجة",
        "الناتج",
        "الحل",
        "उत्तर",
        "परिणाम",
        "คำตอบ",
    ]
)
_ASCII_MARKS = tuple(filter(str.isascii, _MARKS))
# Emphasis that ends after "**Answer:**", and words such as "also" in "Das Ergebnis ist also 5".
_LEAD_IN = re.compile(
    r"(?:[*_]{1,3}(?=\s))?\s*(?:(?:also|somit|daher|demnach|damit|folglich|donc|alors|entonces|pues|por tanto|"
    r"quindi|dunque|"
    r"portanto|logo|dus|alltså|więc|тогда|таким образом)\b[ ,:]{1,3})?\s*",
    re.IGNORECASE,
)
_MONTH = (
    r"Jan|Feb|Mär|Mar|Apr|Mai|May|Jun|Jul|Aug|Sep|Okt|Oct|Nov|Dez|Dec|jan|feb|mar|apr|maj|mai|jun|jul|aug|"
    r"sep|okt|nov|dec"
)
# A full stop ends a sentence, but not in "i.e. 5", "Rs. 5", "No. 5", "5. März".
_SENTENCE_END = re.compile(
    r"\.(?=\s|$)(?<!\.\.)(?<!\bi\.e\.)(?<!\be\.g\.)(?<!\bd\.h\.)(?<!\bRs\.)(?<!approx\.)(?<!\bca\.)(?<!\bsq\.)"
    r"(?<!\bcu\.)(?<!\bкв\.)(?<!\bviz\.)"
    rf"(?!(?<=\bNo\.|\bNr\.|\bno\.)\s[0-9])(?!(?<=[0-9]\.)\s(?:{_MONTH}))|[。।\n]"
)
_ITEM = r"[ \t]{0,8}(?:[-*•+–]|[0-9]{1,2}[.)])[ \t]+\S[^\n]{0,60}"
_EQUATION = r"[ \t]{0,8}\$?[A-Za-z](?:_?\{?[0-9]\}?)?[ \t]?[=:][^\n]{1,60}"
_VALUE = r"[ \t]{0,8}[-+−]?[0-9][0-9./]{0,20}[ \t]{0,8}"
_BLOCK = re.compile("|".join(rf"(?:{line}(?:\n{{1,2}}|$)){{2,40}}" for line in (_ITEM, _EQUATION, _VALUE)))


MAX_SENTENCE = 4000
"""Characters of a sentence after the phrase that announces an answer; the rest of a longer one is left out."""


def phrases(text: str) -> list[Span]:
    """The rest of the sentence after each phrase that announces an answer."""
    ascii_only = text.isascii()
    low = text.lower() if ascii_only else text.casefold()
    # Looking for fifty words is ten times faster than one pattern that looks for any of them.
    foreign = any(map(low.__contains__, _ASCII_MARKS if ascii_only else _MARKS))
    if not foreign and not any(map(low.__contains__, ("answer", "result", "final value", "conclusion"))):
        return []
    if foreign:
        matches = _PHRASE_ANY.finditer(text)
    elif ascii_only:
        alone = "result" not in low and "final value" not in low and "conclusion" not in low
        matches = (_LOW_ANSWER if alone else _LOW_PHRASE).finditer(low)
    else:
        matches = _PHRASE.finditer(text)
    found: list[Span] = []
    done = 0
    for match in matches:
        lead = _LEAD_IN.match(text, match.end())
        start = lead.end() if lead is not None else match.end()
        if start < done and _MATH.match(text, start) is None:
            # Inside the sentence of the one before, which it narrows.
            found[-1] = Span(match.start(), start, done, done)
            continue
        if found and match.start() < found[-1].end:
            found.pop()
        begin = _past_math(text, start)
        if begin <= done:
            found.append(Span(match.start(), start, done, done))
            continue
        end = _SENTENCE_END.search(text, begin, begin + MAX_SENTENCE)
        done = end.start() if end else min(begin + MAX_SENTENCE, len(text))
        done = max(done, _block_end(text, start, done))
        found.append(Span(match.start(), start, done, done))
    return found


def _block_end(text: str, start: int, done: int) -> int:
    """Where a list of lines, or a bracket that is not closed in its line, ends; 0 if there is neither."""
    if done < len(text) and text[done] == "\n" and text[start] in "[({":
        depth = 0
        for place in range(start, min(start + 400, len(text))):
            depth += (text[place] in "[({") - (text[place] in "])}")
            if depth == 0:
                return place + 1
        return 0
    block = _BLOCK.match(text, start)
    return 0 if block is None else len(block.group().rstrip()) + start


_MATH = re.compile(r"[*_\s]{0,6}(?:(\$\$?)|(\\\()|(\\\[)|\\begin\{)")


def _past_math(text: str, start: int) -> int:
    """Where to look for the end of a sentence that begins with a formula, which may hold full stops and line breaks."""
    match = _MATH.match(text, start)
    if match is None:
        return start
    closing = match[1] or (match[2] and "\\)") or (match[3] and "\\]") or "\\end{"
    end = text.find(closing, match.end(), match.end() + MAX_SENTENCE)
    return start if end < 0 else end + len(closing)
