"""ndonnx: the different strings of an array, how often and where; their network holds the strings as a constant."""
import ndonnx
import numpy as np
from package_report import report

found = ndonnx.unique_all(ndonnx.asarray(np.array(["lane", "core", "lane", "npu", "größe"])))
report(texts=[str(part) for part in found])
