"""Formulas of matrices: what is equal, what is not, and what cannot be told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.registry import build
from assay.types import Task
from assay.verify.math.matrices.equal import Values, same
from assay.verify.math.matrices.read import MAX_LENGTH, Unreadable, formula

EQUAL = [
    ("(AB)^H", "B^H A^H"),
    ("A^{-H}", "(A^{H})^{-1}"),
    ("(A^T)^*", r"A^{\dagger}"),
    (r"\mathrm{tr}(AB)", r"\operatorname{tr}\left(BA\right)"),
    (r"\mathrm{Tr}(u v^H)", "v^H u"),
    (r"\log_2\det(I+AB)", r"\log_2 |I_N+BA|"),
    (r"\ln\det(A)", r"\log \det A"),
    (r"\|h\|^2", "h^H h"),
    (r"\|h\|_2^2", r"\lVert h \rVert^{2}"),
    (r"\|A\|_F^2", r"\mathrm{tr}(A A^H)"),
    ("|h^H w|^2", r"h^{\mathrm{H}} w w^H h"),
    ("A(B+C)", "AB+AC"),
    ("(A+u v^H)^{-1}", r"A^{-1}-\frac{A^{-1}u v^H A^{-1}}{1+v^H A^{-1}u}"),
    (r"\sum_{k=1}^{K} h_k^H w", r"(\sum_{j=1}^{K} h_j)^H w"),
    (r"\sum_{j \neq k} h_j", r"\sum_{i \neq k} h_i"),
    ("y=H x+n", "y - n=H x"),
    ("y=H x", "H x = y"),
    ("h_k^H w", "h^H_{k}w"),
    (r"R = \sigma^2 I", r"R = I \sigma^2"),
    (r"(A\otimes B)^H", r"A^H \otimes B^H"),
    (r"A \odot B", r"B \odot A"),
    (r"\hat{x}=W^H y", r"\hat{x}=(y^H W)^H"),
    ("A^2 B", "A A B"),
    (r"\frac{A}{2}", "0.5 A"),
    (r"\mathrm{Re}(u^H v)", r"\frac{u^H v + v^H u}{2}"),
    (r"2\sqrt{a} u", r"\sqrt{4 a} u"),
    ("1^T u", "u^T 1"),
    (r"10 \log_{10} \|h\|^2", r"20 \log_{10} \|h\|"),
    (r"e^{j\theta} u", r"\exp(j \theta) u"),
    (r"(e^{j\theta} u)^H", r"e^{-j\theta} u^H"),
    (r"|e^{j 2 \pi f t}|^2 u", "u"),
    (r"\sum_{k=1}^K k h_k", r"\sum_{m=1}^K m h_m"),
    (r"u^H(\theta) w", r"u(\theta)^H w"),
    (r"u(\theta_k, \phi)^H w", r"(w^H u(\theta_k, \phi))^*"),
    (r"y \triangleq A x", "y = A x"),
    ("W(a + 1)", "a W + W"),
]
OTHER = [
    ("AB", "BA"),
    ("H^H", "H^T"),
    ("H^*", "H^T"),
    ("h^H w", "w^H h"),
    ("h^H w", "h w"),
    ("h h^H", "h^H h"),
    ("A A^H", "A^H A"),
    ("(AB)^H", "A^H B^H"),
    (r"\|A\|_F", r"\|A\|"),
    (r"\sum_{k=1}^K a_k b_k h", r"a_k\sum_{k=1}^K b_k h"),
    (r"\sum_{k=1}^{K} h_k", r"\sum_{k=1}^{M} h_k"),
    (r"\sum_{j \neq k} h_j", r"\sum_{j} h_j"),
    ("|g|^2 h", "g^2 h"),
    ("g^* h", "g h"),
    ("h_k", "h_j"),
    (r"\hat{h}", "h"),
    ("y = H x", "H x"),
    ("y = H x + n", "y = H x - n"),
    ("A", "A + u"),
    ("u + A u", "u + A"),
    (r"A \odot B", "AB"),
    (r"\log_2\det(A)", r"\ln\det(A)"),
    (r"(e^{j\theta} u)^H", r"e^{j\theta} u^H"),
    (r"u(\theta)", r"u(\phi)"),
    (r"u(\theta)", "u"),
    (r"\sum_{k=1}^K k h_k", r"k \sum_{m=1}^K h_m"),
]


def bold(text: str) -> str:
    """Every H, h, w, ... that is a matrix or vector in bold; exponents H, T and names stay."""
    out, at = "", 0
    while at < len(text):
        if text[at] == "\\" and text[at + 1].isalpha():
            end = at + 1
            while end < len(text) and text[end].isalpha():
                end += 1
            if text[at:end] in (r"\mathrm", r"\operatorname"):
                end = text.index("}", at) + 1
        elif text[at] in "^_":
            end = text.index("}", at) + 1 if text[at + 1] == "{" else at + 2
        else:
            end = at + 1
        piece = text[at:end]
        letters = piece in set("ABCHIRWhnuvwxy") or (piece == "1" and (text[at + 1 : at + 3] == "^T" or at > 3))
        whole = piece == "1" and text not in ("1^T u", "u^T 1")
        out += rf"\mathbf{{{piece}}}" if letters and not whole else piece
        at = end
    return out


@pytest.mark.parametrize(("one", "two"), EQUAL)
def test_equal(one: str, two: str) -> None:
    assert same(bold(one), bold(two)) is True and same(bold(two), bold(one)) is True


@pytest.mark.parametrize(("one", "two"), OTHER)
def test_another(one: str, two: str) -> None:
    assert same(bold(one), bold(two)) is False


SQUARE_ALONE = [
    ("(AB)^{-1}", "B^{-1}A^{-1}"),
    ("H(H^H H)^{-1}", "H^{-H}"),
    ("W = H(H^H H)^{-1}", "W = (H H^H)^{-1} H"),
    ("A C C^{-1} B", "A B B^{-1} B"),
    (r"\det(A B)", r"\det(A) \det(B)"),
    (r"\mathrm{tr}(A A^H) + u^H v", r"\mathrm{tr}(A^{-1} A A^H A) + u^H v"),
]
ANY_SHAPE = [
    ("(I + A B)^{-1} A", "A (I + B A)^{-1}"),
    ("W = H(H^H H)^{-1}", "W^H = (H^H H)^{-1} H^H"),
    ("H(H^H H + a I)^{-1}", "(H H^H + a I)^{-1} H"),
    ("H(H^H H)^{-1}", "H(H^H H)^{-1} (H^H H)^{-1} H^H H"),
    (r"\sum_{k=1}^{K} H_k W_k s_k", r"\sum_{i=1}^{K} H_i W_i s_i"),
    ("A W = I", "I = A W"),
    ("y - H x = 0", "H x = y"),
    (r"\log\det(I + a H H^H)", r"\log\det(I + a H^H H)"),
    ("u^H A v w^H", "(v^T A^T u^*) w^H"),
]


@pytest.mark.parametrize(("one", "two"), SQUARE_ALONE)
def test_equal_for_square_matrices_alone_is_not_told(one: str, two: str) -> None:
    """A channel may be tall: an inverse that the reference does not take need not exist."""
    assert same(bold(one), bold(two)) is None


@pytest.mark.parametrize(("one", "two"), ANY_SHAPE)
def test_equal_for_any_shape(one: str, two: str) -> None:
    assert same(bold(one), bold(two)) is True


@pytest.mark.parametrize(
    "text",
    [
        r"\mathbb{E}[@x]",
        r"@R^{1/2}",
        r"\sqrt{@R}",
        "@0",
        r"\log(@A)",
        r"\mathrm{diag}(@x)",
        r"\|@x\|_1",
        r"\begin{bmatrix} a \\ b \end{bmatrix}",
        r"\frac{@x}{0}",
        "@A + @x",
        "@A^{30}",
        r"\sqrt[3]{a}",
        "(@A",
        "@A^",
        "",
        "a = b = c",
        "²",
        "(" * 100 + "a" + ")" * 100,
        r"@A\otimes " * 9 + "@A",
        r"\sum_{i=1}^{n}" * 12 + "@A",
        "a" * (MAX_LENGTH + 1),
    ],
)
def test_what_cannot_be_told(text: str) -> None:
    read = text.replace("@A", r"\mathbf{A}").replace("@x", r"\mathbf{x}").replace("@R", r"\mathbf{R}")
    read = read.replace("@0", r"\mathbf{0}")
    assert same(read, read) is None and same(r"\mathbf{B}", read) is not True


PIECES = [*r"\mathbfHhx{}^_()[]|+-=*/.,12 ", r"\mathbf{A}", r"\frac", r"\sum_", "²", "\ud800"]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_is_answered(text: str) -> None:
    assert same(r"\mathbf{A}", text) in (True, False, None) and same(text, text) in (True, None)


@given(
    st.recursive(
        st.sampled_from([r"\mathbf{A}", r"\mathbf{B}", r"\mathbf{C}", r"\mathbf{I}"]),
        lambda inner: st.tuples(st.sampled_from(["+", " "]), inner, inner),
        max_leaves=6,
    )
)
def test_the_conjugate_transpose_turns_products_round(tree: object) -> None:
    def text(node: object, turned: bool) -> str:
        if isinstance(node, str):
            return node + "^H" * turned
        sign, left, right = node  # type: ignore[misc]
        if turned and sign == " ":
            left, right = right, left
        return f"({text(left, turned)}{sign}{text(right, turned)})"

    assert same(text(tree, False) + "^H", text(tree, True)) is True


def test_values_are_those_of_numpy() -> None:
    values = Values(0, frozenset())
    a, b, u = (values.of(formula(rf"\mathbf{{{n}}}")[0]) for n in "ABu")
    found = values.of(formula(r"\mathbf{A}^{-1}\mathbf{B}^T\mathbf{u}\,\mathrm{tr}(\mathbf{A})")[0])
    assert np.allclose(found, np.linalg.inv(a) @ b.T @ u * np.trace(a)) and found.shape == (3, 1)
    assert isinstance(values.of(formula(r"\mathbf{u}^H\mathbf{u}")[0]), complex)
    with pytest.raises(Unreadable, match="missing"):
        formula("(a")


def test_the_verdict() -> None:
    def said(reference: str | list[str], answer: str) -> bool | None:
        return build("verify", "matrix_math")(Task("t", "?", reference, "matrix_math"), rf"\boxed{{{answer}}}").passed

    product, turned = r"\mathbf{A}\mathbf{B}", r"(\mathbf{A}\mathbf{B})^H"
    assert said(product, r"\mathbf{A} \cdot \mathbf{B}") is True and said(product, r"\mathbf{B}\mathbf{A}") is False
    assert said(turned, r"\mathbf{B}^H\mathbf{A}^H") is True and said(turned, r"\mathbf{A}^H\mathbf{B}^H") is False
    assert said([r"\mathbf{C}", product], r"\mathbf{A}\mathbf{B}") is True
    assert said("1/2", "0.5") is True and said("1/2", "0.7") is False, "without bold letters the rule judges"
    unread = r"\mathbb{E}[\mathbf{x}]"
    assert said(unread, r"\mathbb{E} [\mathbf{x} ]") is True and said(unread, r"7 \mathbf{x}") is False
    assert said(r"\mathbf{H}", "H") is not True
    assert build("verify", "matrix_math")(Task("t", "?", product, "matrix_math"), "I do not know.").passed is not True
