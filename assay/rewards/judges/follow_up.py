"""What a user would say next, as reward: thanks or complaint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.follow_ups import FollowUps

ASPECTS: dict[str, dict[str, list[str]]] = {
    "understanding": {
        "positive": [
            "You got exactly what I meant.",
            "Yes, that is what I was trying to say.",
            "You understood my question right away.",
            "I can follow every step of that.",
            "Now it is clear to me.",
            "That makes a lot of sense.",
            "You read my question just as I meant it.",
            "I see, thank you for explaining it so plainly.",
            "You put your finger on what I wanted to know.",
            "That was easy to follow.",
        ],
        "negative": [
            "You got me wrong.",
            "I meant something else.",
            "You did not understand my question.",
            "I cannot follow what you are saying.",
            "Now I am more confused than before.",
            "That makes no sense to me.",
            "Please read my question again.",
            "I do not see what you mean.",
            "You missed what I wanted to know.",
            "That was hard to follow.",
        ],
    },
    "relevance": {
        "positive": [
            "That is just what I needed.",
            "You stayed on the topic.",
            "This speaks directly to my question.",
            "That is the information I was after.",
            "Everything you said bears on my problem.",
            "You went straight to the point.",
            "That fits my situation well.",
            "This is all about what I asked.",
            "You picked out what matters to me.",
            "That settles my question.",
        ],
        "negative": [
            "That is not what I needed.",
            "You wandered off the topic.",
            "This has nothing to do with my question.",
            "That is not the information I was after.",
            "None of this bears on my problem.",
            "You talked around the point.",
            "That does not fit my situation.",
            "This is about something I did not ask.",
            "You left out what matters to me.",
            "My question is still open.",
        ],
    },
    "correctness": {
        "positive": [
            "That is right.",
            "I checked, and your answer is correct.",
            "Your facts are accurate.",
            "Yes, that is true.",
            "You got the right answer.",
            "I could not find any mistake.",
            "That agrees with what the book says.",
            "Your numbers add up.",
            "You are right about that.",
            "That is exactly how it is.",
        ],
        "negative": [
            "That is wrong.",
            "I checked, and your answer is incorrect.",
            "Your facts are not accurate.",
            "No, that is not true.",
            "You got the wrong answer.",
            "There is a mistake in what you wrote.",
            "That contradicts what the book says.",
            "Your numbers do not add up.",
            "You are mistaken about that.",
            "That is not how it is at all.",
        ],
    },
    "engagingness": {
        "positive": [
            "How interesting!",
            "I would like to hear more about this.",
            "That was fun to read.",
            "You have made me curious.",
            "I enjoy talking to you.",
            "What a lively way to put it.",
            "That caught my attention.",
            "I like where this is going.",
            "Please go on, this is fascinating.",
            "You bring the subject to life.",
        ],
        "negative": [
            "How dull.",
            "I do not want to hear more about this.",
            "That was tedious to read.",
            "You are putting me to sleep.",
            "I do not enjoy talking to you.",
            "What a lifeless way to put it.",
            "I stopped paying attention.",
            "I do not like where this is going.",
            "Please stop, this is boring.",
            "You make the subject dry.",
        ],
    },
    "informativeness": {
        "positive": [
            "I learned something new.",
            "Thank you for all the details.",
            "That tells me everything I need to know.",
            "The examples helped a lot.",
            "That was thorough.",
            "You told me more than I had hoped for.",
            "That is a full answer.",
            "There is a lot of useful material in this.",
            "You were specific, which I appreciate.",
            "Now I know much more about it.",
        ],
        "negative": [
            "I learned nothing new.",
            "You left out the details.",
            "That does not tell me what I need to know.",
            "An example would have helped.",
            "That was superficial.",
            "You told me less than I had hoped for.",
            "That is only half an answer.",
            "There is nothing useful in this.",
            "You were too vague.",
            "I know no more about it than before.",
        ],
    },
    "following": {
        "positive": [
            "You did exactly what I told you to do.",
            "You kept to my instructions.",
            "That is in the form I asked for.",
            "You did not leave out any part of the task.",
            "Just as I requested, thank you.",
            "You respected all of my conditions.",
            "That meets every requirement I gave.",
            "You carried out the task to the letter.",
            "The result is what I ordered.",
            "You stuck to the rules I set.",
        ],
        "negative": [
            "You did not do what I told you to do.",
            "You ignored my instructions.",
            "That is not in the form I asked for.",
            "You left out a part of the task.",
            "This is not what I requested.",
            "You disregarded my conditions.",
            "That does not meet the requirements I gave.",
            "You did a different task.",
            "The result is not what I ordered.",
            "You broke the rules I set.",
        ],
    },
}
"""Ten follow-ups of either kind for each aspect of a helpful response."""


@part("reward", "follow_up")
class FollowUpReward:
    """R_i = mean over aspects of (mean over positive follow-ups of s_i - mean over negative ones), FLR.

    s_i(f) is the mean log-probability of the tokens of f as the user's next turn after response i; see
    :class:`~assay.signals.follow_ups.FollowUps`, which computes them all. What makes any reply likelier cancels. No
    verdict is used (take verifier ``none``), but a sample whose verifier failed has no reward, nor has one whose
    conversation does not fit.

    Terms: ``positive`` and ``negative``, means over aspects; and the difference for each aspect, by its name.

    Source: Follow-up Likelihood as Reward (arXiv 2409.13948); its six aspects with ten follow-ups of either kind, in
    other words.

    Args:
        aspects: by name a table of two lists, ``positive`` and ``negative``; one of them may be empty, its mean is 0.
        scorer, opening, turn, max_tokens: see :class:`~assay.signals.follow_ups.FollowUps`.

    Raises:
        UsageError: no aspect, one that has no follow-up or other keys, or a scorer that cannot be loaded.
    """

    def __init__(
        self,
        aspects: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
        scorer: Any = "reference",
        opening: str | None = None,
        turn: str = "\n",
        max_tokens: int | None = 2048,
    ):
        self.aspects: dict[str, tuple[list[str], list[str]]] = {}
        for name, lists in (ASPECTS if aspects is None else aspects).items():
            positive, negative = list(lists.get("positive", ())), list(lists.get("negative", ()))
            if lists.keys() - {"positive", "negative"} or not positive + negative or name in ("positive", "negative"):
                raise UsageError(
                    f"reward 'follow_up': aspect {name!r} must be a table of the lists positive and negative"
                )
            self.aspects[name] = positive, negative
        if not self.aspects:
            raise UsageError("reward 'follow_up': give one or more aspects")
        texts = dict.fromkeys(text for lists in self.aspects.values() for many in lists for text in many)
        self.signal = FollowUps(tuple(texts), scorer, opening, turn, max_tokens)
        self.needs = frozenset({self.signal})

    def __call__(self, batch: Batch) -> Reward:
        scores = batch.signals[self.signal.name].to(batch.rewards.dtype)
        place = {text: k for k, text in enumerate(self.signal.texts)}
        valid = judged(batch) & scores.isfinite().all(-1)
        scores = torch.where(valid[:, None], scores, 0)

        def mean(texts: Sequence[str]) -> torch.Tensor:
            return scores[:, [place[t] for t in texts]].mean(-1) if texts else torch.zeros_like(batch.rewards)

        likely = {name: (mean(positive), mean(negative)) for name, (positive, negative) in self.aspects.items()}
        terms = {name: good - bad for name, (good, bad) in likely.items()}
        for k, name in enumerate(("positive", "negative")):
            terms[name] = torch.stack([pair[k] for pair in likely.values()]).mean(0)
        return Reward(terms["positive"] - terms["negative"], valid=valid, terms=terms)
