r"""Small grammars of what answers look like: leaves, and templates in which each ``@`` is another piece.

They give text that gets past the first look of a parser, which no random text does.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

Grammar = tuple[tuple[str, ...], tuple[str, ...]]

_NUMBERS = ("0", "1", "-1", "2", "3", "12", "0.5", "1e3", "1e999999999", "-0", "1/0", "00", "1,000", "9" * 50,
"9" * 4301,
            "٣", "²", "½", "１２", "Ⅷ", "NaN", "inf", "-inf", "1_000", "0x10", "1e-400", "+5", "--5", ".5",
            "5.")  # fmt: skip
_WORDS = ("a", "b", "c", "x", "Ann", "Bob", "red", "the", "and", "or", "not", "is", "yes", "no", "none", "null", "true")

SOUPS: dict[str, Grammar] = {
    "text": (
        (*_WORDS, *_NUMBERS[:8], "Paris", "5", "\n", "\n\n", "<think>", "</think>", "<answer>", "</answer>", "P.S.",
         "***", "- x", "# H"),
        ("@ @", "**@**", '"@"', "@. @", "<answer>@</answer>", "<think>@</think>", "@\n@", "`@`", "[@]", "<<@>>",
         "* @\n", "| @ | @ |\n"),
    ),
    "math": (
        (*_NUMBERS, "x", "y", "i", "e", r"\pi", r"\infty", "°", r"\emptyset", r"\text{cm}", "%", r"\$", r"\,", "{",
         "}", "$", r"\ ", "..."),
        (r"\frac{@}{@}", r"\sqrt[@]{@}", "@^{@}", "@^@", "@_{@}", r"\boxed{@}", r"\left(@\right)",
         r"\left[@, @\right)", "@+@", "@-@",
         "@*@", "@/@", "@!", r"\int_{@}^{@} @\,dx", r"\sum_{n=1}^{@} @", r"\binom{@}{@}", r"\{@, @\}", "(@, @)",
         "[@, @]", "@ = @",
         r"\begin{pmatrix} @ & @ \\ @ & @ \end{pmatrix}", r"\begin{cases} @ \\ @ \end{cases}", r"\text{@}",
         r"@ \le @", r"@ \cup @",
         r"\sin(@)", r"\log_{@} @", "|@|", r"@ \pmod{@}", "$@$", r"\(@\)", "@%", "-@", r"@ \text{ and } @", "@:@",
         "@ or @",
         r"\lim_{x\to @} @", r"\overline{@}", r"@ \times 10^{@}", r"\frac@@", "x=@", r"@^\circ"),
    ),
    "quantity": (
        (*_NUMBERS, "m", "kg", "s", "m/s^2", "%", "°C", "K", "J", "eV", "µm", "furlong", "c", "pi", r"\mathrm{m}",
         "mol", "$", "±", "dB", "m**999"),
        ("@ @", "@ ± @", "@/@", "@^@", "@^{@}", r"@ \times 10^{@}", "@·@", r"\frac{@}{@}", "(@ ± @) @", r"\text{@}",
         "@e@", "@ or @", "@ = @", "@×10^@", r"\mathrm{@}", "(@)@", "@*@"),
    ),
    "choice": (
        ("A", "B", "C", "D", "Z", "a", "(A)", "B.", "Berlin", "New York", "São Paulo", "Rome", "1", "0", "x", "y",
         "option", "all", "none of the above", "neither"),
        ("@ or @", "@ and @", "@, @", "not @", "(@) @", r"\text{@}", "**@**", "option @", "@: @", "@) @", "[@]",
         "@ rather than @", "The answer is @", "both @ and @"),
    ),
    "list": (
        (*_NUMBERS, *_WORDS, "pot", "cup", "0", "\n", ",", ";", ">", "->", "[", "]", r"\{", r"\}"),
        ("@, @", "@; @", "@\n@", "[@]", "{@}", "(@, @)", "- @\n- @", "1. @\n2. @", "@ > @", "[@] > [@]", "@ -> @",
         r"\{@\}", '["@", "@"]', "@ and @", '{"@": @}', "@ + @ = @", "bin @: @"),
    ),
    "expression": (
        (*_NUMBERS, "3", "4", "5", "94", "61", "6", "(", ")", "x", "**", "//", "%", "%%", "__import__('os')", "[0]",
         "'a'*9**9"),
        ("(@)", "@+@", "@-@", "@*@", "@/@", "@**@", "@^@", "-@", "@ = @", "@//@", "[@]", r"@ \times @", "@,@", "@!",
         "~@", "f(@)", "@ if @ else @", "lambda: @"),
    ),
    "json": (
        (*_NUMBERS, "true", "false", "null", '""', '"a"', '"name": "Ann"', '"\\ud800"', '"\\u0000"', '"\n"', "{}",
         "[]", "{", "[", "]", "}", '"', "//", "'a'", "NaN", '"1970-99-99"'),
        ('{"a": @}', '{"name": @, "age": @}', "[@, @]", "[@]", '"@"', "@, @", '{"a": @, "a": @}', "```json\n@\n```",
         "```\n@\n```", '{"left": @, "right": @}', '{"value": @}',
         '{"tags": [@, @]}', '{"home": @}', "@ @", '{"$ref": @}', '{@: @}', "/* @ */", '{"\\u0061": @}',
         '{"__proto__": @}'),
    ),
    "yaml": (
        (*_NUMBERS, *_WORDS, "~", "&a", "*a", "!!python/object/apply:os.system", "!!binary", "2024-01-01", "<<: *a",
         "|", ">", "---", "...", "%YAML 1.1", "? ", "\t", "0o17", "1:30", "y", "@"),
        ("@: @\n", "- @\n", "- @\n- @\n", "[@, @]", "{@: @}", "&a @", "a: &a @\nb: *a\n", "@:\n  @: @\n", "- - @\n",
         "'@'", '"@"', "? @\n: @\n", "!!set {@}", "!!@ @", "@: |\n  @\n", "---\n@\n", "&b [*a, *a, @]\n"),
    ),
    "toml": (
        (*_NUMBERS, "true", '"a"', "'a'", "a", "a.b", "1979-05-27T07:32:00Z", "07:32:00", "0x1F", "inf", '"""', "'''",
         "=", "[", "]", '"\\ud800"', "\r"),
        ("@ = @\n", "[@]\n", "[[@]]\n", "@.@ = @\n", "@ = [@, @]\n", "@ = {@ = @}\n", '"@" = @\n', '@ = """@"""\n',
         "# @\n", "[@.@]\n@ = @\n"),
    ),
    "csv": (
        (*_NUMBERS, *_WORDS, '"', '""', ",", "\n", "\r\n", "\r", ";", "\t", "\x00"),
        ("@,@\n", "@,@\n@,@\n", '"@"', "@,@,@\n", "a,b\n@,@\n", "k,v\n@,@\n", '"@\n@",@\n', "```csv\n@```"),
    ),
    "xml": (
        (*_WORDS, "<a/>", "<b id='1'>", "</b>", "</a>", "&amp;", "&#0;", "&#xD800;", "&x;", "<!--", "-->",
         "<![CDATA[", "]]>", "<?x?>", "<!DOCTYPE a>", "<", ">", "\x00", "]]&gt;"),
        ("<a>@</a>", "<b id='1'>@</b>", "<a>@@</a>", "<c>@</c>", "<@/>", "<a @='@'/>",
         "<!DOCTYPE a [<!ENTITY x '@'>]><a>&x;</a>", "<?xml version='1.0' encoding='@'?>@",
         "<x:a xmlns:x='@'>@</x:a>",
         "<!-- @ -->", "<![CDATA[@]]>", "<a xmlns='@'>@</a>", "&@;"),
    ),
    "pattern": (
        (*_NUMBERS, *_WORDS, "AB-1234", "2024-05", "fox", "aaaaaaaaaaaaaaaaaaaaaaaa", "!", "A", "\n"),
        ("@@", "@-@", "@ @", "a@b", "@\n@", "AB-@", "@ fox @"),
    ),
    "calls": (
        (*_NUMBERS, "f", "g", '"a"', "'x'", "true", "None", "f(a=1)", "g(b='x')",
         '{"name": "f", "arguments": {"a": 1}}', "<tool_call>", "</tool_call>", "<function=f>", "</function>", "[",
         "]", "{}", "\n", "**{}"),
        ("[@, @]", "f(a=@)", "g(b=@)", "@(@)", '{"name": "f", "arguments": @}', '{"name": @, "arguments": @}',
         '{"a": @}', "<tool_call>@</tool_call>", "<function=@>@</function>", "<parameter=@>@</parameter>",
         '{"tool_calls": [@]}', '{"function": @}', "```json\n@\n```", "```python\n@\n```", "@, @", "-@", "(@,)",
         "{@: @}", "@ + @", "'@'", "f'{@}'", '{"name": "h", "arguments": {"x": @, "y": @}}', "@\n@"),
    ),
    "coordinates": (
        (*_NUMBERS, "10", "20", "110", "220", "(", ")", "[", "]", ",", "<box>", "</box>", "bbox_2d", "1e308",
         "-1e308", "1e-320"),
        ("[@, @, @, @]", "(@, @)", "@, @", "@ @", '{"bbox_2d": [@, @, @, @]}', '{"point_2d": [@, @]}', "[@, @]",
         "<box>(@,@),(@,@)</box>", "<point>@ @</point>", '[{"box": [@,@,@,@]}, @]', "x=@, y=@",
         '<point x="@" y="@">'),
    ),
    "times": (
        (*_NUMBERS, "1:05", "1:20", "00:00:10", "10 s", "2 min", "99:99:99", "1:2:3:4", "to", "-", "–", "until"),
        ("@ - @", "@ to @", "[@, @]", "from @ to @", "between @ and @", "@:@", "@:@:@", "@ s", "@, @",
         '{"start": @, "end": @}', "@\n@", "[[@, @], [@, @]]"),
    ),
    "quotes": (
        (*_WORDS, "quick brown fox jumps", "the capital of France", "[1]", "[2]", "[99]", "[1, 2]", "<CHUNK_1>",
         "[[3]]", "...", "[…]", '"', "“", "”", "«", "'", "the lazy dog", "\n"),
        ('"@"', "“@”", "«@»", "@ @", "@ [@]", "[@, @]", "[@-@]", "<useful_chunks>@</useful_chunks>",
         "<quote>@</quote>", '"@ ... @"', "@. @", "@\n@", "(@)", "<CHUNK_@>", "[[@]]", '"@" [1]', "> @\n"),
    ),
    "grid": (
        ("1", "2", "3", "4", "1234", "A", "B", "Q", ".", "_", "|", "-", "+", "\n", "0", "9", "١", "Q..", ".Q..", "[",
         "]"),
        ("@ @", "@\n@", "@,@", "[@]", "@ @ @ @\n", "@@@@\n", "[@, @]", "(@, @)", "| @ | @ |", "```\n@\n```", "@|@"),
    ),
    "people": (
        ("Ann", "Bob", "Zoë", "Yan", "knight", "knave", "saint", "sinner", "is", "is a", "isn't", "not", "and",
         "neither", "both", ",", ".", ":", "\n", "a liar"),
        ("@ is a @", "@: @", "@ and @ are @s", "@ is not a @", "@, @", "@. @", "**@**", "both @", "neither @ nor @",
         "if @ then @", "@\n@", '{"@": "@"}'),
    ),
    "moves": (
        ("U", "D", "L", "R", "DRR", "up", "down", "right", "north", "→", "↓", "(0, 0)", "(1, 1)", "1", "0", ",", "->",
         "\n", "no path", "forward", "(9999999, -1)"),
        ("@ @", "@, @", "@ -> @", "(@, @)", "[@, @]", "@@", "@\n@", '["@", "@"]', "@ x @", "move @ @ times",
         "1. @\n"),
    ),
    "assignment": (
        (*_NUMBERS, *_WORDS, "x1", "x2", "v 1 -2 3 0", "s SATISFIABLE", "unsat", "=", ":", "\n", "d"),
        ("@ = @", "@: @", "@, @", "@ @", '{"@": @}', '{"a": @, "b": @}', "@\n@", "v @ @ 0", "@ -> @", "@ is @",
         "x@ = @", "**@**: @"),
    ),
    "smt": (
        (*_NUMBERS, "x", "y", "b", "z", "true", "false", "unsat", "unknown", "(", ")", "|x|", "#b101", "#xff", '"s"',
         ";", "Int", "Bool", "2.5", "(- 1)"),
        ("(and @ @)", "(or @ @)", "(not @)", "(=> @ @)", "(= @ @)", "(> @ @)", "(<= @ @)", "(+ @ @)", "(* @ @)",
         "(/ @ @)", "(div @ @)", "(mod @ @)", "(ite @ @ @)", "(^ @ @)", "(let ((z @)) @)",
         "(forall ((z Int)) @)", "(exists ((z Int)) @)", "(define-fun x () Int @)", "(define-fun y () Real @)",
         "x = @, y = @, b = @", "x = @", "(! @ :named n)", "((as const (Array Int Int)) @)",
         "(assert @)", "(@ @)", "(declare-const z @)", "(include \"@\")", "((_ int2bv 8) @)", "(to_real @)",
         "(abs @)"),
    ),
    "asp": (
        (*_NUMBERS[:8], "a", "b", "X", "Y", "c(1,r)", "c(2,g)", "r(X)", "s(X)", "e(X,Y)", "p(X)", ".", ":-", "not",
         "#show", "#const n=1.", "#include \"x\".", "#script(python)", "{", "}", '"', "%", "%*", "1..3", "_", "@f"),
        ("@ :- @.", "@.", "@, @", "{@}.", "{@ : @}.", ":- @.", "not @", "f(@)", "c(@,@)", "@ + @",
         "#count{@ : @} > @", "#minimize{@ : @}.", "@..@", "r(@..@).", "@; @", "-@", "#show @.", "r(@) :- @.",
         "@**@", "@ = @", '"@"', "p(@).", "p(@) :- p(@).", "findall(@, @, @)", "@ \\= @", "f(@, @)"),
    ),
    "sql": (
        (*_NUMBERS[:12], "*", "name", "pay", "id", "staff", "NULL", "'x'", '"x"', ";", "--", "/*", "sqlite_master",
         "x'00'", "count(*)", "random()", "randomblob(9)", "current_timestamp", "?", ":a", "$1", "char(0)"),
        ("SELECT @", "SELECT @ FROM staff", "SELECT @ FROM staff WHERE @", "SELECT @ FROM staff, staff b, staff c",
         "@ UNION ALL @", "(@)", "@, @", "@ + @", "@ || @", "@ = @", "@ IN (@)", "CASE WHEN @ THEN @ END",
         "WITH t AS (@) SELECT * FROM t", "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM t) @",
         "@ ORDER BY @", "@ LIMIT @", "abs(@)", "printf('%@d', @)", "substr(@, @)", "hex(zeroblob(@))",
         "replace(@, @, @)", "VALUES (@)", "PRAGMA @", "ATTACH @ AS z", "DELETE FROM @", "EXPLAIN @", "@; @",
         "@ LIKE @", "@ COLLATE @", "group_concat(@)", "json_extract(@, @)", "CAST(@ AS @)", "```sql\n@\n```",
         "range(@)", "repeat(@, @)", "list_value(@)", "@ OVER (ORDER BY @)", "@ GLOB @", "@ << @",
         "generate_series(@)", "read_csv('@')", "@ ESCAPE @"),
    ),
    "code": (
        (*_NUMBERS[:10], "x", "f", "print(1)", "input()", "import os", "import sys", "pass", "while True: pass",
         "os._exit(0)", "sys.exit()", "raise SystemExit", "\n", "    ", "\t", "return x*x",
         "__import__('os').kill(0, 9)", "exit()", "f = lambda x: x*x", "class f: pass", "#", '"""', "b'\\xff'", "\\",
         "assert f", "[0]*10**10", "9**9**9", "open('/etc/passwd')", "globals()", "yield", "await x"),
        ("```python\n@\n```", "```\n@\n```", "def f(x):\n    @\n", "print(@)\n", "@\n@", "@ = @\n", "for x in @: @\n",
         "if @:\n    @\n", "(@)", "[@]", "{@: @}", "@(@)", "lambda x: @", "try:\n    @\nexcept BaseException: @\n",
         "```python\n@", "import @\n", "from @ import @\n", "class C:\n    def f(self, x):\n        @\n",
         "@ if @ else @", "f'{@}'", "exec(@)", "print(@, file=sys.stderr)", "```python\ndef f(x):\n    @\n```",
         "class Z(int):\n    def __eq__(self, o): return @\n", "return @", "while @:\n    @\n", "'@' * 10**8",
         "def f(x):\n    return f(@)\n"),
    ),
    "coq": (
        ("n", "x", "0", "Proof.", "Qed.", "Admitted.", "Defined.", "reflexivity.", "exact I.", "simpl.", "auto.",
         "sorry", "by", "rfl", "(*", "*)", "/-", "--", "{", "}", ":=", "assume false;", "\n", "y := x + x;"),
        ("Proof. @ Qed.", "intros @.", "induction @; @.", "exact (@).", "forall @, @", "(@)", "@ @", "@\n@",
         "Lemma @ : @. Proof. @ Qed.", "Axiom @ : @.", "Notation \"@\" := (@).", "repeat (@).", "by intro @; @",
         "theorem t : @ := @", "```\n@\n```", "method @(x: int) returns (y: int) ensures @ { @ }", "{ @ }",
         "Fixpoint f (n : nat) : nat := @.", "let @ := @ in @", "if @ { @ } else { @ }", "Require Import @.",
         "Print @."),
    ),
    "contract": (
        ("r", "x", "0", "-x", "true", "s", "method abs(x: int) returns (r: int)", "ensures", "requires", "invariant",
         "assume false;", "decreases", "while", "{", "}", ":=", ";", "\n", "forall k ::", "==>", "|s|", "[", "..",
         "999999", "function f(n: int): int", "/*", "//", "é"),
        ("@ @", "@ := @;", "(@)", "@ + @", "@ * @", "@ == @", "@ && @", "if @ { @ } else { @ }", "while @ { @ }",
         "method abs(x: int) returns (r: int) ensures @ { @ }", "forall k :: @ ==> @", "@[@]", "@[@ := @]", "f(@)",
         "method abs(x: int) returns (r: int) ensures @", "function f(n: int): int decreases n { @ }", "assert @;",
         "method abs(x: int) returns (r: int) ensures r >= 0 { r := x; while @ { @ } }", "@\n@"),
    ),
    "verilog": (
        ("a", "b", "y", "0", "1'b1", "8'hff", "module", "endmodule", "both", "input", "output", "begin", "end", ";",
         "`include \"x\"", "$finish;", "$display(1);", "//", "/*", "\n", "clk"),
        ("module both(input a, input b, output y); @ endmodule", "assign y = @;", "@ & @", "@ | @", "~@",
         "always @(*) begin @ end", "wire @;", "@ ? @ : @", "{@, @}", "both u(@, @, @);", "initial @",
         "for (i = 0; i < @; i = i + 1) @",
         "@ ** @", "```verilog\n@\n```", "`define X @", "(@)", "@[@:@]", "{1000000{@}}", "generate @ endgenerate"),
    ),
    "stack": (
        ("x", "y", *"0123456789+-*mM<?ds", "z", "٣", "²", "xy+", "\n"),
        ("@@", "@ @", "@@+", "@d*", "@@@?", "x@*", "@\n@", "@@s-"),
    ),
    "plan": (
        ("unstack", "put-down", "pick-up", "stack", "take", "rest", "toggle", "a", "b", "c", "ann", "bob", "red",
         "blue", "desk", "(", ")", ";", "\n", "()", "1.", "?x", "0.000:", "[1]"),
        ("(@ @)", "(@ @ @)", "@(@)", "@(@, @)", "@ @", "@\n@", "1. @", "(@)\n", "- @", "`@`", "(rest @)\n",
         "(take @ @)\n", "(toggle @)\n", "(pick-up @)\n", "(stack @ @)\n", "step @: @", "```\n@\n```"),
    ),
}  # fmt: skip


@st.composite
def soup(draw: DrawFn, name: str, most: int = 24) -> str:
    """Text of one grammar with at most ``most`` pieces."""
    leaves, templates = SOUPS[name]
    left = draw(st.integers(1, most))
    deepest = draw(st.integers(0, 6))

    def piece(depth: int) -> str:
        nonlocal left
        left -= 1
        if depth >= deepest or left <= 0:
            return draw(st.sampled_from(leaves))
        holes = draw(st.sampled_from(templates)).split("@")
        return holes[0] + "".join(piece(depth + 1) + hole for hole in holes[1:])

    pieces = [piece(0)]
    while left > 0 and draw(st.booleans()):
        pieces.append(piece(0))
    return draw(st.sampled_from((" ", "", "\n"))).join(pieces)
