"""The code that protoc makes of QAicApi.proto; corelane.QAicApi_pb2 has its names."""
