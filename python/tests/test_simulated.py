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


def test_attention_with_caps_and_slopes():
    mask = Drawn(20, 24, 0.5)
    q, k, v = dense(2, 3, 20, 16), dense(2, 3, 24, 16, seed=3), dense(2, 3, 24, 16, seed=4)
    slopes = np.array([0.5, 0.0, 0.125], "float32")
    o = lacuna.sparse_attention(q, k, v, mask.pattern(), scale=4.0, softcap=3.0, alibi_slopes=slopes)
    wide = [x.astype(np.float64) for x in (q, k, v)]
    distance = np.abs(np.arange(20)[:, None] + 4 - np.arange(24))
    scores = 3 * np.tanh(4 * (wide[0] @ wide[1].swapaxes(-1, -2)) / 3) - slopes[:, None, None] * distance
    weights = softmax(scores, mask.mask)
    # Scores of up to 64 have errors of 16 terms, and are capped and lessened.
    within(o, weights @ wide[2], (2 * weights) @ np.abs(wide[2]), 64 * (16 + 24 + 40))
    of_samples = np.stack([slopes, slopes])
    again = lacuna.sparse_attention(q, k, v, mask.pattern(), scale=4.0, softcap=3.0, alibi_slopes=of_samples)
    assert (again == o).all(), "slopes of each sample"
    for wrong in (slopes[:2], np.ones((2, 3, 1), "float32"), of_samples.T.copy().T):
        with pytest.raises(lacuna.InputError, match="alibi_slopes"):
            lacuna.sparse_attention(q, k, v, mask.pattern(), alibi_slopes=wrong)
    pattern = mask.pattern()
    lacuna.sparse_attention(q, k, v, pattern)
    with pytest.raises(lacuna.InputError, match="the soft cap"):
        lacuna.sparse_attention(q, k, v, pattern, softcap=0.0)


def test_attention_of_heads_that_share_keys():
    # Samples of 4 heads, of which two share K and V.
    pattern = Drawn(20, 24, 0.5).pattern()
    q, k, v = dense(2, 4, 20, 16), dense(2, 2, 24, 16, seed=3), dense(2, 2, 24, 16, seed=4)
    o = lacuna.sparse_attention(q, k, v, pattern)
    assert (o == lacuna.sparse_attention(q, k.repeat(2, 1), v.repeat(2, 1), pattern)).all()
    o = lacuna.sparse_attention(q[0], k[0], v[0], pattern)
    assert (o == lacuna.sparse_attention(q[0], k[0].repeat(2, 0), v[0].repeat(2, 0), pattern)).all()
    window = lacuna.Mask.sliding_window(32, 5)
    q, k, v = (dense(heads, 32, 16, dtype="float16", seed=heads) for heads in (4, 1, 1))
    o = lacuna.sparse_attention(q, k, v, window)
    alone = [lacuna.sparse_attention(q[head : head + 1], k, v, window) for head in range(4)]
    assert np.max(np.abs(o.astype("float32") - np.concatenate(alone).astype("float32"))) <= 2.0**-10


def seen_by(mask):
    """The mask as an array: attention with equal scores, whose values name their keys."""
    queries, keys = mask.shape
    o = lacuna.sparse_attention(np.zeros((queries, keys), "float32"), np.zeros((keys, keys), "float32"), np.eye(keys, dtype="float32"), mask)
    return o > 0


def test_masks_by_rule():
    blocks = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]])
    seen = seen_by(lacuna.Mask.blocks(10, 10, (4, 4), blocks))
    assert (seen == np.kron(blocks, np.ones((4, 4)))[:10, :10].astype(bool)).all()
    seen = seen_by(lacuna.Mask.global_tokens(6, 8, [2], [0, 7]) | lacuna.Mask.diagonals(6, 8, -1, 1))
    place = np.arange(8)[None] - np.arange(6)[:, None]
    expected = np.abs(place) <= 1
    expected[2], expected[:, [0, 7]] = True, True
    assert (seen == expected).all()
    assert (seen_by(lacuna.Mask.documents([2, 3], [4, 1])) == np.repeat([[1, 1, 1, 1, 0], [0, 0, 0, 0, 1]], [2, 3], 0)).all()
    any_mask = dense(7, 9) > 0.2
    assert (seen_by(lacuna.Mask.from_dense(any_mask)) == any_mask).all()
    assert (seen_by(lacuna.Mask.causal_lower_right(3, 5)) == np.tril(np.ones((3, 5)), 2)).all()


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_patterns_of_coordinates(index):
    a, b = Drawn(23, 31, 0.7, index=index), dense(31, 6)
    rows = np.nonzero(a.mask)[0].astype(index)
    pattern = lacuna.Pattern.from_coo(rows, a.columns, a.shape)
    assert (pattern.shape, pattern.nnz) == (a.shape, len(a.columns))
    assert (lacuna.spmm(lacuna.SparseCsr(pattern, a.values), b) == lacuna.spmm(a.sparse(), b)).all()


def test_indices_of_16_bits():
    a, b, k = Drawn(12, 20, 0.6), dense(20, 8), dense(2, 20, 16, seed=3)
    narrow = lacuna.Pattern(a.offsets, a.columns, a.shape, index_bits=16)
    assert (narrow.index_bits, a.pattern().index_bits, narrow.T.index_bits) == (16, 32, 16)
    ours, wide = lacuna.SparseCsr(narrow, a.values), a.sparse()
    assert (lacuna.spmm(ours, b) == lacuna.spmm(wide, b)).all()
    assert (lacuna.spmm(ours.T, dense(12, 8)) == lacuna.spmm(wide.T, dense(12, 8))).all()
    assert (lacuna.sparse_softmax(ours).values == lacuna.sparse_softmax(wide).values).all()
    assert (lacuna.sddmm(narrow, dense(12, 8), b).values == lacuna.sddmm(a.pattern(), dense(12, 8), b).values).all()
    q = dense(2, 12, 16)
    assert (lacuna.sparse_attention(q, k, k, narrow) == lacuna.sparse_attention(q, k, k, a.pattern())).all()


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


def test_float32_attention_in_parts_and_by_fused_multiply_adds():
    tokens, dim = 160, 64
    seen, mask = np.tril(np.ones((tokens, tokens), bool)), lacuna.Mask.causal(tokens)
    q, k, v = (dense(2, tokens, dim, seed=seed) for seed in range(3))
    wide = [x.astype(np.float64) for x in (q, k, v)]
    expected = softmax(wide[0] @ wide[1].swapaxes(-1, -2) / 8, seen) @ wide[2]
    errors = []
    for precise in (False, True):
        errors.append(np.max(np.abs(lacuna.sparse_attention(q, k, v, mask, precise=precise) - expected)))
        assert len(mask._patterns) == precise, "a pattern is written out only where kernels take no blocks"
    assert errors[1] < 2.0**-19 and errors[1] < errors[0] < 2.0**-13


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


def test_patterns_give_their_indices():
    for rows, cols in ((5, 9), (3, 5000), (6000, 2)):
        drawn = Drawn(rows, cols, 0.7)
        for pattern in (drawn.pattern(), lacuna.Pattern(drawn.offsets, drawn.columns, drawn.shape, index_bits=16)):
            offsets, columns = pattern.indices()
            assert offsets.dtype == columns.dtype == np.int64
            assert (offsets == drawn.offsets).all() and (columns == drawn.columns).all()
    offsets, columns = lacuna.Pattern(np.zeros(4, int), np.zeros(0, int), (3, 2)).indices()
    assert (offsets == 0).all() and len(offsets) == 4 and len(columns) == 0


def test_patterns_of_lists():
    scores, values = dense(9, 9), dense(9, 8)
    _, keys = lacuna.topn(scores, 4)
    mask = lacuna.Pattern.from_lists(keys, 9, diagonal=0)
    seen = np.zeros((9, 9), bool)
    np.put_along_axis(seen, keys, True, 1)
    seen = np.tril(seen)
    assert mask.shape == (9, 9) and mask.nnz == seen.sum()
    weights = np.where(seen, np.exp(scores.astype(np.float64) * 0 + values @ values.T / 8**0.5), 0)
    total = weights.sum(1, keepdims=True)
    expected = np.divide(weights @ values, total, out=np.zeros((9, 8)), where=total > 0)
    assert np.max(np.abs(lacuna.sparse_attention(values, values, values, mask) - expected)) < 1e-5
    assert lacuna.Pattern.from_lists(np.array([[2, -1, 2], [0, 1, 2]]), 3, index_bits=16).nnz == 4


def test_embedding_bag():
    table = dense(30, 12)
    offsets, indices = np.array([0, 2, 2, 6]), np.array([3, 29, 0, 5, 5, 7])
    weights = dense(6, seed=5)
    for mode, dtype in (("sum", np.int64), ("mean", np.int32)):
        out = lacuna.embedding_bag(table, lacuna.Bags(offsets.astype(dtype), indices.astype(dtype), 30, mode=mode))
        bags = [table[indices[start:end]] for start, end in zip(offsets, offsets[1:])]
        expected = np.stack([bag.sum(0) / (max(len(bag), 1) if mode == "mean" else 1) for bag in bags])
        assert np.max(np.abs(out - expected)) < 6 * 2.0**-23
    out = lacuna.embedding_bag(table, lacuna.Bags(offsets[:-1], indices, 30, weights=weights, include_last_offset=False))
    assert np.max(np.abs(out[0] - (table[3] * weights[0] + table[29] * weights[1]))) < 4 * 2.0**-23
