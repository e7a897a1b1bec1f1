"""Shell texts as signatures, and clusters of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.ops import shell
from assay.ops.shell import clusters, distance, signature, split_signature


def test_signatures() -> None:
    pytest.importorskip("tree_sitter_bash")
    for text, wanted in (
        ("grep -n 'foo' a.py", "V:grep W:-n W:foo W:a.py"),
        ('LS -l | sort && X=1 cat "b c"', "K:list K:pipeline V:ls W:-l V:sort V:cat W:b c"),
        ("for f in *.txt; do cat $f; done", "K:for_statement W:*.txt K:do_group V:cat W:$f"),
        ("if [ -f a ]; then rm a; fi", "K:if_statement W:a V:rm W:a"),
        ("(cd x; ls) > out", "K:redirected_statement K:subshell V:cd W:x V:ls W:out"),
        ("echo $(ls a) 7", "V:echo W:7 K:command_substitution V:ls W:a"),
        ("cat <(ls a)", "V:cat V:ls W:a"),
        (":\ntrue\npwd\necho", "V::noop V::noop V::noop V::noop"),
        ("echo hi", "V:echo W:hi"),
        ("", "V::noop"),
        ("# nothing", "V:# W:nothing"),
        ("f() { ls; }", "K:function_definition W:f K:compound_statement V:ls"),
    ):
        assert " ".join(signature(text)) == wanted, text


def test_signatures_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, wanted in (
        ("grep -n 'foo bar' a.py", "V:grep W:-n W:foo bar W:a.py"),
        ("LS -l | sort && cat b; wc c\npwd", "V:ls W:-l K:pipeline V:sort K:list V:cat W:b V:wc W:c V::noop"),
        ("(ls a) || b", "K:subshell V:ls W:a K:list V:b"),
        ("echo 'unterminated x", "V:echo W:'unterminated W:x"),
        ("", ""),
        (" ; ; ", ""),
    ):
        assert " ".join(split_signature(text)) == wanted, text
    monkeypatch.setattr(shell, "_parser", lambda: None)
    assert signature.__wrapped__("ls a | wc") == ("V:ls", "W:a", "K:pipeline", "V:wc")
    assert signature.__wrapped__("") == ("V::noop",)


def test_distances() -> None:
    one = signature("grep -n foo a.py\nsed -i s/foo/bar/ a.py")
    assert distance(one, signature("grep -n foo a.py\ncat a.py")) == 3 / 8
    assert distance(one, signature("ls\nsed -i s/foo/bar/ a.py")) == 4 / 8
    assert distance((), ()) == 0 and distance(("a",), ()) == 1 and distance("kitten", "sitting") == 3 / 7


def test_clusters() -> None:
    texts = ["ls", "ls", "grep a b", "grep a c", "cat x y z"]
    said = [signature(text) for text in texts]
    assert clusters(said, 2) == [0, 0, 1, 1, 2] and clusters(said, 5) == [0] * 5
    # What is alike is together, however many there may be.
    assert clusters(said, 1) == clusters(said, 0.5) == [0, 0, 1, 2, 3]
    # Everything else is as far from everything: joined at once, or not at all.
    assert clusters(["ab", "ab", "cd", "ef", "gh"], 2) == [0] * 5
    assert clusters([], 2) == [] and clusters([("a",)], 2) == [0]
    # By single linkage a chain is one cluster, though its ends have nothing in common.
    chain = ["abcd", "abcx", "abyx", "azyx", "qqqq", "qqqq"]
    assert clusters(chain, 3) == [0, 0, 0, 0, 1, 1]


@given(st.lists(st.text(alphabet="abls |&;()<>$'\"\n-", max_size=20), max_size=5))
def test_any_text_has_one(texts: list[str]) -> None:
    said = [signature(text) for text in texts]
    assert all(said) and len(clusters(said, 2)) == len(texts)
    for one in said:
        for other in said:
            far = distance(one, other)
            assert 0 <= far <= 1 and far == distance(other, one) and (far == 0) == (one == other)


def test_deep_nesting_is_read() -> None:
    value: Any = signature("$(" * 500 + "ls" + ")" * 500)
    assert value
