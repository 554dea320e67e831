#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""install_test: what a new user of an installed Alpheus does, and finds.

Usage: install_test.py BUILD_FOLDER [unittest arguments]. Installs the build
into a temporary prefix; CC and CXX name the compilers of the user.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CC = os.environ.get("CC", "cc")
CXX = os.environ.get("CXX", "c++")
BUILD = ""  # the folder that is installed; set from the command line

PUBLIC_HEADERS = {
    "alpheus/" + name + ".h" for name in (
        "alpheus", "atomicity", "candidate", "cluster_reader", "cluster_tail",
        "durability_plan", "integrity", "log", "log_epoch", "log_reader",
        "log_tail", "options", "persistent_region", "recovered_range",
        "recovery_report", "remote_memory", "replication_status",
        "reservation", "tail_record",
        "log/base/deadline", "log/base/ids",
        "log/core/durability/flush_order", "log/core/durability/persisted_by",
        "log/core/write/appended_record", "log/core/write/reserved_record")}

C_ONLY = """
cmake_minimum_required(VERSION 3.25)
project(c_only LANGUAGES C)
find_package(Alpheus REQUIRED COMPONENTS C)
add_executable(program main.c)
target_link_libraries(program PRIVATE Alpheus::alpheus_c)
"""
STATIC = """
cmake_minimum_required(VERSION 3.25)
project(static LANGUAGES C CXX)
find_package(Alpheus REQUIRED COMPONENTS Static)
add_executable(program main.cc)
target_link_libraries(program PRIVATE Alpheus::alpheus_static)
"""
FIND_ONLY = """
cmake_minimum_required(VERSION 3.25)
project(find_only LANGUAGES C)
find_package(Alpheus {})
message(STATUS "found: ${{Alpheus_FOUND}}")
"""
SUBDIRECTORY = """
cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES C CXX)
add_subdirectory({} alpheus)
add_executable(embedded main.cc)
target_link_libraries(embedded PRIVATE Alpheus::alpheus)
"""


def run(*command, **options):
    """Runs a command; returns what it wrote, raises if it failed."""
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}\nexited with "
                             f"{done.returncode}:\n{done.stdout}")
    return done.stdout


def files_below(folder):
    return {os.path.relpath(os.path.join(path, name), folder)
            for path, _, names in os.walk(folder) for name in names}


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def rocksdb_plugin():
    """The library, and the folder for RocksDB's own tree."""
    # The files left out are for a library that RocksDB does not know.
    folder = os.path.join(ROOT, "api", "rocksdb")
    sources = {f"api/rocksdb/{name}" for name in files_below(folder)
               if name.endswith((".h", ".cc")) and
               os.path.basename(name).split(".")[0] not in (
                   "preloaded", "interposed")}
    headers = {f"log/base/{name}.h" for name in (
        "check", "deadline", "ids", "mutex", "status_macros")}
    return {"libalpheus_rocksdb.so"} | {
        "share/alpheus/rocksdb/" + file for file in
        sources | headers | {"CMakeLists.txt", "alpheus.mk"}}


PROJECT_VERSION = re.search(r"(?<=project\(alpheus VERSION )(\d+)\.(\d+)\.\d+",
                            read(ROOT, "CMakeLists.txt"))


def public_functions(header):
    """The functions that each class of a header lets its users call."""
    text = re.sub(r"//[^\n]*", "", header)
    found = {}
    for match in re.finditer(r"\b(class|struct) (\w+)[^;{(]*\{", text):
        depth, end = 1, match.end()
        while depth > 0:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        is_public = match[1] == "struct"
        names = found.setdefault(match[2], set())
        for part in re.split(r"\b(public|protected|private):",
                             text[match.end():end]):
            if part in ("public", "protected", "private"):
                is_public = part == "public"
            elif is_public:
                names.update(re.findall(r"(~?\b\w+)\(", part))
    return found


class InstallTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.prefix = os.path.join(cls.temporary.name, "prefix")
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        (config,) = (file for file in files_below(cls.prefix)
                     if file.endswith("AlpheusConfig.cmake"))
        cls.libdir = os.path.dirname(os.path.dirname(os.path.dirname(config)))

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=self.temporary.name)
        self.example = os.path.join(self.folder, "embedded")
        shutil.copytree(os.path.join(ROOT, "api", "examples", "embedded"),
                        self.example)

    def pkg_config(self, *arguments, others_are_hidden=False):
        own = os.path.join(self.prefix, self.libdir, "pkgconfig")
        name = "PKG_CONFIG_LIBDIR" if others_are_hidden else "PKG_CONFIG_PATH"
        environment = dict(os.environ, **{name: own})
        return run("pkg-config", *arguments, env=environment).split()

    def run_program(self, *command):
        """Runs a program that finds the library where it was installed."""
        library = os.path.join(self.prefix, self.libdir)
        environment = dict(os.environ, LD_LIBRARY_PATH=library)
        return run(*command, env=environment, cwd=self.folder)

    def configure(self, lists=None, *options):
        """Configures the example, with another CMakeLists.txt if given."""
        if lists is not None:
            path = os.path.join(self.example, "CMakeLists.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(lists)
        build = os.path.join(self.folder, "build")
        output = run("cmake", "-S", self.example, "-B", build, "-G", "Ninja",
                     f"-DCMAKE_PREFIX_PATH={self.prefix}",
                     f"-DCMAKE_C_COMPILER={CC}", f"-DCMAKE_CXX_COMPILER={CXX}",
                     *options)
        return build, output

    def build(self, lists=None, *options):
        build, _ = self.configure(lists, *options)
        run("cmake", "--build", build)
        return build

    # The files that are built for it.

    def test_one_target_builds_all_that_is_installed_and_nothing_else(self):
        if not os.path.exists(os.path.join(BUILD, "build.ninja")):
            print("\nskipped: only ninja says what a target is built from")
            self.skipTest("no ninja")
        words = run("ninja", "-C", BUILD, "-t", "commands",
                    "alpheus_installed").split()
        names = {os.path.basename(word) for word in words}
        for path in files_below(self.prefix):
            name = os.path.basename(path)
            if path.startswith("bin/") or name.endswith((".so", ".a")):
                self.assertIn(name, names)
        self.assertEqual([word for word in words
                          if word.startswith(("tests/", "bench/"))], [])

    # The files that are installed.

    def test_nothing_is_missing_and_nothing_is_too_much(self):
        installed = {os.path.relpath(file, self.libdir)
                     if file.startswith(self.libdir + os.sep) else file
                     for file in files_below(self.prefix)}
        docs = {file for file in installed
                if file.startswith("share/doc/alpheus/")}
        build_type = {name for name in installed
                      if re.fullmatch(r"cmake/Alpheus/Alpheus(C|Static)Targets-"
                                      r"\w+\.cmake", name)}
        self.assertEqual(len(build_type), 2)
        # Built where RocksDB is.
        plugin = rocksdb_plugin() if os.path.exists(
            os.path.join(BUILD, "api", "rocksdb")) else set()
        self.assertEqual(
            installed - docs - build_type,
            {f"include/{header}" for header in PUBLIC_HEADERS} |
            {"bin/alpheus", "bin/alpheus-sim", "bin/alpheusd",
             "libalpheus.a", "libalpheus.so",
             f"libalpheus.so.{PROJECT_VERSION.group(0)}",
             "libalpheus.so.{}.{}".format(*PROJECT_VERSION.groups()),
             "pkgconfig/alpheus.pc", "pkgconfig/alpheus-cxx.pc"} |
            {f"cmake/Alpheus/Alpheus{name}.cmake" for name in
             ("Config", "ConfigVersion", "CTargets", "CxxTargets",
              "StaticTargets")} | plugin)
        for name in ("LICENSE", "README.md", "docs/formats/log.md",
                     "examples/embedded/main.c",
                     "tools/samples/alpheusd.service"):
            self.assertIn("share/doc/alpheus/" + name, docs)

    def test_links_of_the_documents_lead_to_what_is_installed(self):
        docs = os.path.join(self.prefix, "share", "doc", "alpheus")
        names = ["README.md"] + [
            os.path.join("docs", file)
            for file in sorted(files_below(os.path.join(ROOT, "docs")))
            if file.endswith(".md")]
        link = re.compile(r"\[([^]]*)\]\(([\w./:-]*)(#[^)]*)?\)")
        rewritten = 0
        for name in names:
            text, source = read(docs, name), read(ROOT, name)
            folder = os.path.dirname(os.path.join(docs, name))
            for _, target, _ in link.findall(text):
                if target and "://" not in target:
                    self.assertTrue(os.path.exists(
                        os.path.join(folder, target)), f"{name}: {target}")
            # Nothing else was changed.
            plain = [link.split(part)[0::4] for part in (text, source)]
            if plain[0] == plain[1]:
                continue
            rewritten += 1
            self.assertEqual(*(re.sub(r"`[^`]*`|\W", "", "".join(
                link.sub(r"\1", part))) for part in (text, source)), name)
        self.assertGreater(rewritten, 10)

    def test_no_installed_text_names_the_source_or_the_build(self):
        for file in files_below(self.prefix):
            if file.endswith((".h", ".cmake", ".pc", ".md", "LICENSE")):
                text = read(self.prefix, file)
                self.assertNotIn(ROOT, text, file)
                self.assertNotIn(BUILD, text, file)

    def test_headers_are_those_of_the_source_but_for_the_moved_includes(self):
        for header in PUBLIC_HEADERS:
            source = header.replace("alpheus/", "", 1)
            if not source.startswith("log/"):
                source = "api/include/" + header
            expected = read(ROOT, source).replace(
                '#include "log/', '#include "alpheus/log/')
            self.assertEqual(read(self.prefix, "include", header), expected)

    def test_packagers_prefix_and_destdir_are_kept(self):
        stage = os.path.join(self.folder, "stage")
        run("cmake", "--install", BUILD, "--prefix", "/usr", "--strip",
            env=dict(os.environ, DESTDIR=stage))
        self.assertEqual(files_below(os.path.join(stage, "usr")),
                         files_below(self.prefix))
        self.assertEqual(os.listdir(stage), ["usr"])

    def test_library_exports_the_declared_functions_and_no_more(self):
        header = re.sub(r"//[^\n]*", "", read(
            self.prefix, "include", "alpheus", "alpheus.h"))
        declared = set(re.findall(r"\b(alpheus_\w+)\(", header))
        self.assertGreater(len(declared), 40)
        symbols = [line.split(" ", 2)[2] for line in run(
            "nm", "-DC", "--defined-only", os.path.join(
                self.prefix, self.libdir, "libalpheus.so")).splitlines()]
        c_symbols = {s for s in symbols if s.startswith("alpheus_")}
        self.assertEqual(c_symbols, declared)
        others = [s for s in symbols if s not in c_symbols
                  and not s.startswith("alpheus::")]
        self.assertEqual(others, [])

    def test_library_exports_what_public_classes_declare(self):
        public = {}
        folder = os.path.join(self.prefix, "include", "alpheus")
        for header in (h for h in os.listdir(folder) if h.endswith(".h")):
            public.update(public_functions(read(folder, header)))
        self.assertIn("Append", public["Log"])
        shared, static = (self.methods_of(name)
                          for name in ("libalpheus.so", "libalpheus.a"))
        # A copy that is deleted looks like a constructor that may be private.
        declared = {(name, function) for name, function in static
                    if function in public.get(name, ()) and function != name}
        self.assertGreater(len(declared), 60)
        self.assertEqual(declared - shared, set())

    def methods_of(self, library):
        options = ["-D"] if library.endswith(".so") else []
        symbols = run("nm", *options, "-C", "--defined-only",
                      os.path.join(self.prefix, self.libdir, library))
        return set(re.findall(r" T alpheus::(\w+)::(~?\w+)\(", symbols))

    def test_c_test_calls_every_declared_function(self):
        header = re.sub(r"//[^\n]*", "", read(
            ROOT, "api", "include", "alpheus", "alpheus.h"))
        tests = os.path.join(ROOT, "tests", "api", "c")
        called = {name for file in os.listdir(tests) if file.endswith(".c")
                  for name in re.findall(r"\b(alpheus_\w+)", read(tests, file))}
        self.assertEqual(set(re.findall(r"\b(alpheus_\w+)\(", header)) - called,
                         set())

    # Headers.

    def test_every_header_compiles_alone(self):
        flags = self.pkg_config("--cflags", "alpheus-cxx")
        for header in sorted(PUBLIC_HEADERS):
            with self.subTest(header=header):
                run(CXX, "-std=c++20", "-Wall", "-Wextra", "-Werror",
                    "-fsyntax-only", "-include", header, "-x", "c++",
                    "/dev/null", *flags)

    def test_c_header_is_c11_and_old_cxx_and_needs_no_other_package(self):
        flags = self.pkg_config("--cflags", "alpheus", others_are_hidden=True)
        strict = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only",
                  "-include", "alpheus/alpheus.h")
        run(CC, "-std=c11", *strict, "-x", "c", "/dev/null", *flags)
        run(CXX, "-std=c++11", *strict, "-x", "c++", "/dev/null", *flags)

    # Convention 1, and the cursor: an error can't be overlooked.
    def test_ignored_result_is_a_warning(self):
        flags = self.pkg_config("--cflags", "alpheus")
        for result, good in (("return (int)", True), ("", False)):
            source = os.path.join(self.folder, "ignores.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write('#include "alpheus/alpheus.h"\n'
                           "int f(alpheus_cursor* c);\n"
                           f"int f(alpheus_cursor* c) {{ {result} "
                           "alpheus_cursor_finish(c, NULL); return 0; }\n")
            command = (CC, "-std=c11", "-Werror", "-c", source, "-o",
                       "/dev/null", *flags)
            if good:
                run(*command)
            else:
                with self.assertRaisesRegex(AssertionError, "unused-result"):
                    run(*command)

    # Programs.

    def test_example_builds_by_cmake_and_runs(self):
        build = self.build()
        cxx, c = (os.path.join(build, name)
                  for name in ("embedded", "embedded_c"))
        # Both languages work on one log.
        self.assertEqual(self.run_program(cxx), "run 1 is LSN 1\n")
        self.assertEqual(self.run_program(c), "run 2 is LSN 2\n")
        self.assertEqual(self.run_program(cxx), "run 3 is LSN 3\n")

    def test_c_example_builds_by_pkg_config_without_abseil(self):
        flags = self.pkg_config("--cflags", "--libs", "alpheus",
                                others_are_hidden=True)
        self.assertNotIn("absl", " ".join(flags))
        program = os.path.join(self.folder, "program")
        run(CC, "-std=c11", os.path.join(self.example, "main.c"), "-o", program,
            *flags)
        self.assertEqual(self.run_program(program), "run 1 is LSN 1\n")

    def test_cxx_example_builds_by_pkg_config(self):
        program = os.path.join(self.folder, "program")
        run(CXX, "-std=c++20", os.path.join(self.example, "main.cc"), "-o",
            program, *self.pkg_config("--cflags", "--libs", "alpheus-cxx"))
        self.assertEqual(self.run_program(program), "run 1 is LSN 1\n")

    def test_every_public_cxx_function_is_exported(self):
        program = os.path.join(self.folder, "program")
        run(CXX, "-std=c++20", "-Wall", "-Wextra", "-Werror",
            os.path.join(ROOT, "tests", "install", "public_api.cc"), "-o",
            program, *self.pkg_config("--cflags", "--libs", "alpheus-cxx"))
        self.run_program(program)

    def test_c_component_needs_no_abseil(self):
        build = self.build(C_ONLY, "-DCMAKE_DISABLE_FIND_PACKAGE_absl=TRUE")
        self.assertEqual(self.run_program(os.path.join(build, "program")),
                         "run 1 is LSN 1\n")

    def test_static_component_needs_no_shared_library(self):
        build = self.build(STATIC)
        # run_program would find the shared library.
        self.assertEqual(run(os.path.join(build, "program"), cwd=self.folder),
                         "run 1 is LSN 1\n")

    def test_find_package_knows_versions_and_components(self):
        full, major, minor = PROJECT_VERSION.group(0, 1, 2)
        for wanted, found in ((f"{major}.{minor}", 1), (f"{full} EXACT", 1),
                              (f"{major}.{int(minor) + 1}", 0),
                              (f"{int(major) + 1}", 0),
                              ("COMPONENTS C", 1), ("COMPONENTS C Cxx", 1),
                              ("COMPONENTS Fortran", 0)):
            with self.subTest(wanted=wanted):
                _, output = self.configure(FIND_ONLY.format(wanted))
                self.assertIn(f"found: {found}\n", output)
        self.assertIn("no component is called Fortran", output)
        _, output = self.configure(FIND_ONLY.format(""),
                                   "-DCMAKE_DISABLE_FIND_PACKAGE_absl=TRUE")
        self.assertIn("found: 0\n", output)
        self.assertIn("absl", output)

    def test_source_is_a_subdirectory_of_another_project(self):
        build, _ = self.configure(SUBDIRECTORY.format(ROOT))
        targets = run("cmake", "--build", build, "--target", "help")
        self.assertIn("libalpheus.so", targets)
        self.assertNotIn("api_test", targets)
        self.assertNotIn("alpheus-demo", targets)

    def test_program_runs(self):
        program = os.path.join(self.prefix, "bin", "alpheus")
        run(program, "format", "--file", "wal", "--size", "1MiB",
            cwd=self.folder)
        run(program, "append", "--file", "wal", input="hello\n",
            cwd=self.folder)
        self.assertEqual(run(program, "cat", "--file", "wal", cwd=self.folder),
                         "hello\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
