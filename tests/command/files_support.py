"""What the tests of file commands share: .npy and .safetensors without NumPy, e4m3, running octet."""

import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

failures = []


def check(right, what, result=None):
    if not right:
        said = ""
        if result is not None:
            said = f": exit code {result.returncode}, {result.stderr.strip()}"
        failures.append(f"{what}{said}")


def run_parts(*parts):
    """Each with the program that the command line names and a folder of its own; the exit code."""
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            part(sys.argv[1], pathlib.Path(folder))
    return finish()


def finish():
    for failure in failures:
        print(failure)
    return 1 if failures else 0


def run(octet, *arguments, **options):
    options.setdefault("timeout", 120)
    return subprocess.run([octet, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False,
                          stdin=subprocess.DEVNULL, **options)


def succeed(octet, *arguments):
    """The JSON it prints, or {} and a failure."""
    result = run(octet, *arguments, "--json")
    check(result.returncode == 0, f"octet {' '.join(map(str, arguments))}", result)
    return json.loads(result.stdout) if result.returncode == 0 else {}


def refused(octet, says, *arguments, code=2):
    """One sentence on standard error that holds `says`, and the exit code."""
    result = run(octet, *arguments)
    check(result.returncode == code and says in result.stderr and
          len(result.stderr.strip().splitlines()) == 1,
          f"octet {' '.join(map(str, arguments))}: wanted \"{says}\"", result)


def bf16(x):
    """Bits, to nearest even."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16


PACK = {"F32": lambda v: struct.pack(f"<{len(v)}f", *v),
        "F16": lambda v: struct.pack(f"<{len(v)}e", *v),
        "BF16": lambda v: struct.pack(f"<{len(v)}H", *map(bf16, v)),
        "F8_E4M3": bytes, "U8": bytes, "F8_E8M0": bytes}
DESCR = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F8_E4M3": "|u1", "U8": "|u1", "F8_E8M0": "|u1"}


def write_npy(path, dtype, shape, values):
    text = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (
        DESCR[dtype], "".join(f"{extent}, " for extent in shape))
    text = (text + " " * (63 - (10 + len(text)) % 64) + "\n").encode()
    pathlib.Path(path).write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text +
                                   PACK[dtype](values))


def read_npy(path):
    """(descr, shape, bytes)"""
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + length])  # pylint: disable=eval-used
    return header["descr"], list(header["shape"]), data[10 + length:]


def write_safetensors(path, tensors, metadata=None):
    """tensors: {name: (dtype, shape, values)}"""
    header, payload = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, values) in tensors.items():
        data = PACK[dtype](values)
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [len(payload), len(payload) + len(data)]}
        payload += data
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + payload)


def read_safetensors(path):
    """{name: (dtype, shape, bytes)}, as the format's own library reads it: no gaps are allowed."""
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    end, out = 0, {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        check(first == end, f"{path}: a gap before {name}")
        end = last
        out[name] = (entry["dtype"], entry["shape"], data[8 + length + first:8 + length + last])
    check(end == len(data) - 8 - length, f"{path}: bytes after the last tensor")
    return out


def e4m3_value(code):
    exponent, fraction = code >> 3 & 15, code & 7
    if code & 0x7f == 0x7f:
        return math.nan
    value = fraction * 2.0 ** -9 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7)
    return -value if code & 0x80 else value


def floats(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


class Numbers:
    """Reproducible, bell-shaped, exact in BF16 and FP16."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        total = 0
        for _ in range(4):
            self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
            total += self.state >> 58
        return (total - 126) / 32

    def list(self, count):
        return [self.next() for _ in range(count)]
