"""Values of single tokens: what a run stores of them, that storing them changes nothing, and how they are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from running import run
from viewed import found, viewing

from assay.environments.screens.devtools import DevTools, program
from assay.report.run import read_run

pytest.importorskip("duckdb", reason="needs assay[view]")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("kept") / "run", run={"rollout_tokens": True})


def test_what_is_stored_fits_the_samples(kept: Path) -> None:
    file = sorted((kept / "rollouts").glob("*.parquet"))[0]
    rows = pq.read_table(file).to_pylist()
    for row in rows:
        names = [n for n in row if n.startswith("token/")]
        assert {"token/text", "token/logprob", "token/advantage", "token/origin", "token/policy_logprobs"} <= {*names}
        assert len({len(row[n]) for n in names if row[n] is not None}) == 1
        assert "".join(row["token/text"]) == row["response"]
        # the weights that sampled are those that are asked
        assert row["token/policy_logprobs"] == pytest.approx(row["token/logprob"], abs=1e-3)
        assert sum(row["token/advantage"]) / row["length"] == pytest.approx(row["advantage"], abs=1e-5)
        assert row["version"] == row["step"] - 1 and row["sample"] == rows.index(row)
    assert not read_run(kept).notes


def test_storing_tokens_changes_no_step(kept: Path, tmp_path: Path) -> None:
    plain = run(tmp_path / "run")
    assert [e.metrics() for e in read_run(plain).evaluations] == [e.metrics() for e in read_run(kept).evaluations]
    assert untimed(read_run(plain).metrics["rl"]) == untimed(read_run(kept).metrics["rl"])


def untimed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if not k.startswith("time") and k != "tokens_per_second"} for row in rows]


@pytest.mark.skipif(program() is None, reason="needs Chromium (Debian: chromium-headless-shell)")
def test_tokens_are_shown_with_their_values(kept: Path) -> None:
    with viewing(kept) as server:
        row = found(server, "samples", source="run", sort="-length")["rows"][0]
        whole = found(server, "sample", source="run", file=row["file"], row=row["row"])["tokens"]
        browser = DevTools(1280, 900)
        ready = """new Promise((done) => { const look = () => document.querySelector(".token[data-i]") ? done(true) :
            requestAnimationFrame(look); look(); })"""
        for by in ("advantage", "logprob", "shift", "origin"):
            link = f"view=sample&source=run&file={row['file']}&row={row['row']}&by={by}"
            browser.call("Page.navigate", url=f"{server.link}&{link}")
            browser.call("Runtime.evaluate", expression=ready, awaitPromise=True)
            shown = browser.evaluate("[...document.querySelectorAll('.token[data-i]')].map((t) => t.textContent)")
            assert shown == [text or "␀" for text in whole["text"]]
        first = "document.querySelector('.token[data-i]')"
        browser.evaluate(f"{first}.dispatchEvent(new Event('pointerover', {{bubbles: true}}))")
        assert "token 0" in browser.evaluate("document.querySelector('.told').innerText")
        browser.close()
