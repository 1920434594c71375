"""scikit-onnxruntime: scikit-learn's text classifier as a transformer: strings in, labels and dictionaries out."""
import numpy as np
from package_report import report
from skl2onnx import to_onnx
from skl2onnx.common.data_types import StringTensorType
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from skonnxrt.sklapi import OnnxTransformer

seen = np.array(["a good film", "a bad plot", "good plot, good music", "bad and bad again", "dull film", "great music"])
model = make_pipeline(TfidfVectorizer(lowercase=False), LogisticRegression())  # lowercase asks for a locale.
model.fit(seen, ["yes", "no", "yes", "no", "no", "yes"])
network = to_onnx(model, initial_types=[("text", StringTensorType([None]))], target_opset=18)
table = OnnxTransformer(network.SerializeToString()).fit().transform(
    np.array(["good music", "bad film", "größer", "", "a great plot"]))
report(texts=list(table["output_label"]),
       scores=[list(chances.values()) for chances in table["output_probability"]])
