"""The clauses of the phrasebook: a subject and its verb, with objects, places and times."""

import re
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from phrasebook.lexicon import (
    ACTIONS,
    COUNTS,
    GROUPS,
    HABITS,
    MOMENTS,
    NOT_PROGRESSIVE,
    NOUNS,
    NUMBERS,
    PLACES,
    QUALITIES,
    STATES,
    TIMES,
    Action,
    Pair,
    nouns_of,
)
from phrasebook.morphology import REFLEXIVES, attach, english_verb, italian_verb, spaced
from phrasebook.phrases import (
    CITY_PHRASES,
    PEOPLE,
    Phrase,
    beside,
    draw_around,
    draw_noun,
    draw_other,
    draw_subject,
    noun_phrase,
    predicate,
)

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
    """Return an English clause in its word order. Tenses and moods are those of `english_verb`."""
    auxiliary, main = english_verb(verb, slot, tense, mood, short)
    start = [auxiliary, subject] if mood == "question" else [subject, auxiliary]
    return spaced(*start, adverb, main, rest)


class Sentence(NamedTuple):
    """A pair in lower case, and the punctuation mark for its end."""

    en: str
    it: str
    mark: str = "."

    @property
    def pair(self) -> Pair:
        """Both languages, without the mark."""
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
    """Return a clause of subject, verb and rest, in this order in both languages.

    `clitic` is an Italian object pronoun.
    """
    short = rng.random() < 0.4
    en = english_clause(subject.en, subject.slot, verb[0], tense, rest[0], mood, adverb[0], short)
    finite = italian_verb(verb[1], subject.slot, tense, subject.gender, clitic, adverb[1])
    negation = "non" if mood == "negative" or adverb[1] == "mai" else ""
    return Sentence(en, spaced(subject.after(), negation, finite, rest[1]), MARKS[mood])


def draw_action(
    rng: Random, tense: str, suits: Callable[[Action], object] = lambda action: True
) -> Action:
    """Return a random action that fits a tense and meets the condition `suits`."""
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
    """Return whether a person can be the subject of an action."""
    return "person" in action.subjects.split()


def place(rng: Random, kinds: str) -> Pair:
    """Return a random place of some kinds: in the kitchen, near the old bridge."""
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
    """Return a random time of day: half past three, (le) tre e mezza."""
    en, it = rng.choice(CLOCK)
    hour = rng.randrange(12)
    name, nome = list(NUMBERS.items())[hour]
    article, slot = ("le", 5) if hour else ("l'", 2)
    return Phrase(en.format(name), spaced(nome, it), article, slot, "f")


def when(rng: Random, tense: str, moment: bool = False) -> Pair:
    """Return a random time that fits a tense: yesterday, on Mondays, at half past three.

    With `moment` it is no longer than a day.
    """
    if tense in ("past", "future", "present") and rng.random() < 0.2:
        return clock(rng).pair("at", "a")
    times = TIMES[tense]
    return rng.choice([t for t in times if not (moment and re.search("week|year", t[0]))])


def complements(rng: Random, action: Action, role: str, subject: str = "") -> Pair:
    """Return a random object and place of an action. The object's noun is not in `subject`."""
    thing = where = NOTHING
    if action.objects:
        thing = draw_other(rng, subject, action.objects, role).pair()
    often = 0.25 if action.objects else 0.75
    if action.places and (action.needs_place or rng.random() < often):
        where = place(rng, action.places)
    return beside(thing, where)


def fill(rng: Random, item: str, subject: Phrase, tense: str = "present") -> Pair:
    """Return one part of the last column of a frame, with random words."""
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
        # Numbers in -nti and -nta lose their vowel: vent'anni, trent'anni.
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


def ask(
    opener: Pair, subject: Phrase, verb: Pair, tense: str = "present", rest: Pair = NOTHING
) -> Sentence:
    """Return a question that begins with a question word.

    Italian has no pronoun there, and its subject follows the verb. It stands before the verb after
    perché, and before the question word if `rest` has an Italian text.
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


def like(rng: Random, mood: str, liked: Pair, verb: str = "piace") -> Sentence:
    """Return a sentence with `like`. In Italian the liked thing is the subject of piacere."""
    subject = draw_subject(rng)
    # Two people need two prepositions, which no `Phrase` has: a Pietro e a suo figlio.
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


def say_frame(rng: Random, kinds: str, verb: str, tense: str, mood: str, rest: str) -> Sentence:
    """Return a random sentence of one row of FRAMES. `rest` is its last column."""
    subject = draw_subject(rng, kinds)
    if mood != "statement":
        rest = rest.replace("object ", "firm ")
    parts = [fill(rng, item, subject, tense) for item in rest.split(" + ")]
    en, it = verb.split()
    return say(rng, subject, (en.replace("_", " "), it), tense, beside(*parts), mood)
