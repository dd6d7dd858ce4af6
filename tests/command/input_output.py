#!/usr/bin/env python3
"""No command writes over what it reads: not by name, by another spelling, or through links.

    input_output.py OCTET OCTET_ON_FAKE CANDIDATES.csv

Every command that writes a file is asked to write each file that it reads. It must refuse with one
sentence and exit code 2, and leave every byte where it was. OCTET_ON_FAKE has a device that is made
up. Exit code 1 and a line for each breach.
"""

import os
import pathlib
import shutil
import sys
import tempfile

from files_support import check, finish, run, succeed, write_npy, write_safetensors


def contents(folder):
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink()}


def spellings(folder, name):
    """The names that this file of the folder goes by."""
    (folder / "here").symlink_to(".")
    (folder / ("soft-" + name)).symlink_to(name)
    os.link(folder / name, folder / ("hard-" + name))
    return [folder / name, f"{folder}/./{name}", f"{folder}/here/../{folder.name}/{name}",
            folder / "here" / name, folder / ("soft-" + name), folder / ("hard-" + name)]


def make_files(folder, candidates):
    codes = [0x38] * 32
    write_npy(folder / "x.npy", "F32", (4, 8), [1.0] * 32)
    write_npy(folder / "bias.npy", "F32", (4,), [0.0] * 4)
    write_npy(folder / "q.npy", "F8_E4M3", (4, 8), codes)
    write_npy(folder / "q_scale_inv.npy", "F32", (1, 1), [1.0])
    write_npy(folder / "y_scale_inv.npy", "F32", (4, 8), [1.0] * 32)
    write_safetensors(folder / "m.safetensors", {"w": ("F8_E4M3", [4, 8], codes),
                                                 "w_scale_inv": ("F32", [1, 1], [1.0])})
    write_safetensors(folder / "f.safetensors", {"a.weight": ("F32", [4, 8], [1.0] * 32),
                                                 "b.weight": ("F32", [4, 8], [1.0] * 32)})
    (folder / "model").mkdir()
    shutil.copy(folder / "m.safetensors", folder / "model/s1.safetensors")
    write_safetensors(folder / "model/s2.safetensors", {"v": ("F32", [4, 8], [1.0] * 32)})
    (folder / "model/model.safetensors.index.json").write_text(
        '{"weight_map": {"w": "s1.safetensors", "w_scale_inv": "s1.safetensors", '
        '"v": "s2.safetensors"}}')
    (folder / "cases.txt").write_text("dense_m1n576k7168\n")
    shutil.copy(candidates, folder / "c.csv")


# An input's name in the folder, and a command that would write OUT.
COMMANDS = [
    ("x.npy", "quantize x.npy -o OUT"),
    ("x.npy", "quantize x.npy -o new.npy --scales-out OUT"),
    ("f.safetensors", "quantize f.safetensors -o OUT"),
    ("f.safetensors", "quantize f.safetensors:a.weight -o OUT"),
    ("q.npy", "dequantize q.npy -o OUT"),
    ("q_scale_inv.npy", "dequantize q.npy -o OUT"),
    ("bias.npy", "dequantize q.npy --scales bias.npy -o OUT"),
    ("m.safetensors", "dequantize m.safetensors -o OUT"),
    ("s1.safetensors", "dequantize model:w -o OUT"),
    ("s2.safetensors", "dequantize model:w -o OUT"),
    ("x.npy", "gemm x.npy q.npy --sfb 1 -o OUT"),
    ("q.npy", "gemm x.npy q.npy --sfb 1 -o OUT"),
    ("q_scale_inv.npy", "gemm x.npy q.npy --dtype-b e4m3 -o OUT"),
    ("m.safetensors", "gemm m.safetensors:w x.npy -o OUT:d"),
    ("bias.npy", "gemm x.npy x.npy --bias bias.npy -o OUT"),
    ("q_scale_inv.npy", "gemm q.npy x.npy --sfa q_scale_inv.npy -o OUT"),
    ("c.csv", "tune --from c.csv -o OUT"),
    ("cases.txt", "tune --file cases.txt -o OUT"),
    ("cases.txt", "tune --file cases.txt -o new.txt --csv OUT"),
    ("cases.txt", "bench --file cases.txt --csv OUT"),
    ("table.txt", "bench dense_m1n576k7168 --table table.txt --csv OUT"),
]


def ask(octet, folder, command, out, what):
    before = contents(folder)
    # Names of the folder's files, and of new ones, are those in it.
    arguments = [str(folder / word) if "." in word or word.startswith("model") else word
                 for word in command.replace("OUT", "O_T").split()]
    arguments = [word.replace("O_T", str(out)) for word in arguments]
    result = run(octet, *arguments)
    check(result.returncode == 2 and what in result.stderr and
          len(result.stderr.strip().splitlines()) == 1 and not result.stdout,
          f"octet {' '.join(arguments)}", result)
    check(contents(folder) == before, f"octet {' '.join(arguments)}: files were changed")


def check_files(commands, folder, candidates):
    make_files(folder, candidates)
    succeed(commands[0], "tune", "--from", folder / "c.csv", "-o", folder / "table.txt")
    for name in sorted({name for name, command in COMMANDS}):
        place = folder / "model" if (folder / "model" / name).exists() else folder
        names = spellings(place, name)
        for wanted, command in COMMANDS:
            for out in names if wanted == name else []:
                if pathlib.Path(out).suffix or wanted != name:
                    for octet in commands:
                        ask(octet, folder, command, out, "is an input of the same command")
        for left in [place / "here", place / ("soft-" + name), place / ("hard-" + name)]:
            left.unlink()
    # The scales of -o y.npy go to a name that nobody wrote on the command line.
    ask(commands[0], folder, "quantize y_scale_inv.npy -o OUT", folder / "y.npy",
        "y_scale_inv.npy: is an input of the same command")


def check_two_outputs(commands, folder, candidates):
    make_files(folder, candidates)
    (folder / "here").symlink_to(".")
    ask(commands[0], folder, "quantize x.npy -o new.npy --scales-out OUT", folder / "here/new.npy",
        "must be another file than -o")
    ask(commands[0], folder, "tune --file cases.txt -o new.txt --csv OUT", folder / "here/new.txt",
        "must be another file than -o")


def check_folders(commands, folder, candidates):
    make_files(folder, candidates)
    (folder / "link").symlink_to("model")
    write_safetensors(folder / "model/s2.safetensors", {"v.weight": ("F32", [1, 1], [1.0])})
    for out in ("model", "./model", "model/", "link", "link/", "model/../model"):
        before = contents(folder)
        result = run(commands[0], "quantize", f"{folder}/model", "-o", f"{folder}/{out}")
        check(result.returncode == 2 and "is an input of the same command" in result.stderr,
              f"a model over itself as {out}", result)
        check(contents(folder) == before, f"a model over itself as {out}: files were changed")


def check_allowed(commands, folder, candidates):
    """A table that --update adds to, devices, and a new file beside the inputs."""
    make_files(folder, candidates)
    table = folder / "t.txt"
    for _ in range(2):
        succeed(commands[0], "tune", "--from", folder / "c.csv", "-o", table, "--update")
    for _ in range(2):
        succeed(commands[0], "dequantize", f"{folder}/model:w", "-o", folder / "model/w.npy")
    result = run(commands[0], "bench", "--file", folder / "cases.txt", "--csv", "/dev/null",
                 "--dry-run")
    check(result.returncode == 0, "--csv /dev/null", result)


def main():
    commands, candidates = sys.argv[1:3], sys.argv[3]
    for part in (check_files, check_two_outputs, check_folders, check_allowed):
        with tempfile.TemporaryDirectory() as folder:
            part(commands, pathlib.Path(folder), candidates)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
