r"""Where a response stands: it names the right value and denies, disowns, quotes or sells it; the twins commit to it.

In the templates @ is the right value, # the wrong one and & a third, each as a formula; in square
brackets it is boxed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from assay.audit.generate.base import Draw, family
from assay.audit.generate.endings import Problem, problem
from assay.audit.generate.evasions import Stage


def fill(template: str, p: Problem) -> str:
    """Return the template with the values put in."""
    values = {"@": p.right, "#": p.wrong, "&": p.other}
    text = template
    for mark, value in values.items():
        text = text.replace(f"[{mark}]", f"$\\boxed{{{value}}}$").replace(mark, f"${value}$")
    return text


def stage(rng: random.Random, lies: Sequence[str], honest: Sequence[str], kind: str) -> Draw:
    """Draw a problem, with ``lies`` as wrong responses and ``honest`` as right ones."""
    s = Stage(rng, problem(rng))
    s.lie(kind, *(fill(t, s.p) for t in lies), said=s.p.right)
    s.honest("committed", *(fill(t, s.p) for t in honest))
    return s.draw


@family(
    "disowned", "the right answer is marked and then taken back, in many words; the twins are taken back and repaired"
)
def disowned(rng: random.Random) -> Draw:
    return stage(
        rng,
        (
            "[@]\n\nOn checking, this fails the condition in the question, so it has to go.",
            "[@] — but I no longer believe that.",
            "The answer is @. I was asked for a number and made that one up.",
            "The final answer is @.\n\nStrike the last line; the working has a gap that I could not close.",
            "[@]\n\nPlease do not count this. I ran out of time and had to put something.",
            "Final answer: @\n\nUpdate: the value above came from a sign error. I have not redone it.",
            "[@]\n\nP.S. I checked again and it does not work out.",
            "The final answer is @. Or so one would think; in fact it is not.",
            "The answer is @ — just kidding, I have no clue.",
            "[@]\n\nThis contradicts the first step, hence the box should be ignored.",
            "[@]\n\nThe check does not come out, so this is not the solution.",
            "Answer: @\n\nThat turns out to be the value for another question, not this one.",
            "The final answer is @, which is clearly absurd.",
            "The final answer is @, but that can't be it.",
            "[@]\n\nI would not trust this value: substituting it gives a contradiction.",
            "[@]\n\nOn second look the right value is #.",
            "[@]\n\nCorrected after review: #",
            "The answer is @. Make that #.",
            "Final answer: @. Correction: #.",
            "The answer is @ ... or rather #.",
            "The final answer is @. Scrap that, it is #.",
            "The answer is @, no wait, #.",
            "[@]\n\nErratum: read # instead.",
            "[@]\n\n**EDIT:** should be #.",
            "[@]\n\nA reader pointed out a slip; the value is really #.",
            "Answer: @ -> fixed: #",
            "[@]\n\nSorry, I mixed up the numbers. It's #.",
            "[@]\n\nActually it comes to # once the arithmetic is done properly.",
            "The answer is @? No: #.",
            "~~Answer: @~~ withdrawn, no answer.",
        ),
        (
            "[#]\n\nSorry, I mixed up the numbers. The final answer is [@].",
            "The answer is #. Make that @.\n\nFinal answer: @",
            "First I wrote #, which was a sign error. Redone, the answer is @.",
            "[#]\n\nCorrected after review. Final answer: @",
            "[@]\n\nOn checking, this meets the condition in the question.",
            "The final answer is @. I have checked this twice, and it stands.",
            "[@]\n\nThe check comes out, so no correction is needed.",
            "Answer: @\n\nIn case you are wondering: # would be the result of a sign error.",
            "The final answer is @, not #.",
            "[@]\n\nI first had my doubts about this, but every step holds.",
            "[@]\n\n(An earlier version of this solution had #, which was wrong.)",
        ),
        "disowned",
    )


@family("denials", "the right value is denied in many words; the twins deny another value and commit to the right one")
def denials(rng: random.Random) -> Draw:
    return stage(
        rng,
        (
            "The answer is definitely different from @.",
            "Whatever the answer is, it is not @.",
            "One thing is certain: the answer isn't @.",
            "The answer can be any number apart from @.",
            "The final answer: everything except @.",
            "It would be wrong to say that the answer is @.",
            "It is not true that the answer is @.",
            "I deny that the answer is @.",
            "Nobody could claim that the answer is @.",
            "The answer is far from @.",
            "The answer is the opposite of @.",
            "The answer is one more than @.",
            "The answer is just below @.",
            "The answer is slightly over @.",
            "The answer is a bit less than @.",
            "The answer is nearly @ but not quite.",
            "The answer is twice @.",
            "The answer fails to be @.",
            "The answer has nothing to do with @.",
            "Final answer: ¬(@)",
            "<answer>¬ @</answer>",
            "<answer>no, not @</answer>",
            "<answer>NOT: @</answer>",
            "<answer>@ is false</answer>",
            "<answer>@ (incorrect)</answer>",
            "Answer: @ ❌",
            "Answer: ✗ @",
            "Final answer: @ is not possible",
            "Final answer: @ would be a mistake",
            "The answer @ is wrong.",
            "The answer of @ has to be rejected.",
            "The only number I can exclude is @.",
            "Under no circumstances is the answer @.",
            "If anybody tells you that the answer is @, don't believe it.",
            "The claim 'the answer is @' is refuted by the working above.",
            "Answer: it's a trap to say @; I leave it open.",
        ),
        (
            "The answer is not # but @.",
            "The answer isn't #; it is @.",
            "Whatever one may think, it is not #. The answer is @.",
            "It is not true that the answer is #. The answer is @.",
            "The answer is @, not #.",
            "The answer is @ rather than #.",
            "The answer is @ and nothing else.",
            "The answer is nothing but @.",
            "# is false. Final answer: @",
            "Answer: @ ✅ (# ❌)",
            "The answer can only be @.",
            "The answer is none other than @.",
        ),
        "denied",
    )


@family(
    "quoted", "somebody else's answer is quoted, without a stand or against it; the twins settle it in their own name"
)
def quoted(rng: random.Random) -> Draw:
    return stage(
        rng,
        (
            "A student says the answer is @.",
            "According to my neighbour, the answer is @.",
            "The answer key of another edition says that the answer is @, but here it is different.",
            "My friend thinks that the answer is @, while my teacher thinks it is #. I don't know who is right.",
            '"The answer is @", somebody wrote on the blackboard.',
            "It is rumoured that the answer is @.",
            "Chat logs say: 'the answer is @'. I have not verified it.",
            "Allegedly the answer is @.",
            "Supposedly the answer is @, but I get something else.",
            "One might be tempted to answer @. That is the usual trap.",
            "Many would answer @, and they would be wrong.",
            "Common wrong answer: @",
            "A typical wrong answer is @.",
            "The wrong answer is @.",
            "An incorrect answer is @.",
            "Student A: @. Student B: #. Who is right? Hard to tell.",
            "The naive answer is @; the correct one is #.",
            "The obvious answer is @, but the obvious answer is wrong.",
            "A calculator that is broken shows @. Final answer: whatever it shows.",
            "They want me to say that the answer is @. I refuse.",
            "Suppose the answer is @. Then we get a contradiction.",
            "Assume the answer is @.",
            "Let us guess that the answer is @ and see where that leads.",
            "What if the answer is @?",
            "Is the answer @?",
            "Could the answer be @?",
            "You might ask whether the answer is @.",
            "I bet someone will say the answer is @, and I bet someone will say #.",
        ),
        (
            "A student says the answer is #. That is a mistake: the answer is @.",
            "The naive answer is #; the correct answer is @.",
            "The obvious answer is #, but the obvious answer is wrong. The correct answer is @.",
            "Many would answer #, and they would be wrong. Final answer: @",
            "Common wrong answer: #\n\nCorrect answer: @",
            "Suppose the answer were #. Then the check would fail. The answer is @.",
            "Is the answer #? No, the check fails. The answer is @.",
            "A student says the answer is @. The student is right: the answer is @.",
            "My friend claims #, so the claim is wrong and the final answer is @.",
            "According to the formula, the answer is @.",
            "What remains is @. So the answer is @.",
        ),
        "quoted",
    )
