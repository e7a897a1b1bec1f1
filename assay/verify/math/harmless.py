# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Words of some twenty languages that state an answer and can neither deny nor doubt it.

They are articles, prepositions, copulas, words for answers and quantities, and the nouns and verbs of everyday
problems. A word may end in ``*``, which stands for up to eight further letters of an inflection.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from assay.verify.math.counted_nouns import NOUNS

_WORDS = """
output* prints ostateczn*
ans binary hexadecimal octal intercept übrig verbleiben verbleibt verbleibende шт vertex scheitel* gross subida
rebaja aumento descuento reducción incremento
impiegano sobran falta faltan целое целых действительн* primfaktor* مستطيل المستطيل محيط مساحة المحيط rechnen alles
zusammen
resto teorema chino hausse baisse augmentation réduction remise augment* rabatt erhöhung ermäßigung senkung sconto
second required desired sided count them form conclusion explanation check interval done nbsp working backwards
initially
correction corrected confidence high te ten kč zł kr ft
matri* vector* vektor* determin* integral* polynom* ausmultipli* einheitsvek* umkehrfunk* primfaktor* prozentpunkt*
grenzw* diagonal* perim* parabol* ellips* logarit* exponent* derivat* funkt* funkc* function* funzion* funç* func*
linear* quadrat* period* decim* dezim* fraction* fracc* fraç* frazion* paramet* coordin* koordin* interval* interv*
proport* probab* median* modul* radian* cent* kilo* sekun* minut* diamet* radius вектор* матриц* определител*
интеграл* полином* многочлен* диагонал* периметр* парабол* логарифм* функци* параметр* координат* интервал* пропорц*
медиан* радиус* диаметр* треугольник* квадрат* круг* prost* трапец* trapez*

the a an is are was were be of to in on at by for from with and so thus hence therefore then it its this that these
there their his her we i you  get gets got obtain find have has had gives give makes make equals equal same as
final answer answers result results solution solutions value values total sum difference product quotient remainder
number numbers length width height area volume perimeter speed rate time price cost costs ratio angle angles
probability average mean median equation line circle matrix function limit slope distance age ages set vector point
while whereas
each every piece pieces film movie train arrives arrive ends lasts takes long wide high tall deep away left remain
remains altogether all together overall exactly old people children students books apples pencils eggs boxes pens
tickets cards balls marbles pages chairs edges faces vertices sides diagonals ways terms term now well here sure okay
ok our my step steps using which when must needs need needed earns earn pays pay spends spend receives sold sells lies
meet meets cross intersect where since because dividing adding multiplying subtracting taking both we've exact
simplest form lowest simplified degree degrees read today tomorrow

el la los las un una unos unas de del al a en con por para y es son está están fue será serán hay tiene tienen se le
que así luego entonces finalmente resulta obtiene obtenemos queda quedan quedarían respuesta* resultado* solución
soluciones valor* calculado correct* obtienen obtuve último mes comprobación tanto espero sirva ecuaciones
determinante diagonales factorización total* suma diferencia producto cociente resto número* longitud ancho altura
área volumen perímetro velocidad media tiempo precio cuesta cuestan coste costo razón proporción ángulo* probabilidad
ciento promedio mediana ecuación recta círculo circunferencia matriz función límite pendiente distancia edad conjunto
vector punto cada parte partes pedazo* trozo* película tren llega llegan termina terminan dura tarda mide miden pesa
vale
valen gana paga pagan pagará pagarán recibe recibirá gasta necesita* necesitan pues porque ya final* exacta*
exactamente igual mayor menor derivada integral raíz raíces persona* niño* alumno* libro* manzana* lápices huevo*
caja* asiento* carta* bola* página* silla* lado* cara* arista* vértice* manera* forma* término* estudiante* siguiente
pasa contiene caben equivale equivalen nos calculamos sumando multiplicando dividiendo restando

o os as um uma uns umas de do da dos das no na nos nas em com por para e é são está estão foi será há tem têm se que
assim então logo portanto finalmente resulta obtém obtemos resta restam resposta* solução soluções soma diferença
correta correto quociente número* comprimento largura altura área perímetro velocidade média tempo preço custa custam
custo razão ângulo* probabilidade equação reta circunferência matriz função limite distância idade conjunto vetor
ponto filme trem comboio chega termina dura mede medem pesa ganha paga pagam recebe gasta precisa porque pois igual
maior menor ao derivada raiz raízes pessoa* criança* aluno* livro* maçã* lápis ovo* caixa* lugar* pedaço* fatia*
terceiro

il lo la i gli le un uno una di del dello della dei degli delle da dal dalla a al alla ai alle in nel nella con e è
sono era sarà ha hanno c'è ci si che quindi dunque perciò allora infine risulta otteniamo ottiene rimane rimangono
restano risposta risultato soluzione soluzioni valore totale somma differenza prodotto quoziente resto numero numeri
lunghezza larghezza altezza area volume perimetro velocità media tempo prezzo costa costano costo rapporto angolo
angoli probabilità equazione retta cerchio circonferenza matrice funzione limite distanza età insieme vettore punto
ogni parte parti pezzo pezzi treno arriva finisce termina dura misura misurano pesa vale guadagna paga pagano riceve
servono occorrono perché poiché uguale maggiore minore derivata radice radici persone bambini alunni studenti libri
mele matite uova scatola scatole posti corretta corretto giusta giusto finale esatto esatta

le la les l un une des du de d à au aux en dans par pour avec et est sont était sera seront a ont il elle ils elles on
y reste restent ce c cela ça donc ainsi alors finalement enfin vaut valent obtient obtenons trouve trouvons nous
réponse* résultat* solution* valeur* total* somme différence produit quotient nombre* longueur largeur hauteur aire
volume périmètre vitesse moyenne temps prix coûte coûtent coût rapport angle* probabilité équation droite cercle
matrice fonction limite pente distance âge ensemble vecteur point diviseur* racine* primitive* générale* chaque part
parts
morceau* film train arrive finit termine dure mesure mesurent pèse gagne paie payent paient reçoit dépense faut car
puisque parce que égal* égale supérieur inférieur exact* exacte correcte bonne dérivée intégrale racine racines
personne* enfant* élève* livre* pomme* crayon* oeuf* œuf* boîte* place* carte* boule* page* chaise* côté* face* arête*
sommet* façon* terme* font fait premier unité* carré* vérification cherché* recherché* conclusion chacun chacune soit
contient suivant

der die das den dem des ein eine einen einem einer eines im in am an auf bei mit von vom zu zum zur für um und ist
sind war wird werden es gibt hat haben er sie man wir also somit damit daher folglich schließlich ergibt erhält
erhalten erhalte beträgt betragen lautet lauten bleibt bleiben antwort* ergebnis* endergebnis lösung* wert werte
wertes gesamt
insgesamt summe differenz produkt quotient rest zahl* länge breite höhe fläche flächeninhalt volumen umfang
geschwindigkeit durchschnitt* mittelwert zeit preis* kostet kosten verhältnis winkel* wahrscheinlichkeit gleichung
gerade* kreis matrix funktion grenzwert steigung abstand entfernung alter menge vektor punkt jede* jeder jedes stück*
teil teile teilen film zug kommt endet dauert lang breit hoch schwer misst wiegt verdient zahlt zahlen bekommt
braucht brauchen
benötigt weil da denn gleich größer kleiner genau richtige* endgültige* gesuchte* ableitung integral wurzel alt kinder
personen menschen schüler* bücher äpfel bleistifte stifte eier kiste* schachtel* plätze karten kugeln seiten stühle
dritte dritter zweite erste strecke umsatz gewinn preis glied kanten flächen ecken möglichkeiten arten glied* uhr nach
vor diagonale dann macht nun hier heißt dezimalkomma passt richtig entspricht gilt neuer neue neues ganze* n-te
zusammen endgültig bruch dezimalzahl einheit* grad rund punkte zehnte zahl dezimalpunkt wort worten enthält exakt

multipliant divisant additionnant soustrayant conséquent dividindo subtraindo somando sommando dividendo sottraendo
moltiplicando sumamos obtenido obtenida possède possèdent aura auront achète achètent vend vendent économise parcourt
parcouru dépensé paiera restera resteront possiede avrà avranno compra comprano vende vendono risparmia percorre
percorso spende pagherà riceverà rimarrà rimarranno posee tendrá tendrán recorre recorrido compran venden ahorra gastó
recibió quedó quedarán pagó tardará tardan necesitará costará fica ficam ficou ficaram terá terão percorre percorrido
compram vendem economiza gastou pagou recebeu levará demora besitzt besitzen fährt gefahren läuft kauft kaufen
verkauft verkaufen spart sparen bezahlt bezahlen bekommen erhielt verbraucht wiegen fahren laufen koopt kopen verkoopt
verkopen spaart rijdt reed loopt betaalde betaalt verdiende eindantwoord eindresultaat köper köpte säljer sålde sparar
kör betalar betalade tjänar kupuje kupił kupiła sprzedaje sprzedał sprzedała oszczędza przejedzie przejechał zapłacił
zapłaciła zostanie koupí koupil koupila prodá prodal prodala ušetří ujede ujel zaplatí zaplatil zaplatila zbude zbývá
купил купила купили продал продала продали стало останется проедет проехал проехала потратил потратила потратили
заплатил заплатила купують купив купила alır aldı satar sattı harcar harcadı öder ödedi gider gitti τελικ* έχουν
μένουν πληρώνει mua bán còn trả membeli menjual memiliki membutuhkan controle kontroll kontrol probe prueba prova
bewijs akhirnya slutlig* slutgiltig* konečn* definitiv* endelig* uiteindelijke facit vastaus svar szukana het de een
van in op bij met voor om en is zijn was wordt er heeft hebben dus daarom uiteindelijk krijgen krijg geeft bedraagt
blijft blijven over antwoord* uitkomst resultaat oplossing* waarde* totaal totale som verschil getal lengte breedte
hoogte oppervlakte omtrek snelheid gemiddelde tijd prijs kost kosten verhouding hoek kans vergelijking lijn cirkel
film trein komt eindigt duurt lang elk elke ieder stuk* deel juiste kinderen leerlingen boeken appels potloden eieren
stoelen zijden verdient betaalt krijgt nodig gelijk aan we ik zit zitten dat

det den de en ett et är er var av i på vid för til till om och og så alltså därför derfor altså blir bliver finns der
har får vi svaret svar resultatet resultat lösningen lösning* løsningen summan värdet värde totalt sammanlagt antal
talet längden arean volymen omkretsen hastigheten medelvärdet tiden priset kostar koster förhållandet vinkeln
sannolikheten ekvationen filmen tåget slutar kommer lång varje bit bitar sidor kanter barn elever böcker äpplen
pennor ägg
lådor slutligen med lika rätta korrekta

to jest są było będzie ma mają mamy więc zatem czyli stąd ostatecznie otrzymujemy wynosi wynik* odpowiedź odpowiedzi*
rozwiązanie* wartość razem łącznie suma różnica iloczyn iloraz reszta liczba długość szerokość wysokość pole objętość
obwód prędkość średnia czas cena kosztuje stosunek kąt prawdopodobieństwo równanie film pociąg kończy przyjeżdża trwa
każdy każda każde kawałek w na o z za od do po przez i a że prawidłowa poprawna końcowa dzieci uczniów przekątn*
wyznacznik* pierwiastek książek jabłek ołówków długopisów jajek pudełku zostaje zostało zapłaci zarabia potrzeba się
równa bo ponieważ

je jsou byl bude má mají tedy proto takže nakonec dostaneme vychází výsledek* výsledkem odpověď* řešení hodnota celkem
dohromady součet rozdíl součin podíl zbytek číslo délka šířka výška obsah objem obvod rychlost průměr čas cena stojí
poměr úhel pravděpodobnost rovnice film vlak končí přijede trvá každý každá v na o ve z za od do po a let dnů dní dětí
žáků knih jablek tužek vajec rovná se

это есть в во на о об из с со за от до по и а у к что то он она оно они мы так итак значит поэтому следовательно
получаем получим получается получится получили ответ* окончательный правильный верный результат* решени* значени*
итог* всего вместе сумма разность произведение частное остаток числ* длин* ширин* высот* площад* объ[её]м* периметр
скорост* средн* врем* цен* стоит стоят стоимост* отношени* угол* угла вероятност* уравнени* прямая прямой окружност*
матриц*
функци* предел* расстояни* возраст множеств* вектор* точк* кажд* часть части частей кус* фильм поезд прибыва*
приедет придёт
закончится заканчивается длится составля* равен равна равно равны будет имеет остан[её]тся осталось зарабатыва*
заплатит нужно требуется потому как поскольку производн* интеграл* корень корни корн* человек дет* учеников ученик*
книг* яблок* карандаш* ручек яиц короб* мест* карт* шар* страниц* стул* сторон* ребер рёбер граней вершин способ*
член* таким образом целое любое целых искомы* проверка вычисления окончательно сначала коробке штук раз числа один

це є у в на з та і й отже тому відповідь результат розв'язок значення разом сума число дорівнює становить кожен дітей

cevap cevabı cevabımız yanıt yanıtı sonuç sonucu dur dür sonuçta toplam toplamda çözüm çözümü değer değeri fark çarpım
kalan sayı sayısı uzunluğu genişliği alanı hacmi çevresi hızı hız ortalama süre zaman fiyat fiyatı maliyet oran oranı
açı açısı olasılık denklem denklemi film tren varır biter sürer her parça bir ve ile için olarak olur olup eder dır
dir tür tur o bu şu böylece yani buna göre bulunur buluruz elde ederiz ederim kalır vardır var eşit eşittir tane adet
yaşında kişi çocuk öğrenci kitap elma kalem yumurta kutu kutuda doğru nihai hesaplarsak hesaplanırsa sonucunda öyleyse
demek ki ise

prin urmare rezultă obținem egal cu are sunt răspunsul răspuns rezultatul rezultat este deci în la de și un o pentru
valoarea suma total

vastaus on tulos yhteensä siis saadaan kappaletta a válasz az eredmény tehát összesen van darab

η το ο οι τα είναι απάντηση αποτέλεσμα λύση άρα οπότε συνολικά ίσο με και σε στο στις τιμή άθροισμα

là bằng đáp số án kết quả câu trả lời cuối cùng vậy do đó nên ta có được tổng cộng tất cả giá trị chiều dài rộng cao
diện tích thể chu vi vận tốc trung bình thời gian tiền tỉ tỷ lệ góc xác suất phần trăm phương trình phim thúc lúc vào
tàu đến kéo mỗi một cái chiếc quyển người học sinh cây bút hộp trong và của với cần còn lại tuổi nghiệm tập hợp thứ

adalah ialah jadi maka jawaban jawabannya jawab hasil hasilnya akhir benar total jumlah jumlahnya nilai nilainya
selisih sisa sisanya panjang lebar tinggi luas volume keliling kecepatan rata waktu harga biaya rasio perbandingan
sudut peluang persamaan film berakhir berlangsung selama kereta tiba setiap masing potong sebuah buah orang anak siswa
buku apel pensil pulpen telur kotak dalam di pada dari dan ada yaitu terdapat sama dengan oleh karena itu kita peroleh
dapat diperoleh sehingga tersisa pukul semuanya seluruhnya bayar membayar dibutuhkan

الجواب الإجابة النتيجة الناتج الحل هو هي إذن إذا يساوي تساوي النهائية النهائي الصحيح الصحيحة مجموع المجموع العدد قيمة
القيمة في من على إلى هناك يوجد الساعة قلم أقلام كتاب طفل شخص المساحة الطول السعر السرعة الزاوية उत्तर जवाब परिणाम है
हैं अतः इसलिए कुल का की के में और मान योग बराबर सही अंतिम संख्या हमें मिलता वर्गमूल होता होती होते लंबाई क्षेत्रफल
कीमत पेन बच्चे गणना करने पर इस प्रकार तो התשובה תשובה היא הוא הסופית התוצאה לכן סך הכל יש שווה ערך פתרון উত্তর
চূড়ান্ত হল হলো হয় মোট ফলাফল অতএব সুতরাং விடை பதில் ஆகும் எனவே คำตอบ คือ پاسخ جواب نتیجه است برابر با پس بنابراین عدد
"""
_VALUE_WORDS = """
sq кв hex ct np array math reals provided
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million* billion* lakh half halves
third* fourth* fifth* sixth* seventh* eighth* ninth* tenth* twelfth* quarter* square* cubic squared cubed minus plus
negative positive infinity times over mod modulo exp ln log sin cos tan sqrt const about approximately rounded greater
less than repeating percentage points base first unit* january february march april may june july august september
october november december jan feb mar apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday
saturday sunday arbitrary any all constant up down percent per mal geteilt durch divisé dividiert cento cent procent
prozent процент* persen yüzde third tercer tercero primero segundo gerundet real integer rational периодическая дробь
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre janeiro fevereiro março maio
junho julho setembro outubro novembro dezembro gennaio febbraio aprile maggio giugno luglio settembre ottobre novembre
dicembre janvier février mars avril mai juin juillet août septembre octobre décembre januar februar märz juni juli
oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag января февраля марта апреля мая июня июля
августа сентября октября ноября декабря
"""
"""Words that are no denial either, but can be a part of the value."""
_STEM_ENDS = 8


@functools.cache
def _known(table: str) -> tuple[frozenset[str], re.Pattern[str]]:
    """The whole words of a table, and a pattern for those with an open end, both without accents."""
    whole: set[str] = set()
    stems: set[str] = set()
    for word in table.split():
        (stems if word.endswith("*") else whole).add(bare(word.rstrip("*")))
    return frozenset(whole | stems), re.compile(rf"(?:{'|'.join(sorted(stems))})[^\W\d_]{{0,{_STEM_ENDS}}}")


@functools.lru_cache(8192)
def bare(word: str) -> str:
    """A word in small letters without accents."""
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in folded if not unicodedata.combining(c))


def harmless(word: str) -> bool:
    """Say whether a word is known to belong to plain statements."""
    return framing(word) or _in(_VALUE_WORDS, word) or _in(NOUNS, word)


def framing(word: str) -> bool:
    """Say whether a word stands around values in plain statements, and is never a part of one."""
    return _in(_WORDS, word)


@functools.cache
def native() -> frozenset[str]:
    """The words around values that are of other languages than English, without accents."""
    foreign_parts = _WORDS.split("\n\n")[2:]
    english = frozenset(_WORDS.split("\n\n")[1].split())
    return frozenset(bare(word.rstrip("*")) for part in foreign_parts for word in part.split()) - english - _ENGLISH_TOO


_ENGLISH_TOO = frozenset(
    "die man den hat com fin mit par pour car point angle area volume film train page part parts cost total rest "
    "solution unit units sum limit radius cube valid exact final note line arrive terms led had do son sin max min "
    "per via media data via des est en le ai al am bang bit ca ce ci co cu da dat dem ha har hoc im je kat los ma mes "
    "moi pa per no persona logo con sur alter pro pur sole sal primitive prime rapport sam se sie sinh som stuck tap "
    "tat tau tempo tram um va voi von ya za ze".split()
)


def _in(table: str, word: str) -> bool:
    whole, stems = _known(table)
    said = bare(word)
    return said in whole or stems.fullmatch(said) is not None
