"""Responses that lean on documents: quotations, citations, evidence, verbatim shares."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile

from assay.verify.support.cross_encoder import CrossEncoder
from fuzz.entry import Case, entry

FOX = "The quick brown fox jumps over the lazy dog, and then it sleeps for hours."
PARIS = "Paris is the capital of France; it lies on the Seine. It\u2019s \u201cthe city of light\u201d."
DOCUMENTS = [FOX, PARIS]

entry(
    "persona",
    marked=False,
    cases=[
        Case({"type": "localize", "contexts": 3, "answer": 3}, ["\\boxed{3}", "Answer: 3", "So it is 3"]),
        Case({"type": "verify", "answer": "no"}, ["No.", "yes? no"]),
        Case({"type": "text_qa", "answer": "baker"}, ["She is a baker."]),
        Case({"type": "text_qa", "answer": None}, ["I cannot determine that from the provided context."]),
    ],
)
entry(
    "quotes",
    soup="quotes",
    apart=False,
    cases=[
        Case(DOCUMENTS, ['It says "quick brown fox jumps".', '"The quick brown fox ... it sleeps for hours"']),
        Case({"documents": {"p": PARIS}}, ["\u201cthe capital of France\u201d"]),
    ],
)
entry(
    "citations",
    soup="quotes",
    apart=False,
    cases=[
        Case({"documents": DOCUMENTS, "gold": [1]}, ['It "jumps over the lazy dog" [1].', "A fox [1]."]),
        Case({"documents": {"a": FOX, "b": PARIS}, "gold": ["a", "b"]}, ["Foxes [a] and cities [b]."]),
        Case({"documents": DOCUMENTS}, ["Light [2]."]),
    ],
)
for score in ("f", "validity", "exact"):
    entry(
        f"evidence/{score}",
        soup="quotes",
        options={"score": score},
        cases=[
            Case(
                ["1", "3"],
                ["<useful_chunks><CHUNK_1>, <CHUNK_3></useful_chunks>", "<useful_chunks>[1] [3]</useful_chunks>"],
            ),
            Case({"evidence": [2]}, ["So: <useful_chunks>[[2]]</useful_chunks>"]),
        ],
    )
entry(
    "claim",
    soup="quotes",
    marked=False,
    cases=[
        Case(
            {"label": "REFUTE", "evidence": ["a", "b"]},
            ["<answer>Label: REFUTE, Evidence: [[a]] [[b]]</answer>", "<answer>label: refute [[b]][[a]][[c]]</answer>"],
        ),
        Case({"label": "NOT ENOUGH INFO", "evidence": []}, ["<answer>Label: NOT ENOUGH INFO</answer>"]),
    ],
)


@functools.cache
def encoder() -> str:
    """A folder with a model that knows nothing."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    CrossEncoder.fresh([FOX, PARIS], hidden=8, layers=1, heads=1, max_length=32).save(folder)
    return folder


entry(
    "supported",
    soup="quotes",
    options={"model": encoder},
    marked=False,
    cases=[
        Case(
            {"claim": "The fox sleeps.", "sources": {"a": FOX}},
            ["<answer>[[a]]</answer>", "<answer>see [[ a ]]</answer>"],
        ),
        Case({"claim": "Paris is a capital.", "sources": {"b": PARIS}}, ["I cite <answer>[[b]]</answer>"]),
    ],
)
for score in ("quip", "coverage"):
    entry(
        f"verbatim/{score}",
        soup="quotes",
        options={"score": score},
        cases=[Case(DOCUMENTS, [FOX, PARIS]), Case({"documents": "z" * 100}, ["z" * 50])],
    )
