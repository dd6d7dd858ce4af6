"""How the library is found and opened, what importing costs, and the structs against octet.h."""

import ctypes
import os
import shutil
import subprocess
import sys

import pytest

import octet
from octet import _library, _structs


def python(root, code, **env):
    """Runs code in a fresh interpreter that finds the package and nothing else of ours."""
    clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root / "python"), **env}
    return subprocess.run(
        [sys.executable, "-c", code], env=clean, capture_output=True, text=True, timeout=60
    )


def test_structs_are_those_of_the_header(root, tmp_path):
    lines = []
    for struct in _structs.STRUCTS:
        name = struct.__name__
        lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
        for field, _ in struct._fields_:
            lines.append(
                f'  printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), '
                f"sizeof((({name}*)0)->{field}));"
            )
    source = tmp_path / "sizes.c"
    source.write_text(
        "#include <stdio.h>\n#include <octet/octet.h>\nint main(void) {\n"
        + "\n".join(lines)
        + "\n  return 0;\n}\n"
    )
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
    program = tmp_path / "sizes"
    subprocess.run(
        [compiler, "-std=c11", f"-I{root / 'include'}", str(source), "-o", str(program)], check=True
    )
    said = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    ours = []
    for struct in _structs.STRUCTS:
        ours.append(f"{struct.__name__} {ctypes.sizeof(struct)}")
        for field, _ in struct._fields_:
            member = getattr(struct, field)
            ours.append(f"{struct.__name__}.{field} {member.offset} {member.size}")
    assert said.splitlines() == ours


def test_every_field_of_the_header_is_there(root):
    # Equal sizes and offsets leave one hole: a field of the header in what we take for padding.
    import re

    text = re.sub(r"/\*.*?\*/", "", (root / "include/octet/octet.h").read_text(), flags=re.S)
    structs = re.findall(r"typedef struct (\w+) \{(.*?)\}", text, re.S)
    assert {name for name, _ in structs} == {x.__name__ for x in _structs.STRUCTS}
    for name, body in structs:
        declared = []
        for line in filter(str.strip, body.split(";")):
            declared += [re.search(r"(\w+)(?:\[\d+\])?\s*$", x)[1] for x in line.split(",")]
        assert declared == [field for field, _ in getattr(_structs, name)._fields_]


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ("type", _structs.TYPES),
        ("grouping", _structs.GROUPINGS),
        ("scale_granularity", _structs.GRANULARITIES),
        ("scale_layout", _structs.SCALE_LAYOUTS),
        ("isa", _structs.ISAS),
        ("block", _structs.BLOCKS),
        ("scale_format", _structs.SCALE_FORMATS),
    ],
)
def test_words_are_the_enumerations_of_the_header(root, prefix, words):
    import re

    text = re.sub(r"/\*.*?\*/", "", (root / "include/octet/octet.h").read_text(), flags=re.S)
    body = re.search(rf"enum octet_{prefix}_values \{{(.*?)\}}", text, re.S)[1]
    numbers = {int(v): k.lower() for k, v in re.findall(r"OCTET_(\w+) = (\d+)", body)}
    said = {number: word for number, word in enumerate(words) if word}
    assert numbers.keys() == said.keys()
    for number, word in said.items():
        assert numbers[number].replace("_", "").endswith(word.replace("_", "")), (number, word)


def test_every_function_has_the_header_s_number_of_arguments(root):
    import re

    text = re.sub(r"/\*.*?\*/", "", (root / "include/octet/octet.h").read_text(), flags=re.S)
    declared = dict(re.findall(r"OCTET_API(?:_VOID)? [\w \*]*?(octet_\w+)\(([^)]*)\)", text))
    for name, (_, arguments) in _library._SIGNATURES.items():
        wanted = declared[name]
        assert len(arguments) == (0 if wanted == "void" else wanted.count(",") + 1), name


def test_import_opens_nothing_and_is_quick(root):
    # The best of several runs: what else the machine does must not decide.
    code = (
        "import time; t = time.perf_counter(); import octet; t = time.perf_counter() - t\n"
        "maps = open('/proc/self/maps').read()\n"
        "assert 'liboctet' not in maps and 'libcuda' not in maps and 'numpy' not in maps\n"
        "print(t)"
    )
    best = 1.0
    for _ in range(10):
        done = python(root, code)
        assert done.returncode == 0, done.stderr
        best = min(best, float(done.stdout))
        if best < 0.05:
            break
    assert best < 0.05


def test_using_it_needs_no_numpy_and_touches_no_driver(root, library_file):
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        f"import octet; octet.load_library({library_file!r})\n"
        "octet.plan('dense_m64n7168k2048', 'h200')\n"
        "assert 'libcuda' not in open('/proc/self/maps').read()"
    )
    assert python(root, code).stderr == ""


def test_absent_library_is_one_sentence(root, library_file):
    # From a copy, which has no library beside it whatever was built in the tree.
    code = (
        "import octet\n"
        "try: octet.plan('dense_m1n1k1')\n"
        "except octet.LibraryNotFound as e: print(e)"
    )
    elsewhere = os.path.dirname(library_file)
    done = python(root, code, LD_LIBRARY_PATH=elsewhere, OCTET_LIBRARY=library_file)
    if (root / "python/octet/liboctet.so").exists():
        pytest.skip("a library lies beside the package")
    assert done.stdout.endswith(
        "liboctet.so is not there: install the package (pip install .), or say where the library "
        "is with octet.load_library(path) before the first call\n"
    ), done.stderr


def test_load_library_refuses_another_file(tmp_path, library_file):
    assert octet.load_library() == os.path.realpath(library_file)
    assert octet.load_library(library_file) == os.path.realpath(library_file)
    with pytest.raises(octet.LibraryNotFound, match="is open already, and a process has one"):
        octet.load_library(tmp_path / "liboctet.so")


def test_load_library_refuses_what_is_no_octet(root, tmp_path):
    (tmp_path / "text.so").write_text("no library")
    code = (
        "import octet, sys, ctypes.util\n"
        f"for path in ({str(tmp_path / 'none.so')!r}, {str(tmp_path / 'text.so')!r},"
        " ctypes.util.find_library('c')):\n"
        "  try: octet._library._open(path)\n"
        "  except octet.LibraryNotFound as e: print(e)"
    )
    said = python(root, code).stdout.splitlines()
    assert "none.so cannot be opened: " in said[0]
    assert "text.so cannot be opened: " in said[1]
    assert said[2].endswith("has no octet_status_message: must be Octet 0.1.0")


def test_version_is_one_everywhere(root):
    header = (root / "include/octet/octet.h").read_text()
    parts = [header.split(f"OCTET_VERSION_{x} ")[1].split()[0] for x in ("MAJOR", "MINOR", "PATCH")]
    assert octet.__version__ == ".".join(parts)


def test_exceptions_by_kind():
    for code, kind in enumerate(
        [octet.InvalidArgument, octet.Unsupported, octet.NoDevice, octet.NotPrepared,
         octet.DeviceError, octet.OutOfMemory, octet.InternalError], 1
    ):  # fmt: skip
        with pytest.raises(kind) as caught:
            octet.errors.raise_code(code, "a sentence")
        assert str(caught.value) == "a sentence" and caught.value.code == code
        assert isinstance(caught.value, octet.Error)
    assert issubclass(octet.InvalidArgument, ValueError)
    assert issubclass(octet.OutOfMemory, MemoryError)
    with pytest.raises(octet.InternalError):
        octet.errors.raise_code(99, "a code of a later version")
