"""The module as onnxruntime shapes it: sessions, values, bindings, options and their wording."""
