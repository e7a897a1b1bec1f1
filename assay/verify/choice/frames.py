"""The words that commit to an option, one entry a language; any other word around a label commits to nothing.

``frame`` holds what may stand around the label in "the correct answer is B", "I choose B", "B is right"; ``so`` draws a
conclusion, after which the label needs no more; ``because`` begins a reason, which may say anything; ``opens`` leaves
the matter open or gives it to somebody else (conditions, alternatives, contrasts, hearsay); ``no`` denies an option.
Scripts without blanks are written in :mod:`~assay.verify.choice.lexicon`. A word may end in ``*``, for the endings of
an inflection; ``_`` stands for a blank inside a phrase.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one language, separated by blanks."""

    frame: str
    so: str
    because: str
    opens: str
    no: str


LANGUAGES: dict[str, Words] = {
    "en": Words(
        "they here selected take vote decision verdict corresponding the a my our this that it it's its "
        "it’s is are be must has to i i'll i'm i’m we we'd go going with for settle think believe "
        "confident sure certain convinced on choose chose choosing pick select answer answers option options "
        "choice choices letter one correct right best final true result solution of these given above "
        "listed four five three statement item value selection only fits fit matches works all remains "
        "what remaining finally overall altogether conclusion reflection corresponds indeed clearly "
        "definitely obviously certainly then ans yes summary conclude equals means am that's that’s",
        "so ergo thus hence therefore which leaves leaving left consequently accordingly implies settle i.e",
        "because since as for given due",
        "if suppose supposing assume assuming unless whether or but however yet though maybe perhaps "
        "possibly probably might could guess says said say claims claim thinks thought believes reads "
        "offers offered according told tells writes wrote allegedly supposedly were wish pretend imagine "
        "someone somebody everyone nobody friend teacher unsure otherwise when until insists fake wrong* "
        "joke kidding incorrect please trap decoy distractor sarcasm lie",
        "not rather instead than neither nor isn't isn’t without",
    ),
    "de": Words(
        "der die das den es ist sind muss sein lautet meine unsere ich wähle nehme entscheide mich für "
        "antwort lösung option möglichkeit auswahl wahl buchstabe richtig richtige richtigen korrekt "
        "korrekte korrekten stimmt passt aussage somit bleibt nur endgültige insgesamt zutreffend "
        "zutreffende trifft zu wäre_damit ergebnis gehört",
        "also daher deshalb folglich somit damit demnach bleibt",
        "weil da denn",
        "wenn falls angenommen oder aber jedoch vielleicht sagt meint behauptet glaubt laut könnte ob "
        "sonst falsch* rate gesetzt",
        "nicht kein keine statt",
    ),
    "fr": Words(
        "la le les l c'est c’est est il s'agit de doit être ma notre je choisis prends opte pour réponse "
        "solution option choix lettre proposition résultat bonne bon correcte correct juste exacte exact "
        "vraie finale retiens reste soit",
        "donc ainsi alors d'où d’où conséquent reste",
        "car parce puisque comme",
        "si sinon ou mais peut-être dit selon prétend pense croit supposons admettons imaginons serait "
        "faux fausse devine cependant toutefois",
        "pas non plutôt ni",
    ),
    "es": Words(
        "la el resultado lo es son debe ser mi nuestra elijo escojo selecciono marco respuesta solución "
        "opción alternativa letra inciso correcta correcto verdadera verdadero adecuada final queda me "
        "quedo con tanto",
        "así luego entonces por_tanto por_lo_tanto queda pues",
        "porque ya_que puesto dado",
        "si o u pero quizá quizás tal_vez dice según cree piensa afirma supongamos sería podría aunque "
        "incorrect* falso",
        "no ni sino",
    ),
    "pt": Words(
        "resultado a o é são deve ser minha nossa escolho seleciono marco fico com resposta solução opção "
        "alternativa letra correta correto certa certo verdadeira final resta portanto",
        "portanto logo assim então resta",
        "porque pois já_que",
        "se ou mas talvez diz segundo acha afirma suponha* seria poderia errad* porém",
        "não nem",
    ),
    "it": Words(
        "risultato la il lo è sono deve essere mia nostra scelgo seleziono risposta soluzione opzione "
        "alternativa lettera corretta corretto giusta giusto esatta esatto vera finale resta quindi è_la",
        "quindi dunque perciò pertanto allora resta",
        "perché poiché siccome dato",
        "se o oppure ma forse dice secondo pensa sostiene supponiamo sarebbe potrebbe sbagliat* però",
        "non né",
    ),
    "nl": Words(
        "resultaat het de is dit dat moet zijn mijn ons ik kies neem ga voor antwoord oplossing optie "
        "keuze letter juiste juist goede correct correcte uiteindelijke blijft over klopt",
        "dus daarom bijgevolg blijft",
        "omdat want aangezien",
        "als of maar misschien zegt volgens denkt beweert stel tenzij zou fout*",
        "niet geen",
    ),
    "sv": Words(
        "facit resultatet det är den måste vara mitt min vårt jag väljer svar svaret svarsalternativ "
        "lösning lösningen alternativ alternativet val bokstaven rätt rätta korrekt korrekta riktigt "
        "slutligt återstår",
        "alltså därför således så",
        "eftersom ty för_att därför_att",
        "om eller men kanske säger enligt tror påstår antag skulle fel* annars",
        "inte ej",
    ),
    "no_da": Words(
        "det er den må være måtte skal mitt mit min vårt vores jeg velger vælger svar svaret løsning "
        "løsningen alternativ alternativet svarmulighed mulighed valg bokstaven riktig riktige rigtig "
        "rigtige rett rette korrekt korrekte endelige gjenstår",
        "altså derfor dermed så",
        "fordi siden da_det eftersom",
        "hvis om eller men kanskje måske sier siger ifølge tror påstår ville feil* forkert*",
        "ikke ej",
    ),
    "fi": Words(
        "se on täytyy olla minun valitsen vastaus vastaukseni ratkaisu vaihtoehto vaihtoehdon kirjain "
        "oikea oikein oikeaa lopullinen oikea_vastaus",
        "siis joten siten",
        "koska sillä",
        "jos tai mutta ehkä sanoo väittää mukaan luulee väär* oletetaan",
        "ei",
    ),
    "pl": Words(
        "to jest musi być moja nasza wybieram odpowiedź odpowiedzią odpowiedzi rozwiązanie opcja opcję "
        "wariant litera wynik poprawny poprawna poprawną prawidłowa prawidłową właściwa dobra ostateczna "
        "zostaje pozostaje końcowa",
        "więc zatem czyli dlatego stąd zostaje pozostaje",
        "bo ponieważ gdyż",
        "jeśli jeżeli gdyby czy lub albo ale może mówi twierdzi według uważa załóżmy podobno błędn* niepoprawn*",
        "nie",
    ),
    "cs_sk": Words(
        "je to musí být byť moje má naše volím vybírám vyberám odpověď odpoveď odpovědí odpoveďou řešení "
        "riešenie možnost možnosť možností varianta variant písmeno výsledek výsledok správná správna "
        "správně správne správnou správný konečná výsledná zbývá zostáva platí",
        "takže tedy teda proto preto tudíž",
        "protože neboť pretože lebo jelikož keďže",
        "pokud jestli kdyby ak keby nebo alebo ale možná možno říká tvrdí podle podľa hovorí dejme chybn* špatn*",
        "ne nie není není_to",
    ),
    "uk": Words(
        "результат це є має бути моя наша я обираю вибираю відповідь варіант розв'язок літера правильна "
        "правильний правильною вірна вірний остаточна правильно залишається",
        "отже тому тож значить відтак",
        "бо оскільки тому_що адже",
        "якщо якби або чи але може говорить каже вважає стверджує припустимо мабуть неправильн* хибн*",
        "не ні",
    ),
    "ru": Words(
        "результат это есть должен быть мой наш я выбираю ответ вариант варианта решение буква пункт "
        "правильный правильным правильно верный верным верно верен окончательный остаётся остается под получаем "
        "буквой",
        "значит следовательно поэтому итак таким_образом стало_быть остаётся остается",
        "потому так_как поскольку ведь ибо",
        "если или либо но может говорит считает думает утверждает допустим предположим якобы наверное "
        "неверн* неправ* бы",
        "не ни",
    ),
    "bg": Words(
        "това е трябва да бъде моят нашият избирам отговор отговорът вариант буква правилен правилният "
        "верен верният вярно окончателен остава",
        "следователно значи затова така_че остава",
        "защото понеже тъй_като",
        "ако или но може_би казва твърди мисли според да_допуснем греш*",
        "не",
    ),
    "ro": Words(
        "este e trebuie să fie al meu aleg răspunsul răspuns soluția opțiunea varianta litera corect "
        "corectă bun bună final rămâne",
        "deci așadar prin_urmare rămâne",
        "pentru_că deoarece fiindcă",
        "dacă sau dar poate spune crede susține presupunem ar greșit*",
        "nu",
    ),
    "hu": Words(
        "a az ez ezt helyes válasz válaszom megoldás lehetőség opció választás betű jó végső választom marad",
        "tehát ezért így marad",
        "mert mivel hiszen",
        "ha vagy de talán mondja szerint állítja tegyük hibás téves",
        "nem",
    ),
    "el": Words(
        "η το ο είναι πρέπει να μου επιλέγω διαλέγω απάντηση λύση επιλογή γράμμα σωστή σωστό σωστός ορθή τελική μένει",
        "άρα επομένως συνεπώς οπότε μένει",
        "γιατί επειδή διότι αφού",
        "αν εάν ή αλλά ίσως λέει πιστεύει ισχυρίζεται έστω λάθος",
        "όχι δεν δε μη",
    ),
    "tr": Words(
        "cevap cevabı cevabım yanıt yanıtı yanıtım seçenek seçeneği seçeneğidir şık şıkkı şıkkıdır doğru "
        "doğrudur doğrusu olmalı olmalıdır seçiyorum son dir dır dur dür tir tır tür benim kalır",
        "yani öyleyse dolayısıyla demek bu_yüzden bu_nedenle",
        "çünkü zira",
        "eğer ise veya ya ama fakat belki diyor göre sanıyor iddia varsayalım yanlış* hatalı olsaydı",
        "değil",
    ),
    "ar": Words(
        "الإجابة الاجابة الجواب إجابتي جوابي الخيار الاختيار الحرف البديل هو هي الصحيح الصحيحة النهائية "
        "النهائي صحيح صحيحة أختار اختار يكون يبقى",
        "إذن إذا_ف لذلك لذا وبالتالي فالإجابة فالجواب وعليه",
        "لأن لأنه لأنها بسبب",
        "إذا لو أو أم لكن ربما يقول يزعم يظن حسب خاطئ خاطئة لنفرض",
        "لا ليس ليست غير وليس",
    ),
    "he": Words(
        "התשובה תשובה תשובתי האפשרות אפשרות הבחירה האות היא הוא זו זה הנכונה נכונה הנכון נכון הסופית "
        "סופית אני בוחר בוחרת את נשאר",
        "לכן ולכן אז מכאן",
        "כי מכיוון משום",
        "אם או אבל אולי אומר טוען לפי נניח שגוי* טועה",
        "לא אינה אינו ולא",
    ),
    "fa": Words(
        "پاسخ جواب گزینه گزینه‌ی گزینهٔ درست صحیح نهایی است من انتخاب می‌کنم حرف باید باشد همان",
        "پس بنابراین لذا",
        "زیرا چون",
        "اگر یا اما ولی شاید می‌گوید گفت غلط نادرست فرض",
        "نه نیست",
    ),
    "hi": Words(
        "उत्तर जवाब विकल्प सही है मेरा अंतिम होगा अक्षर मैं चुनता चुनती हूँ को यह",
        "इसलिए अतः तो",
        "क्योंकि",
        "अगर यदि या लेकिन शायद कहता कहते गलत मान",
        "नहीं न",
    ),
    "bn": Words(
        "উত্তর উত্তরটি সঠিক বিকল্প হল হলো হবে আমার চূড়ান্ত অক্ষর ঠিক এটি আমি বেছে নিচ্ছি",
        "তাই সুতরাং অতএব",
        "কারণ কেননা",
        "যদি বা অথবা কিন্তু হয়তো বলে ভুল",
        "না নয়",
    ),
    "vi": Words(
        "đáp án câu trả lời phương lựa chọn là đúng của tôi chính xác cuối cùng phải kết quả chữ",
        "vậy nên do_đó vì_vậy suy_ra",
        "vì bởi do",
        "nếu hoặc hay nhưng có_lẽ nói theo cho_rằng giả sai",
        "không",
    ),
    "id": Words(
        "jawaban jawabannya jawabanku pilihan opsi adalah ialah yang benar tepat saya memilih pilih huruf "
        "akhir harus itu betul",
        "jadi maka sehingga dengan_demikian",
        "karena sebab",
        "jika kalau atau tetapi tapi mungkin kata katanya menurut andaikan salah",
        "bukan tidak",
    ),
    "ko": Words(
        "번입니다 번이다 정답은 정답 답은 답 입니다 이다 이에요 예요 입니다. 맞습니다 맞다 옳습니다 옳다 "
        "선택지 보기 번 제 최종 올바른 정답이다 정답입니다 답이다 답입니다 가 이 를 을 선택합니다 "
        "선택한다 는 은",
        "따라서 그러므로 그래서 즉 그러니",
        "왜냐하면",
        "만약 또는 혹은 하지만 아마 라고 오답 틀린 틀렸",
        "아니라 아닌",
    ),
}
