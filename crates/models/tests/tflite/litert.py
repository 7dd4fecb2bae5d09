"""Runs TFLite files by LiteRT, for the test of real networks: `python litert.py FOLDER`, with ai-edge-litert and numpy.

Beside each file FOLDER gets `<file>.litert`: the outputs, one after another in the file's order, as little-endian float32.
"""

import pathlib
import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

# The pruned ones, and others, for operators that those have not.
FILES = [
    "pose_detection.tflite",
    "face_detection_full_range_sparse.tflite",
    "palm_detection_full.tflite",
    "face_landmark.tflite",
    "iris_landmark.tflite",
    "face_detection_short_range.tflite",
]

for path in (pathlib.Path(sys.argv[1]) / name for name in FILES):
    if not path.exists():
        print(path.name, "is not there")
        continue
    # The reference kernels: plain loops in float32, without XNNPACK.
    resolver = OpResolverType.BUILTIN_REF
    interpreter = Interpreter(str(path), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    [given] = interpreter.get_input_details()
    # Numbers from -1 to 1 that any program can make, rows x columns x channels.
    numbers = np.arange(np.prod(given["shape"]), dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(8)
    pixels = (numbers.astype(np.float32) / 2**23 - 1).astype(np.float32)
    interpreter.set_tensor(given["index"], pixels.reshape(given["shape"]))
    interpreter.invoke()
    outputs = [interpreter.get_tensor(output["index"]) for output in interpreter.get_output_details()]
    values = np.concatenate([output.ravel() for output in outputs]).astype("<f4")
    values.tofile(f"{path}.litert")
    print(path.name, [output.shape for output in outputs], "greatest", np.abs(values).max())
