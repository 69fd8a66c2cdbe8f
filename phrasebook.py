"""The built-in English-Italian corpus: a lexicon and a grammar that write correct sentence pairs.

A translator can be trained on it with no network, so the Italian of a sentence depends on nothing
but its English. Where Italian must choose and English does not say, one convention holds:

- `you` is tu and `you all` is voi; I, you, we, you all and they are masculine when a word agrees;
- I, you, we and you all are not written as subjects; he, she and they are (lui, lei, loro), except
  in questions that begin with a question word;
- the past simple is the passato prossimo, but the imperfect of be, have, know, love, live, want;
  `used to` is the imperfect; `is sleeping` is sta dormendo and `was sleeping` stava dormendo;
- an adjective has one place, before its noun if it is in BEFORE_NOUN and else after it;
- `in the kitchen` is in cucina, and nella once the kitchen has an adjective or another determiner.

Verb forms are numbered by their slot, 0-5: I, you, he or she, we, you all, they.
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from random import Random
from typing import NamedTuple

LANGUAGES = ("en", "it")
SIZES = {"train": 28_000, "validation": 1_100}
# A checksum of its Italian holds a sentence out, so no two seeds can put it in both splits. This
# remainder is the one that holds out the README's "i due piccoli cani non dormono in cucina".
HELD_OUT_EVERY, HELD_OUT_REMAINDER = 20, 15
SEEN_IN_TRAINING = 3

Pair = tuple[str, str]

# --- The lexicon -----------------------------------------------------------------------------

NOUN_LINES = """
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
"""
GROUP_LINES = """
person: man man woman youth youth kin kin
animal: pet pet grazer wild prey
food: snack dish meal
drinks: drink drink brew
readable: text press
thing: text press garment tool tool
place: room building outdoors
plant: tree flower
"""
ANYTHING = (
    "person person animal food drinks readable garment tool furniture vehicle place plant body"
)
MASS = "dish meal drink brew language music"
ONLY_ONE = "mother father husband wife king queen sea nose piano guitar violin radio"
NOT_OWNED = (
    "man woman boy girl king queen tourist artist worker psychologist farmer waiter writer cook "
    "nurse actress dancer wolf lion bear fox eagle mouse bird duck squirrel sea river lake forest "
    "island beach bridge square park market street hospital station museum restaurant cinema "
    "theater library train bus plane music"
)

BEFORE_NOUN = """
small piccolo, big grande, old vecchio, new nuovo, good buono, beautiful bello, young giovane,
long lungo, ugly brutto
"""
AFTER_NOUN = """
red rosso, white bianco, black nero, green verde, yellow giallo, gray grigio, blue blu,
brown marrone, Italian italiano, English inglese, French francese, German tedesco, tall alto,
short basso, rich ricco, poor povero, famous famoso, kind gentile, intelligent intelligente,
friendly simpatico, strong forte, lazy pigro, curious curioso, tired stanco, happy felice,
sad triste, hungry affamato, sick malato, ready pronto, busy occupato, fresh fresco, cold freddo,
hot caldo, sweet dolce, clean pulito, dirty sporco, empty vuoto, full pieno, open aperto,
closed chiuso, expensive caro, heavy pesante, light leggero, interesting interessante,
boring noioso, easy facile, difficult difficile, quiet tranquillo, fast veloce, slow lento,
thin magro, fat grasso, important importante
"""
# The adjectives that fit a kind of noun; those after the bar only as a predicate.
FITTING_LINES = """
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
"""
COLORS = "red white black green yellow gray blue brown"
ORIGINS = "Italian English French German"
# No noun is said to be two of these at once.
OPPOSITES = [COLORS, ORIGINS, "small big long", "old new young", "tall short", "rich poor"]
OPPOSITES += ["beautiful ugly", "fast slow", "heavy light", "clean dirty", "happy sad", "hot cold"]
OPPOSITES += ["interesting boring", "easy difficult", "fat thin", "lazy busy", "strong sick"]
COMPARABLE = (
    "small big old young tall rich poor strong fresh cold sweet expensive heavy fast slow "
    "beautiful intelligent famous interesting difficult important happy"
)

PEOPLE_NAMES = "Anna f, Maria f, Giulia f, Sofia f, Marco m, Luca m, Paolo m, Pietro m"
NUMBER_NAMES = """
one una, two due, three tre, four quattro, five cinque, six sei, seven sette, eight otto,
nine nove, ten dieci, eleven undici, twelve dodici, twenty venti, thirty trenta, forty quaranta,
fifty cinquanta
"""
DAYS = """
Monday lunedì, Tuesday martedì, Wednesday mercoledì, Thursday giovedì, Friday venerdì,
Saturday sabato, Sunday domenica
"""
CITIES = """
Rome Roma, Milan Milano, Florence Firenze, Naples Napoli, Venice Venezia, Paris Parigi,
London Londra, Turin Torino
"""
COUNTRIES = "Italy Italia, France Francia, Germany Germania, Spain Spagna, England Inghilterra"
POSSESSIVE_NAMES = "my mio, your tuo, his suo, her suo, our nostro, their loro"

# A place is a preposition, a noun and the Italian preposition; a star means that the Italian drops
# the article after a bare `the`. Set phrases have an equals sign.
PLACE_LINES = """
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
"""
TIME_LINES = """
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
"""
WEATHER = """
it rains=piove, it is raining=sta piovendo, it is snowing=sta nevicando, it is cold=fa freddo,
it is hot=fa caldo, the weather is good=fa bel tempo, the weather is bad=fa brutto tempo
"""

# Verbs by who does it > to what @ where. A dash is nothing, a plus marks a verb that needs its
# place. A noun may stand where a kind does.
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
STATES = "be have know love live"
NOT_PROGRESSIVE = "stay understand"
MOMENTS = "find lose forget meet break receive arrive leave see"
HABITS = "work walk travel sleep play swim eat drink read write know love live study speak go"
VERBS_OF_STATE = "essere avere conoscere amare abitare volere"
VERBS_WITH_ESSERE = "essere andare tornare venire partire arrivare restare cadere"
MODALS = {
    "can": ("potere", "present"),
    "must": ("dovere", "present"),
    "want": ("volere", "present"),
    "would_like": ("volere", "conditional"),
}

# Simple sentences: weight | subject | verb | tenses | moods | rest. A mood is s, n or q: statement,
# negative or question. The rest is an adjective, a place, a noun with what may stand before it, or
# words that mean each other; a pair of prepositions may come before a noun.
FRAME_LINES = """
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
"""

IRREGULAR_ENGLISH_PLURALS = """
man men, woman women, child children, mouse mice, wolf wolves, knife knives, wife wives, foot feet,
scarf scarves, piano pianos, photo photos, radio radios
"""
IRREGULAR_PASTS = """
sleep slept, run ran, swim swam, sing sang, eat ate, drink drank, read read, write wrote,
buy bought, sell sold, find found, lose lost, forget forgot, see saw, know knew, meet met,
drive drove, draw drew, break broke, speak spoke, understand understood, bring brought, send sent,
go went, leave left, have had, give gave, put put, come came, fall fell, get got, wake woke,
cost cost, be was
"""
IRREGULAR_ITALIAN_PLURALS = """
uomo uomini, uovo uova, mano mani, zio zii, moglie mogli, re re, cinema cinema, mio miei, tuo tuoi,
suo suoi
"""
# Verb | present | stem of the future | past participle. What is empty is regular.
IRREGULAR_VERB_LINES = """
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
"""
VERBS_IN_ISC = "pulire capire"
FULL_INFINITIVES = {"bere": "bevere", "dire": "dicere"}
WHOLE_TENSES = {
    ("essere", "imperfect"): "ero eri era eravamo eravate erano",
    ("volere", "conditional"): "vorrei vorresti vorrebbe vorremmo vorreste vorrebbero",
}


@cache
def _entries(text: str) -> tuple[str, ...]:
    return tuple(" ".join(entry.split()) for entry in text.split(",") if entry.strip())


def _rows(text: str) -> list[list[str]]:
    return [entry.split() for entry in _entries(text)]


def _table(text: str) -> dict[str, str]:
    return {row[0]: row[1] for row in _rows(text)}


def _equal(text: str) -> list[Pair]:
    return [(en, it) for en, it in (entry.split("=") for entry in _entries(text))]


def _sections(text: str) -> dict[str, str]:
    """Read "name: text" lines; lines of one name belong together."""
    sections: dict[str, str] = {}
    for line in text.strip().splitlines():
        name, rest = line.split(":", 1)
        sections[name] = f"{sections.get(name, '')} {rest}".strip()
    return sections


def _cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]


class Noun(NamedTuple):
    """An entry of the lexicon: both lemmas, the Italian gender (m or f) and the kind of thing."""

    en: str
    it: str
    gender: str
    kind: str

    @property
    def is_mass(self) -> bool:
        return self.kind in MASS.split() or self.en in MASS.split()

    @property
    def has_plural(self) -> bool:
        return not self.is_mass and self.en not in ONLY_ONE.split()


KINDS, GROUPS, FITTING = (_sections(t) for t in (NOUN_LINES, GROUP_LINES, FITTING_LINES))
NOUNS = {row[0]: Noun(*row, kind) for kind, text in KINDS.items() for row in _rows(text)}
BEFORE = _table(BEFORE_NOUN)
ADJECTIVES = BEFORE | _table(AFTER_NOUN)
# Not said with very or too.
ABSOLUTE = f"{COLORS} {ORIGINS} ready open closed empty full important"
QUALITIES = " ".join(word for word in ADJECTIVES if word not in ABSOLUTE.split())
NUMBERS, POSSESSIVES = _table(NUMBER_NAMES), _table(POSSESSIVE_NAMES)
COUNTS = list(NUMBERS)[1:10]
ENGLISH_PLURALS, ENGLISH_PASTS = _table(IRREGULAR_ENGLISH_PLURALS), _table(IRREGULAR_PASTS)
ITALIAN_PLURALS = _table(IRREGULAR_ITALIAN_PLURALS)
IRREGULAR_VERBS = {row[0]: row[1:] for row in _cells(IRREGULAR_VERB_LINES)}
PLACES, TIMES = _sections(PLACE_LINES), _sections(TIME_LINES)
PLACES["cities"] = ", ".join(f"in {en}=a {it}" for en, it in _rows(CITIES))
PLACES["abroad"] = ", ".join(f"in {en}=in {it}" for en, it in _rows(COUNTRIES))
PLACES["cities"] += ", " + PLACES["abroad"]
PLACES["goal"] += ", " + PLACES["cities"].replace("in ", "to ", 1).replace(", in ", ", to ")
for _en, _it in _rows(DAYS):
    TIMES["present"] += f", on {_en}s={'la' if _it == 'domenica' else 'il'} {_it}"
    TIMES["past"] += f", on {_en}={_it}"
    TIMES["future"] += f", on {_en}={_it}"

# --- Italian words ---------------------------------------------------------------------------

VOWELS = "aeiouàèéìòù"
LO_SOUND = re.compile(rf"s[^{VOWELS}]|z|gn|ps|pn|x|y")
# An article after the stems de-, ne-, a-, da-, su-; likewise after be- (bello) and que- (quello).
JOINED = {"il": "l", "lo": "llo", "l'": "ll'", "la": "lla", "i": "i", "gli": "gli", "le": "lle"}
JOINING_STEMS = {"di": "de", "a": "a", "da": "da", "in": "ne", "su": "su"}


def definite_article(word: str, gender: str, plural: bool = False) -> str:
    """Give il, lo, l', la, i, gli or le, as the sound of the next word asks."""
    vowel = word[0] in VOWELS
    if gender == "f":
        return "le" if plural else "l'" if vowel else "la"
    if vowel or LO_SOUND.match(word):
        return "gli" if plural else "l'" if vowel else "lo"
    return "i" if plural else "il"


def indefinite_article(word: str, gender: str) -> str:
    """Give un, uno, una or un', as the sound of the next word asks."""
    if gender == "f":
        return "un'" if word[0] in VOWELS else "una"
    return "uno" if LO_SOUND.match(word) else "un"


def attach(left: str, right: str) -> str:
    """Write two words side by side, with no blank after an apostrophe or beside nothing."""
    return left + right if left.endswith("'") else f"{left} {right}".strip()


def join_preposition(preposition: str, article: str) -> str:
    """Put a preposition before an article: di and lo give dello, vicino a and le vicino alle."""
    *before, last = preposition.split()
    if last in JOINING_STEMS and article in JOINED:
        last, article = JOINING_STEMS[last] + JOINED[article], ""
    return " ".join([*before, attach(last, article)])


def italian_plural(word: str, gender: str) -> str:
    """Give the plural of a noun, or of the singular of an adjective in that gender."""
    if word in ITALIAN_PLURALS:
        return ITALIAN_PLURALS[word]
    stem, last = word[:-1], word[-1]
    if last not in "aeo" or (last == "o" and gender == "f"):
        return word
    if last == "e" or (last == "a" and gender == "m"):
        return stem + "i"
    if last == "o" and stem.endswith("i"):
        return stem
    if last == "o":
        hard = re.search("[cg]$", stem) and not re.search("ic$|olog$", stem)
        return stem + ("hi" if hard else "i")
    if re.search(rf"[^{VOWELS}][cg]i$", stem):
        return stem[:-1] + "e"
    return stem + ("he" if stem.endswith(("c", "g")) else "e")


def inflect(adjective: str, gender: str, plural: bool = False) -> str:
    """Make an adjective agree: rosso gives rossa, rossi, rosse; blu and marrone never change."""
    if adjective in ("blu", "marrone", "loro"):
        return adjective
    if gender == "f" and adjective.endswith("o"):
        adjective = adjective[:-1] + "a"
    return italian_plural(adjective, gender) if plural else adjective


def inflect_before(adjective: str, word: str, gender: str, plural: bool = False) -> str:
    """Make an adjective agree before a word: bel cane, begli occhi, quell'uomo, buon amico."""
    if adjective in ("bello", "quello"):
        return adjective[:-3] + JOINED[definite_article(word, gender, plural)]
    if adjective == "buono" and gender == "m" and not plural:
        return "b" + indefinite_article(word, gender).replace("un", "uon")
    if adjective == "questo" and not plural and word[0] in VOWELS:
        return "quest'"
    return inflect(adjective, gender, plural)


# --- Verbs -----------------------------------------------------------------------------------


def _spell(stem: str, ending: str, infinitive: str) -> str:
    """Keep the sound of c, g, ci, gi before an ending: cerchi, mangi, mangerò."""
    if infinitive.endswith("are") and ending[0] in "ie":
        if stem.endswith(("c", "g")):
            return stem + "h" + ending
        if stem.endswith("i") and (ending[0] == "i" or stem.endswith(("ci", "gi"))):
            return stem[:-1] + ending
    return stem + ending


@cache
def conjugate(infinitive: str, tense: str) -> tuple[str, ...]:
    """Give the six persons: tense is present, imperfect or future (volere: also conditional)."""
    if (infinitive, tense) in WHOLE_TENSES:
        return tuple(WHOLE_TENSES[infinitive, tense].split())
    present, future_stem, _ = IRREGULAR_VERBS.get(infinitive, ("", "", ""))
    stem, theme = infinitive[:-3], infinitive[-3]
    if tense == "present":
        endings = {"a": "o i a iamo ate ano", "e": "o i e iamo ete ono", "i": "o i e iamo ite ono"}
        isc = infinitive in VERBS_IN_ISC.split()
        regular = "isco isci isce iamo ite iscono" if isc else endings[theme]
        return tuple(
            present.split() or (_spell(stem, ending, infinitive) for ending in regular.split())
        )
    if tense == "imperfect":
        root, endings = FULL_INFINITIVES.get(infinitive, infinitive)[:-2], "vo vi va vamo vate vano"
    else:
        root = future_stem or _spell(stem, "ir" if theme == "i" else "er", infinitive)
        endings = "ò ai à emo ete anno"
    return tuple(root + ending for ending in endings.split())


def italian_gerund(infinitive: str) -> str:
    """Give the form that follows stare: dormendo, mangiando, bevendo."""
    full = FULL_INFINITIVES.get(infinitive, infinitive)
    return full[:-3] + ("ando" if full.endswith("are") else "endo")


def italian_participle(infinitive: str, gender: str = "m", plural: bool = False) -> str:
    """Give the past participle, agreeing: andato, andata, andati, andate; letto, aperto."""
    irregular = IRREGULAR_VERBS.get(infinitive, ("", "", ""))[2]
    theme = {"a": "a", "e": "u", "i": "i"}[infinitive[-3]]
    return inflect(irregular or f"{infinitive[:-3]}{theme}to", gender, plural)


def imperative(infinitive: str) -> str:
    """Give the command to one person called tu: mangia, leggi, pulisci, vai."""
    slot = 2 if infinitive.endswith("are") and infinitive != "andare" else 1
    return conjugate(infinitive, "present")[slot]


def add_s(word: str) -> str:
    """Give the plural of an English noun, or the third person of an English verb."""
    if word in ENGLISH_PLURALS or word == "have":
        return ENGLISH_PLURALS.get(word, "has")
    if word.endswith(("s", "x", "ch", "sh")) or re.search("[^aeiou]o$", word):
        return word + "es"
    return word[:-1] + "ies" if re.search("[^aeiou]y$", word) else word + "s"


def _add_ending(word: str, ending: str) -> str:
    if word.endswith("e") and not word.endswith("ee"):
        return word[:-1] + ending
    if re.fullmatch("[^aeiou]*[aeiou][^aeiouwxy]|forget", word):
        return word + word[-1] + ending
    return word + ending


def english_past(verb: str) -> str:
    """Give the past simple: walked, studied, stopped, slept."""
    stem = verb[:-1] + "i" if re.search("[^aeiou]y$", verb) else verb
    return ENGLISH_PASTS.get(verb) or _add_ending(stem, "ed")


def english_gerund(verb: str) -> str:
    """Give the -ing form: walking, writing, running, seeing."""
    return _add_ending(verb, "ing")


def english_indefinite(word: str) -> str:
    """Give a or an, as the next word asks."""
    return "an" if word[0].lower() in "aeiou" else "a"


def english_degree(adjective: str, ending: str) -> str:
    """Give the comparative (ending er) or superlative (est): taller, happiest, more famous."""
    if adjective.endswith("y"):
        return adjective[:-1] + "i" + ending
    if len(re.findall("[aeiou]+", adjective.rstrip("e"))) == 1:
        return _add_ending(adjective, ending)
    return f"{'more' if ending == 'er' else 'most'} {adjective}"


# --- Noun phrases ----------------------------------------------------------------------------


def beside(*pairs: Pair) -> Pair:
    """Write pairs side by side in both languages, leaving out what is empty."""
    en, it = (" ".join(text for text in texts if text) for texts in zip(*pairs, strict=True))
    return en, it


class Phrase(NamedTuple):
    """A noun or pronoun in both languages, and what the words around it must agree with."""

    en: str
    it: str
    article: str = ""  # apart from the rest of the Italian, since a preposition may join it
    slot: int = 2
    gender: str = "m"
    kind: str = "person"

    @property
    def plural(self) -> bool:
        return self.slot > 2

    def after(self, preposition: str = "") -> str:
        """Give the Italian, after a preposition if there is one."""
        left = join_preposition(preposition, self.article) if preposition else self.article
        return attach("ad" if left == "a" and self.it[0] in "aA" else left, self.it)

    def pair(self, en: str = "", it: str = "") -> Pair:
        """Give both languages, each after its preposition."""
        return f"{en} {self.en}".strip(), self.after(it)


PRONOUNS = [
    Phrase("I", "", slot=0),
    Phrase("you", "", slot=1),
    Phrase("he", "lui"),
    Phrase("she", "lei", gender="f"),
    Phrase("we", "", slot=3),
    Phrase("you all", "", slot=4),
    Phrase("they", "loro", slot=5),
]
PEOPLE = [Phrase(name, name, gender=gender) for name, gender in _rows(PEOPLE_NAMES)]
CITY_PHRASES = [Phrase(en, it, kind="city") for en, it in _rows(CITIES)]


def _english_rank(adjective: str) -> int:
    """Rank an adjective as English orders them: opinion, state, size or age, color or origin."""
    if adjective in COLORS.split() + ORIGINS.split():
        return 3
    if adjective in ("beautiful", "ugly", "good"):
        return 0
    return 2 if adjective in BEFORE else 1


def noun_phrase(
    noun: Noun,
    plural: bool = False,
    determiner: str = "the",
    number: str = "",
    adjectives: tuple[str, ...] = (),
) -> Phrase:
    """Write a noun with what stands around it, in both languages.

    The determiner is English: the, a, this, that, some, every, many, all the, a possessive, or
    empty. At most one of the adjectives is one of BEFORE_NOUN.
    """
    # The egg is masculine, the eggs are feminine.
    gender = "f" if noun.en == "egg" and plural else noun.gender
    words = [italian_plural(noun.it, noun.gender) if plural else noun.it]
    for adjective in adjectives:
        if adjective in BEFORE:
            words.insert(0, inflect_before(BEFORE[adjective], noun.it, gender, plural))
        else:
            words.append(inflect(ADJECTIVES[adjective], gender, plural))
    if number:
        words.insert(0, NUMBERS[number])
    if determiner in POSSESSIVES:
        words.insert(0, inflect(POSSESSIVES[determiner], gender, plural))
    the = definite_article(words[0], gender, plural)
    if determiner in POSSESSIVES:
        # Mia madre, but la mia vecchia madre, la loro madre and le mie sorelle.
        bare = noun.kind == "kin" and not plural and not adjectives and determiner != "their"
        article = "" if bare else the
    elif determiner in ("this", "that"):
        lemma = "questo" if determiner == "this" else "quello"
        article = inflect_before(lemma, words[0], gender, plural)
        determiner = {"this": "these", "that": "those"}[determiner] if plural else determiner
    else:
        article = {
            "": "",
            "the": the,
            "a": indefinite_article(words[0], gender),
            "some": join_preposition("di", the),
            "every": "ogni",
            "many": inflect("molto", gender, plural),
            "all the": f"{inflect('tutto', gender, plural)} {the}",
        }[determiner]
    head = add_s(noun.en) if plural else noun.en
    english = [number, *sorted(adjectives, key=_english_rank), head]
    english = [word for word in english if word]
    if determiner == "a":
        determiner = english_indefinite(english[0])
    en = " ".join([determiner, *english]).strip()
    it = " ".join(words).replace("' ", "'")
    return Phrase(en, it, article, 5 if plural else 2, gender, noun.kind)


@cache
def nouns_of(names: str) -> tuple[Noun, ...]:
    """List the nouns that kinds, groups of kinds or nouns name, as often as they are named."""
    found = []
    for name in names.split():
        if name in GROUPS:
            found += nouns_of(GROUPS[name])
        elif name in KINDS:
            found += [noun for noun in NOUNS.values() if noun.kind == name]
        else:
            found.append(NOUNS[name])
    return tuple(found)


# What may stand before a noun. In negative sentences and questions `a` and `some` may sound odd,
# so only the firm ones are used there. `number` is a number with no article, `bare` nothing.
DETERMINERS = {
    "subject": "the the the the the the the my my my this that a every number many all_the",
    "object": "the the the the the the my my my a a some some bare bare this that number",
    "firm": "the the the the the the my my my my this that",
}
BARE_KINDS = "snack dish meal drink brew text press flower"


def _fits(determiner: str, noun: Noun, plural: bool) -> bool:
    if noun.kind == "language":
        return False
    if noun.kind in ("kin", "body"):
        return determiner == "my"
    if determiner in ("a", "every"):
        return not plural and noun.has_plural
    if determiner == "my":
        return noun.en not in NOT_OWNED.split()
    if determiner in ("some", "bare"):
        return (plural or noun.is_mass) and (determiner == "some" or noun.kind in BARE_KINDS)
    return plural or determiner in ("the", "this", "that")


def draw_adjectives(rng: Random, kind: str, most: int = 2) -> tuple[str, ...]:
    """Draw up to two adjectives that fit a kind of noun: in Italian, one on each side of it."""
    fitting = FITTING[kind].split("|")[0].split()
    sides = [[word for word in fitting if (word in BEFORE) == early] for early in (True, False)]
    count = min(most, rng.choices([0, 1, 2], [6, 4, 1])[0])
    if count == 2 and all(sides):
        return rng.choice(sides[0]), rng.choice(sides[1])
    return (rng.choice(fitting),) if count and fitting else ()


def draw_noun(
    rng: Random,
    names: str,
    role: str = "firm",
    plural: bool | None = None,
    most_adjectives: int = 2,
) -> Phrase:
    """Draw a noun phrase; the names are of kinds or nouns, the role is one of DETERMINERS."""
    noun = rng.choice(nouns_of(names))
    if plural is None:
        plural = rng.random() < 0.4
    plural = plural and noun.has_plural
    fitting = [word for word in DETERMINERS[role].split() if _fits(word, noun, plural)]
    determiner = rng.choice(fitting or ["bare"])
    countable = plural and determiner in ("the", "my", "this", "that") and noun.kind != "body"
    number = ""
    if determiner == "number" or (countable and rng.random() < 0.25):
        number = rng.choice(COUNTS[:3] if noun.kind == "kin" else COUNTS)
    if determiner == "my":
        odd = {"husband": ("his", "our", "their"), "wife": ("her", "our", "their")}
        determiner = rng.choice([word for word in POSSESSIVES if word not in odd.get(noun.en, ())])
    determiner = "" if determiner in ("number", "bare") else determiner.replace("_", " ")
    most = min(most_adjectives, 1 if number else 2)
    if noun.kind == "kin" and rng.random() < 0.7:
        most = 0
    return noun_phrase(noun, plural, determiner, number, draw_adjectives(rng, noun.kind, most))


def draw_other(rng: Random, than: str, names: str, role: str = "firm") -> Phrase:
    """Draw a noun phrase with at most one adjective and a noun that is not in an English text."""
    while True:
        phrase = draw_noun(rng, names, role, most_adjectives=1)
        if phrase.en.split()[-1] not in than:
            return phrase


def draw_subject(rng: Random, names: str = "person", role: str = "firm") -> Phrase:
    """Draw who does it; a person may be a pronoun, a name or two people."""
    name = rng.choice(names.split())
    chance = rng.random() if name in ("person", "man") else 1.0
    if chance < 0.55:
        return rng.choice(PRONOUNS)
    if chance < 0.65:
        return rng.choice(PEOPLE)
    if chance < 0.68:
        first, second = rng.choice(PEOPLE), draw_noun(rng, "kin", plural=False, most_adjectives=0)
        en, it = beside(first.pair(), ("and", "e"), second.pair())
        return Phrase(en, it, "", 5, "f" if first.gender == second.gender == "f" else "m")
    return draw_noun(rng, name, role)


def predicate(rng: Random, subject: Phrase, only: str = "") -> Pair:
    """Draw an adjective to say of a subject, in its gender and number."""
    kind = subject.kind
    if kind == "person":
        kind = "woman" if subject.gender == "f" else "man"
    said = {*subject.en.split(), "|"}
    barred = said.union(*(words.split() for words in OPPOSITES if said & set(words.split())))
    fitting = [word for word in FITTING[kind].split() if word not in barred]
    fitting = [word for word in fitting if not only or word in only.split()]
    if not fitting:
        return "good", inflect("buono", subject.gender, subject.plural)
    en = rng.choice(fitting)
    return en, inflect(ADJECTIVES[en], subject.gender, subject.plural)


# --- Clauses ---------------------------------------------------------------------------------

DO, BE, WAS = (
    forms.split()
    for forms in ("do do does do do do", "am are is are are are", "was were was were were were")
)
REFLEXIVES = "mi ti si ci vi si".split()
SHORT_NEGATIVES = {
    f"{auxiliary} not": short
    for auxiliary, short in _rows(
        "do don't, does doesn't, did didn't, will won't, is isn't, are aren't, was wasn't, "
        "were weren't"
    )
} | {"cannot": "can't"}
NOTHING = ("", "")
BE_IT = ("be", "essere")


def english_clause(
    subject: str,
    slot: int,
    verb: str,
    tense: str,
    rest: str = "",
    mood: str = "statement",
    adverb: str = "",
    short: bool = False,
) -> str:
    """Write an English clause.

    The tenses are present, past, future, habit (used to), progressive, past_progressive, can,
    must, want and would_like; the moods are statement, negative and question. A verb may carry a
    particle (look for); short asks for don't and the like.
    """
    base, *particle = verb.split()
    auxiliary, main = {
        "present": (DO[slot], base),
        "past": ("did", base),
        "habit": ("did", f"use to {base}"),
        "future": ("will", base),
        "progressive": (BE[slot], english_gerund(base)),
        "past_progressive": (WAS[slot], english_gerund(base)),
        "want": (DO[slot], f"want to {base}"),
        "would_like": ("would", f"like to {base}"),
    }.get(tense, (tense, base))
    if base == "be" and tense in ("present", "past"):
        auxiliary, main = (BE if tense == "present" else WAS)[slot], ""
    elif mood == "statement" and auxiliary in ("do", "does", "did"):
        head, *tail = main.split()
        finite = {"do": head, "does": add_s(head), "did": english_past(head)}[auxiliary]
        auxiliary, main = "", " ".join([finite, *tail])
    if mood == "negative":
        auxiliary = "cannot" if auxiliary == "can" else f"{auxiliary} not"
        auxiliary = SHORT_NEGATIVES.get(auxiliary, auxiliary) if short else auxiliary
    start = [auxiliary, subject] if mood == "question" else [subject, auxiliary]
    return " ".join(word for word in [*start, adverb, main, *particle, rest] if word)


def italian_verb(
    infinitive: str, slot: int, tense: str, gender: str = "m", clitic: str = "", adverb: str = ""
) -> str:
    """Write an Italian verb, with an unstressed pronoun before it and an adverb within it.

    The tenses are those of english_clause. The participle agrees with the subject after essere,
    and with la and li before avere.
    """
    reflexive = infinitive.endswith("si")
    if reflexive:
        infinitive, clitic = infinitive[:-2] + "e", REFLEXIVES[slot]
    if tense == "past" and infinitive in VERBS_OF_STATE.split():
        tense = "habit"
    if tense in ("present", "future", "habit"):
        finite = conjugate(infinitive, "imperfect" if tense == "habit" else tense)
        tail = ""
    elif tense == "past":
        with_essere = reflexive or infinitive in VERBS_WITH_ESSERE.split()
        finite = conjugate("essere" if with_essere else "avere", "present")
        plural = slot > 2
        if not with_essere:
            gender, plural = "f" if clitic == "la" else "m", clitic == "li"
            clitic = "l'" if clitic in ("lo", "la") else clitic
        tail = italian_participle(infinitive, gender, plural)
    elif tense in ("progressive", "past_progressive"):
        finite = conjugate("stare", "present" if tense == "progressive" else "imperfect")
        tail = italian_gerund(infinitive)
    else:
        finite = conjugate(*MODALS[tense])
        tail = infinitive
    return " ".join(word for word in [attach(clitic, finite[slot]), adverb, tail] if word)


class Sentence(NamedTuple):
    """A pair in lower case, and the mark that ends it where it is written as a sentence."""

    en: str
    it: str
    mark: str = "."

    @property
    def pair(self) -> Pair:
        return self.en, self.it


MARKS = {"statement": ".", "negative": ".", "question": "?"}


def say(
    rng: Random,
    subject: Phrase,
    verb: Pair,
    tense: str = "present",
    rest: Pair = NOTHING,
    mood: str = "statement",
    adverb: Pair = NOTHING,
    clitic: str = "",
) -> Sentence:
    """Put a subject, a verb and the rest together, in the same order in both languages."""
    short = rng.random() < 0.4
    en = english_clause(subject.en, subject.slot, verb[0], tense, rest[0], mood, adverb[0], short)
    finite = italian_verb(verb[1], subject.slot, tense, subject.gender, clitic, adverb[1])
    negation = "non" if mood == "negative" or adverb[1] == "mai" else ""
    it = " ".join(word for word in [subject.after(), negation, finite, rest[1]] if word)
    return Sentence(en, it, MARKS[mood])


# --- What happens, where and when ------------------------------------------------------------


class Action(NamedTuple):
    """A verb in both languages, and the names of who does it, to what and where."""

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
        for en, it in _rows(verbs):
            verb = en.replace("_", " "), it.removeprefix("+")
            yield Action(*verb, subjects, objects, places, it.startswith("+"))


ALL_ACTIONS = tuple(_read_actions())


def draw_action(rng: Random, tense: str = "present", who: str = "", what: str = "") -> Action:
    """Draw a verb that goes with a tense, perhaps one for some subject, or with some object."""
    while True:
        action = rng.choice(ALL_ACTIONS)
        name = action.en.split()[0]
        if tense == "habit":
            fits = name in HABITS.split()
        elif tense in ("present", "past", "future"):
            fits = True
        else:
            fits = name not in f"{STATES} {MOMENTS}".split()
            fits = fits and not ("progressive" in tense and name in NOT_PROGRESSIVE.split())
        if fits and (not who or who in action.subjects.split()) and (not what or action.objects):
            return action


def place(rng: Random, kinds: str) -> Pair:
    """Draw where it happens, from kinds of places: in the kitchen, near the old bridge."""
    entry = rng.choice(_entries(PLACES[rng.choice(kinds.split())]))
    if "=" in entry:
        en, it = entry.split("=")
        return en, it
    en, name, it = entry.split()
    phrase = noun_phrase(NOUNS[name])
    if rng.random() < 0.3:
        phrase = draw_noun(rng, name, plural=False, most_adjectives=1)
    en, preposition = en.replace("_", " "), it.strip("*").replace("_", " ")
    if it.endswith("*") and phrase.en == f"the {name}":
        return f"{en} {phrase.en}", f"{preposition} {phrase.it}"
    return phrase.pair(en, preposition)


def clock(rng: Random) -> Phrase:
    """Draw a time of day with its Italian article: half past three is (le) tre e mezza."""
    en, it = rng.choice(CLOCK)
    hour = rng.randrange(12)
    name = list(NUMBERS)[hour]
    it = f"{NUMBERS[name]} {it}".strip()
    return Phrase(en.format(name), it, "le" if hour else "l'", 5 if hour else 2, "f")


CLOCK = [("{} o'clock", "")] * 3 + [
    ("half past {}", "e mezza"),
    ("a quarter past {}", "e un quarto"),
    ("ten past {}", "e dieci"),
    ("twenty past {}", "e venti"),
    ("a quarter to {}", "meno un quarto"),
    ("ten to {}", "meno dieci"),
]


def when(rng: Random, tense: str, moment: bool = False) -> Pair:
    """Draw when it happens: yesterday, on Mondays, at half past three; a moment is no year."""
    if tense in ("past", "future", "present") and rng.random() < 0.2:
        return clock(rng).pair("at", "a")
    entries = [en for en in _equal(TIMES[tense]) if not (moment and re.search("week|year", en[0]))]
    return rng.choice(entries)


def complements(rng: Random, action: Action, role: str, subject: str = "") -> Pair:
    """Draw the object and the place of an action whose English subject is given."""
    thing = where = NOTHING
    if action.objects:
        thing = draw_other(rng, subject, action.objects, role).pair()
    often = 0.25 if action.objects else 0.75
    if action.places and (action.needs_place or rng.random() < often):
        where = place(rng, action.places)
    return beside(thing, where)


def fill(rng: Random, item: str, subject: Phrase, tense: str = "present") -> Pair:
    """Write one part of the rest of a frame."""
    first, *names = item.split()
    preposition = NOTHING
    if "=" in first:
        en, it = rng.choice(first.split("/")).replace("_", " ").split("=")
        if not names:
            return en, it
        preposition = en, it
        first, *names = names
    kinds = " ".join(names)
    if first == "adjective":
        return predicate(rng, subject)
    if first == "quality":
        return predicate(rng, subject, QUALITIES)
    if first == "place":
        return place(rng, kinds)
    if first == "moment":
        return when(rng, tense, moment=True)
    if first == "age":
        en, it = rng.choice(list(NUMBERS.items())[1:])
        # Venti anni becomes vent'anni, trenta anni trent'anni.
        return f"{en} years old", attach(re.sub("nt[ai]$", "nt'", it), "anni")
    if first == "price":
        en, it = rng.choice(list(NUMBERS.items())[1:])
        return f"{en} euros", f"{it} euro"
    if first == "city":
        thing = rng.choice(CITY_PHRASES)
    elif first == "name":
        thing = rng.choice(PEOPLE)
    elif first == "the":
        noun = rng.choice(nouns_of(kinds))
        plural = noun.kind in GROUPS["animal"].split() and rng.random() < 0.5
        thing = noun_phrase(noun, plural, "the", "", draw_adjectives(rng, noun.kind, 1))
    elif first == "own":
        noun = rng.choice(nouns_of(kinds))
        number = rng.choice(["", "", *COUNTS[:4]])
        determiner = "" if number else "a"
        adjectives = draw_adjectives(rng, noun.kind, 1)
        thing = noun_phrase(noun, bool(number), determiner, number, adjectives)
    else:
        thing = draw_other(rng, subject.en, kinds, first)
    return thing.pair(*preposition)


# --- Patterns --------------------------------------------------------------------------------

Writer = Callable[[Random], Sentence]
PATTERNS: dict[str, tuple[float, Writer]] = {}
MOODS = {"s": "statement", "n": "negative", "q": "question"}


def pattern(variants: str) -> Callable:
    """Register a function that writes one kind of sentence, once for each weight and options."""

    def register(function: Callable) -> Callable:
        for weight, *options in _rows(variants):
            options = [MOODS.get(option, option) for option in options]
            name = " ".join([function.__name__, *options])
            # The options follow rng, so they are bound by a function of rng alone.
            PATTERNS[name] = float(weight), partial(_call, function, options)
        return function

    return register


def _call(function: Callable, options: list[str], rng: Random) -> Sentence:
    return function(rng, *options)


def _say_frame(rng: Random, kinds: str, verb: Pair, tense: str, mood: str, rest: str) -> Sentence:
    subject = draw_subject(rng, kinds)
    if mood != "statement":
        rest = rest.replace("object ", "firm ")
    parts = [fill(rng, item, subject, tense) for item in rest.split(" + ")]
    return say(rng, subject, verb, tense, beside(*parts), mood)


def _register_frames() -> None:
    for weight, kinds, verb, tenses, moods, rest in _cells(FRAME_LINES):
        forms = [(tense, MOODS[mood]) for tense in tenses.split() for mood in moods.split()]
        kinds = kinds.replace("anything", ANYTHING)
        en, it = verb.split()
        for tense, mood in forms:
            options = [kinds, (en.replace("_", " "), it), tense, mood, rest]
            share = float(weight) * forms.count((tense, mood)) / len(forms)
            PATTERNS[f"{verb} {rest}: {tense} {mood}"] = share, partial(_call, _say_frame, options)


_register_frames()


@pattern(
    "32 present s, 14 present n, 10 present q, 18 past s, 9 past n, 5 past q, 34 future s, "
    "9 future n, 7 future q, 7 progressive s, 3 progressive n, 3 progressive q, "
    "2 past_progressive s, 1 past_progressive n, 1 past_progressive q, 13 habit s, 4 habit n, "
    "3 can s, 3 can n, 2 can q, 3 must s, 2 must n, 4 want s, 2 want n, 2 want q, 2 would_like s"
)
def somebody_does(rng: Random, tense: str, mood: str) -> Sentence:
    """Write `yesterday the old teacher did not read the newspaper in the library`."""
    action = draw_action(rng, tense)
    firm = mood != "statement"
    subject = draw_subject(rng, action.subjects, "firm" if firm else "subject")
    # "I read" could be either tense, so only "he read" is written in the past.
    while action.en == "read" and tense == "past" and not firm and subject.slot != 2:
        subject = draw_subject(rng, action.subjects, "subject")
    rest = complements(rng, action, "firm" if firm else "object", subject.en)
    time = when(rng, tense) if action.en not in STATES and rng.random() < 0.25 else NOTHING
    if firm or rng.random() < 0.7:
        return say(rng, subject, action[:2], tense, beside(rest, time), mood)
    return Sentence(*beside(time, say(rng, subject, action[:2], tense, rest).pair))


SCENES = [
    ("tool readable garment snack", "spot"),
    ("man woman youth", "town"),
    ("pet", "corner"),
    ("grazer wild prey", "nature"),
    ("building street", "cities"),
]


@pattern("4 present, 2 past, 1 future")
def there_is(rng: Random, tense: str) -> Sentence:
    """Write `there are two black cats under the table`."""
    kinds, where = rng.choice(SCENES)
    noun = rng.choice(nouns_of(kinds))
    plural = noun.has_plural and rng.random() < 0.6
    number = rng.choice(COUNTS) if plural and rng.random() < 0.5 else ""
    determiner = "" if number else rng.choice(["many", "some"]) if plural else "a"
    adjectives = draw_adjectives(rng, noun.kind, 1)
    thing = noun_phrase(noun, plural, determiner, number, adjectives)
    mood = rng.choice(["statement"] * 3 + ["question"] * (determiner != "some"))
    rest = beside(thing.pair(), place(rng, where))
    en = english_clause("there", 5 if plural else 2, "be", tense, rest[0], mood)
    finite = italian_verb("essere", thing.slot, tense)
    it = attach("c'" if finite[0] in "eè" else "ci", finite)
    return Sentence(en, f"{it} {rest[1]}", MARKS[mood])


@pattern("1")
def how_many_are_there(rng: Random) -> Sentence:
    """Write `how many books are there on the desk`."""
    kinds, where = rng.choice(SCENES)
    noun = rng.choice(nouns_of(kinds))
    thing = noun_phrase(noun, True, "", "", draw_adjectives(rng, noun.kind, 1))
    many = inflect("quanto", thing.gender, True)
    en, it = beside(thing.pair(), ("are there", "ci sono"), place(rng, where))
    return Sentence(f"how many {en}", f"{many} {it}", "?")


def ask(
    opener: Pair, subject: Phrase, verb: Pair, tense: str = "present", rest: Pair = NOTHING
) -> Sentence:
    """Ask with a question word: in Italian no pronoun is written, and the subject follows the verb.

    It stands before the verb after perché, or where more follows the verb.
    """
    en = english_clause(subject.en, subject.slot, verb[0], tense, rest[0], "question")
    finite = italian_verb(verb[1], subject.slot, tense, subject.gender)
    name = "" if subject.it in ("lui", "lei", "loro") else subject.after()
    if opener[1] == "perché":
        words = [opener[1], name, finite, rest[1]]
    elif rest[1]:
        words = [name, opener[1], finite, rest[1]]
    else:
        dov_e = opener[1] == "dove" and finite[0] in "eè"
        words = [attach("dov'" if dov_e else opener[1], finite), name]
    return Sentence(f"{opener[0]} {en}", " ".join(word for word in words if word), "?")


WHERE, WHAT, WHEN = ("where", "dove"), ("what", "che cosa"), ("when", "quando")


@pattern("2 present, 1 past")
def where_is_it(rng: Random, tense: str) -> Sentence:
    """Write `where are my keys`."""
    subject = draw_noun(rng, "tool garment readable kin pet vehicle building youth")
    return ask(WHERE, subject, BE_IT, tense)


@pattern("1 present, 1 past, 1 future")
def where_does_somebody_go(rng: Random, tense: str) -> Sentence:
    """Write `where does your sister live`."""
    verb = rng.choice([("live", "abitare"), ("go", "andare"), ("work", "lavorare")])
    return ask(WHERE, draw_subject(rng), verb, tense)


@pattern("2 present, 2 past, 1 future, 1 progressive")
def what_does_somebody_do_it_to(rng: Random, tense: str) -> Sentence:
    """Write `what is the boy eating`."""
    verbs = "eat drink read write buy see cook sell paint draw wash clean repair study".split()
    action = draw_action(rng, tense, what="anything")
    while action.en not in verbs:
        action = draw_action(rng, tense, what="anything")
    return ask(WHAT, draw_subject(rng, action.subjects), action[:2], tense)


@pattern("3")
def where_does_somebody_do_it(rng: Random) -> Sentence:
    """Write `where did you buy that hat`."""
    tense = rng.choice("present present past future progressive want".split())
    action = draw_action(rng, tense)
    while not action.places or action.needs_place:
        action = draw_action(rng, tense)
    subject = draw_subject(rng, action.subjects)
    thing = draw_other(rng, subject.en, action.objects).pair() if action.objects else NOTHING
    return ask(WHERE, subject, action[:2], tense, thing)


@pattern("2 when quando, 1 at_what_time a_che_ora, 3 why perché")
def question_word(rng: Random, en: str, it: str) -> Sentence:
    """Write `why are they crying` or `when will the train leave`."""
    tenses = "present present past future" + " progressive want" * (en == "why")
    tense = rng.choice(tenses.split())
    action = draw_action(rng, tense)
    while en != "why" and action.en in ("stay", "live", "know", "love", "understand"):
        action = draw_action(rng, tense)
    subject = draw_subject(rng, action.subjects)
    opener = en.replace("_", " "), it.replace("_", " ")
    return ask(opener, subject, action[:2], tense, complements(rng, action, "firm", subject.en))


@pattern("2")
def how_is_somebody(rng: Random) -> Sentence:
    """Write `good morning Anna how are you today`."""
    greeting = rng.choice(
        [*_equal("hello=ciao, good morning=buongiorno, good evening=buonasera"), NOTHING]
    )
    name = rng.choice(PEOPLE).pair() if greeting[0] and rng.random() < 0.8 else NOTHING
    today = rng.choice([("today", "oggi"), ("now", "adesso"), NOTHING, NOTHING])
    subject = (
        draw_noun(rng, "kin friend child teacher dog cat")
        if rng.random() < 0.6
        else rng.choice(PRONOUNS[1:])
    )
    asked = ask(("how", "come"), subject, ("be", "stare"))
    return Sentence(*beside(greeting, name, asked.pair, today), "?")


@pattern("1")
def how_old_is_somebody(rng: Random) -> Sentence:
    """Write `how old is your brother`."""
    subject = draw_subject(rng, "person pet house")
    return ask(("how old", "quanti anni"), subject, ("be", "avere"))


@pattern("1")
def how_much_does_it_cost(rng: Random) -> Sentence:
    """Write `how much do these shoes cost`."""
    thing = draw_noun(rng, "tool garment snack vehicle readable furniture")
    return ask(("how much", "quanto"), thing, ("cost", "costare"))


@pattern("3 who chi, 1 nobody nessuno, 1 everybody tutti")
def who_does_it(rng: Random, en: str, it: str) -> Sentence:
    """Write `nobody opened the door`."""
    tense = rng.choice(["present", "past", "future"])
    action = draw_action(rng, tense, who="person")
    rest = complements(rng, action, "firm")
    finite = italian_verb(action.it, 5 if it == "tutti" else 2, tense)
    clause = english_clause(en, 2, action.en, tense, rest[0])
    return Sentence(clause, f"{it} {finite} {rest[1]}".strip(), "?" if en == "who" else ".")


@pattern("2 never mai, 2 often spesso, 1 always sempre")
def how_often(rng: Random, en: str, it: str) -> Sentence:
    """Write `she never drinks wine`."""
    action = draw_action(rng)
    while action.en in STATES.split():
        action = draw_action(rng)
    subject = draw_subject(rng, action.subjects)
    rest = complements(rng, action, "firm", subject.en)
    return say(rng, subject, action[:2], "present", rest, adverb=(en, it))


def like(rng: Random, mood: str, liked: Pair, verb: str = "piace") -> Sentence:
    """Turn the sentence round: what somebody likes is the subject of piacere."""
    subject = draw_subject(rng)
    # Two people would need two prepositions: a Pietro e a suo figlio.
    while " and " in subject.en:
        subject = draw_subject(rng)
    short = rng.random() < 0.4
    en = english_clause(subject.en, subject.slot, "like", "present", liked[0], mood, short=short)
    negation = "non " if mood == "negative" else ""
    unstressed = {"he": "gli", "she": "le"}.get(subject.en, REFLEXIVES[subject.slot])
    if subject.it in ("", "lui", "lei"):
        start = f"{negation}{unstressed}"
    else:
        start = f"{subject.after('a')} {negation}".strip()
    return Sentence(en, f"{start} {verb} {liked[1]}", MARKS[mood])


@pattern("3 s, 2 n, 1 q")
def somebody_likes_something(rng: Random, mood: str) -> Sentence:
    """Write `my father does not like coffee`."""
    kinds = "food drinks pet grazer readable garment vehicle plant sound city"
    noun = rng.choice(nouns_of(kinds))
    plural = noun.has_plural and rng.random() < 0.6
    determiner = rng.choice(["the", "this", "that", "my", "your"])
    if noun.is_mass or (plural and rng.random() < 0.5):
        determiner = ""
    if determiner in POSSESSIVES and noun.en in NOT_OWNED.split():
        determiner = "the"
    adjectives = draw_adjectives(rng, noun.kind, 1)
    thing = noun_phrase(noun, plural, determiner, "", adjectives)
    # What is liked in general takes an article in Italian alone: coffee is il caffè.
    liked = noun_phrase(noun, plural, determiner or "the", "", adjectives)
    return like(rng, mood, (thing.en, liked.after()), "piacciono" if plural else "piace")


@pattern("2 s, 1 n, 1 q")
def somebody_likes_to_do_it(rng: Random, mood: str) -> Sentence:
    """Write `the children like to play in the garden`."""
    action = draw_action(rng, "want", who="person")
    return like(rng, mood, beside((f"to {action.en}", action.it), complements(rng, action, "firm")))


@pattern("4 more s, 1 more n, 1 more q, 2 as s, 1 as n")
def something_compared(rng: Random, degree: str, mood: str) -> Sentence:
    """Write `this house is bigger than that church`."""
    kinds = rng.choice("person pet grazer tool garment vehicle building readable furniture".split())
    subject = draw_subject(rng, kinds)
    other = draw_other(rng, subject.en, kinds if kinds == "person" else subject.kind)
    en, it = predicate(rng, subject, COMPARABLE)
    if en not in COMPARABLE.split() or en in other.en.split():
        return something_compared(rng, degree, mood)
    if degree == "more":
        rest = beside((f"{english_degree(en, 'er')} than", f"più {it}"), other.pair("", "di"))
    else:
        rest = beside((f"as {en} as", f"{it} come"), other.pair())
    return say(rng, subject, BE_IT, "present", rest, mood)


def this_or_that(rng: Random, thing: Phrase) -> Phrase:
    """Draw this, that, these or those as a subject that agrees with what it is."""
    en, it = rng.choice([("this", "questo"), ("that", "quello")])
    plural = {"this": "these", "that": "those"}
    it = inflect(it, thing.gender, thing.plural)
    return Phrase(plural[en] if thing.plural else en, it, "", thing.slot, thing.gender)


@pattern("2 s, 1 q")
def this_is_the_most(rng: Random, mood: str) -> Sentence:
    """Write `this is the oldest church in the city`."""
    noun = rng.choice(nouns_of("man youth building pet horse street vehicle"))
    en = rng.choice([word for word in FITTING[noun.kind].split() if word in COMPARABLE.split()])
    thing = noun_phrase(noun)
    where = noun_phrase(NOUNS[rng.choice(["city", "village"])])
    best = f"the {english_degree(en, 'est')} {noun.en}", f"{thing.after()} più"
    rest = beside(best, ("", inflect(ADJECTIVES[en], noun.gender)), where.pair("in", "di"))
    return say(rng, this_or_that(rng, thing), BE_IT, "present", rest, mood)


@pattern("3 s, 1 n, 1 q")
def this_is_something(rng: Random, mood: str) -> Sentence:
    """Write `these are my sisters`."""
    role = "object" if mood == "statement" else "firm"
    thing = draw_noun(rng, "thing vehicle pet room house man youth kin", role)
    while thing.en.split()[0] in ("this", "that", "these", "those"):
        thing = draw_noun(rng, "thing vehicle pet room house man youth kin", role)
    return say(rng, this_or_that(rng, thing), BE_IT, "present", thing.pair(), mood)


@pattern("1 s, 1 n, 1 q")
def this_is_mine(rng: Random, mood: str) -> Sentence:
    """Write `that red bicycle is not mine`."""
    noun = rng.choice(nouns_of("thing vehicle house pet"))
    determiner = rng.choice(["the", "this", "that"])
    adjectives = draw_adjectives(rng, noun.kind, 1)
    thing = noun_phrase(noun, rng.random() < 0.4, determiner, "", adjectives)
    en, it = rng.choice(_rows("mine mio, yours tuo, his suo, hers suo, ours nostro"))
    return say(rng, thing, BE_IT, "present", (en, inflect(it, thing.gender, thing.plural)), mood)


@pattern("2 present s, 1 present n, 1 present q, 1 past s")
def somebody_is_a_doctor(rng: Random, tense: str, mood: str) -> Sentence:
    """Write `her uncle is an English writer`."""
    subject = draw_subject(rng, "person")
    names = "teacher doctor student cook farmer writer waiter tourist artist worker psychologist"
    if subject.gender == "f":
        names = "nurse actress dancer" + " sister daughter cousin" * (not subject.plural)
    noun = rng.choice([noun for noun in nouns_of(names) if noun.gender == subject.gender])
    if noun.en in subject.en or (noun.kind == "kin" and subject.kind == "kin"):
        return somebody_is_a_doctor(rng, tense, mood)
    determiner = "" if subject.plural else "my" if noun.kind == "kin" else "a"
    adjectives = draw_adjectives(rng, noun.kind, 0 if noun.kind == "kin" else 1)
    other = noun_phrase(noun, subject.plural, determiner, "", adjectives)
    return say(rng, subject, BE_IT, tense, other.pair(), mood)


@pattern("4 present, 2 past, 2 future")
def somebody_sees_him(rng: Random, tense: str) -> Sentence:
    """Write `we did not see her on Monday`."""
    verbs = ("see", "know", "love", "help", "call", "meet", "wait for", "look for")
    verb = rng.choice([action[:2] for action in ALL_ACTIONS if action.en in verbs])
    mood = rng.choice(["statement", "statement", "negative"])
    subject = draw_subject(rng, "person")
    itself = {0: "me us", 1: "you", 3: "me us", 4: "you"}.get(subject.slot, "")
    pronouns = _rows("me mi, you ti, him lo, her la, us ci, them li")
    en, clitic = rng.choice([row for row in pronouns if row[0] not in itself.split()])
    time = when(rng, tense) if verb[0] not in STATES and rng.random() < 0.5 else NOTHING
    return say(rng, subject, verb, tense, beside((en, ""), time), mood, clitic=clitic)


def owned(rng: Random) -> tuple[Phrase, Phrase]:
    """Draw a thing and the same with its owner: the teacher's book, il libro del maestro."""
    owner = draw_noun(rng, "man woman youth kin", plural=False, most_adjectives=0)
    owner = rng.choice([owner, owner, rng.choice(PEOPLE)])
    noun = rng.choice(nouns_of("thing vehicle house pet garden"))
    plural, adjectives = rng.random() < 0.3, draw_adjectives(rng, noun.kind, 1)
    thing = noun_phrase(noun, plural, "the", "", adjectives)
    en = f"{owner.en}'s {noun_phrase(noun, plural, '', '', adjectives).en}"
    return thing, thing._replace(en=en, it=f"{thing.it} {owner.after('di')}")


@pattern("2 present s, 1 present n, 1 present q, 1 past s")
def the_thing_of_somebody_is(rng: Random, tense: str, mood: str) -> Sentence:
    """Write `the teacher's books are old`."""
    thing, whole = owned(rng)
    return say(rng, whole, BE_IT, tense, predicate(rng, thing), mood)


@pattern("1 present s, 1 present n, 1 past s")
def somebody_sees_the_thing_of_somebody(rng: Random, tense: str, mood: str) -> Sentence:
    """Write `he found Maria's key`."""
    subject, whole = draw_subject(rng), owned(rng)[1]
    verb = rng.choice([("look for", "cercare"), ("see", "vedere"), ("find", "trovare")])
    if subject.en.split()[-1] in whole.en:
        return somebody_sees_the_thing_of_somebody(rng, tense, mood)
    return say(rng, subject, verb, tense, whole.pair(), mood)


@pattern("3 present, 2 past, 2 progressive")
def the_one_who_does_it(rng: Random, tense: str) -> Sentence:
    """Write `the man who is cooking the fish is tired`."""
    noun = rng.choice(nouns_of("man woman youth pet grazer wild"))
    human = noun.kind in ("man", "woman", "youth")
    plural, adjectives = rng.random() < 0.4, draw_adjectives(rng, noun.kind, 1)
    subject = noun_phrase(noun, plural and noun.has_plural, "the", "", adjectives)
    action = draw_action(rng, tense, who="person" if human else noun.kind)
    # "the children who read" could be either tense.
    if action.en == "read" and tense == "past" and subject.plural:
        return the_one_who_does_it(rng, tense)
    clause = say(rng, subject, action[:2], tense, complements(rng, action, "firm", subject.en))
    who = f"{subject.en} {'who' if human else 'that'}{clause.en.removeprefix(subject.en)}"
    che = f"{subject.it} che{clause.it.removeprefix(subject.after())}"
    return say(rng, subject._replace(en=who, it=che), BE_IT, "present", predicate(rng, subject))


@pattern("2 present, 2 past, 1 future, 1 progressive")
def the_thing_that_somebody_does(rng: Random, tense: str) -> Sentence:
    """Write `the letter that you wrote is long`."""
    action = draw_action(rng, tense, what="anything")
    subject = draw_subject(rng, action.subjects)
    noun = rng.choice(nouns_of(action.objects))
    either_tense = action.en == "read" and tense == "past" and subject.slot != 2
    if noun.kind in ("kin", "language") or noun.en in subject.en or either_tense:
        return the_thing_that_somebody_does(rng, tense)
    thing = noun_phrase(noun, noun.has_plural and rng.random() < 0.4)
    clause = say(rng, subject, action[:2], tense)
    whole = thing._replace(en=f"{thing.en} that {clause.en}", it=f"{thing.it} che {clause.it}")
    return say(rng, whole, BE_IT, "present", predicate(rng, thing))


def anything(rng: Random, tense: str = "present") -> Pair:
    """Draw a short sentence to be joined to another."""
    while True:
        said = somebody_does(rng, tense, rng.choice(["statement", "statement", "negative"]))
        if len(said.en.split()) < 9:
            return said.pair


@pattern("1")
def what_time_is_it(rng: Random) -> Sentence:
    """Write `it is half past three and my brother works`."""
    hour = clock(rng)
    time = f"it is {hour.en}", f"{conjugate('essere', 'present')[hour.slot]} {hour.after()}"
    return Sentence(*beside(time, ("and", "e"), anything(rng)) if rng.random() < 0.6 else time)


@pattern("5")
def weather(rng: Random) -> Sentence:
    """Write `we stay at home because it is raining`."""
    said = rng.choice(_equal(WEATHER))
    joint = rng.choice(_equal("because=perché, when=quando, if=se, but=ma, and=e"))
    if rng.random() < 0.4:
        where = place(rng, rng.choice(["cities", "sky"])) if rng.random() < 0.7 else NOTHING
        today = rng.choice([NOTHING, ("today", "oggi"), ("now", "adesso")])
        return Sentence(*beside(said, where, today))
    if joint[0] in ("but", "and"):
        return Sentence(*beside(said, joint, anything(rng)))
    return Sentence(*beside(anything(rng), joint, said))


@pattern("2 because perché, 1 when quando, 1 if se")
def because_somebody_is(rng: Random, en: str, it: str) -> Sentence:
    """Write `they work in the garden if you are tired`."""
    person = draw_subject(rng)
    if rng.random() < 0.5:
        state = say(
            rng, person, BE_IT, "present", predicate(rng, person, "tired happy sad sick busy")
        )
    else:
        feeling = fill(rng, "hungry=fame/thirsty=sete/cold=freddo/sleepy=sonno", person)
        state = say(rng, person, ("be", "avere"), "present", feeling)
    return Sentence(*beside(anything(rng), (en, it), state.pair))


@pattern("2 and e, 2 but ma")
def two_things_happen(rng: Random, en: str, it: str) -> Sentence:
    """Write `the dog slept but the cat did not play`."""
    tense = rng.choice("present present past future progressive".split())
    second = somebody_does(rng, tense, "negative" if en == "but" else "statement")
    if len(second.en.split()) > 7:
        return two_things_happen(rng, en, it)
    return Sentence(*beside(anything(rng, tense), (en, it), second.pair))


@pattern("1 present, 1 past, 1 future, 1 progressive")
def somebody_knows_that(rng: Random, tense: str) -> Sentence:
    """Write `he says that the train will arrive tomorrow`."""
    sayings = "I know that=so che, we know that=sappiamo che, he says that=lui dice che, "
    sayings += "she says that=lei dice che, they say that=loro dicono che"
    return Sentence(*beside(rng.choice(_equal(sayings)), anything(rng, tense)))


@pattern("1")
def today_is_monday(rng: Random) -> Sentence:
    """Write `today is Monday and we go to the market`."""
    en, it = rng.choice(_rows(DAYS))
    day = rng.choice([("today is", "oggi è"), ("tomorrow is", "domani è")])
    rest = beside(("and", "e"), anything(rng)) if rng.random() < 0.8 else NOTHING
    return Sentence(*beside(day, (en, it), rest))


@pattern("3 s, 1 n, 1 us")
def do_it(rng: Random, mood: str) -> Sentence:
    """Write `close the window please` or `let us go home`."""
    action = draw_action(rng, "want", who="person")
    en, it, rest = action.en, imperative(action.it), complements(rng, action, "firm")
    if mood == "us":
        en, it = f"let us {en}", conjugate(action.it, "present")[3]
    elif mood == "negative":
        en, it = rng.choice(["do not ", "don't "]) + en, f"non {action.it}"
    please = ("please", "per favore") if mood == "statement" and rng.random() < 0.4 else NOTHING
    return Sentence(*beside((en, it), rest, please), "!")


@pattern("1 my I 0, 1 his he 2, 1 her she 2")
def my_name_is(rng: Random, owner: str, pronoun: str, slot: str) -> Sentence:
    """Write `my name is Luca and I live in Rome`."""
    person = Phrase(pronoun, "", slot=int(slot))
    name = rng.choice(
        [p for p in PEOPLE if pronoun == "I" or (pronoun == "she") == (p.gender == "f")]
    )
    named = (
        f"{owner} name is {name.en}",
        f"{italian_verb('chiamarsi', person.slot, 'present')} {name.it}",
    )
    verb, rest = rng.choice(
        [
            (("live", "abitare"), place(rng, "cities")),
            (("work", "lavorare"), place(rng, "town")),
            (("be", "avere"), fill(rng, "age", person)),
        ]
    )
    return Sentence(*beside(named, ("and", "e"), say(rng, person, verb, "present", rest).pair))


@pattern("1 thank_you_for grazie_per, 1 here_is ecco")
def here_is_something(rng: Random, en: str, it: str) -> Sentence:
    """Write `thank you for the flower Maria`."""
    kinds = "gift book letter flower cake apple coffee tea wine photo bread umbrella key"
    thing = draw_noun(rng, kinds, plural=False, most_adjectives=1)
    name = rng.choice(PEOPLE).en if rng.random() < 0.6 else ""
    opener = en.replace("_", " "), it.replace("_", " ")
    return Sentence(*beside(opener, thing.pair(), (name, name)), "!")


# --- The corpus ------------------------------------------------------------------------------


def folded(text: str) -> str:
    """Give what sentences share that differ only in capital letters and final punctuation."""
    return text.casefold().rstrip(".?!")


def words_of(text: str) -> list[str]:
    """Split a sentence into its words, without the final punctuation."""
    return text.rstrip(".?!").split()


def is_held_out(italian: str) -> bool:
    """Tell whether a sentence may only be in validation."""
    return zlib.crc32(folded(italian).encode()) % HELD_OUT_EVERY == HELD_OUT_REMAINDER


def sentences(seed: int) -> Iterator[Sentence]:
    """Write sentences without end, some of them more than once."""
    rng = Random(seed)
    weights = [weight for weight, _ in PATTERNS.values()]
    writers = [writer for _, writer in PATTERNS.values()]
    while True:
        sentence = rng.choices(writers, weights)[0](rng)
        # "Il vicino vicino al ponte" is right, but reads badly.
        if not any(re.search(r"\b(\w+) \1\b", text) for text in sentence.pair):
            yield sentence


def write_pairs(split: str, seed: int = 0) -> list[Pair]:
    """Write the (English, Italian) sentence pairs of a split; equal seeds write equal pairs.

    The split is train or validation. No sentence of validation is in train, in either language,
    and each of its words is there at least three times just as it is written. About half of the
    pairs have a capital letter and final punctuation. Raises ValueError for another split.
    """
    if split not in SIZES:
        raise ValueError(f"no split {split!r}: {' and '.join(SIZES)} are known")
    style = Random(f"style {seed}")
    train: list[Pair] = []
    held_out: list[Pair] = []
    seen = set()
    for sentence in sentences(seed):
        if folded(sentence.en) in seen:
            continue
        seen.add(folded(sentence.en))
        en, it = sentence.pair
        if style.random() < 0.5:
            en, it = (text[0].upper() + text[1:] + sentence.mark for text in (en, it))
        (held_out if is_held_out(it) else train).append((en, it))
        if len(train) == SIZES["train"]:
            break
    if split == "train":
        return train
    counts = Counter(word for pair in train for text in pair for word in words_of(text))
    known = [
        pair
        for pair in held_out
        if all(counts[word] >= SEEN_IN_TRAINING for text in pair for word in words_of(text))
    ]
    return known[: SIZES["validation"]]
