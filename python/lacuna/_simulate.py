"""CPU arrays on the simulator."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterator, NamedTuple, Optional

from ._errors import Error, InputError
from ._native import DTYPES, native

_local = threading.local()


@contextlib.contextmanager
def simulate() -> Iterator[None]:
    """Within this, operators take CPU arrays (NumPy's, or PyTorch's CPU tensors), and run the GPU's kernels on the simulator.

    It checks every access that a kernel makes, and is slow: for tests and for machines without a GPU. Patterns belong to the
    block that they were made in.

        with lacuna.simulate():
            c = lacuna.spmm(a, b)
    """
    before = getattr(_local, "backend", None)
    _local.backend = Simulated(native.Device.simulator())
    try:
        yield
    finally:
        _local.backend = before


def current() -> "Simulated":
    """The simulator of the block around, or an error that says that there is none."""
    backend = getattr(_local, "backend", None)
    if backend is None:
        raise Error(
            "the arrays are on the CPU, but Lacuna's kernels run on NVIDIA GPUs; move them there (x.cuda()), or run on the "
            "simulator, which is slow: `with lacuna.simulate():`"
        )
    return backend


class View(NamedTuple):
    """Where an array is: address, shape, strides in elements, and the number of its type in :data:`DTYPES`."""

    address: int
    shape: tuple
    strides: tuple
    code: int


class Simulated:
    """What operators ask of arrays, for those on the CPU: they are copied to the simulator, and results from it."""

    stream = 0

    def call_stream(self) -> tuple:
        """The stream, and whether a graph is recorded there."""
        return self.stream, False

    def __init__(self, device: Any) -> None:
        self.device = device
        #: What the call under way has uploaded. It goes with the backend of the call.
        self._held: list = []

    def __call__(self) -> "Simulated":
        """The same, for one call."""
        return Simulated(self.device)

    @property
    def key(self) -> Any:
        """What patterns of this device are known by."""
        return self.device

    def guard(self) -> Any:
        """None: there is one simulator."""
        return None

    def dtype(self, array: Any, what: str) -> int:
        name = "bfloat16" if _is_torch_bfloat16(array) else _numpy(array).dtype.name
        if name not in DTYPES:
            raise InputError(f"{what}: values are {name}, but float32, float16 or bfloat16 is expected")
        return DTYPES.index(name)

    def _of_type(self, array: Any, what: str, code: int) -> Any:
        """The array as NumPy's, if its values are of this type."""
        converted = _numpy(array)  # once: a capsule is taken so
        found = self.dtype(array if _is_torch_bfloat16(array) else converted, what)
        if found != code:
            raise InputError(f"{what}: values are {DTYPES[found]}, but {DTYPES[code]} is expected, as of the other operands")
        return converted

    def view(self, array: Any, what: str, code: int) -> View:
        """The array's copy, with the strides that it has."""
        array = self._of_type(array, what, code)
        size = array.dtype.itemsize
        strides = tuple(stride // size for stride in array.strides)
        if any(stride < 0 for stride in strides):
            raise InputError(f"{what}: strides {strides} are negative; pass a copy (numpy.ascontiguousarray)")
        # All that the strides reach, with the gaps.
        import numpy

        reach = 1 + sum((extent - 1) * stride for extent, stride in zip(array.shape, strides)) if array.size else 0
        flat = numpy.lib.stride_tricks.as_strided(array, (reach,), (size,)) if reach else array.reshape(-1)
        return View(self.upload(flat.tobytes()), array.shape, strides, code)

    def upload(self, contents: bytes) -> int:
        memory = self.device.memory(len(contents))
        memory.upload(contents)
        self._held.append(memory)
        return memory.address

    def values(self, array: Any, what: str, code: int, batch: Optional[int], nnz: int, stride: int) -> int:
        """The address of values with room after them."""
        import numpy

        array = self._of_type(array, what, code)
        padded = numpy.zeros((batch or 1, stride), array.dtype)
        padded[:, :nnz] = array.reshape(batch or 1, nnz)
        return self.upload(padded.tobytes())

    def empty(self, shape: tuple, code: int, like: Any) -> tuple:
        """Room for a result, and its view. `result` makes an array of it."""
        import numpy

        dtype = _dtype(DTYPES[code], like)
        count = int(numpy.prod(shape, dtype=numpy.int64))
        memory = self.device.memory(count * dtype.itemsize)
        strides = tuple(int(numpy.prod(shape[axis + 1 :], dtype=numpy.int64)) for axis in range(len(shape)))
        room = (memory, shape, dtype, like)
        return room, View(memory.address, shape, strides, code)

    def empty_indices(self, shape: tuple, like: Any) -> tuple:
        import numpy

        count = int(numpy.prod(shape, dtype=numpy.int64))
        memory = self.device.memory(count * 4)
        return (memory, shape, numpy.dtype("int32"), like), memory.address

    def empty_values(self, batch: Optional[int], nnz: int, stride: int, code: int, like: Any) -> tuple:
        """Room for values, and its address."""
        dtype = _dtype(DTYPES[code], like)
        memory = self.device.memory((batch or 1) * stride * dtype.itemsize)
        return (memory, (batch, nnz, stride), dtype, like), memory.address

    def result(self, room: tuple) -> Any:
        memory, shape, dtype, like = room
        import numpy

        count = int(numpy.prod(shape, dtype=numpy.int64))
        return _as(numpy.frombuffer(memory.download(count * dtype.itemsize), dtype).reshape(shape).copy(), like)

    def values_result(self, room: tuple) -> Any:
        memory, (batch, nnz, stride), dtype, like = room
        import numpy

        count = (batch or 1) * stride
        padded = numpy.frombuffer(memory.download(count * dtype.itemsize), dtype).reshape(batch or 1, stride)
        values = padded[:, :nnz].copy()
        return _as(values if batch is not None else values[0], like)

    def indices(self, array: Any, what: str) -> tuple:
        """The address of an index array, its length and its bits."""
        array = _numpy(array)
        if array.dtype.name not in ("int32", "int64") or array.ndim != 1:
            raise InputError(f"{what}: a 1-D array of int32 or int64 is expected, got {array.ndim}-D of {array.dtype.name}")
        return self.upload(array.tobytes()), array.size, array.dtype.itemsize * 8

    def arange(self, count: int) -> Any:
        """0, 1, … in 64 bits."""
        import numpy

        return numpy.arange(count, dtype=numpy.int64)

    def float32(self, numbers: Any) -> Any:
        """The numbers in float32."""
        return numbers.astype("float32")

    def int64(self, numbers: Any) -> Any:
        """The numbers in integers of 64 bits."""
        return numbers.astype("int64")

    def row_offsets(self, rows: Any, count: int) -> Any:
        """Where each of `count` rows starts, and the end of the last, of the row of each nonzero."""
        import numpy

        return numpy.concatenate(([0], numpy.bincount(rows, minlength=count).cumsum())).astype("int64")

    def with_end(self, offsets: Any, end: int) -> Any:
        """The offsets, and the end of the last."""
        import numpy

        offsets = _numpy(offsets)
        return numpy.append(offsets, offsets.dtype.type(end))

    def host_bytes(self, array: Any, dtype: str) -> bytes:
        return _numpy(array).astype(dtype).tobytes()


def _is_torch_bfloat16(array: Any) -> bool:
    return str(getattr(array, "dtype", None)) == "torch.bfloat16"


def _numpy(array: Any) -> Any:
    """A NumPy array of the same elements, without a copy. PyTorch's bfloat16, which NumPy has not, comes as integers of the same bits."""
    import numpy

    if isinstance(array, numpy.ndarray):
        return array
    if type(array).__module__.split(".")[0] == "torch":
        array = array.detach()
        if _is_torch_bfloat16(array):
            import torch

            array = array.view(torch.int16)
        return array.numpy()
    try:
        return numpy.from_dlpack(array)
    except Exception as error:
        raise InputError(f"a NumPy array, or one with __dlpack__ on the CPU, is expected, got {type(array).__name__}: {error}") from error


def _as(array: Any, like: Any) -> Any:
    """A result as an array of the kind that the operands are."""
    if type(like).__module__.split(".")[0] == "torch":
        import torch

        tensor = torch.from_numpy(array)
        return tensor.view(torch.bfloat16) if tensor.dtype == torch.int16 else tensor
    return array


def _dtype(name: str, like: Any) -> Any:
    import numpy

    if name == "bfloat16" and _is_torch_bfloat16(like):
        return numpy.dtype("int16")
    if name == "bfloat16":
        import ml_dtypes  # the only bfloat16 that NumPy has; an operand was one

        return numpy.dtype(ml_dtypes.bfloat16)
    return numpy.dtype(name)
