"""Public weights out of packages of registries, as files in ONNX."""
