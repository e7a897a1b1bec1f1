"""Responses of a group ranked by a judge of pairs, in a tournament."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.engines.asking import ask, filled, judge_of, seed_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.tournaments.double_elimination import Match, Result, double_elimination
from assay.verify.pair_critique import TEMPLATE
from assay.verify.pair_scores import untagged
from assay.verify.pair_verdict import pair_verdict


@part("reward", "tournament")
class Tournament:
    """R_i = 1 - place_i / (n - 1): 1 for the winner of a group's double elimination, 0 for the last of n.

    A judge of pairs, which writes a critique and a verdict, says who wins a match; who is shown first is drawn by lot,
    from the texts. A group in which a verdict could not be had, or of one response, has no reward, nor has a response
    whose verifier failed; take verifier ``none`` where nothing else judges. Terms: ``tournament``.

    Source: RM-NLHF (arXiv 2601.07349); the scale is a choice.

    Args:
        judge: an engine, or the specification of one, such as a judge that S051 has trained.
        template: with ``{question}``, ``{first}`` and ``{second}``; the reply ends as
            :func:`~assay.verify.pair_verdict.pair_verdict` reads it.
        max_tokens: of a reply, which is greedy.

    Raises:
        UsageError: no engine, or a template that does not show both answers.
    """

    def __init__(self, judge: Any, template: str = TEMPLATE, max_tokens: int = 4096):
        if any(f"{{{name}}}" not in template for name in ("question", "first", "second")):
            raise UsageError("reward 'tournament': the template must show {question}, {first} and {second}")
        self.judge, self.template = judge_of(judge, "reward 'tournament'"), template
        self.sampling = Sampling(max_tokens, 0.0)

    def __call__(self, batch: Batch) -> Reward:
        values, valid = torch.zeros_like(batch.rewards), judged(batch)
        under_way: list[tuple[list[int], Generator[list[Match], Sequence[bool], Result], list[Match]]] = []
        for group in batch.prompt_group.unique().tolist():
            rows = ((batch.prompt_group == group) & valid).nonzero()[:, 0].tolist()
            # Whatever the order of the rows.
            rows.sort(key=lambda i: (seed_of(batch.episodes[i].text), batch.episodes[i].text))
            if len(rows) < 2:
                valid[rows] = False
                continue
            play = double_elimination(len(rows))
            under_way.append((rows, play, next(play)))
        while under_way:
            said = iter(self.won(batch, [(rows[a], rows[b]) for rows, _, pairs in under_way for a, b in pairs]))
            going = []
            for rows, play, pairs in under_way:
                won = [next(said) for _ in pairs]
                known = [w for w in won if w is not None]
                if len(known) < len(won):
                    valid[rows] = False
                    continue
                try:
                    going.append((rows, play, play.send(known)))
                except StopIteration as over:
                    places = torch.tensor(over.value.places, dtype=values.dtype)
                    values[rows] = 1 - places / (len(rows) - 1)
            under_way = going
        return Reward(values, valid=valid, terms={"tournament": values})

    def won(self, batch: Batch, pairs: Sequence[tuple[int, int]]) -> list[bool | None]:
        """Return whether the first of each pair of rows is the better one; ``None`` where that cannot be had."""
        texts = [[batch.episodes[i].text for i in pair] for pair in pairs]
        turned = [bool(seed_of("\0".join(sorted(two))) % 2) is (two[0] < two[1]) for two in texts]
        prompts = [
            self.prompt(batch.tasks[i].question, *(reversed(two) if turn else two))
            for (i, _), two, turn in zip(pairs, texts, turned, strict=True)
        ]
        out: list[bool | None] = []
        for reply, turn in zip(ask(self.judge, prompts, self.sampling), turned, strict=True):
            found = None if reply.stop == "error" else pair_verdict(reply.text)
            out.append(None if found is None else (found == 1) is not turn)
        return out

    def prompt(self, question: str, first: str, second: str) -> str:
        """Return what the judge is asked."""
        return filled(self.template, question=question, first=untagged(first), second=untagged(second))
