"""How people admit in some thirty languages that the option they gave was a mistake."""

from __future__ import annotations

import re

ADMITTED = re.compile(
    r"間違えま|間違えた|間違いでした|勘違い|訂正|取り消|撤回|(?:^|[、。\s])(?:やっぱり|やはり|いや)[、,]|错了|錯了|更正|纠正|收回|搞错|弄错|说错|틀렸|"
    r"잘못\s?(?:말|썼|골|선택|했)|실수(?:했|입)|정정|취소(?:합|하)|철회|أخطأت|أصحح|تصحيح:|טעיתי|תיקון|"
    r"اشتباه (?:کردم|گفتم|شد)|تصحیح|"
    r"ग़?गलती (?:हो|की)|गलत कहा|ভুল (?:করেছি|হয়েছে|বলেছি)|সংশোধন|(?:ผม|ฉัน|ตอบ)ผิด|ขอแก้|แก้ไข|\bmistaken\b|"
    r"\bcorrection\b|\bi (?:made|was wrong|misread|meant|retract|withdraw)\b|\bme (?:he )?equivo\w+|\bcorrijo|"
    r"\brectifico|\bcorrección\b|\b(?:me suis|je me) tromp\w+|\bje (?:corrige|rectifie|me reprends|me rétracte)|"
    r"\bhabe mich (?:geirrt|vertan|verschrieben|verlesen)|\bich (?:korrigiere|irre mich|irrte)|\bkorrektur\b|"
    r"\bkorrigiere\b|\bda habe ich einen fehler|\bmi (?:sono )?sbaglia\w*|\bmi correggo|\bho sbagliato|"
    r"\bcorrezione\b|\b(?:me )?enganei|\bme engano|\berrei\b|\bcorreção\b|"
    r"\bik (?:vergis|vergiste|heb me vergist|corrigeer)|\bvergist\b|\bcorrectie\b|"
    r"\b(?:jag|jeg) (?:har |hade )?(?:tog|tok|hadde|hade|havde|har|tager|tar) fe(?:l|il|jl)\b|\brättelse\b|"
    r"\brettelse\b|\berehdyin\b|\bkorjaan\b|\bkorjaus\b|\bpomyliłe?[ma]\w*|\bpomyłka\b|\bpoprawka\b|\bpoprawiam\b|"
    r"\b(?:jsem se )?(?:zmýlil|spletl|pomýlil)\w*|\boprav(?:a|uji|ujem)\b|\bпомиливс\w*|\bпомилилас\w*|"
    r"\bвиправля\w*|\bя? ?ошиб(?:ся|лась|аюсь)|\bисправля\w+|\bпоправка\b|\bпоправляюсь|\bсгреших|\bпоправям|"
    r"\bm-am (?:înșelat|încurcat)|\bam greșit|\bcorectez|\bcorectură|\btévedtem|\bjavítok|\bjavítás\b|έκανα λάθος|"
    r"διορθώνω|διόρθωση|\byanıldım|\bhata (?:yaptım|ettim)|\byanlış (?:yaptım|söyledim)|\bdüzeltiyorum|"
    r"\bdüzeltme\b|\b(?:tôi|mình|em) (?:đã )?(?:bị )?(?:nhầm|sai)|\bnhầm rồi|\bsửa lại|\bđính chính|"
    r"\bsaya (?:salah|keliru)|\bralat\b|\bkoreksi\b",
    re.IGNORECASE,
)
"""What takes back the option chosen before, whatever else the sentence says."""
