"""Lacuna: sparse GPU kernels for deep learning.

Operators take PyTorch tensors on an NVIDIA GPU (or other arrays there with `__dlpack__`, where PyTorch is installed), use them
where they are, and give work to the current stream without waiting. Within :func:`simulate` they take NumPy arrays.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _ops
from ._errors import Error, InputError
from ._mask import Mask
from ._native import native as _native
from ._ops import backend_of as _backend_of
from ._simulate import simulate
from ._sparse import Bags, Pattern, SparseCsr

if TYPE_CHECKING:
    from .torch import SparseLinear

__version__ = _native.__version__

__all__ = [
    "Bags",
    "Error",
    "InputError",
    "Mask",
    "Pattern",
    "SparseCsr",
    "SparseLinear",
    "embedding_bag",
    "sddmm",
    "simulate",
    "sparse_attention",
    "sparse_softmax",
    "spmm",
    "topn",
]


def __getattr__(name: str) -> Any:
    if name == "SparseLinear":
        from .torch import SparseLinear

        return SparseLinear
    raise AttributeError(f"module 'lacuna' has no attribute {name!r}")


#: `lacuna.torch`, from when it was imported on.
_torch: Any = None


def _is_torch(*arrays: Any) -> bool:
    """Whether `lacuna.torch` takes these: all, once it was imported; till then PyTorch's tensors on a GPU, and those that learn."""
    if _torch is not None:
        return True
    for array in arrays:
        if getattr(array, "is_cuda", False) or getattr(array, "requires_grad", False):
            importlib.import_module(".torch", __name__)
            return True
    return False


def spmm(a: SparseCsr, b: Any, *, bias: Any = None, relu: bool = False, precise: bool = False) -> Any:
    """C = A·B for a sparse A (M×K), and a dense B (K×N) row by row; with a bias for each row of C, and ReLU, in the same kernel.

    Args:
        a: The matrix; or a batch of matrices with one pattern.
        b: (K, N), or (batch, K, N) for as many products. Rows must each be in one piece; they may have gaps between them.
        bias: (M,), or none.
        relu: Whether results below 0 become 0.
        precise: Whether float32 is multiplied by fused multiply-adds alone. Else long sums may be computed on tensor cores, each
            product within 2⁻¹⁶.

    Returns:
        (M, N), or (batch, M, N), of B's type. Sums are float32. The same operands give the same bits.
    """
    if _torch is not None or _is_torch(a.values, b):
        return _torch.spmm_of(a.pattern, a.values, b, bias, relu, precise)
    return _ops.spmm(_backend_of(a.values, b), a.pattern, a.values, b, bias, relu, precise)


def sddmm(pattern: Pattern, a: Any, b: Any, *, precise: bool = False) -> SparseCsr:
    """A·Bᵀ at the nonzeros of a pattern (M×N): A is (M, K), B is (N, K), both row by row; or (batch, …) for as many products.

    Returns:
        A matrix of the pattern, with values of A's type.
    """
    if _is_torch(a, b):
        return SparseCsr(pattern, _torch.sddmm(pattern, a, b, precise))
    return SparseCsr(pattern, _ops.sddmm(_backend_of(a, b), pattern, a, b, precise))


def sparse_softmax(a: SparseCsr, *, scale: float = 1.0) -> SparseCsr:
    """softmax(scale·a) over the stored values of each row: what is not stored counts as −∞."""
    if _is_torch(a.values):
        return SparseCsr(a.pattern, _torch.sparse_softmax(a, scale))
    return SparseCsr(a.pattern, _ops.softmax(_backend_of(a.values), a.pattern, a.values, scale))


def sparse_attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Union[Pattern, Mask],
    *,
    scale: Optional[float] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Any = None,
    precise: bool = False,
) -> Any:
    """softmax(scale·Q·Kᵀ ⊙ mask)·V for a mask that all heads share.

    Args:
        q: (queries, d), (heads, queries, d) or (samples, heads, queries, d); rows must each be in one piece.
        k: The same with keys; of fewer heads, where neighbouring heads of Q share K and V, as in grouped-query attention.
        v: As K, with the same strides.
        mask: Queries × keys: a pattern, or rules.
        scale: Multiplies the scores; 1/√d if none.
        softcap: Holds scaled scores s between −c and c, as c·tanh(s/c). Rows have 256 elements at most then.
        alibi_slopes: float32, (heads,) or (samples, heads): slope·|i + keys − queries − j| is taken from the score of query i and key j,
            after the soft cap. Rows have 256 elements at most then. Slopes have no gradients.
        precise: Whether float32 is multiplied by fused multiply-adds alone. Else sums over d and over the keys of a query, if both are
            long, may be computed on tensor cores, each product in three.

    Returns:
        As Q, without gaps. A query without keys gets 0.
    """
    if _is_torch(q, k, v):
        return _torch.sparse_attention(q, k, v, mask, scale, softcap, alibi_slopes, precise)
    return _ops.attention(_backend_of(q, k, v), mask, q, k, v, _ops.scores_of(q, scale, softcap, alibi_slopes, precise))


def topn(logits: Any, n: int, *, output: str = "probabilities", temperature: float = 1.0) -> tuple:
    """The `n` greatest of each row of (rows, columns) in falling order, and their indices, in one pass. Without gradients.

    Args:
        logits: Rows in one piece each.
        n: How many.
        output: What the values are: `probabilities` (softmax of logits / temperature over the row), `log_probabilities`, `logits`.
        temperature: Divides the logits.

    Returns:
        Values in float32, and indices in int32: (rows, n) each.
    """
    if _is_torch(logits):
        return _torch.topn(logits, n, output, temperature)
    return _ops.topn(_backend_of(logits), logits, n, output, temperature)


def embedding_bag(table: Any, bags: Bags) -> Any:
    """For each bag the sum, or the mean, of the rows of `table` that it names: (bags, columns)."""
    if _is_torch(table):
        return _torch.embedding_bag(table, bags)
    return _ops.embedding_bag(_backend_of(table), bags, table)
