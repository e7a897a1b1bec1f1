r"""What is asked of who analyses a proof, who analyses such an analysis, and who writes a proof."""

from __future__ import annotations

from assay.verify.proofs.analysis import CLOSING, OPENING

RUBRIC = """1: complete and rigorous.
0.5: sound, with minor errors or details left out.
0: a fatal error, a severe gap, or not what was asked.
What is cited has to be proven as well; else the score is below 1."""

ANALYSE = f"""Analyse the solution of a problem, and score it:
{RUBRIC}

Problem:
{{problem}}

Solution:
{{proof}}

Go through its steps; say of each that you doubt whether it holds, and why. Reply in this form:
{OPENING}
the analysis
{CLOSING}
\\boxed{{0, 0.5 or 1}}"""

META = f"""Analyse the analysis of a solution. It was asked to score the solution so:
{RUBRIC}

Judge what it objects to, and nothing else: what it accepts or misses does not count against it.
0: none of its objections is justified.
0.5: some are and some are not; or all are, but it misstates something, or its score does not follow from them.
1: neither. An analysis that objects to nothing has no objection that is not justified.

Problem:
{{problem}}

Solution:
{{proof}}

Analysis:
{{analysis}}

Reply in this form:
{OPENING}
your analysis of the analysis
{CLOSING}
\\boxed{{0, 0.5 or 1}}"""

PROVE = f"""Solve the problem, with a complete proof. It will be scored so:
{RUBRIC}

Problem:
{{problem}}

Then analyse your own solution in the same way, and score it honestly: a flaw that is admitted is better than one that
is denied. Reply in this form:
## Solution
the proof
## Self-Evaluation
{OPENING}
the analysis
{CLOSING}
\\boxed{{0, 0.5 or 1}}"""

REFINE = """{problem}

A solution that was written before, and an analysis of it:

{proof}

{analysis}

Write a better one, in the same form; keep what is sound."""
