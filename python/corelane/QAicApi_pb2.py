"""The descriptor of inputs and outputs: `IoDesc` and the names of its schema, include/qaic/QAicApi.proto.

    iodesc = QAicApi_pb2.IoDesc()
    iodesc.ParseFromString(qpc.getIoDescriptor()[1])

Needs the package protobuf, which nothing else of Corelane does.
"""
try:
    from ._qaic.QAicApi_pb2 import *  # noqa: F401, F403
    from ._qaic.QAicApi_pb2 import DESCRIPTOR  # noqa: F401
except ModuleNotFoundError as missing:
    if not (missing.name or "").startswith("google"):
        raise
    raise ImportError("corelane.QAicApi_pb2 needs the package protobuf, which is not installed; "
                      "`pip install protobuf`") from missing
