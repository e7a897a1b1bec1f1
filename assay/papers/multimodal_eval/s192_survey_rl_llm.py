"""S192: the survey's headings, and what stands under them here."""

from __future__ import annotations

from assay.catalogue import paper
from assay.tables.taxonomy import Tags, rows


@paper("S192", "taxonomy of a survey", seams=[])
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
