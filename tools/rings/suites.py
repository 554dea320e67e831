# SPDX-License-Identifier: Apache-2.0
"""suites: all that is checked, whole, a suite at a time.

Each suite of the deep ring is a list of commands: of tools/dev, or a program
that tools/dev has built before. `inputs` are the files that decide what comes of
it (git's pathspecs), `counts` tells the lines of its output that say how much it
did, `minutes` is about how long it takes on two cores with nothing compiled, and
`times` is how many runs in a row must be green. `tests` is there if ctest runs the
suite: it has one command, which takes ctest's arguments, and is kept by test
program (programs.py).
"""

import collections

# Whatever a program is compiled from.
BUILD = ("CMakeLists.txt", "cmake", "tools/dev")
PRODUCT = ("log", "quorum", "replication", "recovery", "api")
FOLDERS = PRODUCT + ("tools", "tests", "bench")
ALL = BUILD + FOLDERS + (".ci",)
# Documents that decide what comes of a test (the installation's test reads more
# of them, as lint does, which is the gate's).
TESTED = ALL + ("README.md", "docs/use/api_guide.md", "docs/use/metrics.md",
                "docs/use/operating.md")
TIDIED = ALL + (".clang-format", ".clang-tidy")
# The gate lints documents, too. An entry of the ledger changes no outcome.
LINTED = ALL + (".clang-format", ".clang-tidy", "README.md", "docs",
                ":(exclude)docs/results/deep.json")
# What the programs of a suite are built from: rings_test.py compares it with what
# ninja says. A build compiles more, and fails if that is broken.
SIMULATED = BUILD + PRODUCT + ("tools/CMakeLists.txt", "tools/cli", "tools/model",
                               "tools/sim")
# alpheus, alpheusd, alpheus-nemesis.
NODES = BUILD + PRODUCT + ("tools/CMakeLists.txt", "tools/cli", "tools/daemon",
                           "tools/model", "tools/nemesis")
FUZZED = SIMULATED + ("tests/CMakeLists.txt", "tests/support", "tests/fuzz")
KILLED = NODES + ("tools/demo", "tests/CMakeLists.txt", "tests/support",
                  "tests/api/rocksdb")
# alpheus, alpheusd, and clients of the service in three languages.
SERVED = NODES + ("tests/CMakeLists.txt", "tests/api/client/python/cluster.py",
                  "tests/api/client/rounds", "tests/api/grpc/javascript")
GUEST_INPUTS = NODES + ("tests/CMakeLists.txt", "tests/support", "tests/vm",
                        "tests/api/remote", "tests/replication/fabric")

# Suites that run in guests (tests/vm/suites.py), and about how many minutes
# each takes.
GUESTS = {"verbs": 10, "encryption": 10, "fence": 10, "faults": 10, "log": 12,
          "power": 10, "rejoin": 12}

Suite = collections.namedtuple(
    "Suite", "name what commands inputs counts minutes times tests")

# The build folder; which part of how many the suite is; how many tests run at
# once on each core, if no fewer may.
Tests = collections.namedtuple("Tests", "folder part parts load",
                               defaults=(1, 1, 0))


def suite(name, what, commands, inputs, counts, minutes, times=1, tests=None):
    return Suite(name, what, [command.split() for command in commands], inputs,
                 counts, minutes, times, tests)


# Slow tests that know neither clock nor thread nor process: they enumerate, or
# draw from a fixed seed, and come out the same on any machine.
CLOCKLESS = (r"(TinyLog.*|ClusterCutDeep|SimDeep|ChooserHistory|World|MediaFault)"
             r"Test\.|^model_test$")

# Tests that start servers of ZooKeeper. Each server is a virtual machine of Java,
# which takes seconds of a core to start: many at once show only how slow that is.
WITH_SERVERS = r"^(zookeeper_test\.|ZookeeperFailOverTest\.)"

# What no seed of the simulator draws by itself: processes that stand for primary,
# members that change while the log runs, operators that delete it, and clients of
# the service; each alone and beside all that may be there with it.
REQUESTED = tuple(options + others
                  for options in ("--actors elect",
                                  "--faults none --no-breaks --actors drain",
                                  "--workload mixed --actors online",
                                  "--actors deletes",
                                  "--workload service --actors online")
                  for others in ("", ",tail,unauthenticated,scrub,claim"))
REQUESTED_SEEDS = 500

# Repeats all that is drawn; the gate draws other seeds.
SEED = 20261127

SUITES = (
    suite("tidy", "clang-tidy of each source, which compiles by itself",
          ["tools/dev check --all"], TIDIED,
          r"clang-tidy: |check: ", 35),
    suite("tests", "all tests, without sanitizers, and all seeds",
          ["env ALPHEUS_ALL_SEEDS=1 tools/dev test"], TESTED, r"tests passed",
          25, tests=Tests("build")),
    suite("debug", "all fast tests, compiled by clang, not optimised, with "
          "assert()", ["tools/dev test --debug"], TESTED, r"tests passed", 40,
          tests=Tests("build-debug")),
    suite("address", "all tests but the slow ones, with the sanitizers of "
          "addresses and undefined behaviour, and all seeds",
          ["env ALPHEUS_ALL_SEEDS=1 tools/dev test --sanitize "
           "address,undefined"], TESTED, r"tests passed", 40,
          tests=Tests("build-asan")),
    suite("threads", "tests with several threads, with the sanitizer of threads",
          ["tools/dev test --sanitize thread"], TESTED, r"tests passed", 20,
          tests=Tests("build-tsan")),
    *(suite(f"load-{part}", "each fast test 30 times, four at once on each "
            f"core: part {part} of 4",
            [f"tools/dev test --under-load 30 -LE ^slow$ -E {WITH_SERVERS}"],
            TESTED,
            r"tests passed", 60, tests=Tests("build", part, 4, load=4))
      for part in range(1, 5)),
    suite("load-slow", "the same of the slow tests that depend on time",
          [f"tools/dev test --under-load 30 -L ^slow$ -E "
           f"{CLOCKLESS}|{WITH_SERVERS}"], TESTED,
          r"tests passed", 120, tests=Tests("build", load=4)),
    suite("load-servers", "tests that start servers of ZooKeeper, 5 times, two "
          "at once",
          [f"tools/dev test --under-load 5 -j 2 -R {WITH_SERVERS}"], TESTED,
          r"tests passed", 60, tests=Tests("build", load=1)),
    suite("fuzz", "all fuzzers, for 20 minutes",
          ["tools/dev fuzz --minutes 20"],
          FUZZED, r"^fuzz: \d+ executions", 35),
    suite("mutants", "each mutant by the test of its hole",
          ["tools/dev mutants --tests"], ALL, r"^mutants: ", 15),
    suite("mutants-by-seeds", "mutants and canaries by seeds of the simulator",
          ["tools/dev mutants --seeds"],
          SIMULATED + ("tools/mutants", "tests/mutants"),
          r"^mutants in the simulator: ", 15),
    suite("model", "all configurations and weakenings of the models",
          ["tools/dev model"], ("tests/model",), r"^model: ", 20),
    suite("simulator", "2,000 seeds of clusters in virtual time",
          ["tools/dev sim --seeds 1-2000"], SIMULATED, r"seeds", 25),
    suite("simulator-requested", f"{REQUESTED_SEEDS} seeds of each kind of cluster "
          "that seeds draw on request only",
          [f"tools/dev sim --seeds 1-{REQUESTED_SEEDS} {options}"
           for options in REQUESTED], SIMULATED, r"seeds", 30),
    suite("kills", "kill rounds of the local log, of RocksDB and its successors",
          ["tools/dev build",
           "build/bin/alpheus-demo --local --rounds 1000 --quiet",
           f"build/bin/rocksdb_kill_rounds 200 {SEED}",
           f"build/bin/rocksdb_failover_rounds 50 {SEED}",
           f"build/bin/rocksdb_stress 200 {SEED}"],
          KILLED, r"rounds|lost", 20),
    suite("nemesis", "clusters of 3 and 5 real nodes, 5 minutes each",
          [f"tools/dev nemesis --nodes 3 --minutes 5 --seed {SEED}",
           f"tools/dev nemesis --nodes 5 --minutes 5 --seed {SEED}"],
          NODES, r"^ *all ", 18),
    suite("elections-two", "1,000 rounds of two candidates at once",
          ["tools/dev nemesis --elections two-at-once --rounds 1000 --seed "
           f"{SEED}"], NODES, r"rounds of elections", 60),
    suite("elections-mixed", "500 rounds of elections after mixed faults, with "
          "an ensemble of ZooKeeper",
          ["tools/dev nemesis --elections mixed --zookeeper 3 --rounds 500 "
           f"--seed {SEED}"], NODES, r"rounds of elections", 60),
    suite("elections-stopped", "ZooKeeper stopped for 10 minutes under load, with "
          "an automatic fail-over in it",
          ["tools/dev nemesis --elections stopped --zookeeper 3 --minutes 10 "
           f"--seed {SEED}"], NODES, r"rounds of elections", 15),
    suite("service-failover", "500 rounds of fail-over with clients in C++, "
          "Python and JavaScript",
          [f"tools/dev nemesis --clients --rounds 500 --seed {SEED}"], SERVED,
          r"rounds of fail-over|durable records were|^skipped", 50),
    *(suite(f"guest-{name}", f"guests with adapters: vm-test {name}",
            [f"tools/dev vm-test --seed {SEED} {name}"], GUEST_INPUTS,
            r"^vm-test: (ok|FAILED)", minutes)
      for name, minutes in GUESTS.items()),
    suite("guest-native", "native FLUSH and atomic WRITE, with the kernel of the "
          "next Debian: vm-test native", ["tools/dev vm-test native"],
          GUEST_INPUTS, r"^vm-test: (ok|FAILED)", 30),
    suite("gate", "the gate in a fresh clone, with nothing compiled",
          ["tools/dev gate --fresh"], LINTED, r"^gate: ", 45, times=3),
    suite("gate-cached", "the same with the caches of the commit before, three "
          "times", ["tools/dev gate --fresh --after HEAD~1"], LINTED, r"^gate: ",
          90),
    suite("gate-busy", "the gate with nothing compiled, beside two busy loops",
          ["tools/dev gate --fresh --busy 2"], LINTED, r"^gate: ", 60,
          times=3),
)
