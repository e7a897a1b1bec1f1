# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Names of figures and solids in several languages, each with one name for all."""

from __future__ import annotations

import functools

_NAMES = """
trapezoid trapezium trapez trapèze trapecio trapézio trapezio трапеция трапеція 梯形 台形 사다리꼴 lichobežník
trapezoid lichoběžník yamuk
parallelogram parallelogramm parallélogramme paralelogramo parallelogramma параллелограмм 平行四边形 平行四辺形
parallelogram 평행사변형 paralelkenar
rhombus raute rombo losange losango ромб 菱形 ひし形 마름모 romb ruit
rectangle rechteck rectángulo rettangolo retângulo прямоугольник 长方形 矩形 長方形 직사각형 prostokąt rechthoek
rectangle dikdörtgen
square quadrat carré cuadrado quadrato quadrado квадрат 正方形 정사각형 kwadrat vierkant kare
kite drachen drachenviereck deltoid cerf-volant cometa aquilone pipa дельтоид 筝形
triangle dreieck triángulo triangolo triângulo треугольник 三角形 삼각형 trójkąt driehoek üçgen
pentagon fünfeck pentagone pentágono pentagono пятиугольник 五边形 五角形 오각형 pięciokąt vijfhoek beşgen
hexagon sechseck hexagone hexágono esagono шестиугольник 六边形 六角形 육각형 sześciokąt zeshoek altıgen
heptagon siebeneck heptagone heptágono ettagono семиугольник 七边形
octagon achteck octogone octágono octógono ottagono восьмиугольник 八边形 八角形
circle kreis cercle círculo cerchio круг окружность 圆 圆形 円 원 koło okrąg cirkel daire
ellipse ellipsa elipse ellisse эллипс 椭圆 楕円 타원
parabola parabel parabole parábola парабола 抛物线 放物線 포물선
hyperbola hyperbel hyperbole hipérbola iperbole гипербола 双曲线 双曲線
sphere kugel sphère esfera sfera сфера шар 球 球体 구 kula bol küre
cube würfel cubo куб 正方体 立方体 정육면체 sześcian kubus küp
cone kegel cône cono cone конус 圆锥 円錐 원뿔 stożek kegel koni
cylinder zylinder cylindre cilindro цилиндр 圆柱 円柱 원기둥 walec cilinder silindir
pyramid pyramide pirámide piramide pirâmide пирамида 棱锥 金字塔 角錐 피라미드
tetrahedron tetraeder tétraèdre tetraedro тетраэдр 四面体 사면체
prism prisma prisme призма 棱柱 角柱 각기둥
equilateral gleichseitig équilatéral equilátero equilatero равносторонний 等边 正三角形 정삼각형 gleichseitiges
isosceles gleichschenklig isocèle isósceles isoscele равнобедренный 等腰 二等辺三角形 이등변 gleichschenkliges
scalene ungleichseitig scalène escaleno scaleno разносторонний 不等边
acute spitzwinklig acutangle acutángulo acutangolo остроугольный 锐角
obtuse stumpfwinklig obtusangle obtusángulo ottusangolo тупоугольный 钝角
right-angled rechtwinklig rectangle-triangle rectángulo-triángulo прямоугольный 直角
"""
_CANONICAL = {
    name: line.split()[0] for line in reversed(_NAMES.strip().splitlines()) for name in reversed(line.split())
}
_ARTICLES = frozenset(
    "a an the ein eine der die das un une le la el il lo o um uma is it it's es est ist este это een het".split()
)
_CLASSES = frozenset(("triangle", "dreieck", "triángulo", "triangolo", "треугольник", "shape", "quadrilateral"))


@functools.lru_cache(4096)
def shape(text: str) -> str | None:
    """Return the English name of the figure that the whole of ``text`` names, ``None`` if it names none."""
    if len(text) > 40 or any(map(str.isdigit, text)):
        return None
    words = [word for word in text.casefold().strip(" .!*_$").split() if word not in _ARTICLES]
    if len(words) == 2 and words[1] in _CLASSES:
        words = words[:1]
    return _CANONICAL.get(words[0]) if len(words) == 1 else None
