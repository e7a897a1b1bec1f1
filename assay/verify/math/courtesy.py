"""Offers of more help, good wishes and pictures behind an answer, in some twenty languages.

``Would you like me to go through a similar example?``, ``¡Espero que te sirva!``, ``Laat het me weten als je nog
vragen
hebt.`` Such a sentence is known by its words: every one belongs to offers and wishes, so that none can speak of the
answer.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from assay.verify.math.harmless import bare

MAX_LENGTH = 160
MAX_PICTURES = 24
_CUES = """
explain show walk help questions question hope luck welcome example examples step steps detail details practice clears
espero suerte ánimo duda dudas pregunta preguntas ayuda explique muestre ejemplo paso pasos detalle ayudarte avísame
espero dúvida dúvidas pergunta perguntas ajuda explique mostre exemplo passo detalhes ajudado ajudar sorte avisar
espère question questions aide explique montre exemple étape détail détails t'aider chance courage
hoffe fragen frage hilft helfen erfolg erkläre erklären zeige zeigen beispiel schritt schritte details aufgabe
spero domande domanda aiuto spieghi mostri esempio passaggio dettagli aiutarti fortuna
hoop vragen vraag helpen helpt succes uitleg uitleggen voorbeeld stap hulp
hoppas frågor fråga hjälpa hjälper förklarar förklara visar exempel steg
надеюсь вопросы вопрос обращайтесь помочь удачи помогу объяснил объяснила показал показала пример шаг подробнее
помогло
pytania pytanie pomóc powodzenia wyjaśnił wyjaśniła przykład krok
umarım soru sorun sorunuz yardımcı örnek adım adımı açıklamamı
hỏi giúp giải thích ví dụ bước vọng
pertanyaan bertanya semoga bantu membantu menjelaskan jelaskan contoh langkah
سؤال أسئلة أتمنى مساعدة شرح شرحًا أشرح مثال مثالًا خطوة
प्रश्न सवाल मदद आशा समझाऊँ समझाऊं उदाहरण
"""
_OTHERS = """
like want happy glad feel know ask tell enjoy quieres quiere gustaría avisame dime encantado quer quiser gostaria
avise
diga precisar veux voulez souhaites souhaitez aimerais hésite hésitez besoin möchtest möchten soll willst bescheid
gern
gerne melde vuoi vuole desideri fammi chiedi chiedere wil wilt weten laat zal vill säg хотите хочешь спрашивайте
спрашивай
chcesz chciałbyś daj ister istersen misin cần muốn hy câu ingin mau tanya هل تريد ترغب पूछें चाहते चाहेंगे
would you do me to go through over a an the any some one more another similar example examples of this step steps in
detail details further shall should i can let if have with else anything there need be on other problem problems
exercise exercises topic try free out please see that it for your at all in
same way method second could does make sense up things anything graph sketch picture plot draw diagram and we next
together walk-through
learning studying homework just add

que te le les os me esto haya ayudado ayude sirva sirve explique explicarte muestre otro otra algún alguna paso
pasos con más detalle ejemplo parecido similar resolvamos practiquemos practicar si tienes tiene tengas en preguntar
preguntarme mucha necesitas necesita algo por favor estoy aquí para ayudarte hágamelo házmelo saber de cualquier a ver
problema ejercicio tu tus estudios

você tu que isto isso tenha ajudado ajude explique mostre outro outra algum alguma passo com mais detalhes detalhe
exemplo parecido semelhante se tiver coisa é só em perguntar muita de por favor estou aqui para ajudar ajudá-lo um uma
eu

tu vous que je j cela ça t aide explique montre un une autre exemple similaire semblable étape détail détails plus en
de d à me la le les si as avez ai d'autres autres dis-le-moi dites-le-moi faire savoir bonne bon poser demander suis
là
pour t'aider vous

du sie dass ich einen ein eine einem schritt schritte genauer erkläre erklären zeige zeigen weiteres weiterer weiteren
ähnliches ähnliche beispiel noch mit mir wenn hast haben dir ihnen das es dich gerne zu sag sagen viel beim lernen bei
mehr details weitere aufgabe aufgaben dem den einfach jederzeit üben wir ein weiter

che ti le questo possa aiutarti spieghi mostri un altro altra esempio simile passaggio con più dettagli
dettaglio se hai ha altre qualche di in sapere buona pure per favore sono qui a lo

je dat ik een nog ander vergelijkbaar voorbeeld stap uitleg uitleggen toon laat zien als hebt heb u heeft het me mij
dit helpt gerust veel met meer hulp nodig

du att jag ett annat liknande exempel steg förklarar förklara visar visa mer om har några fler detta det hjälper dig
till
gärna lycka

чтобы я объяснил объяснила подробнее показал показала ещё еще один одну пример похожий похожую задачу шаг если у вас
тебя есть будут остались другие мне это поможет помогло вам тебе с какой-нибудь какой-либо объясню любой

czy żebym wyjaśnił wyjaśniła pokazał pokazała inny podobny przykład krok jeszcze jeśli masz jakieś to pomogło ci mi
znać
dokładniej więcej w

başka bir benzer örnek adım adımı daha ayrıntılı açıklamamı göstermemi varsa olur oldum olmuştur bana lütfen sana size
musunuz

bạn có mình tôi giải thích thêm chi tiết không ví dụ khác tương tự nếu còn nào cứ nhé vọng này ích cho gì hãy với bước

apakah anda kamu saya menjelaskan jelaskan contoh lain serupa langkah lebih detail jika ada ini silakan jangan ragu
untuk
lagi

أن أشرح لك مثال مثالًا آخر مشابه مشابهًا شرح شرحًا إضافيًا إضافي خطوة إذا كان لديك كانت أخرى أي المزيد من التفاصيل بكل
سرور يكون هذا مفيدًا لا تتردد في إلى

यदि कोई और हो तो क्या आप कि मैं समझाऊँ समझाऊं एक उदाहरण दिखाऊँ है अगर आपका आपको मुझे विस्तार से इससे मिली होगी करूँ
चरण
आपके कृपया बेझिझक अन्य इसे
"""
_PHRASES = re.compile(
    r"\b(?:don['’]t hesitate|do not hesitate|no dudes?|n['’]hésite[sz]? pas|não hesite|non esitare|zögere nicht|"
    r"aarzel niet|не стесняйтесь|не стесняйся|let me know|feel free|(?:is|are) (?:still )?unclear|(?:this"
    r"|that) (?:was|is) (?:helpful|useful)|sea (?:útil|de ayuda)|seja útil|sia stato utile|walk you through"
    r"|i['’]d be happy)\b",
    re.IGNORECASE,
)
"""What is polite as a whole, though a word of it alone denies."""
_ENGLISH = re.compile(
    r"(?:would you like|do you want|(?:do you )?need|want me|shall i|should i|can i (?:help|show|explain)"
    r"|please|let me know|"
    r"feel free|i(?:['’]d| would) be happy|i(?:['’]m| am) happy|happy to|i['’]?m? ?glad|glad|i hope|hope"
    r"|good luck|if you|"
    r"if (?:anything|something)|is there anything|just ask|(?:does|did) (?:that|this) (?:make sense|help)"
    r"|(?:don['’]t|do not) "
    r"hesitate|any (?:other )?questions)\b",
    re.IGNORECASE,
)
_SPOKEN_ENGLISH = re.compile(r"\b(?:you|your|i|this|the)\b", re.IGNORECASE)
_UNSPACED = re.compile(
    r"(?:他に|ほかに|さらに)?(?:ご)?(?:質問|不明な点|わからないこと|知りたいこと)(?:が|は)?(?:ございましたら|あれば|ありましたら)"
    r"(?:、)?(?:いつでも|お気軽に|遠慮なく)*(?:どうぞ|お尋ねください|聞いてください|お知らせください)|"
    r"(?:お役に立て(?:れば|たら)|参考になれば)(?:幸い|嬉しい)です|(?:もっと詳しく|別の例も?)(?:説明|解説)しましょうか|"
    r"(?:如果|若|如)?(?:你|您)?(?:还|還)?有?(?:其他|别的|任何)?(?:问题|疑问|問題|疑問)[,，]?(?:请|請|欢迎|歡迎|可以)?(?:随时|隨時|继续|繼續)*"
    r"(?:告诉我|告訴我|提问|提問|问我|問我)|希望(?:这|這|以上)?(?:对|對)?(?:你|您)?(?:有所|有)?(?:帮助|幫助)|"
    r"(?:需要|要不要)我?(?:再)?(?:详细|詳細)?(?:解释|讲解|解釋|講解)(?:一下|一遍)?(?:某一步|步骤)?吗|祝(?:你|您)?学习(?:愉快|进步)|"
    r"(?:더 )?궁금한 (?:점|것)이 (?:있으면|있으시면) (?:언제든지 )?(?:물어보세요|질문해 주세요|말씀해 주세요)|"
    r"도움이 되(?:었으면|길) (?:좋겠습니다|바랍니다)"
)
_ENDS = re.compile(r"[.!?。！？।؟\s*_)）]+$")
_TOKEN = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u0900-\u0963\u064b-\u065f'’-])*")


@functools.cache
def _vocabulary() -> tuple[frozenset[str], frozenset[str]]:
    cues = frozenset(map(bare, _CUES.split()))
    return cues, cues | frozenset(map(bare, _OTHERS.split()))


def courteous(sentence: str) -> bool:
    """Say whether ``sentence`` only offers more help or wishes well, in whole words of courtesy."""
    said = sentence.strip(" \t*_()（）¡¿\n")
    if not 6 <= len(said) <= MAX_LENGTH or any(map(str.isdigit, said)) or _ENDS.search(said) is None:
        return False
    said = _ENDS.sub("", said)
    if _UNSPACED.fullmatch(said):
        return True
    if said.isascii() and _ENGLISH.match(said) is None and _SPOKEN_ENGLISH.search(said):
        return False
    polite = _PHRASES.search(said) is not None
    words = [bare(word) for word in _TOKEN.findall(_PHRASES.sub(" ", said))]
    cues, known = _vocabulary()
    return len(words) + 2 * polite > 2 and all(w in known for w in words) and (polite or any(w in cues for w in words))


_FRIENDLY = "😊🙂😀😃😄😁🤗😎☺🤓🥳"
_TICKS = "✅✔☑✓"
_DOUBTFUL = re.compile(
    "[\U0001f600-\U0001f64f\U0001f910-\U0001f93f\U0001f970-\U0001f97f\U0001fae0-\U0001faff"
    "❌✗✘❎☒✖🚫⛔👎🖕🎲🎰🃏🎭🔮🪙🔄🔁🔃↩⚠☠💀💩🗑❓❔⁉❗🤡👻🧢🦄]"
)


def without_pictures(text: str) -> str:
    """``text`` without pictures at its end that take no stand: things, friendly faces, and ticks behind a sentence."""
    kept = text.rstrip()
    for _ in range(MAX_PICTURES):
        if not kept or kept[-1].isascii():
            break
        last, front = kept[-1], kept[:-1].rstrip()
        if last not in "\ufe0e\ufe0f" + _FRIENDLY:
            if last in "°℃℉™©®№" or unicodedata.category(last) != "So" or _DOUBTFUL.match(last):
                break
            if last in _TICKS and not front.endswith((".", "!", ")", "*")):
                break
        kept = front
    return text if kept[-1:] in ("\u200d", "\ufe0f") else kept
