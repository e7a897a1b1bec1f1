"""Responses token by token in Parquet files, which appear whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from assay.errors import RunError
from assay.types import Episode

if TYPE_CHECKING:
    import pyarrow as pa


def write_responses(path: Path, responses: Mapping[str, Sequence[Episode]]) -> None:
    """Write one row per response: its task, text, why it ended, and of each token id, log-probability and entropy.

    Args:
        path: of the file.
        responses: of one turn each, by the id of their task; entropies where the engine reports them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from assay.records.files import write_file

    rows = [
        {
            "task_id": task,
            "response": episode.text.encode("utf-8", "replace").decode("utf-8"),
            "stop": episode.stop,
            "tokens": episode.tokens,
            "logprobs": episode.logprobs,
            "entropies": episode.entropies,
        }
        for task, episodes in responses.items()
        for episode in episodes
    ]
    table = pa.Table.from_pylist(rows, schema=_schema())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, lambda p: pq.write_table(table, p, compression="zstd", write_page_checksum=True))


def read_responses(path: Path, prompts: Mapping[str, np.ndarray]) -> dict[str, list[Episode]]:
    """Return what :func:`write_responses` wrote, by task.

    Args:
        path: of the file.
        prompts: the tokens of each task's prompt.

    Raises:
        RunError: the file is damaged, something else, or of a task without a prompt.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.ParquetFile(path, page_checksum_verification=True).read().cast(_schema()).to_pylist()
        out: dict[str, list[Episode]] = {}
        for row in rows:
            tokens = np.array(row["tokens"], dtype=np.int64)
            logprobs, entropies = (
                None if row[name] is None else np.array(row[name], dtype=np.float32)
                for name in ("logprobs", "entropies")
            )
            mask = np.ones(len(tokens), dtype=bool)
            prompt = prompts[row["task_id"]]
            made = Episode(prompt, tokens, mask, logprobs, row["response"], row["stop"], entropies)
            out.setdefault(row["task_id"], []).append(made)
        return out
    except (OSError, pa.ArrowException, ValueError, KeyError) as error:
        raise RunError(f"{path} is damaged ({str(error).splitlines()[0]}); remove it to have it made again") from None


def _schema() -> pa.Schema:
    import pyarrow as pa

    real = pa.list_(pa.float32())
    return pa.schema(
        {
            "task_id": pa.string(),
            "response": pa.string(),
            "stop": pa.string(),
            "tokens": pa.list_(pa.int32()),
            "logprobs": real,
            "entropies": real,
        }
    )
