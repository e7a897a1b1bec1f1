"""A label in prose is chosen only where every word of its sentence is accounted for."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.registry import build
from assay.types import Task
from assay.verify.choice.commit import committed
from assay.verify.choice.frames import LANGUAGES
from assay.verify.choice.lexicon import words

METALS = ["copper", "tin", "iron", "zinc"]
QUESTION = "Which metal rusts when it is left in wet air?"


def passed(response: str, reference: str = "C", options: object = METALS, question: str = QUESTION) -> bool | None:
    return build("verify", "choice")(Task("t", question, reference, meta={"options": options}), response).passed


STATED = [
    "The answer is C.", "My final choice: C", "C is right.", "It must be (C).", "Therefore C.", "I settle on C.",
    "Copper turns green, so C.", "Zinc is coated, tin is not affected; the correct option is C.", "Not copper, so C.",
    "I was torn between A and C, but I choose C.", "Option C is correct; A is a common wrong pick.",
    "Since steel is mostly Fe, the answer is C.", "The metal that rusts is iron.", "Iron rusts in wet air, not copper.",
    "The third option is correct.", "Fe + O2 → C", "C, because the oxide does not protect it.",
    "Die richtige Antwort ist C, weil Eisen rostet.", "La bonne réponse est C.", "La respuesta correcta es la C.",
    "Kupfer rostet nicht, also C.", "A alternativa correta é a letra C.", "La risposta giusta è C.",
    "Het juiste antwoord is C.", "Koppar rostar inte. Rätt svar är C.", "Det riktige svaret er C.",
    "Det rigtige svar er C.", "Oikea vastaus on C.", "Poprawna odpowiedź to C.", "Správná odpověď je C.",
    "Správna odpoveď je C.", "Правильна відповідь: C.", "Правильный ответ — C.", "Верният отговор е C.",
    "Răspunsul corect este C.", "A helyes válasz a C.", "Η σωστή απάντηση είναι η C.", "Doğru cevap C'dir.",
    "الإجابة الصحيحة هي C.", "התשובה הנכונה היא C.", "پاسخ درست گزینه C است.", "सही उत्तर C है।",
    "সঠিক উত্তর C।", "คำตอบที่ถูกต้องคือ C", "Đáp án đúng là C.", "Jawaban yang benar adalah C.",
    "铜不生锈,所以选C。", "銅は錆びない。正解はCです。", "따라서 정답은 C입니다.",
]  # fmt: skip


@pytest.mark.parametrize("response", STATED)
def test_a_plain_statement_chooses_in_every_language(response: str) -> None:
    assert passed(response) is True
    assert passed(response, "D") is False


UNSTATED = [
    "Strike C from the list.", "C bites the dust.", "The verdict on C is pending.", "C was my sister's pick.",
    "Whoever marks C loses the point.", "The paper prints C as 'iron'.", "Let me look into C first.", "C comes to mind",
    "If it is C, I am lost.", "Say it were C.", "It could be C.", "Would C do?", "C? I am at a loss.", "C...", "(C) ✘",
    "Everything but C.", "So C is gone.", "So I leave C aside.", "The letter after C", "C+1", "The answer is C or D.",
    "The answer is C, claims my neighbour.", "The answer is C (kidding).", "Dear examiner, the answer is C.",
    "The answer is C. Hold on, it is D.", "The answer is C. No, wait.", "C is correct. Is it, though?",
    "It is not true that C is correct.", "C is the answer I would avoid.", "Only C remains to be discussed.",
    "Iron is what everybody falls for.", "It isn't iron.", "Iron, or so I hear.", "There is iron on the list, too.",
    "Do metals such as iron rust", "Options: copper, tin, iron", "C fliegt raus.", "Ist C die Antwort",
    "Je barre C.", "Tacho la C.", "Corto a C.", "Via la C.", "C ryger ud.", "C putosi pois.", "Skreślam C.",
    "Škrtám C.", "Викреслюю C.", "Вычеркну C.", "Отпада C.", "Tai C.", "A C kiesett.", "Διαγράφω το C.",
    "C'yi çiziyorum.", "أشطب C.", "אני מוחק את C.", "C را خط می‌زنم.", "C को काट दो।", "C কেটে দিন।", "ขีดฆ่า C",
    "Gạch bỏ C.", "C kucoret.", "把C划掉。", "Cに×をつける。", "C를 지웁니다.", "正解はCと言われる。", "有人选C。",
]  # fmt: skip


@pytest.mark.parametrize("response", UNSTATED)
def test_words_that_nobody_listed_choose_nothing(response: str) -> None:
    assert passed(response) is False


@given(st.text(alphabet="bcdfghjklmnpqrstvwxz", min_size=6, max_size=10), st.sampled_from(["before", "behind", "both"]))
def test_an_unknown_word_beside_the_label_undoes_the_choice(word: str, place: str) -> None:
    before = f"{word} " if place != "behind" else ""
    behind = f" {word}" if place != "before" else ""
    assert passed(f"{before}C{behind}.") is False


def test_the_last_commitment_counts_and_reasoning_around_it_does_not() -> None:
    later = "The answer is B. {} The answer is C."
    for middle in ("Let me see.", "Tin keeps its shine.", "No, that is wrong."):
        assert passed(later.format(middle)) is True
        assert passed(later.format(middle), "B") is False
    assert passed("The answer is C.\n\nCopper only turns green. Zinc protects itself.") is True


ADMITTED = [
    ("答えはCです。", "いや、間違えました。", "正しくはDです。"),
    ("正解はCです。", "すみません、勘違いでした。", "Dです。"),
    ("答案是C。", "抱歉，我说错了。", "正确答案是D。"), ("정답은 C입니다.", " 제가 잘못 썼습니다.", " 정답은 D입니다."),
    ("Die Antwort ist C.", " Ach, ich habe mich vertan.", " Richtig ist D."),
    ("La réponse est C.", " Je corrige.", " C'est D."),
    ("La respuesta es C.", " Me he equivocado.", " Es la D."), ("A resposta é C.", " Enganei-me.", " É a D."),
    ("La risposta è C.", " Ho sbagliato.", " È la D."), ("Het antwoord is C.", " Ik vergis me.", " Het is D."),
    ("Svaret är C.", " Jag hade fel.", " Rätt svar är D."), ("Svaret er C.", " Jeg tog fejl.", " Det er D."),
    ("Vastaus on C.", " Erehdyin.", " Oikea on D."), ("Odpowiedź to C.", " Pomyliłam się.", " To jest D."),
    ("Odpověď je C.", " Zmýlil jsem se.", " Je to D."), ("Відповідь C.", " Я помилилася.", " Правильно D."),
    ("Ответ C.", " Я ошиблась.", " Верно D."), ("Отговорът е C.", " Сгреших.", " Верен е D."),
    ("Răspunsul este C.", " M-am încurcat.", " Este D."), ("A válasz C.", " Tévedtem.", " A helyes D."),
    ("Η απάντηση είναι C.", " Έκανα λάθος.", " Είναι D."), ("Cevap C.", " Yanıldım.", " Doğrusu D."),
    ("الإجابة هي C.", " أخطأت.", " الصحيح D."), ("התשובה היא C.", " טעיתי.", " D."),
    ("উত্তর C।", " আমি ভুল করেছি।", " সঠিক উত্তর D।"), ("Đáp án là C.", " Tôi nhầm rồi.", " Là D."),
    ("Jawabannya C.", " Saya keliru.", " Jawabannya D."), ("The answer is C.", " I was mistaken.", " It is D."),
]  # fmt: skip


@pytest.mark.parametrize(("stated", "admitted", "corrected"), ADMITTED)
def test_an_admitted_mistake_takes_the_choice_back_in_every_language(
    stated: str, admitted: str, corrected: str
) -> None:
    assert passed(stated) is True
    assert passed(stated + admitted) is False
    assert passed(stated + admitted + corrected) is False


def test_a_box_counts_until_a_later_sentence_commits_to_another_option() -> None:
    assert passed("\\boxed{C}\nThe oxide flakes off.") is True
    assert passed("\\boxed{C}\nSo the answer is D.") is False


def test_a_truth_value_may_be_said_in_another_language() -> None:
    options = ["True", "False"]
    for response in ("B - falso", "(B) False", "Antwort: B"):
        assert passed(response, "B", options, "Every prime is odd.") is True, response
    assert passed("falso que B", "B", options, "Every prime is odd.") is False


def test_no_word_of_a_commitment_is_a_word_of_denial() -> None:
    denials = {"not", "no", "never", "wrong", "out", "except", "nicht", "falsch", "pas", "faux", "errado", "не", "nem"}
    for name, entry in LANGUAGES.items():
        assert denials.isdisjoint(words(f"{entry.frame} {entry.so}")), name
        assert set(entry.no.split()).isdisjoint(entry.frame.split()), name


@pytest.mark.parametrize("piece", ["C, ", "so C ", "not C but ", "正解", "C (", "the answer is C. "])
def test_long_prose_is_read_in_bounded_time(piece: str) -> None:
    options = dict(zip("ABCD", METALS, strict=True))
    start = time.process_time()
    committed(piece * (100_000 // len(piece)), options, QUESTION, lambda line: None)
    assert time.process_time() - start < 2
