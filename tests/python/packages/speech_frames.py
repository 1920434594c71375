"""silero-vad's model for 16 kHz with its open dimensions fixed, as engine=openvino needs it."""
import importlib.util
from pathlib import Path

import numpy as np
import onnxruntime
from package_report import report, sound

found = importlib.util.find_spec("silero_vad")  # The package itself needs torch; its model does not.
if found is None or found.origin is None:
    raise ImportError("silero-vad is not installed; requirements/models.txt names it")
path = str(Path(found.origin).parent / "data" / "silero_vad_16k_op15.onnx")
options = onnxruntime.SessionOptions()
options.add_free_dimension_override_by_name("batch", 1)
options.add_free_dimension_override_by_name("sequence", 576)
session = onnxruntime.InferenceSession(path, options)
state, heard, scores = np.zeros((2, 1, 128), np.float32), sound(2.0), []
for start in range(0, len(heard) - 576, 512):
    feed = {"input": heard[None, start:start + 576], "state": state, "sr": np.array(16000)}
    score, state = session.run(None, feed)
    scores.append(float(score[0, 0]))
report(scores=scores)
