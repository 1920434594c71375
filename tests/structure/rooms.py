"""What each room of the house may include, besides itself. The whole list: a new arrow is a line here, and
a line in docs/architecture.md. `x/*` stands for each folder of x; these do not know each other."""

ROOMS = {
    # floor 1
    "base": "",
    # floor 2
    "tensor": "base",
    "dispatch": "base",
    # floor 3
    "program": "base tensor",
    # floor 4
    "onnx": "base tensor program",
    "device": "base tensor",
    # floor 5
    "lanes": "base tensor dispatch device",
    # floor 6
    "drivers/chips": "base tensor device",
    "drivers/*": "base tensor device drivers/chips",
    "runtime": "base tensor dispatch program onnx device",
    # floor 7
    "session": "base tensor dispatch program device runtime",
    "scheduler": "base tensor dispatch device runtime",
    # floor 8
    "edge": "base device runtime",
    # floor 9
    "adapters/rknn": "base tensor program onnx device runtime edge",
    "adapters/qaic": "base tensor dispatch program device runtime edge",
    # A client of the RKNN C API, which it opens at run time: it includes nothing of the house.
    "adapters/ggml": "",
    # The gate to the interpreter, for every Python module.
    "adapters/interpreter": "",
    "adapters/python": "base tensor program onnx device runtime session scheduler edge adapters/interpreter",
    # A client of the object runtime's function table, which it finds at run time: nothing of the house but the gate.
    "adapters/qaic_python": "adapters/interpreter",
    "adapters/*": "base tensor program onnx device runtime session scheduler edge",
    # floor 10
    "apps/common": "base tensor",
    "apps/*": "base tensor program onnx device runtime session scheduler edge apps/common",
}
