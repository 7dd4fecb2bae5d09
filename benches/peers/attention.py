"""Attention by PyTorch, beside `lacuna-bench sweep --suite attention-masks`: dense causal SDPA by each of its kernels, and FlexAttention with the masks.

    python3 attention.py [--tokens 4096 12288] [--heads 8] [--dim 64] [--type f16] [--backward] [--samples 15] [--out peers.jsonl]

Writes a JSON object a line: the time of a call in microseconds (median, min, max of replays of a CUDA graph that holds several calls), and for
FlexAttention the time to make its mask ready. With `--backward` it is the time of the gradients of Q, K and V alone. Masks are drawn by the same rules as ours, not by the same numbers: a causal band with ever
fewer keys away from it (SC 2020), the band alone, random blocks of 64 x 64 below the diagonal, and causal attention inside documents.
"""

import argparse
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from timing import about, captured, microseconds, summary, written

# Of a graph, so that short ones do not wait for the next launch of it.
CALLS = 4
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}


def paper_mask(tokens, band=256, sparsity=0.95):
    """The mask of SC 2020, dense: a band, and beside it keys with a probability that falls with the distance."""
    distance = torch.arange(tokens, device="cuda")[:, None] - torch.arange(tokens, device="cuda")[None, :]
    far = torch.arange(band, tokens, device="cuda", dtype=torch.float64)
    pairs = tokens - far
    low, high = 0.0, float(tokens)
    for _ in range(64):
        middle = (low + high) / 2
        if (pairs * (middle / far).clamp(max=1)).sum() < (1 - sparsity) * pairs.sum():
            low = middle
        else:
            high = middle
    chance = high / distance.clamp(min=1).float()
    return ((distance >= 0) & (distance < band)) | ((distance >= band) & (torch.rand_like(chance) < chance))


def masks(tokens):
    """For each mask its name, and what tells whether a query sees a key."""
    paper = paper_mask(tokens)
    yield "paper", lambda b, h, q, k: paper[q, k]
    yield "band 256", lambda b, h, q, k: (q >= k) & (q - k < 256)
    for percent in (50, 80, 95):
        blocks = tokens // 64
        drawn = torch.rand(blocks, blocks, device="cuda") >= percent / 100
        drawn |= torch.eye(blocks, dtype=torch.bool, device="cuda")
        yield f"blocks {percent} %", lambda b, h, q, k, drawn=drawn: drawn[q // 64, k // 64] & (q // 64 >= k // 64)
    document = torch.arange(tokens, device="cuda") // 768
    yield "documents", lambda b, h, q, k: (document[q] == document[k]) & (q >= k)
    yield "causal", lambda b, h, q, k: q >= k


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, nargs="+", default=[4096, 12288])
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--type", choices=TYPES, default="f16")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--out")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_grad_enabled(options.backward)

    stream = torch.cuda.Stream()

    def timed(call):
        """What is timed: the call, or the gradients of one that was made before. They run on the stream of that, so it is the recorded one."""
        if not options.backward:
            return call
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            o = call()
            d_o = torch.randn_like(o)
        return lambda: torch.autograd.grad(o, (q, k, v), d_o, retain_graph=True)

    def report(peer, mask, tokens, call, more=None):
        record = {"peer": peer, "mask": mask, "tokens": tokens, "heads": options.heads, "dim": options.dim}
        record |= {"type": options.type, "backward": options.backward} | about() | (more or {})
        with written(record, options.out):
            times = microseconds(captured(timed(call), CALLS, stream)[0].replay, options.samples, 1)
            record["time_us"] = summary([time / CALLS for time in times])

    for tokens in options.tokens:
        shape = (1, options.heads, tokens, options.dim)
        q, k, v = (
            torch.randn(shape, device="cuda", dtype=TYPES[options.type], requires_grad=options.backward) for _ in range(3)
        )
        for name, backend in BACKENDS.items():
            with sdpa_kernel(backend):
                report(f"sdpa {name}", "causal", tokens, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
        for name, sees in masks(tokens):
            # Each mask is compiled by itself: beyond a few, the compiler gives up, and runs what is not fused.
            torch._dynamo.reset()
            flex = torch.compile(flex_attention, dynamic=False)
            torch.cuda.synchronize()
            begin = time.perf_counter()
            mask = create_block_mask(sees, None, None, tokens, tokens, device="cuda")
            torch.cuda.synchronize()
            ready = {"mask_ms": (time.perf_counter() - begin) * 1e3}
            report("flex", name, tokens, lambda mask=mask: flex(q, k, v, block_mask=mask), ready)


if __name__ == "__main__":
    main()
