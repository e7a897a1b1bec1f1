"""The reward of a response that looks things up: answer, form, length, queries, confidence gained, image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import RunError, UsageError
from assay.from_file import from_file
from assay.ops.turns import own_turns
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.text.retrieval_terms import (
    Pieces,
    accuracy,
    answer_in,
    form,
    gain,
    length,
    looked_at,
    queries_in,
    semantics,
)
from assay.signals.turns.option_confidence import OptionConfidence, label_of
from assay.types import Episode, Task, Verdict

TERMS = ("accuracy", "format", "length", "semantics", "gain", "image")
CONFIDENCE = OptionConfidence()


@part("reward", "retrieval")
class Retrieval:
    """R_i = accuracy_i + format_i + length_i + semantics_i + gain_i + .1 image_i, of those in ``terms``.

    Each is a function of :mod:`assay.rewards.text.retrieval_terms`. What was retrieved is the environment's word
    (``turn.info["retrieved"]``, as environment ``cases`` keeps it), never the policy's. image is the mean similarity of
    the task's image, ``meta["image"]``, with the queries, or with the response's first sentence where there are none;
    a task without an image has none. A response that retrieved nothing has gained nothing. A task whose reference is no
    label and no text is worth its verdict's score.

    Source: Med-RwR (arXiv 2510.18303), its authors' code.

    Args:
        terms: some of ``accuracy``, ``format``, ``length``, ``semantics``, ``gain``, ``image``.
        entities: medical terms, or a file with one on each line, beside those in ``task.meta["entities"]``.
        similarity: function of images and as many texts that returns as many numbers, or ``path/to/file.py:function``;
            wanted for ``image``.
        shortest, longest: characters of the policy's own that cost nothing.
        most: entities of the queries that cost nothing.

    Raises:
        UsageError: no such term, or bounds that leave nothing; ``image`` without ``similarity``; a file that cannot be
            read.
    """

    def __init__(
        self,
        terms: Sequence[str] = TERMS[:-1],
        entities: Path | Sequence[str] = (),
        similarity: Callable[[list[Any], list[str]], Any] | str | None = None,
        shortest: int = 512,
        longest: int = 3072,
        most: int = 5,
    ):
        if not terms or not {*terms} <= {*TERMS} or not 0 <= shortest <= longest or most < 0:
            raise UsageError(
                f"reward 'retrieval': terms {list(terms)} are some of {', '.join(TERMS)}; shortest {shortest} is at "
                f"least 0 and at most longest {longest}, and most {most} at least 0"
            )
        if "image" in terms and similarity is None:
            raise UsageError("reward 'retrieval': term image needs similarity, such as 'mine.py:function'")
        self.terms, self.shortest, self.longest, self.most = tuple(terms), shortest, longest, most
        named = isinstance(similarity, str)
        self.similarity: Any = from_file(str(similarity), "similarity function") if named else similarity
        self.entities = _lines(entities)

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({CONFIDENCE} if "gain" in self.terms else ())

    def __call__(self, batch: Batch) -> Reward:
        rows = [self.worth(task, episode) for task, episode in zip(batch.tasks, batch.episodes, strict=True)]
        if "gain" in self.terms:
            for row, found, episode in zip(rows, batch.signals[CONFIDENCE.name].tolist(), batch.episodes, strict=True):
                looked = any(turn.info.get("retrieved") for turn in own_turns(episode))
                row["gain"] = gain(tuple(found[0]), tuple(found[1]), row["accuracy"] > 0) if looked else 0.0
        if "image" in self.terms:
            for row, value in zip(rows, self.images(batch), strict=True):
                row["image"] = 0.1 * value
        terms = {name: batch.rewards.new_tensor([row[name] for row in rows]) for name in self.terms}
        plain = [self.plain(task, verdict) for task, verdict in zip(batch.tasks, batch.verdicts, strict=True)]
        scores = batch.rewards.new_tensor([verdict.score for verdict in batch.verdicts])
        values = torch.where(torch.tensor(plain, dtype=torch.bool), scores, torch.stack(list(terms.values())).sum(0))
        return Reward(values, valid=judged(batch), terms=terms)

    def worth(self, task: Task, episode: Episode) -> dict[str, float]:
        """Return the terms that texts tell of."""
        said = pieces(episode)
        label, gold = label_of(task), gold_of(task)
        right = accuracy(answer_in(said), label, gold)
        return {
            "accuracy": right,
            "format": form(said, right == 5),
            "length": length(said, self.shortest, self.longest),
            "semantics": semantics(
                queries_in(said),
                [text for text, own in said if not own],
                gold or "",
                [*self.entities, *task.meta.get("entities", ())],
                self.most,
            ),
        }

    def images(self, batch: Batch) -> list[float]:
        """Return the mean similarity of each task's image with what was said of it; 0 without an image.

        Raises:
            RunError: the function returns something else than a number for each.
        """
        said = [pieces(episode) for episode in batch.episodes]
        texts = [looked_at(queries_in(row), "".join(text for text, own in row if own)) for row in said]
        pairs = [
            (i, task.meta["image"], text)
            for i, (task, row) in enumerate(zip(batch.tasks, texts, strict=True))
            for text in row
            if "image" in task.meta
        ]
        if not pairs:
            return [0.0] * len(texts)
        found = [float(x) for x in self.similarity([image for _, image, _ in pairs], [text for _, _, text in pairs])]
        if len(found) != len(pairs) or not all(abs(x) < float("inf") for x in found):
            raise RunError(
                f"reward 'retrieval': similarity of {len(pairs)} pairs gave {found[:5]}, not as many numbers"
            )
        total = [0.0] * len(texts)
        for (i, _, _), value in zip(pairs, found, strict=True):
            total[i] += value / len(texts[i])
        return total

    reads_more = "no task has options or a text to compare with"

    def plain(self, task: Task, verdict: Verdict) -> bool:
        """Whether nothing can be told of a task's answers."""
        return gold_of(task) is None and not label_of(task)


def pieces(episode: Episode) -> Pieces:
    """Return a response as what the policy wrote, and what was retrieved for it."""
    out: list[tuple[str, bool]] = []
    for turn in own_turns(episode):
        out.append((turn.text or (episode.text if not episode.turns else ""), True))
        if found := turn.info.get("retrieved"):
            out.append((str(found), False))
    return out


def gold_of(task: Task) -> str | None:
    """Return the text of the right option, or of an open question's reference; ``None`` where there is none."""
    label = label_of(task)
    listed: Any = task.meta.get("options")
    if isinstance(task.reference, dict):
        listed = task.reference.get("options", listed)
    if not label:
        return task.reference if isinstance(task.reference, str) and task.reference.strip() else None
    if isinstance(listed, dict):
        return listed.get(label)
    at = ord(label.upper()) - ord("A")
    return listed[at] if listed and at < len(listed) else None


def _lines(entities: Path | str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(entities, Path | str):
        return tuple(entities)
    try:
        return tuple(filter(None, (line.strip() for line in Path(entities).read_text("utf-8").splitlines())))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"reward 'retrieval': entities of {entities} cannot be read: {error}") from None
