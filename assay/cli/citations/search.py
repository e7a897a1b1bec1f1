"""``assay citations train-retriever`` and ``expansions``: what finds documents learns from citations that are there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import tyro

from assay.cli.citations.check import ASKED, Claims, Corpus
from assay.cli.common import AsJson, print_table, say
from assay.errors import UsageError


def citations_train_retriever(
    claims: Claims,
    corpus: Corpus,
    out: Path = Path("retriever"),
    model: str | None = None,
    epochs: int = 3,
    lr: float | None = None,
    batch: int = 32,
    others: int = 1,
    seed: int = 0,
    as_json: AsJson = False,
) -> int:
    """Train an encoder that searches by meaning, from claims and the documents that they cite.

    Example: assay citations train-retriever claims.jsonl --corpus documents.jsonl --out retriever

    Args:
        claims: rows {"text", "source"}, and "title", "section" of the page where there are; most should be in order.
        corpus: rows {"id", "title", "text"}, with every document that is cited.
        out: folder to write, for assay citations check --embed.
        model: an encoder to start from, a folder or hub id; a small one from scratch if left out.
        epochs: passes over the claims.
        lr: 3e-5, or 1e-3 from scratch, unless given.
        batch: claims per step, whose documents are one another's negatives.
        others: documents per claim that are found by words and not cited, negatives as well.
        seed: of weights and order.
        as_json: print the loss of each epoch as JSON.
    """
    import numpy as np

    from assay.environments.search.corpus import read_corpus
    from assay.evaluate.citations import Retrieval, read_claims, sought
    from assay.verify.support.bi_encoder import BiEncoder

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out {out} is there already; name a new folder")
    if min(epochs, batch) < 1 or others < 0:
        raise UsageError("--epochs and --batch are 1 or more, and --others 0 or more")
    found = sought(read_claims(claims), Retrieval(read_corpus(corpus), others + 1), others)
    texts = [text for e in found for text in (e.claim, e.cited, *e.others)]
    encoder = BiEncoder.fresh(texts, seed) if model is None else BiEncoder(model)
    rate = lr or (1e-3 if model is None else 3e-5)
    history = encoder.fit(found, np.random.default_rng(seed), epochs, rate, batch)
    encoder.save(out)
    if as_json:
        print(json.dumps({"out": str(out), "claims": len(found), "epochs": history}))
        return 0
    print_table(("epoch", "loss"), tuple((str(n), f"{loss:.3f}") for n, loss in enumerate(history, 1)))
    say(f"{out}\nassay citations check {claims} --corpus {corpus} --embed {out}")
    return 0


def citations_expansions(
    claims: Claims,
    corpus: Corpus,
    out: Annotated[Path, tyro.conf.arg(metavar="TASKS.jsonl")] = Path("expansions.jsonl"),
) -> int:
    """Write tasks from which a model learns to name the source of a claim, which is then searched for too.

    Example: assay citations expansions claims.jsonl --corpus documents.jsonl --out tasks.jsonl

    Args:
        claims: rows {"text", "source"}; those whose source has no title are left out.
        corpus: rows {"id", "title", "text"}.
        out: file of rows {"prompt", "answer"}; what a recipe says of them is printed.
    """
    from assay.engines.asking import filled
    from assay.environments.search.corpus import read_corpus
    from assay.evaluate.citations import read_claims, sources
    from assay.records.files import write_text

    found = sources(read_claims(claims), read_corpus(corpus))
    if not found:
        raise UsageError(f"{claims}: no claim cites a document that has a title")
    rows = [{"prompt": filled(ASKED, text=claim.query), "answer": title} for claim, title in found]
    write_text(out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    source = {"name": "file", "path": str(out), "solution": "answer", "kind": "text"}
    table = "\n".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in source.items())
    say(
        f"{len(rows)} tasks, for a recipe whose warm-up learns from them:\n\n[tasks.source]\n{table}\n\n[warmup]\n"
        f"steps = 300\n\nassay citations check {claims} --corpus {corpus} --expand RUN"
    )
    return 0
