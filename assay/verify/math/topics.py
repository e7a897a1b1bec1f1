"""Sentences that speak of a value without saying that it is the answer: ``322 is a trap``, ``322 は罠``."""

from __future__ import annotations

import re

MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0970-\u09e3\u0a00-\u0dff"
_WORD = re.compile(rf"(?<!\\)[^\W\d_](?:[^\W\d_]|[{MARKS}]|(?<=[^\W\d_])['’](?=[^\W\d_]{{2}}))*")
_LETTERS = re.compile(rf"(?:[^\W\d_]|[{MARKS}])+")
_SAYS_OF = re.compile(
    r"[\s$)*\]}%°]*(?:[^\W\d_/]{1,9}(?:/[^\W\d_]{1,4})?\s){0,2}(?:is|was|are|were|to|on|it|be|too)\b", re.IGNORECASE
)
_SAYS = re.compile(r"[0-9)}\]$](?:" + _SAYS_OF.pattern + ")", re.IGNORECASE)
_TOPIC = re.compile(
    r"[\s$)*\]}%°'\"」』〕]*(?:[^\W\d_/]{0,4}?/?[^\W\d_]{0,3}?\s?)(?:は|って|とは|という|と(?!なる|なり|なっ)|を|"
    r"も|が|では|だと|なら|だったら|だとしたら|とすれば|に(?!な)|로|으로|"
    r"이?라(?!고\s?답)|은|는|이(?!다|에요|예요|므로|고)|가|을|를|도|면|是|乃|属|算|这|那)(?P<rest>.*)",
    re.DOTALL,
)
"""A particle that makes the value what is spoken of, in Japanese and Korean."""
_THAI = re.compile(r"[\u0e00-\u0e7f]")
_THAI_PLAIN = re.compile(
    "คำตอบ|ผลลัพธ์|ผลรวม|ค่าของ|ค่า|คือ|เป็น(?=\\s?$)|เท่ากับ|ทั้งหมด|รวม|มี|อยู่|ดังนั้น|เพราะฉะนั้น|จึง|ได้|สุดท้าย|ของ|จำนวน|ที่|ถูกต้อง|ครับ|ค่ะ|นะ|"
    "บาท|ชั่วโมง|นาที|วินาที|เมตร|กิโลเมตร|เซนติเมตร|กิโลกรัม|กรัม|ลิตร|องศา|วัน|ปี|คน|อัน|แท่ง|ด้าม|เล่ม|ลูก|ใบ|กล่อง|ด้าน|หน้า|ตัว|ชิ้น|ดอลลาร์|เปอร์เซ็นต์|[a-zA-Z]"
)
_SETTLED = re.compile(
    r"\s?(?:(?:所求|正确|正確|最后|最終|最终|我们|本题|这道?题|该|问题|题目?)?的?(?:答|结果|結果|值)|正确|正確|"
    r"这个数|答|正解|正答|解|結論|最終|最後|求め|存在|あ[るりっ]|い[るま]|入|残|必要|かか|得|になる|終わ(?:る|"
    r"り?ます(?!せん))|着|到着|"
    r"정답|답|결과|해|있|남|필요|됩|된|되|끝|도착|걸|나옵|나온|구하|입니다)"
)


def begins(before: str, behind: str) -> bool:
    """Say whether a value begins its sentence, which goes on to say what it is: ``322 is a trap``."""
    return not _WORD.search(before) and _SAYS_OF.match(behind) is not None


def may_begin(text: str) -> bool:
    """Say whether a sentence of ``text`` can go on after a value to say what it is."""
    return _SAYS.search(text) is not None


def spoken_of(before: str, value: str, behind: str) -> bool:
    """``322 は罠``: the value is what is spoken of, and what is said of it is not that it is the answer."""
    if _THAI.search(before) or _THAI.search(behind):
        return _LETTERS.search(_THAI_PLAIN.sub("", f"{before} {behind}")) is not None
    topic = _TOPIC.match(behind) if value else None
    return topic is not None and topic["rest"].strip(" .。") != "" and _SETTLED.match(topic["rest"]) is None
