"""ndonnx: arrays of strings, dates and missing values; it computes each result by a session of its own."""
import ndonnx
import numpy as np
from package_report import report

words = ndonnx.asarray(np.array(["lane", "core", "lane", "npu", "größe"]))
days = ndonnx.asarray(np.array(["2026-11-23", "NaT", "2026-12-24"], "datetime64[s]"))
gaps = ndonnx.asarray(np.ma.masked_array([1.5, 2.5, 3.5], [False, True, False]))
values = [words + "-0", words == "lane", ndonnx.astype(gaps, ndonnx.nutf8), ndonnx.isnan(days),
          ndonnx.sort(ndonnx.asarray([3, 1, 2]))]
report(texts=[str(value) for value in values])
