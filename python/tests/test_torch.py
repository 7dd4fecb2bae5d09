"""Operators on PyTorch's tensors on a GPU. No fixtures: `gpu/check.py` runs these functions without pytest, too."""

import threading
import time

try:
    import torch
except ImportError:
    torch = None

if torch is None or not torch.cuda.is_available():
    import pytest

    pytest.skip("needs PyTorch and a GPU", allow_module_level=True)

import lacuna
import lacuna.torch

UNIT = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
TYPES = tuple(UNIT)
OPS = torch.ops.lacuna


def drawn(rows, cols, zeros, dtype=torch.float32, seed=0, batch=None, index=torch.int64, device="cuda", index_bits=32):
    """A random pattern with an empty row, its mask, and values with room after them."""
    generator = torch.Generator(device).manual_seed(seed)
    mask = torch.rand(rows, cols, generator=generator, device=device) >= zeros
    mask[1] = False
    offsets = torch.cat([mask.new_zeros(1, dtype=torch.int64), mask.sum(1).cumsum(0)]).to(index)
    pattern = lacuna.Pattern(offsets, mask.nonzero()[:, 1].to(index), (rows, cols), index_bits=index_bits)
    values = pattern.empty_values(dtype, batch)
    values.copy_(torch.rand(values.shape, generator=generator, device=device) * 2 - 1)
    return pattern, mask, values


def expect_no_wait(work):
    """Whether calls that were made once before return while their stream is busy."""
    work()
    torch.cuda.synchronize()
    torch.cuda._sleep(2_000_000_000)  # about a second
    slept = torch.cuda.Event()
    slept.record()
    start = time.perf_counter()
    work()
    seconds, still_sleeping = time.perf_counter() - start, not slept.query()
    torch.cuda.synchronize()
    assert still_sleeping, f"a call waited for the stream: {seconds:.3f} s"


def dense(*shape, dtype=torch.float32, seed=1):
    generator = torch.Generator("cuda").manual_seed(seed)
    return (torch.rand(*shape, generator=generator, device="cuda") * 2 - 1).to(dtype)


def spread(values, mask):
    """The dense matrix of values, in float64; gradients flow."""
    if values.dim() == 2:
        return torch.stack([spread(matrix, mask) for matrix in values])
    full = torch.zeros(mask.shape, dtype=torch.float64, device=values.device)
    return full.index_put(mask.nonzero(as_tuple=True), values.double())


def within(got, expected, magnitude, terms, dtype, roundings=0):
    """The bound of a sum: cuts of float32 (four times its rounding), split products in float32, a rounding of the type; and
    `roundings` of each term."""
    per_term = (terms + 2) * 2.0**-22 + (2.0**-16 if dtype == torch.float32 else 0) + roundings * UNIT[dtype]
    bound = magnitude * per_term + expected.abs() * 2 * UNIT[dtype] + 2.0**-24
    worst = ((got.double() - expected).abs() / bound).max().item()
    assert worst <= 1, f"{worst} times the bound"


def test_spmm_forward_and_backward():
    for dtype in TYPES:
        for rows, cols, n, batch in ((64, 96, 33, None), (300, 257, 64, None), (65, 128, 32, 3)):
            pattern, mask, values = drawn(rows, cols, 0.8, dtype, batch=batch)
            b = dense(*([] if batch is None else [batch]), cols, n, dtype=dtype).requires_grad_()
            bias = dense(rows, dtype=dtype, seed=7).requires_grad_()
            values.requires_grad_()
            c = lacuna.spmm(lacuna.SparseCsr(pattern, values), b, bias=bias)
            wide = [x.detach().double().requires_grad_() for x in (values, b, bias)]
            a = spread(wide[0], mask)
            expected = a @ wide[1] + wide[2][:, None]
            within(c, expected.detach(), (a.abs() @ wide[1].abs() + wide[2].abs()[:, None]).detach(), cols, dtype)
            gradient = dense(*c.shape, dtype=dtype, seed=9)
            c.backward(gradient)
            expected.backward(gradient.double())
            g = gradient.double().abs()
            within(values.grad, wide[0].grad, (g @ wide[1].abs().mT)[..., mask].detach(), n, dtype)
            within(b.grad, wide[1].grad, (a.abs().mT @ g).detach(), rows, dtype)
            within(bias.grad, wide[2].grad, g.sum(-1).reshape(-1, rows).sum(0), n * (batch or 1), dtype, roundings=1)


def test_sddmm_forward_and_backward():
    for dtype in TYPES:
        for rows, cols, k, batch in ((64, 96, 40, None), (130, 70, 64, 2)):
            pattern, mask, _ = drawn(rows, cols, 0.8)
            lead = [] if batch is None else [batch]
            a = dense(*lead, rows, k, dtype=dtype).requires_grad_()
            b = dense(*lead, cols, k, dtype=dtype, seed=3).requires_grad_()
            d = lacuna.sddmm(pattern, a, b).values
            wide = [x.detach().double().requires_grad_() for x in (a, b)]
            expected = (wide[0] @ wide[1].mT)[..., mask]
            within(d, expected.detach(), (wide[0].abs() @ wide[1].abs().mT)[..., mask].detach(), k, dtype)
            gradient = dense(*d.shape, dtype=dtype, seed=5)
            d.backward(gradient)
            expected.backward(gradient.double())
            g = spread(gradient, mask).abs()
            within(a.grad, wide[0].grad, (g @ wide[1].abs()).detach(), cols, dtype)
            within(b.grad, wide[1].grad, (g.mT @ wide[0].abs()).detach(), rows, dtype)


def soft(scores, mask):
    """softmax at the mask; rows without are zeros."""
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return weights.masked_fill(~mask, 0).nan_to_num(0)


def test_softmax_forward_and_backward():
    for dtype in TYPES:
        pattern, mask, values = drawn(80, 120, 0.7, dtype, batch=2)
        values.requires_grad_()
        y = lacuna.sparse_softmax(lacuna.SparseCsr(pattern, values), scale=0.5).values
        wide = values.detach().double().requires_grad_()
        expected = soft(0.5 * spread(wide, mask), mask)[..., mask]
        assert ((y.double() - expected).abs() <= expected * (2 * UNIT[dtype] + 60 * 2.0**-23)).all()
        gradient = dense(*y.shape, dtype=dtype, seed=5)
        y.backward(gradient)
        expected.backward(gradient.double())
        # y is rounded; so are the products, and the gradient.
        error = (values.grad.double() - wide.grad).abs()
        assert (error <= expected * 6 * UNIT[dtype] + 2.0**-20).all(), error.max()


def test_attention_forward_and_backward():
    for dtype in TYPES:
        for shape in ((40, 64), (2, 40, 64), (2, 3, 40, 64)):
            pattern, mask, _ = drawn(40, 40, 0.6)
            operands = [dense(*shape, dtype=dtype, seed=seed).requires_grad_() for seed in range(3)]
            o = lacuna.sparse_attention(*operands, pattern)
            q, k, v = wide = [x.detach().double().requires_grad_() for x in operands]
            expected = soft(q @ k.mT / 8, mask) @ v
            tolerance = 16 * UNIT[dtype] + (2.0**-14 if dtype == torch.float32 else 0)
            assert ((o - expected).abs() <= tolerance).all(), (dtype, (o - expected).abs().max())
            gradient = dense(*o.shape, dtype=dtype, seed=5)
            o.backward(gradient)
            expected.backward(gradient.double())
            # Weights and scores' gradients are rounded to the type, and summed over 40 keys or queries.
            for got, want in zip(operands, wide):
                assert ((got.grad - want.grad).abs() <= 8 * tolerance).all(), (dtype, (got.grad - want.grad).abs().max())


def test_masks_by_rule():
    place = torch.arange(256, device="cuda")
    seen = (place[:, None] >= place) & (place[:, None] - place < 100)
    window = lacuna.Mask.sliding_window(256, 100)
    for dtype in TYPES:
        operands = [dense(4, 256, 64, dtype=dtype, seed=seed).requires_grad_() for seed in range(3)]
        o = lacuna.sparse_attention(*operands, window)
        q, k, v = [x.detach().double() for x in operands]
        expected = soft(q @ k.mT / 8, seen) @ v
        tolerance = 16 * UNIT[dtype] + (2.0**-14 if dtype == torch.float32 else 0)
        assert ((o - expected).abs() <= tolerance).all(), (dtype, (o - expected).abs().max())
        o.sum().backward()
        assert all(x.grad.isfinite().all() for x in operands)


def test_topn_and_embedding_bag():
    logits = dense(9, 50_000) * 8
    values, indices = lacuna.topn(logits, 12)
    expected, order = logits.double().softmax(-1).topk(12)
    assert (logits.gather(1, indices.long()) == logits.gather(1, order)).all()
    assert ((values - expected).abs() <= expected * 1e-4).all()

    table = dense(1000, 64).requires_grad_()
    offsets, rows = torch.tensor([0, 3, 3, 10]), torch.randint(0, 1000, (10,), generator=torch.Generator().manual_seed(1))
    out = lacuna.embedding_bag(table, lacuna.Bags(offsets, rows, 1000, device=0))
    want_table = table.detach().double().requires_grad_()
    want = torch.nn.functional.embedding_bag(rows.cuda(), want_table, offsets[:-1].cuda(), mode="sum")
    assert ((out - want).abs() <= 2.0**-20).all()
    out.square().sum().backward()
    want.square().sum().backward()
    assert ((table.grad - want_table.grad).abs() <= 2.0**-17).all()

    # Bags of tensors on the GPU, as PyTorch has them: without the end of the last.
    for dtype in (torch.int32, torch.int64):
        bags = lacuna.Bags(offsets[:-1].to("cuda", dtype), rows.to("cuda", dtype), 1000, include_last_offset=False)
        assert torch.equal(lacuna.embedding_bag(table, bags), out)
    try:
        lacuna.Bags(offsets.cuda(), rows.cuda() + 995, 1000)
    except lacuna.InputError as error:
        assert "below 1000, the rows of the table" in str(error)
    else:
        raise AssertionError("rows that are not there were taken")


def test_gradcheck():
    """In float32: each operator is linear or smooth in what is checked, so that steps may be large."""
    pattern, _, values = drawn(12, 16, 0.5)
    values = values.requires_grad_()
    a, b, c = (dense(*shape, seed=shape[0]).requires_grad_() for shape in ((12, 8), (16, 8), (16, 8)))
    check = lambda call, *inputs: torch.autograd.gradcheck(call, inputs, eps=1e-2, atol=1e-2, rtol=1e-2)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that inputs are not float64
        assert check(lambda v, x: lacuna.spmm(lacuna.SparseCsr(pattern, v), x), values, b)
        assert check(lambda x, y: lacuna.sddmm(pattern, x, y).values, a, b)
        assert check(lambda v: lacuna.sparse_softmax(lacuna.SparseCsr(pattern, v)).values, values)
        assert check(lambda q, k, v: lacuna.sparse_attention(q, k, v, pattern), a, b, c)


def test_opcheck():
    pattern, _, values = drawn(32, 48, 0.7)
    values = values.requires_grad_()
    stride, nnz = pattern.values_stride, pattern.nnz
    a, b, q = (dense(*shape).requires_grad_() for shape in ((32, 16), (48, 16), (2, 32, 16)))
    bias, k = dense(32).requires_grad_(), dense(2, 48, 16).requires_grad_()
    check = torch.library.opcheck
    check(OPS.spmm.default, (values, b, bias, pattern.id, 32, False, False))
    check(OPS.spmm.default, (values, b, None, pattern.id, 32, True, True))
    check(OPS.transpose_values.default, (values.detach(), pattern.id, stride))
    check(OPS.sddmm.default, (a, b, pattern.id, nnz, stride, False))
    check(OPS.softmax.default, (values, pattern.id, stride, 0.5))
    check(OPS.softmax_backward.default, (values.detach(), values.detach(), pattern.id, stride, 0.5))
    check(OPS.attention.default, (q, k, k.detach().clone().requires_grad_(), pattern.id, 0.25))
    bags = lacuna.Bags(torch.tensor([0, 2, 3]), torch.tensor([1, 4, 4]), 48, device=0)
    check(OPS.topn.default, (b.detach(), 3, "logits", 1.0))
    check(OPS.embedding_bag.default, (b, bags.id, 2))


def test_a_side_stream():
    pattern, mask, values = drawn(512, 512, 0.9)
    b = dense(512, 256)
    matrix = lacuna.SparseCsr(pattern, values)
    expected = lacuna.spmm(matrix, b)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        moved = b * 2
        c = lacuna.spmm(matrix, moved)
    # On another stream it would have read what the sleeping one had not written yet.
    side.synchronize()
    assert torch.equal(c, expected * 2)


def test_calls_do_not_wait():
    pattern, _, values = drawn(512, 512, 0.9)
    matrix, b = lacuna.SparseCsr(pattern, values.requires_grad_()), dense(512, 256).requires_grad_()
    heads = [dense(2, 512, 64, seed=seed).requires_grad_() for seed in range(3)]

    def work():
        loss = lacuna.spmm(matrix, b).sum()
        loss = loss + lacuna.sparse_softmax(lacuna.sddmm(pattern, b, b)).values.sum()
        (loss + lacuna.sparse_attention(*heads, pattern).sum()).backward()

    expect_no_wait(work)


def test_nothing_is_copied():
    pattern, _, values = drawn(256, 300, 0.8)
    matrix, b = lacuna.SparseCsr(pattern, values), dense(300, 64)

    def allocations(call):
        call()
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        kept = call()
        assert kept is not None
        return torch.cuda.memory_stats()["allocation.all.allocated"] - before

    assert allocations(lambda: lacuna.spmm(matrix, b)) == 1, "the result alone"
    x, y = dense(256, 8), dense(300, 8)
    assert allocations(lambda: lacuna.sparse_softmax(lacuna.sddmm(pattern, x, y))) == 2, "a result of each"
    assert allocations(lambda: lacuna.spmm(matrix, dense_with_gaps[:, 8:72])) == 1, "rows with gaps"
    # Results of SDDMM and softmax have room, so that products read them where they are.
    scores = lacuna.sparse_softmax(lacuna.sddmm(pattern, dense(256, 8), dense(300, 8)))
    from lacuna._cuda import has_room

    assert has_room(scores.values, None, pattern.nnz, pattern.values_stride)
    # In place: the next product sees new values, as nothing was kept of the old.
    first = lacuna.spmm(matrix, b)
    values.mul_(2)
    assert torch.equal(lacuna.spmm(matrix, b), first * 2)
    # Values without room are copied, and right.
    tight = values.clone()
    assert torch.equal(lacuna.spmm(lacuna.SparseCsr(pattern, tight), b), first * 2)


dense_with_gaps = dense(300, 96)


def test_compile():
    pattern, _, values = drawn(128, 160, 0.8)

    def network(values, b):
        hidden = lacuna.spmm(lacuna.SparseCsr(pattern, values), b, relu=True)
        scores = lacuna.sddmm(pattern, hidden, b)
        return lacuna.spmm(lacuna.sparse_softmax(scores), b).tanh().sum()

    results = []
    for function in (network, torch.compile(network, fullgraph=True)):
        v, b = values.clone().requires_grad_(), dense(160, 32).requires_grad_()
        loss = function(v, b)
        loss.backward()
        results.append((loss.detach(), v.grad, b.grad))
    for eager, compiled in zip(*results):
        assert torch.allclose(eager, compiled, rtol=1e-4, atol=1e-5)


def test_cuda_graph():
    pattern, _, values = drawn(256, 256, 0.9)
    matrix, b = lacuna.SparseCsr(pattern, values.requires_grad_()), dense(256, 64).requires_grad_()

    def step():
        values.grad = b.grad = None
        loss = lacuna.spmm(matrix, b, relu=True).square().sum()
        loss.backward()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    gradients = values.grad, b.grad
    with torch.no_grad():
        b.copy_(dense(256, 64, seed=11))
    graph.replay()
    got = [x.clone() for x in (loss, *gradients)]
    want = step().detach()
    for x, y in zip(got, (want, values.grad, b.grad)):
        assert torch.equal(x, y)


def test_other_threads():
    pattern, _, values = drawn(64, 64, 0.5)
    b, results = dense(64, 32), []
    expected = lacuna.spmm(lacuna.SparseCsr(pattern, values), b)
    work = lambda: results.append(lacuna.spmm(lacuna.SparseCsr(pattern, values), b))
    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(results) == 8 and all(torch.equal(result, expected) for result in results)


def test_sparse_tensors_and_dlpack():
    wide = dense(48, 64) * (dense(48, 64, seed=4) > 0.5)
    a, b = lacuna.SparseCsr.from_torch(wide.to_sparse_csr()), dense(64, 16)
    within(a @ b, wide.double() @ b.double(), wide.double().abs() @ b.double().abs(), 64, torch.float32)

    class Other:
        """An array of another library."""

        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.tensor.__dlpack__(**options)

    assert torch.equal(lacuna.spmm(a, Other(b)), a @ b)


def refused(match, call):
    try:
        call()
    except ValueError as error:
        assert isinstance(error, lacuna.Error) and match in str(error), error
        return
    raise AssertionError(f"accepted, but expected an error with {match!r}")


def test_errors():
    pattern, _, values = drawn(8, 12, 0.5)
    a, b = lacuna.SparseCsr(pattern, values), dense(12, 4)
    refused("B is on cpu", lambda: lacuna.spmm(a, b.cpu()))
    refused("float64", lambda: lacuna.spmm(a, b.double()))
    refused("float16", lambda: lacuna.spmm(a, b.half()))
    refused("in one piece", lambda: lacuna.spmm(a, dense(4, 12).t()))
    refused("not overlap", lambda: lacuna.spmm(a, dense(1, 4).expand(12, 4)))
    refused("has shape (11, 4)", lambda: lacuna.spmm(a, dense(11, 4)))
    refused("got 12", lambda: lacuna.Pattern(torch.tensor([0, 1]).cuda(), torch.tensor([12]).cuda(), (1, 12)))
    with lacuna.simulate():
        refused("another device", lambda: lacuna.spmm(lacuna.SparseCsr(pattern, values.cpu()), b.cpu()))
    number = lacuna.Pattern(torch.tensor([0, 1]).cuda(), torch.tensor([3]).cuda(), (1, 12)).id
    refused("is gone", lambda: OPS.spmm(values[:1], b, None, number, 1, False, False))
    if torch.cuda.device_count() > 1:
        refused("cuda:1", lambda: lacuna.spmm(a, b.to("cuda:1")))


def test_gradients_keep_their_pattern():
    pattern, mask, values = drawn(8, 6, 0.5)
    b, leaf = dense(6, 4), values.requires_grad_()
    c = lacuna.spmm(lacuna.SparseCsr(pattern, leaf), b)
    del pattern
    c.sum().backward()
    assert (leaf.grad - b.sum(1)[mask.nonzero()[:, 1]]).abs().max() < 1e-5
