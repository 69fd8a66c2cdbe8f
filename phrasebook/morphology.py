"""The inflected forms of the words: articles, prepositions, plurals, agreement and verbs.

The `slot` of a verb form is its person, 0-5: I, you, he or she, we, you all, they. A `gender` is
m or f.
"""

import re
from functools import cache

from phrasebook.lexicon import (
    ENGLISH_PASTS,
    ENGLISH_PLURALS,
    FULL_INFINITIVES,
    IRREGULAR_VERBS,
    ITALIAN_PLURALS,
    MODALS,
    VERBS_IN_ISC,
    VERBS_OF_STATE,
    VERBS_WITH_ESSERE,
    WHOLE_TENSES,
)

VOWELS = "aeiouàèéìòù"
LO_SOUND = re.compile(rf"s[^{VOWELS}]|z|gn|ps|pn|x|y")
# What an article becomes when it is joined to a preposition: de + llo is dello, su + i is sui. The
# same endings follow be- in bello and que- in quello.
JOINED = {"il": "l", "lo": "llo", "l'": "ll'", "la": "lla", "i": "i", "gli": "gli", "le": "lle"}
JOINING_STEMS = {"di": "de", "a": "a", "da": "da", "in": "ne", "su": "su"}

REFLEXIVES = "mi ti si ci vi si".split()
DO = "do do does do do do".split()
BE = "am are is are are are".split()
WAS = "was were was were were were".split()
SHORT_NEGATIVES = {
    "can": "can't",
    "do": "don't",
    "does": "doesn't",
    "did": "didn't",
    "will": "won't",
    "is": "isn't",
    "are": "aren't",
    "was": "wasn't",
    "were": "weren't",
}


def definite_article(word: str, gender: str, plural: bool = False) -> str:
    """Return il, lo, l', la, i, gli or le. The beginning of the next word decides."""
    vowel = word[0] in VOWELS
    if gender == "f":
        return "le" if plural else "l'" if vowel else "la"
    if vowel or LO_SOUND.match(word):
        return "gli" if plural else "l'" if vowel else "lo"
    return "i" if plural else "il"


def indefinite_article(word: str, gender: str) -> str:
    """Return un, uno, una or un'. The beginning of the next word decides."""
    if gender == "f":
        return "un'" if word[0] in VOWELS else "una"
    return "uno" if LO_SOUND.match(word) else "un"


def attach(left: str, right: str) -> str:
    """Return two words joined by a blank, but with none after an apostrophe or an empty word."""
    return left + right if left.endswith("'") else f"{left} {right}".strip()


def spaced(*words: str) -> str:
    """Return the words joined by blanks, without the empty ones."""
    return " ".join(word for word in words if word)


def join_preposition(preposition: str, article: str) -> str:
    """Return a preposition joined to an article: di and lo become dello, a and le become alle."""
    *before, last = preposition.split()
    if last in JOINING_STEMS and article in JOINED:
        last, article = JOINING_STEMS[last] + JOINED[article], ""
    return " ".join([*before, attach(last, article)])


def italian_plural(word: str, gender: str) -> str:
    """Return the plural of a noun, or of an adjective whose singular has that gender."""
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
    """Return an adjective in a gender and number: rosso, rossa, rossi or rosse, but always blu."""
    if adjective in ("blu", "marrone", "loro"):
        return adjective
    if gender == "f" and adjective.endswith("o"):
        adjective = adjective[:-1] + "a"
    return italian_plural(adjective, gender) if plural else adjective


def inflect_before(adjective: str, word: str, gender: str, plural: bool = False) -> str:
    """Return an adjective as it stands before a word: bel cane, begli occhi, buon amico."""
    if adjective in ("bello", "quello"):
        return adjective[:-3] + JOINED[definite_article(word, gender, plural)]
    if adjective == "buono" and gender == "m" and not plural:
        return "b" + indefinite_article(word, gender).replace("un", "uon")
    if adjective == "questo" and not plural and word[0] in VOWELS:
        return "quest'"
    return inflect(adjective, gender, plural)


def _spell(stem: str, ending: str, infinitive: str) -> str:
    """Return stem and ending, spelled so that c and g keep their sound: cerchi, mangi, mangerò."""
    if infinitive.endswith("are") and ending[0] in "ie":
        if stem.endswith(("c", "g")):
            return stem + "h" + ending
        if stem.endswith("i") and (ending[0] == "i" or stem.endswith(("ci", "gi"))):
            return stem[:-1] + ending
    return stem + ending


@cache
def conjugate(infinitive: str, tense: str) -> tuple[str, ...]:
    """Return the forms of all six slots.

    The tense is present, imperfect or future, and for volere also conditional.
    """
    if (infinitive, tense) in WHOLE_TENSES:
        return tuple(WHOLE_TENSES[infinitive, tense].split())
    present, future_stem, _ = IRREGULAR_VERBS.get(infinitive, ("", "", ""))
    stem, theme = infinitive[:-3], infinitive[-3]
    if tense == "present":
        endings = {"a": "o i a iamo ate ano", "e": "o i e iamo ete ono", "i": "o i e iamo ite ono"}
        isc = infinitive in VERBS_IN_ISC
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
    """Return the gerund, which follows stare: dormendo, mangiando, bevendo."""
    full = FULL_INFINITIVES.get(infinitive, infinitive)
    return full[:-3] + ("ando" if full.endswith("are") else "endo")


def italian_participle(infinitive: str, gender: str = "m", plural: bool = False) -> str:
    """Return the past participle in a gender and number: andato, andata, andati or andate."""
    irregular = IRREGULAR_VERBS.get(infinitive, ("", "", ""))[2]
    theme = {"a": "a", "e": "u", "i": "i"}[infinitive[-3]]
    return inflect(irregular or f"{infinitive[:-3]}{theme}to", gender, plural)


def imperative(infinitive: str) -> str:
    """Return the command to one person who is addressed as tu: mangia, leggi, pulisci, vai."""
    slot = 2 if infinitive.endswith("are") and infinitive != "andare" else 1
    return conjugate(infinitive, "present")[slot]


def italian_verb(
    infinitive: str, slot: int, tense: str, gender: str = "m", clitic: str = "", adverb: str = ""
) -> str:
    """Return an Italian verb, with an object pronoun (`clitic`) before it and an adverb inside it.

    The tenses are those of `english_verb`. The participle agrees with the subject after essere,
    and with the pronouns la and li before avere.
    """
    reflexive = infinitive.endswith("si")
    if reflexive:
        infinitive, clitic = infinitive[:-2] + "e", REFLEXIVES[slot]
    if tense == "past" and infinitive in VERBS_OF_STATE:
        tense = "habit"
    if tense in ("present", "future", "habit"):
        finite = conjugate(infinitive, "imperfect" if tense == "habit" else tense)
        tail = ""
    elif tense == "past":
        with_essere = reflexive or infinitive in VERBS_WITH_ESSERE
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
    return spaced(attach(clitic, finite[slot]), adverb, tail)


def add_s(word: str) -> str:
    """Return the plural of an English noun, or the third person of an English verb."""
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
    """Return the past simple: walked, studied, stopped, slept."""
    stem = verb[:-1] + "i" if re.search("[^aeiou]y$", verb) else verb
    return ENGLISH_PASTS.get(verb) or _add_ending(stem, "ed")


def english_gerund(verb: str) -> str:
    """Return the -ing form: walking, writing, running, seeing."""
    return _add_ending(verb, "ing")


def english_indefinite(word: str) -> str:
    """Return a or an. The first letter of the next word decides."""
    return "an" if word[0].lower() in "aeiou" else "a"


def english_degree(adjective: str, ending: str) -> str:
    """Return the comparative (ending er) or superlative (est): taller, happiest, more famous."""
    if adjective.endswith("y"):
        return adjective[:-1] + "i" + ending
    if len(re.findall("[aeiou]+", adjective.rstrip("e"))) == 1:
        return _add_ending(adjective, ending)
    return f"{'more' if ending == 'er' else 'most'} {adjective}"


def english_verb(
    verb: str, slot: int, tense: str, mood: str = "statement", short: bool = False
) -> tuple[str, str]:
    """Return an English verb in two parts: the auxiliary, which may be empty, and the rest.

    The tenses are present, past, future, habit (used to), progressive, past_progressive, can,
    must, want and would_like. The moods are statement, negative and question. A verb may have a
    particle (look for). With `short` a negative is don't instead of do not.
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
        auxiliary, main = "", spaced(finite, *tail)
    if mood == "negative":
        whole = "cannot" if auxiliary == "can" else f"{auxiliary} not"
        auxiliary = SHORT_NEGATIVES.get(auxiliary, whole) if short else whole
    return auxiliary, spaced(main, *particle)
