# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Words that are values: all real numbers, no solution, infinity."""

from __future__ import annotations

from assay.verify.math.realset import REALS
from assay.verify.math.values import RealSet, Text, Value

KNOWN: dict[str, Value] = {
    **dict.fromkeys(
        (
            "allrealnumbers",
            "allreals",
            "realnumbers",
            "allrealx",
            "allrealnumber",
            "x∈ℝ",
            "setofallrealnumbers",
            "everyrealnumber",
            "ℝ",
            *"anyrealnumber allx anyx everyx allrealvaluesofx allvaluesofx xcanbeanyrealnumber xisanyrealnumber "
            "anyrealx "
            "xisallrealnumbers everyrealx allrealvalues allrealnumbersx tousleréels todoslosnúmerosreales "
            "allereellenzahlen x∈ℝ全体实数 全体实数 所有实数 всевещественныечисла".split(),
        ),
        REALS,
    ),
    **dict.fromkeys(
        ("emptyset", "nullset", "⦃⦄", "{}", "∅", "nosolution", "nosolutions", "norealsolution", "norealsolutions"),
        RealSet(()),
    ),
    **dict.fromkeys(
        "none nosolutionsexist nosolutionexists norealsolutionsexist thereisnosolution therearenosolutions "
        "thereisnorealsolution "
        "therearenorealsolutions doesnothaveasolution hasnosolution hasnosolutions hasnorealsolutions "
        "nosuchxexists unsolvable "
        "thesystemisinconsistent pasdesolution pasdesolutionréelle aucunesolution aucunesolutionréelle "
        "nohaysoluciones nohaysolucionesreales "
        "keinelösung keinelösungen unlösbar sinsolución "
        "nohaysolución "
        "notienesolución semsolução nãohásolução nessunasoluzione нетрешений решенийнет нетрешения 无解 無解 無解答 "
        "解なし "
        "해없음 해가없다 لايوجدحل brakrozwiązań geenoplossing ingenlösning çözümyok x∈∅ nosuchnumber "
        "nosuchnumbers".split(),
        RealSet(()),
    ),
    **dict.fromkeys(
        (
            "∞",
            "+∞",
            "oo",
            "+oo",
            "inf",
            "+inf",
            "infty",
            "thelimitisinfinite",
            "infinity",
            "positiveinfinity",
            "+infinity",
            "plusinfinity",
            "infinite",
        ),
        Text("∞"),
    ),
    **dict.fromkeys(("-∞", "negativeinfinity", "-oo", "-inf", "-infinity", "minusinfinity"), Text("-∞")),
    **dict.fromkeys(("dne", "doesnotexist", "undefined", "nolimit", "limitdoesnotexist"), Text("undefined")),
}
"""By the words in small letters without blanks."""
