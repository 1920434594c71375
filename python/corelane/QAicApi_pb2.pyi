from ._qaic.QAicApi_pb2 import *  # noqa: F403
