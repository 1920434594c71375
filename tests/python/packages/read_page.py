"""rapidocr: finds and reads the lines of a page."""
from package_report import page, report
from rapidocr import RapidOCR

result = RapidOCR()(page())
report(texts=list(result.txts), boxes=result.boxes, scores=list(result.scores))
