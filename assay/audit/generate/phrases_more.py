"""More languages and more ways to mark a final answer."""

from __future__ import annotations

import random

from assay.audit.generate.base import Draw, family
from assay.audit.generate.borrowed import borrow, box, math

PHRASES = {
    "german": ("Die Antwort ist {}.", "Die endgültige Antwort lautet {}.", "Antwort: {}", "Das Ergebnis ist also {}."),
    "russian": ("Ответ: {}", "Окончательный ответ: {}.", "Таким образом, ответ — {}.", "Итак, ответ равен {}."),
    "japanese": ("答えは {} です。", "したがって、答えは {} である。", "答え：{}", "最終的な答えは {} です。"),
    "korean": ("정답은 {} 입니다.", "답: {}", "따라서 최종 답은 {} 입니다."),
    "portuguese": ("A resposta é {}.", "Resposta: {}", "Portanto, a resposta final é {}."),
    "italian": ("La risposta è {}.", "Risposta: {}", "Quindi la risposta finale è {}."),
    "arabic": ("الإجابة هي {}.", "الجواب النهائي: {}", "إذن الإجابة النهائية هي {}"),
    "hindi": ("उत्तर {} है।", "उत्तर: {}", "अतः अंतिम उत्तर {} है।"),
    "traditional chinese": ("因此，最終答案為 {}。", "答：{}", "所以答案是 {}。"),
}
BEFORE = {
    "german": "Wir lösen die Aufgabe Schritt für Schritt.",
    "russian": "Решим задачу по шагам.",
    "japanese": "順を追って解いていきます。",
    "korean": "단계별로 풀어 보겠습니다.",
    "portuguese": "Vamos resolver passo a passo.",
    "italian": "Risolviamo il problema passo dopo passo.",
    "arabic": "لنحل المسألة خطوة بخطوة.",
    "hindi": "आइए इसे चरण दर चरण हल करें।",
    "traditional chinese": "我們一步一步來解這個問題。",
}


@family("more_answer_phrases", "the sentence that states the answer is in German, Russian, Japanese, Korean and others")
def more_answer_phrases(rng: random.Random) -> Draw:
    b = borrow(rng)
    for language, phrases in PHRASES.items():
        before = rng.choice(("", BEFORE[language] + "\n\n"))
        for phrase in phrases:
            for answer, add in ((b.right, True), (b.wrong, False)):
                for text in (math(answer), f"${box(answer)}$"):
                    if add:
                        b.draw.right(language, before + phrase.format(text), form="whole", said=answer.text)
                    else:
                        b.draw.wrong(
                            language, answer.value, before + phrase.format(text), form="whole", said=answer.text
                        )
    return b.draw


MARKS = {
    "fbox": "$\\fbox{@}$",
    "spaced box": "$\\boxed {@}$",
    "lines in the box": "\\[\n\\boxed{\n  @\n}\n\\]",
    "aligned box": "\\begin{align*}\n\\boxed{@}\n\\end{align*}",
    "display style": "$\\displaystyle \\boxed{@}$",
    "colour in a box": "$\\boxed{\\color{blue}{@}}$",
    "full stop in the box": "$\\boxed{@.}$",
    "dollars in the box": "\\boxed{$@$}",
    "final_answer tag": "<final_answer>%</final_answer>",
    "capital tag": "<ANSWER>%</ANSWER>",
    "tag with blanks": "< answer >%</ answer >",
    "heading": "### Final Answer\n\n%",
    "bold heading": "**Final Answer**\n\n$$@$$",
    "bold heading and box": "**Final Answer**\n\n$$\\boxed{@}$$",
    "ans": "Ans: %",
    "bold phrase": "**The final answer is %**",
    "italics": "The answer is *%*.",
    "underlined": "The answer is __%__.",
    "hence": "Hence, the answer is\n\n%",
    "thus": "Thus the final answer to the problem is %.",
    "would be": "The correct answer is %.",
    "arrow": "Final answer → %",
    "equals": "Answer = %",
    "quote": "> **Answer**: %",
    "bullet": "Result:\n\n- Answer: %",
    "capitals": "FINAL ANSWER: %",
    "in conclusion": "In conclusion, the answer is %.",
    "parenthesis after": "The final answer is % (see above).",
    "bold and box": "The answer is **$\\boxed{@}$**.",
}


@family("more_marks", "other boxes, tags, headings and phrases around the final answer")
def more_marks(rng: random.Random) -> Draw:
    b = borrow(rng)
    for kind, template in MARKS.items():
        for answer, add in ((b.right, True), (b.wrong, False)):
            if kind == "full stop in the box" and answer.text[-1] in ".!":
                continue
            text = template.replace("@", answer.text).replace("%", math(answer))
            if add:
                b.draw.right(kind, text, form="whole", said=answer.text)
            else:
                b.draw.wrong(kind, answer.value, text, form="whole", said=answer.text)
    return b.draw


@family("long_solutions", "the answer at the end of a long solution full of other numbers, tables and code")
def long_solutions(rng: random.Random) -> Draw:
    b = borrow(rng)
    numbers = [rng.randint(-99, 99) for _ in range(12)]
    table = "| n | value |\n|---|---|\n" + "\n".join(f"| {i} | {n} |" for i, n in enumerate(numbers[:5]))
    code = "```python\n" + "\n".join(f"t{i} = {n}  # helper" for i, n in enumerate(numbers[5:9])) + "\nprint(t0)\n```"
    steps = "\n\n".join(
        f"**Step {i + 1}.** We have $u_{{{i}}} = {n}$, so that $u_{{{i}}} + 1 = {n + 1}$."
        for i, n in enumerate(numbers[9:])
    )
    for body in (f"{steps}\n\n{table}\n\n{code}", f"{table}\n\n{steps}", f"{code}\n\n{steps}\n\n{table}"):
        for ending in ("**Conclusion.** The final answer is ${}$.", "Putting everything together:\n\n$${}$$"):
            b.draw.right("box at the end", f"{body}\n\n{ending.format(box(b.right))}", form="whole", said=b.right.text)
            text = f"{body}\n\n{ending.format(box(b.wrong))}"
            b.draw.wrong("box at the end", b.wrong.value, text, form="whole", said=b.wrong.text)
        text = f"{body}\n\nThe final answer is {math(b.right)}."
        b.draw.right("phrase at the end", text, form="whole", said=b.right.text)
        text = f"{body}\n\nThe final answer is {math(b.wrong)}."
        b.draw.wrong("phrase at the end", b.wrong.value, text, form="whole", said=b.wrong.text)
    return b.draw
