"""Prints docs/python-reference.md: the docstrings of the Python package, module by module.

    PYTHONPATH=python python3 tools/house/python_reference.py > docs/python-reference.md

Needs no library, NumPy or PyTorch. A test compares the page with what this prints.
"""

import importlib
import inspect
import re
import textwrap

MODULES = (
    "octet", "octet.cpu", "octet.cuda", "octet.ref", "octet.groups", "octet.errors", "octet.deep_gemm",
    "octet.deep_gemm.testing", "octet.deep_gemm.shim",
)  # fmt: skip
HEAD = """# Python reference

Printed by `tools/house/python_reference.py` from the docstrings; do not edit it. README.md has a
first example, docs/deep_gemm.md the interface for programs that use that package.
"""


def signature(thing):
    """As it is written, without the annotations, which docstrings say better."""
    found = inspect.signature(thing)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()
            if p.name != "self"]  # fmt: skip
    text = str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return re.sub(r"<object object at 0x[0-9a-f]+>", "...", text)


def quoted(text):
    return textwrap.indent(inspect.cleandoc(text), "    ").rstrip()


def members(cls):
    for name, member in sorted(vars(cls).items()):
        if name.startswith("_") or name == "code":
            continue
        thing = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if inspect.isfunction(thing):
            bare = signature(thing).replace("(cls, ", "(").replace("(cls)", "()")
            yield f"`{cls.__name__}.{name}{bare}`", inspect.getdoc(thing)
        else:
            yield f"`{cls.__name__}.{name}`", member.__doc__


def page():
    lines = [HEAD]
    told = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        lines += [f"## {module_name}", "", quoted(module.__doc__), ""]
        names = getattr(module, "__all__", ["main", "take_name", "write"])
        for name in sorted(names, key=str.lower):
            thing = getattr(module, name)
            if inspect.ismodule(thing) or name == "__version__":
                continue
            if id(thing) in told:
                lines += [f"### `{name}`", "", f"The same as `{told[id(thing)]}`.", ""]
                continue
            told[id(thing)] = f"{module_name}.{name}"
            if inspect.isclass(thing) and issubclass(thing, Exception):
                bases = [b.__name__ for b in thing.__bases__]
                lines += [f"### `{name}({', '.join(bases)})`", ""]
            elif inspect.isclass(thing):
                lines += [f"### class `{name}{signature(thing)}`", ""]
            else:
                lines += [f"### `{name}{signature(thing)}`", ""]
            lines += [quoted(inspect.getdoc(thing)), ""]
            if inspect.isclass(thing) and not issubclass(thing, Exception):
                for head, text in members(thing):
                    lines += [f"- {head}", "", quoted(text), ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
