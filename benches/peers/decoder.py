#!/usr/bin/env python3
"""A step of a translation decoder in PyTorch, to set beside `lacuna-bench decoder`.

The same step and the same sizes (docs/decoder.md): embedding of the last words, a recurrent layer with ReLU, a feed-forward block with
a residual, the projection to the vocabulary, log_softmax, top-k over beams x vocabulary, and a gather of the states. Weights are
drawn. Prints a JSON line for each size, type and way of running. Needs PyTorch with CUDA.

    python3 benches/peers/decoder.py --vocabulary 10240,32000 --batch 1,16,64 > torch.jsonl
"""
import argparse
import itertools

import torch
import torch.nn.functional as F

from timing import captured, microseconds, summary, write

TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16}
WAYS = ("eager", "compile", "graph", "compile+graph")
END = 2


class Decoder:
    """Weights, and the hypotheses of a batch of sentences."""

    def __init__(self, size, dtype):
        vocabulary, hidden, inner, beams, batch = size
        self.beams, self.vocabulary = beams, vocabulary

        def drawn(rows, columns):
            return torch.randn(rows, columns, device="cuda", dtype=dtype) * (2 / columns) ** 0.5

        def zeros(length):
            return torch.zeros(length, device="cuda", dtype=dtype)

        self.embedding = torch.rand(vocabulary, hidden, device="cuda", dtype=dtype) * 2 - 1
        self.recurrent = drawn(hidden, 2 * hidden), zeros(hidden)
        self.up = (drawn(inner, hidden), zeros(inner)) if inner else None
        self.down = (drawn(hidden, inner), zeros(hidden)) if inner else None
        self.projection = drawn(vocabulary, hidden), zeros(vocabulary)
        self.state = torch.rand(batch * beams, hidden, device="cuda", dtype=dtype)
        self.words = torch.ones(batch * beams, device="cuda", dtype=torch.int64)
        self.scores = torch.full((batch, beams), float("-inf"), device="cuda")
        self.scores[:, 0] = 0
        self.finished = torch.zeros(batch, beams, device="cuda", dtype=torch.bool)
        self.first_rows = torch.arange(batch, device="cuda")[:, None] * beams
        # A finished hypothesis has one continuation: the end again, at no cost.
        self.only_end = torch.full((vocabulary,), float("-inf"), device="cuda")
        self.only_end[END] = 0

    def next(self, words, state, scores, finished):
        """The next words, states, scores and ends."""
        batch, beams = scores.shape
        state = F.relu(F.linear(torch.cat([F.embedding(words, self.embedding), state], 1), *self.recurrent))
        features = state
        if self.up:
            features = state + F.linear(F.relu(F.linear(state, *self.up)), *self.down)
        logits = F.linear(features, *self.projection)
        # In single precision also of fp16 logits: scores are sums of many words.
        log_probabilities = F.log_softmax(logits, 1, dtype=torch.float32).view(batch, beams, -1)
        log_probabilities = torch.where(finished[:, :, None], self.only_end, log_probabilities)
        candidates = (scores[:, :, None] + log_probabilities).view(batch, -1)
        scores, places = candidates.topk(beams, 1)
        parents, words = places // self.vocabulary, places % self.vocabulary
        finished = finished.gather(1, parents) | (words == END)
        rows = (self.first_rows + parents).view(-1)
        return words.view(-1), state.index_select(0, rows), scores, finished

    def stepper(self, way):
        """A function that makes one step, in this way."""
        following = self.next
        if "compile" in way:
            following = torch.compile(self.next, fullgraph=True, dynamic=False)

        def step():
            old = (self.words, self.state, self.scores, self.finished)
            for to, value in zip(old, following(*old)):
                to.copy_(value)

        return captured(step)[0].replay if "graph" in way else step


def measure(size, kind, way, samples):
    """A record of one size, type and way; with an error in place of times where it fails."""
    vocabulary, hidden, inner, beams, batch = size
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    torch.manual_seed(1)
    torch.compiler.reset()
    record = {
        "op": "decoder", "peer": "pytorch", "version": torch.__version__, "device": torch.cuda.get_device_name(),
        "case": f"v{vocabulary}_h{hidden}_i{inner}_b{beams}_s{batch}", "sentences": batch, "beams": beams,
        "vocabulary": vocabulary, "hidden": hidden, "inner": inner, "precision": kind, "way": way,
    }
    try:
        with torch.inference_mode():
            times = microseconds(Decoder(size, TYPES[kind]).stepper(way), samples)
    except Exception as error:  # One way that fails must not end the others.
        return record | {"error": f"{type(error).__name__}: {error}"[:300]}
    time = summary(times)
    per_second = 1e6 / time["median"]
    return record | {"time_us": time, "tokens_per_s": batch * per_second, "hypotheses_per_s": batch * beams * per_second}


def main():
    def numbers(text):
        return [int(number) for number in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabulary", type=numbers, default=[10240, 32000, 50257, 128000, 151936])
    parser.add_argument("--hidden", type=numbers, default=[512])
    parser.add_argument("--inner", type=int, default=4, help="features inside for each outside; 0: no feed-forward block")
    parser.add_argument("--beams", type=numbers, default=[4])
    parser.add_argument("--batch", type=numbers, default=[1, 16, 64])
    parser.add_argument("--types", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--samples", type=int, default=15)
    options = parser.parse_args()
    sizes = itertools.product(options.vocabulary, options.hidden, options.beams, options.batch)
    for (vocabulary, hidden, beams, batch), kind, way in itertools.product(sizes, options.types, options.ways):
        size = (vocabulary, hidden, hidden * options.inner, beams, batch)
        write(measure(size, kind, way, options.samples), None)


if __name__ == "__main__":
    main()
