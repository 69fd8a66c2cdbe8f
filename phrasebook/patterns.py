"""The patterns of the phrasebook: each function returns random sentences of one kind."""

from collections.abc import Callable
from random import Random

from phrasebook.clauses import (
    BE_IT,
    MARKS,
    NOTHING,
    Sentence,
    ask,
    by_person,
    clock,
    complements,
    draw_action,
    english_clause,
    fill,
    like,
    place,
    say,
    say_frame,
    when,
)
from phrasebook.lexicon import (
    ACTIONS,
    ADJECTIVES,
    ANYTHING,
    COMPARABLE,
    COUNTS,
    DAYS,
    FITTING,
    FRAMES,
    NOT_OWNED,
    NOUNS,
    POSSESSIVES,
    STATES,
    WEATHER,
    Pair,
    nouns_of,
    pairs,
    rows,
)
from phrasebook.morphology import (
    attach,
    conjugate,
    english_degree,
    imperative,
    inflect,
    italian_verb,
)
from phrasebook.phrases import (
    PEOPLE,
    PRONOUNS,
    Phrase,
    beside,
    draw_adjectives,
    draw_around,
    draw_noun,
    draw_other,
    draw_subject,
    noun_phrase,
    predicate,
)

# Each has a weight, a function, and the arguments that follow the random number generator.
PATTERNS: list[tuple[float, Callable[..., Sentence], list]] = []
MOODS = {"s": "statement", "n": "negative", "q": "question"}


def pattern(variants: str) -> Callable:
    """Return a decorator that adds a function to PATTERNS, once for each variant.

    A variant is a weight and the arguments of the function.
    """

    def register(function: Callable) -> Callable:
        for weight, *options in rows(variants):
            options = [MOODS.get(option, option) for option in options]
            PATTERNS.append((float(weight), function, options))
        return function

    return register


for _weight, _kinds, _verb, _tenses, _moods, _rest in FRAMES:
    _forms = [(tense, MOODS[mood]) for tense in _tenses.split() for mood in _moods.split()]
    for _tense, _mood in _forms:
        _options = [_kinds.replace("anything", ANYTHING), _verb, _tense, _mood, _rest]
        PATTERNS.append((float(_weight) / len(_forms), say_frame, _options))


@pattern(
    "32 present s, 14 present n, 10 present q, 18 past s, 9 past n, 5 past q, 34 future s, "
    "9 future n, 7 future q, 7 progressive s, 3 progressive n, 3 progressive q, "
    "2 past_progressive s, 1 past_progressive n, 1 past_progressive q, 13 habit s, 4 habit n, "
    "3 can s, 3 can n, 2 can q, 3 must s, 2 must n, 4 want s, 2 want n, 2 want q, 2 would_like s"
)
def somebody_does(rng: Random, tense: str, mood: str) -> Sentence:
    """Return a sentence like `yesterday the old teacher did not read the book in the library`."""
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
    """Return a sentence like `there are two black cats under the table`."""
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
    """Return a sentence like `how many books are there on the desk`."""
    kinds, where = rng.choice(SCENES)
    noun = rng.choice(nouns_of(kinds))
    thing = draw_around(rng, noun, True, "")
    many = inflect("quanto", thing.gender, True)
    en, it = beside(thing.pair(), ("are there", "ci sono"), place(rng, where))
    return Sentence(f"how many {en}", f"{many} {it}", "?")


WHERE, WHAT, WHEN = ("where", "dove"), ("what", "che cosa"), ("when", "quando")


@pattern("2 present, 1 past")
def where_is_it(rng: Random, tense: str) -> Sentence:
    """Return a sentence like `where are my keys`."""
    subject = draw_noun(rng, "tool garment readable kin pet vehicle building youth")
    return ask(WHERE, subject, BE_IT, tense)


@pattern("1 present, 1 past, 1 future")
def where_does_somebody_go(rng: Random, tense: str) -> Sentence:
    """Return a sentence like `where does your sister live`."""
    verb = rng.choice([("live", "abitare"), ("go", "andare"), ("work", "lavorare")])
    return ask(WHERE, draw_subject(rng), verb, tense)


@pattern("2 present, 2 past, 1 future, 1 progressive")
def what_does_somebody_do_it_to(rng: Random, tense: str) -> Sentence:
    """Return a sentence like `what is the boy eating`."""
    verbs = "eat drink read write buy see cook sell paint draw wash clean repair study".split()
    action = draw_action(rng, tense, lambda action: action.objects and action.en in verbs)
    return ask(WHAT, draw_subject(rng, action.subjects), action[:2], tense)


@pattern("3")
def where_does_somebody_do_it(rng: Random) -> Sentence:
    """Return a sentence like `where did you buy that hat`."""
    tense = rng.choice("present present past future progressive want".split())
    action = draw_action(rng, tense, lambda action: action.places and not action.needs_place)
    subject = draw_subject(rng, action.subjects)
    thing = draw_other(rng, subject.en, action.objects).pair() if action.objects else NOTHING
    return ask(WHERE, subject, action[:2], tense, thing)


@pattern("2 when quando, 1 at_what_time a_che_ora, 3 why perché")
def question_word(rng: Random, en: str, it: str) -> Sentence:
    """Return a sentence like `why are they crying` or `when will the train leave`."""
    tenses = "present present past future" + " progressive want" * (en == "why")
    tense = rng.choice(tenses.split())
    lasting = () if en == "why" else ("stay", "live", "know", "love", "understand")
    action = draw_action(rng, tense, lambda action: action.en not in lasting)
    subject = draw_subject(rng, action.subjects)
    opener = en.replace("_", " "), it.replace("_", " ")
    return ask(opener, subject, action[:2], tense, complements(rng, action, "firm", subject.en))


@pattern("2")
def how_is_somebody(rng: Random) -> Sentence:
    """Return a sentence like `good morning, Anna, how are you today`."""
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
    """Return a sentence like `how old is your brother`."""
    subject = draw_subject(rng, "person pet house")
    return ask(("how old", "quanti anni"), subject, ("be", "avere"))


@pattern("1")
def how_much_does_it_cost(rng: Random) -> Sentence:
    """Return a sentence like `how much do these shoes cost`."""
    thing = draw_noun(rng, "tool garment snack vehicle readable furniture")
    return ask(("how much", "quanto"), thing, ("cost", "costare"))


@pattern("3 who chi, 1 nobody nessuno, 1 everybody tutti")
def who_does_it(rng: Random, en: str, it: str) -> Sentence:
    """Return a sentence like `nobody opened the door`."""
    tense = rng.choice(["present", "past", "future"])
    action = draw_action(rng, tense, by_person)
    rest = complements(rng, action, "firm")
    finite = italian_verb(action.it, 5 if it == "tutti" else 2, tense)
    clause = english_clause(en, 2, action.en, tense, rest[0])
    return Sentence(clause, f"{it} {finite} {rest[1]}".strip(), "?" if en == "who" else ".")


@pattern("2 never mai, 2 often spesso, 1 always sempre")
def how_often(rng: Random, en: str, it: str) -> Sentence:
    """Return a sentence like `she never drinks wine`."""
    action = draw_action(rng, "present", lambda action: action.en not in STATES)
    subject = draw_subject(rng, action.subjects)
    rest = complements(rng, action, "firm", subject.en)
    return say(rng, subject, action[:2], "present", rest, adverb=(en, it))


@pattern("3 s, 2 n, 1 q")
def somebody_likes_something(rng: Random, mood: str) -> Sentence:
    """Return a sentence like `my father does not like coffee`."""
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
    # English has no article for what is liked in general, Italian has one: coffee is il caffè.
    liked = noun_phrase(noun, plural, determiner or "the", "", adjectives)
    return like(rng, mood, (thing.en, liked.after()), "piacciono" if plural else "piace")


@pattern("2 s, 1 n, 1 q")
def somebody_likes_to_do_it(rng: Random, mood: str) -> Sentence:
    """Return a sentence like `the children like to play in the garden`."""
    action = draw_action(rng, "want", by_person)
    return like(rng, mood, beside((f"to {action.en}", action.it), complements(rng, action, "firm")))


@pattern("4 more s, 1 more n, 1 more q, 2 as s, 1 as n")
def something_compared(rng: Random, degree: str, mood: str) -> Sentence:
    """Return a sentence like `this house is bigger than that church`."""
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
    """Return this, that, these or those as a subject that agrees with a noun phrase."""
    en, it = rng.choice([("this", "questo"), ("that", "quello")])
    plural = {"this": "these", "that": "those"}
    it = inflect(it, thing.gender, thing.plural)
    return Phrase(plural[en] if thing.plural else en, it, "", thing.slot, thing.gender)


@pattern("2 s, 1 q")
def this_is_the_most(rng: Random, mood: str) -> Sentence:
    """Return a sentence like `this is the oldest church in the city`."""
    noun = rng.choice(nouns_of("man youth building pet horse street vehicle"))
    en = rng.choice([word for word in FITTING[noun.kind].split() if word in COMPARABLE])
    thing = noun_phrase(noun)
    where = noun_phrase(NOUNS[rng.choice(["city", "village"])])
    best = f"the {english_degree(en, 'est')} {noun.en}", f"{thing.after()} più"
    rest = beside(best, ("", inflect(ADJECTIVES[en], noun.gender)), where.pair("in", "di"))
    return say(rng, this_or_that(rng, thing), BE_IT, "present", rest, mood)


@pattern("3 s, 1 n, 1 q")
def this_is_something(rng: Random, mood: str) -> Sentence:
    """Return a sentence like `these are my sisters`."""
    role = "object" if mood == "statement" else "firm"
    thing = draw_noun(rng, "thing vehicle pet room house man youth kin", role)
    while thing.en.split()[0] in ("this", "that", "these", "those"):
        thing = draw_noun(rng, "thing vehicle pet room house man youth kin", role)
    return say(rng, this_or_that(rng, thing), BE_IT, "present", thing.pair(), mood)


@pattern("1 s, 1 n, 1 q")
def this_is_mine(rng: Random, mood: str) -> Sentence:
    """Return a sentence like `that red bicycle is not mine`."""
    noun = rng.choice(nouns_of("thing vehicle house pet"))
    determiner = rng.choice(["the", "this", "that"])
    adjectives = draw_adjectives(rng, noun.kind, 1)
    thing = noun_phrase(noun, rng.random() < 0.4, determiner, "", adjectives)
    en, it = rng.choice(rows("mine mio, yours tuo, his suo, hers suo, ours nostro"))
    return say(rng, thing, BE_IT, "present", (en, inflect(it, thing.gender, thing.plural)), mood)


@pattern("2 present s, 1 present n, 1 present q, 1 past s")
def somebody_is_a_doctor(rng: Random, tense: str, mood: str) -> Sentence:
    """Return a sentence like `her uncle is an English writer`."""
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
    """Return a sentence like `we did not see her on Monday`."""
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
    """Return a random thing without and with its owner: the book and the teacher's book."""
    owner = draw_noun(rng, "man woman youth kin", plural=False, most_adjectives=0)
    owner = rng.choice([owner, owner, rng.choice(PEOPLE)])
    noun = rng.choice(nouns_of("thing vehicle house pet garden"))
    plural, adjectives = rng.random() < 0.3, draw_adjectives(rng, noun.kind, 1)
    thing = noun_phrase(noun, plural, "the", "", adjectives)
    en = f"{owner.en}'s {noun_phrase(noun, plural, '', '', adjectives).en}"
    return thing, thing._replace(en=en, it=f"{thing.it} {owner.after('di')}")


@pattern("2 present s, 1 present n, 1 present q, 1 past s")
def the_thing_of_somebody_is(rng: Random, tense: str, mood: str) -> Sentence:
    """Return a sentence like `the teacher's books are old`."""
    thing, whole = owned(rng)
    return say(rng, whole, BE_IT, tense, predicate(rng, thing), mood)


@pattern("1 present s, 1 present n, 1 past s")
def somebody_sees_the_thing_of_somebody(rng: Random, tense: str, mood: str) -> Sentence:
    """Return a sentence like `he found Maria's key`."""
    subject, whole = draw_subject(rng), owned(rng)[1]
    verb = rng.choice([("look for", "cercare"), ("see", "vedere"), ("find", "trovare")])
    if subject.en.split()[-1] in whole.en:
        return somebody_sees_the_thing_of_somebody(rng, tense, mood)
    return say(rng, subject, verb, tense, whole.pair(), mood)


@pattern("3 present, 2 past, 2 progressive")
def the_one_who_does_it(rng: Random, tense: str) -> Sentence:
    """Return a sentence like `the man who is cooking the fish is tired`."""
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
    """Return a sentence like `the letter that you wrote is long`."""
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
    """Return a random short sentence that can be joined to another."""
    while True:
        said = somebody_does(rng, tense, rng.choice(["statement", "statement", "negative"]))
        if len(said.en.split()) < 9:
            return said.pair


@pattern("1")
def what_time_is_it(rng: Random) -> Sentence:
    """Return a sentence like `it is half past three and my brother works`."""
    hour = clock(rng)
    time = f"it is {hour.en}", f"{conjugate('essere', 'present')[hour.slot]} {hour.after()}"
    return Sentence(*beside(time, ("and", "e"), anything(rng)) if rng.random() < 0.6 else time)


@pattern("5")
def weather(rng: Random) -> Sentence:
    """Return a sentence like `we stay at home because it is raining`."""
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
    """Return a sentence like `they work in the garden if you are tired`."""
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
    """Return a sentence like `the dog slept but the cat did not play`."""
    tense = rng.choice("present present past future progressive".split())
    second = somebody_does(rng, tense, "negative" if en == "but" else "statement")
    if len(second.en.split()) > 7:
        return two_things_happen(rng, en, it)
    return Sentence(*beside(anything(rng, tense), (en, it), second.pair))


@pattern("1 present, 1 past, 1 future, 1 progressive")
def somebody_knows_that(rng: Random, tense: str) -> Sentence:
    """Return a sentence like `he says that the train will arrive tomorrow`."""
    sayings = "I know that=so che, we know that=sappiamo che, he says that=lui dice che, "
    sayings += "she says that=lei dice che, they say that=loro dicono che"
    return Sentence(*beside(rng.choice(pairs(sayings)), anything(rng, tense)))


@pattern("1")
def today_is_monday(rng: Random) -> Sentence:
    """Return a sentence like `today is Monday and we go to the market`."""
    en, it = rng.choice(DAYS)
    day = rng.choice([("today is", "oggi è"), ("tomorrow is", "domani è")])
    rest = beside(("and", "e"), anything(rng)) if rng.random() < 0.8 else NOTHING
    return Sentence(*beside(day, (en, it), rest))


@pattern("3 s, 1 n, 1 us")
def do_it(rng: Random, mood: str) -> Sentence:
    """Return a sentence like `close the window please` or `let us go home`."""
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
    """Return a sentence like `my name is Luca and I live in Rome`."""
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
    """Return a sentence like `thank you for the flower, Maria`."""
    kinds = "gift book letter flower cake apple coffee tea wine photo bread umbrella key"
    thing = draw_noun(rng, kinds, plural=False, most_adjectives=1)
    name = f", {rng.choice(PEOPLE).en}" if rng.random() < 0.6 else ""
    opener = en.replace("_", " "), it.replace("_", " ")
    return Sentence(*(text + name for text in beside(opener, thing.pair())), "!")
