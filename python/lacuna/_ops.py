"""The operators on a backend's arrays: shapes and strides are checked here, and the native module is called.

A backend (:class:`lacuna._cuda.Cuda`, :class:`lacuna._simulate.Simulated`) gives addresses, a stream, and room for results.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, NamedTuple, Optional

from ._errors import InputError, whole


def backend_of(*arrays: Any) -> Any:
    """The backend of these arrays, for one call: PyTorch's GPU where one of them is there, else the simulator if it was asked for."""
    for array in arrays:
        device = getattr(array, "device", None)
        kind = getattr(device, "type", None)
        if kind == "cuda":
            from ._cuda import Cuda

            return Cuda(device.index)
        if kind is None and hasattr(array, "__dlpack_device__") and int(array.__dlpack_device__()[0]) in (2, 13):
            return _cuda_of_dlpack(array)
        if kind not in (None, "cpu"):
            raise InputError(f"an operand is on {device}, but Lacuna runs on NVIDIA GPUs; move it there (x.cuda())")
    from ._simulate import current

    return current()()


def _cuda_of_dlpack(array: Any) -> Any:
    try:
        from ._cuda import Cuda
    except ImportError as error:
        raise InputError(
            f"results of a {type(array).__name__} on a GPU are made by PyTorch's allocator, and PyTorch is missing: install torch"
        ) from error
    return Cuda(int(array.__dlpack_device__()[1]))


def on_its_device(operator: Callable) -> Callable:
    """The operator with the backend's device current, and the caller's after it: native calls leave theirs."""

    @functools.wraps(operator)
    def call(back: Any, *arguments: Any) -> Any:
        guard = back.guard()
        if guard is None:
            return operator(back, *arguments)
        with guard:
            return operator(back, *arguments)

    return call


def rows_of(view: Any, what: str, batch: Optional[int], rows: int, columns: int) -> tuple:
    """Address, row stride and batch stride of a matrix, or of one for each of a batch; `batch` None is one without that axis."""
    shape, strides = tuple(view.shape), view.strides
    expected = (rows, columns) if batch is None else (batch, rows, columns)
    if shape != expected:
        raise InputError(f"{what} has shape {shape}, but {expected} is expected")
    # Of one row at most it says nothing, and plans are not to depend on it.
    row_stride = columns if rows <= 1 else strides[-2]
    is_right = (columns <= 1 or strides[-1] == 1) and row_stride >= columns
    if not is_right:
        raise InputError(
            f"{what} has strides {tuple(strides)}, but its rows of {columns} must each be in one piece (last stride 1) and not "
            "overlap; pass a copy (x.contiguous())"
        )
    if batch is None or batch <= 1:
        return view.address, row_stride, rows * row_stride
    return view.address, row_stride, strides[0]


def matrix_batch(view: Any, what: str) -> Optional[int]:
    """How many matrices, or None for one without an axis for that."""
    if len(view.shape) not in (2, 3) or (len(view.shape) == 3 and view.shape[0] == 0):
        raise InputError(f"{what} has shape {tuple(view.shape)}, but (rows, columns) or (batch, rows, columns) is expected")
    return view.shape[0] if len(view.shape) == 3 else None


def values_batch(values: Any, what: str, nnz: int) -> Optional[int]:
    """How many matrices `values` has, or None without an axis for that."""
    shape = tuple(values.shape)
    if len(shape) not in (1, 2) or shape[-1] != nnz or shape[0] == 0 and len(shape) == 2:
        raise InputError(f"{what} has shape {shape}, but ({nnz},) or (batch, {nnz}) is expected: one for each nonzero")
    return shape[0] if len(shape) == 2 else None


@on_its_device
def spmm(back: Any, pattern: Any, values: Any, b: Any, bias: Any, relu: bool, precise: bool) -> Any:
    """C = A·B (+ bias a row, and ReLU)."""
    handle, (rows, cols, nnz, stride) = pattern.handle_on(back)
    code = back.dtype(values, "the values of A")
    b_view = back.view(b, "B", code)
    batch, of_values = matrix_batch(b_view, "B"), values_batch(values, "the values of A", nnz)
    if of_values is not None and of_values != batch:
        raise InputError(f"there are values of {of_values} matrices, but B has shape {tuple(b_view.shape)}: one B for each is expected")
    n = b_view.shape[-1]
    b_rows = rows_of(b_view, "B", batch, cols, n)
    bias_address = _bias(back, bias, code, rows)
    room, c = back.empty((rows, n) if batch is None else (batch, rows, n), code, b)
    product = (back.call_stream(), code, n, 1 if batch is None else batch, b_rows, (c.address, n, rows * n), bias_address, relu, precise)
    handle.spmm(back.values(values, "the values of A", code, of_values, nnz, stride), of_values or 1, product)
    return back.result(room)


def _bias(back: Any, bias: Any, code: int, rows: int) -> Optional[int]:
    """The address of a bias for so many rows, if there is one."""
    if bias is None:
        return None
    view = back.view(bias, "the bias", code)
    if tuple(view.shape) != (rows,) or (rows > 1 and tuple(view.strides) != (1,)):
        raise InputError(f"the bias has shape {tuple(view.shape)}, but ({rows},) without gaps is expected: one for each row")
    return view.address


@on_its_device
def packed_spmm(back: Any, packed: Any, b: Any, bias: Any, relu: bool) -> Any:
    """C = A·B of packed weights."""
    handle, (rows, cols) = packed.handle_on(back)
    code = back.dtype(b, "B")
    b_view = back.view(b, "B", code)
    batch, n = matrix_batch(b_view, "B"), b_view.shape[-1]
    b_rows = rows_of(b_view, "B", batch, cols, n)
    bias_address = _bias(back, bias, code, rows)
    room, c = back.empty((rows, n) if batch is None else (batch, rows, n), code, b)
    count = 1 if batch is None else batch
    handle.spmm((back.call_stream(), code, n, count, b_rows, (c.address, n, rows * n), bias_address, relu, False))
    return back.result(room)


@on_its_device
def sddmm(back: Any, pattern: Any, a: Any, b: Any, precise: bool) -> Any:
    """The values of A·Bᵀ at the nonzeros."""
    handle, (rows, cols, nnz, stride) = pattern.handle_on(back)
    code = back.dtype(a, "A")
    a_view, b_view = back.view(a, "A", code), back.view(b, "B", code)
    batch, k = matrix_batch(a_view, "A"), a_view.shape[-1]
    a_rows, b_rows = rows_of(a_view, "A", batch, rows, k), rows_of(b_view, "B", batch, cols, k)
    room, address = back.empty_values(batch, nnz, stride, code, a)
    handle.sddmm((back.call_stream(), code, k, 1 if batch is None else batch, a_rows, b_rows, address, precise))
    return back.values_result(room)


@on_its_device
def softmax(back: Any, pattern: Any, values: Any, scale: float) -> Any:
    """The values of softmax(scale·x) of each row."""
    handle, (_, _, nnz, stride) = pattern.handle_on(back)
    code, batch = back.dtype(values, "x"), values_batch(values, "x", nnz)
    x = back.values(values, "x", code, batch, nnz, stride)
    room, y = back.empty_values(batch, nnz, stride, code, values)
    handle.softmax((back.stream, code, 1 if batch is None else batch, scale, x, None, y))
    return back.values_result(room)


@on_its_device
def softmax_backward(back: Any, pattern: Any, y: Any, dy: Any, scale: float) -> Any:
    """The gradient of x."""
    handle, (_, _, nnz, stride) = pattern.handle_on(back)
    code, batch = back.dtype(y, "y"), values_batch(y, "y", nnz)
    if tuple(dy.shape) != tuple(y.shape):
        raise InputError(f"the gradient has shape {tuple(dy.shape)}, but {tuple(y.shape)} is expected, as of y")
    addresses = [back.values(values, what, code, batch, nnz, stride) for values, what in ((y, "y"), (dy, "the gradient"))]
    room, dx = back.empty_values(batch, nnz, stride, code, y)
    handle.softmax((back.stream, code, 1 if batch is None else batch, scale, *addresses, dx))
    return back.values_result(room)


@on_its_device
def transpose_values(back: Any, pattern: Any, values: Any) -> Any:
    """Values in the order of the transposed pattern."""
    handle, (_, _, nnz, stride) = pattern.T.handle_on(back)
    code, batch = back.dtype(values, "the values"), values_batch(values, "the values", nnz)
    source = back.values(values, "the values", code, batch, nnz, stride)
    room, out = back.empty_values(batch, nnz, stride, code, values)
    handle.gather((back.stream, code, source, out, 1 if batch is None else batch))
    return back.values_result(room)


class Scores(NamedTuple):
    """What becomes of products of queries and keys: a scale (1/√d if none), a soft cap, and a slope of each sample and head by distance; and whether
    those of float32 are fused multiply-adds alone."""

    scale: Optional[float] = None
    softcap: Optional[float] = None
    slopes: Any = None
    precise: bool = False


def scores_of(q: Any, scale: Optional[float], softcap: Optional[float], slopes: Any, precise: bool) -> Scores:
    """The same, of slopes that may be those of every sample."""
    if softcap is not None and not softcap > 0:
        raise InputError(f"the soft cap is {softcap}, but above 0 is expected, or none")
    shape, of_slopes = getattr(q, "shape", ()), getattr(slopes, "shape", ())
    if len(shape) == 4 and len(of_slopes) == 1:
        each = slopes[None]
        slopes = each.expand(shape[0], -1).contiguous() if hasattr(each, "expand") else each.repeat(shape[0], 0)
    return Scores(scale, softcap, slopes, precise)


@on_its_device
def attention(back: Any, mask: Any, q: Any, k: Any, v: Any, scores: Scores, with_logsumexp: bool = False) -> Any:
    """O = softmax(scale·Q·Kᵀ at the mask)·V; and, if they are wanted, the logarithms of the sums of exponentials, one a query of each head."""
    code, shape, heads = _heads(back, mask, q, k, v, scores)
    room, o = back.empty(shape, code, q)
    logsumexp, of_logsumexp = back.empty(shape[:-1], 0, q) if with_logsumexp else (None, None)
    queries, dim = mask.shape[0], shape[-1]
    results = ((o.address, dim, queries * dim), of_logsumexp.address if with_logsumexp else None)
    mask.attend(back, code, heads + results)
    return (back.result(room), back.result(logsumexp)) if with_logsumexp else back.result(room)


@on_its_device
def attention_backward(back: Any, mask: Any, operands: tuple, results: tuple, d_o: Any, scores: Scores) -> Optional[tuple]:
    """The gradients of Q, K and V by blocks of the mask, or None where kernels by blocks do not do it. `operands` are Q, K and V, `results` are
    O and the logarithms that :func:`attention` gave; all, and the gradient of O, are without gaps."""
    q, k, v = operands
    code, shape, heads = _heads(back, mask, q, k, v, scores)
    queries, dim = mask.shape[0], shape[-1]
    o, d_o = back.view(results[0], "O", code), back.view(d_o, "the gradient of O", code)
    logsumexp = back.view(results[1], "the logarithms", 0)
    for view, what, expected in ((o, "O", shape), (d_o, "the gradient of O", shape), (logsumexp, "the logarithms", shape[:-1])):
        if tuple(view.shape) != expected:
            raise InputError(f"{what}: the shape is {tuple(view.shape)}, but {expected} is expected")
    rooms = [back.empty(tuple(x.shape), code, x) for x in operands]
    heads += ((o.address, dim, queries * dim), None)
    if not mask.attend_backward(back, code, heads, (o.address, logsumexp.address, d_o.address, *(view.address for _, view in rooms))):
        return None
    return tuple(back.result(room) for room, _ in rooms)


def _heads(back: Any, mask: Any, q: Any, k: Any, v: Any, scores: Scores) -> tuple:
    """The type and the shape of Q, and heads as the native module takes them, without the places of results."""
    code = back.dtype(q, "Q")
    views = [back.view(array, what, code) for array, what in ((q, "Q"), (k, "K"), (v, "V"))]
    shape = tuple(views[0].shape)
    for view, what in zip(views, ("Q", "K", "V")):
        if len(view.shape) != len(shape) or len(shape) not in (2, 3, 4) or 0 in (*view.shape[:-2], view.shape[-1]):
            raise InputError(
                f"{what} has shape {tuple(view.shape)}, but (queries, d), (heads, queries, d) or (samples, heads, queries, d) is expected, "
                "with as many axes as Q has, and samples, heads and d above 0"
            )
    dim = shape[-1]
    queries, keys = mask.shape
    merged = [_merged(view, what) for view, what in zip(views, ("Q", "K", "V"))]
    batch = None if len(shape) == 2 else merged[0].shape[0]
    kv_batch = batch
    if len(shape) > 2:
        # Neighbouring heads may share K and V.
        kv_heads = views[1].shape[-3]
        if shape[-3] % kv_heads != 0:
            raise InputError(f"K has shape {tuple(views[1].shape)}, but its heads must divide the {shape[-3]} of Q")
        kv_batch = kv_heads if len(shape) == 3 else shape[0] * kv_heads
    q_rows = rows_of(merged[0], "Q", batch, queries, dim)
    k_rows, v_rows = rows_of(merged[1], "K", kv_batch, keys, dim), rows_of(merged[2], "V", kv_batch, keys, dim)
    if k_rows[1:] != v_rows[1:]:
        raise InputError(f"K has strides {tuple(views[1].strides)} and V {tuple(views[2].strides)}, but they must be the same")
    counts = (1, 1) if batch is None else (batch, batch // kv_batch)
    scale = dim**-0.5 if scores.scale is None else scores.scale
    of_products = (scale, scores.softcap, _slopes(back, scores.slopes, shape[:-2]), scores.precise)
    heads = (back.call_stream(), code, dim, counts, of_products, q_rows, (k_rows[0], v_rows[0], *k_rows[1:]))
    return code, shape, heads


def _slopes(back: Any, slopes: Any, heads: tuple) -> Optional[int]:
    """Where slopes of these samples and heads are."""
    if slopes is None:
        return None
    view = back.view(slopes, "alibi_slopes", 0)
    expected = tuple(heads) or (1,)
    places = (expected[-1], 1)[-len(expected) :]
    is_right = tuple(view.shape) == expected
    if not is_right or any(n > 1 and stride != place for n, stride, place in zip(expected, view.strides, places)):
        raise InputError(
            f"alibi_slopes: shape {tuple(view.shape)} and strides {tuple(view.strides)}, but {expected} without gaps is expected: one for each head, "
            "or for each head of each sample"
        )
    return view.address


def _merged(view: Any, what: str) -> Any:
    """A view of samples × heads as one of heads."""
    if len(view.shape) != 4:
        return view
    (samples, heads, tokens, dim), strides = view.shape, view.strides
    if samples > 1 and heads > 1 and strides[0] != heads * strides[1]:
        raise InputError(f"{what} has strides {tuple(strides)}, but heads of all samples must be equally far apart; pass a copy (x.contiguous())")
    step = strides[1] if heads > 1 else strides[0]
    return view._replace(shape=(samples * heads, tokens, dim), strides=(step, *strides[2:]))


#: What values of top-N are.
FORMS = ("probabilities", "log_probabilities", "logits")


@on_its_device
def topn(back: Any, logits: Any, n: int, output: str, temperature: float) -> tuple:
    """The n greatest of each row, and their indices."""
    if output not in FORMS:
        raise InputError(f"topn: output is {output!r}, but it must be one of {', '.join(FORMS)}")
    n = whole("n", n)
    code = back.dtype(logits, "the logits")
    view = back.view(logits, "the logits", code)
    if len(view.shape) != 2:
        raise InputError(f"the logits have shape {tuple(view.shape)}, but (rows, columns) is expected")
    rows, columns = view.shape
    address, stride, _ = rows_of(view, "the logits", None, rows, columns)
    values, values_view = back.empty((rows, n), 0, logits)
    indices, indices_address = back.empty_indices((rows, n), logits)
    sizes = [rows, columns, stride, n]
    form = FORMS.index(output)
    back.device.topn((back.call_stream(), code, sizes, form, temperature, address, values_view.address, indices_address))
    return back.result(values), back.result(indices)


@on_its_device
def embedding_bag(back: Any, bags: Any, table: Any) -> Any:
    """A row for each bag: the sum, or the mean, of the rows that it names."""
    code = back.dtype(table, "the table")
    view = back.view(table, "the table", code)
    count, rows = bags.sizes
    if len(view.shape) != 2:
        raise InputError(f"the table has shape {tuple(view.shape)}, but ({rows}, columns) is expected")
    columns = view.shape[1]
    address, stride, _ = rows_of(view, "the table", None, rows, columns)
    room, out = back.empty((count, columns), code, table)
    bags.handle_on(back).lookup((back.stream, code, columns, (address, stride), out.address))
    return back.result(room)


@on_its_device
def embedding_bag_backward(back: Any, bags: Any, gradient: Any) -> Any:
    """The gradient of the table."""
    code = back.dtype(gradient, "the gradient")
    view = back.view(gradient, "the gradient", code)
    count, rows = bags.sizes
    columns = view.shape[1]
    address, stride, _ = rows_of(view, "the gradient", None, count, columns)
    if stride != columns:
        raise InputError(f"the gradient has strides {tuple(view.strides)}, but rows without gaps are expected")
    room, out = back.empty((rows, columns), code, gradient)
    bags.handle_on(back).backward((back.stream, code, columns, (address, columns), out.address))
    return back.result(room)
