#!/usr/bin/env python3
"""The demo's sample with the first rows of its activations alone: sanitizers see as much in a tenth.

    cut_sample.py SAMPLE.safetensors ROWS FOLDER     writes FOLDER/SAMPLE.safetensors
"""
import json
import pathlib
import struct
import sys


def main(argv):
    if len(argv) != 4:
        sys.exit(__doc__)
    source, rows, folder = pathlib.Path(argv[1]), int(argv[2]), pathlib.Path(argv[3])
    data = source.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header, tensors, at = {}, b"", 8 + size
    for name, tensor in json.loads(data[8:at]).items():
        if name == "__metadata__":
            continue
        first, last = tensor["data_offsets"]
        shape = list(tensor["shape"])
        if name.endswith(".input"):
            last = first + (last - first) // shape[0] * rows
            shape[0] = rows
        header[name] = {"dtype": tensor["dtype"], "shape": shape,
                        "data_offsets": [len(tensors), len(tensors) + last - first]}
        tensors += data[at + first:at + last]
    text = json.dumps(header).encode()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / source.name).write_bytes(struct.pack("<Q", len(text)) + text + tensors)


if __name__ == "__main__":
    main(sys.argv)
