#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lint: rules of this project that no compiler and no clang-tidy checks.

Usage: lint.py [ROOT]. Prints `path:line: rule: message` for each finding and
exits with 1 if there is one. tests/lint_test.py tests every rule.

A finding is waived on its own line or by a comment line right above it:
    // lint: allow(<rule>) <reason>
A waiver without a reason, of an unknown rule, or that waives nothing is itself
a finding.
"""

import fnmatch
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "tools", "mutants"))
import weave  # noqa: E402, tools/mutants

# ---------------------------------------------------------------------------
# The rules.

# The files that are checked: sources in these folders, and their build files.
FOLDERS = ("log", "quorum", "replication", "recovery", "api", "tools", "bench",
           "tests")
CODE_SUFFIXES = (".h", ".cc", ".c")
SPDX = "SPDX-License-Identifier: Apache-2.0"

# include-order: a file includes only from its own rank and from lower ones.
# Two folders of one rank do not include each other.
FOLDER_RANK = {"log": 0, "quorum": 1, "replication": 2, "recovery": 3,
               "api": 4, "tools": 5, "bench": 5, "tests": 6}
# The same inside a folder; "" is what lies in it directly.
ROOM_RANK = {
    "log": {"base": 0, "pmem": 1, "format": 2, "core": 3},
    "log/core": {"read": 0, "write": 0, "space": 1, "durability": 2, "ring": 3},
    "quorum": {"arithmetic": 0, "members": 1, "cluster": 2, "membership": 2},
    "quorum/membership": {"": 0, "zookeeper": 1},
    "replication": {"fabric": 0, "wire": 1, "persist": 2, "session": 3,
                    "primary": 4},
    "replication/fabric": {"": 0, "shared": 1, "tcp": 1, "verbs": 1},
    "replication/persist": {"platform": 0, "execute": 1, "plan": 2},
    "recovery": {"protocol": 0, "deletion": 1, "replica": 1, "follow": 1,
                 "opening": 2, "scrub": 2, "election": 3, "server": 3, "resync": 4},
    "api": {"include": 0, "examples": 1, "wiring": 1, "admin": 2, "node": 2,
            "log": 3, "c": 4, "rocksdb": 4, "service": 4, "store": 4, "client": 4,
            "grpc": 5, "metrics": 6, "remote": 6},
    "api/service": {"record": 0, "clients": 1, "log": 2, "served": 3},
    "api/store": {"record": 0, "index": 0, "engine": 1, "local": 2},
    "api/client": {"append": 0, "locate": 0, "grpc": 1},
    "api/grpc": {"access": 0, "connections": 0, "wire": 0, "calls": 1, "server": 2},
    "api/metrics": {"model": 0, "collect": 1, "server": 2},
    "api/rocksdb": {"store": 0, "failover": 1, "follow": 2, "fs": 3},
    "tools": {"model": 0, "cli": 1, "daemon": 2, "nemesis": 2, "sim": 2,
              "demo": 3},
    "tools/model": {"memory": 0, "methods": 1, "fabric": 1, "": 2},
    "tools/cli": {"io": 0, "plan": 1, "source": 1, "verify": 1, "write": 1,
                  "reports": 2, "commands": 3, "bench": 4, "": 5},
    "bench": {"harness": 0, "local": 1, "ordered_store": 2, "replicated": 2,
              "failover": 3, "remotelog": 3, "rocksdb": 3, "service": 3},
    "bench/local": {"candidates": 0, "scenarios": 1, "": 2},
    "bench/replicated": {"candidates": 0, "peers": 1, "scenarios": 2, "": 3},
    "bench/service": {"load": 0, "grpc": 1, "cluster": 2, "contestants": 3,
                      "scenarios": 4, "": 5},
}

# namespace: a source in one of these folders declares in its namespace, or
# inside it. The longest folder counts. A test is in alpheus::testing, or where
# the code is that it tests.
NAMESPACES = {
    "log/": "alpheus",
    "quorum/": "alpheus::quorum",
    "replication/": "alpheus::replication",
    "replication/fabric/": "alpheus::fabric",
    "replication/fabric/tcp/": "alpheus::fabric::tcp",
    "replication/fabric/verbs/": "alpheus::fabric::verbs",
    "recovery/": "alpheus::recovery",
    "api/": "alpheus",
    "api/c/": "alpheus::c",
    "api/rocksdb/": "alpheus::wal",
    "api/service/": "alpheus::service",
    "api/client/": "alpheus::client",
    "api/store/": "alpheus::store",
    "api/grpc/": "alpheus::rpc",
    "api/metrics/": "alpheus::metrics",
    "tools/model/": "alpheus::model",
    "tools/cli/": "alpheus::cli",
    "tools/daemon/": "alpheus::daemon",
    "tools/demo/": "alpheus::demo",
    "tools/nemesis/": "alpheus::demo",
    "tools/sim/": "alpheus::sim",
    "bench/": "alpheus::bench",
}
TEST_NAMESPACE = "alpheus::testing"
NAMESPACE = re.compile(r"^namespace (alpheus(?:::\w+)*) \{")

# include-path: public headers are written as their users write them.
PUBLIC_ROOT = "api/include/"
PUBLIC_PREFIX = "alpheus/"

# include-source: no file includes a source. clang-tidy's rule for that is out,
# because sources of a target are read as one.

# door: (what it is, pattern of the included path, who may include it). An
# entry that ends in / is a folder, any other one a file.
DOORS = (
    ("libpmemlog", r"libpmemlog\.h", ("bench/",)),
    ("libpmem", r"libpmem(2|obj)?(\.h|/|\+\+)", ("log/pmem/",)),
    ("verbs", r"(infiniband|rdma)/",
     ("replication/fabric/verbs/", "bench/replicated/candidates/verbs_floor.cc")),
    ("sockets", r"(sys/(socket|un)\.h|netdb\.h|netinet/|arpa/)",
     # and a benchmark's floor, which must not stand on what it measures.
     ("replication/fabric/tcp/", "replication/fabric/socket_address.h",
      "replication/fabric/socket_address.cc", "quorum/cluster/host_numbers.cc",
      "bench/failover/alpheus/cut.cc",
      "bench/replicated/candidates/raw_socket.cc",
      "bench/service/cluster/metrics_scraper.cc",
      "tests/support/fabrics/counted_sends.cc",
      "tests/replication/fabric/tcp/cut_sockets.cc",
      "tests/bench/replicated/free_ports_test.cc",
      "bench/replicated/candidates/system_calls.cc")),
    ("ZooKeeper", r"zookeeper(/|\.)",
     ("quorum/membership/zookeeper/zookeeper_client.cc",)),
    ("Prometheus", r"prometheus/",
     ("api/metrics/server/", "tests/api/metrics/server/")),
    ("RocksDB", r"rocksdb/",
     ("api/rocksdb/", "tests/api/rocksdb/", "bench/rocksdb/",
      "tests/bench/rocksdb/")),
    ("xxHash", r"xxhash\.h", ("api/store/record/key_hash.cc",)),
    ("ISA-L", r"isa-l([./]|_)", ("log/format/checksum.cc",)),
    # A benchmark is a client of etcd, whose interface is gRPC.
    ("gRPC", r"(grpc|grpcpp|grpc\+\+)/|.*\.grpc\.pb\.h",
     ("api/grpc/", "api/client/grpc/", "tests/api/grpc/",
      "tests/api/client/grpc/", "bench/replicated/peers/etcd_cluster.cc",
      "bench/service/grpc/")),
    ("protobuf", r"google/protobuf/|.*\.pb\.h",
     ("api/grpc/", "api/client/grpc/", "tests/api/grpc/",
      "tests/api/client/grpc/", "bench/replicated/peers/etcd_cluster.cc",
      "bench/service/grpc/")),
    ("hiredis", r"hiredis/", ("bench/replicated/peers/redis_client.h",
                               "bench/replicated/peers/redis_client.cc")),
    ("libcrypto", r"openssl/", ("quorum/members/certificates.cc",
                                "quorum/members/cluster_key.cc",
                                "quorum/members/libcrypto_errors.cc",
                                "api/grpc/access/crypto.cc",
                                "replication/fabric/tcp/tls.cc",
                                "tests/replication/fabric/tcp/"
                                "tls_session_test.cc",
                                "tests/support/fixtures/test_certificates.cc")),
    ("toml++", r"toml\+\+/", ("quorum/cluster/table_reader.h",)),
    # All inline, and slow to compile.
    ("CLI11", r"CLI/", ("tools/cli/io/parser.cc", "bench/harness/program.cc")),
    ("stacks", r"(ucontext|setjmp|csetjmp)(\.h)?$",
     ("tools/sim/world/fiber_context.h", "tools/sim/world/fiber_context.cc")),
    ("GoogleTest", r"(gtest|gmock)/", ("tests/",)),
    ("Google Benchmark", r"benchmark/", ("bench/",)),
)
# public-abseil: the only abseil headers that public headers may include.
PUBLIC_ABSEIL = r"absl/status/(status|statusor)\.h"

# A call of a free function: no member, no other namespace, no declaration.
FREE = r"(?<![\w.>:])((?<=\breturn )|(?<!\w )(?<!\w[&*] ))(::\s*)?"
STARTS_THREAD = (r"\bstd::(thread|jthread|async)\b|\bpthread_create\b"
                 r"|\bthrd_create\b")
# Calls: (rule, pattern in code, who may, message). Comments and literals are
# blanked out before.
CALLS = (
    ("time",
     r"::\s*now\s*\(|\babsl::Now\b|\bGetCurrentTimeNanos\b"
     r"|\b(clock_gettime|gettimeofday|timespec_get|ftime|__?rdtscp?)\s*\("
     r"|\b__builtin_ia32_rdtscp?\b|\bstd::(time|clock)\s*\("
     rf"|{FREE}time\s*\(",
     ("log/base/", "bench/", "tools/daemon/message_writer.cc"),
     "time comes from an injected Clock"),
    ("random",
     r"\bstd::(random_device|mt19937(_64)?|default_random_engine|minstd_rand0?"
     r"|ranlux\w+|knuth_b|rand|srand)\b|\babsl::(\w*BitGen)\b"
     rf"|{FREE}(s?rand|s?random|[delmnj]rand48|rand_r)\s*\("
     r"|\b(getrandom|getentropy|arc4random\w*)\s*\(",
     ("log/base/",), "randomness comes from an injected RandomSource"),
    ("sleep",
     r"\bsleep_(for|until)\b|\babsl::SleepFor\b"
     r"|\b(usleep|nanosleep|clock_nanosleep)\s*\("
     rf"|{FREE}sleep\s*\(",
     ("log/base/", "tools/", "bench/"),
     "code waits by an injected Waiter or by Poll, tests by conditions"),
    ("thread", STARTS_THREAD,
     ("api/wiring/", "tools/", "tests/", "bench/"),
     "protocol code is driven by Poll and starts no thread"),
    ("exception", r"\b(throw|try|catch)\b",
     ("tools/", "log/base/within_memory.h"),
     "errors are absl::Status"),
    ("goto", r"\bgoto\b", (), "no goto"),
    # In place of clang-tidy's concurrency-mt-unsafe, which also takes glibc's
    # strerror for unsafe. The environment is set before there are threads.
    ("mt-unsafe",
     r"\b(strtok|localtime|gmtime|asctime|ctime|setlocale|tmpnam|getpwnam"
     r"|getpwuid|gethostbyname|getservbyname|inet_ntoa|ttyname)\s*\(",
     (), "another thread may overwrite the result"),
    ("mt-unsafe", r"\b(setenv|unsetenv|putenv)\s*\(", ("tools/", "bench/"),
     "another thread may read the environment"),
)
# Includes that belong to a call rule: (rule, pattern of the path, who may).
CALL_INCLUDES = (
    # tools need its timespec to sleep.
    ("time", r"(ctime|time\.h|sys/time\.h|sys/timeb\.h)$",
     ("log/base/", "tools/", "bench/")),
    ("random", r"(random|sys/random\.h|absl/random/.*)$", ("log/base/",)),
)

# one-thread: the sanitizer of threads sees all that start some. It leaves out
# the programs that are ONE_THREAD in this file, so none of their sources does.
TEST_PROGRAMS = "tests/CMakeLists.txt"
ONE_THREAD = re.compile(r"\balpheus_test\(\w+ ONE_THREAD\s([^)]*)\)")

# mutant: each entry of tests/mutants can be woven into one place of the product,
# whose sources know nothing of it, and the test that it names exists.
MUTANT_HOME = "tools/mutants/"
MUTANT_FOLDERS = ("log/", "quorum/", "replication/", "recovery/", "api/",
                  "tools/model/")
MUTANTS_SIMULATED = "tools/mutants/simulated.txt"
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.M)

# guide: every example of a guide stands in its test, indentation aside.
GUIDES = {"docs/use/api_guide.md": "tests/api/log/guide_test.cc",
          "docs/use/operating.md": "tests/api/client/grpc/guide_test.cc"}

# glossary: one word has one row.
GLOSSARY = "docs/glossary.md"

# cite: a label that is cited has one definition. A header defines its
# invariants in its first comment:
#     //   RL1. head_lsn <= durable_lsn + 1 <= next_lsn.
# and a document at the start of a paragraph, a list item or a heading:
#     **P-H7.** ...    * **P-A5.1.** ...    ### P-A4. Opening an epoch
# The letters of a label say the file: P- is the protocol, RL is ring_log.h. A
# small letter behind the number is an item below it: RT5b.
NAME = r"(?:P-(?:INV-)?[A-Z]*\d+(?:\.\d+)?|[A-Z]{2,3}\d+)"
DEFINED = {
    ".h": re.compile(rf"^//   ({NAME})\. "),
    ".pml": re.compile(rf"^//   ({NAME})\. "),
    ".md": re.compile(rf"^(?:(?:[*-] )?\*\*({NAME})\.\*\*"
                      rf"|#+ (?:\d+\. )?({NAME})\. )"),
}
# Everything that looks like a label is one, also with one letter, although that
# names no file. An execution that is indented in a document may call its
# processes P1 and P2.
CITED = re.compile(r"(?<![\w#./-])(?<!Xeon )(?<!Annex )(P-(?:INV-)?[A-Z]*\d+(?:\.\d+)?"
                   r"|INV-[A-Z]?\d+|[A-Z]{1,3}\d+(?:\.\d+)?)[a-z]?(?!\w)")
NO_LABEL = re.compile(r"C11|CLI11|U32|U64|E402|L1d|UTF\d+|SHA\d+|CRC\d+"
                      r"|AMD64|FE80|SB7700")
CITING_SUFFIXES = CODE_SUFFIXES + (".inc", ".mutants", ".pml", ".py", ".txt",
                                   ".md")
PROCESS = re.compile(r"[PT]\d")
# Examples of labels, and documents that no rule is for.
CITING_FREE = ("tests/lint_test.py", ".ci/lint.py", "docs/results/")

# cell: a table is for short entries.
CELL_MAX = 120

# doc: a link of a document leads to a file and a heading that exist, and so
# does a document that a source names: docs/a.md, docs/a.md#heading, or
# docs/a.md, "Heading".
LINK = re.compile(r"\]\(([^()\s#]*)(?:#([^()\s]*))?\)")
NAMED = re.compile(r"\bdocs/[\w./-]*\w\.md\b(?:#([\w-]+)"
                   r"|,\s+\\?\"([^\"\\]+)\\?\")?")
NAMING_SUFFIXES = (".h", ".cc", ".c", ".inc", ".pml", ".py", ".sh", ".cmake",
                   ".txt", ".toml", ".service", ".md")
NAMING_MORE = ("README.md", "CMakeLists.txt", "tools/dev", ".ci/run")
NAMING_FREE = ("tests/lint_test.py", ".ci/lint.py")

# label: a message says in words what it means. Labels of comments, such as
# (P-A4.2), are for assertions, which only programmers read.
LABEL = re.compile(rf"\((?!(?:{NO_LABEL.pattern})\)){NAME}(, {NAME})*\)")
LABEL_FREE = ("tests/",)
ASSERTION = re.compile(r"\bALPHEUS_CHECK\w*\s*\(")

RULES = frozenset(
    {"include-order", "include-path", "include-source", "door", "public-abseil",
     "spdx", "guard", "header-comment", "todo", "waiver", "mutant", "guide",
     "glossary", "cite", "label", "cell", "doc", "namespace",
     "one-thread", "cut"}
    | {call[0] for call in CALLS})

# cut: clang-format breaks a line of a list that is too long, and leaves its last
# words before a line of their own, outside of the list.
CUT = re.compile(r"//( *)([A-Za-z,']+(?: [A-Za-z,']+){0,2})")
CUT_FROM_BYTES = 72
LIST_LINE = re.compile(r"// *(.*[\w,)])")

TODO = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\): )")
WAIVER = re.compile(r"//\s*lint:\s*allow\(([^)]*)\)[ \t]*(.*)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')

# ---------------------------------------------------------------------------
# The machinery.

LITERAL_OR_COMMENT = re.compile(
    r"""//[^\n]*
      | /\*.*?(?:\*/|\Z)
      | (?:u8|[uUL])?R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"
      | "(?:\\.|[^"\\\n])*"
      | (?<![0-9a-zA-Z_])(?:u8|[uUL])?'(?:\\.|[^'\\\n])+'
    """, re.DOTALL | re.VERBOSE)


def blank(text, keep_comments):
    """Blanks out literals and comments (or all but comments); keeps lines."""

    def spaces(piece):
        return re.sub(r"[^\n]", " ", piece)

    out = []
    end = 0
    for match in LITERAL_OR_COMMENT.finditer(text):
        code, piece = text[end:match.start()], match.group()
        is_comment = piece.startswith(("//", "/*"))
        if keep_comments:
            out += [spaces(code), piece if is_comment else spaces(piece)]
        else:
            out += [code, spaces(piece)]
        end = match.end()
    out.append(spaces(text[end:]) if keep_comments else text[end:])
    return "".join(out).split("\n")


def is_allowed(path, places):
    return any(path.startswith(place) if place.endswith("/") else path == place
               for place in places)


class File:
    """One source: its lines three ways, and the findings in it."""

    def __init__(self, root, path):
        self.root = root
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8") as source:
            text = source.read()
        self.lines = text.split("\n")
        self.code = blank(text, keep_comments=False)
        self.comments = blank(text, keep_comments=True)
        self.findings = []

    def find(self, line_index, rule, message):
        self.findings.append((line_index, rule, message))

    def includes(self):
        """Yields (line index, opening delimiter, included path)."""
        for i, line in enumerate(self.lines):
            # The directive itself must be code, not a part of a comment.
            match = INCLUDE.match(line)
            if match and "#" in self.code[i]:
                yield i, match.group(1), match.group(2)


def check_includes(file):
    for i, delimiter, included in file.includes():
        if delimiter == '"':
            check_own_include(file, i, included)
        for name, pattern, places in DOORS:
            if re.match(pattern, included):
                if not is_allowed(file.path, places):
                    where = " and ".join(places)
                    file.find(i, "door", f"{name} is included only in {where}")
                break
        if (file.path.startswith(PUBLIC_ROOT) and included.startswith("absl/")
                and not re.fullmatch(PUBLIC_ABSEIL, included)):
            file.find(i, "public-abseil",
                      "absl::Status is the only abseil type in public headers")
        for rule, pattern, places in CALL_INCLUDES:
            if re.match(pattern, included) and not is_allowed(file.path, places):
                file.find(i, rule, f"<{included}> is included only in "
                          + " and ".join(places))


def check_source_includes(file):
    """A file that includes sources is found once."""
    for i, _, included in file.includes():
        if included.endswith((".cc", ".cpp", ".cxx", ".c")):
            file.find(i, "include-source",
                      "a source is compiled, and only headers are included")
            return


def check_own_include(file, i, included):
    beside = os.path.join(file.root, os.path.dirname(file.path), included)
    from_root = os.path.join(file.root, included)
    if included.startswith(PUBLIC_ROOT):
        file.find(i, "include-path",
                  f'write "{included[len(PUBLIC_ROOT):]}"')
    elif ".." in included.split("/") or "/" not in included or (
            os.path.exists(beside) and not os.path.exists(from_root)):
        file.find(i, "include-path",
                  f'"{included}" is not a path from the root of the repository')
    own = os.path.dirname(file.path).split("/")
    other = os.path.dirname(included).split("/")
    if included.startswith(PUBLIC_PREFIX):
        other = PUBLIC_ROOT.split("/")[:-1]
    if other[0] not in FOLDER_RANK or own[0] not in FOLDER_RANK:
        return
    if own[0] != other[0]:
        if FOLDER_RANK[other[0]] >= FOLDER_RANK[own[0]]:
            file.find(i, "include-order",
                      f"{own[0]} must not include from {other[0]}")
        return
    check_room(file, i, own, other)


def check_room(file, i, own, other):
    """The first rooms in which two paths through one folder differ."""
    depth = len(os.path.commonprefix([own, other]))
    folder = "/".join(own[:depth])
    ranks = ROOM_RANK.get(folder)
    if ranks is None or own == other:
        return
    rooms = [path[depth] if depth < len(path) else "" for path in (own, other)]
    names = [f"{folder}/{room}".rstrip("/") for room in rooms]
    if not set(rooms) <= set(ranks):
        file.find(i, "include-order", f"{names[0]} or {names[1]} has no rank in "
                  "ROOM_RANK (.ci/lint.py)")
    elif ranks[rooms[1]] >= ranks[rooms[0]]:
        file.find(i, "include-order",
                  f"{names[0]} must not include from {names[1]}")


def check_calls(file):
    calls = [(rule, re.compile(pattern), message)
             for rule, pattern, places, message in CALLS
             if not is_allowed(file.path, places)]
    for i, line in enumerate(file.code):
        # Comments and literals are blank here: a third of the lines.
        if not line or line.isspace() or INCLUDE.match(line):
            continue
        for rule, pattern, message in calls:
            match = pattern.search(line)
            if match:
                file.find(i, rule, f"`{match.group().strip()}`: {message}")


def one_thread_sources(root):
    path = os.path.join(root, TEST_PROGRAMS)
    text = weave.read(path) if os.path.exists(path) else ""
    return {f"tests/{source}" for program in ONE_THREAD.findall(text)
            for source in re.findall(r"[\w/]+\.cc\b", program)}


def check_one_thread(file):
    for i, line in enumerate(file.code):
        match = re.search(STARTS_THREAD, line)
        if match:
            file.find(i, "one-thread", f"`{match.group()}` in a program that is "
                      f"ONE_THREAD in {TEST_PROGRAMS}: give this source another "
                      "program, which the sanitizer of threads sees")


def check_spdx(file, comment_mark):
    # A script may have its interpreter in the first line.
    first = 1 if file.lines[0].startswith("#!") else 0
    if file.lines[first:first + 1] != [f"{comment_mark} {SPDX}"]:
        file.find(0, "spdx", f"first line is not `{comment_mark} {SPDX}`")


def check_header(file):
    guard = "ALPHEUS_" + re.sub(r"[^A-Z0-9]", "_", file.path.upper()) + "_"
    directives = [(i, line.split()) for i, line in enumerate(file.code)
                  if line.lstrip().startswith("#")]
    if [words for _, words in directives[:2]] != [["#ifndef", guard],
                                                  ["#define", guard]]:
        file.find(directives[0][0] if directives else 0, "guard",
                  f"include guard is not {guard}")
    elif directives[-1][1] != ["#endif"] or not file.lines[
            directives[-1][0]].rstrip().endswith(f"#endif  // {guard}"):
        file.find(directives[-1][0], "guard",
                  f"last directive is not `#endif  // {guard}`")
    name = os.path.splitext(os.path.basename(file.path))[0]
    second = file.lines[1] if len(file.lines) > 1 else ""
    if not re.match(rf"// {re.escape(name)}: \S", second):
        file.find(min(1, len(file.lines) - 1), "header-comment",
                  f"second line is not `// {name}: <what it is>`")


def room_of(namespace):
    """The room's namespace that this one is in."""
    return max((room for room in NAMESPACES.values()
                if (namespace + "::").startswith(room + "::")), key=len)


def check_namespaces(file):
    is_test = file.path.startswith("tests/")
    path = file.path[len("tests/"):] if is_test else file.path
    folder = max((folder for folder in NAMESPACES if path.startswith(folder)),
                 key=len, default=None)
    if folder is None:
        return
    room = NAMESPACES[folder]
    for i, line in enumerate(file.code):
        match = NAMESPACE.match(line)
        if not match or room_of(match.group(1)) == room or is_test and (
                match.group(1) + "::").startswith(TEST_NAMESPACE + "::"):
            continue
        more = f", or in {TEST_NAMESPACE}" if is_test else ""
        file.find(i, "namespace", f"{folder} is in {room}{more}")


def check_todos(file):
    for i, line in enumerate(file.comments):
        match = TODO.search(line)
        if match:
            file.find(i, "todo", f"write `{match.group(1)}(#<issue>): `")


def check_cuts(file):
    lines = [line.strip() for line in file.lines]
    for i in range(1, len(lines) - 1):
        cut = CUT.fullmatch(lines[i])
        behind = re.match(r"//( *)[A-Za-z]", lines[i + 1])
        if cut and behind and len(cut.group(1)) < len(behind.group(1)) and (
                len(file.lines[i - 1]) >= CUT_FROM_BYTES
                and LIST_LINE.fullmatch(lines[i - 1])):
            file.find(i, "cut", f"`{cut.group(2)}` was cut off from the line "
                      "before; break that line where it fits")


def check_labels(file):
    if file.path.startswith(LABEL_FREE):
        return
    text = "\n".join(file.lines)
    code = "\n".join(file.code)
    for match in LITERAL_OR_COMMENT.finditer(text):
        label = LABEL.search(match.group())
        if match.group().startswith(("//", "/*")) or not label:
            continue
        begin = max(code.rfind(mark, 0, match.start()) for mark in ";{}")
        if ASSERTION.search(code, begin + 1, match.start()):
            continue
        file.find(text.count("\n", 0, match.start() + label.start()), "label",
                  f"`{label.group().strip()}` means nothing to a user")


def check_mutant_sites(file):
    if file.path.startswith(MUTANT_HOME):
        return
    for i, line in enumerate(file.code):
        if re.search(r"\bIsMutant\b", line):
            file.find(i, "mutant", "sources know no mutants; write an entry of "
                      f"{weave.TABLES} (tools/mutants/weave.py)")


def apply_waivers(file):
    """Removes the findings that are waived, adds those of bad waivers."""
    for i, line in enumerate(file.comments):
        match = WAIVER.search(line)
        if not match:
            continue
        rule, reason = match.group(1), match.group(2).strip()
        # A comment on a line of its own applies to the next line of code, even
        # if the reason takes more lines.
        target = i
        if not file.code[i].strip():
            while target + 1 < len(file.code) and not file.code[
                    target].strip() and file.comments[target].strip():
                target += 1
        if rule not in RULES or rule == "waiver":
            file.find(i, "waiver", f"no rule is called `{rule}`")
            continue
        if not reason:
            file.find(i, "waiver", f"allow({rule}) needs a reason")
            continue
        kept = [f for f in file.findings if f[:2] != (target, rule)]
        if len(kept) == len(file.findings):
            file.find(i, "waiver", f"allow({rule}) waives nothing")
        else:
            file.findings = kept


def lint_file(file):
    path = file.path
    if path.endswith(CODE_SUFFIXES):
        check_spdx(file, "//")
        check_includes(file)
        check_source_includes(file)
        check_namespaces(file)
        check_calls(file)
        check_todos(file)
        check_cuts(file)
        check_labels(file)
        check_mutant_sites(file)
        if path.endswith(".h"):
            check_header(file)
        apply_waivers(file)
    else:
        check_spdx(file, "#")
    return [f"{path}:{i + 1}: {rule}: {message}"
            for i, rule, message in sorted(set(file.findings))]


def sources(root):
    """Paths of all checked files, relative to the root, in order."""
    found = ["CMakeLists.txt"]
    for top in FOLDERS + ("cmake", ".ci"):
        for folder, subfolders, names in os.walk(os.path.join(root, top)):
            subfolders[:] = [s for s in subfolders if s != "__pycache__"]
            relative = os.path.relpath(folder, root)
            found += [os.path.join(relative, name) for name in names
                      if name.endswith(CODE_SUFFIXES + (".py", ".cmake"))
                      or name == "CMakeLists.txt"]
    return sorted(f for f in found if os.path.exists(os.path.join(root, f)))


def mutant_errors(root, path, edits):
    """The faults in the edits of a source."""
    if not path.startswith(MUTANT_FOLDERS) or not os.path.exists(
            os.path.join(root, path)):
        return [weave.WeaveError(edits[0].where,
                                 f"{path} is no source of the product")]
    source = weave.Text(weave.read(os.path.join(root, path)))
    errors, changes = [], []
    for edit in edits:
        try:
            changes.append(weave.find_change(source, edit))
        except weave.WeaveError as error:
            errors.append(error)
    try:
        weave.weave(source.text, changes, path)
    except weave.WeaveError as error:
        errors.append(error)
    return errors


def tests_of(root):
    """Suite and name of each test."""
    found = set()
    for folder, _, names in os.walk(os.path.join(root, "tests")):
        for name in names:
            if name.endswith(".cc"):
                found.update(TEST.findall(
                    weave.read(os.path.join(folder, name))))
    return found


def test_exists(tests, filters):
    """Whether a filter as of a test program, PREFIX/SUITE.NAME/PARAMETER with
    wildcards, selects one of the tests."""
    for pattern in filters.split("-")[0].split(":"):
        suite, dot, name = pattern.partition(".")
        suite, name = suite.split("/")[-1], name.split("/")[0]
        if any(fnmatch.fnmatchcase(f"{test[0]}.{test[1]}", suite + dot + name)
               for test in tests):
            return True
    return False


def lint_mutants(root):
    """Findings in the tables of mutants, and in the list of those that the
    simulator kills."""
    try:
        mutants = weave.read_tables(root)
    except weave.WeaveError as error:
        return [f"{error.where}: mutant: {error.what}"]
    errors = [error for path, edits in weave.by_file(mutants).items()
              for error in mutant_errors(root, path, edits)]
    findings = [f"{error.where}: mutant: {error.what}" for error in errors]
    tests = tests_of(root)
    findings += [f"{mutant.where}: mutant: no test is {mutant.test}"
                 for mutant in mutants
                 if not test_exists(tests, mutant.test.partition(":")[2])]
    simulated = os.path.join(root, MUTANTS_SIMULATED)
    if os.path.exists(simulated):
        names = {mutant.name for mutant in mutants}
        for number, line in enumerate(weave.read(simulated).split("\n"), 1):
            words = line.split("#")[0].split()
            if words and words[0] not in names:
                findings.append(f"{MUTANTS_SIMULATED}:{number}: mutant: "
                                f"{weave.TABLES} has no {words[0]}")
    return findings


def unindented(lines):
    """The lines without leading and trailing white space, each ended."""
    return "".join(line.strip() + "\n" for line in lines)


def lint_guides(root):
    """Findings in the guides: examples that their tests do not run."""
    return [finding for guide, test in GUIDES.items()
            for finding in lint_guide(root, guide, test)]


def lint_guide(root, guide, test):
    if not os.path.exists(os.path.join(root, guide)):
        return []
    with open(os.path.join(root, guide), encoding="utf-8") as file:
        lines = file.read().split("\n")
    tried = "\n"
    if os.path.exists(os.path.join(root, test)):
        with open(os.path.join(root, test), encoding="utf-8") as file:
            tried += unindented(file)
    findings = []
    start = None
    for i, line in enumerate(lines + ["```"]):
        if not line.lstrip().startswith("```"):
            continue
        if start is None:
            start = i
            continue
        block = lines[start + 1:i]
        message = None
        if i == len(lines):
            message = "this block has no end"
        elif lines[start].strip() != "```cpp":
            message = "a block that is not cpp is not tried; indent it instead"
        elif not any(code.strip() for code in block):
            message = "this example is empty"
        elif "\n" + unindented(block) not in tried:
            message = f"this example does not stand in {test}"
        if message:
            findings.append(f"{guide}:{start + 1}: guide: {message}")
        start = None
    return findings


def lint_glossary(root):
    """Findings in the glossary: words that have two rows."""
    path = os.path.join(root, GLOSSARY)
    if not os.path.exists(path):
        return []
    findings = []
    seen = {}
    with open(path, encoding="utf-8") as glossary:
        for number, line in enumerate(glossary, 1):
            if not line.startswith("| **"):
                continue
            for bold in re.findall(r"\*\*([^*]+)\*\*", line.split(" | ")[0]):
                for word in bold.split(", "):
                    first = seen.setdefault(word, number)
                    if first != number:
                        findings.append(
                            f"{GLOSSARY}:{number}: glossary: {word} has a row "
                            f"already, in line {first}")
    return findings


def citing_texts(root):
    """Paths of all files that define or cite labels, in order."""
    found = ["README.md"]
    for top in FOLDERS + ("cmake", "docs"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            relative = os.path.relpath(folder, root)
            found += [os.path.join(relative, name) for name in names
                      if name.endswith(CITING_SUFFIXES)]
    return sorted(f for f in found if not is_allowed(f, CITING_FREE)
                  and os.path.exists(os.path.join(root, f)))


def said(path, text):
    """The text without code: comments and literals, or all of a document."""
    if path.endswith(".mutants"):
        return re.sub(r"^[-+] .*", "", text, flags=re.MULTILINE)
    if not path.endswith(CODE_SUFFIXES + (".inc", ".pml")):
        return text
    out, end = [], 0
    for match in LITERAL_OR_COMMENT.finditer(text):
        out += [re.sub(r"[^\n]", " ", text[end:match.start()]), match.group()]
        end = match.end()
    return "".join(out)


def lint_citations(root):
    """Findings: labels that are defined twice, or cited and not defined."""
    findings = []
    defined = {}  # where, by label
    home = {}  # file, by the letters of its labels
    texts = {}
    for path in citing_texts(root):
        with open(os.path.join(root, path), encoding="utf-8") as source:
            texts[path] = source.read()
        pattern = DEFINED.get(os.path.splitext(path)[1])
        for number, line in enumerate(
                texts[path].split("\n") if pattern else (), 1):
            match = pattern.match(line)
            if not match:
                continue
            name = next(group for group in match.groups() if group)
            where = f"{path}:{number}"
            letters = re.match(r"P-|[A-Z]+", name).group()
            if name in defined:
                findings.append(f"{where}: cite: {name} is defined already, "
                                f"at {defined[name]}")
            elif home.setdefault(letters, path) != path:
                findings.append(f"{where}: cite: labels with {letters} are "
                                f"those of {home[letters]}")
            defined.setdefault(name, where)
    for path, text in texts.items():
        for number, line in enumerate(said(path, text).split("\n"), 1):
            findings += [f"{path}:{number}: cite: {match.group(1)} is defined "
                         "nowhere" for match in CITED.finditer(line)
                         if match.group(1) not in defined
                         and not NO_LABEL.fullmatch(match.group())
                         and not (line.startswith("    ")
                                  and path.endswith(".md")
                                  and PROCESS.fullmatch(match.group()))]
    return findings


def documents(root):
    """Lines of all documents, code blocks blanked out, by path."""
    found = {}
    paths = [path for path in files_that_end(root, ("docs",), (".md",))]
    for path in paths + ["README.md"]:
        if not os.path.exists(os.path.join(root, path)):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as document:
            lines = document.read().split("\n")
        is_code = False
        for i, line in enumerate(lines):
            fence = line.lstrip().startswith("```")
            if fence or is_code or line.startswith("    "):
                lines[i] = ""
            is_code ^= fence
        found[path] = lines
    return found


def files_that_end(root, folders, suffixes):
    """Paths of all files in these folders that end so, in order."""
    found = []
    for top in folders:
        for folder, subfolders, names in os.walk(os.path.join(root, top)):
            subfolders[:] = [s for s in subfolders if s != "__pycache__"]
            relative = os.path.relpath(folder, root)
            found += [os.path.join(relative, name) for name in names
                      if name.endswith(suffixes)]
    return sorted(found)


def lint_cells(root):
    """Findings: cells of tables that are too long to be read."""
    findings = []
    for path, lines in documents(root).items():
        for number, line in enumerate(lines, 1):
            cells = re.split(r"(?<!\\)\|", line) if line.startswith(
                "|") else ()
            findings += [f"{path}:{number}: cell: {len(cell.strip())} "
                         f"characters in one cell, at most {CELL_MAX}: "
                         "write a list or a section" for cell in cells
                         if len(cell.strip()) > CELL_MAX]
    return findings


def headings(lines):
    """The names by which links lead to the headings of a document."""
    names = set()
    for line in lines:
        match = re.match(r"#+ (.*)", line)
        if match:
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", match.group(1))
            name = re.sub(r"[^\w\- ]", "", plain.strip().lower())
            name = name.replace(" ", "-")
            last = 1
            while name in names:
                name = re.sub(r"-\d+$", "", name) if last > 1 else name
                name, last = f"{name}-{last}", last + 1
            names.add(name)
    return names


def lint_documents(root):
    """Findings: links and names of documents that lead nowhere."""
    findings = []
    lines_of = documents(root)
    names_of = {path: headings(lines) for path, lines in lines_of.items()}

    def look(where, target, heading):
        if not os.path.exists(os.path.join(root, target)):
            findings.append(f"{where}: doc: there is no {target}")
        elif heading and heading not in names_of.get(target, (heading,)):
            findings.append(f"{where}: doc: {target} has no #{heading}")

    for path, lines in lines_of.items():
        for number, line in enumerate(lines, 1):
            for target, heading in LINK.findall(line):
                if "://" not in target:
                    full = os.path.normpath(os.path.join(
                        os.path.dirname(path), target)) if target else path
                    look(f"{path}:{number}", full, heading)
    paths = files_that_end(root, FOLDERS + ("cmake", "docs"), NAMING_SUFFIXES)
    for path in [*NAMING_MORE, *paths]:
        full = os.path.join(root, path)
        if is_allowed(path, NAMING_FREE) or not os.path.exists(full):
            continue
        with open(full, encoding="utf-8") as source:
            # A name may continue after the mark of the next comment line.
            text = re.sub(r"(?<=\n)[ \t]*(//|#)",
                          lambda mark: " " * len(mark.group()), source.read())
        for match in NAMED.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            target = re.match(r"docs/[\w./-]*\w\.md", match.group()).group()
            title = re.sub(r"\s+", " ", match.group(2) or "")
            heading = match.group(1) or "".join(headings([f"# {title}"]))
            look(f"{path}:{number}", target, heading)
    return findings


def lint(root):
    """Findings in the tree at root, one string each."""
    files = [File(root, path) for path in sources(root)]
    one_thread = one_thread_sources(root)
    for file in files:
        if file.path in one_thread:
            check_one_thread(file)
    return ([finding for file in files for finding in lint_file(file)]
            + lint_mutants(root) + lint_guides(root) + lint_glossary(root)
            + lint_citations(root) + lint_cells(root) + lint_documents(root))


def main(arguments):
    if len(arguments) > 2:
        print("usage: lint.py [ROOT]", file=sys.stderr)
        return 2
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    root = arguments[1] if len(arguments) == 2 else default
    if not sources(root):
        print(f"lint: nothing to check in {root}", file=sys.stderr)
        return 2
    findings = lint(root)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
