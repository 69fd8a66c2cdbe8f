"""The noun phrases of the phrasebook: nouns with the words around them, pronouns and names."""

from collections.abc import Collection
from random import Random
from typing import NamedTuple

from phrasebook.lexicon import (
    ADJECTIVES,
    BEFORE,
    CITIES,
    COLORS,
    COUNTS,
    FITTING,
    NAMES,
    NOT_OWNED,
    NUMBERS,
    OPPOSITES,
    ORIGINS,
    POSSESSIVES,
    Noun,
    Pair,
    nouns_of,
)
from phrasebook.morphology import (
    add_s,
    attach,
    definite_article,
    english_indefinite,
    indefinite_article,
    inflect,
    inflect_before,
    italian_plural,
    join_preposition,
    spaced,
)


def beside(*both: Pair) -> Pair:
    """Return pairs joined in each language, without the empty texts."""
    en, it = (spaced(*texts) for texts in zip(*both, strict=True))
    return en, it


class Phrase(NamedTuple):
    """A noun phrase or pronoun in both languages, with what other words agree with."""

    en: str
    it: str
    article: str = ""  # kept apart from `it`, because a preposition may join it
    slot: int = 2
    gender: str = "m"
    kind: str = "person"

    @property
    def plural(self) -> bool:
        """Whether verbs and adjectives agree in the plural."""
        return self.slot > 2

    def after(self, preposition: str = "") -> str:
        """Return the Italian with its article, after a preposition if one is given."""
        left = join_preposition(preposition, self.article) if preposition else self.article
        return attach("ad" if left == "a" and self.it[0] in "aA" else left, self.it)

    def pair(self, en: str = "", it: str = "") -> Pair:
        """Return both languages, each after its preposition if one is given."""
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
    """Return the place of an adjective in English: opinion, state, size or age, color or origin."""
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
    """Return a noun with its determiner, number and adjectives, in both languages.

    The determiner is English: the, a, this, that, some, every, many, all the, a possessive, or
    empty. At most one adjective may be in BEFORE.
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
        # Relatives have no article: mia madre. With an adjective, with loro and in the plural they
        # do: la mia vecchia madre, la loro madre, le mie sorelle.
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


# The determiners of a noun in each role, some several times so that they are drawn more often.
# `firm` is for negative sentences and questions, where `a` and `some` may sound odd. `number` is a
# number without an article, `bare` is no determiner, `my` is any possessive.
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
    """Return up to two random adjectives that fit a kind of noun.

    Of two, the first stands before the noun in Italian and the second after it.
    """
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
    """Return a random noun phrase. `names` are those of `nouns_of`, `role` a key of DETERMINERS."""
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
    """Return a noun phrase with at most one random adjective."""
    return noun_phrase(noun, plural, determiner, number, draw_adjectives(rng, noun.kind, 1))


def draw_other(rng: Random, than: str, names: str, role: str = "firm") -> Phrase:
    """Return a random noun phrase whose noun is not in the English text `than`."""
    while True:
        phrase = draw_noun(rng, names, role, most_adjectives=1)
        if phrase.en.split()[-1] not in than:
            return phrase


def draw_subject(rng: Random, names: str = "person", role: str = "firm") -> Phrase:
    """Return a random subject. A person may be a pronoun, a name or two people."""
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
    """Return a random adjective that follows `be`, in the gender and number of the subject.

    It does not contradict the adjectives of the subject. `only` limits the choice.
    """
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
