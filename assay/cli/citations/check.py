"""``assay citations``: which claims of a text do their sources not support, and which would?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, print_table, say
from assay.errors import RunError, UsageError

if TYPE_CHECKING:
    from assay.evaluate.citations import Retrieval

ASKED = "A page says: {text}\nName, in a few words, the document that would be cited for this.\n"
Corpus = Annotated[Path, tyro.conf.arg(metavar="DOCUMENTS.jsonl")]
Claims = Annotated[Path, Positional, tyro.conf.arg(metavar="CLAIMS.jsonl")]


def citations_train(
    claims: Claims,
    corpus: Corpus,
    out: Path = Path("citations"),
    model: str | None = None,
    how: Literal["hard_em", "first", "random", "soft_em", "uniform"] = "soft_em",
    epochs: int = 3,
    lr: float | None = None,
    batch: int = 16,
    retrieved: int = 20,
    passages: int = 8,
    words: int = 100,
    seed: int = 0,
    as_json: AsJson = False,
) -> int:
    """Train a model that scores how well a passage supports a claim, from claims and the documents that they cite.

    Example: assay citations train claims.jsonl --corpus documents.jsonl --model sentence-transformers/all-MiniLM-L6-v2

    Args:
        claims: rows {"text", "source"}, and "title", "section" of the page where there are; most should be in order.
        corpus: rows {"id", "title", "text"}, with every document that is cited.
        out: folder to write.
        model: an encoder to start from, a folder or hub id; a small one from scratch if left out.
        how: which passage of the cited document counts: hard_em and soft_em go by the model's own scores.
        epochs: passes over the claims.
        lr: 3e-5, or 1e-3 from scratch, unless given.
        batch: claims per step.
        retrieved: other documents that are looked for, whose passages should score lower.
        passages: of the cited document, and of the others, per claim.
        words: of a passage.
        seed: of weights and order.
        as_json: print the loss of each epoch as JSON.
    """
    import numpy as np

    from assay.environments.search.corpus import read_corpus
    from assay.evaluate.citations import Retrieval, examples, read_claims
    from assay.verify.support.cross_encoder import CrossEncoder

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out {out} is there already; name a new folder")
    if min(epochs, batch, passages, retrieved) < 1:
        raise UsageError("--epochs, --batch, --passages and --retrieved are 1 or more")
    found = examples(read_claims(claims), Retrieval(read_corpus(corpus), retrieved), words, passages)
    if model is None:
        texts = [text for e in found for text in (e.claim, *e.positives, *e.negatives)]
        encoder = CrossEncoder.fresh(texts, seed)
    else:
        encoder = CrossEncoder(model)
    rng = np.random.default_rng(seed)
    history = encoder.fit(found, rng, how, epochs, lr or (1e-3 if model is None else 3e-5), batch)
    encoder.save(out)
    if as_json:
        print(json.dumps({"out": str(out), "claims": len(found), "epochs": [[p.loss, p.first] for p in history]}))
        return 0
    rows = [(str(n), f"{p.loss:.3f}", f"{p.first:.3f}") for n, p in enumerate(history, 1)]
    print_table(("epoch", "loss", "cited first"), tuple(rows))
    say(f"{out}\nassay citations check {claims} --corpus {corpus} --model {out}")
    return 0


def citations_check(
    claims: Claims,
    corpus: Corpus,
    model: Path = Path("citations"),
    out: Annotated[Path | None, tyro.conf.arg(metavar="CHECKED.jsonl")] = None,
    retrieved: int = 100,
    embed: str | None = None,
    expand: str | None = None,
    words: int = 100,
    worst: float = 0.1,
    as_json: AsJson = False,
) -> int:
    """Rank claims by how little their sources support them, and propose better sources.

    Example: assay citations check claims.jsonl --corpus documents.jsonl --model citations --out checked.jsonl

    Args:
        claims: rows {"text", "source"}; "better" (the right document) and "fails" (true or false), where they are
            known, are what is measured against.
        corpus: rows {"id", "title", "text"}.
        model: folder that assay citations train wrote.
        out: file of one row a claim, the worst first; what is found is only counted without it.
        retrieved: documents looked for by words, and as many by meaning.
        embed: what to search by meaning with: a folder that assay citations train-retriever wrote, or a model of
            sentence-transformers, such as all-MiniLM-L6-v2 with assay[embeddings].
        expand: a model that writes what a source might be called, which is searched for too: a run (see assay
            citations expansions), a folder or hub id, or openai:MODEL@http://host/v1.
        words: of a passage, as in training.
        worst: share of the claims that is flagged.
        as_json: print the measures as JSON.
    """
    from assay.environments.search.corpus import read_corpus
    from assay.evaluate.citations import Retrieval, check, embedding, measures, read_claims
    from assay.records.files import write_text
    from assay.statistics.rate import rate_data
    from assay.verify.support.cross_encoder import CrossEncoder

    if not 0 < worst <= 1:
        raise UsageError(f"--worst is a share of the claims, such as 0.1, not {worst:g}")
    read = read_claims(claims)
    if not read:
        raise UsageError(f"{claims} has no claims")
    encoder = CrossEncoder(model)
    retrieval: Retrieval = Retrieval(
        read_corpus(corpus),
        retrieved,
        embedding(embed) if embed is not None else None,
        _expansion(expand) if expand is not None else None,
    )
    checked = check(read, retrieval, encoder, words)
    found = measures(checked, retrieved, worst)
    if out is not None:
        rows = [
            {
                "id": c.claim.id,
                "text": c.claim.text,
                "source": c.claim.source,
                "score": round(c.score, 4),
                "flagged": n < max(1, round(worst * len(checked))),
                "proposal": c.proposal,
                "ranked": [[name, round(score, 4)] for name, score in c.ranked[:5]],
            }
            for n, c in enumerate(checked)
        ]
        write_text(out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    if as_json:
        print(json.dumps({"claims": len(checked), **{name: rate_data(r) for name, r in found.items()}}))
        return 0
    table = [(c.claim.id, f"{c.score:.2f}", c.claim.source, c.proposal or "", c.claim.text[:60]) for c in checked[:10]]
    print_table(("claim", "score", "cites", "better", "text"), tuple(table))
    for name, r in found.items():
        say(f"{name} {r.value:.3f} [{r.low:.3f}, {r.high:.3f}], {r.count} of {r.total}")
    if out is not None:
        say(str(out))
    return 0


def _expansion(target: str) -> Callable[[list[str]], list[str]]:
    """Return what a model writes of each query."""
    from assay.engines.asking import ask, filled
    from assay.engines.base import Sampling
    from assay.engines.target import resolve

    engine = resolve(target, ()).open()

    def expand(queries: list[str]) -> list[str]:
        replies = ask(engine, [filled(ASKED, text=query) for query in queries], Sampling(32, temperature=0.0))
        if replies and all(reply.stop == "error" for reply in replies):
            raise RunError(
                f"--expand {target}: every request failed: {replies[0].meta.get('error', 'no reason given')}"
            )
        return ["" if reply.stop == "error" else reply.text for reply in replies]

    return expand
