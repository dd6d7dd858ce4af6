#!/usr/bin/env python3
"""Writes what is installed beside the command from what the command says about itself.

usage: describe_command.py OCTET FOLDER     writes octet.1, octet.bash and _octet (zsh) into FOLDER

The source is `octet --help` and `octet SUBCOMMAND --help` as CLI11 lays them out, so that a new
option is in the manual page and in the completions without anybody thinking of it. What is no
option goes into the manual page as it stands.
"""
import dataclasses
import pathlib
import re
import subprocess
import sys

# --- Reading help --------------------------------------------------------------------------------


@dataclasses.dataclass
class Option:
    names: list  # ["-h", "--help"]; of a positional, its name alone
    value: str  # "TEXT:{auto,cpu,cuda}=auto"; "" of a flag
    text: str = ""

    @property
    def choices(self):
        found = re.search(r"\{([^}]*)\}", self.value)
        return found.group(1).split(",") if found else []

    @property
    def kind(self):  # TEXT, INT, FLOAT
        return re.match(r"[A-Z]*", self.value).group()

    @property
    def takes_file(self):
        return self.kind not in ("INT", "UINT", "FLOAT", "BOOLEAN") and not self.choices


@dataclasses.dataclass
class Command:
    name: str
    text: str = ""
    positionals: list = dataclasses.field(default_factory=list)
    options: list = dataclasses.field(default_factory=list)
    commands: list = dataclasses.field(default_factory=list)  # names
    notes: list = dataclasses.field(default_factory=list)  # lines of other sections, as they are


LISTS = ("options", "positionals", "subcommands")


def help_of(octet, *names):
    result = subprocess.run([octet, *names, "--help"], capture_output=True, text=True, timeout=60,
                            check=False)
    if result.returncode != 0:
        sys.exit(f"{[octet, *names]} --help: exit code {result.returncode}: {result.stderr}")
    return result.stdout


def split_entry(line, column):
    """(what it is, what it says); the latter is on the next lines if the former is too long."""
    left, right = line[:column].rstrip(), line[column:]
    fits = len(line) > column and line[column - 1] == " " and not right.startswith((" ", "in ["))
    return (left, right) if fits and left.count("[") == left.count("]") else (line.rstrip(), "")


def read_entry(what):
    found = re.fullmatch(r"\s+(-{1,2}[^\s,]+(?:,\s*-{1,2}[^\s,]+)*)\s*(.*)", what)
    if found:  # CLI11 writes --no-x{false} of a flag that takes something away
        names = [re.sub(r"\{.*", "", name) for name in re.split(r",\s*", found.group(1))]
        return Option(names, found.group(2))
    name, _, value = what.strip().partition(" ")
    return Option([name], value)


def parse_help(name, text):
    """CLI11 puts an option of a group under the group's heading, and a footer below everything."""
    command, section, last, heading = Command(name), "about", None, []
    first = re.search(r"^ +-h, *--help +", text, re.M)
    column = len(first.group()) if first else 30
    for line in text.splitlines():
        entry = re.match(r" {2,10}-", line) and section not in ("about", "notes")
        if re.match("usage:", line, re.I) or "[OPTIONS]" in line:
            section = "usage"
        elif re.fullmatch(r"\w[\w ]*:", line):
            section, last = line[:-1].lower(), None
            heading = [] if section in LISTS else [line]
        elif section == "about":
            command.text = f"{command.text} {line.strip()}".strip()
        elif last and line.startswith(" ") and not line[:column].strip():
            last.text = f"{last.text} {line.strip()}".strip()
        elif entry or (section in ("positionals", "subcommands") and line.startswith("  ")):
            what, says = split_entry(line, column)
            last = read_entry(what)
            last.text = says.strip()
            if section == "subcommands":
                command.commands.append(last.names[0])
            else:
                (command.options if entry else command.positionals).append(last)
        elif line.strip():  # a footer
            if not line.startswith(" "):
                section = "notes"
            command.notes += [*heading, line]
            last, heading = None, []
    return command


# --- The manual page -----------------------------------------------------------------------------


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\\&" + text if text.startswith((".", "\\(aq")) else text


def roff_entries(options):
    lines = []
    for option in options:
        names = ", ".join(f"\\fB{roff(name)}\\fR" for name in option.names)
        value = re.sub(r"^(\w+):(?=\1 |\{)", "", option.value).replace("{", "").replace("}", "")
        if not option.names[0].startswith("-"):
            names = f"\\fI{roff(option.names[0])}\\fR{' ...' if '...' in value else ''}"
        elif value:
            names += f" \\fI{roff(value.replace(' REQUIRED', ''))}\\fR"
        lines += [".TP", names, roff(option.text)]
    return lines


def manual_page(version, main, commands):
    lines = [f'.TH OCTET 1 "" "{version}" "User Commands"', ".SH NAME",
             f"octet \\- {roff(main.text.removeprefix('octet: '))}", ".SH SYNOPSIS",
             ".B octet\n.I subcommand\n[\\fIoptions\\fR]", ".SH DESCRIPTION",
             "Every subcommand says what it takes with \\fB\\-\\-help\\fR.", ".SH OPTIONS",
             *roff_entries(main.options), ".SH SUBCOMMANDS"]
    for command in commands:
        synopsis = "".join(
            f" {roff(p.names[0])}{' ...' if '...' in p.value else ''}"
            for p in command.positionals)
        lines += [f".SS octet {command.name} [options]{synopsis}", roff(command.text),
                  *roff_entries(command.positionals + command.options)]
        if command.notes:
            lines += [".PP", ".nf", *(roff(line) for line in command.notes), ".fi"]
    lines += [".SH EXIT STATUS"]
    for code, meaning in (
            (0, "Right."),
            (1, "A check failed, writing failed midway (a full disk), or the device failed."),
            (2, "Bad input, or a path that cannot be written to as given."),
            (3, "No usable device, or no kernels in this build."), (130, "Interrupted.")):
        lines += [".TP", str(code), meaning]
    lines += [".SH FILES", ".TP", roff("../share/octet/samples"),
              "The sample of \\fBoctet demo\\fR, seen from the folder of the command.", ".TP",
              roff("../share/doc/octet"), "How problems are written, what the numbers mean, limits."]
    return "\n".join(lines) + "\n"


# --- Completions ---------------------------------------------------------------------------------


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def bash_completion(main, commands):
    def words(command):
        return " ".join(command.commands + [n for o in command.options for n in o.names])

    values = []
    for command in commands:
        for option in (option for option in command.options if option.value):
            answer = "compopt -o default 2>/dev/null" if option.takes_file else ":"
            if option.choices:
                choices = quoted(" ".join(option.choices))
                answer = f"COMPREPLY=($(compgen -W {choices} -- \"$word\"))"
            pattern = " | ".join(quoted(f"{command.name} {name}") for name in option.names)
            values.append(f"    {pattern}) {answer}; return ;;")
    lists = [f"    {command.name}) words={quoted(words(command))} ;;" for command in commands]
    return "\n".join([
        "# Completion of octet for bash, made from its --help.",
        "_octet() {",
        "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}",
        "  local command='' words i",
        "  [ \"$before\" != = ] || before=${COMP_WORDS[COMP_CWORD - 2]}  # --option=value",
        "  [ \"$word\" != = ] || word=''",
        "  COMPREPLY=()",
        "  for ((i = 1; i < COMP_CWORD; ++i)); do",
        "    case ${COMP_WORDS[i]} in",
        f"      {' | '.join(main.commands)}) command=${{COMP_WORDS[i]}} && break ;;",
        "    esac",
        "  done",
        "  case \"$command $before\" in", *values, "  esac",
        "  case \"$command\" in",
        f"    '') words={quoted(words(main))} ;;", *lists, "  esac",
        "  if [ -n \"$command\" ] && [[ $word != -* ]]; then",
        "    compopt -o default 2>/dev/null  # files",
        "  else",
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))",
        "  fi",
        "}",
        "complete -F _octet octet", ""])


def zsh_text(text):
    return re.sub(r"([\\\[\]:])", r"\\\1", text)


def zsh_specs(command):
    specs = []
    for option in command.options:
        value = ""
        if option.choices:
            value = f":value:({' '.join(option.choices)})"
        elif option.value:
            value = f":{option.kind or 'value'}:{'_files' if option.takes_file else ' '}"
        alone = "--help" in option.names or "--version" in option.names
        others = "(- *)" if alone else f"({' '.join(option.names)})"
        for name in option.names:
            joined = "" if not value else "=" if name.startswith("--") else "+"
            specs.append(quoted(f"{others}{name}{joined}[{zsh_text(option.text)}]{value}"))
    for place in command.positionals:
        start = "*:" if "..." in place.value else ":" if "REQUIRED" in place.value else "::"
        action = f"({' '.join(place.choices)})" if place.choices else "_files"
        specs.append(quoted(f"{start}{place.names[0]}:{action}"))
    return specs


def zsh_completion(main, commands):
    def arguments(indent, flags, specs):
        return f" \\\n{indent}  ".join([f"{indent}_arguments{flags}", *specs])

    top = zsh_specs(main) + ["'1:subcommand:->subcommand'", "'*::argument:->argument'"]
    lines = ["#compdef octet", "# Completion of octet for zsh, made from its --help.", "_octet() {",
             "  local curcontext=$curcontext state line", "  local -a subcommands",
             arguments("  ", " -C", top), "  case $state in", "    subcommand)",
             "      subcommands=("]
    lines += [f"        {quoted(c.name + ':' + zsh_text(c.text))}" for c in commands]
    lines += ["      )", "      _describe subcommand subcommands", "      ;;", "    argument)",
              "      case $line[1] in"]
    for command in commands:
        lines += [f"        {command.name})", arguments("          ", "", zsh_specs(command)),
                  "          ;;"]
    return "\n".join(lines + ["      esac", "      ;;", "  esac", "}", "_octet \"$@\"", ""])


def main(argv):
    if len(argv) != 3:
        sys.exit(__doc__)
    octet, folder = pathlib.Path(argv[1]).resolve(), pathlib.Path(argv[2])
    version = subprocess.run([octet, "--version"], capture_output=True, text=True, timeout=60,
                             check=True).stdout.strip()
    top = parse_help("", help_of(octet))
    commands = [parse_help(name, help_of(octet, name)) for name in top.commands]
    if not commands:
        sys.exit("octet --help lists no subcommand: its layout is not known here")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "octet.1").write_text(manual_page(version, top, commands))
    (folder / "octet.bash").write_text(bash_completion(top, commands))
    (folder / "_octet").write_text(zsh_completion(top, commands))


if __name__ == "__main__":
    main(sys.argv)
