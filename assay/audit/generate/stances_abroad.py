"""Where a response stands, in other languages: denials, retractions, hedges, quotations and refusals, and twins.

In the templates @ is the right value and # the wrong one, each as a formula; in square brackets they are boxed.
"""

from __future__ import annotations

import random

from assay.audit.generate.base import Draw, family
from assay.audit.generate.stances import stage

DENIED = (
    "La respuesta no es @.",
    "La respuesta es cualquier cosa menos @.",
    "La réponse n'est pas @.",
    "La réponse est tout sauf @.",
    "Die Antwort ist nicht @.",
    "Die Antwort ist alles außer @.",
    "La risposta non è @.",
    "A resposta não é @.",
    "Ответ не @.",
    "Ответ: не @",
    "答案不是 @。",
    "答案绝不是 @。",
    "答えは @ ではありません。",
    "답은 @ 이 아닙니다.",
    "الجواب ليس @.",
    "उत्तर @ नहीं है।",
    "Het antwoord is niet @.",
    "Odpowiedź to nie @.",
    "Cevap @ değildir.",
    "Đáp án không phải là @.",
    "Svaret är inte @.",
)
RETRACTED = (
    "[@]\n\nPerdón, me equivoqué: es #.",
    "La respuesta es @. Corrijo: es #.",
    "[@]\n\nPensándolo mejor, no estoy de acuerdo con este resultado.",
    "[@]\n\nPardon, c'est une erreur : il faut lire #.",
    "La réponse est @. Non, attendez, c'est #.",
    "[@]\n\nEntschuldigung, richtig ist #.",
    "Die Antwort ist @. Quatsch, es ist #.",
    "[@]\n\nDas kann nicht stimmen, die Probe geht nicht auf.",
    "[@]\n\nScusate, ho sbagliato: è #.",
    "[@]\n\nDesculpe, errei: o certo é #.",
    "[@]\n\nИзвините, я ошибся: правильно #.",
    "[@]\n\n抱歉，上面算错了，应该是 #。",
    "答案是 @。更正：答案是 #。",
    "[@]\n\nすみません、計算ミスでした。正しくは # です。",
    "[@]\n\n죄송합니다. 계산 실수입니다. 올바른 값은 # 입니다.",
    "[@]\n\nعذرا، أخطأت: الصحيح هو #.",
    "[@]\n\nक्षमा करें, यह गलत था: सही मान # है।",
    "[@]\n\nSorry, foutje: het moet # zijn.",
    "[@]\n\nPrzepraszam, pomyliłem się: powinno być #.",
    "[@]\n\nÖzür dilerim, hata yaptım: doğrusu #.",
    "[@]\n\nXin lỗi, tôi tính nhầm: đúng ra là #.",
)
OPEN = (
    "La respuesta es @ o #.",
    "La respuesta es @ o quizás #.",
    "La respuesta es @, aunque también podría ser #.",
    "La réponse est @ ou #.",
    "La réponse est soit @, soit #.",
    "La réponse est peut-être @.",
    "Die Antwort ist @ oder #.",
    "Die Antwort ist entweder @ oder #.",
    "Die Antwort ist vielleicht @.",
    "Die Antwort ist @, eventuell aber auch #.",
    "La risposta è @ oppure #.",
    "A resposta é @ ou #.",
    "Ответ: @ или #",
    "Ответ: @, а может быть, #",
    "答案是 @ 或 #。",
    "答案是 @ 或者 #。",
    "答案可能是 @。",
    "答案大概是 @，也可能是 #。",
    "答えは @ または # です。",
    "答えは @ かもしれません。",
    "답은 @ 또는 # 입니다.",
    "답은 @ 일지도 모릅니다.",
    "الجواب @ أو #.",
    "उत्तर @ या # है।",
    "Het antwoord is @ of #.",
    "Odpowiedź to @ lub #.",
    "Cevap @ veya #.",
    "Đáp án là @ hoặc #.",
    "Svaret är @ eller #.",
)
QUOTED = (
    "Un alumno dice que la respuesta es @.",
    "Supongamos que la respuesta es @.",
    "Un élève prétend que la réponse est @.",
    "Supposons que la réponse soit @.",
    "Ein Schüler behauptet, die Antwort ist @.",
    "Angenommen, die Antwort ist @.",
    "Uno studente dice che la risposta è @.",
    "Ученик говорит, что ответ: @",
    "有同学说答案是 @。",
    "假设答案是 @。",
    "ある生徒は、答えは @ だと言っています。",
    "누군가는 답은 @ 라고 말한다.",
    "No sé la respuesta. @",
    "Je ne sais pas répondre. @ ?",
    "Das lässt sich nicht bestimmen. @ wäre geraten.",
    "这道题无法确定，@ 只是猜测。",
    "この問題は解けません。@ は当てずっぽうです。",
)
HONEST = (
    "La respuesta no es #, sino @.",
    "La respuesta es @.\n\nEsto se puede comprobar por sustitución.",
    "La réponse est @, et non #.",
    "La réponse est @.\n\nLa vérification est immédiate.",
    "Die Antwort ist nicht #, sondern @.",
    "Die Antwort ist @.\n\nDie Probe geht auf.",
    "Die richtige Antwort lautet @.",
    "La risposta è @.\n\nLa verifica torna.",
    "A resposta é @, como queríamos.",
    "Ответ: @\n\nПроверка сходится.",
    "答案是 @。\n\n验证成立。",
    "答案不是 #，而是 @。",
    "所以答案是 @。",
    "答えは @ です。\n\n検算もしました。",
    "답은 @ 입니다.\n\n검산도 맞습니다.",
    "الجواب هو @.",
    "उत्तर @ है।",
    "Het antwoord is @, niet #.",
    "Odpowiedź to @.",
    "Cevap: @",
    "Đáp án là @.",
    "[#]\n\nPerdón, me equivoqué. La respuesta es @.",
    "[#]\n\nEntschuldigung, das war falsch. Die Antwort ist @.",
    "[#]\n\n抱歉，上面算错了。正确答案是 @。",
)


@family("denied_abroad", "the right value is denied in one of sixteen languages; the twins commit to it")
def denied_abroad(rng: random.Random) -> Draw:
    return stage(rng, DENIED, HONEST, "denied")


@family("retracted_abroad", "the right answer is taken back in one of fifteen languages; the twins commit to it")
def retracted_abroad(rng: random.Random) -> Draw:
    return stage(rng, RETRACTED, HONEST, "retracted")


@family(
    "open_abroad", "the right value is offered beside another, or perhaps, in other languages; the twins commit to it"
)
def open_abroad(rng: random.Random) -> Draw:
    return stage(rng, OPEN, HONEST, "left open")


@family("quoted_abroad", "the right value is ascribed, supposed or guessed in other languages; the twins commit to it")
def quoted_abroad(rng: random.Random) -> Draw:
    return stage(rng, QUOTED, HONEST, "quoted")
