"""The words of the phrasebook, and which of them go together.

Most tables are lists of entries between commas. In some, each line begins with a name and a colon.
Each table is parsed where it is defined. Words have their base form here: `morphology.py` inflects
them.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

Pair = tuple[str, str]


def _entries(text: str) -> list[str]:
    return [" ".join(entry.split()) for entry in text.split(",") if entry.strip()]


def rows(text: str) -> list[list[str]]:
    """Return "word parola, ..." as lists of words."""
    return [entry.split() for entry in _entries(text)]


def pairs(text: str) -> list[Pair]:
    """Return "some words=alcune parole, ..." as pairs."""
    return [(en, it) for en, it in (entry.split("=") for entry in _entries(text))]


def _table(text: str) -> dict[str, str]:
    return dict(rows(text))


def _sections(text: str) -> dict[str, str]:
    """Return "name: text" lines as {name: text}. Lines with the same name are joined."""
    sections: dict[str, str] = {}
    for line in text.strip().splitlines():
        name, rest = line.split(":", 1)
        sections[name] = f"{sections.get(name, '')} {rest}".strip()
    return sections


def _cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]


KINDS = _sections("""
man: man uomo m, teacher maestro m, doctor medico m, student studente m, cook cuoco m,
man: farmer contadino m, writer scrittore m, neighbor vicino m, friend amico m, king re m,
man: waiter cameriere m, tourist turista m, artist artista m, worker operaio m,
man: psychologist psicologo m
woman: woman donna f, nurse infermiera f, actress attrice f, queen regina f, dancer ballerina f
youth: child bambino m, boy ragazzo m, girl ragazza f
kin: mother madre f, father padre m, brother fratello m, sister sorella f, son figlio m,
kin: daughter figlia f, grandmother nonna f, grandfather nonno m, uncle zio m, aunt zia f,
kin: cousin cugino m, husband marito m, wife moglie f
pet: dog cane m, cat gatto m
grazer: horse cavallo m, cow mucca f, goat capra f, donkey asino m, rabbit coniglio m
wild: wolf lupo m, lion leone m, bear orso m, fox volpe f, eagle aquila f
prey: mouse topo m, bird uccello m, duck anatra f, squirrel scoiattolo m
snack: apple mela f, orange arancia f, banana banana f, egg uovo m, sandwich panino m,
snack: cookie biscotto m, potato patata f, tomato pomodoro m, cake torta f
dish: bread pane m, meat carne f, fish pesce m, cheese formaggio m, salad insalata f,
dish: fruit frutta f
meal: rice riso m, soup zuppa f, pasta pasta f
drink: water acqua f, milk latte m, wine vino m, beer birra f, juice succo m
brew: tea tè m, coffee caffè m
text: book libro m, letter lettera f, story storia f, poem poesia f
press: newspaper giornale m, magazine rivista f
garment: shirt camicia f, jacket giacca f, hat cappello m, shoe scarpa f, skirt gonna f,
garment: coat cappotto m, dress vestito m, scarf sciarpa f
tool: key chiave f, umbrella ombrello m, plate piatto m, knife coltello m, fork forchetta f,
tool: spoon cucchiaio m, pen penna f, pencil matita f, notebook quaderno m, backpack zaino m,
tool: bag borsa f, box scatola f, bottle bottiglia f, glass bicchiere m, mirror specchio m,
tool: phone telefono m, clock orologio m, photo foto f, gift regalo m
furniture: table tavolo m, chair sedia f, bed letto m, sofa divano m, desk scrivania f,
furniture: lamp lampada f
opening: door porta f, window finestra f
room: kitchen cucina f, bedroom camera f, bathroom bagno m, office ufficio m
building: house casa f, school scuola f, church chiesa f, station stazione f, hotel albergo m,
building: hospital ospedale m, museum museo m, restaurant ristorante m, cinema cinema m,
building: theater teatro m, shop negozio m, library biblioteca f
outdoors: garden giardino m, city città f, village villaggio m, square piazza f, street strada f,
outdoors: park parco m, market mercato m, bridge ponte m, beach spiaggia f, island isola f,
outdoors: forest bosco m, river fiume m, lake lago m, sea mare m
vehicle: car macchina f, bicycle bicicletta f
carrier: train treno m, bus autobus m, plane aereo m, boat barca f
tree: tree albero m
flower: flower fiore m, rose rosa f
body: hand mano f, eye occhio m, foot piede m, nose naso m
instrument: piano pianoforte m, guitar chitarra f, violin violino m
sound: radio radio f, music musica f, song canzone f
show: movie film m
language: Italian italiano m, English inglese m, French francese m, Spanish spagnolo m
""")
GROUPS = _sections("""
person: man man woman youth youth kin kin
animal: pet pet grazer wild prey
food: snack dish meal
drinks: drink drink brew
readable: text press
thing: text press garment tool tool
place: room building outdoors
plant: tree flower
""")
ANYTHING = (
    "person person animal food drinks readable garment tool furniture vehicle place plant body"
)
MASS = "dish meal drink brew language music".split()
ONLY_ONE = "mother father husband wife king queen sea nose piano guitar violin radio".split()
NOT_OWNED = (
    "man woman boy girl king queen tourist artist worker psychologist farmer waiter writer cook "
    "nurse actress dancer wolf lion bear fox eagle mouse bird duck squirrel sea river lake forest "
    "island beach bridge square park market street hospital station museum restaurant cinema "
    "theater library train bus plane music"
).split()


class Noun(NamedTuple):
    """A noun in both languages, its Italian gender (m or f) and the kind of thing that it names."""

    en: str
    it: str
    gender: str
    kind: str

    @property
    def is_mass(self) -> bool:
        """Whether the noun names a substance or the like, which is not counted."""
        return self.kind in MASS or self.en in MASS

    @property
    def has_plural(self) -> bool:
        """Whether the sentences use the noun in the plural, too."""
        return not self.is_mass and self.en not in ONLY_ONE


NOUNS = {row[0]: Noun(*row, kind) for kind, text in KINDS.items() for row in rows(text)}


@cache
def nouns_of(names: str) -> tuple[Noun, ...]:
    """Return the nouns of some names, each a noun, a kind or a group of kinds.

    A noun that several names include is there several times.
    """
    found = []
    for name in names.split():
        if name in GROUPS:
            found += nouns_of(GROUPS[name])
        elif name in KINDS:
            found += [noun for noun in NOUNS.values() if noun.kind == name]
        else:
            found.append(NOUNS[name])
    return tuple(found)


BEFORE = _table("""
small piccolo, big grande, old vecchio, new nuovo, good buono, beautiful bello, young giovane,
long lungo, ugly brutto
""")
ADJECTIVES = BEFORE | _table("""
red rosso, white bianco, black nero, green verde, yellow giallo, gray grigio, blue blu,
brown marrone, Italian italiano, English inglese, French francese, German tedesco, tall alto,
short basso, rich ricco, poor povero, famous famoso, kind gentile, intelligent intelligente,
friendly simpatico, strong forte, lazy pigro, curious curioso, tired stanco, happy felice,
sad triste, hungry affamato, sick malato, ready pronto, busy occupato, fresh fresco, cold freddo,
hot caldo, sweet dolce, clean pulito, dirty sporco, empty vuoto, full pieno, open aperto,
closed chiuso, expensive caro, heavy pesante, light leggero, interesting interessante,
boring noioso, easy facile, difficult difficile, quiet tranquillo, fast veloce, slow lento,
thin magro, fat grasso, important importante
""")
# The adjectives that fit a kind of noun. Those after the bar fit only after `be`.
FITTING = _sections("""
man: old young good tall short rich poor famous kind intelligent friendly Italian French strong
man: lazy tired happy sad English German | sick ready busy
woman: old young good beautiful tall rich poor kind intelligent friendly Italian French tired happy
woman: sad English German | sick ready busy
youth: small good tall happy sad tired lazy curious kind intelligent | sick ready thin
kin: old young good tall kind tired happy | sick ready busy sad rich thin
pet: small big old black white brown beautiful hungry lazy curious happy tired fat gray
pet: | intelligent thin fast
grazer: small big white brown beautiful black tired hungry old | fat strong slow
wild: big old young hungry strong beautiful | fast intelligent
prey: small big gray white hungry beautiful fat | fast curious
snack: small big good sweet fresh | expensive ready
dish: good fresh | expensive
meal: good hot cold | ready expensive
drink: good cold fresh | expensive
brew: good hot sweet | ready expensive cold
text: long old new beautiful interesting boring easy difficult Italian French English good
text: | important
press: old new interesting boring Italian English | important
garment: old new beautiful red white black green yellow blue gray expensive clean dirty ugly light
garment: heavy brown | small big long
tool: old new small big red green black beautiful ugly | expensive heavy light clean dirty
furniture: old new small big white black beautiful ugly red | heavy expensive clean dirty
opening: old new small big white green red yellow blue | open closed clean dirty
room: small big old new beautiful white quiet clean | dirty empty open closed
building: small big old new beautiful famous quiet ugly white | open closed empty full
outdoors: small big old beautiful quiet famous | clean dirty
vehicle: old new small big red white black beautiful green blue gray Italian German
vehicle: | expensive fast slow clean dirty
carrier: old new big small red white | fast slow full empty
tree: small big beautiful old | tall
flower: small big beautiful red white yellow |
body: big small beautiful | clean dirty cold hot
instrument: old new beautiful | expensive heavy
sound: old new beautiful | boring
show: old new beautiful long interesting boring Italian French famous | sad
language: | easy difficult important beautiful
""")
COLORS = "red white black green yellow gray blue brown".split()
ORIGINS = "Italian English French German".split()
# Adjectives of one group exclude each other.
OPPOSITES = [set(COLORS), set(ORIGINS)] + [
    set(entry)
    for entry in rows(
        "small big long, old new young, tall short, rich poor, beautiful ugly, fast slow, "
        "heavy light, clean dirty, happy sad, hot cold, interesting boring, easy difficult, "
        "fat thin, lazy busy, strong sick"
    )
]
COMPARABLE = (
    "small big old young tall rich poor strong fresh cold sweet expensive heavy fast slow "
    "beautiful intelligent famous interesting difficult important happy"
).split()
# Adjectives that do not go with very or too.
ABSOLUTE = [*COLORS, *ORIGINS, *"ready open closed empty full important".split()]
QUALITIES = [word for word in ADJECTIVES if word not in ABSOLUTE]

NAMES = rows("Anna f, Maria f, Giulia f, Sofia f, Marco m, Luca m, Paolo m, Pietro m")
NUMBERS = _table("""
one una, two due, three tre, four quattro, five cinque, six sei, seven sette, eight otto,
nine nove, ten dieci, eleven undici, twelve dodici, twenty venti, thirty trenta, forty quaranta,
fifty cinquanta
""")
COUNTS = list(NUMBERS)[1:10]
DAYS = rows("""
Monday lunedì, Tuesday martedì, Wednesday mercoledì, Thursday giovedì, Friday venerdì,
Saturday sabato, Sunday domenica
""")
CITIES = rows("""
Rome Roma, Milan Milano, Florence Firenze, Naples Napoli, Venice Venezia, Paris Parigi,
London Londra, Turin Torino
""")
COUNTRIES = rows(
    "Italy Italia, France Francia, Germany Germania, Spain Spagna, England Inghilterra"
)
POSSESSIVES = _table("my mio, your tuo, his suo, her suo, our nostro, their loro")

# A place is an English preposition, a noun and the Italian preposition. A star means that Italian
# has no article where English has only `the`: in the kitchen, in cucina. An equals sign stands
# between the two languages of a fixed phrase.
PLACES = {
    kind: _entries(text)
    for kind, text in _sections("""
house: in kitchen in*, in kitchen in*, in garden in*, at home=a casa, on sofa su, in bedroom in*,
house: near window vicino_a, in_front_of house davanti_a, behind house dietro, near door vicino_a,
house: in house in*, in bathroom in*
corner: in kitchen in*, in kitchen in*, in garden in*, under table sotto, on bed su, on sofa su,
corner: under chair sotto, under bed sotto, near door vicino_a, behind house dietro, at home=a casa
town: in park in, in square in*, at station a, at restaurant a, at market a, in library in*,
town: at school=a scuola, in office in*, at theater a*, in_front_of church davanti_a, at cinema a,
town: near bridge vicino_a, in city in*, on train su, in hotel in*, in village in
seat: in park in, at station a, at restaurant a, in library in*, at school=a scuola, in office in*,
seat: on train su, in hotel in*, on beach su, in garden in*, in kitchen in*
road: in the street=per strada, in city in*, in village in, near bridge vicino_a, in park in,
road: in square in*
sky: in forest in, near river vicino_a, on island su, in the mountains=in montagna, in village in,
sky: near the sea=vicino al mare, in garden in*
fair: at market a, in shop in, in square in*, in city in*
nature: in forest in, near river vicino_a, near lake vicino_a, on beach su, under tree sotto,
nature: on island su, in the mountains=in montagna, near the sea=vicino al mare
water: in the sea=nel mare, in river in, in lake in
class: at school=a scuola, at home=a casa, in library in*
spot: on table su, under bed sotto, in bag in, in box in, on chair su, on desk su, on bed su,
spot: behind door dietro, in car in, in kitchen in*, near lamp vicino_a, in backpack in,
spot: under chair sotto, in bedroom in*
goal: to market a, to park a, to station a, to the sea=al mare, to school=a scuola, home=a casa,
goal: to church in*, to library in*, to office in*, to doctor da, to cinema a, to theater a*,
goal: to restaurant a, to hospital a, to the beach=in spiaggia, to bed=a letto, to museum a,
goal: to the mountains=in montagna, to hotel a, to lake a, to kitchen in*, to garden in*
""").items()
}
PLACES["abroad"] = [f"in {en}=in {it}" for en, it in COUNTRIES]
PLACES["cities"] = [f"in {en}=a {it}" for en, it in CITIES] + PLACES["abroad"]
PLACES["goal"] += ["to" + entry.removeprefix("in") for entry in PLACES["cities"]]

TIMES = {
    tense: pairs(text)
    for tense, text in _sections("""
present: every day=ogni giorno, in the evening=la sera, in the morning=la mattina, today=oggi
past: yesterday=ieri, last week=la settimana scorsa, last year=l'anno scorso, today=oggi,
past: two days ago=due giorni fa, this morning=stamattina, yesterday evening=ieri sera
future: tomorrow=domani, next week=la settimana prossima, next year=l'anno prossimo,
future: tomorrow evening=domani sera, tomorrow morning=domani mattina
habit: every day=ogni giorno, in the evening=la sera, in summer=d'estate, in winter=d'inverno,
habit: on Sundays=la domenica
progressive: now=adesso
past_progressive: yesterday=ieri, yesterday evening=ieri sera
can: today=oggi, now=adesso, tomorrow=domani
must: today=oggi, now=adesso, tomorrow=domani
want: today=oggi, now=adesso, tomorrow=domani
would_like: today=oggi, now=adesso, tomorrow=domani
""").items()
}
for _en, _it in DAYS:
    TIMES["present"].append((f"on {_en}s", f"{'la' if _it == 'domenica' else 'il'} {_it}"))
    TIMES["past"].append((f"on {_en}", _it))
    TIMES["future"].append((f"on {_en}", _it))

WEATHER = pairs("""
it rains=piove, it is raining=sta piovendo, it is snowing=sta nevicando, it is cold=fa freddo,
it is hot=fa caldo, the weather is good=fa bel tempo, the weather is bad=fa brutto tempo
""")

# Each line: subjects > objects @ places: verbs. Subjects, objects and places are kinds or nouns. A
# dash stands for none. A plus marks verbs that need a place.
ACTION_LINES = """
person > - @ house town: work lavorare, sing cantare, wait aspettare
person > - @ road nature: walk camminare
person > - @ house town: dance ballare
person > - @ abroad: travel viaggiare
person > - @ house town nature: laugh ridere, cry piangere
person > - @ house nature: sleep dormire
pet > - @ corner house: sleep dormire
pet > - @ corner: sleep dormire, stay +restare
person > - @ house town: stay +restare
grazer wild prey > - @ nature: sleep dormire
youth pet > - @ house road nature: play giocare
person pet grazer > - @ road nature: run correre
person pet > - @ water: swim nuotare
person > food @ house seat: eat mangiare
pet wild > meat fish @ -: eat mangiare
grazer prey > bread fruit apple @ nature: eat mangiare
person > drinks @ house seat: drink bere
pet grazer > water milk @ house: drink bere
person > readable @ house seat: read leggere
person > text @ house seat: write scrivere
person > snack dish garment tool press vehicle flower @ fair: buy comprare
man > snack garment vehicle dish @ fair: sell vendere
person > garment tool book letter @ -: look_for cercare, find trovare
person > garment tool book letter @ -: lose perdere, forget dimenticare
person > thing animal place @ -: see vedere
person > person @ -: know conoscere, love amare, help aiutare, call chiamare
person > person @ town: meet incontrare, wait_for aspettare
person > opening shop box bottle book @ -: open aprire, close chiudere
person > garment plate glass fork spoon vehicle window @ -: wash lavare
person > room house furniture shoe @ -: clean pulire
person > meal meat fish cake egg @ house: cook cucinare
person > car bus @ road: drive guidare
person > bicycle car chair clock phone @ -: repair riparare
person > tree flower house horse cat boat @ house nature: paint dipingere, draw disegnare
person > glass plate bottle mirror window @ -: break rompere
person > movie @ house: watch guardare
person > sound @ house: listen_to ascoltare
person > museum church city island village @ -: visit visitare
person > language @ class: speak parlare, study studiare, learn imparare
person > language @ -: understand capire
person > garment gift snack tool book @ -: bring portare
pet wild > prey @ nature: chase inseguire
person > gift letter photo flower @ -: receive ricevere, send mandare
person > instrument @ house: play suonare
person > - @ cities: live +abitare
person > - @ goal: go +andare, return +tornare
person carrier > - @ -: leave partire, arrive arrivare
"""


class Action(NamedTuple):
    """A verb in both languages, and the names of its subjects, objects and places."""

    en: str
    it: str
    subjects: str
    objects: str
    places: str
    needs_place: bool


def _read_actions() -> Iterator[Action]:
    for line in ACTION_LINES.strip().splitlines():
        frame, verbs = line.split(":")
        subjects, objects, places = (part.strip(" -") for part in re.split("[>@]", frame))
        for en, it in rows(verbs):
            verb = en.replace("_", " "), it.removeprefix("+")
            yield Action(*verb, subjects, objects, places, it.startswith("+"))


ACTIONS = tuple(_read_actions())

STATES = "be have know love live".split()
NOT_PROGRESSIVE = "stay understand".split()
MOMENTS = "find lose forget meet break receive arrive leave see".split()
HABITS = (
    "work walk travel sleep play swim eat drink read write know love live study speak go".split()
)
VERBS_OF_STATE = "essere avere conoscere amare abitare volere".split()
VERBS_WITH_ESSERE = "essere andare tornare venire partire arrivare restare cadere".split()
MODALS = {
    "can": ("potere", "present"),
    "must": ("dovere", "present"),
    "want": ("volere", "present"),
    "would_like": ("volere", "conditional"),
}

# Simple sentences: weight | subject | verb | tenses | moods | rest. A mood is s, n or q: statement,
# negative or question. The rest has parts between plus signs. Each part is an adjective, a place, a
# time, a noun with its kind of determiner, or words of both languages. A pair of prepositions may
# stand before a noun.
FRAMES = _cells("""
8 | anything | be essere | present past | s s n q | adjective
2 | anything | be essere | present past | s n | very=molto + quality
1 | anything | be essere | present | s n | too=troppo + quality
1 | person food | be essere | future | s n | adjective
3 | person | be essere | present past future | s n q | place house town cities
1 | pet | be essere | present past future | s n q | place corner
1 | grazer wild prey | be essere | present past | s n q | place nature
3 | tool readable garment | be essere | present past | s n q | place spot
2 | person | be essere | present past | s s n q | with=con firm kin friend neighbor
3 | person | have avere | present past | s s n q | own tool garment vehicle readable pet grazer
2 | person | have avere | present | s s n q | own brother sister son daughter cousin friend child
3 | person | be avere | present past | s n q | hungry=fame/thirsty=sete/cold=freddo/sleepy=sonno
1 | person | be avere | present | s n q | right=ragione/wrong=torto/in_a_hurry=fretta
2 | person | be avere | present | s n q | afraid=paura + of=di the pet wild mouse forest sea
2 | person pet house | be avere | present | s s n | age
2 | thing vehicle snack | cost costare | present | s s n | price
4 | person | give dare | present past future | s s n q | object thing snack + to=a firm kin youth
2 | person | give dare | present past future | s s n q | object gift flower book + to=a name friend
2 | person | put mettere | present future | s s n | firm tool readable + on=su the table chair bed
2 | person | put mettere | present future | s s n | firm tool readable + in=in the bag box car
3 | person | come venire | present past future | s s n q | from=da the station market village
2 | person | come venire | present past | s s n q | from=da city
2 | person | wake_up svegliarsi | present past future | s s n q | moment
2 | person | get_up alzarsi | present past future | s s n q | moment
2 | person | want volere | present past | s s n q | object snack drinks garment tool
2 | person | work lavorare | present past future progressive | s s n q | with=con firm kin friend
2 | person | eat mangiare | present past future progressive | s s n q | with=con firm kin youth
1 | person | sing cantare | present past future progressive | s s n q | with=con firm youth friend
1 | youth pet | play giocare | present past future progressive | s s n q | with=con firm youth pet
2 | person | speak parlare | present past future progressive | s n q | with=con firm kin man
2 | person | travel viaggiare | present past future | s s n q | without=senza firm kin friend pet
1 | person | fall cadere | past | s n | in=in the river lake garden forest
1 | person | dance ballare | present past future | s n q | with=con firm woman youth friend
""")

ENGLISH_PLURALS = _table("""
man men, woman women, child children, mouse mice, wolf wolves, knife knives, wife wives, foot feet,
scarf scarves, piano pianos, photo photos, radio radios
""")
ENGLISH_PASTS = _table("""
sleep slept, run ran, swim swam, sing sang, eat ate, drink drank, read read, write wrote,
buy bought, sell sold, find found, lose lost, forget forgot, see saw, know knew, meet met,
drive drove, draw drew, break broke, speak spoke, understand understood, bring brought, send sent,
go went, leave left, have had, give gave, put put, come came, fall fell, get got, wake woke,
cost cost, be was
""")
ITALIAN_PLURALS = _table("""
uomo uomini, uovo uova, mano mani, zio zii, moglie mogli, re re, cinema cinema, mio miei, tuo tuoi,
suo suoi
""")
# Verb | present | stem of the future | past participle. An empty cell is regular.
IRREGULAR_VERBS = {
    infinitive: forms
    for infinitive, *forms in _cells("""
essere | sono sei è siamo siete sono | sar | stato
avere | ho hai ha abbiamo avete hanno | avr |
andare | vado vai va andiamo andate vanno | andr |
stare | sto stai sta stiamo state stanno | star |
dare | do dai dà diamo date danno | dar |
bere | bevo bevi beve beviamo bevete bevono | berr | bevuto
venire | vengo vieni viene veniamo venite vengono | verr | venuto
potere | posso puoi può possiamo potete possono | potr |
dovere | devo devi deve dobbiamo dovete devono | dovr |
volere | voglio vuoi vuole vogliamo volete vogliono | vorr |
sapere | so sai sa sappiamo sapete sanno | sapr |
dire | dico dici dice diciamo dite dicono | | detto
vedere | | vedr | visto
cadere | | cadr |
leggere | | | letto
scrivere | | | scritto
aprire | | | aperto
chiudere | | | chiuso
perdere | | | perso
mettere | | | messo
rompere | | | rotto
correre | | | corso
ridere | | | riso
piangere | | | pianto
dipingere | | | dipinto
conoscere | | | conosciuto
""")
}
VERBS_IN_ISC = "pulire capire".split()
FULL_INFINITIVES = {"bere": "bevere", "dire": "dicere"}
WHOLE_TENSES = {
    ("essere", "imperfect"): "ero eri era eravamo eravate erano",
    ("volere", "conditional"): "vorrei vorresti vorrebbe vorremmo vorreste vorrebbero",
}
