"""Runs the tests that need PyTorch and a GPU, from an unpacked wheel, without pytest; prints a line each, and a summary.

    python gpu/check.py [--wheel lacuna-….whl | --package FOLDER] [name …]

A wheel is unpacked into a folder beside it. Without either, the installed package is used. The tutorials are read from the folder `docs` beside `python`.
"""

import argparse
import importlib
import pathlib
import sys
import time
import traceback
import zipfile


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=pathlib.Path)
    parser.add_argument("--package", type=pathlib.Path, help="the folder that holds `lacuna`")
    parser.add_argument("names", nargs="*", help="parts of names of tests to run")
    arguments = parser.parse_args()
    folder = arguments.package
    if arguments.wheel:
        folder = arguments.wheel.with_suffix("")
        with zipfile.ZipFile(arguments.wheel) as wheel:
            wheel.extractall(folder)
    if folder:
        sys.path.insert(0, str(folder.resolve()))
    try:
        import torch
    except ImportError:
        print("PyTorch is missing")
        return 3
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        return 3
    import lacuna

    print(f"lacuna {lacuna.__version__} from {pathlib.Path(lacuna.__file__).parent}")
    print(f"PyTorch {torch.__version__}, Python {sys.version.split()[0]}, {torch.cuda.get_device_name()}")
    sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
    modules = [importlib.import_module(name) for name in ("test_torch", "test_attention", "test_devices", "test_direct", "test_layers", "test_tutorials")]
    failed, ran = [], 0
    for name, test in ((name, test) for module in modules for name, test in list(vars(module).items())):
        if not name.startswith("test_") or not callable(test) or (arguments.names and not any(part in name for part in arguments.names)):
            continue
        ran += 1
        start = time.perf_counter()
        try:
            test()
            torch.cuda.synchronize()
            result = "ok"
        except Exception:
            traceback.print_exc()
            failed.append(name)
            result = "FAILED"
        print(f"{name}: {result}, {time.perf_counter() - start:.1f} s", flush=True)
    print(f"{ran - len(failed)} of {ran} tests passed" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
