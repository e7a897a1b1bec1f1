"""Options spoken of rather than named: by position, by a verdict on each, by surname, in scripts without blanks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.verify.math.number_words import number_words
from assay.verify.text.compare import normalise

_RANKS = (
    "first 1st primera primero première premier erste erstes erster prima primo primeira первый первая 第一个 1番目",
    "second 2nd segunda segundo deuxième seconde zweite zweites zweiter seconda secondo второй вторая 第二个 2番目",
    "third 3rd tercera tercero troisième dritte drittes dritter terza terzo terceira третий третья 第三个 3番目",
    "fourth 4th cuarta cuarto quatrième vierte viertes vierter quarta quarto четвёртый четвертый 第四个 4番目",
    "fifth 5th quinta quinto cinquième fünfte fünftes fünfter пятый пятая 第五个 5番目",
    "sixth 6th",
)
_RANK = {word: place for place, words in enumerate(_RANKS) for word in words.split()}
_POSITION = re.compile(
    r"(?:(?:it|this|that)(?:'s| is) )?(?:the |la |le |el |il |der |die |das |a |o )?(?:(?:option|choice|answer|opción"
    r"|réponse|antwort) )?"
    r"(?P<rank>[^\W_]{3,12}|[1-6](?:st|nd|rd|th)|第[一二三四五][个個]|[1-6]番目)"
    r"(?: (?:option|choice|answer|one|statement|opción|réponse|antwort|opzione|вариант|ответ))?",
    re.IGNORECASE,
)


def position(text: str, options: Mapping[str, str]) -> str | None:
    """Return the label of ``the second option``."""
    match = _POSITION.fullmatch(text.strip(" .!。"))
    place = None if match is None else _RANK.get(match["rank"].casefold())
    labels = list(options)
    return labels[place] if place is not None and place < len(labels) and any(options.values()) else None


_YES = r"✓|✔|✅|☑|\b(?:yes|right|correct|true|richtig|correcto|verdadero|vrai)\b"
_NO = r"✗|✘|❌|✕|\b(?:no|wrong|incorrect|false|falsch|incorrecto|falso|faux)\b"
_JUDGED = re.compile(rf"(?<![\w'’])\(?([A-Z])\)?[ \t]*[?:|=–—-]{{1,3}}[ \t*]*(?:(?P<yes>{_YES})|(?P<no>{_NO}))", re.I)


def judged(response: str, options: Mapping[str, str]) -> str | None:
    """Return the only option called right where each is given a verdict: ``A: wrong``, ``B: right``, ``C: wrong``."""
    found = _JUDGED.findall(response[-2000:])
    verdicts = {label.upper(): bool(yes) for label, yes, _ in found}
    if len(found) != len(verdicts) or len(verdicts) < 2 or not verdicts.keys() <= options.keys():
        return None
    right = [label for label, verdict in verdicts.items() if verdict]
    return right[0] if len(right) == 1 and len(verdicts) >= min(len(options), 3) else None


_UNSPACED = re.compile(
    r"(?:(?:选|選|答案(?:是|为|為)|正确(?:答案|选项)?(?:是|为)|应该是|正解は|答えは|解答は|正しいのは|답은|정답은)\s?[:：]?\s?\(?([A-Z])\)?"
    r"(?:です|である|だ|입니다|이다|项|項)?|\(?([A-Z])\)?(?:です|である|だ|입니다|이다))[。.!\s]*"
)
_COPULA = re.compile(r"(?:です|である|입니다|이다)[。.]?$")


def unspaced(text: str, options: Mapping[str, str]) -> str | None:
    """Return the label of ``选D`` or ``正解はAです。``, or the option that ``富士山です。`` names."""
    match = _UNSPACED.fullmatch(text.strip())
    if match is not None:
        label = match[1] or match[2]
        return label if label in options else None
    bare = normalise(_COPULA.sub("", text.strip()))
    named = [key for key, value in options.items() if value.strip() and normalise(value) == bare]
    return named[0] if len(named) == 1 and not text.isascii() else None


_NAME = re.compile(r"[A-Z][^\W\d_]{3,}")
_INITIALS = re.compile(r"(?:[A-Z]\.|von|van|de|da|di|del|der|la|le)")


def by_name(text: str, options: Mapping[str, str]) -> str | None:
    """Return the option that a number in words, or the surname in which one option ends, stands for."""
    said = text.strip(" .!")
    number = number_words(said) if len(said) <= 60 else None
    if number is not None:
        found = [key for key, value in options.items() if normalise(value) == normalise(str(number))]
        return found[0] if len(found) == 1 else None
    words = said.split()
    if not words or len(words) > 4 or _NAME.fullmatch(words[-1]) is None:
        return None
    found = [key for key, value in options.items() if re.search(rf"(?<!\w){re.escape(words[-1])}(?!\w)", value)]
    if len(found) != 1 or not options[found[0]].endswith(words[-1]) or len(options[found[0]].split()) < 2:
        return None
    own = options[found[0]].split()
    return found[0] if all(word in own or _INITIALS.fullmatch(word) for word in words[:-1]) else None
