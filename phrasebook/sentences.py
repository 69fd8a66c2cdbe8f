"""The built-in English-Italian corpus: noun phrases, clauses and patterns of correct sentences.

A translator can be trained on it with no network, so the Italian of a sentence depends on nothing
but its English. Where Italian must choose and English does not say, one convention holds:

- `you` is tu and `you all` is voi; I, you, we, you all and they are masculine when a word agrees;
- I, you, we and you all are not written as subjects; he, she and they are (lui, lei, loro), except
  in questions that begin with a question word;
- the past simple is the passato prossimo, but the imperfect of be, have, know, love, live, want;
  `used to` is the imperfect; `is sleeping` is sta dormendo and `was sleeping` stava dormendo;
- an adjective has one place, before its noun if it is in BEFORE and else after it;
- `in the kitchen` is in cucina, and nella once the kitchen has an adjective or another determiner.
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from random import Random
from typing import NamedTuple

from phrasebook.lexicon import (
    ACTIONS,
    ADJECTIVES,
    ANYTHING,
    BEFORE,
    CITIES,
    COLORS,
    COMPARABLE,
    COUNTS,
    DAYS,
    FITTING,
    FRAMES,
    GROUPS,
    HABITS,
    MOMENTS,
    NAMES,
    NOT_OWNED,
    NOT_PROGRESSIVE,
    NOUNS,
    NUMBERS,
    OPPOSITES,
    ORIGINS,
    PLACES,
    POSSESSIVES,
    QUALITIES,
    STATES,
    TIMES,
    WEATHER,
    Action,
    Noun,
    Pair,
    nouns_of,
    pairs,
    rows,
)
from phrasebook.morphology import (
    REFLEXIVES,
    add_s,
    attach,
    conjugate,
    definite_article,
    english_degree,
    english_indefinite,
    english_verb,
    imperative,
    indefinite_article,
    inflect,
    inflect_before,
    italian_plural,
    italian_verb,
    join_preposition,
    spaced,
)

LANGUAGES = ("en", "it")
SIZES = {"train": 28_000, "validation": 1_100}
# A checksum of its Italian holds a sentence out, so no two seeds can put it in both splits. This
# remainder is the one that holds out the README's "i due piccoli cani non dormono in cucina".
HELD_OUT_EVERY, HELD_OUT_REMAINDER = 20, 15
SEEN_IN_TRAINING = 3


def beside(*both: Pair) -> Pair:
    """Write pairs side by side in both languages, leaving out what is empty."""
    en, it = (spaced(*texts) for texts in zip(*both, strict=True))
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
PEOPLE = [Phrase(name, name, gender=gender) for name, gender in NAMES]
CITY_PHRASES = [Phrase(en, it, kind="city") for en, it in CITIES]


def _english_rank(adjective: str) -> int:
    """Rank an adjective as English orders them: opinion, state, size or age, color or origin."""
    if adjective in COLORS + ORIGINS:
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
    empty. At most one of the adjectives is one of BEFORE.
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


# What may stand before a noun. In negative sentences and questions `a` and `some` may sound odd,
# so only the firm ones are used there. `number` is a number with no article, `bare` nothing.
DETERMINERS = {
    "subject": "the the the the the the the my my my this that a every number many all_the",
    "object": "the the the the the the my my my a a some some bare bare this that number",
    "firm": "the the the the the the my my my my this that",
}
BARE_KINDS = "snack dish meal drink brew text press flower".split()


def _fits(determiner: str, noun: Noun, plural: bool) -> bool:
    if noun.kind == "language":
        return False
    if noun.kind in ("kin", "body"):
        return determiner == "my"
    if determiner in ("a", "every"):
        return not plural and noun.has_plural
    if determiner == "my":
        return noun.en not in NOT_OWNED
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


def draw_around(
    rng: Random, noun: Noun, plural: bool, determiner: str = "the", number: str = ""
) -> Phrase:
    """Write a noun phrase with at most one adjective, which is drawn."""
    return noun_phrase(noun, plural, determiner, number, draw_adjectives(rng, noun.kind, 1))


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


def predicate(rng: Random, subject: Phrase, only: Collection[str] = ()) -> Pair:
    """Draw an adjective to say of a subject, in its gender and number."""
    kind = subject.kind
    if kind == "person":
        kind = "woman" if subject.gender == "f" else "man"
    said = {*subject.en.split(), "|"}
    barred = said.union(*(words for words in OPPOSITES if said & words))
    fitting = [word for word in FITTING[kind].split() if word not in barred]
    fitting = [word for word in fitting if not only or word in only]
    if not fitting:
        return "good", inflect("buono", subject.gender, subject.plural)
    en = rng.choice(fitting)
    return en, inflect(ADJECTIVES[en], subject.gender, subject.plural)


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
    """Put an English subject, its verb and the rest in order; the tenses are of english_verb."""
    auxiliary, main = english_verb(verb, slot, tense, mood, short)
    start = [auxiliary, subject] if mood == "question" else [subject, auxiliary]
    return spaced(*start, adverb, main, rest)


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
    return Sentence(en, spaced(subject.after(), negation, finite, rest[1]), MARKS[mood])


def draw_action(
    rng: Random, tense: str, suits: Callable[[Action], object] = lambda action: True
) -> Action:
    """Draw a verb that goes with a tense and suits."""
    while True:
        action = rng.choice(ACTIONS)
        name = action.en.split()[0]
        if tense == "habit":
            fits = name in HABITS
        elif tense in ("present", "past", "future"):
            fits = True
        else:
            odd = NOT_PROGRESSIVE if "progressive" in tense else []
            fits = name not in STATES + MOMENTS + odd
        if fits and suits(action):
            return action


def by_person(action: Action) -> bool:
    """Tell whether a person may do it."""
    return "person" in action.subjects.split()


def place(rng: Random, kinds: str) -> Pair:
    """Draw where it happens, from kinds of places: in the kitchen, near the old bridge."""
    entry = rng.choice(PLACES[rng.choice(kinds.split())])
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


CLOCK = [("{} o'clock", "")] * 3 + [
    ("half past {}", "e mezza"),
    ("a quarter past {}", "e un quarto"),
    ("ten past {}", "e dieci"),
    ("twenty past {}", "e venti"),
    ("a quarter to {}", "meno un quarto"),
    ("ten to {}", "meno dieci"),
]


def clock(rng: Random) -> Phrase:
    """Draw a time of day with its Italian article: half past three is (le) tre e mezza."""
    en, it = rng.choice(CLOCK)
    hour = rng.randrange(12)
    name, nome = list(NUMBERS.items())[hour]
    article, slot = ("le", 5) if hour else ("l'", 2)
    return Phrase(en.format(name), spaced(nome, it), article, slot, "f")


def when(rng: Random, tense: str, moment: bool = False) -> Pair:
    """Draw when it happens: yesterday, on Mondays, at half past three; a moment is no year."""
    if tense in ("past", "future", "present") and rng.random() < 0.2:
        return clock(rng).pair("at", "a")
    times = TIMES[tense]
    return rng.choice([t for t in times if not (moment and re.search("week|year", t[0]))])


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
    if first in ("age", "price"):
        en, it = rng.choice(list(NUMBERS.items())[1:])
        if first == "price":
            return f"{en} euros", f"{it} euro"
        # Venti anni becomes vent'anni, trenta anni trent'anni.
        return f"{en} years old", attach(re.sub("nt[ai]$", "nt'", it), "anni")
    if first == "city":
        thing = rng.choice(CITY_PHRASES)
    elif first == "name":
        thing = rng.choice(PEOPLE)
    elif first == "the":
        noun = rng.choice(nouns_of(kinds))
        plural = noun.kind in GROUPS["animal"].split() and rng.random() < 0.5
        thing = draw_around(rng, noun, plural)
    elif first == "own":
        noun = rng.choice(nouns_of(kinds))
        number = rng.choice(["", "", *COUNTS[:4]])
        thing = draw_around(rng, noun, bool(number), "" if number else "a", number)
    else:
        thing = draw_other(rng, subject.en, kinds, first)
    return thing.pair(*preposition)


# Each is a weight, a function and what it takes after the random numbers.
PATTERNS: list[tuple[float, Callable[..., Sentence], list]] = []
MOODS = {"s": "statement", "n": "negative", "q": "question"}


def pattern(variants: str) -> Callable:
    """Register a function that writes one kind of sentence, once for each weight and options."""

    def register(function: Callable) -> Callable:
        for weight, *options in rows(variants):
            options = [MOODS.get(option, option) for option in options]
            PATTERNS.append((float(weight), function, options))
        return function

    return register


def _say_frame(rng: Random, kinds: str, verb: str, tense: str, mood: str, rest: str) -> Sentence:
    subject = draw_subject(rng, kinds)
    if mood != "statement":
        rest = rest.replace("object ", "firm ")
    parts = [fill(rng, item, subject, tense) for item in rest.split(" + ")]
    en, it = verb.split()
    return say(rng, subject, (en.replace("_", " "), it), tense, beside(*parts), mood)


for _weight, _kinds, _verb, _tenses, _moods, _rest in FRAMES:
    _forms = [(tense, MOODS[mood]) for tense in _tenses.split() for mood in _moods.split()]
    for _tense, _mood in _forms:
        _options = [_kinds.replace("anything", ANYTHING), _verb, _tense, _mood, _rest]
        PATTERNS.append((float(_weight) / len(_forms), _say_frame, _options))


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
    thing = draw_around(rng, noun, plural, determiner, number)
    mood = rng.choice(["statement"] * 3 + ["question"] * (determiner != "some"))
    rest = beside(thing.pair(), place(rng, where))
    en = english_clause("there", thing.slot, "be", tense, rest[0], mood)
    finite = italian_verb("essere", thing.slot, tense)
    it = attach("c'" if finite[0] in "eè" else "ci", finite)
    return Sentence(en, f"{it} {rest[1]}", MARKS[mood])


@pattern("1")
def how_many_are_there(rng: Random) -> Sentence:
    """Write `how many books are there on the desk`."""
    kinds, where = rng.choice(SCENES)
    noun = rng.choice(nouns_of(kinds))
    thing = draw_around(rng, noun, True, "")
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
    return Sentence(f"{opener[0]} {en}", spaced(*words), "?")


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
    action = draw_action(rng, tense, lambda action: action.objects and action.en in verbs)
    return ask(WHAT, draw_subject(rng, action.subjects), action[:2], tense)


@pattern("3")
def where_does_somebody_do_it(rng: Random) -> Sentence:
    """Write `where did you buy that hat`."""
    tense = rng.choice("present present past future progressive want".split())
    action = draw_action(rng, tense, lambda action: action.places and not action.needs_place)
    subject = draw_subject(rng, action.subjects)
    thing = draw_other(rng, subject.en, action.objects).pair() if action.objects else NOTHING
    return ask(WHERE, subject, action[:2], tense, thing)


@pattern("2 when quando, 1 at_what_time a_che_ora, 3 why perché")
def question_word(rng: Random, en: str, it: str) -> Sentence:
    """Write `why are they crying` or `when will the train leave`."""
    tenses = "present present past future" + " progressive want" * (en == "why")
    tense = rng.choice(tenses.split())
    lasting = () if en == "why" else ("stay", "live", "know", "love", "understand")
    action = draw_action(rng, tense, lambda action: action.en not in lasting)
    subject = draw_subject(rng, action.subjects)
    opener = en.replace("_", " "), it.replace("_", " ")
    return ask(opener, subject, action[:2], tense, complements(rng, action, "firm", subject.en))


@pattern("2")
def how_is_somebody(rng: Random) -> Sentence:
    """Write `good morning, Anna, how are you today`."""
    greeting = rng.choice(
        [*pairs("hello=ciao, good morning=buongiorno, good evening=buonasera"), NOTHING]
    )
    name = rng.choice(PEOPLE).pair() if greeting[0] and rng.random() < 0.8 else NOTHING
    today = rng.choice([("today", "oggi"), ("now", "adesso"), NOTHING, NOTHING])
    subject = (
        draw_noun(rng, "kin friend child teacher dog cat")
        if rng.random() < 0.6
        else rng.choice(PRONOUNS[1:])
    )
    asked = ask(("how", "come"), subject, ("be", "stare"))
    opening = [
        f"{hello}, {called}," if called else f"{hello}," if hello else ""
        for hello, called in zip(greeting, name, strict=True)
    ]
    return Sentence(*beside(tuple(opening), asked.pair, today), "?")


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
    action = draw_action(rng, tense, by_person)
    rest = complements(rng, action, "firm")
    finite = italian_verb(action.it, 5 if it == "tutti" else 2, tense)
    clause = english_clause(en, 2, action.en, tense, rest[0])
    return Sentence(clause, f"{it} {finite} {rest[1]}".strip(), "?" if en == "who" else ".")


@pattern("2 never mai, 2 often spesso, 1 always sempre")
def how_often(rng: Random, en: str, it: str) -> Sentence:
    """Write `she never drinks wine`."""
    action = draw_action(rng, "present", lambda action: action.en not in STATES)
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
    if determiner in POSSESSIVES and noun.en in NOT_OWNED:
        determiner = "the"
    adjectives = draw_adjectives(rng, noun.kind, 1)
    thing = noun_phrase(noun, plural, determiner, "", adjectives)
    # What is liked in general takes an article in Italian alone: coffee is il caffè.
    liked = noun_phrase(noun, plural, determiner or "the", "", adjectives)
    return like(rng, mood, (thing.en, liked.after()), "piacciono" if plural else "piace")


@pattern("2 s, 1 n, 1 q")
def somebody_likes_to_do_it(rng: Random, mood: str) -> Sentence:
    """Write `the children like to play in the garden`."""
    action = draw_action(rng, "want", by_person)
    return like(rng, mood, beside((f"to {action.en}", action.it), complements(rng, action, "firm")))


@pattern("4 more s, 1 more n, 1 more q, 2 as s, 1 as n")
def something_compared(rng: Random, degree: str, mood: str) -> Sentence:
    """Write `this house is bigger than that church`."""
    kinds = rng.choice("person pet grazer tool garment vehicle building readable furniture".split())
    subject = draw_subject(rng, kinds)
    other = draw_other(rng, subject.en, kinds if kinds == "person" else subject.kind)
    en, it = predicate(rng, subject, COMPARABLE)
    if en not in COMPARABLE or en in other.en.split():
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
    en = rng.choice([word for word in FITTING[noun.kind].split() if word in COMPARABLE])
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
    en, it = rng.choice(rows("mine mio, yours tuo, his suo, hers suo, ours nostro"))
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
    verb = rng.choice([action[:2] for action in ACTIONS if action.en in verbs])
    mood = rng.choice(["statement", "statement", "negative"])
    subject = draw_subject(rng, "person")
    itself = {0: "me us", 1: "you", 3: "me us", 4: "you"}.get(subject.slot, "")
    pronouns = rows("me mi, you ti, him lo, her la, us ci, them li")
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
    subject = draw_around(rng, noun, rng.random() < 0.4 and noun.has_plural)
    doer = "person" if human else noun.kind
    action = draw_action(rng, tense, lambda action: doer in action.subjects.split())
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
    action = draw_action(rng, tense, lambda action: action.objects)
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
    said = rng.choice(WEATHER)
    joint = rng.choice(pairs("because=perché, when=quando, if=se, but=ma, and=e"))
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
            rng,
            person,
            BE_IT,
            "present",
            predicate(rng, person, ("tired", "happy", "sad", "sick", "busy")),
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
    return Sentence(*beside(rng.choice(pairs(sayings)), anything(rng, tense)))


@pattern("1")
def today_is_monday(rng: Random) -> Sentence:
    """Write `today is Monday and we go to the market`."""
    en, it = rng.choice(DAYS)
    day = rng.choice([("today is", "oggi è"), ("tomorrow is", "domani è")])
    rest = beside(("and", "e"), anything(rng)) if rng.random() < 0.8 else NOTHING
    return Sentence(*beside(day, (en, it), rest))


@pattern("3 s, 1 n, 1 us")
def do_it(rng: Random, mood: str) -> Sentence:
    """Write `close the window please` or `let us go home`."""
    action = draw_action(rng, "want", by_person)
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
    """Write `thank you for the flower, Maria`."""
    kinds = "gift book letter flower cake apple coffee tea wine photo bread umbrella key"
    thing = draw_noun(rng, kinds, plural=False, most_adjectives=1)
    name = f", {rng.choice(PEOPLE).en}" if rng.random() < 0.6 else ""
    opener = en.replace("_", " "), it.replace("_", " ")
    return Sentence(*(text + name for text in beside(opener, thing.pair())), "!")


def folded(text: str) -> str:
    """Give what sentences share that differ only in capital letters and punctuation."""
    return text.casefold().rstrip(".?!").replace(",", "")


def words_of(text: str) -> list[str]:
    """Split a sentence into its words, without the punctuation."""
    return text.rstrip(".?!").replace(",", "").split()


def is_held_out(italian: str) -> bool:
    """Tell whether a sentence may only be in validation."""
    return zlib.crc32(folded(italian).encode()) % HELD_OUT_EVERY == HELD_OUT_REMAINDER


def sentences(seed: int) -> Iterator[Sentence]:
    """Write sentences without end, some of them more than once."""
    rng = Random(seed)
    weights = [weight for weight, *_ in PATTERNS]
    while True:
        _, function, options = rng.choices(PATTERNS, weights)[0]
        sentence = function(rng, *options)
        # "Il vicino vicino al ponte" is right, but reads badly.
        if not any(re.search(r"\b(\w+) \1\b", text) for text in sentence.pair):
            yield sentence


def write_pairs(split: str, seed: int = 0) -> list[Pair]:
    """Write the (English, Italian) sentence pairs of a split; equal seeds write equal pairs.

    The split is train or validation. No sentence of validation is in train, in either language,
    and each of its words is there at least three times just as it is written. About half of the
    pairs have a capital letter and punctuation. Raises ValueError for another split.
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
        else:
            en, it = (text.replace(",", "") for text in (en, it))
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
