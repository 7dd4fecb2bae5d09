"""Calls past PyTorch's dispatcher, and what autograd does for those that learn.

An operator is reached in three ways. Calls of plain tensors that were planned go straight to the native module (`…_direct`). Where they want
gradients, they go through the functions here (`torch.autograd.Function`), whose parts are such calls again. All others go through PyTorch's custom operators
(:mod:`lacuna.torch`): traces, subclasses, modes. Formulas of gradients are here, for both.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from . import _ops
from ._cuda import _TYPES, _raw_stream
from ._mask import Mask
from ._native import cuda_device, native

_OPS = torch.ops.lacuna


def _connect() -> None:
    """Tells the native module of PyTorch's functions. Some are PyTorch's own helpers, and may be missing in other versions."""
    helpers = torch._C._dynamo.guards if hasattr(torch._C, "_dynamo") else None
    empty = getattr(helpers, "_empty_strided_cuda", None) or (
        lambda sizes, strides, dtype: torch.empty_strided(sizes, strides, dtype=dtype, device="cuda")
    )
    reinterpret = getattr(helpers, "_reinterpret_tensor", None) or torch.as_strided
    watchers = [torch._C._len_torch_dispatch_stack, torch._C._are_functorch_transforms_active]
    exchange = getattr(Tensor, "__dlpack_c_exchange_api__", None)
    on_gpu = 2  # DLPack's kDLCUDA
    native.connect(
        [Tensor, torch.nn.Parameter],
        [*_TYPES, torch.int32],
        torch.is_grad_enabled,
        watchers,
        _raw_stream,
        (empty, reinterpret),
        exchange,
        on_gpu,
        torch.autograd.forward_ad,
    )


_connect()


def in_rows(tensor: Tensor) -> Tensor:
    """The tensor, or a copy where its rows are not in one piece: gradients come as they like."""
    return tensor if tensor.stride(-1) == 1 and tensor.stride(-2) >= tensor.shape[-1] else tensor.contiguous()


def _is_now() -> bool:
    """Whether gradients are computed, not traced, and have none of their own."""
    return not is_dynamo_compiling() and not torch.is_grad_enabled()


# operators at once, on the simulator, or by the dispatcher -------------------------------------------------------------------


def spmm(pattern: Any, values: Tensor, b: Tensor, bias: Optional[Tensor], relu: bool, precise: bool) -> Tensor:
    """C = A·B, in whichever way is open."""
    if _is_now():
        c = pattern._handle.spmm_direct(values, b, bias, relu, precise)
        if c is not None:
            return c
    if not b.is_cuda:
        return _ops.spmm(_ops.backend_of(values, b), pattern, values, b, bias, relu, precise)
    return _OPS.spmm(values, b, bias, pattern.id, pattern.shape[0], relu, precise)


def sddmm(pattern: Any, a: Tensor, b: Tensor, precise: bool) -> Tensor:
    """A·Bᵀ at the nonzeros, in whichever way is open."""
    if _is_now():
        values = pattern._handle.sddmm_direct(a, b, precise)
        if values is not None:
            return values
    if not b.is_cuda:
        return _ops.sddmm(_ops.backend_of(a, b), pattern, a, b, precise)
    return _OPS.sddmm(a, b, pattern.id, pattern.nnz, pattern.values_stride, precise)


def transpose_values(pattern: Any, values: Tensor) -> Tensor:
    """Values in the order of the transposed pattern, in whichever way is open."""
    if _is_now():
        moved = pattern.T._handle.gather_direct(values)
        if moved is not None:
            return moved
    if not values.is_cuda:
        return _ops.transpose_values(_ops.backend_of(values), pattern, values)
    return _OPS.transpose_values(values, pattern.id, pattern.values_stride)


def softmax(pattern: Any, values: Tensor, scale: float) -> Tensor:
    """softmax of each row, in whichever way is open."""
    if _is_now():
        y = pattern._handle.softmax_direct(values, scale)
        if y is not None:
            return y
    if not values.is_cuda:
        return _ops.softmax(_ops.backend_of(values), pattern, values, scale)
    return _OPS.softmax(values, pattern.id, pattern.values_stride, scale)


def softmax_backward(pattern: Any, y: Tensor, gradient: Tensor, scale: float) -> Tensor:
    """The gradient of softmax, in whichever way is open."""
    if _is_now():
        dx = pattern._handle.softmax_direct(y, scale, gradient)
        if dx is not None:
            return dx
    if not y.is_cuda:
        return _ops.softmax_backward(_ops.backend_of(y), pattern, y, gradient, scale)
    return _OPS.softmax_backward(y, gradient, pattern.id, pattern.values_stride, scale)


def embedding_bag_backward(bags: Any, gradient: Tensor) -> Tensor:
    """The gradient of a table, in whichever way is open."""
    if _is_now():
        of_table = bags._handle.backward_direct(gradient)
        if of_table is not None:
            return of_table
    if not gradient.is_cuda:
        return _ops.embedding_bag_backward(_ops.backend_of(gradient), bags, gradient)
    return _OPS.embedding_bag_backward(gradient, bags.id, bags.sizes[1])


# gradients: of values and dense operands ------------------------------------------------------------------------------------


def spmm_gradients(pattern: Any, saved: tuple, gradient: Tensor, needs: tuple, precise: bool) -> tuple:
    """Those of A's values, B and the bias, as far as `needs` says. `saved` is values, B, and C where ReLU was done."""
    values, b, output = saved
    if output is not None:
        gradient = torch.ops.aten.threshold_backward(gradient, output, 0)
    gradient = in_rows(gradient)
    d_values = d_b = d_bias = None
    if needs[0]:
        d_values = sddmm(pattern, gradient, b, precise)
        if d_values.dim() > values.dim():
            # One A for all products of a batch.
            d_values = d_values.sum(0)
    if needs[1]:
        d_b = spmm(pattern.T, transpose_values(pattern, values), gradient, None, False, precise)
    if needs[2]:
        d_bias = gradient.sum(-1)
        d_bias = d_bias.sum(0) if d_bias.dim() > 1 else d_bias
    return d_values, d_b, d_bias


def sddmm_gradients(pattern: Any, saved: tuple, gradient: Tensor, needs: tuple, precise: bool) -> tuple:
    """Those of A and of B."""
    a, b = saved
    d_a = spmm(pattern, gradient, b, None, False, precise) if needs[0] else None
    d_b = spmm(pattern.T, transpose_values(pattern, gradient), a, None, False, precise) if needs[1] else None
    return d_a, d_b


def attention_gradients(mask: Any, operands: tuple, d_o: Tensor, scores: _ops.Scores) -> tuple:
    """Those of Q, K and V, in steps, of which each is an operator: the weights are worked out again, and not kept from the forward
    pass. Neighbouring heads that share K and V have a copy of each, and their gradients are added up."""
    pattern = mask.pattern_on(_ops.backend_of(d_o))
    q, k, v = operands
    shape, key_shape = q.shape, k.shape
    group = shape[-3] // key_shape[-3] if q.dim() > 2 else 1
    q, k, v, d_o = (x.reshape(-1, *x.shape[-2:]) if x.dim() == 4 else x for x in (q, k, v, d_o))
    if group > 1:
        k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
    q, k, v, d_o = (in_rows(x) for x in (q, k, v, d_o))
    if scores.softcap is None and scores.slopes is None:
        weights, slope = softmax(pattern, sddmm(pattern, q, k, scores.precise), scores.scale), None
    else:
        modified, slope = _modified(pattern, sddmm(pattern, q, k, scores.precise), scores)
        weights = softmax(pattern, modified, 1.0).to(q.dtype)
    d_v = spmm(pattern.T, transpose_values(pattern, weights), d_o, None, False, scores.precise)
    d_weights = sddmm(pattern, d_o, v, scores.precise)
    d_scores = softmax_backward(pattern, weights, d_weights, scores.scale if slope is None else 1.0)
    if slope is not None:
        d_scores = (d_scores * slope).to(q.dtype)
    d_q = spmm(pattern, d_scores, k, None, False, scores.precise)
    d_k = spmm(pattern.T, transpose_values(pattern, d_scores), q, None, False, scores.precise)
    if group > 1:
        d_k, d_v = (x.unflatten(0, (-1, group)).sum(1) for x in (d_k, d_v))
    return d_q.reshape(shape), d_k.reshape(key_shape), d_v.reshape(key_shape)


def _modified(pattern: Any, products: Tensor, scores: _ops.Scores) -> tuple:
    """Scores in float32 of products of queries and keys at the nonzeros; and what their slopes are of those of the products."""
    found, slope = products.float() * scores.scale, scores.scale
    if scores.softcap is not None:
        part = torch.tanh(found / scores.softcap)
        found, slope = scores.softcap * part, scores.scale * (1 - part * part)
    if scores.slopes is not None:
        slopes = scores.slopes.reshape(-1)
        found = found - (slopes[:, None] if found.dim() > 1 else slopes) * torch.as_tensor(pattern.distances())
    return found, slope


def keeps_logsumexp(mask: Any, q: Tensor, scores: _ops.Scores) -> bool:
    """Whether gradients may go by blocks of the mask, so that attention keeps O and the logarithms for them."""
    if not isinstance(mask, Mask):
        return False
    dim, most = q.shape[-1], _most_elements(q.device.index, q.dtype)
    if q.dtype == torch.float32:
        return 64 <= dim <= most and not scores.precise
    return q.dtype in (torch.float16, torch.bfloat16) and dim <= most


@torch.compiler.assume_constant_result
def _most_elements(index: Optional[int], dtype: torch.dtype) -> int:
    """Elements of a row at most for which a GPU, or the simulator, may have kernels of gradients by blocks."""
    sm = 90 if index is None else cuda_device(index).sm
    if sm < 80:
        return 0
    return 128 if dtype == torch.float32 and sm // 10 != 9 else 256


def attention_gradients_by_blocks(mask: Any, operands: tuple, results: tuple, d_o: Tensor, scores: _ops.Scores) -> tuple:
    """Those of Q, K and V in one call, from O and the logarithms of the forward pass; in steps where kernels by blocks do not do it. Gradients
    lie as their operands do, so that operands with gaps are copied, and gradients have none."""
    q, k, v = operands = tuple(x.contiguous() for x in operands)
    o, logsumexp = results
    d_o = d_o.contiguous()
    found = mask.attention_backward_direct(q, k, v, o, logsumexp, d_o, scores)
    if found is None:
        found = _ops.attention_backward(_ops.backend_of(q, k, v), mask, operands, results, d_o, scores)
    return attention_gradients(mask, operands, d_o, scores) if found is None else found


# autograd's functions: contexts keep patterns --------------------------------------------------------------------------------


class _Spmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Any, values: Tensor, b: Tensor, bias: Optional[Tensor], relu: bool, precise: bool) -> Tensor:
        c = pattern._handle.spmm_direct(values, b, bias, relu, precise)
        if c is None:
            c = _ops.spmm(_ops.backend_of(values, b), pattern, values, b, bias, relu, precise)
        ctx.pattern, ctx.precise = pattern, precise
        ctx.save_for_backward(values, b, c if relu else None)
        return c

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple:
        found = spmm_gradients(ctx.pattern, ctx.saved_tensors, gradient, ctx.needs_input_grad[1:4], ctx.precise)
        return (None, *found, None, None)


class _Sddmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Any, a: Tensor, b: Tensor, precise: bool) -> Tensor:
        d = pattern._handle.sddmm_direct(a, b, precise)
        if d is None:
            d = _ops.sddmm(_ops.backend_of(a, b), pattern, a, b, precise)
        ctx.pattern, ctx.precise = pattern, precise
        ctx.save_for_backward(a, b)
        return d

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple:
        found = sddmm_gradients(ctx.pattern, ctx.saved_tensors, gradient, ctx.needs_input_grad[1:3], ctx.precise)
        return (None, *found, None)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Any, values: Tensor, scale: float) -> Tensor:
        y = pattern._handle.softmax_direct(values, scale)
        if y is None:
            y = _ops.softmax(_ops.backend_of(values), pattern, values, scale)
        ctx.pattern, ctx.scale = pattern, scale
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple:
        (y,) = ctx.saved_tensors
        return None, softmax_backward(ctx.pattern, y, gradient, ctx.scale), None


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, mask: Any, q: Tensor, k: Tensor, v: Tensor, scores: _ops.Scores) -> Tensor:
        keeps = keeps_logsumexp(mask, q, scores)
        found = mask.attention_direct(q, k, v, scores, keeps)
        if found is None:
            found = _ops.attention(_ops.backend_of(q, k, v), mask, q, k, v, scores, keeps)
        o, logsumexp = found if keeps else (found, None)
        ctx.mask, ctx.scores = mask, scores._replace(slopes=None)
        ctx.save_for_backward(q, k, v, scores.slopes, o if keeps else None, logsumexp)
        return o

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple:
        *operands, slopes, o, logsumexp = ctx.saved_tensors
        scores = ctx.scores._replace(slopes=slopes)
        is_at_once = _is_now() or not gradient.is_cuda
        if logsumexp is not None and is_at_once:
            found = attention_gradients_by_blocks(ctx.mask, tuple(operands), (o, logsumexp), gradient, scores)
        elif logsumexp is not None:
            found = _OPS.attention_backward_by_blocks(*operands, o, logsumexp, gradient, ctx.mask.id, *scores)
        elif is_at_once:
            found = attention_gradients(ctx.mask, tuple(operands), gradient, scores)
        else:
            found = _OPS.attention_backward(*operands, gradient, ctx.mask.id, *scores)
        return (None, *found, None)


class _EmbeddingBag(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, bags: Any, table: Tensor) -> Tensor:
        out = bags._handle.lookup_direct(table)
        ctx.bags = bags
        return _ops.embedding_bag(_ops.backend_of(table), bags, table) if out is None else out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple:
        return None, embedding_bag_backward(ctx.bags, gradient.contiguous())


def _past_wrappers(function: Any) -> Any:
    """`apply` without its part in Python, which is for transformations of functions: direct calls have seen that there are none."""
    return super(torch.autograd.Function, function).apply


learn_spmm, learn_sddmm = _past_wrappers(_Spmm), _past_wrappers(_Sddmm)
learn_softmax, learn_attention = _past_wrappers(_Softmax), _past_wrappers(_Attention)
learn_embedding_bag = _past_wrappers(_EmbeddingBag)
