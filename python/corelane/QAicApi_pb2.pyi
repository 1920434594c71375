from ._qaic.QAicApi_pb2 import *
