"""Words and signs of other languages around and behind an answer, beside those of :mod:`~assay.verify.math.harmless`.

They belong to checks, reasons and explanations, or to mathematics; none can deny, doubt, compare or go on.
"""

from __future__ import annotations

import functools

from assay.verify.math.harmless import bare

_CUES = """
probe nachprüfung prüfung kontrolle überprüfung überprüfen prüfen nachprüfen bestätigt bestätigen erklärung begründung
rechnung rechenweg lösungsweg gegenprobe stimmt weil denn nämlich vérification vérifier vérifie vérifions vérifié
preuve explication justification calcul car puisque parce effet verificación verificar verifica verificamos verificado
comprobación comprobar comprueba comprobamos compruebo explicación justificación cálculo porque pues ya efecto
verificação verificando verificamos confere conferindo explicação justificativa pois porque prova verifica verificare
verifichiamo controllo spiegazione calcolo giustificazione perché poiché infatti siccome torna controle controleren
controleer uitleg toelichting berekening want omdat immers klopt kontroll kontrollera kontrollerar förklaring
beräkning motivering eftersom stämmer ty bevis tjek forklaring fordi siden sprawdzenie sprawdzamy sprawdźmy sprawdzić
wyjaśnienie uzasadnienie obliczenia ponieważ bo gdyż bowiem zgadza zkouška kontrola kontrolou ověření ověříme
vysvětlení zdůvodnění výpočet protože neboť проверка проверим проверяем проверить проверкой пояснение объяснение
обоснование вычисления решение потому поскольку ведь так действительно сходится проверки перевірка пояснення бо
оскільки тому sağlama sağlaması kontrol kontrolü doğrulama açıklama çünkü hesap hesaplama işlem zira kiểm giải vì bởi
thử penjelasan pemeriksaan periksa verifikasi cek karena sebab perhitungan pembuktian tarkistus koska selitys
ellenőrzés mert indoklás magyarázat verificare explicație deoarece pentru επαλήθευση επειδή διότι γιατί εξήγηση التحقق
للتحقق لأن الشرح التفسير التوضيح جانچ जाँच जांच सत्यापन व्याख्या क्योंकि कारण स्पष्टीकरण בדיקה הסבר כי verification
explanation check reason proof fato fatto debe debido razón motivo
"""
"""What tells that a sentence checks or explains."""
_CLOSES = """
fertig listo fin fini finito ecco klaar gotowe готово hotovo klart färdigt pronto terminado voilà tamam selesai xong
gracias merci danke obrigado obrigada grazie bedankt tack dziękuję спасибо děkuji
"""
_EXPLAINS = """
esto esta este eso dies dieses diese ceci cela questo questa isto isso dit dat deze detta dette tohle это этот эта bu
hal ini itu điều này puede kann peut pode może można může man geht auf einsetzen einsetzt setzt setzen eingesetzt
erfüllt erfüllen passt multipliziert multiplizieren addiert addieren subtrahiert subtrahieren dividiert dividieren
quadrat quadriert menge anzahl anzahlen faktor faktoren hälfte seite formel satz pythagoras regel definition bedingung
bedingungen beide beiden dreieck rechteck rechtecks dreiecks sowie ursprünglichen ursprüngliche aufgabe faktorisieren
primzahl teilbar dass wenn jeweils mal vielfaches größte kleinste gemeinsame teiler laut ableiten aussage werden
können kann substituting откуда вычитая прибавляя деля умножая multiplie multiplier multiplions additionne additionner
soustrait soustrayant divisant additionnant multipliant diviser divise divisons ajoute remplace remplaçant
substitution substituant satisfait satisfont vérifient théorème pythagore formule règle définition condition
conditions conséquent facteur facteurs multiple commun rectangle triangle quantité immédiate bien quand lorsque selon
aussi qui deux côtés membre membres comme mètre voulue demandée cherchée quel énoncé initiale d'après multiplica
multiplicamos multiplicar suma sumamos sumar resta restar divide dividir dividimos sustituyendo sustitución
sustituimos sustituir cumple cumplen satisface satisfacen teorema pitágoras fórmula regla definición condición
condiciones factor factores múltiplo común mínimo máximo divisor rectángulo triángulo cantidad original enunciado
según entre ambos ambas miembros lados cuando como también puede puedes cuadrado perfecto original primo primos
inmediata subtrai multiplicando somamos somar somando subtrair subtraindo subtraímos dividir dividindo dividimos
substituindo substituição substituir satisfaz satisfazem fórmula regra definição condição condições fator fatores
comum mínimo máximo divisor retângulo triângulo quantidade original enunciado segundo entre ambos membros lados quando
como também pode dois duas moltiplica moltiplichiamo moltiplicare moltiplicando somma sommiamo sommare sommando
sottraendo sottrae dividendo divide dividiamo sostituendo sostituzione sostituiamo soddisfa soddisfano teorema
pitagora formula regola definizione condizione condizioni fattore fattori multiplo comune minimo massimo divisore
rettangolo triangolo quantità originale testo entrambi membri lati quando come anche può quadrato perfetto primo
immediata vermenigvuldigen vermenigvuldigt optellen tellen telt delen deelt invullen ingevuld voldoet voldoen stelling
formule regel definitie voorwaarde voorwaarden factor factoren rechthoek driehoek hoeveelheid beide kanten zijden
wanneer als trekken af door ook kan men kunnen veelvoud grootste kleinste gemene deler multiplicera multiplicerar
addera adderar subtrahera dividera dividerar insättning sätter uppfyller satsen formeln regeln definitionen villkoret
villkoren faktor faktorer rektangel triangel mängd båda sidorna när som också kan man mnożymy dodajemy odejmujemy
dzielimy podstawiając podstawienie podstawiamy spełnia spełniają twierdzenie pitagorasa wzór definicja warunek warunki
czynnik czynniki prostokąt trójkąt ilość obie strony gdy jak także można wspólny największy najmniejszy dzielnik
wielokrotność násobíme sčítáme odčítáme dělíme dosazením dosadíme splňuje splňují věta pythagorova vzorec pravidlo
definice podmínku podmínky činitel obdélník trojúhelník množství obě strany když jak také lze умножаем умножим
умножить складываем сложим сложить вычитаем вычтем делим разделим разделить подставляем подставим подстановка
подстановкой подставляя удовлетворяет удовлетворяют теорема теореме пифагора формула формуле формулы правило
определение условие условию условия множитель множители прямоугольник прямоугольника треугольник треугольника
количество обе стороны части при когда как также можно общий наибольший наименьший делитель кратное верно цену
помножимо додамо віднімемо поділимо підставимо теорема формула умова negatif pozitif kök kökü kökleri çarparız
çarpılır toplarız toplanır çıkarırız böleriz bölünür yerine koyarsak yazarsak sağlar sağlıyor teoremi formülü kural
tanım koşulu koşulları çarpanı dikdörtgen üçgen miktar iki tarafı her nhân cộng trừ chia thay thế thỏa mãn định lý
công thức quy tắc điều kiện hình chữ nhật tam giác lượng hai vế khi theo đúng tra lại đề bài phép tính thích kalikan
dikalikan jumlahkan kurangkan bagi dibagi substitusi memenuhi teorema rumus aturan definisi syarat faktor persegi
panjang segitiga kedua ruas ketika kali tambah kurang الجذر الجذران السالب الموجب بالتعويض نعوض نضرب نجمع نطرح نقسم
المعادلة يحقق تحقق نظرية قانون صيغة شرط الشرط صحيح صحيحة गुणा जोड़ घटाने भाग रखने समीकरण संतुष्ट सूत्र नियम प्रमेय शर्त सही
"""
"""What explanations say beside the words of plain statements."""
_AGAINST = """
no ne nor not never maar men ale aber ama mas mais pero но sondern statt nur solo sólo só seul seulement
alleen bara tylko jen только sadece chỉ hanya zu too te trop troppo demasiado demais слишком больше меньше
mayor mayores menor menores maior maiores maggiore minore supérieur inférieur größer kleiner superiore inferiore rather
larger smaller greater less
correction corrected confidence initially neuer neue neues sobran falta faltan fehlen initial noch luego ahora después
puis ensuite poi dopo dann danach anschließend nun jetzt agora depois nu sedan daarna nog teraz potem następnie teď
pak dále затем потом теперь сначала sonra şimdi kemudian lalu sekarang tiếp sau about approximately perhaps
primero first initially zuerst erst d'abord prima primeiro eerst först najpierw nejprve önce pertama groß grand
grande grote stort duży velký большой wrong falsch faux falso
"""
"""What statements may hold and no sentence behind one: it would deny, compare, judge, or go on."""
_SO = """
also somit daher damit folglich donc ainsi alors entonces así tanto consiguiente logo portanto assim então quindi
dunque perciò dus daarom alltså därför så zatem więc czyli stąd tedy proto takže значит поэтому следовательно итак
отже böylece yani öyleyse vậy jadi maka إذن لذلك अतः इसलिए לכן so thus hence therefore
"""
_ANSWERS = """
antwort ergebnis endergebnis lösung respuesta resultado solución réponse résultat solution risposta risultato soluzione
resposta solução antwoord uitkomst resultaat oplossing svar svaret resultatet odpowiedź wynik rozwiązanie odpověď
výsledek řešení ответ результат решение cevap sonuç yanıt đáp kết jawaban hasil
"""
_POINTS = """
la le les l el los il lo die das der den dem des het de det den to je jest son est es ist is è é e c ce esta esa ésta
esto eso questa essa esta isto isso dit dat cette cet dies dieses to final finale definitiva définitive definitivo
endgültige endgültiges correcta correcte correcto corretto corretta correto richtige richtig juiste richtiges gesuchte
gesuchtes cherchée recherchée buscada buscado demandée aufgabe problema problème domanda pregunta pergunta ejercicio
exercício exercice esercizio opgave zadania úlohy задачи вопрос это является окончательный верный правильный итак
конечный câu là này soal du della do del a à al ecuación equación équation equazione equação gleichung vergelijking
równania rovnice уравнения dell all ini itu adalah voilà ecco bu η το αυτή είναι
"""


@functools.cache
def _set(table: str) -> frozenset[str]:
    return frozenset(map(bare, table.split()))


def cue(word: str) -> bool:
    """Say whether a word tells that its sentence checks or explains."""
    return bare(word) in _set(_CUES)


def cues() -> frozenset[str]:
    """All words, without accents, that check, explain or end a response."""
    return _set(_CUES) | _set(_CLOSES)


def closes(word: str) -> bool:
    """Say whether a word ends a response: ``Fertig.``, ``Voilà.``"""
    return bare(word) in _set(_CLOSES)


def explaining(word: str) -> bool:
    """Say whether a word belongs to explanations."""
    said = bare(word)
    return said in _set(_EXPLAINS) or said in _set(_CUES)


def against(word: str) -> bool:
    """Say whether a word has no place in a sentence behind an answer."""
    return bare(word) in _set(_AGAINST)


def concludes(word: str) -> bool:
    """Say whether a word draws a conclusion: what follows it is the answer."""
    return bare(word) in _set(_SO)


def of_answers(word: str) -> bool:
    """Say whether a word means the answer itself."""
    return bare(word) in _set(_ANSWERS)


def points(word: str) -> bool:
    """Say whether a word may stand beside one for the answer, where the sentence says nothing else."""
    return bare(word) in _set(_POINTS)
