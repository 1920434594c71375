"""magika: what a file is, told from its bytes."""
from magika import Magika
from package_report import report

contents = (b"import os\nprint(os.getcwd())\n" * 9, b'{"a": [1, 2, 3]}' * 9,
            b"#include <stdio.h>\nint main(void) { return 0; }\n" * 5,
            b"<!DOCTYPE html><html><body><p>text</p></body></html>" * 3)
engine = Magika()
found = [engine.identify_bytes(content) for content in contents]
report(texts=[str(r.output.label) for r in found], scores=[float(r.score) for r in found])
