#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests .ci/lint.py: for every rule snippets that it must and must not find.

Method: each case is one file in a tree of its own, linted as the repository
is. The last test lints the repository itself.
"""

import importlib.util
import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SPEC = importlib.util.spec_from_file_location(
    "lint", os.path.join(ROOT, ".ci", "lint.py"))
lint = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(lint)

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
# One of the guides, and what runs its examples.
GUIDE, GUIDE_TEST = next(iter(lint.GUIDES.items()))

# (rule, path, code after the SPDX line): exactly one finding, of this rule.
BAD = [
    # Folders.
    ("include-order", "log/core/a.cc", '#include "recovery/replica/local_opening.h"'),
    ("include-order", "log/core/a.cc", '#include "alpheus/log.h"'),
    ("include-order", "quorum/a.cc", '#include "replication/a.h"'),
    ("include-order", "replication/a.cc", '#include "recovery/a.h"'),
    ("include-order", "recovery/a.cc", '#include "api/node/a.h"'),
    ("include-order", "api/node/a.cc", '#include "tools/a.h"'),
    ("include-order", "tools/a.cc", '#include "bench/a.h"'),
    ("include-order", "bench/a.cc", '#include "tools/a.h"'),
    ("include-order", "bench/a.cc", '#include "tests/a.h"'),
    ("include-order", "tools/a.cc", '  #  include "tests/a.h"'),
    # Folders of log.
    ("include-order", "log/base/a.cc", '#include "log/pmem/region.h"'),
    ("include-order", "log/pmem/a.cc", '#include "log/format/record.h"'),
    ("include-order", "log/format/a.cc", '#include "log/core/read/scan.h"'),
    ("include-order", "log/other/a.cc", '#include "log/base/ids.h"'),
    # Rooms of folders, also deeper rooms and files beside rooms.
    ("include-order", "log/core/read/a.cc", '#include "log/core/ring/ring_log.h"'),
    ("include-order", "log/core/read/a.cc", '#include "log/core/write/pad.h"'),
    ("include-order", "recovery/replica/a.cc",
     '#include "recovery/opening/chooser.h"'),
    ("include-order", "replication/fabric/fabric.cc",
     '#include "replication/fabric/tcp/wire.h"'),
    ("include-order", "api/node/a.cc", '#include "api/log/log_engine.h"'),
    ("include-order", "recovery/a.cc", '#include "recovery/replica/local_replica.h"'),
    ("include-order", "api/include/alpheus/a.cc",
     '#include "api/wiring/adapter.h"'),
    ("include-order", "tools/model/memory/a.cc", '#include "tools/sim/world/world.h"'),
    # Namespaces.
    ("namespace", "quorum/members/a.cc", "namespace alpheus {}"),
    ("namespace", "quorum/members/a.cc", "namespace alpheus::recovery {}"),
    ("namespace", "log/core/a.cc", "namespace alpheus::quorum {}"),
    ("namespace", "replication/wire/a.cc", "namespace alpheus::fabric {}"),
    ("namespace", "replication/fabric/a.cc", "namespace alpheus::fabric::tcp {}"),
    ("namespace", "api/rocksdb/fs/a.cc", "namespace alpheus {}"),
    ("namespace", "bench/a.cc", "namespace alpheus {}"),
    ("namespace", "tests/quorum/members/a.cc", "namespace alpheus {}"),
    # Paths.
    ("include-path", "api/node/a.cc", '#include "api/include/alpheus/log.h"'),
    ("include-path", "log/core/a.cc", '#include "scan.h"'),
    ("include-path", "log/core/a.cc", '#include "../base/ids.h"'),
    ("include-path", "tools/sim/a.cc", '#include "near/b.h"'),
    # Sources; a file that includes several is found once.
    ("include-source", "tools/sim/a.cc", '#include "log/core/ring/b.cc"'),
    ("include-source", "tests/a.cc",
     '#include "log/core/ring/b.cc"\n#include "log/core/ring/c.cc"'),
    ("include-source", "tests/a.cc", '#include "tests/b.c"'),
    # Doors.
    ("door", "log/core/a.cc", "#include <libpmem.h>"),
    ("door", "log/core/a.cc", '#include "libpmem2/base.h"'),
    ("door", "log/pmem/a.cc", "#include <libpmemlog.h>"),
    ("door", "replication/fabric/tcp/a.cc", "#include <infiniband/verbs.h>"),
    ("door", "replication/a.cc", "#include <rdma/rdma_cma.h>"),
    ("door", "replication/a.cc", "#include <sys/socket.h>"),
    ("door", "tools/a.cc", "#include <netinet/tcp.h>"),
    ("door", "tools/a.cc", "#include <arpa/inet.h>"),
    ("door", "api/node/a.cc", "#include <zookeeper/zookeeper.h>"),
    ("door", "api/node/a.cc", "#include <rocksdb/db.h>"),
    ("door", "tests/api/a.cc", '#include "rocksdb/db.h"'),
    ("door", "log/format/record.cc", "#include <isa-l/crc.h>"),
    ("door", "api/store/index/index.cc", "#include <xxhash.h>"),
    ("door", "api/metrics/collect/a.cc", "#include <prometheus/exposer.h>"),
    ("door", "recovery/a.cc", "#include <grpcpp/grpcpp.h>"),
    ("door", "bench/replicated/a.cc", "#include <grpcpp/grpcpp.h>"),
    ("door", "api/node/a.cc", "#include <grpcpp/grpcpp.h>"),
    ("door", "api/service/log/a.cc", "#include <google/protobuf/message.h>"),
    ("door", "bench/replicated/peers/etcd.cc", "#include <hiredis/hiredis.h>"),
    ("door", "quorum/a.cc", "#include <toml++/toml.h>"),
    ("door", "tests/support/a.cc", "#include <ucontext.h>"),
    ("door", "recovery/a.cc", "#include <openssl/hmac.h>"),
    ("door", "tools/cli/a.cc", "#include <CLI/CLI.hpp>"),
    ("door", "tools/a.cc", '#include "gtest/gtest.h"'),
    ("door", "tests/a.cc", "#include <benchmark/benchmark.h>"),
    ("public-abseil", "api/include/alpheus/a.cc",
     '#include "absl/strings/str_cat.h"'),
    # Time.
    ("time", "log/core/a.cc", "auto t = std::chrono::steady_clock::now();"),
    ("time", "tools/a.cc", "using C = SystemClock; auto t = C::now ();"),
    ("time", "tests/a.cc", "auto t = absl::Now();"),
    ("time", "log/core/a.cc", "long t = time(nullptr);"),
    ("time", "log/core/a.cc", "long F() { return time(nullptr); }"),
    ("time", "log/core/a.cc", "long t = ::time(nullptr);"),
    ("time", "log/core/a.cc", "long t = std::time(nullptr);"),
    ("time", "log/core/a.cc", "clock_gettime(CLOCK_REALTIME, &spec);"),
    ("time", "log/core/a.cc", "gettimeofday(&now, nullptr);"),
    ("time", "log/core/a.cc", "auto t = __rdtsc();"),
    ("time", "tests/a.cc", "#include <ctime>"),
    # Randomness.
    ("random", "tests/a.cc", "int n = rand() % 6;"),
    ("random", "tests/a.cc", "int F() { return random(); }"),
    ("random", "tests/a.cc", "int n = mask & random();"),
    ("random", "tools/a.cc", "std::random_device device;"),
    ("random", "bench/a.cc", "std::mt19937_64 generator(1);"),
    ("random", "log/core/a.cc", "getrandom(&value, 8, 0);"),
    ("random", "log/core/a.cc", "#include <random>"),
    # Sleeping.
    ("sleep", "tests/a.cc", "std::this_thread::sleep_for(1ms);"),
    ("sleep", "tests/a.cc", "absl::SleepFor(absl::Seconds(1));"),
    ("sleep", "log/core/a.cc", "sleep(1);"),
    ("sleep", "log/core/a.cc", "usleep(1);"),
    ("sleep", "recovery/a.cc", "nanosleep(&spec, nullptr);"),
    # Threads.
    ("thread", "log/core/a.cc", "std::thread worker(Run);"),
    ("thread", "replication/a.cc", "std::jthread worker(Run);"),
    ("thread", "recovery/a.cc", "pthread_create(&id, nullptr, Run, nullptr);"),
    ("thread", "api/store/a.cc", "auto done = std::async(Run);"),
    # Exceptions and goto.
    ("exception", "log/core/a.cc", "throw 1;"),
    ("exception", "log/core/a.cc", "void F() try {}"),
    ("exception", "tests/a.cc", "} catch (...) {"),
    ("goto", "tools/a.cc", "goto out;"),
    ("mt-unsafe", "tools/a.cc", "char* word = strtok(text, sep);"),
    ("mt-unsafe", "log/core/a.cc", 'setenv("A", "1", 1);'),
    # Mutants.
    ("mutant", "log/core/a.cc", 'if (IsMutant("kUnknown")) return;'),
    ("mutant", "api/a.cc", 'if (alpheus::IsMutant(\n    "kOne")) a();'),
    ("mutant", "tests/a.cc", 'EXPECT_TRUE(IsMutant("kUnknown"));'),
    # Comments.
    ("todo", "log/core/a.cc", "// TODO: later"),
    ("todo", "log/core/a.cc", "/* FIXME(someone): later */"),
    ("todo", "log/core/a.cc", "int a;  // TODO(#12) no colon"),
    ("cut", "log/core/a.cc",
     "//   1. The region has no byte in it that anybody else may take for one of"
     "\n//   its\n//      own."),
    # Labels in messages.
    ("label", "api/rocksdb/a.cc", 'return Refused("opened elsewhere (QU3)");'),
    ("label", "tools/cli/a.cc",
     'Tell("not durable (P-A4.2, P-H12). Try again");'),
    ("label", "log/core/a.cc", 'Fail("an invariant (P-INV-22)");'),
    ("label", "log/core/a.cc", 'ALPHEUS_CHECK(a, "a");\n'
     'Fail(\n    "full (P-L6)");'),
    # Waivers.
    ("waiver", "log/core/a.cc", "throw 1;  // lint: allow(exception)"),
    ("waiver", "log/core/a.cc", "int a;  // lint: allow(goto) nothing here"),
    ("waiver", "log/core/a.cc", "int a;  // lint: allow(nonsense) a reason"),
    ("waiver", "log/core/a.cc", "int a;  // lint: allow(waiver) a reason"),
    ("goto", "log/core/a.cc", "// lint: allow(goto) one line only\n"
     "int a;  // lint: allow(goto) here\ngoto out;"),
]

# (rule that must find nothing, path, code after the SPDX line): no finding.
GOOD = [
    ("include-source", "tools/model/a.cc",
     "// lint: allow(include-source) definitions of templates.\n"
     '#include "log/core/ring/b.cc"\n#include "log/core/ring/c.cc"'),
    ("include-source", "log/a.cc", '// #include "log/b.cc"\n'
     'const char a[] = "#include \\"log/b.cc\\"";'),
    ("include-order", "log/core/ring/a.cc", '#include "log/base/ids.h"\n'
     '#include "log/pmem/region.h"\n#include "log/format/record.h"\n'
     '#include "log/core/read/scan.h"'),
    ("include-order", "log/core/ring/a.cc", '#include "log/core/ring/region_use.h"\n'
     '#include "log/core/write/pad.h"\n#include "log/core/space/reclaimer.h"'),
    ("include-order", "replication/fabric/tcp/a.cc",
     '#include "replication/fabric/fabric.h"'),
    ("include-order", "tools/sim/world/a.cc", '#include "tools/sim/actors/operator.h"\n'
     '#include "tools/cli/io/arguments.h"\n#include "tools/model/memory/a.h"'),
    ("include-order", "tests/log/a.cc", '#include "tools/a.h"\n'
     '#include "bench/a.h"\n#include "alpheus/log.h"'),
    ("include-order", "tools/a.cc", '#include "alpheus/log.h"\n'
     '#include "api/node/a.h"\n#include "quorum/a.h"'),
    ("include-order", "log/base/a.cc", '// #include "tools/a.h"\n'
     '/*\n#include "tools/a.h"\n*/\n#include <vector>'),
    ("namespace", "log/core/a.cc", "namespace alpheus {}\n"
     "namespace alpheus::internal {}\nnamespace rocksdb {}\n"
     "// namespace alpheus::quorum {"),
    ("namespace", "quorum/members/a.cc", "namespace alpheus::quorum {}\n"
     "namespace alpheus::quorum::internal {}"),
    ("namespace", "replication/fabric/tcp/a.cc",
     "namespace alpheus::fabric::tcp {}"),
    ("namespace", "bench/a.cc", "namespace alpheus::bench::local {}"),
    ("namespace", "tools/mutants/a.cc", "namespace alpheus {}"),
    ("namespace", "tests/quorum/members/a.cc", "namespace alpheus::quorum {}\n"
     "namespace alpheus::testing {}"),
    ("namespace", "tests/support/a.cc", "namespace alpheus {}"),
    ("include-path", "log/core/ring/a.cc", '#include "log/core/read/scan.h"\n'
     '#include "absl/status/status.h"'),
    ("door", "log/pmem/a.cc", "#include <libpmem.h>"),
    ("door", "bench/a.cc", "#include <libpmemlog.h>\n"
     "#include <benchmark/benchmark.h>"),
    ("door", "replication/fabric/verbs/a.cc", "#include <infiniband/verbs.h>\n"
     "#include <rdma/rdma_cma.h>"),
    ("door", "replication/fabric/tcp/a.cc", "#include <sys/socket.h>\n"
     "#include <netinet/in.h>\n#include <arpa/inet.h>"),
    ("door", "quorum/membership/zookeeper/zookeeper_client.cc",
     "#include <zookeeper/zookeeper.h>"),
    ("door", "api/rocksdb/a.cc", "#include <rocksdb/file_system.h>"),
    ("door", "tests/api/rocksdb/a.cc", '#include "rocksdb/db.h"'),
    ("door", "log/format/checksum.cc", "#include <isa-l/crc.h>"),
    ("door", "api/store/record/key_hash.cc", "#include <xxhash.h>"),
    ("door", "quorum/cluster/table_reader.h",
     "// table_reader: a.\n#ifndef ALPHEUS_QUORUM_CLUSTER_TABLE_READER_H_\n"
     "#define ALPHEUS_QUORUM_CLUSTER_TABLE_READER_H_\n\n"
     "#include <toml++/toml.h>\n\n"
     "#endif  // ALPHEUS_QUORUM_CLUSTER_TABLE_READER_H_"),
    ("door", "tools/sim/world/fiber_context.cc", "#include <ucontext.h>"),
    ("door", "quorum/members/cluster_key.cc", "#include <openssl/hmac.h>"),
    ("door", "api/grpc/wire/a.cc", "#include <grpcpp/grpcpp.h>"),
    ("door", "api/metrics/server/a.cc", "#include <prometheus/exposer.h>"),
    ("door", "tools/cli/io/parser.cc", '#include "CLI/CLI.hpp"'),
    ("door", "api/client/grpc/a.cc", "#include <google/protobuf/message.h>"),
    ("door", "bench/replicated/peers/etcd_cluster.cc", "#include <grpcpp/grpcpp.h>"),
    ("door", "bench/replicated/peers/redis_client.cc", "#include <hiredis/hiredis.h>"),
    ("door", "tests/a.cc", '#include "gmock/gmock.h"'),
    ("public-abseil", "api/include/alpheus/a.cc",
     '#include "absl/status/statusor.h"'),
    ("public-abseil", "api/node/a.cc", '#include "absl/strings/str_cat.h"'),
    ("time", "log/base/a.cc", "#include <ctime>\n"
     "auto t = std::chrono::steady_clock::now();"),
    ("time", "bench/a.cc", "auto t = std::chrono::steady_clock::now();"),
    ("time", "log/core/a.cc", "int64_t t = clock.NowNanos();\n"
     "int64_t time(int n);\nint64_t u = event.time();\nRuntime(1);\n"
     "std::chrono::nanoseconds timeout(5);"),
    ("random", "log/base/a.cc", "#include <sys/random.h>\n"
     "getrandom(&value, 8, 0);"),
    ("random", "log/core/a.cc", "Random random(seed);\nstrand(1);\n"
     "RandomSource& random();"),
    ("sleep", "log/base/a.cc", "nanosleep(&spec, nullptr);"),
    ("sleep", "tools/a.cc", "std::this_thread::sleep_for(1ms);"),
    ("sleep", "tools/a.cc", "#include <ctime>\nnanosleep(&spec, nullptr);"),
    ("sleep", "tests/a.cc", "std::this_thread::yield();\nclient.sleep(1);"),
    ("thread", "tests/a.cc", "std::thread worker(Run);"),
    ("thread", "api/wiring/a.cc", "std::jthread worker(Run);"),
    ("thread", "bench/a.cc", "std::thread worker(Run);"),
    ("thread", "log/core/a.cc", "thread_local int a;\nThreadToken();"),
    ("exception", "tools/a.cc", "try {} catch (const CLI::Error&) {}"),
    ("exception", "log/core/a.cc", "// try again\nvoid F() noexcept;\n"
     'const char* a = "throw";\nconst char* b = R"(a "try" b)";\n'
     "TryClaim(1'000'000); char c = '\"'; char d = '\\'';"),
    ("goto", "log/core/a.cc", "/* goto\n goto */ int a;"),
    ("mt-unsafe", "tools/a.cc", "char* text = std::strerror(errno);\n"
     "strtok_r(text, sep, &rest);\nconst char* home = getenv(name);"),
    ("mt-unsafe", "bench/a.cc", 'setenv("A", "1", 1);'),
    ("mutant", "log/core/a.cc", '// if (IsMutant("kUnknown")) return;'),
    ("mutant", "tools/mutants/a.cc", 'IsMutant("kUnknown");'),
    ("spdx", "log/core/a.cc", "int a;"),
    ("todo", "log/core/a.cc", "// TODO(#12): later\nTODO();"),
    ("cut", "log/core/a.cc",
     "// The region has no byte in it that anybody else may take for one of"
     "\n// its\n// own:\n//   none"),
    ("label", "log/core/a.cc", 'ALPHEUS_CHECK(\n    a, "goes on (MB1)");\n'
     '// Why (P-A4.2).\nTell("the domain (ADR), W (2) and LSN (12)");'),
    ("label", "tests/log/a.cc", 'EXPECT_TRUE(a) << "P-R2 (P-A4.2)";'),
    ("label", "bench/a.cc", 'Tell("an old processor (SB7700)");'),
    ("waiver", "log/core/a.cc", "throw 1;  // lint: allow(exception) a test"),
    ("waiver", "log/core/a.cc", "// lint: allow(exception) a test whose reason\n"
     "// needs two lines.\nthrow 1;"),
]

# The labels that these cases cite.
LABELS = ("docs/labels.md", "".join(
    f"**{name}.** Text.\n" for name in (
        "QU3", "MB1", "P-A4.2", "P-H12", "P-INV-22", "P-L5", "P-L6", "P-R2")))

GUARD = "ALPHEUS_LOG_CORE_A_H_"
GOOD_HEADER = (SPDX + "// a: what it is.\n//\n// #include no directive.\n"
               f"#ifndef {GUARD}\n#define {GUARD}\n\n#include <vector>\n\n"
               f"#endif  // {GUARD}\n")


class LintTest(unittest.TestCase):

    def lint(self, path, content, others=()):
        """Rules of the findings in one file with this content."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in [(path, content), LABELS, *others]:
                full = os.path.join(root, name)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as out:
                    out.write(text)
            findings = lint.lint(root)
        for finding in findings:
            self.assertRegex(finding, rf"^{re.escape(path)}:\d+: [a-z-]+: \S")
        return [finding.split(": ")[1] for finding in findings]

    def test_finds_what_is_bad(self):
        near = [("tools/sim/near/b.h", GOOD_HEADER.replace(
            GUARD, "ALPHEUS_TOOLS_SIM_NEAR_B_H_").replace("// a:", "// b:"))]
        for rule, path, code in BAD:
            with self.subTest(rule=rule, path=path, code=code):
                found = set(self.lint(path, SPDX + code + "\n", near))
                # A waiver without reason waives nothing.
                self.assertEqual(found - {"exception"} if rule == "waiver"
                                 else found - {"waiver"}, {rule})

    def test_is_silent_about_what_is_good(self):
        for rule, path, code in GOOD:
            with self.subTest(rule=rule, path=path, code=code):
                self.assertEqual(self.lint(path, SPDX + code + "\n"), [])

    def test_waiver_without_reason_waives_nothing(self):
        self.assertEqual(
            sorted(self.lint("log/core/a.cc",
                             SPDX + "throw 1;  // lint: allow(exception)\n")),
            ["exception", "waiver"])

    def test_names_the_line(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "log/core"))
            with open(os.path.join(root, "log/core/a.cc"), "w",
                      encoding="utf-8") as out:
                out.write(SPDX + "/* two\nlines */\n  goto out;\n")
            self.assertEqual(lint.lint(root),
                             ["log/core/a.cc:4: goto: `goto`: no goto"])

    def test_programs_of_one_thread_start_none(self):
        programs = [("tests/CMakeLists.txt", "# " + SPDX[3:] +
                     "alpheus_test(one_test ONE_THREAD SOURCES\n"
                     "  $<TARGET_OBJECTS:shared>\n  log/b_test.cc\n"
                     "  log/a_test.cc\n  LIBRARIES some)\n"
                     "alpheus_test(more_test SOURCES\n  log/c_test.cc)\n")]
        start = "std::jthread other(Run);\n"
        waiver = "// lint: allow(one-thread) the sanitizer can't see it\n"
        for path, code, found in (
                ("tests/log/a_test.cc", start, ["one-thread"]),
                ("tests/log/b_test.cc", "std::vector<std::thread> many;\n",
                 ["one-thread"]),
                ("tests/log/a_test.cc", waiver + start, []),
                ("tests/log/a_test.cc", "// std::thread\nThreadToken();\n", []),
                ("tests/log/c_test.cc", start, []),
                ("tests/log/c_test.cc", waiver + start, ["waiver"]),
                ("tests/log/other/a_test.cc", start, [])):
            with self.subTest(path=path, code=code):
                self.assertEqual(self.lint(path, SPDX + code, programs), found)

    def lint_mutants(self, table, simulated=""):
        """The findings beside a source with one G() and two H()."""
        source = SPDX + "void F() {\n  G(a);\n  H();\n  H();\n}\n"
        test = SPDX + "TEST_F(RecoveryTest, A) {}\n"
        with tempfile.TemporaryDirectory() as root:
            for path, text in (("recovery/a.cc", source), LABELS,
                               ("tests/mutants/a.mutants", table),
                               ("tests/recovery/a_test.cc", test),
                               ("tools/mutants/simulated.txt", simulated)):
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as out:
                    out.write(text)
            return lint.lint(root)

    def test_each_mutant_has_one_place(self):
        place = "tests/mutants/a.mutants:1: mutant: "
        head = ("mutant: kOne\nhole: P-L5\nwhat: it\ntest: a_test:*.A\n"
                "file: recovery/a.cc\n")
        two = head.replace("kOne", "kTwo")
        for table, findings in (
                (head + "- G(a);\n", []),
                (head + "- G( a ) ;\n+ H(P-X1);\n\n" + two + "- G(a)\n+ G(b)\n",
                 []),
                (head + "- G(b);\n",
                 [f"{place}the anchor of kOne is not in recovery/a.cc; the "
                  "nearest is line 3: G(a);"]),
                (head + "- H();\n",
                 [f"{place}the anchor of kOne stands in recovery/a.cc 2 times: "
                  "lines 4, 5"]),
                (head + "- G(\n+ H(\n", [
                    f"{place}kOne changes neither whole statements nor a whole "
                    "expression"]),
                (head + "G(a);\n",
                 [f"{place}`- ANCHOR` and `+ REPLACEMENT` must follow"]),
                ((head + "- G(a);\n").replace("recovery", "tests"),
                 [f"{place}tests/a.cc is no source of the product"]),
                ((head + "- G(a);\n").replace("a.cc", "b.cc"),
                 [f"{place}recovery/b.cc is no source of the product"]),
                (head + "- G(a);\n\n" + head + "- H(); H();\n",
                 ["tests/mutants/a.mutants:8: mutant: kOne is in "
                  "tests/mutants/a.mutants:1 already"]),
                (head + "- G(a);\n- H();\n+ H();\n+ G(a);\n\n" + two
                 + "- H();\n- H();\n+ G(a);\n",
                 ["tests/mutants/a.mutants:11: mutant: kTwo and kOne overlap in "
                  "part"])):
            with self.subTest(table=table):
                self.assertEqual(self.lint_mutants(table), findings)

    def test_tests_of_mutants_exist(self):
        for tests, exists in (
                ("*.A", True), ("RecoveryTest.A", True), ("*Test.A*", True),
                ("All/RecoveryTest.A/3", True), ("*covery*", True),
                ("*.Gone:RecoveryTest.*", True),
                ("*.Gone", False), ("Recovery.A", False), ("*.A-*.B", True)):
            with self.subTest(tests=tests):
                self.assertEqual(
                    self.lint_mutants(
                        f"mutant: kOne\nhole: P-L5\nwhat: it\ntest: a_test:{tests}"
                        "\nfile: recovery/a.cc\n- G(a);\n"),
                    [] if exists else ["tests/mutants/a.mutants:1: mutant: no test "
                                       f"is a_test:{tests}"])

    def test_simulated_mutants_exist(self):
        table = ("mutant: kOne\nhole: P-L5\nwhat: it\ntest: a_test:*.A\n"
                 "file: recovery/a.cc\n- G(a);\n")
        self.assertEqual(
            self.lint_mutants(table, "# A comment.\nkOne P-L5\nkTwo P-L5\n"),
            ["tools/mutants/simulated.txt:3: mutant: tests/mutants has no kTwo"])

    def test_first_line_is_spdx(self):
        for path in ("log/core/a.cc", "tests/a.c"):
            self.assertEqual(self.lint(path, "int a;\n"), ["spdx"])
            self.assertEqual(self.lint(path, "\n" + SPDX), ["spdx"])
            self.assertEqual(self.lint(path, ""), ["spdx"])
        hash_spdx = SPDX.replace("//", "#")
        for path in ("log/CMakeLists.txt", "cmake/A.cmake", "tests/a.py"):
            self.assertEqual(self.lint(path, "a\n"), ["spdx"])
            self.assertEqual(self.lint(path, hash_spdx), [])
        self.assertEqual(
            self.lint("tests/a.py", "#!/usr/bin/env python3\n" + hash_spdx), [])

    def test_headers_have_guard_and_comment(self):
        path = "log/core/a.h"
        self.assertEqual(self.lint(path, GOOD_HEADER), [])
        self.assertEqual(
            self.lint("api/include/alpheus/a.h", GOOD_HEADER.replace(
                GUARD, "ALPHEUS_API_INCLUDE_ALPHEUS_A_H_")), [])
        for rule, old, new in (
                ("guard", GUARD, "ALPHEUS_LOG_A_H_"),
                ("guard", GUARD, "ALPHEUS_LOG_CORE_A_H"),
                ("guard", f"#ifndef {GUARD}\n#define {GUARD}", "#pragma once"),
                ("guard", f"#endif  // {GUARD}", "#endif"),
                ("guard", f"#define {GUARD}", "#define OTHER"),
                ("header-comment", "// a: what", "// what"),
                ("header-comment", "// a: what it is.", "// a:"),
                ("header-comment", "// a: what", "// b: what"),
                ("spdx", SPDX, "// Apache\n")):
            with self.subTest(rule=rule, old=old, new=new):
                self.assertEqual(
                    self.lint(path, GOOD_HEADER.replace(old, new)), [rule])

    def lint_guide(self, guide, test):
        others = [] if test is None else [(GUIDE_TEST, SPDX + test)]
        return self.lint(GUIDE, guide, others)

    def test_examples_of_the_guide_stand_in_its_test(self):
        test = "int F() {\n  int a = 1;\n  return a;\n}\n"
        for block in ("int F() {\n  int a = 1;\n  return a;\n}\n",
                      "int a = 1;\nreturn a;\n", "    return a;\n}\n"):
            with self.subTest(block=block):
                guide = f"Text `a`.\n\n```cpp\n{block}```\n\nText.\n"
                self.assertEqual(self.lint_guide(guide, test), [])
                self.assertEqual(self.lint_guide(guide + guide, test), [])
                self.assertEqual(self.lint_guide(guide, None), ["guide"])
        self.assertEqual(self.lint_guide("No example.\n", None), [])

    def test_examples_of_the_guide_that_nobody_tries_are_found(self):
        test = "int F() {\n  int a = 1;\n\n  return a;\n}\n"
        for block in ("int a = 2;\n",  # other code
                      "int a = 1;\nreturn a;\n",  # an empty line is left out
                      "return a;\n\n}\n",  # one is added
                      "= 1;\n",  # a part of a line
                      "int  a = 1;\n",
                      "return a;\nint a = 1;\n",
                      "", "\n\n"):
            with self.subTest(block=block):
                self.assertEqual(
                    self.lint_guide(f"```cpp\n{block}```\n", test), ["guide"])
        # Neither another language nor a lost end gets past it.
        for fence, end in (("```", "```"), ("```c++", "```"), ("```cpp", "")):
            with self.subTest(fence=fence, end=end):
                self.assertEqual(self.lint_guide(
                    f"{fence}\nint a = 1;\n{end}\n", test), ["guide"])
        # The second of two examples is looked at too, and its line is named.
        with tempfile.TemporaryDirectory() as root:
            for name, text in ((GUIDE, "```cpp\nint a = 1;\n```\n"
                                "```cpp\nint b;\n```\n"),
                               (GUIDE_TEST, SPDX + test)):
                os.makedirs(os.path.dirname(os.path.join(root, name)))
                with open(os.path.join(root, name), "w",
                          encoding="utf-8") as out:
                    out.write(text)
            self.assertEqual(lint.lint(root), [
                f"{GUIDE}:4: guide: this example does not stand in "
                f"{GUIDE_TEST}"])

    def test_word_of_the_glossary_has_one_row(self):
        once = "# Glossary\n| word | meaning |\n| **a, b** | one; not **c** |\n"
        self.assertEqual(self.lint(lint.GLOSSARY, once), [])
        self.assertEqual(self.lint(lint.GLOSSARY, once + "| **c** | x |\n"), [])
        for again in ("| **a** | x |\n", "| **c, b** | x |\n",
                      "| **c**, **b** | x |\n"):
            with self.subTest(again=again):
                self.assertEqual(self.lint(lint.GLOSSARY, once + again),
                                 ["glossary"])

    def cite(self, files):
        """Findings of the rule about labels in a tree of these files."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as out:
                    out.write(text)
            return lint.lint_citations(root)

    def test_labels_that_are_defined_may_be_cited(self):
        header = ("//   RL1. One.\n//        Two.\n//   RL2. By RL1.\n"
                  "int RL7;  // P-H7, RL2b\n")
        protocol = ("## 3. P-B1. Clients\n### P-A3. Data\n**P-A3.1.** Text.\n"
                    "* **P-H7.** *Text* (P-INV-R1).\n**P-INV-22.** (P-A3)\n"
                    "**P-INV-R1.** By P-A3.1.\n")
        self.assertEqual(self.cite({
            "log/core/ring/ring_log.h": header, "docs/protocol.md": protocol,
            "log/core/a.cc": 'T1 x; /* RL1 */ Check(a, "RL2 (ring_log.h)");\n'
                             'Violate("P-INV-22"); int n = 0xA1 + U64;\n'
                             "// C11 of a Xeon E5, -O2, LSN 7, X = 1\n",
            "log/core/CMakeLists.txt": "# RL1, CLI11\n",
            "tests/seeds.inc": "A1(P-H7)  // P-B1\n",
            "tests/lint_test.py": "# Q7\n", "docs/results/a.md": "T1\n",
            "docs/a.md": "Here P stops:\n\n    P1 gets OK. T2 forces.\n",
            "docs/a.txt": "P-A3.1, [RL1](../log/core/ring_log.h)\n"}), [])

    def test_labels_that_are_defined_nowhere_are_found(self):
        header = "//   RL1. One.\n"
        for path, text, name in (
                ("log/core/a.cc", "// RL1\n// RL2\n", "RL2"),
                ("log/core/a.cc", '\nCheck(a, "L4 (ring_log.h)");', "L4"),
                ("log/core/a.cc", "\nF();  // (H20)\n", "H20"),
                ("log/core/a.h", "\n// RL9. As RL1.\n", "RL9"),
                ("log/core/a.h", "\n//     RL9. As RL1.\n", "RL9"),
                ("log/base/a.inc", '\nM(kA, "P-H7", "b")\n', "P-H7"),
                ("docs/a.md", "\nSee P-A3.1 and RL1.\n", "P-A3.1"),
                ("docs/a.md", "\nBold **P-H7.** is no definition.\n", "P-H7"),
                ("docs/a.md", "\n| INV-22 | x |\n", "INV-22"),
                ("docs/a.md", "\nHere P1 stops.\n", "P1"),
                ("docs/a.md", "\n    By P-H7.\n", "P-H7"),
                ("tools/a.txt", "\nkA P-INV-3,RL1\n", "P-INV-3"),
                ("tests/a.py", "\n# RL10\n", "RL10")):
            with self.subTest(path=path, text=text):
                self.assertEqual(
                    self.cite({"log/core/ring/ring_log.h": header, path: text}),
                    [f"{path}:2: cite: {name} is defined nowhere"])

    def test_labels_are_defined_once_and_by_one_file(self):
        ring_log = "//   RL1. One.\n"
        self.assertEqual(
            self.cite({"log/core/ring/ring_log.h": ring_log + ring_log}),
            ["log/core/ring/ring_log.h:2: cite: RL1 is defined already, at "
             "log/core/ring/ring_log.h:1"])
        self.assertEqual(
            self.cite({"log/core/ring/ring_log.h": ring_log,
                       "log/core/space/reclaimer.h": "//   RL2. Two.\n"}),
            ["log/core/space/reclaimer.h:1: cite: labels with RL are those of "
             "log/core/ring/ring_log.h"])
        self.assertEqual(
            self.cite({"docs/a.md": "### P-A4. Title\n**P-A4.** Text.\n"}),
            ["docs/a.md:2: cite: P-A4 is defined already, at docs/a.md:1"])

    def of_documents(self, rule, files):
        """Findings of one of the rules about documents in a tree of these."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as out:
                    out.write(text)
            return rule(root)

    def test_cells_of_tables_are_short(self):
        row = "| a | " + "b" * lint.CELL_MAX + " | `c \\| d` |\n"
        longer = row.replace("b |", "bb |")
        self.assertEqual(self.of_documents(lint.lint_cells, {
            "README.md": row, "docs/use/a.md": row + "b" * 200 + "\n",
            "docs/a.md": f"```\n{longer}```\n    {longer}"}), [])
        for path in ("README.md", "docs/a.md", "docs/results/a.md"):
            with self.subTest(path=path):
                self.assertEqual(
                    self.of_documents(lint.lint_cells, {path: row + longer}),
                    [f"{path}:2: cell: 121 characters in one cell, at most "
                     "120: write a list or a section"])

    DOCUMENT = "# Title\n## Two `words`, and *more*\n## Again\n## Again\n"

    def test_links_and_names_that_lead_somewhere_are_good(self):
        self.assertEqual(self.of_documents(lint.lint_documents, {
            "docs/use/a.md": self.DOCUMENT +
            "[a](#again) [b](#two-words-and-more) [c](#again-1)\n"
            "[d](../b.md#b) [e](../../log/core/a.cc) [f](https://x.y/z.md)\n"
            "```cpp\n[f = g](int) {}\n```\n    [h](gone.md)\n",
            "docs/b.md": "# B\n", "README.md": "[a](docs/use/a.md#title)\n",
            "log/core/a.cc": "// docs/b.md, docs/use/a.md#again, gone.md\n"
            '// docs/use/a.md, "Two `words`, and\n//   *more*".\n'
            'Tell("docs/b.md, \\"B\\"");\n',
            "tools/dev": "# docs/b.md\n",
            "tests/lint_test.py": "# docs/gone.md\n"}), [])

    def test_links_and_names_that_lead_nowhere_are_found(self):
        for path, text, found in (
                ("docs/use/b.md", "\n[a](a.md#aagain)\n",
                 "docs/use/a.md has no #aagain"),
                ("docs/use/b.md", "\n[a](a.md) [b](b/a.md)\n",
                 "there is no docs/use/b/a.md"),
                ("docs/b.md", "\n[b](#c)\n", "docs/b.md has no #c"),
                ("README.md", "\n[a](log/gone.h)\n",
                 "there is no log/gone.h"),
                ("log/core/a.h", "\n// See docs/a.md.\n",
                 "there is no docs/a.md"),
                ("tools/dev", "\n# docs/use/a.md#gone\n",
                 "docs/use/a.md has no #gone"),
                ("tests/CMakeLists.txt", '\n"${DIR}/docs/gone.md"\n',
                 "there is no docs/gone.md"),
                ("api/a.cc", '\nTell("docs/use/a.md, \\"Gone\\"");\n',
                 "docs/use/a.md has no #gone"),
                ("api/a.h", '\n// docs/use/a.md, "Once\n// again".\n',
                 "docs/use/a.md has no #once-again")):
            with self.subTest(path=path, text=text):
                self.assertEqual(
                    self.of_documents(lint.lint_documents, {
                        "docs/use/a.md": self.DOCUMENT, path: text}),
                    [f"{path}:2: doc: {found}"])

    def test_every_rule_has_good_and_bad_cases(self):
        elsewhere = {"guard", "header-comment", "spdx", "guide", "glossary",
                     "cite", "cell", "doc", "one-thread"}
        self.assertEqual({case[0] for case in BAD} | elsewhere, lint.RULES)
        self.assertEqual({case[0] for case in GOOD} | elsewhere, lint.RULES)

    def test_every_door_is_tried(self):
        for name, pattern, _ in lint.DOORS:
            for cases in (BAD, GOOD):
                codes = [case[2] for case in cases if case[0] == "door"]
                self.assertTrue(
                    any(re.match(pattern, included) for code in codes
                        for included in re.findall(r'[<"]([^>"]+)[>"]', code)),
                    name)

    def test_repository_is_clean(self):
        self.assertGreater(len(lint.sources(ROOT)), 50)
        # Its rules find nothing where there is no guide.
        for guide in lint.GUIDES:
            self.assertTrue(os.path.exists(os.path.join(ROOT, guide)))
        self.assertEqual(lint.lint(ROOT), [])


if __name__ == "__main__":
    unittest.main()
