"""Opinions on solutions: whether one is right, and where it first goes wrong."""

from __future__ import annotations

from fuzz.entry import Case, entry

entry(
    "critique",
    cases=[
        Case("True", [r"It adds up. \boxed{True}", r"\boxed{\text{true}}", r"\boxed{False} no: \boxed{yes}"]),
        Case("False", [r"2+2 is 4. \boxed{False}", r"\boxed{no}"]),
    ],
)

entry(
    "step_index",
    cases=[
        Case("-1", [r"\boxed{-1}", r"\boxed{0} no: \boxed{ -1 }"]),
        Case("3", [r"Step 3 subtracts. \boxed{3}", r"\boxed{03}"]),
        Case(0, [r"\boxed{0}"]),
    ],
)

entry(
    "verification",
    cases=[
        Case(
            {"right": True, "steps": 1},
            [
                "<step_verification><step>It adds up. \\boxed{CORRECT}</step></step_verification>\n"
                "<final_verification>\\boxed{CORRECT}</final_verification>",
                "<final_verification>\\box{correct}.</final_verification>",
                "<step_verification></step_verification> <final_verification> \\boxed{CORRECT} </final_verification>",
            ],
        ),
        Case({"right": False, "steps": 2}, ["<final_verification>\\boxed{INCORRECT}</final_verification>"]),
    ],
)

entry(
    "pair_scores",
    cases=[
        Case(
            "1",
            [
                "Principles: rhyme\nCritique: one rhymes\nScores: 7.5, 6",
                "**Principles**: rhyme\n\n## Critique: the first rhymes\n**Scores**: 10, 0.5.",
            ],
        ),
        Case("2", ["Principles: rhyme, 0.5\nCritique: none does\nScores: 0, 3.25"]),
    ],
)

entry(
    "pair_verdict",
    cases=[
        Case("1", ["It adds up.\n[Verdict]\n\\boxed{1}\n[End of Verdict]"]),
        Case("2", ["[Verdict]\n\n \\boxed{ 2 }\n[End of Verdict]\n"]),
    ],
)

entry(
    "analysis",
    cases=[
        Case(1, ["My analysis:\nIt holds.\nSo the score is:\n\\boxed{1}"]),
        Case(0.5, ["<think>?</think>My analysis: a gap. So the score is: \\boxed{ .5 }\n"]),
    ],
)

entry(
    "sentence_labels",
    cases=[
        Case([[True, False]], ["Sentence 1\nFaithful: yes\nReason: it is old\nCorrect: no"]),
        Case([[False, True]], ["Well.\nSentence 1:\nFaithful: No\n Reason: known.\nCorrect: YES\n"]),
    ],
)

entry(
    "gameable",
    cases=[
        Case({"metric": "best_of_list", "answer": 13}, ["13", "It is 13."]),
        Case({"metric": "length", "count": 3, "facts": ["Moon"]}, ["The Moon shines."]),
        Case({"metric": "grader", "weak": "A"}, ["B", "I choose B"]),
    ],
    marked=False,
    apart=False,
)
