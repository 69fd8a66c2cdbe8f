"""Finding fonts on this machine for the characters of a picture."""

from collections.abc import Iterable, Iterator

from console import print_note

BOX = "□"  # matplotlib's own font has it
_family_of: dict[str, str | None] = {}  # of each character searched so far; None if no font has it
_noted: list[bool] = []  # whether the note has been printed in this process


def drawable(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the texts, with a box for each character that no font has, and the font families.

    Only characters that matplotlib's default font lacks are searched in the machine's fonts.
    """
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties, findfont

    texts = list(texts)
    wanted = set("".join(texts)) - _characters(findfont(FontProperties()))
    _search(wanted - _family_of.keys())
    missing = {mark for mark in wanted if _family_of[mark] is None}
    if missing and not _noted:
        _noted.append(True)
        print_note(
            f"no font on this machine has some characters of the picture, such as {min(missing)}: "
            f"they are drawn as {BOX}; install a font that has them, such as Noto Sans CJK"
        )
    boxes = str.maketrans(dict.fromkeys(missing, BOX))
    families = {_family_of[mark] for mark in wanted - missing}
    return [text.translate(boxes) for text in texts], [*rcParams["font.family"], *sorted(families)]


def _search(wanted: set[str]) -> None:
    """Choose a family for each character, preferring families that have many of them."""
    if not wanted:
        return
    found = {family: wanted & _characters(path) for family, path in _installed()}
    for family, marks in sorted(found.items(), key=lambda each: (-len(each[1]), each[0])):
        for mark in marks:
            _family_of.setdefault(mark, family)
    for mark in wanted:
        _family_of.setdefault(mark, None)


def _installed() -> Iterator[tuple[str, str]]:
    """Yield each family with an upright regular font, and the path of that font."""
    from matplotlib.font_manager import fontManager

    for font in fontManager.ttflist:
        is_regular = font.style == "normal" and font.weight in (400, "normal", "regular")
        if is_regular and "Last Resort" not in font.name:  # a placeholder for every character
            yield font.name, font.fname


def _characters(path: str) -> set[str]:
    from matplotlib.ft2font import FT2Font

    try:
        return set(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # a damaged font has none
        return set()
