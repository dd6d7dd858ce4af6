#!/usr/bin/env python3
"""What an installation of a build holds and whether it works, there and after it has moved.

    check_install.py CHECK --source DIR --build DIR [...]     CHECK: one of the functions `check_*`

Everything happens in a temporary folder, with an environment that knows neither the build nor an
installed Octet. Exit code 1 and a sentence for the first breach; 77 and a sentence when the machine
lacks a tool.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "command"))
from sample_files import sample  # noqa: E402  (the path comes first)

BOUND_S = 100  # no tool needs more than a few seconds


def fail(what):
    sys.exit(f"FAILED: {what}")


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            print(f"SKIPPED: no {tool} on this machine")
            sys.exit(77)


def run(*command, cwd=None, **environment):
    """What the command prints; it must succeed. Of our environment it has PATH alone."""
    clean = {"PATH": os.environ["PATH"], "HOME": str(cwd or "/"), "LC_ALL": "C.UTF-8"}
    result = subprocess.run([str(word) for word in command], cwd=cwd, env=clean | environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=BOUND_S, check=False)
    if result.returncode != 0:
        fail(f"{command}: exit code {result.returncode}\n{result.stdout}")
    return result.stdout


def install(options, prefix, **environment):
    run(options.cmake, "--install", options.build, "--prefix", prefix, **environment)


def must_work(options, prefix, folder):
    """The command, started from elsewhere, finds its library and its sample."""
    command = prefix / "bin/octet"
    dynamic = run(options.readelf, "-d", command)
    if f"[$ORIGIN/../{options.libdir}]" not in dynamic:
        fail(f"{command} does not look for its library in ../{options.libdir}:\n{dynamic}")
    version = run(command, "--version", cwd=folder).strip()
    if version != f"octet {options.version}":
        fail(f"--version says {version!r}, the project is {options.version}")
    # In an empty folder, and a small layer in the sample's place: the real one takes seconds.
    (prefix / "share/octet/samples/minilm_ffn.safetensors").write_bytes(sample(3, 5, 128))
    if "l: D[3,5] = X[3,128]" not in run(command, "demo", "--backend", "cpu", cwd=folder):
        fail("octet demo did not multiply the installed sample")


def must_hold(options, prefix, *more):
    """The files that users count on, `more`, and no others."""
    there = {str(p.relative_to(prefix)) for p in prefix.rglob("*") if not p.is_dir()}
    lib, doc, version = options.libdir, "share/doc/octet", options.version
    wanted = {"bin/octet", "include/octet/octet.h", "include/octet/octet.hpp",
              f"{lib}/liboctet.so", f"{lib}/liboctet.so.0", f"{lib}/liboctet.so.{version}",
              f"{lib}/pkgconfig/octet.pc", f"{lib}/cmake/octet/octet-config.cmake",
              f"{lib}/cmake/octet/octet-config-version.cmake",
              f"{lib}/cmake/octet/octet-targets.cmake",
              "share/octet/samples/minilm_ffn.safetensors",
              "share/octet/samples/LICENSE-all-MiniLM-L6-v2",
              "share/octet/samples/sentences.txt", "share/octet/samples/README.md",
              f"{doc}/README.md", f"{doc}/CHANGELOG.md", f"{doc}/LICENSE",
              "share/man/man1/octet.1", "share/bash-completion/completions/octet", *more}
    wanted |= {f"{doc}/docs/{page.name}" for kind in ("*.md", "*.svg")
               for page in (options.source / "docs").glob(kind)}
    if wanted - there:
        fail(f"not there: {sorted(wanted - there)}")
    # The targets of one build type, and notices of what was compiled in, as the machine has them.
    # (of CUDA's runtime always, where the command has it and only there)
    with_runtime = b"cudaErrorCudartUnloading" in (prefix / "bin/octet").read_bytes()
    if with_runtime != (f"{doc}/third-party/cuda-runtime" in there):
        fail(f"CUDA's runtime is in the command: {with_runtime}; its notice is the other way round")
    if b"cudaErrorCudartUnloading" in (prefix / lib / f"liboctet.so.{version}").read_bytes():
        fail("liboctet holds CUDA's runtime: it speaks to the driver alone")
    unknown = {name for name in there - wanted if not re.fullmatch(
        rf"{lib}/cmake/octet/octet-targets-\w+\.cmake|{doc}/third-party/[\w-]+", name)}
    if unknown:
        fail(f"there, but not known to this test: {sorted(unknown)}")
    return there


def check_files(options, work):
    """Nothing that is installed names the build, the sources or the prefix."""
    prefix = work / "stage"
    install(options, prefix)
    there = must_hold(options, prefix, "share/zsh/site-functions/_octet")
    lib = options.libdir
    if os.readlink(prefix / lib / "liboctet.so") != "liboctet.so.0":
        fail("liboctet.so is no link to liboctet.so.0")
    if (prefix / "share/octet/samples/minilm_ffn.safetensors").read_bytes() != (
            options.source / "samples/minilm_ffn.safetensors").read_bytes():
        fail("the installed sample is not the repository's")
    for name in sorted(there):
        content = (prefix / name).read_bytes()
        if content.startswith(b"\x7fELF"):  # debug information may; the loader's section may not
            dynamic = run(options.readelf, "-d", prefix / name)
            content = dynamic.replace(str(prefix / name), "").encode()
        for folder in (options.build, options.source, prefix):
            if str(folder).encode() in content:
                fail(f"{name} names {folder}")
    must_work(options, prefix, work)


def check_destdir(options, work):
    install(options, "/opt/somewhere", DESTDIR=str(work / "root"))
    if [path.name for path in work.iterdir()] != ["root"]:
        fail(f"DESTDIR is not all that was written to: {list(work.iterdir())}")
    must_work(options, work / "root/opt/somewhere", work)


def in_both_places(options, work, build_and_run):
    """The project, built against an installation, and again after that has moved."""
    first, second = work / "stage", work / "elsewhere/moved"
    install(options, first)
    build_and_run(first, work / "first")
    second.parent.mkdir()
    first.rename(second)
    build_and_run(second, work / "second")
    must_work(options, second, work)


def must_be_right(outputs):
    for output in outputs:
        if output != "D[2,4] = 384\n":
            fail(f"a user's program says {output!r}")


def check_cmake_project(options, work):
    def build_and_run(prefix, build):
        run(options.cmake, "-S", HERE / "cmake_project", "-B", build,
            "-G", options.generator, f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_C_COMPILER={options.cc}", f"-DCMAKE_CXX_COMPILER={options.cxx}",
            f"-DVERSION_WANTED={options.version}")
        run(options.cmake, "--build", build)
        must_be_right(run(build / name, cwd=work) for name in ("multiply_c", "multiply_cpp"))

    in_both_places(options, work, build_and_run)
    # Before 1.0 another minor version is another interface.
    refused = subprocess.run(
        [options.cmake, "-S", HERE / "cmake_project", "-B", work / "first", "-DVERSION_WANTED=0.99",
         f"-DCMAKE_PREFIX_PATH={work / 'elsewhere/moved'}", "-Uoctet_DIR"],
        capture_output=True, text=True, timeout=BOUND_S, check=False)
    if refused.returncode == 0 or f"version: {options.version}" not in refused.stderr:
        fail(f"find_package(octet 0.99) took {options.version}:\n{refused.stdout}{refused.stderr}")


def check_makefile_project(options, work):
    need("make", "pkg-config")

    def build_and_run(prefix, build):
        shutil.copytree(HERE / "makefile_project", build)
        path = {"PKG_CONFIG_PATH": str(prefix / options.libdir / "pkgconfig")}
        version = run("pkg-config", "--modversion", "octet", **path).strip()
        if version != options.version:
            fail(f"pkg-config says version {version}, the project is {options.version}")
        run("make", f"SOURCES={HERE}", f"CC={options.cc}", f"CXX={options.cxx}", cwd=build, **path)
        must_be_right(run(build / name, cwd=work) for name in ("multiply_c", "multiply_cpp"))

    in_both_places(options, work, build_and_run)


def make_deb(options, work):
    need("dpkg-deb", "dpkg-shlibdeps", "file")
    run(options.cmake.parent / "cpack", "--config", options.build / "CPackConfig.cmake", "-B", work,
        cwd=work)
    packages = list(work.glob("*.deb"))
    if len(packages) != 1 or not packages[0].name.startswith(f"octet_{options.version}_"):
        fail(f"not one package of this version: {packages}")
    return packages[0]


def check_deb(options, work):
    package = make_deb(options, work)
    field = {name: run("dpkg-deb", "--field", package, name).strip() for name in
             ("Package", "Version", "Depends", "Description")}
    if (field["Package"], field["Version"]) != ("octet", options.version):
        fail(f"a package of another name or version: {field}")
    if not re.fullmatch(r"libc6 \(>= 2\.\d+\)", field["Depends"]):
        fail(f"depends on {field['Depends']!r}; the C library alone is wanted")
    for line in run("dpkg-deb", "--contents", package).splitlines():
        if not re.match(r"(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x|lrwxrwxrwx) root/root ", line):
            fail(f"not owned by root, or with odd rights: {line}")
    root = work / "root"
    run("dpkg-deb", "--extract", package, root)
    if [path.name for path in root.iterdir()] != ["usr"]:
        fail(f"not all of it is in /usr: {list(root.iterdir())}")
    must_hold(options, root / "usr", "share/doc/octet/copyright",
              "share/zsh/vendor-completions/_octet")
    must_work(options, root / "usr", work)
    # The description says whether there are kernels, and the command knows.
    kernels = json.loads(run(root / "usr/bin/octet", "info", "--json"))["kernels"]
    says = "has the kernels for Hopper" if kernels else "has no kernels for Hopper"
    if says not in field["Description"]:
        fail(f"{kernels} kernels, and the description is: {field['Description']}")


def copy_with_libraries(program, root, name):
    """Into a root: the program, unless `name` is None, and the C library's files that it needs."""
    files = [] if name is None else [(program, name)]
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=BOUND_S,
                            check=False).stdout  # says that a static program is none
    files += [(path, path) for path in re.findall(r"(?:=> )?(/\S+) \(0x", linked)
              if "liboctet" not in path]
    for source, target in files:
        (root / target[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / target[1:])


def check_deb_bare_root(options, work):
    """Installed by dpkg where there are the C library, a shell for its scripts and nothing else; used
    there, and removed again."""
    need("dpkg", "chroot", "ldconfig")
    if os.geteuid() != 0:
        print("SKIPPED: dpkg installs, and chroot enters, as root alone")
        sys.exit(77)
    package, root = make_deb(options, work), work / "root"
    for folder in ("info", "updates"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    (root / "etc").mkdir()  # ldconfig writes there
    # What `Depends: libc6` stands for, from this machine; dpkg's own database does not know it.
    for program in ("sh", "ldconfig"):
        copy_with_libraries(shutil.which(program), root, f"/bin/{program}")
    copy_with_libraries(options.build / "octet", root, None)
    dpkg = ("dpkg", f"--root={root}", "--force-depends", "--force-bad-path", "--log=/dev/null")
    run(*dpkg, "--install", package)
    command = root / "usr/bin/octet"
    must_hold(options, root / "usr", "share/doc/octet/copyright",
              "share/zsh/vendor-completions/_octet")
    (root / "usr/share/octet/samples/minilm_ffn.safetensors").write_bytes(sample(3, 5, 128))
    (root / "home").mkdir()
    inside = ("chroot", root, "/usr/bin/octet")
    if f"octet {options.version}" not in run(*inside, "--version"):
        fail("the installed command does not say its version")
    if "l: D[3,5] = X[3,128]" not in run(*inside, "demo", "--backend", "cpu"):
        fail("octet demo did not multiply the installed sample")
    layer = "/usr/share/octet/samples/minilm_ffn.safetensors:l"
    run(*inside, "quantize", f"{layer}.weight", "-o", "/home/w8.npy")
    run(*inside, "gemm", f"{layer}.input", "/home/w8.npy", "-o", "/home/d.npy", "--dtype-b", "e4m3",
        "--layout-b", "row")
    run(*dpkg, "--remove", "octet")
    left = [str(path) for path in (root / "usr").rglob("*octet*")
            if path.name != "minilm_ffn.safetensors" and path.is_file()]
    if left or command.exists():
        fail(f"the removed package left {left}")


# What README.md prints and this test does not do as it stands there, and why that is no loss.
NOT_RUN = {
    "cmake --preset release -DOCTET_TESTS=OFF -DOCTET_BENCH=OFF": "made this build, with tests",
    "cmake --build build/release": "made this build",
    "cmake --build build/release --target package": "check_deb runs cpack as that target does",
    "sudo apt-get install ./build/release/octet_*.deb": "check_deb_bare_root has dpkg install it",
}


def shell(lines, folder, home, **environment):
    return run("bash", "-euc", "\n".join(lines), cwd=folder, HOME=str(home), **environment)


def check_readme(options, work):
    """README.md's lines, in their order: in the repository, then in a user's folder."""
    need("pkg-config")
    readme = (options.source / "README.md").read_text()
    text = re.search(r"^## Install$(.*?)^## ", readme, re.M | re.S).group(1)
    example = re.search(r"^```cpp$\n(.*?)^```$", readme, re.M | re.S).group(1)
    repository, user = work / "repository", work / "user"
    (repository / "build").mkdir(parents=True)
    (repository / "build/release").symlink_to(options.build)
    (repository / "include").symlink_to(options.source / "include")
    user.mkdir()
    for folder in (repository, user):
        (folder / "example.cpp").write_text(example)
    (user / "CMakeLists.txt").write_text(re.search(r"^```cmake$\n(.*?)^```$", text, re.M | re.S)[1])
    blocks = [block.strip().splitlines() for block in
              re.findall(r"^```sh$\n(.*?)^```$", text, re.M | re.S)]
    if len(blocks) != 4:
        fail(f"README's section Install has {len(blocks)} blocks of commands; this test knows four")
    printed = {line for block in blocks for line in block}
    if set(NOT_RUN) - printed:
        fail(f"README no longer says {set(NOT_RUN) - printed}: take it out of this test")

    compilers = {"CXX": options.cxx, "CMAKE_GENERATOR": options.generator}
    for block, folder in zip(blocks, (repository, user, user, repository)):
        lines = [line for line in block if line not in NOT_RUN]
        if not lines:
            continue
        if lines[-1].endswith("octet demo"):  # of the small layer: see must_work()
            shell(lines[:-1], folder, work)
            must_work(options, work / "octet", work)
        elif "D[0,0] = " not in shell(lines, folder, work, **compilers):
            fail(f"README's example did not say its result: {lines}")
    for line in [re.search(r"`(g\+\+ [^`]*)`", readme)[1], "./a.out"]:
        shell([line], repository, work)

    # The table of commands. Those with files of the reader's are for the tests of those commands.
    for line in re.findall(r"^\| `(octet [^`]*)`", readme, re.M):
        words = line.split()[1:]
        if words[0] == "demo" or any("." in word for word in words):
            continue
        result = subprocess.run([work / "octet/bin/octet", *words], cwd=work, timeout=BOUND_S,
                                env={"CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True,
                                check=False)
        if result.returncode not in (0, 3):  # 3: no device
            fail(f"{line}: exit code {result.returncode}: {result.stderr}")


def main():
    checks = {name.removeprefix("check_"): function for name, function in globals().items()
              if name.startswith("check_")}
    parser = argparse.ArgumentParser()
    parser.add_argument("check", choices=sorted(checks))
    for name in ("source", "build", "cmake"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    for name in ("generator", "cc", "cxx", "readelf", "libdir", "version"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checks[options.check](options, pathlib.Path(folder).resolve())


if __name__ == "__main__":
    main()
