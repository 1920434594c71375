"""The API of `rknn.api.RKNN` over the compiler and a session: from an ONNX model to a program file, with
int8 calibration, and its evaluation on the simulator.

    from corelane.rknn_toolkit import RKNN
    rknn = RKNN()
    rknn.config(mean_values=[[123.7, 116.3, 103.5]], std_values=[[58.4, 57.1, 57.4]])
    rknn.load_onnx("model.onnx")
    rknn.build(do_quantization=True, dataset="dataset.txt")
    rknn.export_rknn("model.rknn")

`corelane.alias.install("rknn")` makes it importable as `rknn.api`. docs/apis/rknn-python.md lists what
differs from the original.
"""

from ._toolkit import RKNN

__all__ = ["RKNN"]
