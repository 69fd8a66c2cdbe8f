"""Scripts of languages, and whether they have blanks between words."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

# Scripts without blanks between words, by the first word of the Unicode names of their letters.
UNSPACED = {
    "CJK": "Han", "BOPOMOFO": "Han", "HIRAGANA": "Japanese", "KATAKANA": "Japanese",
    "THAI": "Thai", "LAO": "Lao", "KHMER": "Khmer", "MYANMAR": "Myanmar", "TIBETAN": "Tibetan",
    "JAVANESE": "Javanese", "BALINESE": "Balinese", "TAI": "Tai", "NEW": "Tai",
}  # fmt: skip
# The same scripts by language: ISO 639-1 and 639-3 codes, with the two of 639-2 that differ.
_LANGUAGES = {
    "Han": "zh zho chi cmn yue wuu hak nan gan hsn cdo cjy cnp lzh",
    "Japanese": "ja jpn", "Korean": "ko kor", "Thai": "th tha nod sou", "Lao": "lo lao",
    "Khmer": "km khm", "Myanmar": "my mya bur shn mnw ksw rki", "Tibetan": "bo bod tib dz dzo",
    "Tai": "khb tdd",
}  # fmt: skip
# The same by ISO 15924 code, which follows the language in FLORES codes such as zho_Hans.
_SUBTAGS = {
    "Han": "hans hant hani bopo", "Japanese": "jpan hira kana hrkt", "Korean": "kore hang",
    "Thai": "thai", "Lao": "laoo", "Khmer": "khmr", "Myanmar": "mymr", "Tibetan": "tibt",
    "Javanese": "java", "Balinese": "bali", "Tai": "lana tale talu",
}  # fmt: skip
_OF_LANGUAGE = {code: script for script, codes in _LANGUAGES.items() for code in codes.split()}
_OF_SUBTAG = {code: script for script, codes in _SUBTAGS.items() for code in codes.split()}
# The share of letters in the script of the language code from which the code decides. Chinese text
# contains Latin names; English text with a tenth of Chinese letters would be unusual.
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class Writing:
    """The script of some texts.

    `script` is a name such as Thai, Han or Japanese, Korean for Hangul, and "" for every other
    script with blanks between words.
    """

    script: str
    decided_by: str  # "code" (of the language) or "references" (the script of most letters)

    @property
    def has_spaces(self) -> bool:
        """Whether words are separated by blanks."""
        return self.script not in UNSPACED.values()


def writing_of(lang: str, texts: Iterable[str]) -> Writing:
    """Return the script of texts in a language.

    The language code decides if at least a tenth of the letters are in its script, or if there are
    no letters. Otherwise the script of most letters decides.
    """
    expected = _script_of_code(lang)
    counts = _letters_by_script(texts)
    if expected == "Japanese":  # a short text may have no kana
        counts["Japanese"] += counts.pop("Han", 0)
    script = expected
    if counts and not (expected and counts[expected] >= _LEAST_SHARE * counts.total()):
        script = counts.most_common(1)[0][0]
    return Writing(script, "code" if script == expected else "references")


def _script_of_code(lang: str) -> str:
    language, *subtags = re.split("[-_]", lang.lower())
    scripts = [subtag for subtag in subtags if re.fullmatch("[a-z]{4}", subtag)]
    return _OF_SUBTAG.get(scripts[0], "") if scripts else _OF_LANGUAGE.get(language, "")


def _letters_by_script(texts: Iterable[str]) -> Counter:
    characters = Counter()
    for text in texts:
        characters.update(text)
    counts = Counter()
    for character, count in characters.items():
        if unicodedata.category(character).startswith("L"):
            name = unicodedata.name(character, "").removeprefix("HALFWIDTH ").split(" ")[0]
            name = name.partition("-")[0]
            counts["Korean" if name == "HANGUL" else UNSPACED.get(name, "")] += count
    # Japanese text mixes Chinese characters and kana. A quotation is too short to count.
    if counts["Japanese"] > _LEAST_SHARE * counts["Han"]:
        counts["Japanese"] += counts.pop("Han", 0)
    return +counts
