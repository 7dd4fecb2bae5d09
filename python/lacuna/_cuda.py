"""PyTorch's tensors on a GPU: by their addresses, on the current stream, with results from PyTorch's allocator."""

from __future__ import annotations

from typing import Any, Optional

import torch

from ._errors import InputError
from ._native import DTYPES, cuda_device
from ._simulate import View

_CODES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
_TYPES = (torch.float32, torch.float16, torch.bfloat16)
#: Bytes of a GPU's memory that are mapped together, at least.
_PAGE = 4096
_devices: dict = {}
_current_device = getattr(torch._C, "_cuda_getDevice", None) or torch.cuda.current_device
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
    lambda index: torch.cuda.current_stream(index).cuda_stream
)


class Cuda:
    """What operators ask of arrays, for tensors on one GPU. Nothing is copied but values without room after them."""

    __slots__ = ("index", "device", "stream", "_held", "_place")

    def __init__(self, index: int) -> None:
        self.index = index
        self.device = cuda_device(index)
        self.stream = _raw_stream(index)
        self._held: list = []
        place = _devices.get(index)
        self._place = place if place is not None else _devices.setdefault(index, torch.device("cuda", index))

    @property
    def key(self) -> Any:
        return self.device

    def call_stream(self) -> tuple:
        """The current stream, and whether a graph is recorded there."""
        return self.stream, torch.cuda.is_current_stream_capturing()

    def guard(self) -> Any:
        """What makes this GPU PyTorch's current one for a while; None where it is."""
        return None if _current_device() == self.index else torch.cuda.device(self.index)

    def _check(self, tensor: Any, what: str) -> Any:
        if not isinstance(tensor, torch.Tensor):
            tensor = from_dlpack(tensor, what)
            self._held.append(tensor)
        device = tensor.device
        if device.type != "cuda" or device.index != self.index:
            raise InputError(f"{what} is on {device}, but cuda:{self.index} is expected, as of the other operands; move it there")
        return tensor

    def dtype(self, tensor: Any, what: str) -> int:
        code = _CODES.get(self._check(tensor, what).dtype)
        if code is None:
            raise InputError(f"{what}: values are {tensor.dtype}, but float32, float16 or bfloat16 is expected")
        return code

    def view(self, tensor: Any, what: str, code: int) -> View:
        tensor = self._check(tensor, what)
        if tensor.dtype != _TYPES[code]:
            raise InputError(f"{what}: values are {tensor.dtype}, but {DTYPES[code]} is expected, as of the other operands")
        return View(tensor.data_ptr(), tensor.shape, tensor.stride(), code)

    def values(self, tensor: Any, what: str, code: int, batch: Optional[int], nnz: int, stride: int) -> int:
        tensor = self._check(tensor, what)
        if tensor.dtype != _TYPES[code]:
            raise InputError(f"{what}: values are {tensor.dtype}, but {DTYPES[code]} is expected, as of the other operands")
        if has_room(tensor, batch, nnz, stride):
            return tensor.data_ptr()
        padded = tensor.new_empty((batch or 1, stride))
        padded[:, :nnz].copy_(tensor if batch is not None else tensor.unsqueeze(0))
        self._held.append(padded)
        return padded.data_ptr()

    def empty(self, shape: tuple, code: int, like: Any) -> tuple:
        tensor = torch.empty(shape, dtype=_TYPES[code], device=self._place)
        return tensor, View(tensor.data_ptr(), tensor.shape, tensor.stride(), code)

    def empty_indices(self, shape: tuple, like: Any) -> tuple:
        tensor = torch.empty(shape, dtype=torch.int32, device=self._place)
        return tensor, tensor.data_ptr()

    def empty_values(self, batch: Optional[int], nnz: int, stride: int, code: int, like: Any) -> tuple:
        values = with_room(batch, nnz, stride, _TYPES[code], self._place)
        return values, values.data_ptr()

    def result(self, room: Any) -> Any:
        return room

    values_result = result

    def indices(self, tensor: Any, what: str) -> tuple:
        tensor = self._check(tensor, what)
        if tensor.dtype not in (torch.int32, torch.int64) or tensor.dim() != 1:
            raise InputError(f"{what}: a 1-D tensor of int32 or int64 is expected, got {tensor.dim()}-D of {tensor.dtype}")
        tensor = tensor.contiguous()
        self._held.append(tensor)
        return tensor.data_ptr(), tensor.numel(), tensor.element_size() * 8

    def arange(self, count: int) -> torch.Tensor:
        """0, 1, … in 64 bits."""
        return torch.arange(count, device=self._place)

    def float32(self, numbers: torch.Tensor) -> torch.Tensor:
        """The numbers in float32."""
        return numbers.to(torch.float32)

    def int64(self, numbers: torch.Tensor) -> torch.Tensor:
        """The numbers in integers of 64 bits."""
        return numbers.to(torch.int64)

    def row_offsets(self, rows: torch.Tensor, count: int) -> torch.Tensor:
        """Where each of `count` rows starts, and the end of the last, of the row of each nonzero."""
        return torch.cat((rows.new_zeros(1), torch.bincount(rows, minlength=count).cumsum(0)))

    def placed(self, array: Any) -> torch.Tensor:
        """The array, or a copy of it, on this GPU."""
        return torch.as_tensor(array).to(self._place)

    def with_end(self, offsets: Any, end: int) -> torch.Tensor:
        """The offsets, and the end of the last."""
        offsets = self._check(offsets, "offsets").flatten()
        return torch.cat((offsets, offsets.new_full((1,), end)))

    def host_bytes(self, tensor: Any, dtype: str) -> bytes:
        return torch.as_tensor(tensor).detach().to("cpu", getattr(torch, dtype)).contiguous().numpy().tobytes()


def has_room(tensor: torch.Tensor, batch: Optional[int], nnz: int, stride: int) -> bool:
    """Whether values lie as kernels read them: aligned, in a row, and with memory after each matrix's last: theirs, or of the same page,
    as pages are there or not as a whole. What is read there is not used."""
    if nnz > 1 and tensor.stride(-1) != 1:
        return False
    if batch is not None and batch > 1 and tensor.stride(0) != stride:
        return False
    address, size, count = tensor.data_ptr(), tensor.element_size(), (batch or 1) * stride
    if address % 16 != 0:
        return False
    page_of = lambda elements: (address + elements * size - 1) // _PAGE
    if nnz > 0 and page_of(count - stride + nnz) == page_of(count):
        return True
    return tensor.untyped_storage().nbytes() // size - tensor.storage_offset() >= count


def with_room(batch: Optional[int], nnz: int, stride: int, dtype: Any, device: Any) -> torch.Tensor:
    """Room for values, with some after them: what need not be copied."""
    base = torch.empty((batch or 1) * stride, dtype=dtype, device=device)
    return base.as_strided((nnz,), (1,)) if batch is None else base.as_strided((batch, nnz), (stride, 1))


def from_dlpack(array: Any, what: str) -> torch.Tensor:
    """A tensor of the same memory."""
    try:
        return torch.from_dlpack(array)
    except Exception as error:
        raise InputError(
            f"{what}: a PyTorch tensor, or an array with __dlpack__, is expected, got {type(array).__name__}: {error}"
        ) from error
