"""Where an evaluation's samples come from, some tasks at a time, and what may be asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from assay.errors import UsageError, nearest
from assay.evaluate.chain_judge import Rule, check_rule
from assay.records.sample import Sample

FILES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
"""Suffixes of files of samples."""

EQUAL = ("same", "exact", "verifier")
"""Ways for two answers of a task to be one."""

DETAILS = ("equal", "scorer", "chain", "votes", "rule", "every")
"""Options that say what is found out of samples, and leave samples and verdicts as they are."""

FLAGS = {"votes": "chain-votes", "rule": "chain-rule", "every": "chain-every"}
"""Options that the command line has other names for."""


@dataclass(frozen=True, slots=True)
class Options:
    """What may be asked for beside the target.

    Attributes:
        samples: responses per task of a model; the configuration's unless given.
        scorer: gives the confidence of each response, see :func:`assay.inference.scoring.scorers.as_scorer`; for a file
            of samples none unless given, else ``confidence``, the model's own.
        chain: judges the reasoning, for CoT-pass@k: see :func:`~assay.evaluate.chain_judge.as_chain_judge`; or a
            scorer of it.
        votes, rule, every: of a judge: its opinions about each chain, how they are settled, and whether it is asked
            about responses with a wrong answer too; see :class:`~assay.evaluate.detail.Detail`.
        equal: when two answers are one, see :class:`~assay.evaluate.detail.Detail`.
        verifier: judges, in place of the one each task's kind names; a file of samples is judged only with it.
        fields, reference, threshold, by: of a file of samples, see :class:`~assay.records.foreign.Reader`.
        workers: processes that judge a file of samples; the number of cores unless given, 0 judges in this process.
    """

    samples: int | None = None
    scorer: Any = None
    chain: Any = None
    equal: str = "same"
    verifier: Any = None
    fields: Mapping[str, str] = field(default_factory=dict)
    reference: str | None = None
    threshold: float | None = None
    by: tuple[str, ...] = ()
    workers: int | None = None
    votes: int = 3
    rule: Rule = "majority"
    every: bool = False

    def __post_init__(self) -> None:
        check_equal(self.equal)
        check_rule(self.rule)
        if self.votes < 1:
            raise UsageError(f"a judge of chains has 1 vote or more, not {self.votes}")

    def plain(self) -> dict[str, Any]:
        """Return the options as JSON holds them; an object of Python's in its own words."""
        return dict(json.loads(json.dumps(asdict(self), default=repr)))


def asks(options: Options) -> list[str]:
    """Return which of :data:`DETAILS` are asked for."""
    usual = Options()
    return [name for name in DETAILS if getattr(options, name) != getattr(usual, name)]


def check_equal(equal: str) -> None:
    """Raise UsageError unless ``equal`` names a way for answers to be the same."""
    if equal not in EQUAL:
        raise UsageError(f"answers are one by {', '.join(EQUAL)}, not by {equal!r}{nearest(equal, EQUAL)}")


class Source(Protocol):
    """Where samples come from, some tasks at a time.

    Attributes:
        about: what :meth:`~assay.records.evaluation_folder.EvaluationFolder.create` needs.
    """

    about: dict[str, Any]

    @property
    def usage(self) -> Mapping[str, Mapping[str, float]]:
        """What endpoints were asked since the start, by their part: :class:`~assay.engines.openai.costs.Usage`."""
        ...

    def start(self) -> None:
        """Load what is needed to make samples."""
        ...

    def make(self, part: int) -> list[Sample]: ...

    def tasks(self, part: int) -> int:
        """Number of tasks of a part."""
        ...

    def close(self) -> None: ...
