"""Each operator on NumPy arrays, on the simulator, against NumPy in float64."""

import numpy as np
import pytest
from conftest import Drawn, dense, within

import lacuna

pytestmark = pytest.mark.usefixtures("simulated")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("size", [(9, 13, 1), (33, 70, 17), (16, 64, 32), (1, 5, 3)])
def test_spmm(dtype, size):
    rows, cols, n = size
    a, b = Drawn(rows, cols, 0.7, dtype), dense(cols, n, dtype=dtype)
    c = lacuna.spmm(a.sparse(), b)
    assert c.dtype == dtype
    wide = b.astype(np.float64)
    within(c, a.dense @ wide, np.abs(a.dense) @ np.abs(wide), cols, dtype)


def test_spmm_of_int64_indices_with_bias_and_relu():
    a, b, bias = Drawn(12, 20, 0.6, index="int64"), dense(20, 8), dense(12, seed=3)
    c = lacuna.spmm(a.sparse(), b, bias=bias, relu=True)
    expected = np.maximum(a.dense @ b.astype(np.float64) + bias[:, None], 0)
    within(c, expected, np.abs(a.dense) @ np.abs(b) + np.abs(bias)[:, None], 21)
    assert (c >= 0).all()


def test_spmm_of_batches_and_of_rows_with_gaps():
    a, b = Drawn(10, 14, 0.5, batch=3), dense(3, 14, 12)
    c = lacuna.spmm(a.sparse(), b[:, :, 2:10])
    within(c, a.dense @ b[:, :, 2:10].astype(np.float64), np.abs(a.dense) @ np.abs(b[:, :, 2:10]), 14)
    shared = Drawn(10, 14, 0.5)
    c = shared.sparse() @ b
    within(c, shared.dense @ b.astype(np.float64), np.abs(shared.dense) @ np.abs(b), 14)


def test_transposed():
    a, b = Drawn(11, 19, 0.6), dense(11, 4)
    sparse = a.sparse()
    c = lacuna.spmm(sparse.T, b)
    within(c, a.dense.T @ b.astype(np.float64), np.abs(a.dense.T) @ np.abs(b), 11)
    assert sparse.pattern.T.T is sparse.pattern


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_sddmm(dtype):
    mask, a, b = Drawn(13, 21, 0.7), dense(13, 40, dtype=dtype), dense(21, 40, dtype=dtype, seed=3)
    d = lacuna.sddmm(mask.pattern(), a, b)
    wide = [x.astype(np.float64) for x in (a, b)]
    within(d.values, (wide[0] @ wide[1].T)[mask.mask], (np.abs(wide[0]) @ np.abs(wide[1]).T)[mask.mask], 40, dtype)


def softmax(scores, mask):
    """Of each row at the mask, in float64; rows without are zeros."""
    scores = np.where(mask, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.where(mask, np.exp(scores - np.max(scores, -1, keepdims=True, initial=-1e9)), 0)
        return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300)


def test_sparse_softmax_of_a_batch():
    a = Drawn(9, 30, 0.6, batch=2)
    y = lacuna.sparse_softmax(a.sparse(), scale=0.5).values
    expected = softmax(0.5 * a.dense, a.mask)[:, a.mask]
    # exp2 to 2 ulp, a sum of 30, and a division
    assert np.max(np.abs(y - expected) / expected) < 40 * 2.0**-23


@pytest.mark.parametrize("heads", [None, 2])
def test_sparse_attention(heads):
    mask = Drawn(20, 24, 0.5)
    lead = () if heads is None else (heads,)
    q, k, v = dense(*lead, 20, 16), dense(*lead, 24, 16, seed=3), dense(*lead, 24, 16, seed=4)
    o = lacuna.sparse_attention(q, k, v, mask.pattern())
    wide = [x.astype(np.float64) for x in (q, k, v)]
    weights = softmax(wide[0] @ wide[1].swapaxes(-1, -2) / 4, mask.mask)
    # Scores have errors of 16 terms, which become relative ones of weights; then sums of 24.
    within(o, weights @ wide[2], (2 * weights) @ np.abs(wide[2]), 16 + 24 + 40)
    assert (o[..., 1, :] == 0).all(), "a query without keys"


def test_attention_by_rules_is_that_of_their_pattern():
    window = lacuna.Mask.sliding_window(32, 5) & lacuna.Mask.documents([20, 12])
    place = np.arange(32)
    seen = (place[:, None] >= place) & (place[:, None] - place < 5) & ((place[:, None] < 20) == (place < 20))
    offsets = np.concatenate([[0], seen.sum(1).cumsum()])
    pattern = lacuna.Pattern(offsets, np.nonzero(seen)[1], (32, 32))
    operands = [dense(2, 32, 16, seed=seed) for seed in range(3)]
    assert (lacuna.sparse_attention(*operands, window) == lacuna.sparse_attention(*operands, pattern)).all()
    # In 16 bits, blocks on tensor cores: weights are rounded to 16 bits, too.
    halves = [x.astype("float16") for x in operands]
    wide = [x.astype(np.float64) for x in halves]
    weights = softmax(wide[0] @ wide[1].swapaxes(-1, -2) / 4, seen)
    o = lacuna.sparse_attention(*halves, window)
    assert np.max(np.abs(o - weights @ wide[2])) < 3 * 2.0**-11


def test_topn():
    logits = dense(5, 100) * 4
    values, indices = lacuna.topn(logits, 7)
    order = np.argsort(-logits, axis=1, kind="stable")[:, :7]
    assert (indices == order).all()
    weights = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
    expected = np.take_along_axis(weights / weights.sum(1, keepdims=True), order, 1)
    assert np.max(np.abs(values - expected) / expected) < 110 * 2.0**-23
    raw, _ = lacuna.topn(logits, 7, output="logits")
    assert (raw == np.take_along_axis(logits, order, 1)).all()


def test_embedding_bag():
    table = dense(30, 12)
    offsets, indices = np.array([0, 2, 2, 6]), np.array([3, 29, 0, 5, 5, 7])
    weights = dense(6, seed=5)
    for mode in ("sum", "mean"):
        out = lacuna.embedding_bag(table, lacuna.Bags(offsets, indices, 30, mode=mode))
        bags = [table[indices[start:end]] for start, end in zip(offsets, offsets[1:])]
        expected = np.stack([bag.sum(0) / (max(len(bag), 1) if mode == "mean" else 1) for bag in bags])
        assert np.max(np.abs(out - expected)) < 6 * 2.0**-23
    out = lacuna.embedding_bag(table, lacuna.Bags(offsets[:-1], indices, 30, weights=weights))
    assert np.max(np.abs(out[0] - (table[3] * weights[0] + table[29] * weights[1]))) < 4 * 2.0**-23
