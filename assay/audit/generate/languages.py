"""Question and response in one of many languages, with the usual words for the answer there; decimal commas."""

from __future__ import annotations

import random
from fractions import Fraction

from assay.audit.generate.base import Draw, family

TONGUES = {
    "portuguese": (
        "Calcule o valor de {}.",
        "Vamos resolver passo a passo.",
        "Portanto, a resposta é {}.",
        "**Resposta:** {}",
        "Logo, a resposta final é $\\boxed{{{}}}$.",
        "Resposta final: {}",
    ),
    "italian": (
        "Calcola il valore di {}.",
        "Procediamo con ordine.",
        "Quindi la risposta è {}.",
        "**Risposta:** {}",
        "La risposta finale è $\\boxed{{{}}}$.",
        "Risposta finale: {}",
    ),
    "turkish": (
        "{} işleminin sonucunu bulunuz.",
        "Adım adım çözelim.",
        "Sonuç olarak cevap: {}",
        "**Cevap:** {}",
        "Buna göre cevap $\\boxed{{{}}}$ olur.",
        "Yanıt: {}",
    ),
    "polish": (
        "Oblicz {}.",
        "Rozwiążmy to krok po kroku.",
        "Zatem odpowiedź to {}.",
        "**Odpowiedź:** {}",
        "Ostateczna odpowiedź: $\\boxed{{{}}}$",
        "Odp. {}",
    ),
    "vietnamese": (
        "Tính {}.",
        "Ta giải từng bước một.",
        "Vậy đáp án là {}.",
        "**Đáp án:** {}",
        "Vậy kết quả cuối cùng là $\\boxed{{{}}}$.",
        "Đáp số: {}",
    ),
    "korean": (
        "{}의 값을 구하시오.",
        "단계별로 풀어 봅시다.",
        "따라서 정답은 {}입니다.",
        "**정답:** {}",
        "따라서 최종 답은 $\\boxed{{{}}}$입니다.",
        "답: {}",
    ),
    "ukrainian": (
        "Обчисліть {}.",
        "Розв'яжемо крок за кроком.",
        "Отже, відповідь: {}.",
        "**Відповідь:** {}",
        "Остаточна відповідь: $\\boxed{{{}}}$",
        "Відповідь дорівнює {}.",
    ),
    "indonesian": (
        "Hitunglah {}.",
        "Mari kita selesaikan langkah demi langkah.",
        "Jadi, jawabannya adalah {}.",
        "**Jawaban:** {}",
        "Jadi, jawaban akhirnya adalah $\\boxed{{{}}}$.",
        "Jawaban akhir: {}",
    ),
    "dutch": (
        "Bereken {}.",
        "We lossen dit stap voor stap op.",
        "Het antwoord is dus {}.",
        "**Antwoord:** {}",
        "Het eindantwoord is $\\boxed{{{}}}$.",
        "Eindantwoord: {}",
    ),
    "swedish": (
        "Beräkna {}.",
        "Vi löser uppgiften steg för steg.",
        "Alltså är svaret {}.",
        "**Svar:** {}",
        "Det slutliga svaret är $\\boxed{{{}}}$.",
        "Svar: {}",
    ),
    "czech": (
        "Vypočítejte {}.",
        "Postupujme krok za krokem.",
        "Odpověď je tedy {}.",
        "**Odpověď:** {}",
        "Konečná odpověď: $\\boxed{{{}}}$",
        "Výsledek: {}",
    ),
    "romanian": (
        "Calculați {}.",
        "Rezolvăm pas cu pas.",
        "Prin urmare, răspunsul este {}.",
        "**Răspuns:** {}",
        "Răspunsul final este $\\boxed{{{}}}$.",
        "Răspuns final: {}",
    ),
    "greek": (
        "Υπολογίστε {}.",
        "Ας το λύσουμε βήμα προς βήμα.",
        "Άρα η απάντηση είναι {}.",
        "**Απάντηση:** {}",
        "Η τελική απάντηση είναι $\\boxed{{{}}}$.",
        "Τελική απάντηση: {}",
    ),
    "hindi": (
        "{} का मान ज्ञात कीजिए।",
        "आइए इसे चरण दर चरण हल करें।",
        "अतः उत्तर {} है।",
        "**उत्तर:** {}",
        "अतः अंतिम उत्तर $\\boxed{{{}}}$ है।",
        "उत्तर = {}",
    ),
}
COMMA = (
    "portuguese",
    "italian",
    "turkish",
    "polish",
    "ukrainian",
    "indonesian",
    "dutch",
    "swedish",
    "czech",
    "romanian",
    "greek",
    "vietnamese",
)


def _add(draw: Draw, tongue: str, kind: str, value: Fraction, text: str, boxed: str | None = None) -> None:
    _, start, *ends = TONGUES[tongue]
    for n, end in enumerate(ends):
        said = boxed if boxed is not None and "boxed" in end else text
        whole = f"{start}\n\n{end.format(said)}"
        if value == draw.gold:
            draw.right(f"{tongue} {n} {kind}", whole, form="whole", said=said)
        else:
            draw.wrong(f"{tongue} {kind}", value, whole, form="whole", said=said)


@family("languages", "integers and fractions, asked and answered in one of fourteen languages; another value is wrong")
def languages(rng: random.Random) -> Draw:
    tongue = rng.choice(list(TONGUES))
    ask = TONGUES[tongue][0]
    if rng.random() < 0.6:
        a, b, c = rng.randint(12, 49), rng.randint(6, 29), rng.randint(3, 90)
        n = Fraction(a * b - c)
        draw = Draw(ask.format(f"${a} \\cdot {b} - {c}$"), str(n), n)
        for kind, v in (
            ("right", n),
            ("off", n + 1),
            ("off", n - 10),
            ("sign", -n),
            ("plus", n + 2 * c),
            ("order", Fraction(a * (b - c))),
        ):
            _add(draw, tongue, kind, v, str(v))
        return draw
    while True:
        a, b, c, d = (rng.randint(1, 9) for _ in range(4))
        x = Fraction(a, b + 1) - Fraction(c, d + 1)
        if x.denominator > 1:
            break
    draw = Draw(ask.format(f"$\\frac{{{a}}}{{{b + 1}}} - \\frac{{{c}}}{{{d + 1}}}$"), str(x), x)
    for kind, v in (
        ("right", x),
        ("sign", -x),
        ("off", x + 1),
        ("sum", Fraction(a, b + 1) + Fraction(c, d + 1)),
        ("reciprocal", 1 / x),
    ):
        s = "-" if v < 0 else ""
        latex = f"{s}\\frac{{{abs(v.numerator)}}}{{{v.denominator}}}" if v.denominator > 1 else str(v)
        _add(draw, tongue, kind, v, str(v), latex)
        _add(draw, tongue, f"{kind} latex", v, f"${latex}$", latex)
    return draw


@family("decimal_comma", "decimals with a comma, in languages that write them so; a moved or lost comma is wrong")
def decimal_comma(rng: random.Random) -> Draw:
    tongue = rng.choice(COMMA)
    a, b = rng.randint(11, 989), rng.randint(11, 989)
    if (a + b) % 10 == 0:
        a += 1
    n = a + b  # tenths

    def comma(tenths: int) -> str:
        return f"{tenths // 10},{tenths % 10}"

    draw = Draw(TONGUES[tongue][0].format(f"{comma(a)} + {comma(b)}"), comma(n), Fraction(n, 10))
    for kind, tenths in (
        ("right", n),
        ("tenth", n + 1 if n % 10 != 9 else n - 1),
        ("one", n + 10),
        ("difference", abs(a - b)),
        ("ten", n + 100),
    ):
        _add(draw, tongue, kind, Fraction(tenths, 10), comma(tenths), comma(tenths).replace(",", "{,}"))
    _add(draw, tongue, "comma lost", Fraction(n), str(n))
    _add(draw, tongue, "comma moved", Fraction(n, 100), f"{n // 100},{n % 100:02d}")
    return draw
