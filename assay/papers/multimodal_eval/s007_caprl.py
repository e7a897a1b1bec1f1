"""S007: a description of a picture is worth what a reader without eyes gets right of questions about it."""

from __future__ import annotations

from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.text.caption_reader import CaptionReader, CaptionReward
from assay.tasks.making.recipe import pipeline
from assay.tasks.making.visible import Visible
from assay.tasks.making.work import Pipeline
from assay.tasks.making.written_choices import WrittenChoices
from assay.tasks.pictures.captions import Captions
from assay.verify.choice.questions import Question, questions_of

__all__ = ["CaptionReader", "Captions", "Question", "Visible", "WrittenChoices", "caprl", "questions_of", "visible"]


@paper(
    "S007",
    "CapRL",
    arxiv="2509.22647",
    seams=["tasks", "verify", "reward", "credit", "objective", "evaluate"],
    essentials={
        "a reader answers from the caption alone, and what it gets right is the reward": "test_by_hand",
        "options are shuffled for each caption and draw, and what is right goes along": "test_options_are_shuffled",
        "each of N draws is of all the questions": "test_draws_are_of_all_questions",
        "one more option says that the description does not tell, and is never right": "test_what_is_not_said",
        "a reply that chooses nothing is wrong; a reader that failed is not": "test_who_fails",
        "always the same letter is chance, whatever the caption": "test_a_letter_is_chance",
        "a model that sees writes five questions of each picture": "test_a_model_writes_questions",
        "questions are kept that need the picture, by rotated options": "test_questions_that_need_the_picture",
        "one for short captions, falling to none": "test_the_length",
        "a fixed reader measures captions (Prism)": "test_it_trains_and_is_measured",
        "it trains a model that sees": "test_it_trains_and_is_measured",
    },
    choices=(
        "draws and shuffles are of the caption and the draw, so that equal captions have equal rewards",
        "the reader's words, and those of who writes questions, who replies in JSON",
        "a question is kept at exactly .75 and .25 too: of four rotations a model that always says A is right in .25",
        "a divergence of weight .04 from the model at the start: the paper has one and does not tell its weight",
        "the length term is 0 unless asked for, as in the first paper",
        "pictures and models are one's own",
    ),
)
def caprl(
    reader: Any = None,
    queries: int = 8,
    shuffle: bool = True,
    length: float = 0.0,
    full: int = 2048,
    none: int = 3072,
    kl_weight: float = 0.04,
) -> Method:
    """GRPO on descriptions, rewarded for what a reader who has them alone answers rightly.

        R_i = 1/N sum_n 1[reader(caption_i, question n, options shuffled) is right]

    Tasks have questions in their reference, ``tasks.source = "captions"`` draws some; ``assay tasks make S007`` has
    some written for the pictures of a file, and keeps those that need them. A run is measured by a fixed reader with::

        assay eval RUN tasks.verify='{name="assay.rewards.text.caption_reader:CaptionReader",queries=0,reader={...}}'

    Args:
        reader, queries, shuffle, length, full, none: see :class:`~assay.rewards.text.caption_reader.CaptionReward`.
        kl_weight: of the divergence from the model at the start.

    Source: CapRL (arXiv 2509.22647) and its authors' code: Qwen2.5-VL-3B, read by Qwen2.5-3B-Instruct, 75,000 pictures.
    """
    return Method(
        reward=CaptionReward(reader, queries, shuffle, length=length, full=full, none=none),
        credit=GRPO(),
        objective=ClippedSurrogate(kl_weight=kl_weight),
    )


@pipeline("S007")
def visible(seen: float = 0.75, blind: float = 0.25, count: int = 5) -> Pipeline:
    """Questions about pictures that are answered with them and not without; they are written where a task has none.

    Args:
        count: see :class:`~assay.tasks.making.written_choices.WrittenChoices`.
        seen, blind: see :class:`~assay.tasks.making.visible.Visible`.
    """
    return Pipeline("S007", [("questions", WrittenChoices(count)), ("visible", Visible(seen, blind))])


def read(**options: Any) -> dict[str, Any]:
    """An arm, to which the setting gives a reader."""
    return {"name": "S007", "options": {"kl_weight": 0.0, **options}}


claims(
    Claim(
        paper="S007",
        text="Eight questions for each description lead to descriptions that name more than one question does, after "
        "as many descriptions.",
        setting="captions",
        arms={"eight": read(), "one": read(queries=1)},
        better="eight",
        baseline="one",
        measure="area",
        sweep={"lr": (0.1, 0.3, 1.0)},
    ),
    Claim(
        paper="S007",
        text="Where most right options stand under one letter, a hint to say it is worth more than a description that "
        "is right half of the time, unless options are shuffled.",
        setting="captions",
        evidence="construction",
        arms={"shuffled": read(), "as they stand": read(shuffle=False)},
        better="shuffled",
        baseline="as they stand",
        measure="named",
        sweep={"lr": (0.1, 0.3, 1.0)},
        name="shuffled",
    ),
)
