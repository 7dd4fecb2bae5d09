"""A linear layer with few weights."""

from typing import Any, Optional

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from . import _ops
from ._cuda import has_room, with_room
from ._errors import InputError
from ._native import native
from ._sparse import Pattern, _Numbered, known
from .torch import spmm_of


class PackedWeights(_Numbered):
    """Weights in 16 bits that do not change, in the order that kernels want."""

    def __init__(self, crow_indices: Tensor, col_indices: Tensor, values: Tensor, shape: tuple, dtype: torch.dtype) -> None:
        code = {torch.float16: 1, torch.bfloat16: 2}.get(dtype)
        if code is None:
            raise InputError(f"weights are packed in float16 or bfloat16, not in {dtype}")
        back = _ops.backend_of(values)
        words = values.detach().to("cpu", dtype).contiguous().view(torch.int16).numpy().tobytes()
        indices = [back.host_bytes(indices, "int64") for indices in (crow_indices, col_indices)]
        self.shape, self.dtype = shape, dtype
        self._key = back.key
        make = _ops.on_its_device(lambda back: native.Packed(back.device, list(shape), code, *indices, words))
        self._handle = make(back)

    def handle_on(self, back: Any) -> tuple:
        """The native weights and their shape, if they are on this backend's device."""
        if self._key is not back.key:
            raise InputError(f"the weights are on {self._key.name}, but x is on {back.device.name}, which is another device; move one")
        return self._handle, self.shape

    def product(self, b: Tensor, bias: Optional[Tensor]) -> Tensor:
        """C = A·B + bias, past PyTorch's dispatcher where that may be."""
        if not is_dynamo_compiling():
            c = self._handle.spmm_direct(b, bias, False)
            if isinstance(c, Tensor):
                return c
        if not b.is_cuda:
            return _ops.packed_spmm(_ops.backend_of(b), self, b, bias, False)
        return torch.ops.lacuna.packed_spmm(b, bias, self.id, self.shape[0], False)


@torch.library.custom_op("lacuna::packed_spmm", mutates_args=(), device_types="cuda")
def _packed_spmm(b: Tensor, bias: Optional[Tensor], packed: int, rows: int, relu: bool) -> Tensor:
    return _ops.packed_spmm(_ops.backend_of(b), known(packed), b, bias, relu)


@_packed_spmm.register_fake
def _(b: Tensor, bias: Optional[Tensor], packed: int, rows: int, relu: bool) -> Tensor:
    return b.new_empty((*b.shape[:-2], rows, b.shape[-1]))


class SparseLinear(torch.nn.Module):
    """y = x·Wᵀ + bias for a sparse W (out_features × in_features), as :class:`torch.nn.Linear` with most weights left out.

    The kernels want features along rows, (in_features, tokens): x is transposed first, unless it is the result of such a layer, and y
    is a transposed view. So layers in a row, with operations by element between them, copy nothing.

    Args:
        crow_indices: Where each row of W starts, and the end of the last.
        col_indices: The column of each weight.
        values: The weights: a parameter of the layer.
        shape: out_features, in_features.
        bias: (out_features,), or none.
    """

    def __init__(
        self, crow_indices: Tensor, col_indices: Tensor, values: Tensor, shape: tuple, bias: Optional[Tensor] = None
    ) -> None:
        super().__init__()
        self.out_features, self.in_features = (int(extent) for extent in shape)
        self.register_buffer("crow_indices", crow_indices.to(torch.int32))
        self.register_buffer("col_indices", col_indices.to(torch.int32))
        if bias is not None and tuple(bias.shape) != (self.out_features,):
            raise InputError(f"the bias has shape {tuple(bias.shape)}, but ({self.out_features},) is expected: one for each row")
        self.values = torch.nn.Parameter(_roomy(values))
        self.bias = None if bias is None else torch.nn.Parameter(bias.detach().clone())
        self._pattern: Optional[Pattern] = None
        #: The type of packed weights, once they are; and on this device these, and the bias in that type.
        self._packed_dtype: Optional[torch.dtype] = None
        self._packed: Optional[tuple] = None

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, sparsity: float) -> "SparseLinear":
        """The layer with the smallest weights left out: a share `sparsity` of them, from 0 to below 1."""
        if not 0 <= sparsity < 1:
            raise InputError(f"the sparsity is {sparsity}, but it must be from 0 to below 1")
        weight = linear.weight.detach()
        kept = max(1, round(weight.numel() * (1 - sparsity)))
        mask = torch.zeros_like(weight, dtype=torch.bool)
        mask.view(-1)[weight.abs().reshape(-1).topk(kept, sorted=False).indices] = True
        lengths = mask.sum(1)
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        columns = mask.nonzero()[:, 1]
        return cls(offsets, columns, weight[mask], tuple(weight.shape), linear.bias)

    def pack(self, dtype: torch.dtype = torch.float16) -> "SparseLinear":
        """Freezes the weights, packed in 16 bits, for inference: faster where there are tensor cores for them. What follows works in
        `dtype`; the weights and the bias no longer train. A layer that is moved or copied is packed anew by its next call."""
        before, self._packed_dtype, self._packed = self._packed_dtype, dtype, None
        try:
            self._packed_weights()
        except Exception:
            self._packed_dtype = before
            raise
        for parameter in self.parameters():
            parameter.requires_grad_(False)
        return self

    def _packed_weights(self) -> tuple:
        """The packed weights, and the bias in their type."""
        if self._packed is None:
            dtype, shape = self._packed_dtype, (self.out_features, self.in_features)
            weights = PackedWeights(self.crow_indices, self.col_indices, self.values, shape, dtype)
            self._packed = weights, None if self.bias is None else self.bias.detach().to(dtype)
        return self._packed

    @property
    def pattern(self) -> Pattern:
        """The pattern of W, made by the first use on a GPU."""
        if self._pattern is None:
            self._make_room()
            self._pattern = Pattern(self.crow_indices, self.col_indices, (self.out_features, self.in_features))
        return self._pattern

    def forward(self, x: Tensor) -> Tensor:
        """y: (…, out_features) for an x of (…, in_features)."""
        if x.shape[-1] != self.in_features:
            raise InputError(f"x has shape {tuple(x.shape)}, but (…, {self.in_features}) is expected")
        b = x.reshape(-1, self.in_features).t().contiguous()
        if self._packed_dtype is not None:
            packed, bias = self._packed_weights()
            c = packed.product(b, bias)
        else:
            c = spmm_of(self.pattern, self.values, b, self.bias, False, False)
        y = c.t()
        return y if x.dim() == 2 else y[0] if x.dim() == 1 else y.unflatten(0, x.shape[:-1])

    def _apply(self, fn: Any, *arguments: Any, **options: Any) -> Any:
        # Another device or type: the pattern is made anew there, and values get room again.
        super()._apply(fn, *arguments, **options)
        self._pattern = self._packed = None
        self._make_room()
        return self

    def _make_room(self) -> None:
        """Copies the values once, where copies or loads of the layer left no memory after them: else each product would."""
        values = self.values.data
        if values.device.type == "cuda" and not has_room(values, None, values.numel(), _stride(values.numel())):
            self.values.data = _roomy(values)

    def __getstate__(self) -> dict:
        # What is of one device is made anew.
        return {**self.__dict__, "_pattern": None, "_packed": None}

    def extra_repr(self) -> str:
        """Sizes, for `repr`."""
        zeros = 1 - self.values.numel() / max(1, self.out_features * self.in_features)
        return f"in_features={self.in_features}, out_features={self.out_features}, zeros={zeros:.0%}, bias={self.bias is not None}"


def _stride(nnz: int) -> int:
    """As many elements as kernels want of `nnz` values, at most: the pattern knows it exactly."""
    return nnz + 24


def _roomy(values: Tensor) -> Tensor:
    """A copy of values with memory after them, so that products need not copy."""
    values = values.detach()
    room = with_room(None, values.numel(), _stride(values.numel()), values.dtype, values.device)
    return room.copy_(values)
