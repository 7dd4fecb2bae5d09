"""What the scripts of this folder share: how a time is taken, and how a record is written."""

import contextlib
import json
import statistics

import torch


def captured(call, calls=1, stream=None):
    """A CUDA graph of so many calls, which were made before, and the last one's result; recorded on this stream, or on one of its own."""
    own = stream is None
    stream = torch.cuda.Stream() if own else stream
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=None if own else stream):
        for _ in range(calls):
            result = call()
    return graph, result


def microseconds(run, samples, repeats=20):
    """Times of a run, each the mean over some in a row between two events; one more goes before."""
    times = []
    for _ in range(samples + 1):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(repeats):
            run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / repeats)
    return times[1:]


def summary(times):
    """Median, least and greatest, as records have them."""
    return {"median": statistics.median(times), "min": min(times), "max": max(times)}


def about():
    """The versions and the machine, as records have them."""
    return {"torch": torch.__version__, "device": torch.cuda.get_device_name()}


def write(record, out):
    """Prints a record, and appends it to a file where one is named."""
    line = json.dumps(record)
    print(line, flush=True)
    if out:
        with open(out, "a", encoding="utf-8") as file:
            file.write(line + "\n")


@contextlib.contextmanager
def written(record, out):
    """Writes a record after a block that fills it, or with what went wrong there: one way that fails must not end the others."""
    try:
        yield
    except (torch.cuda.OutOfMemoryError, RuntimeError) as error:
        record["failure"] = str(error).splitlines()[0]
    torch.cuda.empty_cache()
    write(record, out)
