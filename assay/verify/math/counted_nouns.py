"""Nouns of things that are counted in everyday problems, in ten languages; ``*`` stands for an inflection."""

from __future__ import annotations

NOUNS = """
marble* tree* flower* coin* stamp* sticker* candy candies sweet* cookie* cake* orange* banana* car cars bike*
bottle* cup cups
glass* balloon* dog* cat cats bird* cow* chicken* leg legs wheel* window* room* house* table* shirt* shoe* toy toys
block*
brick* bead* button* photo* song* goal* game* bag bags basket* packet* row rows seat* passenger* member* worker*
guest*
arrangement* molecule* committee* derangement* combination* permutation* subset* digit* prime* factor* divisor* item*
pcs pct bp bps chance* gain* loss* profit* increase* decrease* recurring different remaining remain only these

canica* árbol* flor* moneda* sello* pegatina* caramelo* dulce* galleta* pastel* naranja* plátano* coche* bicicleta*
botella* vaso* taza* globo* perro* gato* pájaro* vaca* gallina* pata patas rueda* ventana* habitacion* casa* mesa*
camisa*
zapato* juguete* bloque* ladrillo* botones foto* canción canciones gol goles partido* bolsa* cesta* paquete* fila*
asiento*
pasajero* miembro* trabajador* invitado* bolígrafo* cuaderno* billete* camiseta* pelota* pez peces combinaciones
cifra*
permutaciones primos harina arroz azúcar agua leche

bille* arbre* fleur* pièce* timbre* autocollant* bonbon* biscuit* gâteau* banane* voiture* vélo* bouteille* verre*
tasse* ballon* chien* chat chats oiseau* vache* poule* patte* roue* fenêtre* chambre* maison* table* chemise*
chaussure*
jouet* bloc blocs brique* perle* bouton* chanson* match* sac sacs panier* paquet* rangée* siège* passager*
membre* ouvrier* invité* stylo* cahier* billet* poisson* chiffre* combinaison* permutation* farine riz sucre eau lait

murmel* baum bäume blume* münze* briefmarke* sticker bonbon* keks* kuchen orange* banane* auto autos fahrr* flasche*
becher* glas gläser ballon* hund* katze* vogel vögel kuh kühe huhn hühner bein* rad räder fenster zimmer haus häuser
tisch* hemd* schuh* spielzeug* block* ziegel* perle* knopf knöpfe foto* lied* tor tore spiel* beutel korb körbe tüte*
reihe* sitz* passagier* mitglied* arbeiter gast gäste kugelschreiber heft* ziffer* primzahl* teiler mehl reis zucker
wasser

biglia biglie albero alberi fiore fiori moneta monete francobollo francobolli caramella caramelle biscotto biscotti
torta
torte arancia arance banana banane auto bicicletta biciclette bottiglia bottiglie bicchiere bicchieri tazza tazze
palloncino palloncini cane cani gatto gatti uccello uccelli mucca mucche gallina galline ruota ruote finestra finestre
stanza stanze casa case tavolo tavoli camicia camicie scarpa scarpe giocattolo giocattoli mattone mattoni foto canzone
canzoni partita partite borsa borse cesto cesti pacco pacchi fila sedile sedili passeggeri penna penne quaderno
quaderni cifra cifre farina riso zucchero acqua lato lati spigolo spigoli faccia facce

bolinha* gude árvore* flor flores moeda* selo* figurinha* bala balas doce doces biscoito* bolo* laranja* carro*
garrafa*
copo* xícara* balão balões cachorro* gato* pássaro* vaca* galinha* roda* janela* quarto* casa* mesa* camisa* sapato*
brinquedo* tijolo* foto* música* gols jogo* saco* cesta* pacote* fila* passageiro* membro* caneta* caderno* bilhete*
algarismo* farinha arroz açúcar água

knikker* boom bomen bloem* munt* postzegel* snoepje* koekje* taart* sinaasappel* banaan bananen fiets* fles* glazen
ballon* hond* kat katten vogel* koe koeien kip kippen wiel* raam ramen kamer* huis huizen tafel* shirt* schoen* blok*
zak zakken mand* pak pakken rij rijen stoel* pen pennen schrift* cijfer* ribbe* vlak* bloem suiker

шарик* дерев* цвет* монет* марок марки наклеек конфет* печень* торт* апельсин* банан* машин* велосипед* бутыл* стакан*
чаш* собак* кош* птиц* коров* куриц* колес* колёс окон окна комнат* дом домов стол* рубаш* игруш* кирпич* бусин*
пуговиц*
фото* песен голов мешк* корзин* пакет* ряд* пассажир* гост* тетрад* билет* рыб* цифр* делител* муки сахара воды

kulek drzew* kwiat* monet* znaczk* cukierk* ciast* pomarańcz* samochod* rower* butel* szklan* balon* psów kotów ptak*
krów kół okien pokoi domów stołów koszul* zabaw* cegieł paczek rzęd* zeszyt* bilet* ryb cyfr dzielnik* krawędzi ścian
boków wierzchołk* mąki cukru

bilye ağaç çiçek para pul şeker kurabiye pasta portakal muz araba bisiklet şişe bardak balon köpek kedi kuş inek tavuk
tekerlek pencere oda ev masa gömlek ayakkabı oyuncak tuğla torba sepet paket sıra koltuk yolcu defter bilet balık
rakam
kenar köşe yüz yüzü ayrıt su
"""
"""By languages: English, Spanish, French, German, Italian, Portuguese, Dutch, Russian, Polish, Turkish."""
