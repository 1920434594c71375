"""pyfrspell: lemmas and forms of French words, by int8 recurrent networks that write a letter at a time."""
from package_report import report
from pyfrspell import FrSpell

engine = FrSpell()
found = [engine.lemma(word) for word in ("mangeons", "chevaux", "belles", "finissaient")]
found += [engine.verb_derive("manger", "1P", "IND", "PRES"), engine.noun_derive("cheval", "3P")]
report(texts=[answer.get("output", answer["lemma"]) for answer in found],
       scores=[answer["confidence"] for answer in found])
