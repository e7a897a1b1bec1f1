"""The math verifier against answers whose equality is known by hand."""

from __future__ import annotations

import pytest

from assay.errors import UsageError
from assay.registry import build
from assay.types import Task, Verdict

pytest.importorskip("math_verify", reason="assay[math] is not installed")

MATH = build("verify", "math")


def judge(reference: object, response: str, question: str = "?", **options: object) -> Verdict:
    verifier = build("verify", {"name": "math", **options}) if options else MATH
    return verifier(Task("t", question, reference, "math"), response)


def boxed(answer: str) -> str:
    return f"We compute.\n\nThe final answer is $\\boxed{{{answer}}}$."


def table(text: str) -> list[tuple[str, str]]:
    """Read lines ``reference ~~ answer ~ answer ...``."""
    pairs = []
    for line in text.strip("\n").split("\n"):
        reference, _, answers = line.partition("  ~~  ")
        pairs += [(reference, answer) for answer in answers.split("  ~  ")]
    return pairs


SAME = table(
    r"""
5  ~~  5.0  ~  5 apples  ~  5 cm  ~  $5.00  ~  \{5\}  ~  x = 5
-3  ~~  −3
0.5  ~~  1/2  ~  50%  ~  one half
\frac12  ~~  0.5
\dfrac{3}{4}  ~~  .75
7  ~~  +7
\frac{-1}{2}  ~~  -\frac12
-\frac{1}{2}  ~~  \frac{1}{-2}
1/3  ~~  \tfrac{2}{6}  ~  0.\overline{3}  ~  0.(3)  ~  0.333...  ~  0.\dot{3}  ~  0.3̅
10  ~~  \frac{20}{2}  ~  \binom{5}{2}
\frac 34  ~~  3/4
\frac9{19}  ~~  9/19
12  ~~  012  ~  a dozen
0.10  ~~  0.1
½  ~~  0.5
3½  ~~  7/2
1234  ~~  1,234  ~  1'234  ~  1\,234  ~  1_234  ~  1 234
1234567  ~~  1 234 567  ~  12,34,567  ~  1.234.567
1234.5  ~~  1.234,5
10080  ~~  10,\!080
32348  ~~  32{,}348
3.5  ~~  3,5  ~  three and a half
0.125  ~~  0,125
1200  ~~  1.2e3  ~  1.2 \times 10^3  ~  1.2×10^3  ~  1.2\cdot10^{3}  ~  1.2*10**3  ~  1.2 x 10^3
1200  ~~  twelve hundred
0.00012  ~~  1.2E-4
1024  ~~  2^{10}
2^{10}  ~~  1024
10^{100}  ~~  10^{50}\cdot 10^{50}
8  ~~  2³
50\%  ~~  50  ~  \frac12
50%  ~~  0.5
12.5%  ~~  12.5 percent
25%  ~~  25 per cent
7/2  ~~  3 1/2  ~  3\frac12
3\frac{1}{2}  ~~  3.5
-7/2  ~~  -3 1/2
137 \frac{1}{2}  ~~  137.5
1/6  ~~  0.1\overline{6}
1/7  ~~  0.142857142857...
0.\overline{3}  ~~  1/3
\frac{5}{11}  ~~  0.\overline{45}
5 km  ~~  5000 m  ~  5
2 hours  ~~  120 minutes
90^\circ  ~~  90  ~  \frac{\pi}{2}
90  ~~  90°
15\mbox{ cm}^2  ~~  15 cm^2  ~  15
15 cm^2  ~~  15 square centimeters
72 km/h  ~~  20 m/s
3.6 \text{ km/h}  ~~  1 \text{ m/s}
2.50 m  ~~  250 cm
150 minutes  ~~  2 hours 30 minutes  ~  2 hours and 30 minutes
2.5 hours  ~~  2h 30min
5 feet 3 inches  ~~  63 inches
1 kg  ~~  1000 g
9.8 m/s^2  ~~  9.8 \text{ m s}^{-2}
100^\circ C  ~~  212 °F
864 \mbox{ inches}^2  ~~  864 square inches
\frac{270}7\text{ degrees}  ~~  \frac{270}{7}^\circ
12 apples  ~~  12 apples.
1 m^3  ~~  1000 liters
5.4 \text{ cents}  ~~  5.4
1 day  ~~  24 hours
60 mph  ~~  60 miles per hour
5 \text{ N}  ~~  5 newtons
\$5  ~~  5 dollars
$5.00  ~~  5
\$36  ~~  36 USD
USD 5  ~~  $5
€5  ~~  5 euros
$5  ~~  500 cents
\$32,\!348  ~~  32348
\$18.90  ~~  $18.9
£3  ~~  3 pounds
$2 million  ~~  $2,000,000
3:4  ~~  6:8  ~  3 to 4  ~  \frac{3}{4}
3/4  ~~  3:4
1:2:3  ~~  2:4:6
25  ~~  twenty-five  ~  二十五  ~  ٢٥  ~  २५  ~  ２５
105  ~~  one hundred and five  ~  一百零五
2/3  ~~  two thirds
-5  ~~  negative five
12000  ~~  一万二千
XIV  ~~  14  ~  XIV
2000000  ~~  two million
1.5  ~~  one point five
3:30 PM  ~~  15:30
3:30 p.m.  ~~  3:30 PM
15:30  ~~  3:30 pm
12:00 PM  ~~  noon
3 PM  ~~  3:00 p.m.
July 4, 1776  ~~  4 July 1776  ~  1776-07-04
(1,2)  ~~  (1, 2)  ~  \left(1,2\right)  ~  i + 2j  ~  x=1, y=2  ~  (x,y)=(1,2)  ~  P(1,2)
(0.5, 2)  ~~  (\frac12, 2)
\begin{pmatrix} 1 \\ 2 \end{pmatrix}  ~~  (1,2)
\begin{pmatrix}1\\2\\3\end{pmatrix}  ~~  \langle 1,2,3\rangle
\begin{pmatrix}1\\2\end{pmatrix}  ~~  <1,2>  ~  \mathbf{i}+2\mathbf{j}
\left( 3, \frac{\pi}{2} \right)  ~~  (3, \pi/2)
(1,-16,-4,43)  ~~  (1, -16, -4, 43)
\begin{pmatrix} 1/5 \\ -18/5 \end{pmatrix}  ~~  \begin{bmatrix} 0.2 \\ -3.6 \end{bmatrix}
[1,2)  ~~  1 \le x < 2
x \in [-2,7]  ~~  [-2,7]
[-2,7]  ~~  -2 \leq x \leq 7
(-\infty, 0]  ~~  x \le 0
(-\infty,0]  ~~  (-oo, 0]
(-\infty, 2) \cup (3, \infty)  ~~  x<2 \text{ or } x>3  ~  (3,\infty) \cup (-\infty,2)
(1,3)  ~~  1<x<3
\mathbb{R}  ~~  (-\infty,\infty)
x \neq 0  ~~  (-\infty,0)\cup(0,\infty)
\mathbb{R} \setminus \{0\}  ~~  x \ne 0
(0,9) \cup (9,36)  ~~  (0, 36) \setminus \{9\}
x > 3  ~~  3 < x
\{x \mid 1 < x < 2\}  ~~  (1,2)
[0,1]  ~~  [0;1]
x\ge 3  ~~  [3,+\infty)
\{1,2\}  ~~  \{2,1\}  ~  1 \text{ and } 2
1,2  ~~  2, 1
1,-2  ~~  x=1 \text{ or } x=-2
-2,1  ~~  x = -2, 1
3, 5, 7  ~~  3, 5, and 7
1 \pm \sqrt{19}  ~~  1+\sqrt{19}, 1-\sqrt{19}
\{1\pm\sqrt{5},-2\}  ~~  -2, 1-\sqrt5, 1+\sqrt5
\emptyset  ~~  \varnothing
2, 3  ~~  x_1 = 2, x_2 = 3
\pm 2  ~~  2, -2
(1,2), (3,4)  ~~  (3,4) \text{ and } (1,2)
2\sqrt{3}  ~~  \sqrt{12}
\frac{\sqrt{3}}{3}  ~~  \frac{1}{\sqrt3}
\sqrt{51}  ~~  √51
11\sqrt2  ~~  11 \cdot 2^{1/2}
\sqrt[3]{16}  ~~  2\sqrt[3]{2}
1+\sqrt2  ~~  \sqrt{3+2\sqrt2}
\sqrt{6}  ~~  \sqrt2\sqrt3
\sqrt{2}+1  ~~  \frac{1}{\sqrt2-1}
-2  ~~  \sqrt[3]{-8}
2\sqrt{5}  ~~  2*sqrt(5)
3\sqrt{2}  ~~  3√2
3+4i  ~~  4i+3
6 - 5i  ~~  -5i+6
i  ~~  \sqrt{-1}
\frac{1}{2}+\frac{\sqrt3}{2}i  ~~  e^{i\pi/3}
1+2i  ~~  \frac{5}{1-2i}
-1  ~~  i^2
12\pi  ~~  \pi \cdot 12
\frac{\pi}{2}  ~~  0.5π
2  ~~  \log_{10} 100  ~  \lfloor 2.7 \rfloor
3  ~~  \log_2 8
\frac{1}{2}  ~~  \sin \frac{\pi}{6}
\cot x  ~~  \frac{\cos x}{\sin x}
1  ~~  \sin^2 x+\cos^2 x
\ln 4  ~~  2\ln 2
e^2  ~~  \exp(2)
120  ~~  5!
4  ~~  |-4|
\log 8  ~~  3 \log 2
\tan^{-1} 1  ~~  \frac{\pi}{4}
2x+1  ~~  1+2x
(a+5)(b+2)  ~~  ab+2a+5b+10
x^2-1  ~~  (x-1)(x+1)
\frac{1}{x}+\frac1y  ~~  \frac{x+y}{xy}
3R^2  ~~  3 R^{2}
y=2x+1  ~~  2x-y+1=0
y = 2x+3  ~~  2x+3
y=2x+3  ~~  y - 3 = 2x
5x - 7y + 11z + 4 = 0  ~~  -5x+7y-11z=4
x=5  ~~  5  ~  5=x
x^2+y^2=4  ~~  y^2 = 4-x^2
f(x)=x^2  ~~  x^2
\frac{11+9a}{20}  ~~  0.55+0.45a
x+y<3  ~~  y<3-x
2\pi r  ~~  2 r \pi
\frac{a}{b}  ~~  a/b
x^2 + C  ~~  C + x^2
\alpha+\beta  ~~  \beta + \alpha
x_1+x_2  ~~  x_2+x_1
\begin{pmatrix} -1 & 0 \\ 0 & -1 \end{pmatrix}  ~~  \begin{bmatrix}-1&0\\0&-1\end{bmatrix}
\begin{pmatrix}1&2\\3&4\end{pmatrix}  ~~  [[1,2],[3,4]]
\text{(C)}  ~~  C
C  ~~  (C)  ~  \text{C}  ~  C) 12
(C)  ~~  C.
B  ~~  option B
yes  ~~  Yes.
True  ~~  \text{true}
\text{Evelyn}  ~~  Evelyn
\text{ellipse}  ~~  an ellipse
east  ~~  East
A,C  ~~  A and C
\text{even}  ~~  even
\text{(B)}  ~~  \textbf{(B)}
204_5  ~~  204_{5}  ~  204
1010_2  ~~  1010_{2}  ~  0b1010
4210_{5}  ~~  4210 base 5
\pi  ~~  3.14159
\frac{1}{3}  ~~  0.333333
3.14  ~~  \pi
0.30000000000000004  ~~  0.3
0.667  ~~  \frac23
"""
)

DIFFERENT = table(
    r"""
5  ~~  6  ~  -5  ~  50  ~  5 \text{ or } 6  ~  5, 6  ~  \{5,6\}  ~  7=5  ~  \text{not } 5  ~  \neq 5  ~  5?
5  ~~  5 (or maybe 7)  ~  at least 5  ~  more than 5  ~  5 or more  ~  between 4 and 6  ~  5-6  ~  >5  ~  
5  ~~  \text{same as the ground truth}  ~  x  ~  \frac{5}{0}  ~  {  ~  55  ~  5.1
0.5  ~~  0.05  ~  0.5%
1/2  ~~  2
1/3  ~~  0.33  ~  0.3  ~  0.3334
\pi  ~~  3.14
\sqrt{2}  ~~  1.4
0.125  ~~  0.13
35  ~~  3.5
1234  ~~  1.234  ~  1,2345
12  ~~  1,2  ~  1 and 2  ~  twelve or thirteen
0.333  ~~  0.3
2.35  ~~  2.3564
\frac{1}{3}  ~~  0.33333...4
50\%  ~~  5
3 1/2  ~~  31/2
7/2  ~~  3 \cdot \frac12
5 km  ~~  5 m  ~  5 kg  ~  500 m
2 hours  ~~  2 minutes
90^\circ  ~~  90 \text{ rad}
15 cm^2  ~~  15 cm  ~  15 cm^3
5 apples  ~~  5 oranges
$5  ~~  €5  ~  5 cents  ~  $50
3:4  ~~  4:3  ~  3:5
25  ~~  twenty-six  ~  二十六
XIV  ~~  XVI  ~  16
3:30 PM  ~~  3:30 AM  ~  15:31
July 4, 1776  ~~  July 5, 1776
(1,2)  ~~  (2,1)  ~  1  ~  (1,2,3)  ~  \{1,2\}  ~  [1,2]  ~  (1,2
[1,2)  ~~  [1,2]  ~  (1,2]  ~  1 < x < 2
x>3  ~~  x\ge 3  ~  x<3
(-\infty,0]  ~~  (-\infty,0)
(-\infty, 2) \cup (3, \infty)  ~~  (2,3)  ~  (-\infty,2)
\{1,2\}  ~~  \{1,2,3\}  ~  \{1\}  ~  1
1,2  ~~  1  ~  1,3
3  ~~  3x
2k  ~~  2
2x+1  ~~  2x-1  ~  2y+1
x^2  ~~  x^3
x^2-1  ~~  (x-1)^2
y=2x+1  ~~  y=2x-1  ~  2x+y+1=0
x=5  ~~  y=5  ~  2x=5
2\sqrt{3}  ~~  \sqrt{13}  ~  3\sqrt{2}
3+4i  ~~  3-4i  ~  4+3i
i  ~~  -i
12\pi  ~~  12  ~  13\pi
\cot x  ~~  \tan x
\ln 2  ~~  \ln 3
-2  ~~  2
\pm 2  ~~  2
\begin{pmatrix} -1 & 0 \\ 0 & -1 \end{pmatrix}  ~~  \begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}
\begin{pmatrix}1&2\\3&4\end{pmatrix}  ~~  \begin{pmatrix}1&3\\2&4\end{pmatrix}
\text{(C)}  ~~  D
C  ~~  B) 12  ~  C or D  ~  not C
yes  ~~  no  ~  yes and no
True  ~~  False
\text{Evelyn}  ~~  Carla  ~  Evelyn or Carla
\text{even}  ~~  odd  ~  not even
204_5  ~~  204_6  ~  54
1010_2  ~~  10
1  ~~  \frac{1}{1
x+1  ~~  x
\frac{1}{2}  ~~  \frac{1}{2}x
100  ~~  10^{10^{10^{10}}}
|x|  ~~  x
\sqrt{x^2}  ~~  x
1+\sqrt2  ~~  \sqrt{3+3\sqrt2}
5!  ~~  5
0  ~~  -
3.14  ~~  3.1
6.0  ~~  6.04
x<2 \text{ or } x>3  ~~  x<2 \text{ and } x>3
east  ~~  west
"""
)


@pytest.mark.parametrize(("reference", "answer"), SAME)
def test_same_value(reference, answer):
    assert judge(reference, boxed(answer)).passed is True
    assert judge(reference, f"<answer>{answer}</answer>").passed is True


@pytest.mark.parametrize(("reference", "answer"), DIFFERENT)
def test_different_value(reference, answer):
    assert judge(reference, boxed(answer)).passed is False
    assert judge(reference, f"<answer>{answer}</answer>").passed is False


@pytest.mark.parametrize("reference", sorted({r for r, _ in SAME + DIFFERENT}))
def test_every_reference_accepts_itself(reference):
    assert judge(reference, boxed(reference)).passed is True
    if not reference.startswith("$"):
        assert judge(reference, f"So the answer is ${reference}$.").passed is True


def test_references():
    assert judge(5, boxed("5")).passed is True
    assert judge(0.5, boxed("1/2")).passed is True
    assert judge(["4", "5"], boxed("5")).passed is True
    assert judge("She sells 9 * 2 = 18.\n#### 18", boxed("18")).passed is True
    assert judge("Hence the sum is $\\boxed{18}$.", boxed("18")).passed is True
    for nothing in (None, "", [], {}, "   ", "$"):
        assert judge(nothing, boxed("5")).passed is None


def test_options_are_checked():
    with pytest.raises(UsageError, match="no rule is called 'bxed'"):
        build("verify", {"name": "math", "rules": ["bxed"]})
    with pytest.raises(UsageError, match="regular expression"):
        build("verify", {"name": "math", "rules": ["regex:("]})
    with pytest.raises(UsageError, match="digits"):
        build("verify", {"name": "math", "digits": 0})


def test_rules():
    assert judge("5", '{"answer": "5"}', rules=["json:answer"]).passed is True
    nested = 'I think {"steps": [1], "result": {"value": 5}} is it'
    assert judge("5", nested, rules=["json:result.value"]).passed is True
    assert judge("5", "RESULT=5;", rules=["regex:RESULT=(.*?);"]).passed is True
    assert judge("5", "RESULT=6; \\boxed{5}", rules=["regex:RESULT=(.*?);"]).passed is False
    assert judge("5", "so it is 5").passed is True
    refused = judge("5", "so it is 5", unmarked="refuse")
    assert refused.passed is False and refused.parts == {"marked": 0.0}
    assert judge("5", "\\boxed{5}", unmarked="refuse", rules=["boxed"]).passed is True
    with pytest.raises(UsageError, match="unmarked = 'first': Input should be 'last' or 'refuse'"):
        judge("5", "5", unmarked="first")


def test_the_question_says_which_unit_form_and_option():
    assert judge("120", boxed("2 hours"), "How many minutes does it take?").passed is True
    assert judge("120", boxed("120 hours"), "How many minutes does it take?").passed is False
    assert judge("\\frac12", boxed("\\frac24"), "Write 4/8 in lowest terms.").passed is False
    assert judge("\\frac12", boxed("\\frac24"), "What is 4/8?").passed is True
    assert judge("\\frac12", boxed("\\frac24"), "Write 4/8 in lowest terms.", form=False).passed is True
    assert judge("(x-1)(x+1)", boxed("x^2-1"), "Factor $x^2-1$.").passed is False
    options = "What is 3*4?\n(A) 10\n(B) 12\n(C) 14"
    assert judge("B", boxed("12"), options).passed is True
    assert judge("B", boxed("(B) 12"), options).passed is True
    assert judge("B", boxed("(B) 14"), options).passed is False
    assert judge("12", boxed("B"), options).passed is True
    assert judge("12", boxed("C"), options).passed is False
    assert judge("3.14", boxed("3.14159"), "Round to two decimal places.").passed is False
    assert judge("3.14", boxed("3.14159"), "Estimate the ratio approximately.").passed is True
    assert judge("\\sqrt2", boxed("1.41421356"), "Give the exact value.").passed is False


def test_what_our_reader_does_not_know_goes_to_a_worker():
    assert judge("\\frac{1}{3}", boxed("\\int_0^1 x^2 dx")).passed is True
    assert judge("\\frac{1}{2}", boxed("\\int_0^1 x^2 dx")).passed is False
    verdict = judge("\\frac{1}{3}", boxed("\\int_0^1 x^2 dx"), symbolic=False)
    assert verdict.passed is None and "symbolic" in verdict.feedback
