"""S192: no part without its tags, no tag without a part, and the page is that of the parts as they are."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from assay import catalogue, registry
from assay.method import make_method
from assay.registry import PACKAGES, names
from assay.tables.taxonomy import (
    ANY,
    BESIDES,
    FEEDBACK,
    OPTIMISER,
    REWARD,
    SAID,
    UNSORTED,
    Tags,
    listed,
    page,
    rows,
    stale,
    tags,
    undecided,
)

DOCS = Path(__file__).parents[3] / "docs" / "taxonomy.md"
PARTS = rows()


AGAIN = "run: python -m assay.tables.taxonomy > docs/taxonomy.md"


def test_the_page_says_what_the_parts_say() -> None:
    """Of every part that it lists; one that is new is asked for by a warning, so that adding it is adding its file."""
    assert stale(DOCS.read_text()) is None, AGAIN
    if lacking := sorted({row[:2] for row in PARTS} - listed(DOCS.read_text())):
        warnings.warn(f"docs/taxonomy.md lacks {lacking}; {AGAIN}", stacklevel=1)


def test_a_page_that_is_wrong_is_noticed() -> None:
    text = page()
    assert listed(text) == {row[:2] for row in PARTS} and stale(text) is None
    assert "gone: credit grpo2" in (stale(text.replace("`grpo`, `log", "`grpo2`, `log")) or "")
    assert stale(text.replace("| actor-critic | credit `gae`, `turn_gae`; ", "| actor-critic | "))
    assert stale(page({row[:2] for row in PARTS} - {("credit", "rloo")})) is None


def test_every_registered_part_has_its_tags() -> None:
    seams = [s for s in PACKAGES if s not in ("logger", "callback")]  # these only look on
    assert [(s, n) for s, n, _ in PARTS] == [(s, n) for s in seams for n in names(s)]
    shown = listed(DOCS.read_text())
    assert not undecided([row for row in PARTS if row[:2] in shown]), "add a row to SAID in assay/tables/taxonomy.py"
    known = {"reward": REWARD, "feedback": FEEDBACK, "optimiser": (*OPTIMISER, *BESIDES, UNSORTED)}
    for seam, name, mine in PARTS:
        for kind, words in known.items():
            found = getattr(mine, kind)
            assert found == (ANY,) or set(found) <= set(words), f"{seam} {name}: {found}"
            assert found and len(set(found)) == len(found)


@pytest.mark.parametrize(("kind", "words"), [("reward", REWARD), ("feedback", FEEDBACK), ("optimiser", OPTIMISER)])
def test_every_tag_of_the_survey_has_a_part(kind: str, words: tuple[str, ...]) -> None:
    for word in words:
        assert any(word in getattr(mine, kind) for *_, mine in PARTS), word


def test_what_is_said_is_said_of_parts_that_exist() -> None:
    there = {(seam, name) for seam, name, _ in PARTS}
    assert not set(SAID) - there, "assay/tables/taxonomy.py speaks of parts that are gone"


def test_tags_that_anybody_would_give() -> None:
    assert tags("reward", "verdict") == Tags(("rule",), ("verifiable", "scalar"))
    assert tags("reward", "process").reward == ("process",) and tags("reward", "confidence").reward == ("AI",)
    assert tags("verify", "sql").reward == ("rule",) and tags("verify", "all_of") == Tags()
    assert tags("credit", "gae").optimiser == ("PPO", "actor-critic") and tags("credit", "rloo").optimiser == ("GRPO",)
    assert tags("objective", "dpo") == Tags(("human", "AI"), ("pairwise",), ("DPO",))
    assert tags("objective", "clip").optimiser[0] == "PPO"


def test_a_new_part_without_a_tag_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(strength: float = 1.0) -> None: ...

    monkeypatch.setitem(registry._PARTS["objective"], "unheard_of", made)
    found = [("objective", "unheard_of", tags("objective", "unheard_of"))]
    assert undecided(found) == ["objective unheard_of: optimiser"]
    assert "| unsorted | objective `unheard_of` |" in page() and "unsorted" not in DOCS.read_text()
    assert stale(DOCS.read_text()) is None, "a new part makes the page wrong"


@pytest.mark.parametrize(
    "parts",
    [
        {"credit": "gae", "objective": "clip"},
        {"credit": "gae", "objective": "reinforce"},
        {"objective": "soft_q"},
        {"reward": "preference_model", "credit": "gae", "objective": "clip"},
        {"rollout": "recorded", "select": "pairs", "objective": "dpo"},
        {"rollout": "single_turn", "select": "pairs", "objective": "dpo"},
        {"reward": "verdict", "credit": "grpo", "objective": "clip"},
    ],
)
def test_the_recipes_fit_together(parts: dict[str, str]) -> None:
    # The reward model is a folder of weights.
    assert make_method(**{k: v for k, v in parts.items() if v != "preference_model"}).objective is not None
    for seam, name in parts.items():
        assert f"{seam} `{name}`" in page()


def test_the_row_is_the_taxonomy() -> None:
    row = catalogue.find("S192")
    assert row.factory is not None and row.seams == ()
    assert row.factory() == {(seam, name): mine for seam, name, mine in PARTS}
