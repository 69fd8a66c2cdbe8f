"""The built-in English-Italian corpus: a lexicon and a grammar that write correct sentence pairs.

A translator can be trained on it with no network, so the Italian of a sentence depends on nothing
but its English. Where Italian must choose and English does not say, one convention holds:

- `you` is tu and `you all` is voi; I, you, we, you all and they are masculine when a word agrees;
- I, you, we and you all are not written as subjects; he, she and they are (lui, lei, loro), but not
  in questions that begin with a question word;
- the past simple is the passato prossimo, and the imperfect for be, have, know, love and live;
  `used to` is the imperfect; `is sleeping` is sta dormendo, `was sleeping` is stava dormendo;
- an adjective has one fixed place, before its noun if it is in BEFORE_NOUN;
- `in the kitchen` is in cucina, and nella once the kitchen has an adjective or another determiner.

A person, number and tense form is named by its slot, 0-5: I, you, he or she, we, you all, they.
"""

import random
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

LANGUAGES = ("en", "it")
SIZES = {"train": 28_000, "validation": 1_100}
# A sentence is held out by a checksum of its Italian, so no seed can put it in both splits. This
# remainder is the one that also holds out the README's "i due piccoli cani non dormono in cucina".
HELD_OUT_EVERY, HELD_OUT_REMAINDER = 20, 15
SEEN_IN_TRAINING = 3

Pair = tuple[str, str]

# --- Lexicon ---------------------------------------------------------------------------------

NOUNS_BY_KIND = {
    "man": "man uomo m, teacher maestro m, doctor medico m, student studente m, cook cuoco m, "
    "farmer contadino m, writer scrittore m, neighbor vicino m, friend amico m, waiter cameriere m, "
    "tourist turista m, artist artista m, king re m, worker operaio m, psychologist psicologo m",
    "woman": "woman donna f, nurse infermiera f, actress attrice f, queen regina f, "
    "dancer ballerina f",
    "youth": "child bambino m, boy ragazzo m, girl ragazza f",
    "kin": "mother madre f, father padre m, brother fratello m, sister sorella f, son figlio m, "
    "daughter figlia f, grandmother nonna f, grandfather nonno m, uncle zio m, aunt zia f, "
    "cousin cugino m, husband marito m, wife moglie f",
    "pet": "dog cane m, cat gatto m",
    "grazer": "horse cavallo m, cow mucca f, sheep pecora f, goat capra f, donkey asino m, "
    "rabbit coniglio m",
    "wild": "wolf lupo m, lion leone m, bear orso m, fox volpe f, eagle aquila f",
    "prey": "mouse topo m, bird uccello m, duck anatra f, squirrel scoiattolo m",
    "snack": "apple mela f, orange arancia f, banana banana f, egg uovo m, sandwich panino m, "
    "cookie biscotto m, potato patata f, tomato pomodoro m, cake torta f",
    "dish": "bread pane m, fish pesce m, cheese formaggio m, salad insalata f, fruit frutta f",
    "meal": "meat carne f, rice riso m, soup zuppa f, pasta pasta f",
    "drink": "water acqua f, milk latte m, wine vino m, beer birra f, juice succo m",
    "brew": "tea tè m, coffee caffè m",
    "text": "book libro m, letter lettera f, story storia f, poem poesia f",
    "press": "newspaper giornale m, magazine rivista f",
    "garment": "shirt camicia f, jacket giacca f, hat cappello m, shoe scarpa f, skirt gonna f, "
    "coat cappotto m, dress vestito m, scarf sciarpa f",
    "tool": "key chiave f, umbrella ombrello m, plate piatto m, knife coltello m, fork forchetta f, "
    "spoon cucchiaio m, pen penna f, pencil matita f, notebook quaderno m, backpack zaino m, "
    "bag borsa f, box scatola f, bottle bottiglia f, glass bicchiere m, mirror specchio m, "
    "phone telefono m, clock orologio m, photo foto f, gift regalo m",
    "furniture": "table tavolo m, chair sedia f, bed letto m, sofa divano m, desk scrivania f, "
    "lamp lampada f",
    "opening": "door porta f, window finestra f",
    "room": "kitchen cucina f, bedroom camera f, bathroom bagno m, office ufficio m",
    "building": "house casa f, school scuola f, church chiesa f, station stazione f, "
    "hotel albergo m, hospital ospedale m, museum museo m, restaurant ristorante m, cinema cinema m, "
    "theater teatro m, shop negozio m, library biblioteca f",
    "outdoors": "garden giardino m, city città f, village villaggio m, square piazza f, "
    "street strada f, park parco m, market mercato m, bridge ponte m, beach spiaggia f, "
    "island isola f, forest bosco m, river fiume m, lake lago m, sea mare m",
    "vehicle": "car macchina f, bicycle bicicletta f",
    "carrier": "train treno m, bus autobus m, plane aereo m, boat barca f",
    "plant": "tree albero m, flower fiore m, rose rosa f",
    "body": "hand mano f, eye occhio m, foot piede m, nose naso m",
    "instrument": "piano pianoforte m, guitar chitarra f, violin violino m",
    "sound": "radio radio f, music musica f, song canzone f",
    "show": "movie film m",
    "language": "Italian italiano m, English inglese m, French francese m, Spanish spagnolo m",
}
GROUPS = {
    "person": "man man woman youth youth kin kin",
    "animal": "pet pet grazer wild prey",
    "food": "snack dish meal",
    "drinks": "drink drink brew",
    "readable": "text press",
    "thing": "text press garment tool tool",
    "place": "room building outdoors",
}
MASS_KINDS = ("dish", "meal", "drink", "brew", "language")
MASS_NOUNS = ("music",)

BEFORE_NOUN = (
    "small piccolo, big grande, old vecchio, new nuovo, good buono, beautiful bello, "
    "young giovane, long lungo, ugly brutto"
)
AFTER_NOUN = (
    "red rosso, white bianco, black nero, green verde, yellow giallo, gray grigio, blue blu, "
    "brown marrone, tall alto, short basso, rich ricco, poor povero, famous famoso, kind gentile, "
    "intelligent intelligente, friendly simpatico, Italian italiano, English inglese, "
    "French francese, German tedesco, strong forte, lazy pigro, curious curioso, tired stanco, "
    "happy felice, sad triste, hungry affamato, sick malato, ready pronto, busy occupato, "
    "fresh fresco, cold freddo, hot caldo, sweet dolce, clean pulito, dirty sporco, empty vuoto, "
    "full pieno, open aperto, closed chiuso, expensive caro, heavy pesante, light leggero, "
    "interesting interessante, boring noioso, easy facile, difficult difficile, quiet tranquillo, "
    "fast veloce, slow lento, thin magro, fat grasso, important importante"
)
# Adjectives that fit a kind of noun; those after the bar fit only as a predicate.
FITTING = {
    "man": "old young good tall short rich poor famous kind intelligent friendly Italian French "
    "strong lazy tired happy sad English German | sick ready busy",
    "woman": "old young good beautiful tall rich poor kind intelligent friendly Italian French "
    "tired happy sad English German | sick ready busy",
    "youth": "small good tall happy sad tired lazy curious kind intelligent | sick ready thin",
    "kin": "old young good tall kind tired happy | sick ready busy sad rich thin",
    "pet": "small big old black white brown beautiful hungry lazy curious happy tired fat gray "
    "| intelligent thin fast",
    "grazer": "small big old white brown beautiful black tired hungry | fat strong slow",
    "wild": "big old young hungry strong beautiful | fast intelligent",
    "prey": "small big gray white hungry beautiful fat | fast curious",
    "snack": "small big good sweet fresh | expensive ready",
    "dish": "good fresh | expensive",
    "meal": "good hot cold | ready expensive",
    "drink": "good cold fresh | expensive",
    "brew": "good hot sweet | ready expensive cold",
    "text": "long old new beautiful interesting boring easy difficult Italian French English good "
    "| important",
    "press": "old new interesting boring Italian English | important",
    "garment": "old new beautiful red white black green yellow blue gray expensive clean dirty "
    "ugly light heavy brown long | small big",
    "tool": "old new small big red green black beautiful ugly | expensive heavy light clean dirty",
    "furniture": "old new small big white black beautiful ugly red | heavy expensive clean dirty",
    "opening": "old new small big white green red yellow blue | open closed clean dirty",
    "room": "small big old new beautiful white quiet clean | dirty empty open closed",
    "building": "small big old new beautiful famous quiet ugly white Italian | open closed empty "
    "full",
    "outdoors": "small big old beautiful quiet famous | clean dirty",
    "vehicle": "old new small big red white black beautiful green blue gray Italian German "
    "| expensive fast slow clean dirty",
    "carrier": "old new big small red white | fast slow full empty",
    "plant": "small big beautiful old red white yellow | ",
    "body": "big small beautiful | clean dirty cold hot",
    "instrument": "old new beautiful | expensive heavy",
    "sound": "old new beautiful | boring",
    "show": "old new beautiful long interesting boring Italian French famous | sad",
    "language": " | easy difficult important beautiful",
}

NAMES = "Anna f, Maria f, Giulia f, Sofia f, Marco m, Luca m, Paolo m, Pietro m"
NUMBERS = (
    "one una, two due, three tre, four quattro, five cinque, six sei, seven sette, eight otto, "
    "nine nove, ten dieci, eleven undici, twelve dodici, twenty venti, thirty trenta, "
    "forty quaranta, fifty cinquanta"
)
DAYS = (
    "Monday lunedì, Tuesday martedì, Wednesday mercoledì, Thursday giovedì, Friday venerdì, "
    "Saturday sabato"
)
CITIES = "Rome Roma, Milan Milano, Florence Firenze, Naples Napoli, Venice Venezia, Paris Parigi, "
CITIES += "London Londra, Turin Torino"
COUNTRIES = "Italy Italia, France Francia, Germany Germania, Spain Spagna, England Inghilterra"
POSSESSIVES = "my mio, your tuo, his suo, her suo, our nostro, their loro"

# Places are a preposition, a noun and the Italian preposition; a star means that the Italian drops
# the article after a bare `the`. Set phrases have an equals sign.
PLACES = {
    "house": "in kitchen in*, in kitchen in*, in garden in*, at home=a casa, on sofa su, "
    "in bedroom in*, near window vicino_a, in_front_of house davanti_a, behind house dietro, "
    "near door vicino_a, in house in*",
    "corner": "in kitchen in*, in garden in*, under table sotto, on bed su, on sofa su, "
    "under chair sotto, under bed sotto, near door vicino_a, behind house dietro, at home=a casa",
    "town": "in park in, in square in*, at station a, at restaurant a, at market a, "
    "in library in*, at school=a scuola, in office in*, at theater a*, in_front_of church "
    "davanti_a, near bridge vicino_a, in city in*, on train su, in hotel in*, in village in, "
    "at cinema a, in the street=per strada",
    "fair": "at market a, in shop in, in square in*, in city in*",
    "nature": "in forest in, near river vicino_a, near lake vicino_a, on beach su, "
    "under tree sotto, on island su, in the mountains=in montagna, near sea vicino_a",
    "water": "in sea in, in river in, in lake in",
    "spot": "on table su, under bed sotto, in bag in, in box in, on chair su, on desk su, "
    "behind door dietro, in car in, in kitchen in*, near lamp vicino_a, in backpack in, "
    "on bed su, under chair sotto, in bedroom in*",
    "goal": "to market a, to park a, to station a, to sea a, to school=a scuola, home=a casa, "
    "to church in*, to library in*, to office in*, to doctor da, to cinema a, to theater a*, "
    "to restaurant a, to hospital in*, to the beach=in spiaggia, to bed=a letto, to museum a, "
    "to the mountains=in montagna, to hotel in*, to lake a, to kitchen in*, to garden in*",
}

# Who does it > to what @ where: the verbs. A dash is nothing, a plus a place that cannot be left
# out. A noun may stand where a kind does.
ACTIONS = """
person > - @ house town: work lavorare, sing cantare, rest riposare
person > - @ town nature: walk camminare, travel viaggiare, dance ballare
person > - @ house town nature: laugh ridere, cry piangere, smile sorridere, wait aspettare
person > - @ house nature: sleep dormire
pet > - @ corner: sleep dormire, stay +restare
person > - @ house: stay +restare
grazer wild prey > - @ nature: sleep dormire
youth pet > - @ house town nature: play giocare
person pet grazer > - @ town nature: run correre
person pet > - @ water: swim nuotare
person > food @ house town: eat mangiare
pet wild > meat fish @ -: eat mangiare
grazer prey > bread fruit apple @ nature: eat mangiare
person > drinks @ house town: drink bere
pet grazer > water milk @ house: drink bere
person > readable @ house town: read leggere
person > text @ house town: write scrivere
person > snack garment tool press vehicle @ fair: buy comprare
man > snack garment vehicle dish @ fair: sell vendere
person > garment tool book letter @ -: look_for cercare, find trovare, lose perdere, forget dimenticare
person > thing animal place @ -: see vedere
person > person @ -: know conoscere, love amare, help aiutare, call chiamare
person > person @ town: meet incontrare, wait_for aspettare
person > opening shop box letter @ -: open aprire, close chiudere
person > garment plate glass fork spoon vehicle window @ -: wash lavare
person > room house furniture shoe @ -: clean pulire
person > meal cake egg fish @ house: cook cucinare, prepare preparare
person > car bus @ town: drive guidare
person > bicycle car chair clock phone @ -: repair riparare
person > tree flower house horse cat boat @ house nature: paint dipingere, draw disegnare
person > glass plate bottle mirror window @ -: break rompere
person > movie @ house: watch guardare
person > sound @ house: listen_to ascoltare
tourist person > museum church city island village @ -: visit visitare
person > language @ school: speak parlare, study studiare, learn imparare, understand capire
person > garment gift snack tool book @ -: take prendere, bring portare
pet wild > prey @ house nature: chase inseguire
person > gift letter photo @ -: receive ricevere, send mandare
person > instrument @ house: play suonare
person > - @ cities: live +abitare
person > - @ goal: go +andare, return +tornare
person carrier > - @ -: leave partire, arrive arrivare
"""
STATES = ("be", "have", "know", "love", "live")
STATIVE_VERBS = ("essere", "avere", "conoscere", "amare", "abitare", "volere", "dovere", "potere")
MOMENTS = ("find", "lose", "forget", "meet", "break", "receive", "arrive", "see", "leave")
INTRANSITIVE_WITH_ESSERE = (
    "andare tornare partire arrivare venire restare cadere essere costare piacere"
)

IRREGULAR_ENGLISH_PLURALS = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "mouse": "mice",
    "wolf": "wolves",
    "knife": "knives",
    "wife": "wives",
    "foot": "feet",
    "piano": "pianos",
    "photo": "photos",
    "radio": "radios",
}
IRREGULAR_PASTS = (
    "eat ate, drink drank, sleep slept, run ran, swim swam, sing sang, read read, write wrote, "
    "buy bought, sell sold, find found, lose lost, forget forgot, see saw, know knew, meet met, "
    "drive drove, draw drew, break broke, speak spoke, understand understood, take took, "
    "bring brought, send sent, go went, leave left, have had, give gave, put put, come came, fall fell, cost cost, "
    "get got, wake woke, be was"
)
IRREGULAR_ITALIAN_PLURALS = {
    "uomo": "uomini",
    "uovo": "uova",
    "mano": "mani",
    "zio": "zii",
    "moglie": "mogli",
    "re": "re",
    "cinema": "cinema",
}
# Verb | present | future stem | past participle; what is empty is regular.
IRREGULAR_VERBS = """
essere | sono sei è siamo siete sono | sar | stato
avere | ho hai ha abbiamo avete hanno | avr |
andare | vado vai va andiamo andate vanno | andr |
stare | sto stai sta stiamo state stanno | star |
dare | do dai dà diamo date danno | dar |
fare | faccio fai fa facciamo fate fanno | far | fatto
bere | bevo bevi beve beviamo bevete bevono | berr | bevuto
venire | vengo vieni viene veniamo venite vengono | verr | venuto
uscire | esco esci esce usciamo uscite escono | |
potere | posso puoi può possiamo potete possono | potr |
dovere | devo devi deve dobbiamo dovete devono | dovr |
volere | voglio vuoi vuole vogliamo volete vogliono | vorr |
sapere | so sai sa sappiamo sapete sanno | sapr |
vedere | | vedr | visto
leggere | | | letto
scrivere | | | scritto
aprire | | | aperto
chiudere | | | chiuso
perdere | | | perso
prendere | | | preso
mettere | | | messo
rompere | | | rotto
correre | | | corso
ridere | | | riso
sorridere | | | sorriso
piangere | | | pianto
dipingere | | | dipinto
conoscere | | | conosciuto
"""
VERBS_IN_ISC = ("pulire", "capire", "finire", "preferire")
FULL_INFINITIVES = {"bere": "bevere", "fare": "facere"}
IMPERFECT_OF_ESSERE = "ero eri era eravamo eravate erano"
VORREI = "vorrei vorresti vorrebbe vorremmo vorreste vorrebbero"


def _rows(text: str) -> list[list[str]]:
    return [entry.split() for entry in text.split(",") if entry.strip()]


def _table(text: str) -> dict[str, str]:
    return {row[0]: row[1] for row in _rows(text)}


class Noun(NamedTuple):
    """A dictionary entry: both lemmas, the Italian gender (m or f) and the kind of thing."""

    en: str
    it: str
    gender: str
    kind: str

    @property
    def is_mass(self) -> bool:
        return self.kind in MASS_KINDS or self.en in MASS_NOUNS


NOUNS = {row[0]: Noun(*row, kind) for kind, text in NOUNS_BY_KIND.items() for row in _rows(text)}
BEFORE = _table(BEFORE_NOUN)
ADJECTIVES = BEFORE | _table(AFTER_NOUN)
COLORS = "red white black green yellow gray blue brown".split()
COLORS_AND_ORIGINS = [*COLORS, "Italian", "English", "French", "German"]
# No noun is said to be two of these at once.
OPPOSITES = [
    *(text.split() for text in ("small big long", "old new young", "tall short", "rich poor")),
    *(text.split() for text in ("beautiful ugly", "fast slow", "heavy light", "clean dirty")),
    *(text.split() for text in ("happy sad", "interesting boring", "easy difficult", "hot cold")),
    *(text.split() for text in ("fat thin", "lazy busy", "strong sick")),
    COLORS,
    COLORS_AND_ORIGINS[len(COLORS) :],
]
NOT_OWNED = (
    "man king tourist artist worker psychologist farmer waiter writer cook woman nurse actress queen "
    "dancer wolf lion bear fox eagle mouse bird duck squirrel sea river lake forest island beach "
    "bridge square park market street hospital station museum restaurant cinema theater library "
    "train bus plane music"
).split()
ONLY_ONE = ("mother", "father", "husband", "wife", "king", "queen", "sea", "nose")

# --- Italian words ---------------------------------------------------------------------------

VOWELS = "aeiouàèéìòù"
LO_SOUND = re.compile(rf"s[^{VOWELS}]|z|gn|ps|pn|x|y")
# What an article becomes after the stems de-, ne-, a-, da-, su-, and also be- (bello), que- (quello).
JOINED = {"il": "l", "lo": "llo", "l'": "ll'", "la": "lla", "i": "i", "gli": "gli", "le": "lle"}
JOINING_STEMS = {"di": "de", "a": "a", "da": "da", "in": "ne", "su": "su"}


def definite_article(word: str, gender: str, plural: bool = False) -> str:
    """Give il, lo, l', la, i, gli or le, as the sound of the next word asks."""
    vowel = word[0].lower() in VOWELS
    if gender == "f":
        return "le" if plural else "l'" if vowel else "la"
    if vowel or LO_SOUND.match(word):
        return "gli" if plural else "l'" if vowel else "lo"
    return "i" if plural else "il"


def indefinite_article(word: str, gender: str) -> str:
    """Give un, uno, una or un', as the sound of the next word asks."""
    if gender == "f":
        return "un'" if word[0].lower() in VOWELS else "una"
    return "uno" if LO_SOUND.match(word) else "un"


def attach(left: str, right: str) -> str:
    """Write two words side by side, with no blank after an apostrophe or for an empty word."""
    return left + right if not left or not right or left.endswith("'") else f"{left} {right}"


def join_preposition(preposition: str, article: str) -> str:
    """Put a preposition before an article: di + lo is dello, vicino a + le is vicino alle."""
    *before, last = preposition.split()
    if last in JOINING_STEMS and article in JOINED:
        last, article = JOINING_STEMS[last] + JOINED[article], ""
    return " ".join([*before, attach(last, article)])


def italian_plural(word: str, gender: str) -> str:
    """Give the plural of a noun, or of the masculine or feminine singular of an adjective."""
    if word in IRREGULAR_ITALIAN_PLURALS:
        return IRREGULAR_ITALIAN_PLURALS[word]
    stem, last = word[:-1], word[-1]
    if last not in "aeo" or (last == "o" and gender == "f"):
        return word
    if last == "e" or (last == "a" and gender == "m"):
        return stem + "i"
    if last == "o":
        if stem.endswith("i"):
            return stem
        hard = stem.endswith(("c", "g")) and not re.search(r"ic$|olog$", stem)
        return stem + ("hi" if hard else "i")
    if re.search(rf"[^{VOWELS}][cg]i$", stem):
        return stem[:-1] + "e"
    return stem + ("he" if stem.endswith(("c", "g")) else "e")


def inflect(adjective: str, gender: str, plural: bool = False) -> str:
    """Make an adjective agree: rosso gives rossa, rossi, rosse; blu and marrone never change."""
    if adjective in ("blu", "marrone", "loro"):
        return adjective
    if (adjective, gender, plural) == ("mio", "m", True):
        return "miei"
    if adjective in ("tuo", "suo") and gender == "m" and plural:
        return adjective[:-1] + "oi"
    if adjective.endswith("o") and gender == "f":
        adjective = adjective[:-1] + "a"
    return italian_plural(adjective, gender) if plural else adjective


def inflect_before(adjective: str, word: str, gender: str, plural: bool = False) -> str:
    """Make an adjective agree before its noun: bel cane, begli occhi, quell'uomo, buon amico."""
    if adjective in ("bello", "quello"):
        return adjective[:-3] + JOINED[definite_article(word, gender, plural)]
    if adjective == "buono" and gender == "m" and not plural:
        return "b" + indefinite_article(word, "m").replace("un", "uon")
    if adjective == "questo" and not plural and word[0] in VOWELS:
        return "quest'"
    return inflect(adjective, gender, plural)


# --- Verbs -----------------------------------------------------------------------------------

IRREGULAR_FORMS = {
    row[0]: row[1:]
    for row in ([cell.strip() for cell in line.split("|")] for line in IRREGULAR_VERBS.split("\n"))
    if row[0]
}


def _spell(stem: str, ending: str, infinitive: str) -> str:
    if infinitive.endswith("are") and ending[0] in "ie":
        if stem.endswith(("c", "g")):
            return stem + "h" + ending
        if stem.endswith("i") and (ending[0] == "i" or stem.endswith(("ci", "gi"))):
            return stem[:-1] + ending
    return stem + ending


@cache
def conjugate(infinitive: str, tense: str) -> tuple[str, ...]:
    """Give the six persons of an Italian verb: tense is present, imperfect or future."""
    present, future, _ = IRREGULAR_FORMS.get(infinitive, ["", "", ""])
    stem, theme = infinitive[:-3], infinitive[-3]
    if tense == "present":
        if present:
            return tuple(present.split())
        endings = {"a": "o i a iamo ate ano", "e": "o i e iamo ete ono", "i": "o i e iamo ite ono"}
        ending_row = endings[theme]
        if infinitive in VERBS_IN_ISC:
            ending_row = "isco isci isce iamo ite iscono"
        return tuple(_spell(stem, ending, infinitive) for ending in ending_row.split())
    if tense == "imperfect":
        if infinitive == "essere":
            return tuple(IMPERFECT_OF_ESSERE.split())
        full = FULL_INFINITIVES.get(infinitive, infinitive)[:-2]
        return tuple(full + ending for ending in "vo vi va vamo vate vano".split())
    if tense == "future":
        root = future or _spell(stem, "ir" if theme == "i" else "er", infinitive)
        return tuple(root + ending for ending in "ò ai à emo ete anno".split())
    raise ValueError(f"no tense {tense!r}: present, imperfect and future are known")


def italian_gerund(infinitive: str) -> str:
    """Give the form that follows stare: dormendo, mangiando, bevendo."""
    full = FULL_INFINITIVES.get(infinitive, infinitive)
    return full[:-3] + ("ando" if full.endswith("are") else "endo")


def italian_participle(infinitive: str, gender: str = "m", plural: bool = False) -> str:
    """Give the past participle, agreeing: andato, andata, andati, andate; letto, aperto."""
    participle = IRREGULAR_FORMS.get(infinitive, ["", "", ""])[2]
    theme = {"a": "a", "e": "u", "i": "i"}[infinitive[-3]]
    return inflect(participle or f"{infinitive[:-3]}{theme}to", gender, plural)


ENGLISH_PASTS = _table(IRREGULAR_PASTS)


def add_s(word: str) -> str:
    """Give the plural of an English noun, or the third person of an English verb."""
    if word in IRREGULAR_ENGLISH_PLURALS:
        return IRREGULAR_ENGLISH_PLURALS[word]
    if word == "have":
        return "has"
    if word.endswith(("s", "x", "ch", "sh")) or re.search(r"[^aeiou]o$", word):
        return word + "es"
    return word[:-1] + "ies" if re.search(r"[^aeiou]y$", word) else word + "s"


def _add_ending(verb: str, ending: str) -> str:
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + ending
    if re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]|forget", verb):
        return verb + verb[-1] + ending
    return verb + ending


def english_past(verb: str) -> str:
    """Give the past simple: walked, studied, stopped, slept."""
    if verb in ENGLISH_PASTS:
        return ENGLISH_PASTS[verb]
    return _add_ending(verb[:-1] + "i" if re.search(r"[^aeiou]y$", verb) else verb, "ed")


def english_gerund(verb: str) -> str:
    """Give the -ing form: walking, writing, running, seeing."""
    return _add_ending(verb, "ing")


def english_indefinite(word: str) -> str:
    """Give a or an, as the next word asks."""
    return "an" if word[0].lower() in "aeiou" else "a"


# --- Phrases ---------------------------------------------------------------------------------


class Phrase(NamedTuple):
    """A noun or pronoun in both languages, and what the words around it must agree with."""

    en: str
    it: str
    article: str = ""  # apart from the rest, since a preposition may join it
    slot: int = 2
    gender: str = "m"
    kind: str = "person"

    def after(self, preposition: str = "") -> str:
        """Give the Italian, after a preposition if there is one."""
        article = join_preposition(preposition, self.article) if preposition else self.article
        if article == "a" and self.it.startswith(("a", "A")):
            article = "ad"
        return attach(article, self.it)


PRONOUNS = [
    Phrase("I", "", slot=0),
    Phrase("you", "", slot=1),
    Phrase("he", "lui"),
    Phrase("she", "lei", gender="f"),
    Phrase("we", "", slot=3),
    Phrase("you all", "", slot=4),
    Phrase("they", "loro", slot=5),
]
PEOPLE = [Phrase(en, en, gender=gender) for en, gender in _rows(NAMES)]
NUMBER_WORDS = _table(NUMBERS)
COUNTS = list(NUMBER_WORDS)[1:10]
POSSESSIVE_WORDS = _table(POSSESSIVES)


def english_rank(adjective: str) -> int:
    """Rank an adjective as English orders them: opinion, state, size or age, color or origin."""
    if adjective in COLORS_AND_ORIGINS:
        return 3
    if adjective in ("beautiful", "ugly", "good"):
        return 0
    return 2 if adjective in BEFORE else 1


def noun_phrase(
    noun: Noun,
    plural: bool = False,
    determiner: str = "",
    number: str = "",
    adjectives: tuple[str, ...] = (),
) -> Phrase:
    """Write a noun with what stands around it, in both languages.

    The determiner is English: the, a, this, that, some, every, many, all the, a possessive, or
    none. At most one adjective of BEFORE_NOUN fits, and it comes first.
    """
    gender = "f" if noun.en == "egg" and plural else noun.gender
    words = [italian_plural(noun.it, noun.gender) if plural else noun.it]
    for adjective in adjectives:
        lemma = ADJECTIVES[adjective]
        if adjective in BEFORE:
            words.insert(0, inflect_before(lemma, noun.it, gender, plural))
        else:
            words.append(inflect(lemma, gender, plural))
    if number:
        words.insert(0, NUMBER_WORDS[number])
    article = ""
    if determiner in POSSESSIVE_WORDS:
        owner = POSSESSIVE_WORDS[determiner]
        words.insert(0, inflect(owner, gender, plural))
        if noun.kind != "kin" or plural or adjectives or owner == "loro":
            article = definite_article(words[0], gender, plural)
    elif determiner == "the":
        article = definite_article(words[0], gender, plural)
    elif determiner == "a":
        article = indefinite_article(words[0], gender)
    elif determiner == "some":
        article = join_preposition("di", definite_article(words[0], gender, plural))
    elif determiner == "all the":
        article = f"{inflect('tutto', gender, True)} {definite_article(words[0], gender, True)}"
    elif determiner == "many":
        article = inflect("molto", gender, True)
    elif determiner == "every":
        article = "ogni"
    elif determiner in ("this", "that"):
        lemma = {"this": "questo", "that": "quello"}[determiner]
        article = inflect_before(lemma, words[0], gender, plural)
        determiner = {"this": "these", "that": "those"}[determiner] if plural else determiner
    english = [number, *sorted(adjectives, key=english_rank)]
    english.append(add_s(noun.en) if plural else noun.en)
    english = [word for word in english if word]
    if determiner == "a":
        determiner = english_indefinite(english[0])
    return Phrase(
        " ".join([determiner, *english]).strip(),
        " ".join(words),
        article,
        5 if plural else 2,
        gender,
        noun.kind,
    )


@cache
def nouns_of(names: str) -> list[Noun]:
    """List the nouns that some kinds, groups of kinds or single nouns name."""
    found = []
    for name in names.split():
        if name in GROUPS:
            found += nouns_of(GROUPS[name])
        elif name in NOUNS_BY_KIND:
            found += [noun for noun in NOUNS.values() if noun.kind == name]
        else:
            found.append(NOUNS[name])
    return found


# What may stand before a noun: a subject or object of a statement, and one of a negative sentence
# or a question, where `a` and `some` would sound odd.
DETERMINERS = {
    "subject": ["the"] * 9 + ["my"] * 4 + ["this", "that"] * 2 + ["a", "many", "all the", "every"],
    "object": ["the"] * 6 + ["a"] * 4 + ["my"] * 3 + ["this", "that", "some", "some", "", ""],
    "firm": ["the"] * 6 + ["my"] * 4 + ["this", "that"],
}


def adjectives_for(rng: random.Random, kind: str, most: int = 2) -> tuple[str, ...]:
    """Draw up to two adjectives that fit a kind of noun, one before and one after it in Italian."""
    fitting = FITTING[kind].split("|")[0].split()
    count = min(most, rng.choices([0, 1, 2], [6, 4, 1])[0])
    early = [adjective for adjective in fitting if adjective in BEFORE]
    late = [adjective for adjective in fitting if adjective not in BEFORE]
    if count == 2 and early and late:
        return rng.choice(early), rng.choice(late)
    return (rng.choice(fitting),) if count and fitting else ()


def draw_noun(
    rng: random.Random,
    names: str,
    role: str = "firm",
    plural: bool | None = None,
    most_adjectives: int = 2,
) -> Phrase:
    """Draw a noun phrase: kinds or nouns by name, the role decides what may stand before it."""
    noun = rng.choice(nouns_of(names))
    determiner = rng.choice(DETERMINERS[role])
    if noun.kind == "kin":
        determiner = "my"
    elif determiner == "my" and noun.en in NOT_OWNED:
        determiner = "the"
    if noun.kind == "language":
        return noun_phrase(noun, determiner="")
    if noun.is_mass or noun.en in ONLY_ONE:
        if noun.en in ONLY_ONE and determiner in ("", "some"):
            determiner = "the"
        if determiner in ("a", "many", "every", "all the"):
            determiner = "the"
        plural = False
    if noun.kind == "instrument":
        determiner, plural = rng.choice(["the", "the", "my"]), False
    if plural is None:
        plural = rng.random() < 0.4
        if determiner in ("a", "every"):
            plural = False
        elif determiner in ("", "some", "many", "all the"):
            plural = not noun.is_mass
    elif determiner in (("a", "every") if plural else ("some", "many", "all the", "")):
        determiner = determiner if noun.is_mass else "the"
    number = ""
    if plural and determiner in ("the", "my", "this", "that") and rng.random() < 0.25:
        number = rng.choice(COUNTS[:4] if noun.kind in ("kin", "body") else COUNTS)
        if determiner == "the" and role != "firm" and rng.random() < 0.4:
            determiner = ""
    if determiner == "my":
        barred = {"husband": ("his", "our", "their"), "wife": ("her", "our", "their")}
        owners = [owner for owner in POSSESSIVE_WORDS if owner not in barred.get(noun.en, ())]
        determiner = rng.choice(owners)
    most = min(most_adjectives, 1) if number else most_adjectives
    adjectives = adjectives_for(rng, noun.kind, most)
    if noun.kind == "kin" and rng.random() < 0.7:
        adjectives = ()
    return noun_phrase(noun, plural, determiner, number, adjectives)


def draw_subject(rng: random.Random, names: str = "person", role: str = "subject") -> Phrase:
    """Draw who does it; a person may be a pronoun, a name, or two people."""
    names = rng.choice(names.split())
    if names in ("person", "man"):
        chance = rng.random()
        if chance < 0.4:
            return rng.choice(PRONOUNS)
        if chance < 0.5:
            return rng.choice(PEOPLE)
        if chance < 0.53:
            return both(rng.choice(PEOPLE), draw_noun(rng, "kin", "firm", False, 0))
    return draw_noun(rng, names, role)


def both(first: Phrase, second: Phrase) -> Phrase:
    """Join two phrases by and."""
    gender = "f" if first.gender == second.gender == "f" else "m"
    return Phrase(
        f"{first.en} and {second.en}", f"{first.after()} e {second.after()}", "", 5, gender
    )


# --- Clauses ---------------------------------------------------------------------------------

DO, BE, WAS = (
    "do do does do do do".split(),
    "am are is are are are".split(),
    "was were was were were were".split(),
)
REFLEXIVES = "mi ti si ci vi si".split()
SHORT_NEGATIVES = {
    f"{word} not": short
    for word, short in _rows(
        "do don't, does doesn't, did didn't, will won't, is isn't, are aren't, was wasn't, "
        "were weren't, can can't"
    )
}
MODALS = {"can": "potere", "must": "dovere", "want": "volere"}


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
    """Write an English clause; the tenses are those of italian_clause, the moods of a pattern."""
    base, *particle = verb.split()
    did, do = "did", DO[slot]
    auxiliary, main = {
        "present": (do, base),
        "past": (did, base),
        "used to": (did, f"use to {base}"),
        "want": (do, f"want to {base}"),
        "would like": ("would", f"like to {base}"),
        "progressive": (BE[slot], english_gerund(base)),
        "was progressive": (WAS[slot], english_gerund(base)),
    }.get(tense, ("will" if tense == "future" else tense, base))
    if base == "be" and tense in ("present", "past"):
        auxiliary, main = (BE if tense == "present" else WAS)[slot], ""
    elif auxiliary in (do, did) and mood == "statement":
        head, *tail = main.split()
        past = {"use": "used"}.get(head) or english_past(head)
        finite = past if auxiliary == did else add_s(head) if slot == 2 else head
        auxiliary, main = "", " ".join([finite, *tail])
    if mood == "negative":
        auxiliary = f"{auxiliary} not".replace("can not", "cannot")
        if short:
            auxiliary = SHORT_NEGATIVES.get(auxiliary.replace("cannot", "can not"), auxiliary)
    if mood == "question":
        words = [auxiliary, subject, adverb, main]
    else:
        words = [subject, auxiliary, adverb, main]
    return " ".join(word for word in [*words, *particle, rest] if word)


def italian_verb(
    verb: str, slot: int, tense: str, gender: str = "m", clitic: str = "", adverb: str = ""
) -> str:
    """Write an Italian verb with the unstressed pronoun before it and the adverb after it.

    The tenses are named in English: present, past, future, used to, progressive, was progressive,
    can, must, want, would like. The participle agrees with the subject after essere, and with
    lo, la, li before avere.
    """
    infinitive = verb
    reflexive = infinitive.endswith("si")
    if reflexive:
        infinitive, clitic = infinitive[:-2] + "e", REFLEXIVES[slot]
    tail = infinitive
    if tense == "past" and infinitive in STATIVE_VERBS:
        tense = "used to"
    if tense in ("present", "future", "used to"):
        finite = conjugate(infinitive, "imperfect" if tense == "used to" else tense)[slot]
        tail = ""
    elif tense == "past":
        with_essere = reflexive or infinitive in INTRANSITIVE_WITH_ESSERE.split()
        finite = conjugate("essere" if with_essere else "avere", "present")[slot]
        plural = slot > 2
        if not with_essere:
            gender, plural = "f" if clitic == "la" else "m", clitic == "li"
        tail = italian_participle(infinitive, gender, plural)
    elif tense.endswith("progressive"):
        finite = conjugate("stare", "present" if tense == "progressive" else "imperfect")[slot]
        tail = italian_gerund(infinitive)
    else:
        finite = VORREI.split()[slot] if tense == "would like" else ""
        finite = finite or conjugate(MODALS[tense], "present")[slot]
    if clitic in ("lo", "la") and tense == "past":
        clitic = "l'"
    return " ".join(word for word in [attach(clitic, finite), adverb, tail] if word)


class Action(NamedTuple):
    """A verb in both languages, who does it, to what and where."""

    en: str
    it: str
    subjects: str
    objects: str
    places: str
    needs_place: bool


def _actions() -> list[Action]:
    found = []
    for line in ACTIONS.strip().split("\n"):
        frame, verbs = line.split(":")
        subjects, objects, places = (part.strip(" -") for part in re.split("[>@]", frame))
        for en, it in _rows(verbs):
            en = en.replace("_", " ")
            found.append(Action(en, it.strip("+"), subjects, objects, places, it[0] == "+"))
    return found


ALL_ACTIONS = _actions()
PLACES["cities"] = ", ".join(
    [f"in {en}=a {it}" for en, it in _rows(CITIES)]
    + [f"in {en}=in {it}" for en, it in _rows(COUNTRIES)]
)
PLACES["goal"] += "".join(f", to {en}=a {it}" for en, it in _rows(CITIES))
PLACES["goal"] += "".join(f", to {en}=in {it}" for en, it in _rows(COUNTRIES))
PLACES["school"] = "at school=a scuola, at home=a casa"

TIMES = {
    "present": "every day=ogni giorno, in the evening=la sera, in the morning=la mattina, "
    "on Sundays=la domenica, today=oggi, every year=ogni anno, ",
    "past": "yesterday=ieri, last week=la settimana scorsa, last year=l'anno scorso, "
    "two days ago=due giorni fa, this morning=stamattina, yesterday evening=ieri sera, "
    "on Sunday=domenica, ",
    "future": "tomorrow=domani, next week=la settimana prossima, next year=l'anno prossimo, "
    "tomorrow evening=domani sera, tomorrow morning=domani mattina, on Sunday=domenica, ",
    "used to": "every day=ogni giorno, in the evening=la sera, in summer=d'estate, "
    "on Sundays=la domenica, in winter=d'inverno",
    "progressive": "now=adesso",
    "was progressive": "yesterday=ieri, yesterday evening=ieri sera",
    "want": "today=oggi, now=adesso, tomorrow=domani",
}
TIMES["present"] += ", ".join(f"on {en}s=il {it}" for en, it in _rows(DAYS))
TIMES["past"] += ", ".join(f"on {en}={it}" for en, it in _rows(DAYS))
TIMES["future"] += ", ".join(f"on {en}={it}" for en, it in _rows(DAYS))
TIMES["must"] = TIMES["can"] = TIMES["would like"] = TIMES["want"]


def place(rng: random.Random, kinds: str) -> Pair:
    """Draw where it happens, from kinds of places: in the kitchen, near the old bridge."""
    entry = rng.choice(PLACES[rng.choice(kinds.split())].split(", "))
    if "=" in entry:
        en, it = entry.split("=")
        return en, it
    en, name, it = entry.split()
    bare = rng.random() < 0.7
    noun = NOUNS[name]
    if bare:
        phrase = noun_phrase(noun, determiner="the")
    else:
        phrase = draw_noun(rng, name, "firm", False, 1)
    en, preposition = en.replace("_", " "), it.strip("*").replace("_", " ")
    if phrase.en == f"the {name}" and it.endswith("*"):
        return f"{en} {phrase.en}", f"{preposition} {phrase.it}"
    return f"{en} {phrase.en}", phrase.after(preposition)


def clock(rng: random.Random) -> Phrase:
    """Draw a time of day, with its Italian article: half past three is (le) tre e mezza."""
    hour = rng.randrange(12)
    names = list(NUMBER_WORDS)[:12]
    en, it = [
        (f"{names[hour]} o'clock", ""),
        (f"half past {names[hour]}", "e mezza"),
        (f"a quarter past {names[hour]}", "e un quarto"),
        (f"ten past {names[hour]}", "e dieci"),
        (f"twenty past {names[hour]}", "e venti"),
        (f"a quarter to {names[(hour + 1) % 12]}", "meno un quarto"),
        (f"ten to {names[(hour + 1) % 12]}", "meno dieci"),
    ][rng.choice([0, 0, 0, 1, 1, 2, 3, 4, 5, 6])]
    if it.startswith("meno"):
        hour = (hour + 1) % 12
    it = f"{NUMBER_WORDS[names[hour]]} {it}".strip()
    return Phrase(en, it, "le" if hour else "l'", 5 if hour else 2, "f")


def time(rng: random.Random, tense: str) -> Pair:
    """Draw when it happens, to fit a tense: yesterday, on Mondays, at half past three."""
    if tense in ("past", "future", "present") and rng.random() < 0.2:
        hour = clock(rng)
        return f"at {hour.en}", hour.after("a")
    en, it = rng.choice(TIMES[tense].split(", ")).split("=")
    return en, it


class Sentence(NamedTuple):
    """A pair in lower case, and the mark that ends it when it is written as a sentence."""

    en: str
    it: str
    mark: str = "."


def say(
    rng: random.Random,
    subject: Phrase,
    verb: Pair,
    tense: str,
    rest: Pair = ("", ""),
    mood: str = "statement",
    adverb: Pair = ("", ""),
) -> Sentence:
    """Put a subject, a verb and the rest together, in the same order in both languages."""
    short = rng.random() < 0.4
    en = english_clause(
        subject.en, subject.slot, verb[0], tense, rest[0], mood, adverb[0], short=short
    )
    finite = italian_verb(verb[1], subject.slot, tense, subject.gender, adverb=adverb[1])
    negation = "non" if mood == "negative" or adverb[1] == "mai" else ""
    words = [subject.after(), negation, finite, rest[1]]
    return Sentence(en, _words(words), "?" if mood == "question" else ".")


def _words(words: list[str]) -> str:
    return " ".join(word for word in words if word)


def _beside(*pairs: Pair) -> Pair:
    return _words([en for en, _ in pairs]), _words([it for _, it in pairs])


def _plain(phrase: Phrase, preposition: Pair = ("", "")) -> Pair:
    return _words([preposition[0], phrase.en]), phrase.after(preposition[1])


def draw_action(rng: random.Random, tense: str = "present", transitive: bool = False) -> Action:
    """Draw a verb that goes with a tense."""
    barred = ()
    if tense in ("progressive", "was progressive", "must", "can", "want", "would like"):
        barred = STATES + MOMENTS
    elif tense == "used to":
        barred = MOMENTS
    while True:
        action = rng.choice(ALL_ACTIONS)
        if action.en not in barred and (action.objects or not transitive):
            return action


def complements(rng: random.Random, action: Action, role: str, avoid: str = "") -> Pair:
    """Draw the object and the place of an action; `avoid` is the English of its subject."""
    parts = []
    if action.objects:
        thing = draw_noun(rng, action.objects, role)
        while thing.en.split()[-1] in avoid.split():
            thing = draw_noun(rng, action.objects, role)
        parts.append(_plain(thing))
    if action.places and (action.needs_place or rng.random() < (0.3 if action.objects else 0.75)):
        parts.append(place(rng, action.places))
    return _beside(*parts) if parts else ("", "")


# --- Patterns --------------------------------------------------------------------------------

PATTERNS: dict[str, tuple[float, Callable[[random.Random], Sentence]]] = {}


def pattern(weight: float, *options: str) -> Callable:
    """Register a function that writes one kind of sentence, perhaps once for each option."""

    def register(function: Callable) -> Callable:
        name = " ".join([function.__name__, *options])
        PATTERNS[name] = weight, lambda rng: function(rng, *options)
        return function

    return register


@pattern(10, "present", "statement")
@pattern(6, "present", "negative")
@pattern(4, "present", "question")
@pattern(8, "past", "statement")
@pattern(4, "past", "negative")
@pattern(3, "past", "question")
@pattern(6, "future", "statement")
@pattern(3, "future", "negative")
@pattern(2, "future", "question")
@pattern(4, "progressive", "statement")
@pattern(2, "progressive", "negative")
@pattern(2, "progressive", "question")
@pattern(2, "was progressive", "statement")
@pattern(1, "was progressive", "negative")
@pattern(1, "was progressive", "question")
@pattern(4, "used to", "statement")
@pattern(1, "used to", "negative")
@pattern(2, "can", "statement")
@pattern(1, "can", "negative")
@pattern(1, "can", "question")
@pattern(2, "must", "statement")
@pattern(1, "must", "negative")
@pattern(2, "want", "statement")
@pattern(1, "want", "negative")
@pattern(1, "want", "question")
@pattern(1, "would like", "statement")
def somebody_does(rng: random.Random, tense: str, mood: str) -> Sentence:
    action = draw_action(rng, tense)
    firm = mood != "statement"
    subject = draw_subject(rng, action.subjects, "firm" if firm else "subject")
    # "I read" could be either tense, so only "he read" is written in the past.
    while action.en == "read" and (tense, mood) == ("past", "statement") and subject.slot != 2:
        subject = draw_subject(rng, action.subjects)
    rest = complements(rng, action, "firm" if firm else "object", subject.en)
    when = time(rng, tense) if rng.random() < 0.25 else ("", "")
    if firm or rng.random() < 0.7:
        return say(rng, subject, action[:2], tense, _beside(rest, when), mood)
    said = say(rng, subject, action[:2], tense, rest, mood)
    return Sentence(*_beside(when, said[:2]))


def predicate(rng: random.Random, subject: Phrase) -> Pair:
    """Draw an adjective that fits a subject and make it agree."""
    kind = "woman" if (subject.kind, subject.gender) == ("person", "f") else subject.kind
    said = subject.en.split()
    barred = [word for words in OPPOSITES if any(word in said for word in words) for word in words]
    fitting = FITTING["man" if kind == "person" else kind].replace("|", "").split()
    en = rng.choice([word for word in fitting if word not in barred and word not in said])
    return en, inflect(ADJECTIVES[en], subject.gender, subject.slot > 2)


# Simple sentences: weight | subject | verb | tenses | moods (statement, negative, question) | rest.
# The rest is made of an adjective, a place, a noun with what may stand before it, or of words that
# mean each other; a pair of prepositions may come first.
FRAMES = """
7 | anything | be essere | present past | s s n q | adjective
1 | person food | be essere | future | s n | adjective
2 | anything | be essere | present | s n | very=molto + adjective
1 | anything | be essere | present | s n | too=troppo + adjective
2 | person | be essere | present past future | s n q | place house town cities
1 | pet | be essere | present past future | s n q | place corner
1 | grazer wild prey | be essere | present past | s n q | place nature
3 | tool readable garment | be essere | present past | s n q | place spot
2 | person | be essere | present past | s s n q | with=con firm kin friend neighbor
3 | person | have avere | present past | s s n q | own tool garment vehicle readable pet grazer
2 | person | have avere | present | s s n q | own brother sister son daughter cousin friend child
2 | person | be avere | present past | s n q | hungry=fame/thirsty=sete/cold=freddo/sleepy=sonno
1 | person | be avere | present | s n q | right=ragione/wrong=torto/in_a_hurry=fretta
2 | person | be avere | present | s n q | afraid=paura + of=di the pet wild mouse forest sea
2 | person pet house | be avere | present | s s n | count + years_old=anni
2 | thing vehicle snack | cost costare | present | s s n | count + euros=euro
4 | person | give dare | present past future | s s n q | object thing snack + to=a firm kin youth friend
1 | person | give dare | present past future | s s n q | object gift flower book + to=a name
3 | person | put mettere | present future | s s n | firm tool readable + on=su the table chair desk bed
2 | person | put mettere | present future | s s n | firm tool readable + in=in the bag box car backpack
3 | person | come venire | present past future | s s n q | from=da the station market village island
2 | person | come venire | present past | s s n q | from=da city
2 | person | wake_up svegliarsi | present past future | s s n q | time
2 | person | get_up alzarsi | present past future | s s n q | time
2 | person | want volere | present past | s s n q | object snack drinks garment tool
2 | person | work lavorare | present past future progressive | s s n q | with=con firm kin friend
2 | person | eat mangiare | present past future progressive | s s n q | with=con firm kin youth
2 | person | sing cantare | present past future progressive | s s n q | with=con firm youth friend
2 | youth pet | play giocare | present past future progressive | s s n q | with=con firm youth pet
2 | person | speak parlare | present past future progressive | s n q | with=con firm kin man
2 | person | travel viaggiare | present past future | s s n q | without=senza firm kin friend pet
1 | person | fall cadere | past | s n | in=in the street river lake garden
1 | person | dance ballare | present past future | s n q | with=con firm woman youth friend
"""
ANYTHING = (
    "person person animal food drinks readable garment tool furniture vehicle place body plant"
)
MOODS = {"s": "statement", "n": "negative", "q": "question"}


def fill(rng: random.Random, item: str, subject: Phrase, tense: str) -> Pair:
    """Write one part of the rest of a frame."""
    first, *others = item.split()
    preposition = ("", "")
    if "=" in first:
        en, it = rng.choice(first.split("/")).replace("_", " ").split("=")
        if not others:
            return en, it
        preposition = en, it
        first, *others = others
    kinds = " ".join(others)
    if first == "adjective":
        return predicate(rng, subject)
    if first == "place":
        return place(rng, kinds)
    if first == "time":
        return time(rng, tense)
    if first == "count":
        return rng.choice(list(NUMBER_WORDS.items())[1:])
    if first == "name":
        return _plain(rng.choice(PEOPLE), preposition)
    if first == "city":
        en, it = rng.choice(_rows(CITIES))
        return _plain(Phrase(en, it), preposition)
    if first == "the":
        noun = rng.choice(nouns_of(kinds))
        plural = noun.kind in ("pet", "wild") and rng.random() < 0.5
        adjectives = adjectives_for(rng, noun.kind, 1)
        return _plain(noun_phrase(noun, plural, "the", "", adjectives), preposition)
    if first == "own":
        noun = rng.choice(nouns_of(kinds))
        number = rng.choice(["", *COUNTS[:5]])
        adjectives = adjectives_for(rng, noun.kind, 1)
        return _plain(noun_phrase(noun, bool(number), "" if number else "a", number, adjectives))
    thing = draw_noun(rng, kinds, first, None, 1)
    while thing.en.split()[-1] in subject.en.split():
        thing = draw_noun(rng, kinds, first, None, 1)
    return _plain(thing, preposition)


def simple_sentence(
    rng: random.Random, kinds: str, verb: Pair, tense: str, mood: str, rest: str
) -> Sentence:
    subject = draw_subject(rng, ANYTHING if kinds == "anything" else kinds, "firm")
    parts = [fill(rng, item, subject, tense) for item in rest.split(" + ")]
    return say(rng, subject, verb, tense, _beside(*parts), mood)


for _line in FRAMES.strip().split("\n"):
    _weight, _kinds, _verb, _tenses, _moods, _rest = (cell.strip() for cell in _line.split("|"))
    _forms = [(tense, MOODS[mood]) for tense in _tenses.split() for mood in _moods.split()]
    _pair = tuple(_verb.replace("_", " ").rsplit(" ", 1))
    for _tense, _mood in _forms:
        PATTERNS[f"{_verb} {_rest}: {_tense} {_mood}"] = (
            float(_weight) * _forms.count((_tense, _mood)) / len(_forms),
            partial(
                simple_sentence, kinds=_kinds, verb=_pair, tense=_tense, mood=_mood, rest=_rest
            ),
        )


def _something_new(rng: random.Random, kinds: str) -> Phrase:
    """Draw what `there is` may show: a dog, two dogs, many dogs, some dogs."""
    noun = rng.choice(nouns_of(kinds))
    plural = rng.random() < 0.6
    number = rng.choice(COUNTS) if plural and rng.random() < 0.5 else ""
    determiner = "" if number else rng.choice(["many", "some"]) if plural else "a"
    return noun_phrase(noun, plural, determiner, number, adjectives_for(rng, noun.kind, 1))


BE_IT = ("be", "essere")
SCENES = [
    ("tool readable garment snack", "spot"),
    ("man woman youth", "town"),
    ("pet", "corner"),
    ("grazer wild prey", "nature"),
    ("building street", "cities"),
]


@pattern(4, "present")
@pattern(2, "past")
@pattern(1, "future")
def there_is(rng: random.Random, tense: str) -> Sentence:
    kinds, where = rng.choice(SCENES)
    thing = _something_new(rng, kinds)
    plural = thing.slot > 2
    finite = italian_verb("essere", thing.slot, tense)
    there = "c'" if finite[0] in "eè" else "ci "
    mood = rng.choice(["statement", "statement", "statement", "question"])
    if thing.en.startswith("some "):
        mood = "statement"
    rest = _beside(_plain(thing), place(rng, where))
    en = english_clause("there", thing.slot if plural else 2, "be", tense, rest[0], mood)
    return Sentence(en, f"{there}{finite} {rest[1]}", "?" if mood == "question" else ".")


@pattern(1)
def how_many_are_there(rng: random.Random) -> Sentence:
    kinds, where = rng.choice(SCENES)
    noun = rng.choice(nouns_of(kinds))
    thing = noun_phrase(noun, True, "", "", adjectives_for(rng, noun.kind, 1))
    en, it = place(rng, where)
    many = inflect("quanto", thing.gender, True)
    return Sentence(f"how many {thing.en} are there {en}", f"{many} {thing.it} ci sono {it}", "?")


def _ask(opener: Pair, subject: Phrase, verb: Pair, tense: str, rest: Pair = ("", "")) -> Sentence:
    """Ask with a question word; the Italian subject follows the verb, and no pronoun is written.

    After perché, or where more follows the verb, the subject stands before it.
    """
    en = english_clause(subject.en, subject.slot, verb[0], tense, rest[0], "question")
    finite = italian_verb(verb[1], subject.slot, tense, subject.gender)
    name = "" if subject.it in ("lui", "lei", "loro") else subject.after()
    if opener[1] == "perché":
        it = [opener[1], name, finite, rest[1]]
    elif rest[1]:
        it = [name, opener[1], finite, rest[1]]
    else:
        dov_e = opener[1] == "dove" and finite[0] in "eè"
        it = [attach("dov'" if dov_e else opener[1], finite), name]
    return Sentence(f"{opener[0]} {en}", _words(it), "?")


@pattern(2, "present")
@pattern(1, "past")
def where_is(rng: random.Random, tense: str) -> Sentence:
    subject = draw_noun(rng, "tool garment readable kin pet vehicle building youth", "firm")
    return _ask(("where", "dove"), subject, BE_IT, tense)


@pattern(2, "present")
@pattern(2, "past")
@pattern(1, "future")
@pattern(1, "progressive")
def what_does_somebody_do_it_to(rng: random.Random, tense: str) -> Sentence:
    verbs = "eat drink read write buy see cook sell paint draw wash clean repair".split()
    barred = MOMENTS if tense == "progressive" else ()
    actions = [a for a in ALL_ACTIONS if a.objects and a.en in verbs and a.en not in barred]
    action = rng.choice(actions)
    return _ask(("what", "che cosa"), draw_subject(rng, action.subjects, "firm"), action[:2], tense)


@pattern(3, "where", "dove")
@pattern(2, "when", "quando")
@pattern(2, "why", "perché")
@pattern(1, "at what time", "a che ora")
def question_word(rng: random.Random, en: str, it: str) -> Sentence:
    tenses = ["present", "present", "past", "future", "progressive", "want"]
    tense = rng.choice(tenses[: 6 if en in ("where", "why") else 4])
    action = draw_action(rng, tense)
    while en == "where" and (not action.places or action.en in ("stay", "live", "rest")):
        action = draw_action(rng, tense)
    subject = draw_subject(rng, action.subjects, "firm")
    rest = ("", "")
    if en != "where":
        rest = complements(rng, action, "firm", subject.en)
    elif action.objects:
        thing = draw_noun(rng, action.objects, "firm", None, 1)
        while thing.en.split()[-1] in subject.en:
            thing = draw_noun(rng, action.objects, "firm", None, 1)
        rest = _plain(thing)
    return _ask((en, it), subject, action[:2], tense, rest)


@pattern(2)
def where_does_somebody_live(rng: random.Random) -> Sentence:
    verb = rng.choice([("live", "abitare"), ("go", "andare"), ("work", "lavorare")])
    subject = draw_subject(rng, "person", "firm")
    return _ask(("where", "dove"), subject, verb, rng.choice(["present", "past", "future"]))


@pattern(1)
def how_old_is_somebody(rng: random.Random) -> Sentence:
    subject = draw_subject(rng, "person pet house", "firm")
    asked = _ask(("how old", "quanti anni"), subject, ("be", "avere"), "present")
    return asked


@pattern(1)
def how_much_does_it_cost(rng: random.Random) -> Sentence:
    thing = draw_noun(rng, "tool garment snack vehicle readable furniture", "firm")
    return _ask(("how much", "quanto"), thing, ("cost", "costare"), "present")


def _draw_human_action(rng: random.Random, tense: str) -> Action:
    while True:
        action = draw_action(rng, tense)
        if "person" in action.subjects.split():
            return action


@pattern(3, "who", "chi", "?")
@pattern(1, "nobody", "nessuno", ".")
@pattern(1, "everybody", "tutti", ".")
def who_does_it(rng: random.Random, en: str, it: str, mark: str) -> Sentence:
    tense = rng.choice(["present", "past", "future"])
    action = _draw_human_action(rng, tense)
    rest = complements(rng, action, "firm")
    clause = english_clause(en, 2, action.en, tense, rest[0])
    finite = italian_verb(action.it, 5 if it == "tutti" else 2, tense)
    return Sentence(clause, _words([it, finite, rest[1]]), mark)


@pattern(2, "never", "mai")
@pattern(2, "often", "spesso")
@pattern(1, "always", "sempre")
def how_often(rng: random.Random, en: str, it: str) -> Sentence:
    action = draw_action(rng)
    while action.en in STATES:
        action = draw_action(rng)
    subject = draw_subject(rng, action.subjects, "firm")
    rest = complements(rng, action, "firm", subject.en)
    return say(rng, subject, action[:2], "present", rest, adverb=(en, it))


def _like(rng: random.Random, mood: str, liked: Pair, verb: str = "piace") -> Sentence:
    """Turn the sentence round: what is liked is the subject of piacere."""
    subject = draw_subject(rng, "person", "firm")
    clause = english_clause(
        subject.en, subject.slot, "like", "present", liked[0], mood, short=rng.random() < 0.4
    )
    negation = "non" if mood == "negative" else ""
    unstressed = {"he": "gli", "she": "le"}.get(subject.en) or (
        "" if subject.it else REFLEXIVES[subject.slot]
    )
    if unstressed:
        words = [negation, unstressed]
    else:
        words = ["a loro" if subject.it == "loro" else subject.after("a"), negation]
    it = _words([*words, verb, liked[1]])
    return Sentence(clause, it, "?" if mood == "question" else ".")


@pattern(3, "statement")
@pattern(2, "negative")
@pattern(1, "question")
def somebody_likes_something(rng: random.Random, mood: str) -> Sentence:
    noun = rng.choice(nouns_of("food drinks pet grazer readable garment vehicle plant sound city"))
    plural = not noun.is_mass and rng.random() < 0.6
    determiner = rng.choice(["the", "this", "that", "my"])
    if noun.is_mass or plural and rng.random() < 0.5:
        determiner = ""
    adjectives = adjectives_for(rng, noun.kind, 1)
    thing = noun_phrase(noun, plural, determiner, "", adjectives)
    # What is liked in general has an article in Italian alone: coffee is il caffè.
    liked = noun_phrase(noun, plural, determiner or "the", "", adjectives)
    verb = "piacciono" if plural else "piace"
    return _like(rng, mood, (thing.en, liked.after()), verb)


@pattern(2, "statement")
@pattern(1, "negative")
@pattern(1, "question")
def somebody_likes_to_do(rng: random.Random, mood: str) -> Sentence:
    action = _draw_human_action(rng, "want")
    rest = complements(rng, action, "firm")
    return _like(rng, mood, _beside((f"to {action.en}", action.it), rest))


COMPARABLE = (
    "small big old young tall rich poor strong fresh cold sweet expensive heavy fast slow "
    "beautiful intelligent famous interesting difficult important happy"
).split()
COMPARED = "person person animal tool garment vehicle building readable furniture".split()


def english_degree(adjective: str, ending: str) -> str:
    """Give the comparative (ending er) or superlative (est): taller, happiest, more famous."""
    if adjective.endswith("y"):
        return adjective[:-1] + "i" + ending
    if len(re.findall("[aeiou]+", adjective.rstrip("e"))) == 1:
        return _add_ending(adjective, ending)
    return f"{'more' if ending == 'er' else 'most'} {adjective}"


@pattern(3, "more", "statement")
@pattern(1, "more", "negative")
@pattern(1, "more", "question")
@pattern(1, "as", "statement")
@pattern(1, "as", "negative")
def something_compared(rng: random.Random, degree: str, mood: str) -> Sentence:
    kinds = rng.choice(COMPARED)
    subject = draw_subject(rng, kinds, "firm")
    other = draw_noun(rng, kinds, "firm", None, 1)
    en, it = predicate(rng, subject)
    if (
        en not in COMPARABLE
        or subject.en.split()[-1] in other.en
        or en in other.en.split()
        or kinds != "person"
        and subject.kind != other.kind
    ):
        return something_compared(rng, degree, mood)
    if degree == "more":
        rest = f"{english_degree(en, 'er')} than {other.en}", f"più {it} {other.after('di')}"
    else:
        rest = f"as {en} as {other.en}", f"{it} come {other.after()}"
    return say(rng, subject, BE_IT, "present", rest, mood)


@pattern(2, "statement")
@pattern(1, "question")
def this_is_the_most(rng: random.Random, mood: str) -> Sentence:
    noun = rng.choice(nouns_of("man youth building animal street vehicle"))
    en = rng.choice([word for word in FITTING[noun.kind].split() if word in COMPARABLE])
    where = noun_phrase(NOUNS[rng.choice(["city", "village", "island"])], determiner="the")
    this_en, this_it = rng.choice([("this", "questo"), ("that", "quello")])
    this = Phrase(this_en, inflect(this_it, noun.gender))
    best = inflect(ADJECTIVES[en], noun.gender)
    thing = noun_phrase(noun, determiner="the")
    rest = (
        f"the {english_degree(en, 'est')} {noun.en} in {where.en}",
        f"{thing.after()} più {best} {where.after('di')}",
    )
    return say(rng, this, BE_IT, "present", rest, mood)


@pattern(2, "statement")
@pattern(1, "negative")
@pattern(1, "question")
def this_is_something(rng: random.Random, mood: str) -> Sentence:
    thing = draw_noun(rng, "thing vehicle pet room house man youth kin", "object")
    while thing.en.split()[0] in ("this", "that", "these", "those"):
        thing = draw_noun(rng, "thing vehicle pet room house man youth kin", "object")
    plural = thing.slot > 2
    en, it = rng.choice(
        [("these", "questo"), ("those", "quello")]
        if plural
        else [("this", "questo"), ("that", "quello")]
    )
    subject = Phrase(en, inflect(it, thing.gender, plural), slot=thing.slot)
    return say(rng, subject, BE_IT, "present", _plain(thing), mood)


@pattern(1, "statement")
@pattern(1, "negative")
@pattern(1, "question")
def this_is_mine(rng: random.Random, mood: str) -> Sentence:
    noun = rng.choice(nouns_of("thing vehicle house pet"))
    determiner = rng.choice(["the", "this", "that"])
    adjectives = adjectives_for(rng, noun.kind, 1)
    thing = noun_phrase(noun, rng.random() < 0.4, determiner, "", adjectives)
    en, it = rng.choice([("mine", "mio"), ("yours", "tuo"), ("ours", "nostro"), ("theirs", "loro")])
    rest = en, inflect(it, thing.gender, thing.slot > 2)
    return say(rng, thing, BE_IT, "present", rest, mood)


@pattern(2, "present")
@pattern(1, "past")
def somebody_is_a_doctor(rng: random.Random, tense: str) -> Sentence:
    subject = draw_subject(rng, "person", "firm")
    nouns = nouns_of({"m": "man", "f": "woman kin"}[subject.gender])
    noun = rng.choice([noun for noun in nouns if noun.gender == subject.gender])
    plural = subject.slot > 2
    if noun.en in ("man", "woman", "king", "queen", "mother", "wife"):
        return somebody_is_a_doctor(rng, tense)
    if noun.en in subject.en or (noun.kind == "kin" and (plural or subject.kind == "kin")):
        return somebody_is_a_doctor(rng, tense)
    determiner = "" if plural else "my" if noun.kind == "kin" else "a"
    other = noun_phrase(noun, plural, determiner, "", adjectives_for(rng, noun.kind, 1))
    mood = rng.choice(["statement", "statement", "negative", "question"])
    return say(rng, subject, BE_IT, tense, _plain(other), mood)


def _anything(rng: random.Random, tense: str = "present") -> Pair:
    """Draw a sentence to be joined to another."""
    while True:
        said = somebody_does(rng, tense, rng.choice(["statement", "statement", "negative"]))
        if len(said.en.split()) < 10:
            return said[:2]


JOINTS = [("because", "perché"), ("when", "quando"), ("if", "se"), ("but", "ma"), ("and", "e")]


@pattern(1)
def what_time_is_it(rng: random.Random) -> Sentence:
    hour = clock(rng)
    en, it = f"it is {hour.en}", f"{conjugate('essere', 'present')[hour.slot]} {hour.after()}"
    if rng.random() < 0.5:
        return Sentence(en, it)
    return Sentence(*_beside((en, it), ("and", "e"), _anything(rng)))


@pattern(1, "it rains", "piove")
@pattern(1, "it is raining", "sta piovendo")
@pattern(1, "it is snowing", "sta nevicando")
@pattern(1, "it is cold", "fa freddo")
@pattern(1, "it is hot", "fa caldo")
@pattern(1, "the weather is good", "fa bel tempo")
@pattern(1, "the weather is bad", "fa brutto tempo")
def weather(rng: random.Random, en: str, it: str) -> Sentence:
    where = place(rng, rng.choice(["cities", "nature"])) if rng.random() < 0.5 else ("", "")
    when = rng.choice([("", ""), ("today", "oggi"), ("now", "adesso")])
    if rng.random() < 0.4:
        return Sentence(*_beside((en, it), where, when))
    joint = rng.choice(JOINTS)
    if joint[0] in ("but", "and"):
        return Sentence(*_beside((en, it), joint, _anything(rng)))
    return Sentence(*_beside(_anything(rng), joint, (en, it)))


@pattern(2, *JOINTS[0])
@pattern(1, *JOINTS[1])
@pattern(1, *JOINTS[2])
def because_somebody_is(rng: random.Random, en: str, it: str) -> Sentence:
    person = draw_subject(rng, "person", "firm")
    feeling = rng.choice(["adjective", "hungry=fame/thirsty=sete/cold=freddo/sleepy=sonno"])
    verb = ("be", "essere" if feeling == "adjective" else "avere")
    state = say(rng, person, verb, "present", fill(rng, feeling, person, "present"))
    return Sentence(*_beside(_anything(rng), (en, it), state[:2]))


@pattern(2, "and", "e")
@pattern(2, "but", "ma")
def two_things_happen(rng: random.Random, en: str, it: str) -> Sentence:
    tense = rng.choice(["present", "present", "past", "future", "progressive"])
    first = somebody_does(rng, tense, "statement")
    second = somebody_does(rng, tense, "negative" if en == "but" else "statement")
    if len(first.en.split()) + len(second.en.split()) > 13:
        return two_things_happen(rng, en, it)
    return Sentence(*_beside(first[:2], (en, it), second[:2]))


@pattern(3)
def the_one_who_does(rng: random.Random) -> Sentence:
    noun = rng.choice(nouns_of("man woman youth pet grazer wild"))
    is_person = noun.kind in ("man", "woman", "youth")
    adjectives = adjectives_for(rng, noun.kind, 1)
    plural = noun.en not in ONLY_ONE and rng.random() < 0.4
    subject = noun_phrase(noun, plural, "the", "", adjectives)
    tense = rng.choice(["present", "past", "progressive"])
    action = draw_action(rng, tense)
    while ("person" if is_person else noun.kind) not in action.subjects.split():
        action = draw_action(rng, tense)
    # "the children who read" could be either tense.
    if action.en == "read" and tense == "past" and plural:
        return the_one_who_does(rng)
    rest = complements(rng, action, "firm", subject.en)
    clause = english_clause("", subject.slot, action.en, tense, rest[0])
    finite = italian_verb(action.it, subject.slot, tense, subject.gender)
    head = subject._replace(
        en=f"{subject.en} {'who' if is_person else 'that'} {clause}",
        it=_words([subject.it, "che", finite, rest[1]]),
    )
    en, it = predicate(rng, head)
    return say(rng, head, BE_IT, "present", (en, it))


@pattern(3)
def the_thing_that_somebody_does(rng: random.Random) -> Sentence:
    tense = rng.choice(["present", "past", "future", "progressive"])
    action = draw_action(rng, tense, transitive=True)
    subject = draw_subject(rng, action.subjects, "firm")
    noun = rng.choice(nouns_of(action.objects))
    if noun.kind in ("kin", "language", "instrument") or noun.en in subject.en:
        return the_thing_that_somebody_does(rng)
    if action.en == "read" and tense == "past" and subject.slot != 2:
        return the_thing_that_somebody_does(rng)
    plural = not noun.is_mass and noun.en not in ONLY_ONE and rng.random() < 0.4
    thing = noun_phrase(noun, plural, "the")
    clause = english_clause(subject.en, subject.slot, action.en, tense)
    finite = italian_verb(action.it, subject.slot, tense, subject.gender)
    head = thing._replace(
        en=f"{thing.en} that {clause}", it=_words([thing.it, "che", subject.after(), finite])
    )
    return say(rng, head, BE_IT, "present", predicate(rng, thing))


OBJECT_PRONOUNS = "me mi, you ti, him lo, her la, us ci, them li"


@pattern(2, "present", "statement")
@pattern(2, "present", "negative")
@pattern(2, "past", "statement")
@pattern(1, "past", "negative")
@pattern(1, "future", "statement")
def somebody_sees_him(rng: random.Random, tense: str, mood: str) -> Sentence:
    verbs = ("see", "know", "love", "help", "call", "meet", "wait for", "look for")
    action = rng.choice([a for a in ALL_ACTIONS if a.en in verbs and a.objects])
    subject = draw_subject(rng, "person", "firm" if mood == "negative" else "subject")
    itself = {0: "mi ci", 1: "ti", 3: "mi ci", 4: "ti"}.get(subject.slot, "")
    en, it = rng.choice([row for row in _rows(OBJECT_PRONOUNS) if row[1] not in itself.split()])
    when = time(rng, tense) if rng.random() < 0.5 else ("", "")
    short = rng.random() < 0.4
    clause = english_clause(
        subject.en, subject.slot, action.en, tense, _words([en, when[0]]), mood, short=short
    )
    finite = italian_verb(action.it, subject.slot, tense, subject.gender, it)
    negation = "non" if mood == "negative" else ""
    return Sentence(clause, _words([subject.after(), negation, finite, when[1]]))


def _owned(rng: random.Random, kinds: str) -> tuple[Phrase, Phrase]:
    """Draw a thing, and the same thing with its owner: the teacher's book, (il) libro del maestro."""
    owner = draw_noun(rng, "man woman youth kin", "firm", False, 0)
    if rng.random() < 0.3:
        owner = rng.choice(PEOPLE)
    noun = rng.choice(nouns_of(kinds))
    thing = noun_phrase(noun, rng.random() < 0.3, "the", "", adjectives_for(rng, noun.kind, 1))
    bare = thing.en.removeprefix("the ")
    owned = thing._replace(en=f"{owner.en}'s {bare}", it=f"{thing.it} {owner.after('di')}")
    return thing, owned


@pattern(2, "statement")
@pattern(1, "negative")
@pattern(1, "question")
def the_thing_of_somebody_is(rng: random.Random, mood: str) -> Sentence:
    thing, owned = _owned(rng, "thing vehicle house pet garden")
    return say(rng, owned, BE_IT, "present", predicate(rng, thing), mood)


@pattern(1, "present")
@pattern(1, "past")
def somebody_finds_the_thing_of_somebody(rng: random.Random, tense: str) -> Sentence:
    owned = _owned(rng, "thing vehicle house pet garden")[1]
    subject = draw_subject(rng, "person", "firm")
    if subject.en.split()[-1] in owned.en:
        return somebody_finds_the_thing_of_somebody(rng, tense)
    verbs = [("look for", "cercare"), ("see", "vedere"), ("find", "trovare")]
    return say(rng, subject, rng.choice(verbs), tense, _plain(owned))


def imperative(infinitive: str) -> str:
    """Give the command to one person whom one calls tu: mangia, leggi, pulisci, vai."""
    present = conjugate(infinitive, "present")
    return present[2 if infinitive.endswith("are") and infinitive != "andare" else 1]


@pattern(2, "positive")
@pattern(1, "negative")
@pattern(1, "us")
def do_it(rng: random.Random, mood: str) -> Sentence:
    action = _draw_human_action(rng, "want")
    while action.en in ("understand", "cry"):
        action = _draw_human_action(rng, "want")
    en, it = complements(rng, action, "firm")
    if mood == "us":
        verb = conjugate(action.it, "present")[3]
        return Sentence(_words(["let us", action.en, en]), _words([verb, it]), "!")
    if mood == "negative":
        opener = rng.choice(["do not", "don't"])
        return Sentence(_words([opener, action.en, en]), _words(["non", action.it, it]), "!")
    please = rng.random() < 0.4
    words_en = [action.en, en, "please" if please else ""]
    words_it = [imperative(action.it), it, "per favore" if please else ""]
    return Sentence(_words(words_en), _words(words_it), "!")


@pattern(1)
def my_name_is(rng: random.Random) -> Sentence:
    owner, pronoun, slot = rng.choice([("my", "I", 0), ("his", "he", 2), ("her", "she", 2)])
    name = rng.choice(
        [p.en for p in PEOPLE if pronoun == "I" or (p.gender == "f") == (pronoun == "she")]
    )
    said = f"{owner} name is {name}", f"{italian_verb('chiamarsi', slot, 'present')} {name}"
    verb, rest = rng.choice(
        [
            (("live", "abitare"), place(rng, "cities")),
            (("work", "lavorare"), place(rng, "town")),
            (
                ("be", "avere"),
                rng.choice(
                    [(f"{en} years old", f"{it} anni") for en, it in NUMBER_WORDS.items()][4:]
                ),
            ),
        ]
    )
    clause = english_clause(pronoun, slot, verb[0], "present", rest[0])
    finite = italian_verb(verb[1], slot, "present")
    return Sentence(f"{said[0]} and {clause}", f"{said[1]} e {finite} {rest[1]}")


@pattern(1, "I know", "so")
@pattern(1, "we know", "sappiamo")
@pattern(1, "he says", "lui dice")
@pattern(1, "she says", "lei dice")
def somebody_knows_that(rng: random.Random, en: str, it: str) -> Sentence:
    tense = rng.choice(["present", "past", "future", "progressive"])
    return Sentence(*_beside((en, it), ("that", "che"), _anything(rng, tense)))


@pattern(1)
def today_is_monday(rng: random.Random) -> Sentence:
    day = rng.choice([("today is", "oggi è"), ("tomorrow is", "domani è")])
    name = rng.choice([*_rows(DAYS), ["Sunday", "domenica"]])
    return Sentence(*_beside(day, tuple(name), ("and", "e"), _anything(rng)))


@pattern(1, "thank you for", "grazie per")
@pattern(1, "here is", "ecco")
def here_is_something(rng: random.Random, en: str, it: str) -> Sentence:
    kinds = "gift book letter flower cake apple coffee tea wine photo bread umbrella key"
    thing = draw_noun(rng, kinds, "firm", False, 1)
    who = rng.choice(PEOPLE).en if rng.random() < 0.5 else ""
    return Sentence(_words([en, thing.en, who]), _words([it, thing.after(), who]), "!")


# --- The corpus ------------------------------------------------------------------------------


def folded(text: str) -> str:
    """Give what two sentences share that differ only in case and final punctuation."""
    return text.casefold().rstrip(".?!")


def words_of(text: str) -> list[str]:
    """Split a sentence into words, without its final punctuation."""
    return text.rstrip(".?!").split()


def is_held_out(italian: str) -> bool:
    """Tell whether a sentence may only be in validation."""
    return zlib.crc32(folded(italian).encode()) % HELD_OUT_EVERY == HELD_OUT_REMAINDER


def sentences(seed: int) -> Iterator[Sentence]:
    """Write sentences without end, some of them more than once."""
    rng = random.Random(seed)
    weights = [weight for weight, _ in PATTERNS.values()]
    writers = [writer for _, writer in PATTERNS.values()]
    while True:
        yield rng.choices(writers, weights)[0](rng)


def write_pairs(split: str, seed: int = 0) -> list[Pair]:
    """Write the (English, Italian) sentence pairs of a split; equal seeds write equal pairs.

    The split is train or validation. No sentence of validation is in train, in either language,
    and each of its words is there at least three times, as it is written. About half of the pairs
    have a capital letter and final punctuation. Raises ValueError for another split.
    """
    if split not in SIZES:
        raise ValueError(f"no split {split!r}: {' and '.join(SIZES)} are known")
    style = random.Random(f"style {seed}")
    pairs: dict[str, list[Pair]] = {"train": [], "validation": []}
    seen = set()
    for sentence in sentences(seed):
        if folded(sentence.en) in seen:
            continue
        seen.add(folded(sentence.en))
        en, it, mark = sentence
        if style.random() < 0.5:
            en, it = (text[0].upper() + text[1:] + mark for text in (en, it))
        pairs["validation" if is_held_out(it) else "train"].append((en, it))
        if len(pairs["train"]) == SIZES["train"]:
            break
    if split == "train":
        return pairs["train"]
    counts = Counter(word for pair in pairs["train"] for text in pair for word in words_of(text))
    return [
        pair
        for pair in pairs["validation"]
        if all(counts[word] >= SEEN_IN_TRAINING for text in pair for word in words_of(text))
    ][: SIZES["validation"]]
