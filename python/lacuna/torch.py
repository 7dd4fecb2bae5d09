"""Operators with gradients for PyTorch, and layers.

Each is a custom operator (`torch.ops.lacuna.*`), so that `torch.compile` and CUDA graphs take it as it is. A pattern, a mask or bags
come to it as a number, by which they are found: whoever compiles or records must keep them; gradients keep theirs. The first call for a pattern and a shape
plans, and may wait for the device and load kernels: run it once before recording a graph.
"""

import sys
from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from . import _ops
from ._cuda import Cuda, with_room
from ._linear import SparseLinear
from ._sparse import Mask, Pattern, SparseCsr, known

__all__ = ["SparseLinear", "embedding_bag", "sddmm", "sparse_attention", "sparse_softmax", "spmm", "topn"]


def _is_plain(*tensors: Any) -> bool:
    """Whether nothing but the result is wanted, so that the dispatcher can be left out: no gradients, no trace, no subclass."""
    if torch.compiler.is_compiling():
        return False
    learns = torch.is_grad_enabled()
    for tensor in tensors:
        if tensor is not None and (type(tensor) not in _PLAIN or (learns and tensor.requires_grad)):
            return False
    return True


_PLAIN = (Tensor, torch.nn.Parameter)


def _in_rows(tensor: Tensor) -> Tensor:
    """The tensor, or a copy where its rows are not in one piece: gradients come as they like."""
    return tensor if tensor.stride(-1) == 1 and tensor.stride(-2) >= tensor.shape[-1] else tensor.contiguous()


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
    values, b, output = ctx.saved_tensors
    if ctx.relu:
        gradient = gradient * (output > 0)
    gradient = _in_rows(gradient)
    pattern = known(ctx.pattern)
    d_values = d_b = d_bias = None
    if ctx.needs_input_grad[0]:
        d_values = torch.ops.lacuna.sddmm(gradient, b, pattern.id, pattern.nnz, pattern.values_stride, ctx.precise)
        if d_values.dim() > values.dim():
            # One A for all products of a batch.
            d_values = d_values.sum(0)
    if ctx.needs_input_grad[1]:
        transposed = torch.ops.lacuna.transpose_values(values, pattern.id, pattern.values_stride)
        d_b = torch.ops.lacuna.spmm(transposed, gradient, None, pattern.T.id, pattern.shape[1], False, ctx.precise)
    if ctx.needs_input_grad[2]:
        d_bias = gradient.sum(-1)
        d_bias = d_bias.sum(0) if d_bias.dim() > 1 else d_bias
    return d_values, d_b, d_bias, None, None, None, None


_spmm.register_autograd(_spmm_backward, setup_context=_spmm_setup)


def spmm(a: SparseCsr, b: Tensor, bias: Optional[Tensor] = None, relu: bool = False, precise: bool = False) -> Tensor:
    """See :func:`lacuna.spmm`. Gradients of A's values, of B and of the bias."""
    if not isinstance(b, Tensor) or _is_plain(a.values, b, bias):
        return _ops.spmm(_ops.backend_of(a.values, b), a.pattern, a.values, b, bias, relu, precise)
    return torch.ops.lacuna.spmm(a.values, b, bias, a.pattern.id, a.pattern.shape[0], relu, precise)


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
    a, b = ctx.saved_tensors
    pattern = known(ctx.pattern)
    d_a = d_b = None
    if ctx.needs_input_grad[0]:
        d_a = torch.ops.lacuna.spmm(gradient, b, None, pattern.id, pattern.shape[0], False, ctx.precise)
    if ctx.needs_input_grad[1]:
        transposed = torch.ops.lacuna.transpose_values(gradient, pattern.id, pattern.values_stride)
        d_b = torch.ops.lacuna.spmm(transposed, a, None, pattern.T.id, pattern.shape[1], False, ctx.precise)
    return d_a, d_b, None, None, None, None


_sddmm.register_autograd(_sddmm_backward, setup_context=_sddmm_setup)


def sddmm(pattern: Pattern, a: Tensor, b: Tensor, precise: bool = False) -> Tensor:
    """The values of :func:`lacuna.sddmm`. Gradients of A and of B."""
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)) or _is_plain(a, b):
        return _ops.sddmm(_ops.backend_of(a, b), pattern, a, b, precise)
    return torch.ops.lacuna.sddmm(a, b, pattern.id, pattern.nnz, pattern.values_stride, precise)


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
    return torch.ops.lacuna.softmax_backward(y, gradient, ctx.pattern, ctx.stride, ctx.scale), None, None, None


_softmax.register_autograd(_softmax_backward, setup_context=_softmax_setup)


def sparse_softmax(a: SparseCsr, scale: float = 1.0) -> Tensor:
    """The values of :func:`lacuna.sparse_softmax`, with gradients."""
    if _is_plain(a.values):
        return _ops.softmax(_ops.backend_of(a.values), a.pattern, a.values, scale)
    return torch.ops.lacuna.softmax(a.values, a.pattern.id, a.pattern.values_stride, scale)


# attention -------------------------------------------------------------------------------------------------------------


@torch.library.custom_op("lacuna::attention", mutates_args=(), device_types="cuda")
def _attention(q: Tensor, k: Tensor, v: Tensor, mask: int, scale: float) -> Tensor:
    return _ops.attention(_ops.backend_of(q, k, v), known(mask), q, k, v, scale)


@_attention.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, mask: int, scale: float) -> Tensor:
    return q.new_empty(q.shape)


def _attention_setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    q, k, v, ctx.mask, ctx.scale = inputs
    ctx.kept = known(ctx.mask)
    ctx.save_for_backward(q, k, v)


@torch.library.custom_op("lacuna::attention_backward", mutates_args=(), device_types="cuda")
def _attention_gradient(q: Tensor, k: Tensor, v: Tensor, d_o: Tensor, mask: int, scale: float) -> Tuple[Tensor, Tensor, Tensor]:
    # In steps, of which each is an operator: the weights are worked out again, and not kept from the forward pass.
    mask_object = known(mask)
    pattern = mask_object
    if isinstance(mask_object, Mask):
        pattern = mask_object.pattern_on(Cuda(q.device.index))
    shape = q.shape
    flat = [_in_rows(x.reshape(-1, *x.shape[-2:]) if x.dim() == 4 else x) for x in (q, k, v, d_o)]
    q, k, v, d_o = flat
    back = lambda: Cuda(q.device.index)  # noqa: E731 - a stream and what is held, for each call
    weights = _ops.softmax(back(), pattern, _ops.sddmm(back(), pattern, q, k, False), scale)
    d_v = _ops.spmm(back(), pattern.T, _ops.transpose_values(back(), pattern, weights), d_o, None, False, False)
    d_weights = _ops.sddmm(back(), pattern, d_o, v, False)
    d_scores = _ops.softmax_backward(back(), pattern, weights, d_weights, scale)
    d_q = _ops.spmm(back(), pattern, d_scores, k, None, False, False)
    d_k = _ops.spmm(back(), pattern.T, _ops.transpose_values(back(), pattern, d_scores), q, None, False, False)
    key_shape = (*shape[:-2], *d_k.shape[-2:])
    return d_q.reshape(shape), d_k.reshape(key_shape), d_v.reshape(key_shape)


@_attention_gradient.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, d_o: Tensor, mask: int, scale: float) -> Tuple[Tensor, Tensor, Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _attention_backward(ctx: Any, gradient: Tensor) -> tuple:
    return (*torch.ops.lacuna.attention_backward(*ctx.saved_tensors, gradient, ctx.mask, ctx.scale), None, None)


_attention.register_autograd(_attention_backward, setup_context=_attention_setup)


def sparse_attention(q: Tensor, k: Tensor, v: Tensor, mask: Any, scale: Optional[float] = None) -> Tensor:
    """See :func:`lacuna.sparse_attention`. Gradients of Q, K and V, in steps: they take memory for two weights a nonzero and head."""
    if not all(isinstance(x, Tensor) for x in (q, k, v)) or _is_plain(q, k, v):
        return _ops.attention(_ops.backend_of(q, k, v), mask, q, k, v, scale)
    return torch.ops.lacuna.attention(q, k, v, mask.id, q.shape[-1] ** -0.5 if scale is None else scale)


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
    """See :func:`lacuna.embedding_bag`. Gradient of the table, dense; its first call sorts the indices on the host."""
    if _is_plain(table):
        return _ops.embedding_bag(_ops.backend_of(table), bags, table)
    return torch.ops.lacuna.embedding_bag(table, bags.id, bags.sizes[0])


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
    if _is_plain(logits):
        return _ops.topn(_ops.backend_of(logits), logits, n, output, temperature)
    return torch.ops.lacuna.topn(logits, n, output, temperature)


# The package finds this here: an import within a function is nothing for `torch.compile` to trace.
sys.modules[__package__]._torch = sys.modules[__name__]
