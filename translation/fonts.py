"""Fonts of this machine that have the characters of a picture."""

from collections.abc import Iterable, Iterator

from translation.trained import note

BOX = "□"  # matplotlib's own font has it
_family_of: dict[str, str | None] = {}  # of each character looked for so far; None: no font has it
_told: list[bool] = []  # once a process is enough


def drawable(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return texts with a box for each character that no font has, and the families to draw with.

    The machine's fonts are searched only for what matplotlib's default font lacks.
    """
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties, findfont

    texts = list(texts)
    wanted = set("".join(texts)) - _characters(findfont(FontProperties()))
    _search(wanted - _family_of.keys())
    missing = {mark for mark in wanted if _family_of[mark] is None}
    if missing and not _told:
        _told.append(True)
        note(
            f"no font here has some characters of the attention pictures, {min(missing)} for one; "
            f"{BOX} stands for them. A font such as Noto Sans CJK would have them"
        )
    boxes = str.maketrans(dict.fromkeys(missing, BOX))
    families = {_family_of[mark] for mark in wanted - missing}
    return [text.translate(boxes) for text in texts], [*rcParams["font.family"], *sorted(families)]


def _search(wanted: set[str]) -> None:
    """Note a family for each character, the one that has most of them first."""
    if not wanted:
        return
    found = {family: wanted & _characters(path) for family, path in _installed()}
    for family, marks in sorted(found.items(), key=lambda each: (-len(each[1]), each[0])):
        for mark in marks:
            _family_of.setdefault(mark, family)
    for mark in wanted:
        _family_of.setdefault(mark, None)


def _installed() -> Iterator[tuple[str, str]]:
    """Yield each family that has an upright regular font, with the path of that."""
    from matplotlib.font_manager import fontManager

    for font in fontManager.ttflist:
        is_regular = font.style == "normal" and font.weight in (400, "normal", "regular")
        if is_regular and "Last Resort" not in font.name:  # it has a placeholder for everything
            yield font.name, font.fname


def _characters(path: str) -> set[str]:
    from matplotlib.ft2font import FT2Font

    try:
        return set(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # a damaged font has none
        return set()
