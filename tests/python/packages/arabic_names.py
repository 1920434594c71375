"""arabic-name-romanizer: names in Latin letters, by an encoder and a decoder with attention, step by step."""
from arabic_name_romanizer import Transliterator
from package_report import report

names = ("محمد صلاح", "حبيبة عطيفي", "شريف كنوج", "لطفية بوعزري", "زقزوقي")
engine = Transliterator()
found = [name for text in names for country in (None, "DZ", "IR")
         for name in engine.transliterate(text, top_k=3, country=country)]
report(texts=[str(name.text) for name in found], scores=[float(name.score) for name in found])
