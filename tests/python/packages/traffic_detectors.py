"""atspm-detector: phase, lane and purpose of each detector of a crossing, by tree ensembles in f64 and networks."""
from pathlib import Path

import atspm_detector
import numpy as np
from package_report import report

found = atspm_detector.predict(str(Path(atspm_detector.__file__).parent / "data" / "sample_events.parquet"))
numbers = found.select_dtypes("number").to_numpy(dtype=float, na_value=np.nan)
report(texts=[str(text) for text in found["function_pred"]], scores=numbers[np.isfinite(numbers)])
