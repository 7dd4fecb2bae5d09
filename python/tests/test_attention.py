"""Gradients of attention by blocks, on a GPU. As `test_torch`, also run by `gpu/check.py`."""

from test_torch import OPS, UNIT, dense, expect_no_wait, soft

import lacuna
import torch

TYPES = (torch.float16, torch.bfloat16)


def goes_by_blocks():
    return torch.cuda.get_device_capability() == (9, 0)


def heads(queries_shape, keys_shape, dtype):
    shapes = queries_shape, keys_shape, keys_shape
    return [dense(*shape, dtype=dtype, seed=seed).requires_grad_() for seed, shape in enumerate(shapes, 1)]


def masks(tokens):
    place = torch.arange(tokens, device="cuda")
    behind = place[:, None] - place
    cut = tokens // 3
    return [
        (lacuna.Mask.causal(tokens), behind >= 0),
        (lacuna.Mask.sliding_window(tokens, 100), (behind >= 0) & (behind < 100)),
        (lacuna.Mask.documents([cut, tokens - cut]), (place[:, None] < cut) == (place < cut)),
    ]


def test_gradients_by_blocks():
    for dtype in TYPES:
        for queries_shape, keys_shape in (((300, 64), (300, 64)), ((4, 300, 64), (2, 300, 64)), ((2, 4, 300, 128), (2, 1, 300, 128)), ((2, 300, 256), (2, 300, 256))):
            for mask, seen in masks(300):
                operands = heads(queries_shape, keys_shape, dtype)
                doubles = [x.detach().double().requires_grad_() for x in operands]
                q, k, v = doubles
                group = q.shape[-3] // k.shape[-3] if q.dim() > 2 else 1
                k, v = (x.repeat_interleave(group, -3) if group > 1 else x for x in (k, v))
                expected = soft(q @ k.mT / q.shape[-1] ** 0.5, seen) @ v
                gradient = dense(*queries_shape, dtype=dtype, seed=5)
                expected.backward(gradient.double())
                # The first call plans, the second goes past the dispatcher.
                for _ in range(2):
                    found = torch.autograd.grad(lacuna.sparse_attention(*operands, mask), operands, gradient)
                    for got, want in zip(found, doubles):
                        assert got.dtype == dtype and got.shape == want.shape
                        error = (got - want.grad).abs().max()
                        assert error <= 8 * 16 * UNIT[dtype], (dtype, queries_shape, error)
                assert (mask._last_backward is not None) == goes_by_blocks()


def modified(scores, softcap, slopes):
    """Scores within a cap, and lessened by distance."""
    scores = scores if softcap is None else softcap * torch.tanh(scores / softcap)
    place = torch.arange(scores.shape[-1], device="cuda")
    return scores if slopes is None else scores - slopes[:, None, None] * (place[:, None] - place).abs()


def test_caps_and_slopes():
    """By a mask's blocks and by its pattern; forward and backward."""
    slopes = torch.tensor([0.5, 0.0, 0.01, 2.0], device="cuda")
    for dtype in (*TYPES, torch.float32):
        for mask, seen in masks(300):
            for softcap, of_heads in ((1.5, None), (None, slopes), (1.0, slopes)):
                operands = heads((2, 4, 300, 64), (2, 2, 300, 64), dtype)
                q, k, v = doubles = [x.detach().double().requires_grad_() for x in operands]
                k, v = (x.repeat_interleave(2, -3) for x in (k, v))
                expected = soft(modified(q @ k.mT, softcap, of_heads), seen) @ v
                gradient = dense(2, 4, 300, 64, dtype=dtype, seed=5)
                expected.backward(gradient.double())
                unit = UNIT[dtype] + (2.0**-14 if dtype == torch.float32 else 0)
                for _ in range(2):
                    o = lacuna.sparse_attention(*operands, mask, scale=1.0, softcap=softcap, alibi_slopes=of_heads)
                    assert (o - expected).abs().max() <= 32 * unit, (dtype, softcap, (o - expected).abs().max())
                    for got, want in zip(torch.autograd.grad(o, operands, gradient), doubles):
                        error = (got - want.grad).abs().max()
                        assert error <= 16 * 16 * unit, (dtype, softcap, error)
                with torch.no_grad():
                    again = lacuna.sparse_attention(*operands, mask, scale=1.0, softcap=softcap, alibi_slopes=of_heads)
                assert torch.equal(again, o)


def test_float32_in_parts_and_by_fused_multiply_adds():
    """A rule's blocks in parts of bfloat16, or its pattern; both with gradients, and as an operator."""
    for mask, seen in masks(300):
        errors = []
        for precise in (False, True):
            operands = heads((4, 300, 64), (4, 300, 64), torch.float32)
            q, k, v = doubles = [x.detach().double().requires_grad_() for x in operands]
            expected = soft(q @ k.mT / 8, seen) @ v
            gradient = dense(4, 300, 64, seed=5)
            expected.backward(gradient.double())
            # The first call plans, the second goes past the dispatcher.
            for _ in range(2):
                o = lacuna.sparse_attention(*operands, mask, precise=precise)
                found = torch.autograd.grad(o, operands, gradient)
            again = OPS.attention(*operands, mask.id, 0.125, None, None, precise)
            assert torch.equal(o, again)
            errors.append((o - expected).abs().max())
            assert all((got - want.grad).abs().max() < 2.0**-9 for got, want in zip(found, doubles))
        assert errors[1] < 2.0**-18 and (errors[0] > 0 if goes_by_blocks() else errors[0] == errors[1])
        assert errors[0] < 2.0**-12
    torch.library.opcheck(OPS.attention.default, (*operands, mask.id, 0.125, None, None, True))


def test_operators_of_caps_and_slopes():
    mask, slopes = lacuna.Mask.sliding_window(96, 20), torch.tensor([0.5, 0.25, 0.0, 1.0], device="cuda")
    for dtype in TYPES:
        q, k, v = heads((4, 96, 64), (2, 96, 64), dtype)
        for operator in (OPS.attention_with_logsumexp, OPS.attention):
            torch.library.opcheck(operator.default, (q, k, v, mask.id, 0.125, 3.0, slopes))

    def network(q, k, v):
        return lacuna.sparse_attention(2 * q, k, v, mask, softcap=3.0, alibi_slopes=slopes).float().square().sum()

    results = []
    for function in (network, torch.compile(network, fullgraph=True)):
        operands = heads((4, 96, 64), (2, 96, 64), torch.float16)
        function(*operands).backward()
        results.append([x.grad.float() for x in operands])
    for eager, compiled in zip(*results):
        assert torch.allclose(eager, compiled, rtol=1e-2, atol=1e-2)


def test_operands_with_gaps():
    """Q, K and V as parts of one matrix, and a gradient by tokens × heads."""
    mask = lacuna.Mask.causal(200)
    x = dense(200, 3 * 4 * 64, dtype=torch.float16).requires_grad_()
    parts = x.unflatten(1, (3, 4, 64)).permute(1, 2, 0, 3)
    gradient = dense(200, 4, 64, dtype=torch.float16, seed=5).transpose(0, 1)
    o = lacuna.sparse_attention(*parts, mask)
    (found,) = torch.autograd.grad(o, x, gradient)
    plain = [part.detach().contiguous().requires_grad_() for part in parts]
    expected = torch.autograd.grad(lacuna.sparse_attention(*plain, mask), plain, gradient.contiguous())
    assert torch.equal(found, torch.stack(expected).permute(2, 0, 1, 3).reshape(200, -1))


def test_operators_of_gradients_by_blocks():
    mask = lacuna.Mask.sliding_window(96, 20)
    for dtype in TYPES:
        q, k, v = heads((4, 96, 64), (2, 96, 64), dtype)
        torch.library.opcheck(OPS.attention_with_logsumexp.default, (q, k, v, mask.id, 0.125))
        plain = [x.detach() for x in (q, k, v)]
        o, logsumexp = OPS.attention_with_logsumexp(*plain, mask.id, 0.125)
        d_o = dense(4, 96, 64, dtype=dtype, seed=5)
        torch.library.opcheck(OPS.attention_backward_by_blocks.default, (*plain, o, logsumexp, d_o, mask.id, 0.125))


def test_compiled_attention():
    mask = lacuna.Mask.causal(128)
    results = []

    def network(q, k, v):
        return lacuna.sparse_attention(2 * q, k, v, mask).float().square().sum()

    for function in (network, torch.compile(network, fullgraph=True)):
        operands = heads((2, 128, 64), (2, 128, 64), torch.float16)
        function(*operands).backward()
        results.append([x.grad.float() for x in operands])
    for eager, compiled in zip(*results):
        assert torch.allclose(eager, compiled, rtol=1e-2, atol=1e-2)


def test_gradients_by_blocks_do_not_wait():
    mask = lacuna.Mask.causal(512)
    operands = heads((2, 512, 64), (2, 512, 64), torch.float16)
    work = lambda: lacuna.sparse_attention(*operands, mask).sum().backward()
    expect_no_wait(work)


def test_gradients_with_slopes_do_not_wait():
    slopes = torch.tensor([0.5, 0.25], device="cuda")
    for mask, dtype in ((lacuna.Mask.causal(256), torch.float16), (lacuna.Mask.causal(256), torch.float32)):
        operands = heads((2, 256, 64), (2, 256, 64), dtype)
        expect_no_wait(lambda: lacuna.sparse_attention(*operands, mask, softcap=3.0, alibi_slopes=slopes).sum().backward())


def test_gradients_by_blocks_in_a_graph():
    mask = lacuna.Mask.causal(256)
    operands = heads((2, 256, 64), (2, 256, 64), torch.float16)

    def step():
        for x in operands:
            x.grad = None
        lacuna.sparse_attention(*operands, mask).float().square().sum().backward()
        return [x.grad for x in operands]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gradients = step()
    with torch.no_grad():
        operands[0].copy_(dense(2, 256, 64, dtype=torch.float16, seed=11))
    graph.replay()
    got = [x.clone() for x in gradients]
    assert all(torch.equal(x, y) for x, y in zip(got, step()))


def test_streams_have_rooms_of_their_own():
    mask = lacuna.Mask.causal(512)
    operands = [heads((2, 512, 64), (2, 512, 64), torch.float16) for _ in range(2)]
    with torch.no_grad():
        operands[1][0].mul_(-1)
    work = lambda x: torch.autograd.grad(lacuna.sparse_attention(*x, mask).float().square().sum(), x)
    expected = [work(x) for x in operands]
    torch.cuda.synchronize()
    streams, found = [torch.cuda.Stream() for _ in range(2)], [None, None]
    for _ in range(10):
        for index, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                found[index] = work(operands[index])
    torch.cuda.synchronize()
    for got, want in zip(found, expected):
        assert all(torch.equal(x, y) for x, y in zip(got, want))
