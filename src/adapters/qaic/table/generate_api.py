"""Makes the C surface of the object runtime of its table.

usage: generate_api.py qaic_api.toml FOLDER

Writes into FOLDER: QAicTypes.h and QAicApi.h for clients; for the library qaic_ours.h (functions that
are in the table only), qaic_table.inc (the table's rows) and qaic_exports.map; for the Python module
qaicrt_table.inc (enumerations, and structures without pointers). Standard library only.
"""

import json
import sys
import textwrap
import tomllib
from pathlib import Path

WIDTH = 100
NOTE = "/// Made from src/adapters/qaic/table/qaic_api.toml.\n"


def comment(text, indent=0):
    lead = " " * indent + "/// "
    return "".join(f"{lead}{line}\n" for line in textwrap.wrap(text, WIDTH - len(lead)))


def aliases(kind, entry):
    return "".join(f"typedef {kind}{entry['name']} {other};\n" for other in entry.get("also", ()))


def enum(entry):
    shown = "{:#x}" if entry.get("hex") else "{}"
    body = "".join(f"{comment(doc, 2)}  {name} = {shown.format(value)},\n"
                   for name, value, doc in entry["values"])
    text = comment(entry["doc"])
    if "type" in entry:
        # An enumeration of C holds numbers of int only.
        macros = "".join(f"#define {name} (({entry['name']}){shown.format(value)})\n"
                         for name, value, _ in entry["values"])
        text += (f"#ifdef __cplusplus\nenum {entry['name']} : {entry['type']} {{\n{body}}};\n#else\n"
                 f"typedef {entry['type']} {entry['name']};\n{macros}#endif\n")
    else:
        text += f"typedef enum {entry['name']} {{\n{body}}} {entry['name']};\n"
    text += aliases("", entry)
    for name, value, doc in entry.get("outside", ()):
        text += comment(doc) + f"QAIC_CONSTANT({entry['name']}, {name}, {value});\n"
    return text


def field(row):
    kind, name, default, doc = row
    text = comment(doc, 2) if doc else ""
    if kind == "union":
        first, second = name.split()
        return (text + f"  union {{\n    uint32_t {first} QAIC_DEFAULT({default});\n"
                f"    uint32_t {second};\n  }};\n")
    return text + f"  {kind} {name} QAIC_DEFAULT({default});\n"


def struct(entry):
    fields = "".join(field(row) for row in entry["fields"])
    return (f"{comment(entry['doc'])}typedef struct {entry['name']} {{\n{fields}}} {entry['name']};\n"
            f"{aliases('', entry)}")


def wrapped(head, params, tail):
    """A declaration whose parameters go on at its bracket."""
    whole = f"{head}({params}){tail}"
    if len(whole) <= WIDTH:
        return whole + "\n"
    lines = textwrap.wrap(params.replace(" ", "\0").replace(",\0", ", "), WIDTH - 6)
    return f"{head}(\n    " + "\n    ".join(lines).replace("\0", " ") + f"){tail}\n"


def types_header(api):
    parts = ["/// The object runtime's constants and structures, in C and C++.\n///\n", NOTE, """\
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
/// Structures of C++ begin with these values; those of C are to be initialised by their user.
#define QAIC_DEFAULT(...) = __VA_ARGS__
#define QAIC_CONSTANT(type, name, value) constexpr type name = static_cast<type>(value)
extern "C" {
#else
#define QAIC_DEFAULT(...)
#define QAIC_CONSTANT(type, name, value) enum { name = value }
#endif

"""]
    version = api["version"]
    parts.append(f"/// Clients compare these with what qaicGetAicVersion says: the same major version, and no lower\n"
                 f"/// minor one.\n#define LRT_LIB_MAJOR_VERSION {version['major']}\n"
                 f"#define LRT_LIB_MINOR_VERSION {version['minor']}\n")
    parts.append("/// A time in microseconds that does not pass.\n#define QAIC_WAIT_FOREVER UINT64_MAX\n"
                 "/// Every value that stays on the device.\n#define QAIC_ALL_STATES UINT32_MAX\n")
    for entry in api["alias"]:
        parts.append(comment(entry["doc"]) + f"typedef {entry['type']} {entry['name']};\n"
                     + aliases("", entry))
    parts += [comment(e["doc"]) + f"typedef struct {e['name']} {e['name']};\n" for e in api["opaque"]]
    parts += [enum(entry) for entry in api["enum"]]
    parts += [struct(entry) for entry in api["struct"]]
    parts += [comment(e["doc"]) + wrapped(f"typedef void (*{e['name']})", e["params"], ";")
              for e in api["callback"]]
    parts.append("""\
#ifdef __cplusplus
}  // extern "C"
#endif

#undef QAIC_DEFAULT
#undef QAIC_CONSTANT
""")
    return parts[0] + parts[1] + parts[2] + "\n".join(parts[3:])


def api_header(api):
    functions = api["function"]
    head = f"""\
/// The object runtime's C functions, and the table of all of them.
///
/// A function returns a QStatus, unless it says otherwise; QS_INVAL for a null pointer, and for an
/// object that was released or never made, is not repeated with each. All functions may be called
/// from any thread; an execution object, and a handle of a set, has one user at a time. A forked
/// child of a process that used the library gets QS_ERROR.
///
{NOTE}#pragma once

#include "QAicTypes.h"

#ifdef __cplusplus
extern "C" {{
#endif

"""
    text = head
    for entry in functions:
        if not entry.get("ours"):
            text += comment(entry["doc"]) + wrapped(f"{entry.get('result', 'QStatus')} {entry['name']}",
                                                    entry["params"], ";")
    text += "\n" + comment("All functions. A library of a higher minor version has more of them at the end.")
    text += "typedef struct QAicApiFunctionTable {\n"
    for entry in functions:
        if entry.get("ours"):
            text += comment(entry["doc"], 2)
        text += wrapped(f"  {entry.get('result', 'QStatus')} (*{entry['name']})", entry["params"], ";")
    text += "} QAicApiFunctionTable;\n"
    text += comment("The table of this library; it lives as long as the library is loaded.")
    text += "const QAicApiFunctionTable* qaicGetFunctionTable(void);\n"
    return text + '\n#ifdef __cplusplus\n}  // extern "C"\n\n#include "QAicApiOverloads.hpp"\n#endif\n'


def ours_header(api):
    """Functions that clients reach through the table alone."""
    text = f'{NOTE}#pragma once\n\n#include "QAicApi.h"\n\nextern "C" {{\n'
    for entry in api["function"]:
        if entry.get("ours"):
            text += wrapped(f"{entry.get('result', 'QStatus')} {entry['name']}", entry["params"], ";")
    return text + '}  // extern "C"\n'


def rows(api):
    return "".join(f"    {entry['name']},\n" for entry in api["function"])


def exports(api):
    names = [e["name"] for e in api["function"] if not e.get("ours")] + ["qaicGetFunctionTable"]
    return "{\n  global:\n" + "".join(f"    {name};\n" for name in names) + "  local: *;\n};\n"


def python_rows(api):
    """Calls that bind each enumeration and each structure of plain values."""
    text = NOTE.replace("///", "//")
    for entry in api["enum"]:
        rows = "".join(f"    {{{json.dumps(name)}, {name}, {json.dumps(doc)}}},\n"
                       for name, _, doc in [*entry["values"], *entry.get("outside", ())])
        text += f"bind_enum<{entry['name']}>(module, \"{entry['name']}\", {json.dumps(entry['doc'])}, {{\n{rows}}});\n"
        text += "".join(f"also_named(module, \"{entry['name']}\", \"{other}\");\n" for other in entry.get("also", ()))
    held_back = set()  # Structures with pointers, and what holds one.
    for entry in api["struct"]:
        name = entry["name"]
        if any("*" in kind or kind == "union" or kind in held_back for kind, *_ in entry["fields"]):
            held_back.add(name)
            continue
        text += f"bind_struct<{name}>(module, \"{name}\", {json.dumps(entry['doc'])})"
        for _, field_name, _, doc in entry["fields"]:
            member = field_name.partition("[")[0]
            text += f'\n    .field<&{name}::{member}>("{member}", {json.dumps(doc)})'
        text += ";\n"
        text += "".join(f'also_named(module, "{name}", "{other}");\n' for other in entry.get("also", ()))
    return text


def main():
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    with source.open("rb") as file:
        api = tomllib.load(file)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("QAicTypes.h", types_header(api)), ("QAicApi.h", api_header(api)),
                       ("qaic_ours.h", ours_header(api)), ("qaic_table.inc", rows(api)),
                       ("qaic_exports.map", exports(api)), ("qaicrt_table.inc", python_rows(api))):
        (folder / name).write_text(text, encoding="utf-8")


main()
