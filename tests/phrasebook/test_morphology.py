"""Articles, agreement and verbs of both languages, compared with forms from grammars."""

import re

import pytest

from phrasebook.morphology import (
    add_s,
    attach,
    conjugate,
    definite_article,
    english_degree,
    english_gerund,
    english_indefinite,
    english_past,
    imperative,
    indefinite_article,
    inflect,
    inflect_before,
    italian_gerund,
    italian_participle,
    italian_plural,
    italian_verb,
    join_preposition,
)


@pytest.mark.parametrize(
    "gender, plural, words",
    [
        ("m", False, "il libro, il cane, il sole, il vicino, lo zaino, lo studente, lo specchio"),
        ("m", False, "lo gnomo, lo psicologo, lo yogurt, lo xilofono, l'uomo, l'amico, l'asino"),
        ("m", True, "i libri, i due, gli zaini, gli studenti, gli gnomi, gli psicologi, gli amici"),
        ("f", False, "la casa, la zia, la sciarpa, la scrivania, l'acqua, l'amica, l'ora"),
        ("f", True, "le case, le zie, le acque, le amiche, le otto"),
    ],
)
def test_definite_article_follows_the_sound_of_the_next_word(gender, plural, words):
    for expected in words.split(", "):
        word = re.split("[ ']", expected)[1]
        assert attach(definite_article(word, gender, plural), word) == expected


@pytest.mark.parametrize(
    "gender, words",
    [
        ("m", "un libro, un amico, un uomo, uno zaino, uno studente, uno psicologo, uno gnomo"),
        ("f", "una casa, una zia, una sciarpa, un'amica, un'isola, un'arancia"),
    ],
)
def test_indefinite_article_follows_the_sound_of_the_next_word(gender, words):
    for expected in words.split(", "):
        word = re.split("[ ']", expected)[1]
        assert attach(indefinite_article(word, gender), word) == expected


@pytest.mark.parametrize(
    "preposition, joined",
    [
        ("di", "del dello dell' della dei degli delle"),
        ("a", "al allo all' alla ai agli alle"),
        ("da", "dal dallo dall' dalla dai dagli dalle"),
        ("in", "nel nello nell' nella nei negli nelle"),
        ("su", "sul sullo sull' sulla sui sugli sulle"),
        (
            "vicino a",
            "vicino al,vicino allo,vicino all',vicino alla,vicino ai,vicino agli,vicino alle",
        ),
    ],
)
def test_prepositions_join_every_definite_article(preposition, joined):
    articles = "il lo l' la i gli le".split()
    expected = joined.split("," if "," in joined else " ")
    assert [join_preposition(preposition, article) for article in articles] == expected


def test_other_prepositions_and_articles_are_not_joined():
    assert join_preposition("con", "il") == "con il"
    assert join_preposition("sotto", "l'") == "sotto l'"
    assert join_preposition("di", "un") == "di un"
    assert join_preposition("su", "") == "su"


MASCULINE_PLURALS = """
libro libri, cane cani, uomo uomini, zio zii, figlio figli, orologio orologi, amico amici,
medico medici, cuoco cuochi, parco parchi, lago laghi, albergo alberghi, psicologo psicologi,
turista turisti, artista artisti, re re, film film, caffè caffè, autobus autobus, cinema cinema,
tedesco tedeschi, bianco bianchi, simpatico simpatici, operaio operai, specchio specchi, uovo uova
"""
FEMININE_PLURALS = """
casa case, chiave chiavi, mano mani, città città, foto foto, radio radio, mucca mucche,
biblioteca biblioteche, arancia arance, spiaggia spiagge, camicia camicie, moglie mogli,
figlia figlie, bottiglia bottiglie, lunga lunghe, grigia grigie, simpatica simpatiche
"""


@pytest.mark.parametrize("gender, pairs", [("m", MASCULINE_PLURALS), ("f", FEMININE_PLURALS)])
def test_italian_plurals(gender, pairs):
    for singular, plural in (pair.split() for pair in pairs.split(",")):
        assert italian_plural(singular, gender) == plural


@pytest.mark.parametrize(
    "adjective, forms",
    [
        ("rosso", "rosso rossa rossi rosse"),
        ("grande", "grande grande grandi grandi"),
        ("vecchio", "vecchio vecchia vecchi vecchie"),
        ("stanco", "stanco stanca stanchi stanche"),
        ("simpatico", "simpatico simpatica simpatici simpatiche"),
        ("blu", "blu blu blu blu"),
        ("marrone", "marrone marrone marrone marrone"),
        ("mio", "mio mia miei mie"),
        ("tuo", "tuo tua tuoi tue"),
        ("nostro", "nostro nostra nostri nostre"),
        ("loro", "loro loro loro loro"),
    ],
)
def test_adjectives_agree_in_gender_and_number(adjective, forms):
    agreed = [inflect(adjective, gender, plural) for plural in (False, True) for gender in "mf"]
    assert agreed == forms.split()


def test_bello_and_buono_are_full_after_be_and_questo_loses_its_vowel():
    assert inflect("bello", "m") == "bello"
    assert inflect("buono", "m", True) == "buoni"
    assert inflect_before("questo", "amico", "m") == "quest'"
    assert inflect_before("questo", "amici", "m", True) == "questi"
    assert inflect_before("questo", "casa", "f") == "questa"


@pytest.mark.parametrize(
    "infinitive, tense, forms",
    [
        ("parlare", "present", "parlo parli parla parliamo parlate parlano"),
        ("vendere", "present", "vendo vendi vende vendiamo vendete vendono"),
        ("dormire", "present", "dormo dormi dorme dormiamo dormite dormono"),
        ("pulire", "present", "pulisco pulisci pulisce puliamo pulite puliscono"),
        ("mangiare", "present", "mangio mangi mangia mangiamo mangiate mangiano"),
        ("cercare", "present", "cerco cerchi cerca cerchiamo cercate cercano"),
        ("studiare", "present", "studio studi studia studiamo studiate studiano"),
        ("leggere", "present", "leggo leggi legge leggiamo leggete leggono"),
        ("essere", "present", "sono sei è siamo siete sono"),
        ("avere", "present", "ho hai ha abbiamo avete hanno"),
        ("andare", "present", "vado vai va andiamo andate vanno"),
        ("dare", "present", "do dai dà diamo date danno"),
        ("bere", "present", "bevo bevi beve beviamo bevete bevono"),
        ("venire", "present", "vengo vieni viene veniamo venite vengono"),
        ("potere", "present", "posso puoi può possiamo potete possono"),
        ("parlare", "imperfect", "parlavo parlavi parlava parlavamo parlavate parlavano"),
        ("dormire", "imperfect", "dormivo dormivi dormiva dormivamo dormivate dormivano"),
        ("essere", "imperfect", "ero eri era eravamo eravate erano"),
        ("bere", "imperfect", "bevevo bevevi beveva bevevamo bevevate bevevano"),
        ("parlare", "future", "parlerò parlerai parlerà parleremo parlerete parleranno"),
        ("dormire", "future", "dormirò dormirai dormirà dormiremo dormirete dormiranno"),
        ("mangiare", "future", "mangerò mangerai mangerà mangeremo mangerete mangeranno"),
        ("cercare", "future", "cercherò cercherai cercherà cercheremo cercherete cercheranno"),
        ("studiare", "future", "studierò studierai studierà studieremo studierete studieranno"),
        ("vedere", "future", "vedrò vedrai vedrà vedremo vedrete vedranno"),
        ("essere", "future", "sarò sarai sarà saremo sarete saranno"),
        ("bere", "future", "berrò berrai berrà berremo berrete berranno"),
    ],
)
def test_conjugation(infinitive, tense, forms):
    assert list(conjugate(infinitive, tense)) == forms.split()


def test_verbs_of_state_have_an_imperfect_past():
    assert italian_verb("essere", 2, "past") == "era"
    assert italian_verb("avere", 0, "past") == "avevo"
    assert italian_verb("vedere", 0, "past") == "ho visto"


def test_gerunds_participles_and_commands():
    gerunds = [italian_gerund(verb) for verb in ("parlare", "leggere", "dormire", "bere")]
    assert gerunds == ["parlando", "leggendo", "dormendo", "bevendo"]
    verbs = "parlare vendere dormire leggere scrivere aprire vedere bere correre rompere".split()
    expected = "parlato venduto dormito letto scritto aperto visto bevuto corso rotto".split()
    assert [italian_participle(verb) for verb in verbs] == expected
    commands = [imperative(verb) for verb in ("mangiare", "leggere", "dormire", "pulire")]
    assert commands == ["mangia", "leggi", "dormi", "pulisci"]


def test_participle_agrees_with_the_subject_after_essere_only():
    def past(verb, slot, gender):
        return italian_verb(verb, slot, "past", gender)

    assert past("andare", 2, "f") == "è andata"
    assert past("andare", 2, "m") == "è andato"
    assert past("partire", 5, "f") == "sono partite"
    assert past("arrivare", 3, "m") == "siamo arrivati"
    assert past("alzarsi", 2, "f") == "si è alzata"
    assert past("mangiare", 2, "f") == "ha mangiato"
    assert past("leggere", 5, "f") == "hanno letto"


def test_participle_agrees_with_the_object_pronoun_before_avere():
    seen = [
        italian_verb("vedere", 0, "past", clitic=pronoun) for pronoun in ("lo", "la", "li", "ti")
    ]
    assert seen == ["l'ho visto", "l'ho vista", "li ho visti", "ti ho visto"]
    assert italian_verb("vedere", 0, "present", clitic="la") == "la vedo"


@pytest.mark.parametrize(
    "tense, expected",
    [
        ("present", "mangia"),
        ("past", "ha mangiato"),
        ("future", "mangerà"),
        ("habit", "mangiava"),
        ("progressive", "sta mangiando"),
        ("past_progressive", "stava mangiando"),
        ("can", "può mangiare"),
        ("must", "deve mangiare"),
        ("want", "vuole mangiare"),
        ("would_like", "vorrebbe mangiare"),
    ],
)
def test_italian_tenses(tense, expected):
    assert italian_verb("mangiare", 2, tense) == expected


def test_english_endings():
    plurals = (
        "dogs boxes churches babies boys potatoes children men women mice knives pianos".split()
    )
    singulars = "dog box church baby boy potato child man woman mouse knife piano".split()
    assert [add_s(word) for word in singulars] == plurals
    third = "eats goes watches studies plays washes has".split()
    assert [add_s(word) for word in "eat go watch study play wash have".split()] == third
    pasts = "walked lived studied played stopped opened slept went ate read".split()
    verbs = "walk live study play stop open sleep go eat read".split()
    assert [english_past(verb) for verb in verbs] == pasts
    gerunds = "eating writing running swimming seeing opening forgetting playing".split()
    verbs = "eat write run swim see open forget play".split()
    assert [english_gerund(verb) for verb in verbs] == gerunds
    articles = [english_indefinite(word) for word in ("dog", "old", "egg", "Italian")]
    assert articles == ["a", "an", "an", "an"]
    words = "tall big happy heavy famous".split()
    degrees = ["taller", "bigger", "happier", "heavier", "more famous"]
    assert [english_degree(word, "er") for word in words] == degrees
