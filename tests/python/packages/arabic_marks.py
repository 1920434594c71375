"""text2tashkeel: puts the vowel marks into Arabic text, by recurrent networks with int8 weights."""
from package_report import report
from text2tashkeel import Diacritizer

sentences = ("ذهب الولد الى المدرسة صباحا ثم عاد الى البيت", "بسم الله الرحمن الرحيم",
             "كتب الطالب الدرس في الدفتر")
report(texts=[Diacritizer(model).diacritize(sentence) for sentence in sentences
              for model in ("rawi-ensemble", "rawi-v2-int8", "rawi-v3-int8")])
