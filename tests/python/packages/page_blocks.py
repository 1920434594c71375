"""rapid-layout: the blocks of a page and what each is."""
from package_report import page, report
from rapid_layout import RapidLayout

result = RapidLayout()(page())
report(texts=list(result.class_names), boxes=result.boxes, scores=result.scores)
