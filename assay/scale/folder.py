"""A run's folder as ranks share it: rank 0 reads and writes, the others are told what it read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from assay.batch import Batch
from assay.config import RunConfig, dump_config
from assay.records.evaluation import Evaluation
from assay.records.files import finish_folder, start_folder
from assay.records.run_folder import RunFolder
from assay.records.sign import Sign
from assay.records.surveys import Piece
from assay.scale.ranks import Ranks

T = TypeVar("T")


class SharedFolder(RunFolder):
    """See :class:`assay.records.run_folder.RunFolder`. Ranks on several machines need it on a disk that all of them
    see.

    Args:
        ranks: of the run.
        path, config: of the folder.
        own: the folder itself, on rank 0.
    """

    def __init__(self, ranks: Ranks, path: Path, config: RunConfig, own: RunFolder | None):
        self.ranks, self.path, self.config, self.own = ranks, path, config, own

    @classmethod
    def opened(cls, ranks: Ranks, open_: Callable[[], RunFolder]) -> RunFolder:
        """Let rank 0 make or open the folder; for a process on its own it is what ``open_`` returns.

        Raises:
            UsageError: on every rank, what rank 0 met with.
        """
        if ranks.size == 1:
            return open_()
        own: list[RunFolder] = []

        def opened() -> tuple[Path, RunConfig]:
            own.append(open_())
            return own[0].path, own[0].config

        path, config = ranks.once(opened)
        return cls(ranks, path, config, own[0] if own else None)

    def _told(self, read: Callable[[RunFolder], T]) -> T:
        """Return on every rank what rank 0 gets of its folder, or raise its error."""
        return self.ranks.once(lambda: read(self.own))  # type: ignore[arg-type]  # called on rank 0 alone

    def log(self, stage: str, step: int, metrics: dict[str, float]) -> None:
        if self.own is not None:
            self.own.log(stage, step, metrics)

    def changed_code(self) -> list[str]:
        return self._told(lambda own: own.changed_code())

    def metrics(self) -> list[dict[str, Any]]:
        return self._told(lambda own: own.metrics())

    def save_rollouts(
        self, step: int, batch: Batch, version: int | None = None, tokens: Mapping[str, Any] | None = None
    ) -> None:
        if self.own is not None:
            self.own.save_rollouts(step, batch, version, tokens)

    def save_signs(self, signs: Sequence[Sign]) -> None:
        if self.own is not None:
            self.own.save_signs(signs)

    def stored_evaluation(self, label: str, step: int) -> Evaluation | None:
        return self._told(lambda own: own.stored_evaluation(label, step))

    def save_evaluation(self, evaluation: Evaluation) -> None:
        if self.own is not None:
            self.own.save_evaluation(evaluation)

    def stored_survey(self, step: int) -> list[Piece]:
        return self._told(lambda own: own.stored_survey(step))

    def add_survey(self, step: int, pieces: Sequence[Piece], piece: Piece) -> None:
        if self.own is not None:
            self.own.add_survey(step, pieces, piece)

    def evaluations(self) -> list[Evaluation]:
        return self._told(lambda own: own.evaluations())

    def has(self, path: Path) -> bool:
        return self._told(lambda own: own.has(path))

    def put(self, path: Path, write: Callable[[Path], Any], config: bool = True) -> None:
        """Every rank calls ``write`` on the same folder, which is moved to its place when all are done."""
        temporary = self.ranks.once(lambda: start_folder(path))
        write(temporary)
        self.ranks.barrier()

        def finished() -> None:
            if config:
                (temporary / "config.toml").write_text(dump_config(self.config), encoding="utf-8")
            finish_folder(temporary, path)

        self.ranks.once(finished)

    def sync_metrics(self) -> None:
        self._told(lambda own: own.sync_metrics())

    def prune(self) -> None:
        self._told(lambda own: own.prune())

    def forget_best(self, wanted: Collection[int]) -> None:
        self._told(lambda own: own.forget_best(wanted))

    def forget_after(self, stage: str, step: int) -> list[str]:
        return self._told(lambda own: own.forget_after(stage, step))

    def close(self) -> None:
        if self.own is not None:
            self.own.close()
