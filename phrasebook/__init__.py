"""The built-in English-Italian corpus: simple sentences written by rules, for training offline.

The Italian of a sentence depends on its English alone. Where Italian must choose and English does
not say, one convention holds:

- `you` is tu and `you all` is voi. I, you, we, you all and they are masculine where a word agrees.
- I, you, we and you all are not written as subjects. He, she and they are (lui, lei, loro), except
  in questions that begin with a question word.
- The past simple is the passato prossimo, but the imperfect of be, have, know, love, live and want.
  `used to` is the imperfect. `is sleeping` is sta dormendo, `was sleeping` is stava dormendo.
- An adjective has one place: before its noun if it is in `BEFORE` of `lexicon.py`, else after it.
- `in the kitchen` is in cucina; it is nella cucina with an adjective or another determiner.
"""
