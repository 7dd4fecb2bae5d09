"""Attention's operators with gradients for PyTorch: see :mod:`lacuna.torch`."""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from . import _gradients, _ops
from ._cuda import from_dlpack
from ._errors import InputError
from ._route import as_tensors, is_dispatched, learns
from ._sparse import known


@torch.library.custom_op("lacuna::attention", mutates_args=(), device_types="cuda")
def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: int,
    scale: float,
    softcap: Optional[float] = None,
    slopes: Optional[Tensor] = None,
    precise: bool = False,
) -> Tensor:
    return _ops.attention(_ops.backend_of(q, k, v), known(mask), q, k, v, _ops.Scores(scale, softcap, slopes, precise))


@_attention.register_fake
def _(q: Tensor, *_: Any) -> Tensor:
    return q.new_empty(q.shape)


def _attention_setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    q, k, v, ctx.mask, ctx.scale, ctx.softcap, slopes, ctx.precise = inputs
    ctx.kept = known(ctx.mask)
    ctx.save_for_backward(q, k, v, slopes)


@torch.library.custom_op("lacuna::attention_backward", mutates_args=(), device_types="cuda")
def _attention_gradient(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    d_o: Tensor,
    mask: int,
    scale: float,
    softcap: Optional[float] = None,
    slopes: Optional[Tensor] = None,
    precise: bool = False,
) -> Tuple[Tensor, Tensor, Tensor]:
    return _gradients.attention_gradients(known(mask), (q, k, v), d_o, _ops.Scores(scale, softcap, slopes, precise))


@_attention_gradient.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, *_: Any) -> Tuple[Tensor, Tensor, Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _attention_backward(ctx: Any, gradient: Tensor) -> tuple:
    *operands, slopes = ctx.saved_tensors
    found = torch.ops.lacuna.attention_backward(*operands, gradient, ctx.mask, ctx.scale, ctx.softcap, slopes, ctx.precise)
    return (*found, None, None, None, None, None)


_attention.register_autograd(_attention_backward, setup_context=_attention_setup)


# The same with a mask by rule, where gradients are wanted that may go by blocks: what it keeps for those by blocks is a result, too.


@torch.library.custom_op("lacuna::attention_with_logsumexp", mutates_args=(), device_types="cuda")
def _attention_with_logsumexp(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: int,
    scale: float,
    softcap: Optional[float] = None,
    slopes: Optional[Tensor] = None,
    precise: bool = False,
) -> Tuple[Tensor, Tensor]:
    return _ops.attention(_ops.backend_of(q, k, v), known(mask), q, k, v, _ops.Scores(scale, softcap, slopes, precise), True)


@_attention_with_logsumexp.register_fake
def _(q: Tensor, *_: Any) -> Tuple[Tensor, Tensor]:
    return q.new_empty(q.shape), q.new_empty(q.shape[:-1], dtype=torch.float32)


def _attention_with_logsumexp_setup(ctx: Any, inputs: tuple, output: tuple) -> None:
    q, k, v, ctx.mask, ctx.scale, ctx.softcap, slopes, ctx.precise = inputs
    ctx.kept = known(ctx.mask)
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(q, k, v, slopes, *output)


@torch.library.custom_op("lacuna::attention_backward_by_blocks", mutates_args=(), device_types="cuda")
def _attention_gradient_by_blocks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    logsumexp: Tensor,
    d_o: Tensor,
    mask: int,
    scale: float,
    softcap: Optional[float] = None,
    slopes: Optional[Tensor] = None,
    precise: bool = False,
) -> Tuple[Tensor, Tensor, Tensor]:
    scores = _ops.Scores(scale, softcap, slopes, precise)
    return _gradients.attention_gradients_by_blocks(known(mask), (q, k, v), (o, logsumexp), d_o, scores)


@_attention_gradient_by_blocks.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, *_: Any) -> Tuple[Tensor, Tensor, Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _attention_with_logsumexp_backward(ctx: Any, d_o: Tensor, _: Any) -> tuple:
    q, k, v, slopes, *results = ctx.saved_tensors
    found = torch.ops.lacuna.attention_backward_by_blocks(
        q, k, v, *results, d_o, ctx.mask, ctx.scale, ctx.softcap, slopes, ctx.precise
    )
    return (*found, None, None, None, None, None)


_attention_with_logsumexp.register_autograd(_attention_with_logsumexp_backward, setup_context=_attention_with_logsumexp_setup)


def sparse_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Any,
    scale: Optional[float] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Any = None,
    precise: bool = False,
) -> Tensor:
    """See :func:`lacuna.sparse_attention`. Gradients of Q, K and V: with a mask by rule by its blocks, from O and a logarithm a query and head (from compute
    capability 8.0 on, d up to 256; float32, if it is not `precise`, with d of 64 at least, up to 128 on others than 9.0, and 64 keys a query); else in steps, which take memory for two weights a nonzero and head."""
    if alibi_slopes is not None:
        alibi_slopes = alibi_slopes if isinstance(alibi_slopes, Tensor) else from_dlpack(alibi_slopes, "alibi_slopes")
        if alibi_slopes.requires_grad and torch.is_grad_enabled():
            raise InputError("alibi_slopes: a gradient is wanted, but slopes have none; pass them detached (x.detach())")
    scores = _ops.scores_of(q, scale, softcap, alibi_slopes, precise)
    if not is_dynamo_compiling():
        o = mask.attention_direct(q, k, v, scores)
        if o is True:
            return _gradients.learn_attention(mask, q, k, v, _with_scale(scores, q))
        if o is not None:
            return o
    q, k, v = as_tensors(q, k, v)
    if is_dispatched(q, k, v, scores.slopes):
        scores = _with_scale(scores, q)
        may_learn = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
        if may_learn and _gradients.keeps_logsumexp(mask, q, scores):
            return torch.ops.lacuna.attention_with_logsumexp(q, k, v, mask.id, *scores)[0]
        return torch.ops.lacuna.attention(q, k, v, mask.id, *scores)
    if learns(q, k, v):
        return _gradients.learn_attention(mask, q, k, v, _with_scale(scores, q))
    return _ops.attention(_ops.backend_of(q, k, v), mask, q, k, v, scores)


def _with_scale(scores: _ops.Scores, q: Tensor) -> _ops.Scores:
    return scores._replace(scale=q.shape[-1] ** -0.5) if scores.scale is None else scores
