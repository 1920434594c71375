"""What a C++ text holds: its functions with their lengths, its classes with their fields, and the public
declarations with their comments; and what a Python module imports. A reader of shapes, not a parser: it knows the
tree's own style. Standard library only."""

import ast
import re

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
AFTER_PARAMETERS = re.compile(
    r"\)\s*(const|noexcept(\(.*\))?|override|final|mutable|->.*|CORELANE_\w+(\(.*?\))?|&&?|\s)*$", re.S)
NOT_A_FUNCTION = re.compile(r"\b(if|for|while|switch|catch|do|else|return|try)\s*(\(|$)")


def strip(text):
    """The code of a C++ text: comments and the contents of literals are gone, line ends stay."""
    return TOKEN.sub(lambda m: "\n" * m.group(0).count("\n") if m.group(0)[0] == "/" else '""', text)


def strip_all(text):
    """strip(), and without the lines of the preprocessor."""
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*$", lambda m: "\n" * m.group(0).count("\n"), strip(text), flags=re.M)


def without_comments(text):
    """The code with its literals: only comments are gone, line ends stay."""
    return TOKEN.sub(lambda m: "\n" * m.group(0).count("\n") if m.group(0)[0] == "/" else m.group(0), text)


class Block:
    """A pair of braces: kind is scope, function or other; `head` is the code that leads to it."""

    def __init__(self, kind, head, line, parent):
        self.kind, self.head, self.line, self.parent, self.end = kind, head, line, parent, line

    def name(self):
        found = re.search(r"([~\w]+(?:::[~\w]+)*|operator\S+)\s*\(", self.head)
        return found.group(1) if found else self.head.split("(")[0].split()[-1] if self.head.split() else "?"


def kind_of(head, parent):
    bare = re.sub(r"\[\[.*?\]\]", "", head).strip()
    if parent is not None and parent.kind != "scope":
        return "other"
    if re.match(r"(inline\s+)?(namespace\b|extern\s*\"\")", bare):
        return "scope"
    if re.search(r"\benum\b", bare):
        return "other"
    if AFTER_PARAMETERS.search(bare) or re.search(r"\)\s*(noexcept\s*)?:[^:].*$", bare, re.S):
        assigned = "=" in bare.split("(")[0].replace("==", "").replace("operator=", "")
        return "other" if NOT_A_FUNCTION.match(bare) or assigned else "function"
    if SCOPE.search(bare) and "(" not in re.sub(r"\w+\([^()]*\)", "", bare):
        return "scope"
    return "other"


def blocks(text):
    """Every Block of a C++ text, outermost first."""
    code = strip_all(text)
    found, stack, start, line = [], [], 0, 1
    depth = 0  # Of round brackets: braces inside of them belong to an expression.
    for at, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "{":
            parent = stack[-1][0] if stack else None
            head = code[start:at]
            # A member's initialiser, as in `X() : a_{1} {`: the head goes on after it.
            initialiser = code[at - 1] not in " \n)" and re.search(r"\)\s*(noexcept\s*)?:[^:]", head)
            kind = "other" if depth > 0 or initialiser else kind_of(head, parent)
            block = Block(kind, head.strip(), line, parent)
            found.append(block)
            stack.append((block, depth, start if initialiser else None))
            depth = 0 if kind != "other" else depth
            start = at + 1
        elif char == "}":
            if stack:
                block, depth, head_start = stack.pop()
                block.end = line
                start = at + 1 if head_start is None else head_start
        elif char == ";" and depth == 0:
            start = at + 1
        elif char == ":" and depth == 0 and re.search(r"\b(public|private|protected)\s*$", code[start:at]):
            start = at + 1
    return found


def functions(text):
    """(name, first line, number of lines) of each function body; local ones belong to theirs."""
    for block in blocks(text):
        if block.kind == "function":
            yield block.name(), block.line, block.end - block.line + 1


def fields(text):
    """(class, line, number of fields named with the underscore) of each class of a text."""
    lines = strip(text).split("\n")
    for block in blocks(text):
        head = re.search(r"\b(?:class|struct)\s+(?:CORELANE_\w+(?:\([^)]*\))?\s+)*([\w:]+)", block.head)
        if block.kind != "scope" or not head:
            continue
        count, depth = 0, 0
        for row in lines[block.line - 1:block.end]:
            before = depth
            depth += row.count("{") - row.count("}")
            if before == 1 and re.search(r"\b\w+_\s*(CORELANE_\w+\([^)]*\)\s*)?(=[^=].*|\{.*\})?;", row) \
                    and not re.match(r"\s*(return|using|friend)\b", row):
                count += 1
        yield head.group(1), block.line, count


def uncommented(text):
    """(name, line) of each public function of a header that has no comment of its own: `///` above it, or
    `///<` behind it. Overrides, defaulted and deleted functions and destructors speak for themselves."""
    rows = text.split("\n")
    code = strip_all(text).split("\n")
    inside = {}
    for block in blocks(text):
        if block.kind != "scope":
            for line in range(block.line + 1, block.end + 1):
                inside[line] = True
    visible = {}
    every = blocks(text)
    classes = [b for b in every if b.kind == "scope" and re.search(r"\b(class|struct)\b", b.head)]
    for block in every:
        if block in classes:
            public = "struct" in block.head.split("(")[0]
            nested = {line for b in classes if b.line > block.line and b.end <= block.end
                      for line in range(b.line, b.end + 1)}
            for line in range(block.line + 1, block.end):
                if line not in nested and re.match(r"\s*(public|private|protected):", code[line - 1]):
                    public = "public" in code[line - 1]
                visible[line] = public
        elif block.kind == "scope" and re.search(r"\bnamespace (detail|\{)", block.head + " {"):
            for line in range(block.line + 1, block.end):
                visible[line] = False
    for number, row in enumerate(code, 1):
        if inside.get(number) or not visible.get(number, True):
            continue
        match = re.match(r"\s*(?:template\s*<.*>\s*)?(?:[\w:<>,*&\[\]\s]+\s)?([~\w]+|operator\S+)\s*\(", row)
        if not match or re.match(r"\s*(#|return|friend|using|static_assert|:|\))", row) \
                or match.group(1) in ("if", "for", "while", "switch", "defined", "consteval", "decltype", "noexcept",
                                      "__attribute__", "CORELANE_THREAD_ATTRIBUTE_"):
            continue
        above = number - 2
        while above >= 0 and re.match(r"\s*(template\b|\[\[|CORELANE_API\s*$|// NOLINT)", rows[above]):
            above -= 1
        # A declaration that goes on from the line before is not one of its own.
        before = code[above].strip() if above >= 0 else ""
        if before and not before.endswith((";", "{", "}", ":")) and not re.match(r"#|template", before):
            continue
        rest = re.split(r"[;{]", " ".join(code[number - 1:number + 4]))[0]
        if match.group(1).startswith("~") or re.search(r"\boverride\b|=\s*(default|delete)\s*$", rest):
            continue
        end = number
        while end < len(code) and ";" not in code[end - 1] and "{" not in code[end - 1]:
            end += 1
        if rows[above].lstrip().startswith("///") or any("///<" in r for r in rows[number - 1:end]):
            continue
        yield match.group(1), number


def python_imports(texts, package):
    """For each module of the folder `package`: the modules of it that it imports, in functions too."""
    graph = {}
    for path, text in texts.items():
        if not (path.startswith(package) and path.endswith(".py")):
            continue
        found = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level:
                folder = path.split("/")[:-node.level]
                base = "/".join(folder + (node.module.split(".") if node.module else []))
                for name in node.names:
                    for target in (f"{base}/{name.name}", base, f"{base}/__init__"):
                        if target + ".py" in texts or target + ".pyi" in texts:
                            found.add(target + ".py")
                            break
        graph[path] = sorted((found & texts.keys()) - {path})
    return graph
