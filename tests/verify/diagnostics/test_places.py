"""Selectors, and where places go."""

from __future__ import annotations

import pytest

from assay.verify.diagnostics.places import (
    Anchor,
    Candidate,
    Range,
    confidence,
    jaccard,
    module_of,
    ordered,
    relocate,
    resolve,
    score,
)

CODE = "class A:\n    def f(self, x):\n        if x:\n            return 1\n        return 2\n\n\n"
CODE += "def f(x):\n    return x\n"
FILES = {"k/m.py": CODE, "k/n.py": "def f(y):\n    return y\n", "k/__init__.py": "", "bad.py": "def ("}


def places(selector: str) -> list[tuple[int, ...]]:
    return [(p.line, p.column, p.end_line, p.end_column) for p in (one.place for one in resolve(selector, FILES))]


def test_selectors() -> None:
    assert places("k/m.py@L2:C5") == [(2, 5, 2, 5)] and places("k/m.py@L2:C5-L3:C1") == [(2, 5, 3, 1)]
    for none in (
        "k/m.py@L99:C1",
        "k/m.py@L1:C99",
        "k/m.py@L3:C1-L2:C1",
        "gone.py@L1:C1",
        "k/m.py@L0:C1",
        "nonsense",
        "",
    ):
        assert places(none) == []
    assert places("py://k.m#A.f")[0] == (2, 5, 5, 17) and places("py://k.m#A.f:name")[0] == (2, 9, 2, 10)
    assert places("py://k.m#A.f:body")[0] == (3, 9, 5, 17) and places("py://k.m#A") == [(1, 1, 5, 17)]
    assert places("py://k.m#A.f:nothing") == [] == places("py://k.m#g")
    assert places("ast://k/m.py#A/f/if[0]") == [(3, 9, 4, 21)] and places("ast://k/m.py#Return[1]") == places(
        "ast://k/m.py#A/return[0]"
    )
    accents = {"a.py": "x = 'éé'; y = f('é')\ndef g(): return 'é'\n"}
    assert [c.place for c in resolve("ast://a.py#Call", accents)] == [Range("a.py", 1, 15, 1, 21)]
    assert resolve("py://a#g:body", accents)[0].place == Range("a.py", 2, 10, 2, 20)
    assert places("ast://k/m.py#A/f/if[1]") == [] == places("ast://bad.py#f") == places("ast://k/m.py#g")


def test_symbols_of_one_name_are_told_apart() -> None:
    found = resolve("py://k.m#f", FILES)
    assert found[0].place.line == 8 and found[0].score == 1.0 and found[0].evidence["ast"] == 1.0
    assert all(one.score < 1.0 for one in found[1:]) and len(found) == 3
    there = {(one.place.path, one.place.line): one for one in found}
    assert there["k/n.py", 1].score == pytest.approx(0.5 + 0 + 0.2 + 0.1)
    assert there["k/m.py", 2].score == pytest.approx(0.3 + 0.2 + 0.2 / 3 + 0.1)
    assert resolve("py://x.m#f", FILES)[0].evidence["module"] == 0.5


def test_scores() -> None:
    assert score(1, 1, 0.5, 0.2) == pytest.approx(0.82) and score(0.6, 1, 1, 1) == pytest.approx(0.80)
    assert score(0, 0, 0, 0) == 0 and score(1, 1, 1, 1) == pytest.approx(1)
    assert jaccard("a b", "b c") == 1 / 3 and jaccard("", "") == 1.0 and jaccard("a+b", "a + b") == 1.0
    assert module_of("k/m.py") == "k.m" and module_of("k/__init__.py") == "k"
    one = Candidate(Range("a", 1, 1, 1, 1), 0.8, {})
    assert confidence([]) == 0 and confidence([one]) == 0.8
    assert confidence([one, Candidate(Range("b", 1, 1, 1, 1), 0.8, {})]) == 0.4
    assert confidence([one, Candidate(Range("b", 1, 1, 1, 1), 0.7, {})]) == 0.8
    other = Candidate(Range("a", 1, 1, 1, 2), 0.8, {})
    best = Candidate(Range("z", 1, 1, 1, 1), 0.9, {})
    assert ordered([other, one, best]) == [best, one, other]


def test_relocation() -> None:
    anchor = Anchor("k/m.py", 4, "            return 1", "A.f")
    assert [c.place for c in relocate(anchor, FILES, unchanged=True)] == [Range("k/m.py", 4, 1, 4, 21)]
    assert relocate(anchor, FILES, unchanged=True)[0].score == 1.0
    assert relocate(Anchor("k/m.py", 99, "x"), FILES, unchanged=True) == []
    moved = {**FILES, "k/m.py": "import os\nimport sys\n\n" + CODE}
    found = relocate(anchor, moved)
    assert found[0].place == Range("k/m.py", 7, 1, 7, 21) and found[0].evidence["tokens"] == 1.0
    assert found[0].score == pytest.approx(0.5 + 0.2 + 0.2 + 0.1 * 40 / 43)
    # The other return of the method comes next, then those of other definitions.
    assert found[1].place.line == 8 and found[1].evidence["tokens"] == 1 / 3 and found == ordered(found)
    assert {c.place.path for c in found} == {"k/m.py", "k/n.py"}
    elsewhere = {"k/o.py": CODE}
    best = relocate(anchor, elsewhere)[0]
    assert best.place.path == "k/o.py" and best.score == pytest.approx(0.5 + 0 + 0.2 + 0.1)
    two = relocate(Anchor("k/m.py", 8, "def f(x):\n    return x", "f"), moved)[0].place
    assert two == Range("k/m.py", 11, 1, 12, 13)
    assert relocate(Anchor("k/m.py", 1, "no such words at all"), FILES) == []
