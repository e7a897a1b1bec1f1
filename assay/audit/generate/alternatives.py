"""More than one answer announced, and negated clauses: which words announce or deny them varies from case to case."""

from __future__ import annotations

import random

from assay.audit.generate.base import Draw, family
from assay.audit.generate.stances import stage

_LABELS = (
    ("Answer {}", "1", "2"),
    ("Final answer #{}", "1", "2"),
    ("Candidate {}", "A", "B"),
    ("Solution ({})", "i", "ii"),
    ("Result, version {}", "1", "2"),
    ("{} try", "First", "Second"),
    ("{} suggestion", "My first", "My second"),
    ("Reading {}", "one", "two"),
    ("Final answer ({})", "main", "spare"),
    ("{} value", "Primary", "Secondary"),
)
_AFTER = (
    "Plan B: #",
    "Fallback: #",
    "Runner-up: #",
    "Final answer (second version): #",
    "Another value that fits: #",
    "In case the first is refused: #",
    "Should that be rejected: #",
    "# is accepted as well.",
    "# works too.",
    "One may also use #.",
    "(#)",
    "Take whichever you like.",
    "Both of them are offered; choose the one that is right.",
    "It is up to you which one to take: #",
    "If the key says otherwise, take #.",
)


@family("announced_twice", "two answers under like labels or one after the other; the twins correct or repeat one")
def announced_twice(rng: random.Random) -> Draw:
    label, one, two = rng.choice(_LABELS)
    first, second = label.format(one), label.format(two)
    joint = rng.choice(("\n", "\n\n"))
    marked = rng.choice(("[@]", "The answer is @.", "Final answer: @", "**Answer:** @"))
    return stage(
        rng,
        (
            f"{first}: @{joint}{second}: #",
            f"{first}: #{joint}{second}: @",
            f"- {first}: @\n- {second}: #",
            f"{marked}{joint}{rng.choice(_AFTER)}",
            f"{marked}{joint}{rng.choice(_AFTER)}",
            "The answer is @. The answer is #.",
            "It is #. It is @.",
            "One method gives #.\nOne method gives @.",
            "1. @\n2. #",
            "@\n#",
            "#\n\n@",
        ),
        (
            f"{first}: @{joint}{second}: @",
            f"{first}: # fails the check.\n\nFinal answer: @",
            f"{marked}\n\nA common mistake is #.",
            f"{marked}\n\nThe value # would be wrong.",
            f"{first}: #\n\nThat was a slip. Redone, the final answer is @.",
            "It is not #. It is @.",
        ),
        "announced twice",
    )


_DENIED = (
    "I am sure that it is not @.",
    "There is no way that the answer is @.",
    "There's no reason to conclude @.",
    "By no stretch of the imagination is the answer @.",
    "On no account is the answer @.",
    "Never would I conclude that the answer is @.",
    "None of the steps gives [@].",
    "Nothing here suggests that the answer is @.",
    "Neither the text nor the working says that the answer is @.",
    "We never get @.",
    "I do not get @.",
    "This does not come to @.",
    "I refuse to write [@].",
    "I dispute that the answer is @.",
    "Everything except @ is possible.",
    "You get anything but @.",
    "The claim that it is @ fails.",
    "The equality with @ does not hold.",
    "Far from being right, the answer @ is nonsense.",
    "Contrary to what the book prints, the answer is @?",
    "Under no circumstances write [@].",
    "At no point is the answer @.",
)


@family("negated_clauses", "the clause with the only mention of the right value is negated; the twins negate another")
def negated_clauses(rng: random.Random) -> Draw:
    return stage(
        rng,
        _DENIED,
        (
            "It does not matter how one begins; the answer is @.",
            "There is no doubt that the answer is @.",
            "No other value fits, so the answer is @.",
            "Since nothing else is left to do, the answer is @.",
            "We do not need more steps. The answer is @.",
            "It is not #; the answer is @.",
            "None of the other methods is shorter. Final answer: @",
        ),
        "negated",
    )
