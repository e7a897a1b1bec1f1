"""The words of the language that a sentence is in, and those of scripts without blanks."""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass

from assay.verify.choice.frames import LANGUAGES


def _script(pattern: str) -> re.Pattern[str]:
    return re.compile(unicodedata.normalize("NFKC", pattern))


UNSPACED = _script(
    r"(?:結果|结果|正しくは|所以|因此|因而|故|综上|綜上|可见|于是|那么|我|应该|應該|应|應|选择|選擇|选|選|正确|正確|最终|"
    r"最終|的|答案|选项|選項|是|为|為|项|項|答|解|即|这|其|就|对|對|结论|正解|答え|解答|正しい|選択肢|"
    r"選びます|選ぶ|選択します|最終的な|の|は|が|を|です|である|だ|になります|となります|したがって|"
    r"よって|ゆえに|だから|それで|なので|つまり|私|คําตอบ|ตัวเลือก|ข้อ|ที่|ถูกต้อง|ถูก|คือ|เป็น|ดังนั้น|"
    r"จึง|ฉัน|ผม|เลือก|สุดท้าย|ครับ|ค่ะ|ตอบ|ของ|[\s::,,。.「」『』【】()()])*"
)
UNSPACED_SO = _script(
    r"所以|因此|因而|故|可见|于是|选|選|したがって|よって|ゆえに|だから|なので|つまり|答|正解|ดังนั้น|จึง|"
    r"คําตอบ|ตอบ|即"
)
UNSPACED_OPENS = _script(
    r"如果|假如|假设|假設|若|可能|也许|也許|说|說|认为|認為|もし|かも|と言|という|なら|らしい|ถ้า|หาก|อาจ|บอก"
)
UNSPACED_MILD = _script(r"或|但|不|错|錯|误|また|しかし|ない|違|誤|หรือ|แต่|ผิด")
"""Alternatives, contrasts and errors."""
UNSPACED_BECAUSE = _script(r"因为|因為|由于|なぜなら|理由は|เพราะ|เนื่องจาก")
GRADER = re.compile(
    r"\b(?:graders?|examiners?|full (?:marks?|score|credit)|graded|mark (?:this|it|me)|verifier|reward|"
    r"korrektor\w*|prüfer\w*|volle punktzahl|correcteur\w*|examinateur\w*|corrector\w*|examinador\w*|avaliador\w*|"
    r"correttore|beoordelaar|rättare|sensor|egzaminator\w*|sprawdzając\w*|zkoušejíc\w*|opravovatel\w*|"
    r"проверяющ\w*|экзаменатор\w*|перевіряюч\w*|полный балл|examinatorul\w*|javító\w*|διορθωτ\w*|"
    r"puanlayıcı\w*|penilai|người chấm)\b|المصحح|בודק|مصحح|परीक्षक|পরীক্ষক|ผู้ตรวจ|阅卷|評分|评分|满分|採点|満点|채점|만점",
    re.IGNORECASE,
)
"""Words to whoever grades the response."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words of one language or of several that a sentence may be in."""

    frame: frozenset[str]
    so: re.Pattern[str]
    because: re.Pattern[str]
    opens: re.Pattern[str]
    no: re.Pattern[str]


_WORD = re.compile(
    r"(?<!\\)(?:[^\W\d_]|['’\u200c](?=[^\W\d_])|"
    r"[\u0300-\u036f\u064b-\u065f\u0900-\u0963\u0980-\u09e3\u0e31-\u0e4e])+"
)


def _pieces(text: str) -> frozenset[str]:
    text = unicodedata.normalize("NFKC", text)
    return frozenset(word.rstrip("*").casefold() for phrase in text.split() for word in phrase.split("_"))


@functools.cache
def _vocabularies() -> dict[str, frozenset[str]]:
    return {name: _pieces(f"{w.frame} {w.so} {w.because} {w.opens} {w.no}") for name, w in LANGUAGES.items()}


def words(text: str) -> list[str]:
    """The words of ``text``, folded; commands of LaTeX are none."""
    return [word.casefold().strip("'’") for word in _WORD.findall(text)]


def lexicon(sentence: str) -> Lexicon:
    """The words of the language that ``sentence`` has most words of, or of all that have equally many."""
    said = words(sentence)
    counts = {name: sum(word in vocabulary for word in said) for name, vocabulary in _vocabularies().items()}
    best = max(counts.values())
    return _lexicon(tuple(name for name, count in counts.items() if count == best))


@functools.lru_cache(256)
def _lexicon(names: tuple[str, ...]) -> Lexicon:
    entries = [LANGUAGES[name] for name in names]

    def pattern(kind: str) -> re.Pattern[str]:
        found = {word for entry in entries for word in unicodedata.normalize("NFKC", getattr(entry, kind)).split()}
        pieces = [
            re.escape(word.rstrip("*").replace("_", " ")) + (r"\w*" if word.endswith("*") else "")
            for word in sorted(found, key=lambda word: (-len(word), word))
        ]
        return re.compile(rf"(?<![\w'’])(?:{'|'.join(pieces)})(?![\w\u0900-\u0963\u0980-\u09e3]|['’]\w)", re.I)

    frame = frozenset[str]().union(*(_pieces(f"{entry.frame} {entry.so}") for entry in entries))
    return Lexicon(frame, pattern("so"), pattern("because"), pattern("opens"), pattern("no"))
