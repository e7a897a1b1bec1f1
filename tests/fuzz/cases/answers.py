"""Short answers: text, numbers, quantities, mathematics, choices, lists, expressions."""

from __future__ import annotations

from fractions import Fraction

from fuzz.entry import Case, entry

entry("none", cases=[Case(None, []), Case("5", [])], abstains="no verifier")

entry(
    "exact",
    cases=[
        Case("Paris", ["Paris", "paris", "**Paris**"]),
        Case(["0.5", "half"], ["1/2", "0.50", "Half"]),
        Case(1234, ["1,234", "1234.0"]),
        Case("北京", ["北京"]),
        Case("a \u0301e\u0301 ﬁ", ["a \u0301é fi"]),
    ],
)
entry("exact/whole", cases=[Case("to be or not", ["to be or not", "To be\nor not"])], options={"fallback": "whole"})

entry(
    "number",
    soup="math",
    cases=[
        Case(18, ["18", "It costs $18.", "18.00"]),
        Case("so #### 1,234", ["1234", "1,234.0"]),
        Case("-0.75", ["-3/4", "-.75"]),
        Case("1e300", ["1e300"]),
        Case("9" * 300, ["9" * 300]),
    ],
)
entry(
    "number/marker",
    soup="math",
    cases=[Case(7, ["Answer: 7"])],
    options={"marker": "Answer:", "rules": []},
)

entry(
    "numeric",
    soup="quantity",
    needs=("pint",),
    cases=[
        Case("9.81 m/s^2", ["9.81 m/s^2", r"9.81\ \mathrm{m/s^2}", "981 cm/s²"]),
        Case({"value": 50, "unit": "%", "rtol": 0.01}, ["50 %", "0.5", r"50\%"]),
        Case("5.0 ± 0.1 kg", ["5.05 kg", "5000 g"]),
        Case("2 c", ["2 c", "599584916 m/s"]),
        Case("25 °C", ["25 °C", "298.15 K"]),
        Case(Fraction(1, 3), ["1/3"]),
        Case({"value": "6.02e23", "unit": "1/mol", "digits": 3}, [r"6.022 \times 10^{23} 1/mol"]),
        Case(0, ["0"]),
    ],
)
entry(
    "numeric/digits",
    soup="quantity",
    cases=[Case("1234.5678", ["1234.57 m", "1.23457e3"]), Case("0.00012", ["1.2e-4"]), Case("1e200", ["1e200"])],
    options={"units": "ignore", "digits": 5},
)
entry(
    "numeric/optional",
    soup="quantity",
    needs=("pint",),
    cases=[Case("300 K", ["300", "300 K"]), Case("12", ["12 kg"])],
    options={"units": "optional", "rtol": 0.01},
)

CITIES = ["Berlin", "New York", "São Paulo", "Rome"]
entry(
    "choice",
    soup="choice",
    cases=[
        Case("C", ["C", "(C)", "C.", "São Paulo", "C) São Paulo", r"\text{C}"], meta={"options": CITIES}),
        Case("Berlin", ["A", "Berlin"], meta={"options": CITIES}),
        Case({"answer": "y", "options": {"x": "true", "y": "false"}}, ["y", "(y)", "false"]),
        Case(["A", "D"], ["A, D", "A and D", "D, A"], meta={"options": CITIES}),
    ],
)
entry(
    "choice/index",
    soup="choice",
    cases=[Case("B", ["B", "1"], meta={"options": CITIES}), Case(["B", "C"], ["B, C"], meta={"options": CITIES})],
    options={"index": 0, "partial": True},
)
entry("choice/bare", soup="choice", cases=[Case("B", ["B", "(B)"])])

for normalise in ("none", "space", "case", "squad"):
    entry(
        f"text/{normalise}",
        cases=[
            Case("the Eiffel Tower", ["the Eiffel Tower"]),
            Case(["İstanbul", "Straße 7"], ["İstanbul", "Straße 7"]),
            Case("東京", ["東京"]),
            Case("!!!", ["!!!"]),
        ],
        options={"normalise": normalise, "contains": normalise in ("space", "squad")},
    )

PROSE = "The quick brown fox jumps over the lazy dog, and then it sleeps for hours."
for measure in ("rouge_l", "rouge_mean", "word_errors", "token_f1", "chrf"):
    entry(
        measure,
        cases=[
            Case(PROSE, [PROSE, PROSE.lower() if measure != "chrf" else PROSE]),
            Case(["今日は良い天気です", "Ça va très bien"], ["Ça va très bien", "今日は良い天気です"]),
            Case("a", ["a"] if measure != "token_f1" else []),
        ],
    )

entry(
    "permutation",
    soup="list",
    cases=[
        Case([2, 0, 3, 1], ["2, 0, 3, 1", "[2, 0, 3, 1]", "2; 0; 3; 1"]),
        Case(["x", "1/2"], ["x > 0.5", '["x", 0.5]']),
    ],
)
entry(
    "short_answers",
    soup="list",
    marked=False,
    cases=[
        Case(["2", "red"], ["2\nred", "1. 2\n2. Red.", "<think>3\n4</think>\n2\n\nred"]),
        Case([1.5], ["3/2"]),
    ],
)
entry(
    "set",
    soup="list",
    cases=[
        Case(["red", "green", "1/2"], ["red, green, 0.5", '["green", 0.5, "red"]', "- red\n- 1/2\n- green"]),
        Case("{1, 2, 3}", ["3, 2, 1", r"\{1, 2, 3\}", "1; 2; 3"]),
        Case([], ["none", r"\emptyset", "[]"]),
        Case([(1, 2), "x"], ["x; [1, 2]"]),
    ],
)
entry(
    "set/jaccard",
    soup="list",
    cases=[Case(["a", "b", "b"], ["a, b, b"])],
    options={"measure": "jaccard", "repeats": "multiset", "threshold": 0.5},
)

entry(
    "ranking",
    soup="list",
    cases=[
        Case({"relevance": {"1": 3, "2": 0, "3": 2}}, ["[1] > [3] > [2]", "1, 3, 2"]),
        Case({"relevance": ["a"], "candidates": ["a", "b"]}, ["a > b", '["a", "b"]']),
    ],
)
for by in ("kendall", "spearman", "rbo", "overlap", "exact"):
    entry(
        f"ranking/{by}",
        soup="list",
        cases=[Case(["x", "y", "z"], ["x > y > z", "1. x\n2. y\n3. z"]), Case(["1", "2"], ["[1] > [2]"])],
        options={"measure": by, "persistence": 0.9, "strict": by == "exact"},
    )

entry(
    "countdown",
    soup="expression",
    cases=[
        Case({"numbers": [3, 4, 5], "target": 35}, ["(3 + 4) * 5", "5 × (4 + 3) = 35", "35 = (3+4)*5"]),
        Case({"numbers": [8, 8, 3, 3], "target": 24}, ["8 / (3 - 8 / 3)"]),
        Case({"numbers": [1, 2], "target": "1/2"}, ["1 / 2"]),
    ],
)
entry(
    "gym",
    soup="expression",
    needs=("reasoning_gym",),
    seconds=5.0,
    options={"seconds": 2.0},
    # The scorers are reasoning-gym's: some accept what others do, and a text around the answer.
    apart=False,
    spaces=False,
    cases=[
        Case({"dataset": "basic_arithmetic", "entry": {"answer": "-4", "metadata": {}}}, ["-4"]),
        Case(
            {
                "dataset": "countdown",
                "entry": {"answer": "94*4 - 61 - 6", "metadata": {"numbers": [6, 61, 94, 4], "target": 309}},
            },
            ["94*4 - 61 - 6"],
        ),
        Case(
            {
                "dataset": "word_sorting",
                "entry": {
                    "answer": "pear, plum, Only",
                    "metadata": {"original_words": ["Only", "pear", "plum"], "sorted_words": ["pear", "plum", "Only"]},
                },
            },
            ["pear, plum, Only"],
        ),
    ],
)

entry(
    "math",
    soup="math",
    needs=("math_verify",),
    seconds=6.0,
    options={"seconds": 2.0},
    cases=[
        Case("1/2", [r"\frac{1}{2}", "0.5", r"\dfrac12"], prompt="What is 2/4?"),
        Case(r"x^2 - 1", ["(x-1)(x+1)", "x^{2}-1"], prompt="Simplify."),
        Case(r"\{1, 2\}", [r"\{2, 1\}", "1, 2"], prompt="Solve."),
        Case(r"[0, \infty)", [r"[0, \infty)"], prompt="What is the range?"),
        Case(r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", [r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}"]),
        Case(r"\int_0^1 x^2 \, dx", [r"\boxed{\frac{1}{3}}"], prompt="Evaluate."),
        Case("3 + 4i", ["3+4i", "4i + 3"]),
        Case("5 \\text{ cm}", ["5 cm", "5"], prompt="How many centimetres is it?"),
        Case(2**0.5, ["1.4142135623730951"]),
    ],
)

entry(
    "matrix_math",
    soup="math",
    needs=("math_verify",),
    seconds=6.0,
    options={"rule": {"name": "math", "seconds": 2.0}},
    abstains="of matrices that cannot be read",
    cases=[
        Case(r"(\mathbf{A}\mathbf{B})^H", [r"\mathbf{B}^H \mathbf{A}^H", r"(\mathbf{A} \mathbf{B})^{\mathrm{H}}"]),
        Case(r"\|\mathbf{h}\|^2", [r"\mathbf{h}^H\mathbf{h}"], prompt="What is the gain?"),
        Case(r"\mathbb{E}[\mathbf{x}\mathbf{x}^H]", [r"\mathbb{E}[\mathbf{x} \mathbf{x}^H]"]),
        Case(r"x^2 - 1", ["(x-1)(x+1)"]),
    ],
)

entry(
    "boxed_answers",
    cases=[
        Case(
            ["42", "10"],
            [r"\boxed{42} \boxed{10}", "### Final Answers\n\\boxed{42} \\boxed{10}"],
        ),
        Case({"answers": ["3", "1/2", "7"], "by": "all"}, [r"\boxed{3}, \boxed{\frac12}, \boxed{7}"]),
    ],
    soup="math",
    marked=False,
)
entry(
    "reactions",
    soup="quantity",
    cases=[
        Case(
            {"reactions": {"R_A": "3/5", "R_B": "7/5"}},
            ["\\boxed{R_A = 0.6P, R_B = 1.4P}"],
        ),
        Case({"reactions": {"R_A": "0", "R_B": "1"}}, ["\\boxed{R_A = 0, R_B = P}"]),
    ],
    marked=False,
)

entry(
    "computed",
    soup="quantity",
    needs=("pint",),
    cases=[
        Case("32/11", ["32/11", "2.909", "2.91"]),
        Case("250 cm", ["250 cm", "2.50 m", "250"]),
        Case("x^2+2x+1", ["(x+1)^2"]),
    ],
)
