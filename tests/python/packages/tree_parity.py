"""leafparity: where a tree of scikit-learn and its converted form disagree. It runs the converted tree, and parts of it
that it cuts out, at every threshold, and both must do what it has worked out; else it gives up."""
import tempfile

import numpy as np
from leafparity import analyze
from package_report import report
from skl2onnx import to_onnx
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

rows = np.random.default_rng(1).normal(size=(200, 4))
model = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=5, random_state=1))
model.fit(rows, 3 * rows[:, 0] + rows[:, 1]**2)
with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
    file.write(to_onnx(model, rows[:1].astype(np.float32), target_opset=18).SerializeToString())
    file.flush()
    found = analyze(model, file.name, worst_case_seconds=1)
report(texts=[found.verdict["status"], found.verdict["distinct_problems"]],
       scores=[found.verdict["max_raw_difference_found"]])
