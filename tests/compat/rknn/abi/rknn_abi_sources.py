"""Writes the sources that hold include/rknn against the facts of rknn_abi.json.

usage: rknn_abi_sources.py <rknn_abi.json> <folder>

  rknn_abi_layout.inc       every size, offset, type, enumerator, macro and prototype; C11 and C++11
  rknn_abi_layout_c.c, rknn_abi_layout_cpp.cpp   include it
  rknn_abi_symbols.c        a program with a table of every function, linked to the library
  rknn_abi_helpers.inc      the texts of the inline helpers; rknn_abi_helpers_c.c, _cpp.cpp run them

Nothing of it is committed. Standard library only.
"""

import json
import re
import sys
from pathlib import Path

HEADERS = ("rknn_api.h", "rknn_matmul_api.h", "rknn_custom_op.h")
INCLUDES = "".join(f'#include "{h}"\n' for h in HEADERS)
NOTE = "/* Generated from rknn_abi.json. */\n"

PREAMBLE = """
#include <stddef.h>
#ifdef __cplusplus
#include <type_traits>
#define ABI_ASSERT(condition, text) static_assert(condition, text)
#define ABI_TYPE(owner, field, plain, pointer)                             \\
  ABI_ASSERT((std::is_same<decltype(owner::field), ABI_BARE plain>::value), \\
             #owner "." #field " has another type")
#else
#define ABI_ASSERT(condition, text) _Static_assert(condition, text)
#define ABI_TYPE(owner, field, plain, pointer)                                       \\
  ABI_ASSERT(_Generic(&((owner*)0)->field, ABI_BARE pointer: 1, default: 0), \\
             #owner "." #field " has another type")
#endif
#define ABI_BARE(...) __VA_ARGS__
#define ABI_FIELD(owner, field, offset, bytes)                                     \\
  ABI_ASSERT(offsetof(owner, field) == (offset), #owner "." #field " has moved");  \\
  ABI_ASSERT(sizeof(((owner*)0)->field) == (bytes), #owner "." #field " has another size")
"""


def declared(kind, name):
    """A declaration of `name` with a type as the facts write it."""
    call = re.match(r"fnptr (\w+) \((.*)\)$", kind)
    if call:
        return f"{call.group(1)} (*{name})({call.group(2)})"
    array = re.match(r"(.*?)((?:\[\d+\])+)$", kind)
    if array:
        return f"{array.group(1)} {name}{array.group(2)}" if name else array.group(1) + array.group(2)
    return f"{kind} {name}".rstrip()


def guards(facts):
    for header, guard in facts["include_guards"].items():
        yield f'#ifndef {guard}\n#error "{header} does not define {guard}"\n#endif'


def typedefs(facts):
    widths = {name: kinds for name, kinds in facts["typedefs"].items() if isinstance(kinds, dict)}
    for wide, test in (("lp64", "#ifndef __arm__"), ("arm32", "#else")):
        yield test
        for name, kinds in widths.items():
            kind = next(v for k, v in kinds.items() if k.startswith(wide))
            yield f"struct abi_{name} {{ {name} a; }};"
            yield f'ABI_ASSERT(sizeof({name}) == sizeof({kind}), "{name} is not a {kind}");'
    yield "#endif"
    yield 'ABI_ASSERT(sizeof(rknn_matmul_ctx) == sizeof(rknn_context), "rknn_matmul_ctx");'
    yield 'ABI_ASSERT(sizeof(get_custom_op_func) == sizeof(void*), "get_custom_op_func");'


def macros(facts):
    for name, fact in facts["macros"].items():
        yield f'#if !defined({name}) || {name} != {fact["value"]}\n#error "{name} is not {fact["value"]}"\n#endif'
    for name in facts["other_macros"]:
        yield f'#ifndef {name}\n#error "{name} is missing"\n#endif'


def enums(facts):
    for enum in facts["enums"]:
        name = enum["name"]
        yield f'ABI_ASSERT(sizeof({name}) == {enum["sizeof"]}, "{name} has another size");'
        if enum["enum_tag"]:
            yield f'ABI_ASSERT(sizeof(enum {enum["enum_tag"]}) == sizeof({name}), "enum {enum["enum_tag"]}");'
        for value in enum["values"]:
            yield f'ABI_ASSERT({value["name"]} == {value["value"]}, "{value["name"]} is not {value["value"]}");'


def structs(facts):
    narrow = facts["arm32_differences"]["structs_that_differ"]
    for struct in facts["structs"]:
        name = struct["name"]
        if struct["struct_tag"]:
            yield f'ABI_ASSERT(sizeof(struct {struct["struct_tag"]}) == sizeof({name}), "{name}");'
        for field in struct["fields"]:
            # C compares pointers to the field (an array would decay), C++ the field's own type.
            pointer = declared(field["type"], "(*)" if field["type"].endswith("]") else "*")
            plain = declared(field["type"], "")
            yield (f'ABI_TYPE({name}, {field["name"]}, ({plain}), ({pointer}));')
        layouts = [("#ifndef __arm__" if name in narrow else None, struct["sizeof"],
                    {f["name"]: f for f in struct["fields"]})]
        if name in narrow:
            layouts.append(("#else", narrow[name]["sizeof"], narrow[name]["fields"]))
        for condition, size, fields in layouts:
            if condition:
                yield condition
            yield f'ABI_ASSERT(sizeof({name}) == {size}, "{name} has another size");'
            for field, where in fields.items():
                yield f'ABI_FIELD({name}, {field}, {where["offset"]}, {where["size"]});'
        if name in narrow:
            yield "#endif"


def payloads(facts):
    for query in facts["query_payload"]:
        yield (f'ABI_ASSERT(sizeof({query["struct"]}) == {query["expected_size_lp64"]}, '
               f'"{query["cmd"]} fills another size");')


def prototypes(facts):
    """Declared again: the compiler refuses a declaration that differs."""
    yield '#ifdef __cplusplus\nextern "C" {\n#endif'
    for function in facts["functions"]:
        arguments = ", ".join(f'{p["type"]} {p["name"]}' for p in function["params"])
        yield f'{function["returns"]} {function["name"]}({arguments});'
    yield "#ifdef __cplusplus\n}\n#endif"


def layout(facts):
    parts = [NOTE, INCLUDES, PREAMBLE]
    for part in (guards, typedefs, macros, enums, structs, payloads, prototypes):
        parts += [line + "\n" for line in part(facts)]
    return "".join(parts)


def symbols(facts):
    names = [f["name"] for f in facts["functions"]]
    rows = "".join(f'    {{"{n}", (any_function){n}}},\n' for n in names)
    weak = "".join(f"#pragma weak {n}\n" for n in names)
    return f"""{NOTE}#include <stdio.h>
{INCLUDES}
/* A function that is missing is null and fails the test by its name, not the build. */
{weak}
typedef void (*any_function)(void);
static const struct {{
  const char* name;
  any_function function;
}} table[] = {{
{rows}}};

int main(void) {{
  int missing = 0;
  for (unsigned i = 0; i < sizeof table / sizeof *table; ++i) {{
    if (table[i].function == 0) {{
      fprintf(stderr, "%s is missing\\n", table[i].name);
      ++missing;
    }}
  }}
  printf("%u functions, %d missing\\n", (unsigned)(sizeof table / sizeof *table), missing);
  return missing != 0 || sizeof table / sizeof *table != {len(names)};
}}
"""


def helpers(facts):
    """check(function, value, text) for each text an inline helper returns."""
    lines = [NOTE, "#include <stdio.h>\n#include <string.h>\n", INCLUDES,
             "static int check(const char* what, const char* got, const char* expected) {\n"
             "  if (strcmp(got, expected) == 0) return 0;\n"
             '  fprintf(stderr, "%s is %s, not %s\\n", what, got, expected);\n  return 1;\n}\n',
             "int main(void) {\n  int wrong = 0;\n"]
    kinds = {"get_matmul_type_string": "rknn_matmul_type"}
    for signature, texts in facts["inline_helpers"].items():
        name, kind = re.match(r"(\w+)\((\w+)\)", signature).groups()
        kinds[name] = kind
        if "rule" in texts:  # The enumerator's name, but for the last type, which has none.
            enum = next(e for e in facts["enums"] if e["name"] == kind)
            texts = {v["name"]: v["name"] for v in enum["values"]}
            texts["RKNN_INT8_MM_INT4_TO_FLOAT16"] = "UNKNOW"
            texts["default"] = "UNKNOW"
        for value, text in texts.items():
            value = f"({kind})99" if value == "default" else value
            lines.append(f'  wrong += check("{name}({value})", {name}({value}), "{text}");\n')
    lines.append("  return wrong != 0;\n}\n")
    return "".join(lines)


def sources(facts):
    """File name -> text."""
    return {
        "rknn_abi_layout.inc": layout(facts),
        "rknn_abi_layout_c.c": '#include "rknn_abi_layout.inc"\n',
        "rknn_abi_layout_cpp.cpp": '#include "rknn_abi_layout.inc"\n',
        "rknn_abi_symbols.c": symbols(facts),
        "rknn_abi_helpers.inc": helpers(facts),
        "rknn_abi_helpers_c.c": '#include "rknn_abi_helpers.inc"\n',
        "rknn_abi_helpers_cpp.cpp": '#include "rknn_abi_helpers.inc"\n',
    }


def write(facts, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in sources(facts).items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
