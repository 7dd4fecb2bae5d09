"""Gradients on the simulator, of PyTorch's CPU tensors, against autograd of dense products in float64."""

import numpy as np
import pytest
from conftest import Drawn

torch = pytest.importorskip("torch")

import lacuna  # noqa: E402 - PyTorch may be missing

pytestmark = pytest.mark.usefixtures("simulated")


def tensor(*shape, seed=2):
    return torch.from_numpy(np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")).requires_grad_()


def wide(tensors):
    return [x.detach().double().requires_grad_() for x in tensors]


def dense_of(values, mask):
    full = torch.zeros((*values.shape[:-1], *mask.shape), dtype=torch.float64)
    return full.masked_scatter(torch.from_numpy(mask).expand(full.shape), values)


def check(tensors, doubles, ours, theirs):
    """Results and gradients are alike."""
    assert torch.allclose(ours.double(), theirs, rtol=1e-4, atol=1e-5)
    gradient = torch.from_numpy(np.random.default_rng(9).uniform(-1, 1, ours.shape))
    ours.backward(gradient.float())
    theirs.backward(gradient)
    for x, y in zip(tensors, doubles):
        assert x.grad is not None and torch.allclose(x.grad.double(), y.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("relu", [False, True])
def test_spmm(batch, relu):
    drawn = Drawn(9, 14, 0.6)
    lead = () if batch is None else (batch,)
    values, b, bias = tensors = tensor(*lead, len(drawn.columns)), tensor(*lead, 14, 5, seed=3), tensor(9, seed=4)
    ours = lacuna.spmm(lacuna.SparseCsr(drawn.pattern(), values), b, bias=bias, relu=relu)
    doubles = wide(tensors)
    theirs = dense_of(doubles[0], drawn.mask) @ doubles[1] + doubles[2][:, None]
    check(tensors, doubles, ours, theirs.relu() if relu else theirs)


def test_one_matrix_for_a_batch():
    drawn = Drawn(9, 14, 0.6)
    values, b = tensors = tensor(len(drawn.columns)), tensor(3, 14, 5, seed=3)
    doubles = wide(tensors)
    check(tensors, doubles, drawn_product(drawn, values, b), dense_of(doubles[0], drawn.mask) @ doubles[1])


def drawn_product(drawn, values, b):
    return lacuna.spmm(lacuna.SparseCsr(drawn.pattern(), values), b)


def test_sddmm_and_softmax():
    drawn = Drawn(9, 14, 0.6)
    a, b = tensors = tensor(9, 6), tensor(14, 6, seed=3)
    doubles = wide(tensors)
    ours = lacuna.sparse_softmax(lacuna.sddmm(drawn.pattern(), a, b), scale=0.5).values
    scores = (0.5 * doubles[0] @ doubles[1].T).masked_fill(torch.from_numpy(~drawn.mask), float("-inf"))
    check(tensors, doubles, ours, scores.softmax(-1)[torch.from_numpy(drawn.mask)])


@pytest.mark.parametrize("shared", [1, 2])
def test_attention(shared):
    window = lacuna.Mask.sliding_window(20, 6)
    seen = torch.ones(20, 20).tril().triu(-5).bool()
    q, k, v = tensors = tensor(4, 20, 8), tensor(4 // shared, 20, 8, seed=3), tensor(4 // shared, 20, 8, seed=4)
    doubles = wide(tensors)
    spread = [x.repeat_interleave(shared, 0) for x in doubles[1:]]
    scores = (doubles[0] @ spread[0].mT / 8**0.5).masked_fill(~seen, float("-inf"))
    check(tensors, doubles, lacuna.sparse_attention(q, k, v, window), scores.softmax(-1) @ spread[1])


def test_float32_attention_of_long_rows():
    """Forward by a rule's blocks, or by its pattern if products are to be fused multiply-adds."""
    window, seen = lacuna.Mask.sliding_window(150, 100), torch.ones(150, 150).tril().triu(-99).bool()
    for precise in (False, True):
        q, k, v = tensors = tensor(150, 64), tensor(150, 64, seed=3), tensor(150, 64, seed=4)
        doubles = wide(tensors)
        scores = (doubles[0] @ doubles[1].mT / 8).masked_fill(~seen, float("-inf"))
        check(tensors, doubles, lacuna.sparse_attention(q, k, v, window, precise=precise), scores.softmax(-1) @ doubles[2])


@pytest.mark.parametrize("softcap, slopes", [(0.3, None), (None, [0.25, 0.0]), (0.5, [0.1, 1.0])])
def test_attention_with_caps_and_slopes(softcap, slopes):
    drawn = Drawn(12, 20, 0.5)
    q, k, v = tensors = tensor(2, 12, 8), tensor(2, 20, 8, seed=3), tensor(2, 20, 8, seed=4)
    doubles = wide(tensors)
    slopes = None if slopes is None else torch.tensor(slopes)
    ours = lacuna.sparse_attention(*tensors, drawn.pattern(), softcap=softcap, alibi_slopes=slopes)
    scores = modified(doubles[0] @ doubles[1].mT / 8**0.5, softcap, slopes)
    weights = scores.masked_fill(torch.from_numpy(~drawn.mask), float("-inf")).softmax(-1).nan_to_num(0)
    check(tensors, doubles, ours, weights @ doubles[2])
    with pytest.raises(lacuna.InputError, match="alibi_slopes: a gradient is wanted"):
        lacuna.sparse_attention(*tensors, drawn.pattern(), alibi_slopes=torch.ones(2).requires_grad_())


def modified(scores, softcap, slopes):
    """Scores within a cap, and lessened by distance."""
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if slopes is None:
        return scores
    queries, keys = scores.shape[-2:]
    distance = (torch.arange(queries)[:, None] + keys - queries - torch.arange(keys)).abs()
    return scores - slopes[:, None, None] * distance


def test_half_attention_with_caps_and_slopes():
    """By blocks, where a mask is a rule."""
    mask, seen = lacuna.Mask.causal(70), torch.ones(70, 70).tril().bool()
    tensors = [tensor(2, 70, 16, seed=seed).detach().half().requires_grad_() for seed in (2, 3, 4)]
    doubles = wide(tensors)
    slopes = torch.tensor([0.5, 0.01])
    ours = lacuna.sparse_attention(*tensors, mask, scale=1.0, softcap=2.0, alibi_slopes=slopes)
    scores = modified(doubles[0] @ doubles[1].mT, 2.0, slopes).masked_fill(~seen, float("-inf"))
    theirs = scores.softmax(-1) @ doubles[2]
    gradient = torch.from_numpy(np.random.default_rng(9).uniform(-1, 1, ours.shape))
    ours.backward(gradient.half())
    theirs.backward(gradient.half().double())
    assert mask._last_backward is not None
    assert torch.allclose(ours.double(), theirs, atol=2e-3)
    for x, y in zip(tensors, doubles):
        assert torch.allclose(x.grad.double(), y.grad, atol=2e-2)


def test_values_of_sparse_tensors():
    dense = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    b = tensor(3, 4)
    for sparse in (dense.to_sparse_csr(), dense.to_sparse_coo().coalesce()):
        assert torch.allclose(lacuna.SparseCsr.from_torch(sparse) @ b.detach(), dense @ b.detach())
    with pytest.raises(lacuna.InputError, match="coalesce"):
        lacuna.SparseCsr.from_torch(torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3)))
    with pytest.raises(lacuna.InputError, match="torch.sparse_csr or torch.sparse_coo"):
        lacuna.SparseCsr.from_torch(dense)


PLACE = torch.arange(150)
MASKS = {
    "causal": (lacuna.Mask.causal(150), PLACE[:, None] >= PLACE),
    "window": (lacuna.Mask.sliding_window(150, 40), (PLACE[:, None] >= PLACE) & (PLACE[:, None] - PLACE < 40)),
    "documents": (lacuna.Mask.documents([70, 0, 80]) & lacuna.Mask.causal(150), ((PLACE[:, None] < 70) == (PLACE < 70)) & (PLACE[:, None] >= PLACE)),
}


def attention_by_blocks(mask, seen, q_shape, k_shape, dtype, place=lambda x: x):
    """Gradients of Q, K and V, with operands laid out by `place`; beside those of float64."""
    leaves = [tensor(*shape, seed=seed).detach().to(dtype).requires_grad_() for shape, seed in ((q_shape, 2), (k_shape, 3), (k_shape, 4))]
    ours = lacuna.sparse_attention(*(place(x) for x in leaves), mask)
    doubles = wide(leaves)
    q, k, v = (place(x) for x in doubles)
    group = q.shape[-3] // k.shape[-3] if q.dim() > 2 else 1
    k, v = (x.repeat_interleave(group, -3) if group > 1 else x for x in (k, v))
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~seen, float("-inf"))
    theirs = scores.softmax(-1).nan_to_num(0) @ v
    assert ours.dtype == dtype and ours.is_contiguous()
    # As on a GPU (`test_torch`): weights and scores' gradients are rounded to the type. A product of float32 is three of bfloat16.
    tolerance = 16 * (2.0**-16 if dtype == torch.float32 else torch.finfo(dtype).eps / 2)
    assert (ours.double() - theirs).abs().max() <= tolerance
    gradient = tensor(*ours.shape, seed=9).detach().to(dtype)
    ours.backward(gradient)
    theirs.backward(gradient.double())
    for x, y in zip(leaves, doubles):
        assert x.grad.dtype == dtype and (x.grad.double() - y.grad).abs().max() <= 8 * tolerance, (x.grad.double() - y.grad).abs().max()


def calls_of(name, monkeypatch):
    """A list that grows with each call of this method of masks, by what it gives."""
    results, method = [], getattr(lacuna.Mask, name)

    def watched(*arguments):
        results.append(method(*arguments))
        return results[-1]

    monkeypatch.setattr(lacuna.Mask, name, watched)
    return results


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", MASKS)
def test_attention_by_blocks(name, dtype, monkeypatch):
    taken = calls_of("attend_backward", monkeypatch)
    mask, seen = MASKS[name]
    # Four heads, of which two share K and V.
    attention_by_blocks(mask, seen, (4, 150, 16), (2, 150, 16), dtype)
    assert taken == [True]


def test_attention_by_blocks_of_layouts(monkeypatch):
    taken = calls_of("attend_backward", monkeypatch)
    mask, seen = lacuna.Mask.sliding_window(40, 9), (PLACE[:40, None] >= PLACE[:40]) & (PLACE[:40, None] - PLACE[:40] < 9)
    attention_by_blocks(mask, seen, (40, 64), (40, 64), torch.float16)
    attention_by_blocks(mask, seen, (2, 4, 40, 8), (2, 2, 40, 8), torch.float16)
    # Tokens × heads, as layers have them.
    attention_by_blocks(mask, seen, (40, 4, 8), (40, 4, 8), torch.float16, lambda x: x.transpose(0, 1))
    # More keys than queries, and queries without keys.
    seen = torch.zeros(10, 20, dtype=torch.bool)
    seen[3:7, 5:18] = True
    attention_by_blocks(lacuna.Mask.from_dense(seen), seen, (2, 10, 8), (2, 20, 8), torch.bfloat16)
    assert taken == [True] * 4


@pytest.mark.parametrize("dim", [68, 132])
def test_attention_of_float32_by_blocks(dim, monkeypatch):
    taken = calls_of("attend_backward", monkeypatch)
    mask, seen = MASKS["causal"]
    attention_by_blocks(mask, seen, (4, 150, dim), (2, 150, dim), torch.float32)
    assert taken == [True]


def test_attention_that_blocks_do_not_take(monkeypatch):
    taken = calls_of("attend_backward", monkeypatch)
    mask, seen = lacuna.Mask.causal(20), torch.ones(20, 20).tril().bool()
    attention_by_blocks(mask, seen, (2, 20, 12), (2, 20, 12), torch.float16)
    attention_by_blocks(mask, seen, (2, 20, 136), (2, 20, 136), torch.float16)
    attention_by_blocks(mask, seen, (2, 20, 264), (2, 20, 264), torch.float16)
    assert taken == [False, True], "rows of 12 elements, and of 136; those of 264 are not tried"
    for operands, precise in ((8, False), (64, True), (264, False)):
        leaves = [tensor(2, 20, operands, seed=seed) for seed in range(3)]
        lacuna.sparse_attention(*leaves, mask, precise=precise).sum().backward()
    assert taken == [False, True], "float32 with short rows, precise, or with long rows is not tried"
    # Few keys a query, which is seen when blocks are asked.
    leaves = [tensor(2, 20, 64, seed=seed) for seed in range(3)]
    lacuna.sparse_attention(*leaves, mask).sum().backward()
    assert taken == [False, True, False]


def test_matrices_are_given_to_torch():
    drawn = Drawn(9, 14, 0.6)
    for lead in ((), (2,)):
        values = tensor(*lead, len(drawn.columns))
        given = lacuna.SparseCsr(drawn.pattern(), values).to_torch()
        assert given.layout == torch.sparse_csr and not given.requires_grad
        # A batch's are not made dense by PyTorch where rows are empty: each by itself.
        matrices = [given] if not lead else [torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), x.values(), x.shape) for x in given]
        for matrix, expected in zip(matrices, values.detach().reshape(-1, len(drawn.columns))):
            assert torch.equal(matrix.to_dense().double(), dense_of(expected.double(), drawn.mask))


def test_embedding_bag():
    offsets, indices = torch.tensor([0, 3, 3, 7]), torch.tensor([4, 0, 4, 8, 1, 8, 8])
    for mode in ("sum", "mean"):
        tensors = [tensor(9, 6)]
        doubles = wide(tensors)
        ours = lacuna.embedding_bag(tensors[0], lacuna.Bags(offsets, indices, 9, mode=mode))
        check(tensors, doubles, ours, torch.nn.functional.embedding_bag(indices, doubles[0], offsets[:-1], mode=mode))
