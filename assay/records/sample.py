"""One judged response, and Parquet files of them that appear whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import RunError

if TYPE_CHECKING:
    import pyarrow as pa

TRUNCATED = ("length", "context", "turns", "limit")
"""Reasons to stop that mean a response was cut off."""
FAILED = "generation failed"
"""What the feedback on a response that could not be had begins with."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One judged response.

    Attributes:
        task_id, prompt: the task and its question as plain text.
        response: the text.
        score: degree of correctness in [0, 1]; 0 and without meaning where the verifier abstained.
        passed: right, wrong, or ``None`` where the verifier abstained.
        feedback: the verdict's feedback, or the reason of the abstention.
        length: tokens the policy made.
        stop: why the response ended; see :data:`TRUNCATED`.
        reward: what it was worth, where a reward was computed.
        answer: its final answer; responses to a task whose answers count as the same have the same text here. ``None``
            where it has none or was not looked for.
        confidence: how good something other than the verifier finds the response, larger is better; ``None`` unknown.
        logprob: mean log-probability per token under the distribution sampled from.
        entropy: mean entropy per token of the sampling distributions, in nats.
        sound: whether a judge found the reasoning right, apart from the answer; ``None`` where it was not asked or
            could not tell.
        meta: the plain values of the task's ``meta``, as a JSON object.
        votes: the opinions that ``sound`` was settled from, ``None`` for one that says neither; empty where none were
            asked for.
        turns, calls, invalid: the policy's turns in an environment, its tool calls, and the turns that could not be
            taken; 0 where the response is one turn.
    """

    task_id: str
    prompt: str
    response: str
    score: float
    passed: bool | None
    feedback: str
    length: int
    stop: str
    reward: float | None = None
    answer: str | None = None
    confidence: float | None = None
    logprob: float | None = None
    entropy: float | None = None
    sound: bool | None = None
    meta: str = "{}"
    votes: tuple[bool | None, ...] = ()
    turns: int = 0
    calls: int = 0
    invalid: int = 0

    @property
    def failed(self) -> bool:
        """Whether the model was asked and gave no response, as an endpoint that was down."""
        return self.stop == "error" and self.feedback.startswith(FAILED)


def plain_meta(meta: Any) -> str:
    """Return the numbers, texts and truth values of a task's meta as a JSON object."""
    return json.dumps({str(k): v for k, v in dict(meta).items() if isinstance(v, str | int | float | bool)})


def by_task(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Return the samples of each task, tasks in order of appearance."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.task_id, []).append(sample)
    return groups


def write_samples(path: Path, samples: Sequence[Sample], label: str, step: int) -> None:
    """Write one row per sample; the file appears whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from assay.records.files import write_file

    columns = {f.name: [_storable(getattr(s, f.name)) for s in samples] for f in fields(Sample)}
    n = len(samples)
    table = pa.table({"label": [label] * n, "step": [step] * n, **columns}, schema=_schema())
    table = table.replace_schema_metadata({"label": label, "step": str(step)})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, lambda p: pq.write_table(table, p, compression="zstd", write_page_checksum=True))


def read_samples(path: Path) -> tuple[list[Sample], str, int]:
    """Return the samples, label and step that :func:`write_samples` wrote.

    A column that an older version did not write has its default.

    Raises:
        RunError: the file is missing, damaged or something else.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path, page_checksum_verification=True).read()
    except (OSError, pa.ArrowException) as error:
        raise RunError(f"cannot read the evaluation {path}: {str(error).splitlines()[0]}") from None
    needed = {f.name for f in fields(Sample) if f.default is MISSING} | {"reward"}
    missing = sorted(needed - set(table.column_names))
    metadata: Mapping[bytes, bytes] = table.schema.metadata or {}
    if missing or b"label" not in metadata or b"step" not in metadata:
        raise RunError(f"{path} is not an evaluation: it lacks {', '.join(missing) or 'its label and step'}")
    there = [f.name for f in fields(Sample) if f.name in table.column_names]
    try:
        # A file from elsewhere may hold columns of other types.
        samples = table.select(there).cast(pa.schema([_schema().field(name) for name in there]))
        rows = [Sample(**row | {"votes": tuple(row.get("votes") or ())}) for row in samples.to_pylist()]
        return rows, metadata[b"label"].decode(), int(metadata[b"step"])
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise RunError(f"cannot read the evaluation {path}: {str(error).splitlines()[0]}") from None


def is_samples(path: Path) -> bool:
    """Say whether a Parquet file is one of :func:`write_samples`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowException):
        return False
    return b"label" in metadata and b"step" in metadata


def _storable(value: Any) -> Any:
    """Parquet holds UTF-8: a lone surrogate, which JSON can smuggle into a prompt, becomes a question mark."""
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


def _schema() -> pa.Schema:
    import pyarrow as pa

    text, whole, real, truth = pa.string(), pa.int64(), pa.float64(), pa.bool_()
    return pa.schema(
        {
            "label": text,
            "step": whole,
            "task_id": text,
            "prompt": text,
            "response": text,
            "score": real,
            "passed": truth,
            "feedback": text,
            "length": whole,
            "stop": text,
            "reward": real,
            "answer": text,
            "confidence": real,
            "logprob": real,
            "entropy": real,
            "sound": truth,
            "meta": text,
            "votes": pa.list_(truth),
            "turns": whole,
            "calls": whole,
            "invalid": whole,
        }
    )
