#!/usr/bin/env python3
"""Prints docs/api-reference.md: what include/octet/octet.h and octet.hpp declare, with their comments.

    header_reference.py SOURCES                 prints the page
    header_reference.py SOURCES --check         exit code 1 unless docs/api-reference.md is that page, and
                                                names all that the library exports

A declaration belongs to the comment above it, up to the next comment or blank line. Of C++ functions
and classes the bodies and what is private are left out.
"""

import pathlib
import re
import sys

HEAD = """# C and C++ reference

Printed by `tools/house/header_reference.py` from the public headers; do not edit it. README.md has examples, `docs/getting-started.md`
the first steps, `docs/limits.md` every sentence that a call can refuse with.
"""
OPEN, CLOSE = "([{", ")]}"
KEPT_MACROS = re.compile(r"#define OCTET_(VERSION_|TEXT_)")


class Text:
    """A header, read from the front."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def left(self):
        return self.text[self.at:]

    def blank(self):
        """Skips white space; whether a line was empty."""
        space = re.match(r"\s*", self.left()).group()
        self.at += len(space)
        return space.count("\n") > 1

    def comment(self):
        """The comment that stands here, without its marks; None if there is none."""
        found = re.match(r"/\*(.*?)\*/", self.left(), re.S)
        if found:
            self.at += found.end()
            lines = [re.sub(r"^ \* ?", "", line) for line in found.group(1).strip().split("\n")]
            return "\n".join(line.rstrip() for line in lines)
        found = re.match(r"(?://[^\n]*\n[ \t]*)+", self.left())
        if not found:
            return None
        self.at += found.end()
        # What follows the last line's indentation is still there.
        return "\n".join(re.sub(r"^\s*// ?", "", line).rstrip() for line in
                         found.group().strip().split("\n"))

    def directive(self):
        found = re.match(r"#(?:[^\n]*\\\n)*[^\n]*", self.left())
        self.at += found.end()
        return found.group()

    def block(self):
        """From here, at a brace, to behind the brace that closes it."""
        start, depth = self.at, 0
        for found in re.finditer(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])+'|[{}]",
                                 self.left(), re.S):
            depth += {"{": 1, "}": -1}.get(found.group(), 0)
            if depth == 0 and found.group() == "}":
                self.at = start + found.end()
                return self.text[start:self.at]
        raise ValueError("a brace is not closed")

    def declaration(self):
        """Up to its semicolon or its body: (what stands before, the block or "")."""
        start, depth = self.at, 0
        while True:
            c = self.text[self.at]
            if c == "{" and depth == 0 and not self.text[self.at - 1].isspace():
                self.block()  # initialises a member
                continue
            if c == "{" and depth == 0:
                before = self.text[start:self.at]
                block = self.block()
                if is_type(before):  # and maybe a name behind it
                    tail = re.match(r"[^;]*;", self.left()).group()
                    self.at += len(tail)
                    return before, block + tail
                self.at += len(re.match(r";?", self.left()).group())
                return before, block
            depth += (c in "([") - (c in ")]")
            self.at += 1
            if c == ";" and depth == 0:
                return self.text[start:self.at], ""


def is_type(before):
    return bool(re.match(r"(typedef )?(template <[^>]*>\s*)?(struct|class|enum)\b", before.strip()))


def signature(before):
    """A function's head without markers of ours and what initialises its members."""
    head = re.sub(r"\bOCTET_API(_VOID)? ", "", before.strip())
    head = re.sub(r"^(template <[^>]*>\s*)?(inline|constexpr|static constexpr) ",
                  lambda found: (found.group(1) or ""), head) if "(" in head else head
    depth = 0
    for at, c in enumerate(head):
        depth += (c in OPEN) - (c in CLOSE)
        if c == ":" and depth == 0 and ")" in head[:at] and head[at - 1:at + 2].count(":") == 1:
            head = head[:at].rstrip()
            break
    lines = head.rstrip(";").rstrip().split("\n")
    return "\n".join([lines[0]] + ["    " + line.strip() for line in lines[1:]]) + ";"


def public_interface(before, block):
    """A C++ class as its users see it."""
    body = Text(block[1:block.rindex("}")] + "\n")
    public = re.search(r"\bclass\b", before) is None
    lines = [before.strip() + " {"]
    if not public:
        lines.append(" public:")
    gap = False
    while True:
        gap = body.blank() or gap
        if not body.left():
            break
        label = re.match(r"(public|private|protected):", body.left())
        if label:
            public = label.group(1) == "public"
            body.at += label.end()
            continue
        if gap and public and len(lines) > 2:
            lines.append("")
        gap = False
        comment = body.comment()
        if comment is not None:
            if public:
                lines += ["  // " + line for line in comment.split("\n")]
            continue
        head, inner = body.declaration()
        if not public:
            continue
        if is_type(head):
            lines += ["  " + line for line in public_interface(head, inner).split("\n")]
        else:
            lines += ["  " + line for line in signature(head).split("\n")]
    while lines[-1] == "":
        lines.pop()
    return "\n".join(lines) + "\n};"


def name_of(head):
    """What a declaration declares."""
    head = re.sub(r"template <[^>]*>\s*|\[\[\w+\]\]\s*", "", head.strip())
    named = re.match(r"(?:typedef )?(?:struct|class|enum) (\w+)", head)
    if named:
        return named.group(1)
    if head.startswith("#define"):
        return head.split()[1]
    if head.startswith("typedef"):
        return re.search(r"(\w+);?$", head).group(1)
    function = re.search(r"([\w:]*operator\W+|\w+)\s*\(", re.sub(r"__attribute__\(\(.*?\)\)", "", head))
    return function.group(1).strip() if function else re.search(r"(\w+)\s*(?:=.*)?;?$", head).group(1)


class Page:
    def __init__(self):
        self.lines, self.names = [HEAD], []
        self.group = None  # (comment, [(name, code)])

    def close(self):
        if self.group is None:
            return
        comment, entries = self.group
        self.group = None
        if entries:
            names = dict.fromkeys(name for name, code in entries)
            self.names += names
            self.lines += ["### " + ", ".join(f"`{name}`" for name in names), ""]
        if comment:
            self.lines += [paragraphs(comment), ""]
        if entries:
            self.lines += ["```cpp", "\n".join(code for name, code in entries), "```", ""]

    def comment(self, text):
        self.close()
        self.group = (text, [])

    def entry(self, name, code):
        if self.group is None:
            self.group = ("", [])
        self.group[1].append((name, code))

    def head(self, text):
        self.close()
        self.lines += [f"## {text}", ""]


def paragraphs(comment):
    """Lines that are indented are code; a < would start a tag."""
    lines, code = [], False
    for line in comment.split("\n"):
        now = line.startswith("   ") or (line.startswith("  ") and code)
        if re.match(r"  \S", line) and not code and (not lines or lines[-1] == ""):
            now = True
        if now != code and lines and lines[-1] != "":
            lines.append("")
        code = now
        lines.append("    " + line.strip() if now else line.replace("<", "\\<").replace("*", "\\*"))
    return "\n".join(lines)


def read_scope(page, text, scope, plain_c):
    while True:
        if text.blank():
            page.close()
        left = text.left()
        if not left:
            break
        if left[0] == "#":
            line = text.directive()
            if KEPT_MACROS.match(line):
                page.entry(name_of(line), line)
            continue
        comment = text.comment()
        if comment is not None:
            if re.fullmatch(r"namespace \w+", comment):
                continue  # at its closing brace
            section = re.match(r"-{3,} (.*?) -{3,}", comment)
            if section:
                page.head(f"octet.h: {section.group(1)}")
            else:
                page.comment(comment)
            continue
        outer = re.match(r'(extern "C" \{|\};?)', left)
        if outer:
            text.at += outer.end()
            continue
        space = re.match(r"namespace (\w+) (?=\{)", left)
        if space:
            text.at += space.end()
            inner = Text(text.block()[1:-1])
            # A comment above is about the namespace.
            about, page.group = (page.group or ("", []))[0], None
            if space.group(1) == "detail":
                continue
            name = scope + space.group(1) + "::"
            page.head(f"octet.hpp: namespace {name[:-2]}")
            if about:
                page.lines += [paragraphs(about), ""]
            read_scope(page, inner, name, plain_c)
            page.close()
            continue
        before, block = text.declaration()
        name = name_of(before)
        if name.startswith("operator") or before.startswith("template <>"):
            continue
        if not is_type(before):
            code = signature(before)
        elif plain_c or before.strip().startswith("enum"):
            code = (before + block).strip()
        else:
            code = public_interface(before, block)
        page.entry(scope + name, code)
    page.close()


def contents(lines):
    """A line for each section, that leads to it."""
    anchors = [line[3:] for line in "\n".join(lines).split("\n") if line.startswith("## ")]
    links = [f"- [{a}](#{re.sub(r'[^a-z0-9 _-]', '', a.lower()).replace(' ', '-')})" for a in anchors]
    return "\n".join(links) + "\n"


def make_page(sources):
    page = Page()
    for name in ("octet.h", "octet.hpp"):
        text = Text((sources / "include/octet" / name).read_text(encoding="utf-8"))
        page.head(name)
        read_scope(page, text, "", name == "octet.h")
        page.close()
    page.lines.insert(1, contents(page.lines))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(page.lines)).rstrip() + "\n", page.names


def main(argv):
    sources = pathlib.Path(argv[1])
    page, names = make_page(sources)
    if argv[2:] != ["--check"]:
        print(page, end="")
        return 0
    failed = 0
    if (sources / "docs/api-reference.md").read_text(encoding="utf-8") != page:
        print("docs/api-reference.md is not what the headers say: python3 tools/house/header_reference.py "
              ". > docs/api-reference.md")
        failed = 1
    exported = (sources / "tests/abi/exported_symbols.txt").read_text(encoding="utf-8").split()
    for symbol in exported:
        if symbol.startswith("octet_") and symbol not in names:
            print(f"docs/api-reference.md: {symbol} is exported and has no entry")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv))
