"""Operators with gradients for PyTorch, and layers.

Calls of plain tensors go past PyTorch's dispatcher (:mod:`lacuna._gradients`). For all others each is a custom operator
(`torch.ops.lacuna.*`), which `torch.compile` takes as it is. A pattern, a mask or bags come to it as a number, by which they are found:
whoever compiles or records must keep them; gradients keep theirs. The first call for a pattern and a shape plans, and may wait for
the device and load kernels: run it once before recording a graph.
"""

import sys
from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from . import _gradients, _ops
from ._attention import sparse_attention
from ._cuda import with_room
from ._native import cuda_device
from ._route import as_tensors, is_dispatched, learns
from ._sparse import Pattern, SparseCsr, known

__all__ = ["SparseLinear", "embedding_bag", "sddmm", "sparse_attention", "sparse_softmax", "spmm", "topn"]


def _values_like(like: Tensor, batch: Optional[int], nnz: int, stride: int) -> Tensor:
    """Where values of a pattern would lie, for traces."""
    return with_room(batch, nnz, stride, like.dtype, like.device)


# spmm: C = A·B (+ bias) ------------------------------------------------------------------------------------------------


@torch.library.custom_op("lacuna::spmm", mutates_args=(), device_types="cuda")
def _spmm(values: Tensor, b: Tensor, bias: Optional[Tensor], pattern: int, rows: int, relu: bool, precise: bool) -> Tensor:
    return _ops.spmm(_ops.backend_of(values, b), known(pattern), values, b, bias, relu, precise)


@_spmm.register_fake
def _(values: Tensor, b: Tensor, bias: Optional[Tensor], pattern: int, rows: int, relu: bool, precise: bool) -> Tensor:
    return b.new_empty((*b.shape[:-2], rows, b.shape[-1]))


def _spmm_setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    values, b, _, ctx.pattern, ctx.rows, ctx.relu, ctx.precise = inputs
    ctx.kept = known(ctx.pattern)
    ctx.save_for_backward(values, b, output if ctx.relu else None)


def _spmm_backward(ctx: Any, gradient: Tensor) -> tuple:
    pattern = known(ctx.pattern)
    found = _gradients.spmm_gradients(pattern, ctx.saved_tensors, gradient, ctx.needs_input_grad[:3], ctx.precise)
    return (*found, None, None, None, None)


_spmm.register_autograd(_spmm_backward, setup_context=_spmm_setup)


def spmm(a: SparseCsr, b: Tensor, bias: Optional[Tensor] = None, relu: bool = False, precise: bool = False) -> Tensor:
    """See :func:`lacuna.spmm`. Gradients of A's values, of B and of the bias."""
    return spmm_of(a.pattern, a.values, b, bias, relu, precise)


def spmm_of(pattern: Pattern, values: Tensor, b: Tensor, bias: Optional[Tensor], relu: bool, precise: bool) -> Tensor:
    """The same of a pattern and values."""
    if not is_dynamo_compiling():
        c = pattern._handle.spmm_direct(values, b, bias, relu, precise)
        if c is True:
            return _gradients.learn_spmm(pattern, values, b, bias, relu, precise)
        if c is not None:
            return c
    values, b, bias = as_tensors(values, b, bias)
    if is_dispatched(values, b, bias):
        return torch.ops.lacuna.spmm(values, b, bias, pattern.id, pattern.shape[0], relu, precise)
    if learns(values, b, bias):
        return _gradients.learn_spmm(pattern, values, b, bias, relu, precise)
    return _ops.spmm(_ops.backend_of(values, b), pattern, values, b, bias, relu, precise)


@torch.library.custom_op("lacuna::transpose_values", mutates_args=(), device_types="cuda")
def _transpose_values(values: Tensor, pattern: int, stride: int) -> Tensor:
    return _ops.transpose_values(_ops.backend_of(values), known(pattern), values)


@_transpose_values.register_fake
def _(values: Tensor, pattern: int, stride: int) -> Tensor:
    batch = values.shape[0] if values.dim() == 2 else None
    return _values_like(values, batch, values.shape[-1], stride)


# sddmm: A·Bᵀ at the nonzeros -------------------------------------------------------------------------------------------


@torch.library.custom_op("lacuna::sddmm", mutates_args=(), device_types="cuda")
def _sddmm(a: Tensor, b: Tensor, pattern: int, nnz: int, stride: int, precise: bool) -> Tensor:
    return _ops.sddmm(_ops.backend_of(a, b), known(pattern), a, b, precise)


@_sddmm.register_fake
def _(a: Tensor, b: Tensor, pattern: int, nnz: int, stride: int, precise: bool) -> Tensor:
    return _values_like(a, a.shape[0] if a.dim() == 3 else None, nnz, stride)


def _sddmm_setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    a, b, ctx.pattern, _, _, ctx.precise = inputs
    ctx.kept = known(ctx.pattern)
    ctx.save_for_backward(a, b)


def _sddmm_backward(ctx: Any, gradient: Tensor) -> tuple:
    pattern = known(ctx.pattern)
    found = _gradients.sddmm_gradients(pattern, ctx.saved_tensors, gradient, ctx.needs_input_grad[:2], ctx.precise)
    return (*found, None, None, None, None)


_sddmm.register_autograd(_sddmm_backward, setup_context=_sddmm_setup)


def sddmm(pattern: Pattern, a: Tensor, b: Tensor, precise: bool = False) -> Tensor:
    """The values of :func:`lacuna.sddmm`. Gradients of A and of B."""
    if not is_dynamo_compiling():
        d = pattern._handle.sddmm_direct(a, b, precise)
        if d is True:
            return _gradients.learn_sddmm(pattern, a, b, precise)
        if d is not None:
            return d
    a, b = as_tensors(a, b)
    if is_dispatched(a, b):
        return torch.ops.lacuna.sddmm(a, b, pattern.id, pattern.nnz, pattern.values_stride, precise)
    if learns(a, b):
        return _gradients.learn_sddmm(pattern, a, b, precise)
    return _ops.sddmm(_ops.backend_of(a, b), pattern, a, b, precise)


# softmax of each row ---------------------------------------------------------------------------------------------------


@torch.library.custom_op("lacuna::softmax", mutates_args=(), device_types="cuda")
def _softmax(values: Tensor, pattern: int, stride: int, scale: float) -> Tensor:
    return _ops.softmax(_ops.backend_of(values), known(pattern), values, scale)


@_softmax.register_fake
def _(values: Tensor, pattern: int, stride: int, scale: float) -> Tensor:
    return _values_like(values, values.shape[0] if values.dim() == 2 else None, values.shape[-1], stride)


@torch.library.custom_op("lacuna::softmax_backward", mutates_args=(), device_types="cuda")
def _softmax_gradient(y: Tensor, dy: Tensor, pattern: int, stride: int, scale: float) -> Tensor:
    return _ops.softmax_backward(_ops.backend_of(y, dy), known(pattern), y, dy, scale)


@_softmax_gradient.register_fake
def _(y: Tensor, dy: Tensor, pattern: int, stride: int, scale: float) -> Tensor:
    return _values_like(y, y.shape[0] if y.dim() == 2 else None, y.shape[-1], stride)


def _softmax_setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    _, ctx.pattern, ctx.stride, ctx.scale = inputs
    ctx.kept = known(ctx.pattern)
    ctx.save_for_backward(output)


def _softmax_backward(ctx: Any, gradient: Tensor) -> tuple:
    (y,) = ctx.saved_tensors
    return _gradients.softmax_backward(known(ctx.pattern), y, gradient, ctx.scale), None, None, None


_softmax.register_autograd(_softmax_backward, setup_context=_softmax_setup)


def sparse_softmax(a: SparseCsr, scale: float = 1.0) -> Tensor:
    """The values of :func:`lacuna.sparse_softmax`, with gradients."""
    pattern, values = a.pattern, a.values
    if not is_dynamo_compiling():
        y = pattern._handle.softmax_direct(values, scale)
        if y is True:
            return _gradients.learn_softmax(pattern, values, scale)
        if y is not None:
            return y
    if is_dispatched(values):
        return torch.ops.lacuna.softmax(values, pattern.id, pattern.values_stride, scale)
    if learns(values):
        return _gradients.learn_softmax(pattern, values, scale)
    return _ops.softmax(_ops.backend_of(values), pattern, values, scale)


# few-hot lookup --------------------------------------------------------------------------------------------------------


@torch.library.custom_op("lacuna::embedding_bag", mutates_args=(), device_types="cuda")
def _embedding_bag(table: Tensor, bags: int, count: int) -> Tensor:
    return _ops.embedding_bag(_ops.backend_of(table), known(bags), table)


@_embedding_bag.register_fake
def _(table: Tensor, bags: int, count: int) -> Tensor:
    return table.new_empty((count, table.shape[1]))


@torch.library.custom_op("lacuna::embedding_bag_backward", mutates_args=(), device_types="cuda")
def _embedding_bag_gradient(gradient: Tensor, bags: int, rows: int) -> Tensor:
    return _ops.embedding_bag_backward(_ops.backend_of(gradient), known(bags), gradient)


@_embedding_bag_gradient.register_fake
def _(gradient: Tensor, bags: int, rows: int) -> Tensor:
    return gradient.new_empty((rows, gradient.shape[1]))


def _embedding_bag_setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    table, ctx.bags, _ = inputs
    ctx.kept = known(ctx.bags)
    ctx.rows = table.shape[0]


def _embedding_bag_backward(ctx: Any, gradient: Tensor) -> tuple:
    return torch.ops.lacuna.embedding_bag_backward(gradient.contiguous(), ctx.bags, ctx.rows), None, None


_embedding_bag.register_autograd(_embedding_bag_backward, setup_context=_embedding_bag_setup)


def embedding_bag(table: Tensor, bags: Any) -> Tensor:
    """See :func:`lacuna.embedding_bag`. Gradient of the table, dense; its first call sorts the indices, and waits."""
    if not is_dynamo_compiling():
        out = bags._handle.lookup_direct(table)
        if out is True:
            return _gradients.learn_embedding_bag(bags, table)
        if out is not None:
            return out
    if is_dispatched(table):
        return torch.ops.lacuna.embedding_bag(table, bags.id, bags.sizes[0])
    if learns(table):
        return _gradients.learn_embedding_bag(bags, table)
    return _ops.embedding_bag(_ops.backend_of(table), bags, table)


# softmax and top-N, without gradients ----------------------------------------------------------------------------------


@torch.library.custom_op("lacuna::topn", mutates_args=(), device_types="cuda")
def _topn(logits: Tensor, n: int, output: str, temperature: float) -> Tuple[Tensor, Tensor]:
    return _ops.topn(_ops.backend_of(logits), logits, n, output, temperature)


@_topn.register_fake
def _(logits: Tensor, n: int, output: str, temperature: float) -> Tuple[Tensor, Tensor]:
    size = (logits.shape[0], n)
    return logits.new_empty(size, dtype=torch.float32), logits.new_empty(size, dtype=torch.int32)


def topn(logits: Tensor, n: int, output: str = "probabilities", temperature: float = 1.0) -> Tuple[Tensor, Tensor]:
    """See :func:`lacuna.topn`."""
    is_known = output in _ops.FORMS and type(n) is int and n >= 0
    if is_known and not is_dynamo_compiling() and isinstance(logits, Tensor) and logits.is_cuda:
        found = cuda_device(logits.get_device()).topn_direct(logits, n, _ops.FORMS.index(output), temperature)
        if isinstance(found, tuple):
            return found
    if is_dispatched(logits):
        return torch.ops.lacuna.topn(logits, n, output, temperature)
    return _ops.topn(_ops.backend_of(logits), logits, n, output, temperature)


from ._linear import SparseLinear  # noqa: E402 - layers are made of the operators above

# The package finds this here: an import within a function is nothing for `torch.compile` to trace.
sys.modules[__package__]._torch = sys.modules[__name__]
