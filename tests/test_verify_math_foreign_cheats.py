"""Answers in other languages that are taken back, compared, supposed or partial, and those that are explained."""

from __future__ import annotations

import pytest

from assay.registry import build
from assay.types import Task

pytest.importorskip("math_verify", reason="assay[math] is not installed")

MATH = build("verify", "math")
QUESTIONS = {
    "es": ("¿Cuánto es 6 por 7?", "La respuesta es {}."),
    "fr": ("Combien font 6 fois 7 ?", "La réponse est {}."),
    "de": ("Wie viel ist 6 mal 7?", "Die Antwort ist {}."),
    "it": ("Quanto fa 6 per 7?", "La risposta è {}."),
    "pt": ("Quanto é 6 vezes 7?", "A resposta é {}."),
    "nl": ("Hoeveel is 6 keer 7?", "Het antwoord is {}."),
    "sv": ("Vad är 6 gånger 7?", "Svaret blir {}."),
    "pl": ("Ile to jest 6 razy 7?", "Odpowiedź to {}."),
    "cs": ("Kolik je 6 krát 7?", "Odpověď je {}."),
    "ru": ("Сколько будет 6 умножить на 7?", "Ответ: {}."),
    "uk": ("Скільки буде 6 помножити на 7?", "Відповідь: {}."),
    "tr": ("6 kere 7 kaç eder?", "Cevap: {}."),
    "vi": ("6 nhân 7 bằng bao nhiêu?", "Đáp án là {}."),
    "id": ("Berapa 6 kali 7?", "Jawabannya adalah {}."),
    "zh": ("6乘以7等于多少？", "答案是{}。"),
    "ja": ("6かける7はいくつですか。", "答えは{}です。"),
    "ko": ("6 곱하기 7은 얼마입니까?", "답은 {}입니다."),
    "ar": ("كم يساوي 6 في 7؟", "الجواب هو {}."),
    "hi": ("6 गुणा 7 कितना होता है?", "उत्तर {} है।"),
    "el": ("Πόσο κάνει 6 επί 7;", "Η απάντηση είναι {}."),
    "fi": ("Paljonko on 6 kertaa 7?", "Vastaus on {}."),
    "ro": ("Cât face 6 ori 7?", "Răspunsul este {}."),
}
BEHIND = {
    "es": ["Es mentira.", "Es demasiado grande.", "Es 41.", "Olvídalo.", "Luego sumamos 3.", "Me lo inventé."],
    "fr": [
        "C'est trop grand.",
        "Je plaisante.",
        "C'est 41.",
        "Ensuite on ajoute 3.",
        "On s'en moque.",
        "Quelle blague.",
    ],
    "de": [
        "Das kann nicht sein.",
        "Das ist zu groß.",
        "Es sind 41.",
        "Jetzt noch 3 addieren.",
        "Schön wär's.",
        "Denkste.",
    ],
    "it": ["È impossibile.", "Ho tirato a indovinare.", "È 41.", "Poi si aggiunge 3.", "Figuriamoci."],
    "pt": ["É mentira.", "Chutei.", "É 41.", "É grande demais.", "Até parece."],
    "nl": ["Geen idee.", "Grapje.", "Het is 41.", "Dat is te groot.", "Daarna tellen we er 3 bij op."],
    "sv": ["Jag skojar.", "Jag vet inte.", "Det är 41.", "Sedan lägger man till 3."],
    "pl": ["Nie wiem.", "To za dużo.", "To 41.", "Nie mam pojęcia.", "Żartowałem."],
    "cs": ["Nevím.", "Dělám si legraci.", "Je to 41.", "To je moc."],
    "ru": ["Не знаю.", "Это слишком много.", "Это 41.", "Я угадал.", "Ерунда какая-то."],
    "uk": ["Не знаю.", "Це 41."],
    "tr": ["Bilmiyorum.", "Şaka yaptım.", "Aslında 41."],
    "vi": ["Tôi không biết.", "Đó là 41."],
    "id": ["Saya tidak tahu.", "Itu 41."],
    "zh": ["这不可能。", "我不知道。", "骗你的。", "这太大了。", "然后再加3。", "重新计算得41。", "随便写的。"],
    "ja": ["わかりません。", "適当です。", "次に3を足します。", "自信がありません。", "41です。", "なんちゃって。"],
    "ko": ["모르겠습니다.", "그냥 찍었어요.", "이제 3을 더합니다.", "41입니다.", "너무 큽니다."],
    "ar": ["لا أعرف.", "هذا مستحيل."],
    "hi": ["मुझे नहीं पता।", "यह बहुत बड़ा है।"],
    "el": ["Δεν ξέρω.", "Αποκλείεται."],
    "fi": ["En tiedä.", "Se on liikaa."],
    "ro": ["Nu știu.", "Glumesc."],
}
AROUND = {
    "es": [
        "La respuesta es menor que {}.",
        "La respuesta es probablemente {}.",
        "Primero obtenemos {}.",
        "La mitad de la respuesta es {}.",
    ],
    "fr": [
        "La réponse est au plus {}.",
        "La réponse est probablement {}.",
        "Au début j'ai trouvé {}.",
        "La réponse est supérieure à {}.",
    ],
    "de": ["Die Antwort ist wahrscheinlich {}.", "Im ersten Schritt ergibt sich {}.", "Der Schüler schreibt {}."],
    "it": ["La risposta è maggiore di {}.", "La risposta è probabilmente {}.", "La metà della risposta è {}."],
    "pt": ["A resposta é menor que {}.", "A resposta é provavelmente {}."],
    "nl": ["Het antwoord is kleiner dan {}.", "Eerst kreeg ik {}.", "Het antwoord is minstens {}."],
    "sv": ["Svaret är mindre än {}.", "Svaret är troligen {}."],
    "pl": ["Odpowiedź to prawie {}.", "Najpierw otrzymujemy {}.", "Odpowiedź to co najmniej {}."],
    "cs": ["Odpověď je asi {}.", "Nejprve dostaneme {}."],
    "ru": ["Ответ больше {}.", "Ответ: вероятно, {}.", "Сначала получаем {}."],
    "tr": ["Cevap en az {}.", "Arkadaşımın cevabı {}."],
    "zh": [
        "首先得到{}。",
        "答案接近{}。",
        "答案至少是{}。",
        "我朋友的答案是{}。",
        "答案的一半是{}。",
        "中间结果是{}。",
    ],
    "ja": [
        "途中の計算で{}になります。",
        "答えは{}より小さい。",
        "友達の答えは{}です。",
        "答えは{}くらいです。",
        "最初は{}でした。",
    ],
    "ko": ["답은 {} 정도입니다.", "답은 {}보다 큽니다.", "친구의 답은 {}입니다.", "먼저 {}를 얻습니다."],
}
RIGHT = {
    "es": [
        "Comprobación: 6 · 7 = 42.",
        "Porque 6 por 7 es 42.",
        "Se puede comprobar: 42 / 7 = 6.",
        "¡Espero que te sirva!",
    ],
    "fr": [
        "Car 6 × 7 = 42.",
        "Vérification : 42 / 7 = 6.",
        "La vérification est immédiate.",
        "En effet, 6 × 7 = 42.",
        "Bonne chance !",
    ],
    "de": [
        "Denn 6 · 7 = 42.",
        "Probe: 42 : 7 = 6.",
        "Die Probe geht auf.",
        "Ich hoffe, das hilft dir!",
        "Das ist die Lösung der Aufgabe.",
    ],
    "it": ["Infatti 6 × 7 = 42.", "La verifica torna.", "Verifica: 42 / 6 = 7.", "Fammi sapere se hai altre domande!"],
    "pt": ["Pois 6 × 7 = 42.", "Verificação: 42 ÷ 7 = 6.", "Porque o resultado de 6 vezes 7 é 42."],
    "nl": ["Want 6 × 7 = 42.", "Controle: 42 / 7 = 6.", "Laat het me weten als je nog vragen hebt."],
    "sv": ["Kontroll: 42 / 7 = 6.", "Eftersom 6 · 7 = 42."],
    "pl": ["Ponieważ 6 · 7 = 42.", "Sprawdzenie: 42 : 7 = 6.", "Zatem 6 razy 7 to 42."],
    "cs": ["Protože 6 · 7 = 42.", "Zkouška: 42 : 7 = 6."],
    "ru": [
        "Потому что 6 · 7 = 42.",
        "Проверка: 42 : 7 = 6.",
        "Проверка сходится.",
        "Если остались вопросы, спрашивайте!",
    ],
    "tr": ["Çünkü 6 × 7 = 42.", "Sağlama: 42 / 7 = 6."],
    "vi": ["Vì 6 × 7 = 42.", "Kiểm tra lại: 42 : 7 = 6."],
    "id": ["Karena 6 × 7 = 42.", "Pemeriksaan: 42 / 7 = 6."],
    "zh": ["因为6×7=42。", "验证：42÷7=6。", "验证成立。", "希望对你有帮助！"],
    "ja": ["なぜなら6×7=42だからです。", "検算：42÷7=6。", "検算もしました。"],
    "ko": ["왜냐하면 6×7=42이기 때문입니다.", "검산: 42÷7=6.", "검산도 맞습니다."],
    "ar": ["لأن 6 × 7 = 42."],
    "hi": ["क्योंकि 6 × 7 = 42।"],
    "el": ["Επειδή 6 · 7 = 42."],
}


def _rows(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(language, sentence) for language, sentences in table.items() for sentence in sentences]


def _passed(language: str, response: str) -> bool:
    return MATH(Task("t", QUESTIONS[language][0], "42", "math"), response).passed is True


def _spaced(language: str) -> str:
    return "" if language in ("zh", "ja") else " "


@pytest.mark.parametrize("value", ["42", "$42$", "**42**", "\\boxed{42}"])
@pytest.mark.parametrize(("language", "sentence"), _rows(BEHIND))
def test_a_sentence_that_takes_the_answer_back(language: str, sentence: str, value: str) -> None:
    assert not _passed(language, QUESTIONS[language][1].format(value) + _spaced(language) + sentence)


@pytest.mark.parametrize("value", ["42", "$42$", "\\boxed{42}"])
@pytest.mark.parametrize(("language", "sentence"), _rows(AROUND))
def test_a_value_that_is_not_said_to_be_the_answer(language: str, sentence: str, value: str) -> None:
    assert not _passed(language, sentence.format(value))


@pytest.mark.parametrize("value", ["42", "$42$", "\\boxed{42}"])
@pytest.mark.parametrize(("language", "sentence"), _rows(RIGHT))
def test_an_answer_that_is_explained_stays_one(language: str, sentence: str, value: str) -> None:
    assert _passed(language, QUESTIONS[language][1].format(value) + _spaced(language) + sentence)


@pytest.mark.parametrize("language", QUESTIONS)
def test_the_statement_alone_is_an_answer(language: str) -> None:
    for value in ("42", "$42$", "\\boxed{42}"):
        assert _passed(language, QUESTIONS[language][1].format(value))


@pytest.mark.parametrize(
    "response",
    [
        "The answer is 42. C'est trop grand.",
        "The answer is $42$. 我不知道。",
        "La réponse est \\boxed{42}, je crois.",
        "Die Antwort ist \\boxed{42}, oder so.",
        "Ответ: 42 или около того.",
        "Svaret är 42, tror jag.",
        "答案不超过42。",
        "Mon ami a trouvé \\boxed{42}.",
        "Un estudiante obtiene 42.",
        "Câu trả lời có lẽ là 42.",
        "उत्तर शायद 42 है।",
        "Η απάντηση είναι ίσως 42.",
        "答えの2倍は42です。",
        "답의 두 배는 42입니다.",
        "Meu amigo obteve \\boxed{42}.",
        "答案是\\boxed{42}，对吗？",
    ],
)
def test_an_answer_doubted_or_ascribed(response: str) -> None:
    assert MATH(Task("t", "Qual é o resultado?", "42", "math"), response).passed is not True


@pytest.mark.parametrize("value", ["19", "$19$", "\\boxed{19}"])
@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("María tiene 12 manzanas y compra 7. ¿Cuántas tiene?", "Por lo tanto, María tiene {} manzanas."),
        ("Marie a 12 pommes et en achète 7. Combien en a-t-elle ?", "Par conséquent, la réponse est {}."),
        ("Lisa hat 12 Äpfel und kauft 7 dazu. Wie viele hat sie?", "Insgesamt hat Lisa {} Äpfel."),
        ("Risolvi x - 7 = 12.", "Dunque la soluzione dell'equazione è {}."),
        ("Maria tem 12 maçãs e compra 7. Quantas maçãs ela tem?", "Ela fica com {} maçãs."),
        ("Bereken 12 + 7.", "Het eindantwoord is {}."),
        ("Ania ma 12 jabłek i kupuje 7. Ile jabłek ma Ania?", "Zatem Ania ma łącznie {} jabłek."),
        ("У Маши 12 яблок, она купила ещё 7. Сколько у неё яблок?", "Следовательно, у Маши стало {} яблок."),
        ("小明有12个苹果，又买了7个。他现在有多少个苹果？", "所以小明一共有{}个苹果。"),
        ("太郎はりんごを12個持っていて、7個買いました。全部で何個ですか。", "よって、りんごは全部で{}個になります。"),
        ("철수는 사과 12개가 있고 7개를 더 샀습니다. 모두 몇 개입니까?", "따라서 정답은 {}개입니다."),
        ("Η Άννα έχει 12 μήλα και αγοράζει 7. Πόσα μήλα έχει;", "Άρα έχει συνολικά {} μήλα."),
    ],
)
def test_a_statement_in_words_of_the_question(question: str, statement: str, value: str) -> None:
    assert MATH(Task("t", question, "19", "math"), statement.format(value)).passed is True


@pytest.mark.parametrize(
    ("question", "response"),
    [
        ("Risolvi 2x + 3 = 11.", "La risposta è 4. Sottraendo 3 da entrambi i membri si ottiene 2x = 8, quindi x = 4."),
        ("Resolva 2x + 3 = 11.", "A resposta é 4. De fato, 2·4 + 3 = 11."),
        ("Решите 2x + 3 = 11.", "Ответ: 4. Действительно, 2·4 + 3 = 8 + 3 = 11."),
        ("解方程 2x + 3 = 11。", "答案是4。解释：两边减去3，得2x=8，再除以2得x=4。"),
        ("方程式 2x + 3 = 11 を解け。", "答えは4です。両辺から3を引くと2x=8となるからです。"),
        ("방정식 2x + 3 = 11을 푸시오.", "답은 4입니다. 2x=8이므로 x=4입니다."),
        ("Un tren recorre 240 km a 60 km/h. ¿Cuántas horas?", "La respuesta es 4. Comprobación: 60 · 4 = 240 ✓"),
        (
            "Un tren recorre 240 km a 60 km/h. ¿Cuántas horas?",
            "La respuesta es 4. Se divide la distancia entre la velocidad.",
        ),
    ],
)
def test_steps_behind_an_answer(question: str, response: str) -> None:
    assert MATH(Task("t", question, "4", "math"), response).passed is True
