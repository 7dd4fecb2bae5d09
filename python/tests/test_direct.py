"""Calls past PyTorch's dispatcher, patterns of coordinates, and shared keys, on a GPU. As `test_torch`, also run by `gpu/check.py`."""

from test_torch import OPS, TYPES, UNIT, dense, drawn, refused

import lacuna
import torch
from lacuna._native import cuda_device


def test_coordinates_and_indices_of_16_bits():
    wide = dense(48, 64) * (dense(48, 64, seed=4) > 0.5)
    b = dense(64, 16)
    expected = lacuna.SparseCsr.from_torch(wide.to_sparse_csr()) @ b
    for index_bits in (32, 16):
        a = lacuna.SparseCsr.from_torch(wide.to_sparse_coo().coalesce(), index_bits=index_bits)
        assert a.pattern.index_bits == index_bits
        assert torch.equal(a @ b, expected)
        values, b_learned = a.values.detach().requires_grad_(), b.clone().requires_grad_()
        lacuna.spmm(lacuna.SparseCsr(a.pattern, values), b_learned).sum().backward()
        assert (b_learned.grad - wide.sum(0)[:, None]).abs().max() < 1e-4
    refused("coalesce", lambda: lacuna.SparseCsr.from_torch(torch.sparse_coo_tensor([[1, 0], [0, 1]], [1.0, 2.0], (2, 2)).cuda()))
    # Gradients flow to the tensor that values were taken from; they are copied once.
    sparse = wide.to_sparse_csr().requires_grad_()
    a = lacuna.SparseCsr.from_torch(sparse)
    (a @ b).sum().backward()
    assert (sparse.grad.values() - b.sum(1)[sparse.col_indices()]).abs().max() < 1e-4
    values = a.values.detach()
    assert a.pattern.with_room(values) is values


def test_heads_that_share_keys():
    pattern, _, _ = drawn(40, 40, 0.6)
    for mask in (pattern, lacuna.Mask.sliding_window(40, 9)):
        for dtype in TYPES:
            q = dense(2, 4, 40, 64, dtype=dtype).requires_grad_()
            k, v = (dense(2, 2, 40, 64, dtype=dtype, seed=seed).requires_grad_() for seed in (2, 3))
            o = lacuna.sparse_attention(q, k, v, mask)
            spread_k, spread_v = (x.detach().repeat_interleave(2, 1).requires_grad_() for x in (k, v))
            q_alone = q.detach().clone().requires_grad_()
            expected = lacuna.sparse_attention(q_alone, spread_k, spread_v, mask)
            tolerance = 16 * UNIT[dtype] + (2.0**-14 if dtype == torch.float32 else 0)
            assert (o - expected).abs().max() <= tolerance
            gradient = dense(*o.shape, dtype=dtype, seed=5)
            o.backward(gradient)
            expected.backward(gradient)
            for got, want in ((q.grad, q_alone.grad), (k.grad, spread_k.grad), (v.grad, spread_v.grad)):
                want = want if got.shape == want.shape else want.unflatten(1, (2, 2)).float().sum(2)
                assert (got.float() - want).abs().max() <= 16 * tolerance, dtype


def test_direct_calls_are_those_of_the_dispatcher():
    """The native module looks at tensors itself, and leaves to the dispatcher what is not plain, and to the checks what was not planned."""
    for index_bits in (32, 16):
        pattern, _, values = drawn(64, 96, 0.8, index_bits=index_bits)
        b, bias = dense(2, 96, 32), dense(64)
        handle = pattern._handle
        call = lambda *changed: handle.spmm_direct(*changed, *(values, b, bias, True, False)[len(changed) :])
        assert call() is None, "there is no plan yet"
        expected = OPS.spmm(values, b, bias, pattern.id, 64, True, False)
        assert torch.equal(call(), expected) and torch.equal(lacuna.spmm(lacuna.SparseCsr(pattern, values), b, bias=bias, relu=True), expected)
        with torch.inference_mode():
            assert torch.equal(call(), expected)
        for refused_values, refused_b in (
            (values, b.half()),
            (values, b[0, 0]),
            (values, b.mT),
            (values, b[:, :-1]),
            (values, b.cpu()),
            (values, b.cpu().numpy()),
            (None, None),
        ):
            assert call(refused_values, refused_b) is None
        # Memory of the same page is there, whosever it is.
        assert torch.equal(call(values.clone()), expected)
        assert call(values, b, dense(63)) is None and call(values, b, dense(128)[::2]) is None
        assert call(values, b.clone().requires_grad_()) is True
        with torch.no_grad():
            assert torch.equal(call(values, b.clone().requires_grad_()), expected)

        class Mine(torch.Tensor):
            """A tensor of another type."""

        assert call(values, b.as_subclass(Mine)) is None
        from torch.utils._python_dispatch import TorchDispatchMode

        class Watching(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        with Watching():
            assert call() is None
        with torch.cuda.stream(torch.cuda.Stream()):
            assert call() is None, "plans are made for a stream"
        # Values by rows of which each has room, and rows of B with gaps.
        many = pattern.empty_values(torch.float32, 2).copy_(torch.stack([values, 2 * values]))
        gaps = dense(2, 96, 40)[..., :32]
        expected = lacuna.spmm(lacuna.SparseCsr(pattern, many), gaps)
        assert torch.equal(call(many, gaps, None, False, False), expected)
        assert torch.equal(expected[0], lacuna.spmm(lacuna.SparseCsr(pattern, values), gaps[0]))
        # The other operators.
        a, b = dense(64, 24), dense(96, 24)
        d = lacuna.sddmm(pattern, a, b).values
        assert torch.equal(handle.sddmm_direct(a, b, False), d) and handle.sddmm_direct(a, b.half(), False) is None
        y = lacuna.sparse_softmax(lacuna.SparseCsr(pattern, d)).values
        assert torch.equal(handle.softmax_direct(d, 1.0), y)
        gradient = OPS.softmax_backward(y, d, pattern.id, pattern.values_stride, 1.0)
        assert torch.equal(handle.softmax_direct(y, 1.0, d), gradient)
        moved = OPS.transpose_values(d, pattern.id, pattern.values_stride)
        assert torch.equal(pattern.T._handle.gather_direct(d), moved)
        q, k = dense(2, 64, 24), dense(2, 96, 24)
        o, plain = lacuna.sparse_attention(q, k, k, pattern), (None, None, None, False)
        assert torch.equal(handle.attention_direct(q, k, k, plain), o) and handle.attention_direct(q, k, k[:1], plain) is None


def test_lookups_and_topn():
    table, rows = dense(1000, 64), torch.randint(0, 1000, (300,), device="cuda")
    bags = lacuna.Bags(torch.arange(0, 300, 3, device="cuda"), rows, 1000, include_last_offset=False)
    handle = bags._handle
    for given in (table, dense(1000, 80)[:, :64], dense(1000, 64, dtype=torch.float16)):
        out = handle.lookup_direct(given)
        assert torch.equal(out, OPS.embedding_bag(given, bags.id, 100))
        gradient = handle.backward_direct(out)
        assert torch.equal(gradient, OPS.embedding_bag_backward(out, bags.id, 1000))
    assert handle.lookup_direct(table[:-1]) is None and handle.lookup_direct(table.cpu()) is None
    assert handle.lookup_direct(table.clone().requires_grad_()) is True
    refused("has", lambda: lacuna.embedding_bag(table[:-1], bags))
    # Bags whose indices were told on the device give the gradient that autograd gives.
    learned, wide = table.clone().requires_grad_(), table.double().requires_grad_()
    weight = dense(100, 64, seed=8)
    (lacuna.embedding_bag(learned, bags) * weight).sum().backward()
    expected = torch.nn.functional.embedding_bag(rows, wide, torch.arange(0, 300, 3, device="cuda"), mode="sum")
    (expected * weight.double()).sum().backward()
    assert (learned.grad - wide.grad).abs().max() < 2.0**-17

    logits = dense(9, 5000) * 8
    device = cuda_device(0)
    call = lambda given=logits, n=12: device.topn_direct(given, n, 0, 1.0)
    assert call() is None, "there is no plan yet"
    values, indices = OPS.topn(logits, 12, "probabilities", 1.0)
    for got in (call(), lacuna.topn(logits, 12)):
        assert torch.equal(got[0], values) and torch.equal(got[1], indices)
        assert got[0].dtype == torch.float32 and got[1].dtype == torch.int32
    assert call(logits.T) is None and call(logits.half()) is None and call(logits, 11) is None
    refused("n is -1, but a whole number", lambda: lacuna.topn(logits, -1))


def test_attention_to_the_greatest_scores():
    tokens, heads, dim = 512, 4, 64
    scores = dense(tokens, tokens)
    _, keys = lacuna.topn(scores.tril() + torch.full_like(scores, -1e9).triu(1), 48)
    mask = lacuna.Pattern.from_lists(keys, tokens, diagonal=0)
    seen = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, keys.long(), True).tril()
    assert mask.nnz == int(seen.sum())
    for dtype in TYPES:
        q, k, v = operands = [dense(heads, tokens, dim, dtype=dtype, seed=seed).requires_grad_() for seed in (1, 2, 3)]
        o = lacuna.sparse_attention(q, k, v, mask)
        wide = [x.detach().double().requires_grad_() for x in operands]
        expected = torch.nn.functional.scaled_dot_product_attention(*(x[None] for x in wide), attn_mask=seen)[0]
        tolerance = 16 * UNIT[dtype] + (2.0**-14 if dtype == torch.float32 else 0)
        assert (o - expected).abs().max() <= tolerance
        gradient = dense(heads, tokens, dim, seed=5)
        o.backward(gradient.to(dtype))
        expected.backward(gradient.to(dtype).double())
        for x, y in zip(operands, wide):
            assert (x.grad - y.grad).abs().max() <= 64 * tolerance


def test_matrices_are_given_to_torch():
    wide = dense(48, 5000) * (dense(48, 5000, seed=4) > 0.9)
    given = wide.to_sparse_csr()
    for index_bits in (32, 16):
        a = lacuna.SparseCsr.from_torch(given, index_bits=index_bits)
        back = a.to_torch()
        assert back.values().data_ptr() == a.values.data_ptr(), "nothing is copied"
        assert torch.equal(back.crow_indices(), given.crow_indices()) and torch.equal(back.col_indices(), given.col_indices())
        assert torch.equal(back.to_dense(), wide)


def test_room_after_values():
    import mmap

    from lacuna._cuda import has_room

    pages = torch.frombuffer(mmap.mmap(-1, 8192), dtype=torch.float32)
    assert has_room(pages[:1000], None, 1000, 1024), "memory of its own"
    assert has_room(pages[1024:2040], None, 1016, 1024), "up to the end of the page"
    assert not has_room(pages[1024:], None, 1024, 1056), "no page after it"
    assert not has_room(pages[1025:2000], None, 975, 1000), "not aligned"
    assert not has_room(pages[:1000:2], None, 500, 520), "gaps"
    assert has_room(pages[:2000].as_strided((2, 990), (1000, 1)), 2, 990, 1000)
    assert not has_room(pages[:2000].as_strided((2, 990), (995, 1)), 2, 990, 1000)
    short = torch.frombuffer(mmap.mmap(-1, 4096), dtype=torch.float32, count=512)
    assert has_room(short, None, 512, 544), "the storage ends, and the page does not"


def test_layers_that_are_packed():
    import copy
    import pickle

    linear = torch.nn.Linear(96, 64).cuda()
    layer = lacuna.SparseLinear.from_linear(linear, 0.8).pack()
    x = dense(10, 96, dtype=torch.float16)
    expected = layer(x)
    for moved in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), layer.cpu().cuda()):
        assert torch.equal(moved(x), expected) and not any(p.requires_grad for p in moved.parameters())
    assert layer.values.dtype == torch.float32 and layer.bias.dtype == torch.float32
    refused("(64,) is expected", lambda: lacuna.SparseLinear(layer.crow_indices, layer.col_indices, layer.values, (64, 96), dense(63)))
    packed, _ = layer._packed_weights()
    refused("(64,) without gaps", lambda: packed.product(x.t().contiguous(), dense(63, dtype=torch.float16)))


def test_a_recording_takes_the_plan_of_any_stream():
    pattern, _, values = drawn(64, 96, 0.8)
    matrix, b, other = lacuna.SparseCsr(pattern, values), dense(96, 32), dense(96, 48)
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        expected = lacuna.spmm(matrix, b)
    lacuna.spmm(matrix, other)
    with torch.cuda.stream(warm):
        lacuna.spmm(matrix, b)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = lacuna.spmm(matrix, b)
    graph.replay()
    assert torch.equal(c, expected)


def test_threads_share_plans_that_launch_twice():
    import threading

    lengths = torch.cat([torch.tensor([0, 20_000]), torch.full((63,), 20_000)])
    skewed = lacuna.Pattern(lengths.cuda(), torch.arange(20_000, device="cuda"), (64, 20_000))
    matrix = lacuna.SparseCsr(skewed, torch.ones(20_000, device="cuda"))
    logits = [dense(4, 200_000, seed=seed) for seed in (1, 2)]
    tops = [lacuna.topn(x, 8)[1] for x in logits]
    wrong = []

    def work(which):
        b = torch.full((20_000, 8), which + 1.0, device="cuda")
        for _ in range(300):
            if not (lacuna.spmm(matrix, b)[0] == 20_000 * (which + 1)).all():
                wrong.append("spmm")
            if not torch.equal(lacuna.topn(logits[which], 8)[1], tops[which]):
                wrong.append("topn")

    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong, wrong


def test_forward_derivatives_are_refused():
    from torch.autograd import forward_ad

    pattern, _, values = drawn(64, 96, 0.8)
    matrix, b = lacuna.SparseCsr(pattern, values), dense(96, 32)
    expected = lacuna.spmm(matrix, b)
    with forward_ad.dual_level():
        assert torch.equal(lacuna.spmm(matrix, b), expected)
        dual = forward_ad.make_dual(b, torch.ones_like(b))
        try:
            lacuna.spmm(matrix, dual)
        except lacuna.Error as error:
            assert "forward-mode" in str(error)
        else:
            raise AssertionError("the derivative was dropped")


def test_gradients_beside_arrays_of_others():
    class Other:
        """An array of another library."""

        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.tensor.__dlpack__(**options)

    pattern, _, values = drawn(64, 96, 0.8)
    learned, b = values.clone().requires_grad_(), dense(96, 32)
    lacuna.spmm(lacuna.SparseCsr(pattern, learned), Other(b)).sum().backward()
    expected = lacuna.sddmm(pattern, torch.ones(64, 32, device="cuda"), b).values
    assert (learned.grad - expected).abs().max() < 1e-4
