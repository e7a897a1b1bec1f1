"""A run looks at all of its data before a step, where its curriculum wants that, and keeps what it found."""

from __future__ import annotations

from typing import Any, cast

from assay.curriculum.base import Surveying
from assay.errors import RunError
from assay.learning.survey import look
from assay.records.surveys import Piece, plain, survey_file
from assay.training.interrupt import Interrupt
from assay.training.state import State


def survey(trainer: State, interrupt: Interrupt) -> None:
    """Have the curriculum look at its data, if that is due before the next step.

    Every piece that is found is kept in the run's folder at once; what is there already of the same tasks, found by the
    same weights, is not asked again. Each piece draws from a generator of its own, so that the steps that follow do not
    depend on how often the run was stopped on the way.

    Raises:
        Stopped: asked to stop; the pieces so far are kept.
        RunError: what the curriculum found earlier, and still goes by, is not in the folder any more.
    """
    if not hasattr(trainer.curriculum, "survey"):
        return
    curriculum = cast(Surveying, trainer.curriculum)
    if (noted := getattr(curriculum, "wanting", None)) is not None:
        rows = [row for piece in trainer.folder.stored_survey(noted) for row in piece.rows]
        if not rows:
            raise RunError(
                f"what was noted before step {noted + 1} is not in {survey_file(trainer.folder.path, noted)} any more; "
                "put it back, or start again in another run.dir"
            )
        curriculum.recall(rows)  # type: ignore[attr-defined]  # one that wants its rows takes them
    asks = curriculum.survey(trainer.step)
    if not asks:
        return
    # What is found holds for these weights alone: a checkpoint of them is what makes it worth keeping.
    trainer.save()
    trainer.keeper.sync()
    size = max(1, trainer.config.rollout.max_rows // max(ask.n for ask in asks))
    stored, whole = trainer.folder.stored_survey(trainer.step), True
    pieces: list[Piece] = []
    with trainer.reporter.progress("look at the data", len(asks)) as tick:
        for begin in range(0, len(asks), size):
            some = asks[begin : begin + size]
            ids = [ask.task.id for ask in some]
            whole = whole and len(pieces) < len(stored) and stored[len(pieces)].tasks == ids
            if whole:
                pieces.append(stored[len(pieces)])
            else:
                interrupt.check()
                rng = trainer.random.fresh(f"survey/{trainer.step}/{begin}")
                found: list[dict[str, Any]] = look(
                    curriculum,
                    some,
                    trainer.looks,
                    trainer.engine,
                    trainer.verifier,
                    trainer.method,
                    trainer.models,
                    rng,
                )
                piece = Piece(ids, plain(trainer.ranks.broadcast(found)))
                trainer.folder.add_survey(trainer.step, pieces, piece)
                pieces.append(piece)
            tick(begin + len(some))
    line = curriculum.settle(trainer.step, [row for piece in pieces for row in piece.rows])
    trainer.reporter.line(line)
    if getattr(curriculum, "again", bool)():
        trainer.start_again()
