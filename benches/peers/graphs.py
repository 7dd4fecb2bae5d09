"""SpMM along the edges of graphs by PyTorch, beside `lacuna-bench sweep --suite spmm-graphs`: a CSR tensor times a dense one.

    python3 graphs.py FOLDER [--widths 16 64 256] [--type f32] [--samples 15] [--out peers.jsonl]

FOLDER has graphs as Matrix Market files. Writes a JSON object a line: the time of a call in microseconds (median, min, max of replays of a
CUDA graph that holds several calls, or of plain calls where they cannot be captured). PyTorch multiplies CSR tensors by cuSPARSE, and has
sums only on GPUs.
"""

import argparse
import pathlib

import torch

from timing import about, captured, microseconds, summary, written

# Of a graph, so that short ones do not wait for the next launch of it.
CALLS = 4
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def adjacency(path, dtype):
    """The matrix of a Matrix Market file in coordinates, with drawn values."""
    with open(path, encoding="utf-8") as file:
        symmetric = "symmetric" in file.readline()
        line = file.readline()
        while line.startswith("%"):
            line = file.readline()
        rows, cols, _ = (int(number) for number in line.split())
        pairs = [[int(number) - 1 for number in line.split()[:2]] for line in file if line.strip()]
    places = torch.tensor(pairs).T
    if symmetric:
        above = places[:, places[0] != places[1]].flip(0)
        places = torch.cat([places, above], 1)
    values = torch.rand(places.shape[1]) * 2 - 1
    return torch.sparse_coo_tensor(places, values.to(dtype), (rows, cols)).coalesce().to_sparse_csr().cuda()


def main():
    """Measures every graph with every width."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--widths", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--type", choices=TYPES, default="f32")
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--out")
    args = parser.parse_args()
    dtype = TYPES[args.type]
    for path in sorted(args.folder.glob("*.mtx")):
        a = adjacency(path, dtype)
        for width in args.widths:
            b = torch.rand(a.shape[1], width, dtype=dtype, device="cuda")
            record = {"op": "spmm", "case": path.stem, "n": width, "dtype": args.type, **about()}
            with written(record, args.out):
                try:
                    graph, _ = captured(lambda a=a, b=b: a @ b, CALLS)
                    times = [time / CALLS for time in microseconds(graph.replay, args.samples)]
                except RuntimeError as error:
                    record["not_captured"] = str(error).splitlines()[0]
                    times = microseconds(lambda a=a, b=b: a @ b, args.samples)
                record["time_us"] = summary(times)


if __name__ == "__main__":
    main()
