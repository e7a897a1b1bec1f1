"""Names of competitions and tasks that mean the same."""

from __future__ import annotations

import pytest

from assay.tasks.puzzles.writeups import Writeup, combined, matched, similarity


def test_the_worked_scores() -> None:
    assert combined(1.0, 0.9) == pytest.approx(0.94) and combined(0.8, 1.0) == pytest.approx(0.92)
    assert combined(0.7, 0.95) == pytest.approx(0.85)
    assert similarity("crypt", "crypt 101") == pytest.approx(0.9556, abs=5e-5)


def test_similarities() -> None:
    assert similarity("Baby  RSA", "baby rsa") == 1.0 and similarity("", "") == 1.0 and similarity("", "a") == 0.0
    # Matching blocks: "ab" of "abcd" and "abxy".
    assert similarity("abcd", "abxy") == 0.5
    # Two of eight letters in common: not looked at any closer.
    assert similarity("abcdefgh", "abstuvwx") == 0.0 and similarity("abcdefgh", "abcstuvw") == pytest.approx(0.375)
    # Letters, but in another order.
    assert similarity("abcd", "dcba") == 0.25


def test_the_best_come_first_and_others_not() -> None:
    known = [Writeup("CSAW 2023", "baby rsa", "a"), Writeup("csaw", "baby rsa", "b"), Writeup("CSAW 2023", "web", "c")]
    assert [w.text for w in matched("CSAW 2023", "Baby RSA", known)] == ["a", "b"]
    assert [w.text for w in matched("CSAW 2023", "Baby RSA", known, 0.99)] == ["a"]
    assert len(matched("CSAW 2023", "Baby RSA", known, 0.0)) == 3
    assert matched("c", "t", [Writeup("c", "t", "x")], 1.0) != []
