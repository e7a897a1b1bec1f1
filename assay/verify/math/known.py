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
        "ningunasolución theequationhasnosolution theequationhasnosolutions theequationhasnorealsolution "
        "theequationhasnorealsolutions l={} l=⦃⦄ l=∅ s=∅ x=∅ "
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
            *"l'infini plusl'infini +l'infini infinito másinfinito +infinito maisinfinito piùinfinito unendlich "
            "plusunendlich бесконечность плюсбесконечность 无穷大 正无穷 正无穷大 無限大 正の無限大 무한대 "
            "plusnieskończoność".split(),
        ),
        Text("∞"),
    ),
    **dict.fromkeys(
        "infinitelymany infinitelymanysolutions thereareinfinitelymany thereareinfinitelymanysolutions ∞many "
        "infinitesolutions infinitenumberofsolutions aninfinitenumber aninfinitenumberofsolutions unendlichviele "
        "unendlichvielelösungen uneinfinité uneinfinitédesolutions infinitassoluciones infinitas "
        "infinitesoluzioni infinitassoluções бесконечномного бесконечномногорешений 无穷多 无穷多个 无穷多解 "
        "有无穷多个 無限個 無限に多い 무수히많다 nieskończeniewiele oneindigveel sonsuzçoklukta".split(),
        Text("infinitely many"),
    ),
    **dict.fromkeys(("-∞", "negativeinfinity", "-oo", "-inf", "-infinity", "minusinfinity"), Text("-∞")),
    **dict.fromkeys(
        (
            *"dne doesnotexist undefined nolimit limitdoesnotexist doesn'texist limitdoesn'texist itdoesnotexist "
            "existiertnicht grenzwertexistiertnicht dergrenzwertexistiertnicht n'existepas lalimiten'existepas "
            "noexiste ellímitenoexiste nonesiste illimitenonesiste nãoexiste olimitenãoexiste несуществует "
            "пределнесуществует 不存在 极限不存在 極限不存在 極限は存在しない 存在しない 존재하지않는다 "
            "극한이존재하지않는다 nieistnieje granicanieistnieje bestaatniet nichtdefiniert nondéfini "
            "indefinido".split(),
        ),
        Text("undefined"),
    ),
}
"""By the words in small letters without blanks."""
