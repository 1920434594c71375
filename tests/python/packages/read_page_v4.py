"""rapidocr-onnxruntime: the lines of a page, by the package before rapidocr."""
from package_report import page, report
from rapidocr_onnxruntime import RapidOCR

lines, _ = RapidOCR()(page())
report(texts=[line[1] for line in lines], boxes=[line[0] for line in lines], scores=[float(line[2]) for line in lines])
