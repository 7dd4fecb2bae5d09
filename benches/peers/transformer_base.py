"""The dense twins of `lacuna-bench model --suite transformer-base`: the Transformer for translation by PyTorch, encoder and decoder, with dense weights.

    python3 transformer_base.py [--tokens 256] [--batch 1] [--samples 15] [--out twins.jsonl]

A forward pass over given sources and targets of as many tokens each, both embedded, as `TransformerBase::dense` has it: 6 and 6 layers, 8 heads, 512
features, 2,048 within, norms before each block, and no scores of words. Writes a JSON object a line: time of a pass in microseconds (median, min, max
of replays of a CUDA graph), tokens of targets a second, and how far the result is from that in fp32, as a part of the greatest element. Weights are
drawn: they are for speed. "fused": Q, K and V are made by one product where they have one input; else by one each, as DLMC has them.
"""

import argparse

import torch
import torch.nn.functional as F

from timing import about, captured, microseconds, summary, written

LAYERS, HEADS, HIDDEN, FILTER, EPSILON = 6, 8, 512, 2048, 1e-6


def norm():
    return torch.nn.LayerNorm(HIDDEN, eps=EPSILON)


def linear(parts=1):
    """So many matrices of attention side by side."""
    layer = torch.nn.Linear(HIDDEN, parts * HIDDEN, bias=False)
    # So that sums have the size of their input, however many matrices stand beside.
    torch.nn.init.normal_(layer.weight, std=HIDDEN**-0.5)
    return layer


class Attention(torch.nn.Module):
    def __init__(self, is_cross, is_causal, is_fused):
        super().__init__()
        self.is_cross, self.is_causal = is_cross, is_causal
        self.norm, self.output_transform = norm(), linear()
        # How many of Q, K and V each product makes.
        self.parts = ([1, 2] if is_cross else [3]) if is_fused else [1, 1, 1]
        self.makers = torch.nn.ModuleList(linear(parts) for parts in self.parts)

    def forward(self, x, other=None):
        y = self.norm(x)
        seen = other if self.is_cross else y
        made = []
        for parts, maker in zip(self.parts, self.makers):
            result = maker(seen if made else y)
            made.extend(result.chunk(parts, dim=-1))
        q, k, v = (part.unflatten(-1, (HEADS, HIDDEN // HEADS)).transpose(1, 2) for part in made)
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        return x + self.output_transform(heads.transpose(1, 2).flatten(2))


class FeedForward(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = norm()
        self.conv1, self.conv2 = torch.nn.Linear(HIDDEN, FILTER), torch.nn.Linear(FILTER, HIDDEN)

    def forward(self, x):
        return x + self.conv2(F.relu(self.conv1(self.norm(x))))


class Transformer(torch.nn.Module):
    def __init__(self, is_fused):
        super().__init__()
        encoder, decoder = [], []
        for _ in range(LAYERS):
            encoder += [Attention(False, False, is_fused), FeedForward()]
            decoder += [Attention(False, True, is_fused), Attention(True, False, is_fused), FeedForward()]
        self.encoder, self.decoder = torch.nn.ModuleList(encoder), torch.nn.ModuleList(decoder)
        self.encoder_norm, self.decoder_norm = norm(), norm()

    def forward(self, source, target):
        for block in self.encoder:
            source = block(source)
        source = self.encoder_norm(source)
        for block in self.decoder:
            target = block(target, source) if isinstance(block, Attention) else block(target)
        return self.decoder_norm(target)


# Name, type, whether products may be in TF32, whether the model is compiled.
TWINS = [
    ("fp32", torch.float32, False, False),
    ("compiled, fp32", torch.float32, False, True),
    ("compiled, tf32", torch.float32, True, True),
    ("compiled, f16", torch.float16, False, True),
    ("compiled, bf16", torch.bfloat16, False, True),
]


def measure(record, twin, inputs, is_fused, samples):
    """Times of one twin, and how far its result is from that of the same weights in fp32, into the record."""
    _, dtype, tf32, is_compiled = twin
    torch.manual_seed(1)
    model = Transformer(is_fused).cuda().eval()
    torch.backends.cuda.matmul.allow_tf32 = False
    expected = model(*inputs)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch._dynamo.reset()
    model, (source, target) = model.to(dtype), (tokens.to(dtype) for tokens in inputs)
    run = torch.compile(model) if is_compiled else model
    graph, result = captured(lambda: run(source, target))
    times = microseconds(graph.replay, samples)
    record["time_us"] = summary(times)
    record["tokens_per_s"] = target.shape[0] * target.shape[1] / record["time_us"]["median"] * 1e6
    record["difference"] = ((result.float() - expected).abs().max() / expected.abs().max()).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--out")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.manual_seed(2)
    inputs = [torch.randn(options.batch, options.tokens, HIDDEN, device="cuda") for _ in range(2)]
    for is_fused in [False, True]:
        for twin in TWINS:
            name = f"{twin[0]}, fused" if is_fused else twin[0]
            record = {"twin": name, "tokens": options.tokens, "batch": options.batch} | about()
            with written(record, options.out):
                measure(record, twin, inputs, is_fused, options.samples)


if __name__ == "__main__":
    main()
