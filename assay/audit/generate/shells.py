"""What stands around a final answer: some working before it, and a mark that says which part is the answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from assay.audit.generate.base import Answer

WORKINGS = (
    "",
    "",
    "Let me work through this step by step.\n\n",
    "We use what is given, carry out the computation and collect the result.\n\n",
    "First, write down what is known. Then apply the definition and simplify.\n\n",
    "Step 1: Understand the problem.\nStep 2: Set up the computation.\nStep 3: Carry it out carefully.\n\n",
    "**Solution.** Start from the given data. The remaining steps are routine.\n\n",
    "To check the method on an easier example: $2 + 3 = 5$ and $5 - 3 = 2$, so it is consistent.\n\n",
    "<think>\nOkay, so I need to be careful here. Let me do it once more to be sure. Good.\n</think>\n\n",
    "1. Read the question.\n2. Compute.\n3. Verify the result by substituting it back.\n\n",
)


@dataclass(frozen=True, slots=True)
class Shell:
    """A template: ``@`` is the answer as it is, ``%`` the answer in math mode if it needs it.

    ``form`` says which answers it takes: ``any``, ``box`` (all but those that cannot stand in a box).
    """

    name: str
    template: str
    form: str = "any"

    def takes(self, answer: Answer) -> bool:
        return self.form == "any" or answer.form != "text"

    def __call__(self, answer: Answer, rng: random.Random) -> str:
        math = answer.text
        if answer.form == "latex":
            left, right = rng.choice((("$", "$"), ("$", "$"), ("\\(", "\\)")))
            math = f"{left}{answer.text}{right}"
        template = self.template
        if answer.text.endswith(".") and template.endswith("%."):
            template = template[:-1]  # no second full stop
        filled = "".join({"@": answer.text, "%": math}.get(c, c) for c in template)
        return rng.choice(WORKINGS) + filled


SHELLS: tuple[Shell, ...] = (
    Shell("boxed", r"$\boxed{@}$", "box"),
    Shell("boxed", r"\boxed{@}", "box"),
    Shell("boxed", r"The answer is $\boxed{@}$.", "box"),
    Shell("boxed", "Hence\n\\[\n\\boxed{@}\n\\]", "box"),
    Shell("boxed", "$$\\boxed{@}$$", "box"),
    Shell("tag", "<answer>%</answer>"),
    Shell("tag", "<answer>\n%\n</answer>"),
    Shell("tag", "<answer>@</answer>"),
    Shell("tag", r"<answer>\boxed{@}</answer>", "box"),
    Shell("hashes", "#### %"),
    Shell("hashes", "#### @"),
    Shell("phrase", "The final answer is %."),
    Shell("phrase", "So the answer is %."),
    Shell("phrase", "Final Answer: The final answer is %. I hope it is correct."),
    Shell("phrase", "Answer: %"),
    Shell("phrase", "Final answer: %"),
    Shell("phrase", "The answer is: %"),
    Shell("bold", "The answer is **%**."),
    Shell("bold", "**Answer:** %"),
    Shell("bold", "**Final Answer:** **%**"),
    Shell("line", "%"),
    Shell("line", "Therefore the answer follows:\n%"),
)


def wrap(answer: Answer, rng: random.Random, shells: Sequence[Shell] | None = None) -> tuple[str, str]:
    """Return a whole response that ends in ``answer``, and the name of the shell."""
    if answer.form == "whole":
        return answer.text, "whole"
    fitting = [s for s in shells or SHELLS if s.takes(answer)]
    name = rng.choice(list(dict.fromkeys(s.name for s in fitting)))
    return rng.choice([s for s in fitting if s.name == name])(answer, rng), name
