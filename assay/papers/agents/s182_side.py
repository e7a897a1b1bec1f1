"""S182: find the citations that do not support their claims, and better sources for them."""

from __future__ import annotations

from pathlib import Path

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.environments.search.corpus import Corpus, read_corpus
from assay.evaluate.citations import Checked, CitedClaim, Retrieval, check, embedding, read_claims
from assay.verify.support.cross_encoder import CrossEncoder
from assay.verify.support.passages import WORDS


class Side:
    """See :func:`side`."""

    def __init__(self, model: str | Path, retrieved: int, embed: str | None, words: int):
        self.encoder, self.retrieved, self.embed, self.words = CrossEncoder(model), retrieved, embed, words

    def __call__(self, claims: Path | list[CitedClaim], corpus: Path | Corpus) -> list[Checked]:
        """Return what is found of each claim's citation, the worst first.

        Raises:
            UsageError: files that are not what is wanted, or a claim that cites what the corpus does not have.
        """
        found = read_claims(claims) if isinstance(claims, Path) else claims
        documents = read_corpus(corpus) if isinstance(corpus, Path) else corpus
        embed = None if self.embed is None else embedding(self.embed)
        return check(found, Retrieval(documents, self.retrieved, embed), self.encoder, self.words)


@paper(
    "S182",
    "SIDE",
    arxiv="2207.06220",
    seams=["verify", "evaluate"],
    essentials={
        "the query: title, section and text up to the citation": "test_the_query_is_title_section_and_text",
        "of a long claim an encoder reads title, section and the text's end": (
            "test_of_a_long_claim_title_and_section_are_read_and_the_end"
        ),
        "documents are found by words, with what a model adds, and by meaning, and both are ranked together": (
            "test_two_ways_of_finding_are_put_together"
        ),
        "a document scores as its best passage of about 100 words": "test_a_document_scores_as_its_best_passage",
        "which passage of the cited document bears the claim is latent: five losses": "test_the_five_losses_by_hand",
        "the E step is the model's own belief and carries no gradient": "test_the_e_step_carries_no_gradient",
        "a cross-encoder learns from existing citations against what else is retrieved": (
            "test_an_encoder_learns_which_passage_bears_a_claim"
        ),
        "a bi-encoder learns to find what is cited, among what the batch cites and what is found by words": (
            "test_a_retriever_learns_to_find_what_is_cited"
        ),
        "what expands queries learns to name the source of a claim": "test_a_model_learns_to_name_sources",
        "claims are ranked by their own citation, the likeliest to fail first": "test_the_worst_are_mostly_altered",
        "a source is proposed where it scores above the one that is cited": "test_only_what_is_better_is_proposed",
        "precision@1 and success@k of retrieval, the right source first, failures among the worst tenth": (
            "test_the_measures_by_hand"
        ),
        "the command trains and checks": "test_the_command_trains_and_checks",
    },
    choices=(
        "passages of 100 words; the paper's length and its ensembling are not told here",
        "one encoder for claims and documents, cosines times 20, and one document found by words beside the batch's",
        "names of sources are their titles; the authors' models wrote addresses too, in a beam of 15",
        "sharpness of the E step 1 throughout; the authors' code has a schedule, which fit() takes",
        "up to 8 passages of the cited document and 8 of others for each claim",
    ),
)
def side(model: str | Path, retrieved: int = 100, embed: str | None = None, words: int = WORDS) -> Side:
    """Checks the citations of a text: which ones do not support their claims, and what would.

        S(document) = max over its passages of s(claim, passage)
        claims in order of S(cited), lowest first;  proposal: argmax S over cited and retrieved, where above S(cited)

    s is a cross-encoder trained by :func:`assay.ops.latent.latent_positive_loss` on citations that are there. The
    commands are ``assay citations train`` and ``assay citations check``; the verifier ``supported`` judges by the same
    encoder a policy that chooses among sources. Both ways of searching learn from the same citations: ``assay citations
    train-retriever`` trains an encoder of claims and documents apart, and ``assay citations expansions`` writes tasks,
    to name the source of a claim, from which ``assay train`` makes what expands queries.

    Args:
        model: folder that ``assay citations train`` wrote.
        retrieved: documents found by words, and as many by meaning.
        embed: what to search by meaning with: a folder that ``assay citations train-retriever`` wrote, or a model of
            sentence-transformers; none unless given.
        words: of a passage.

    Source: "Improving Wikipedia Verifiability with AI" (arXiv 2207.06220) and its authors' code.
    """
    return Side(model, retrieved, embed, words)


claims(
    Claim(
        paper="S182",
        text="Of the claims that a cross-encoder which has learned from citations scores lowest, more are altered than "
        "of those that share fewest words with what they cite.",
        setting="citations",
        arms={"encoder": {"score": "encoder"}, "words": {"score": "overlap"}},
        better="encoder",
        baseline="words",
        measure="flagged",
        sweep={"lr": (1e-3, 3e-3)},
        tuning=(1000, 1001),
    )
)
