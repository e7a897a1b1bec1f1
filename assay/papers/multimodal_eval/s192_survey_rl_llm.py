"""S192: the survey's headings, and what stands under them here."""

from __future__ import annotations

from assay.catalogue import paper
from assay.tables.taxonomy import Tags, rows


@paper(
    "S192",
    "taxonomy of a survey",
    seams=[],
    essentials={
        "three kinds of tags: reward modelling, feedback, optimiser; every part has its own": (
            "test_every_registered_part_has_its_tags"
        ),
        "no tag of the survey is without a part": "test_every_tag_of_the_survey_has_a_part",
        "the tags are those that anybody would give": "test_tags_that_anybody_would_give",
        "the survey's recipes, from PPO with a critic to GRPO, as parts that fit together": (
            "test_the_recipes_fit_together"
        ),
    },
    choices=(
        "tags of parts that the survey does not name: as docs/taxonomy.md has them",
        "parts beside the survey's optimisers: listed under a heading of their own",
    ),
)
def survey() -> dict[tuple[str, str], Tags]:
    """A survey replaces nothing; its headings are tags that every registered part carries.

        reward modelling   human, AI, rule, process
        feedback           pairwise, scalar, verifiable, textual
        optimiser          PPO, actor-critic, Q-learning, DPO, GRPO

    Returns the tags of each part by seam and name. docs/taxonomy.md lists them by tag, with the survey's recipes as
    parts; :mod:`assay.tables.taxonomy` derives both.

    Source: "A Technical Survey of Reinforcement Learning Techniques for Large Language Models".
    """
    return {(seam, name): tags for seam, name, tags in rows()}
