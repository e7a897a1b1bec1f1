"""Why work was not done, told by what it left and by what was said on the way."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from assay.environments.opinion import admits_failure
from assay.evaluate.process_judge import failures
from assay.records.sample import TRUNCATED
from assay.types import NOTE, Message, Verdict

UNSAFE = "unsafe"
BUDGET = "budget"
CLAIMED = "claimed without artefact"
NEVER = "never acted"
IGNORED = "ignored tool error"
WRONG = "wrong path or format"
CONTENT = "wrong content"
CLASSES = (NEVER, IGNORED, CLAIMED, WRONG, CONTENT, BUDGET, UNSAFE)
CLAIM = re.compile(
    r"\b(done|complete|completed|finished|wrote|written|created|saved|fixed|mended|solved|success\w*)\b", re.IGNORECASE
)


def failure_class(verdict: Verdict, stop: str, reply: str, trace: Sequence[Message], took: Mapping[str, float]) -> str:
    """Return the first of these that holds of a run; empty for one that passed or was not judged.

    - ``unsafe``: something was changed that had to be left alone;
    - ``budget``: turns, tokens, the context or the time were spent;
    - ``claimed without artefact``: the reply says that it is done, and none of what was asked for is there;
    - ``never acted``: no tool was used and no file changed;
    - ``ignored tool error``: after the last failure of a tool no tool was used again;
    - ``wrong path or format``: something asked for is not where it should be, or not in the form it should have;
    - ``wrong content``: it is all there, and says something else.

    Args:
        verdict: whose parts are the checks, with notes of what is wrong.
        stop: why the run ended.
        reply: what was said last.
        trace: the conversation.
        took: ``changed``, files that differ from before.
    """
    if verdict.passed is not False:
        return ""
    notes = [name.split(NOTE)[1] for name in verdict.parts if NOTE in name]
    changed = took.get("changed", 0)
    nothing = not changed or (verdict.score == 0 and set(notes) == {"missing"})
    used = [i for i, message in enumerate(trace) if message["role"] == "tool"]
    failed = failures(trace)
    if UNSAFE in notes:
        return UNSAFE
    if stop in TRUNCATED:
        return BUDGET
    if CLAIM.search(reply) and not admits_failure(reply) and nothing:
        return CLAIMED
    if not used and not changed:
        return NEVER
    if failed and failed[-1] == used[-1]:
        return IGNORED
    return WRONG if "missing" in notes or "format" in notes else CONTENT
