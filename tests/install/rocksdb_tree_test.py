#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rocksdb_tree_test: the installed folder is a plugin of RocksDB's own tree.

Usage: rocksdb_tree_test.py BUILD_FOLDER [unittest arguments]. A small project
stands in for RocksDB: it takes from plugin/alpheus what RocksDB's build files
take, with the standard and the warnings of those, and links Debian's librocksdb.
"""

import os
import sys
import tempfile
import unittest

from install_test import CXX, run

BUILD = ""  # the folder that is installed; set from the command line

WARNINGS = ("-Wall -Wextra -Wsign-compare -Wshadow -Woverloaded-virtual "
            "-Wnon-virtual-dtor -Wno-unused-parameter -Wno-unused-variable "
            "-Wno-missing-field-initializers -Werror")

# RocksDB knows the function by its name in alpheus.mk only, and compiles
# itself, but not the plugin, as C++17 and without RTTI.
LISTS = """
cmake_minimum_required(VERSION 3.10)
project(stand_in LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_FLAGS "-O0 -fno-rtti %s")
find_package(PkgConfig REQUIRED)
pkg_check_modules(ROCKSDB REQUIRED IMPORTED_TARGET rocksdb)

add_subdirectory(plugin/alpheus)
foreach(source IN LISTS alpheus_SOURCES)
  list(APPEND sources plugin/alpheus/${source})
  set_source_files_properties(plugin/alpheus/${source}
    PROPERTIES COMPILE_FLAGS "${alpheus_COMPILE_FLAGS}")
endforeach()

file(READ plugin/alpheus/alpheus.mk make_file)
foreach(name _FUNC SOURCES _LIBS)
  string(REGEX MATCH "${name} = ([^\\n]*)" line "${make_file}")
  set(found${name} "${CMAKE_MATCH_1}")
endforeach()
if(NOT "${foundSOURCES}${found_LIBS}" STREQUAL "")
  message(FATAL_ERROR "taken twice: ${foundSOURCES} ${found_LIBS}")
endif()
file(CONFIGURE OUTPUT builtin.cc CONTENT [[
#include <string>
#include "rocksdb/utilities/object_registry.h"
extern "C" {
int @found_FUNC@(ROCKSDB_NAMESPACE::ObjectLibrary&, const std::string&);
}
int Register(ROCKSDB_NAMESPACE::ObjectLibrary& library) {
  return @found_FUNC@(library, "");
}
]] @ONLY)

add_executable(program main.cc ${sources} ${CMAKE_BINARY_DIR}/builtin.cc)
target_link_libraries(program PRIVATE ${alpheus_LIBS} PkgConfig::ROCKSDB)
""" % WARNINGS

# Puts, and in the second run gets, by a URI that RocksDB resolves.
MAIN = """
#include <cstdio>
#include <memory>
#include <string>

#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/utilities/object_registry.h"

static_assert(__cplusplus < 202002L, "the plugin's standard is all RocksDB's");

int Register(rocksdb::ObjectLibrary& library);

int main(int argc, char** argv) {
  if (argc != 3 || Register(*rocksdb::ObjectLibrary::Default()) != 1) return 1;
  std::shared_ptr<rocksdb::Env> guard;
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::Status status = rocksdb::Env::CreateFromUri(
      rocksdb::ConfigOptions(), "", argv[1], &options.env, &guard);
  rocksdb::DB* db = nullptr;
  if (status.ok()) status = rocksdb::DB::Open(options, argv[2], &db);
  if (!status.ok()) {
    std::printf("%s\\n", status.ToString().c_str());
    return 1;
  }
  std::string value;
  status = db->Get(rocksdb::ReadOptions(), "runs", &value);
  if (status.ok() || status.IsNotFound()) {
    value += "i";
    rocksdb::WriteOptions synced;
    synced.sync = true;
    status = db->Put(synced, "runs", value);
  }
  delete db;
  std::printf("%s %s\\n", value.c_str(), status.ToString().c_str());
  return 0;
}
"""

# The compiler flags that RocksDB's Makefile takes from alpheus.mk, in its
# order: its own flags come after the plugin's. One source of each kind shows
# that they suffice.
MAKEFILE = """
include plugin/alpheus/*.mk
CXXFLAGS += $(alpheus_CXXFLAGS)
CXXFLAGS := $(CXXFLAGS) \\
  $(shell pkg-config --cflags $(alpheus_PKGCONFIG_REQUIRES))
CXXFLAGS += %s -std=c++17
all: $(OBJ_DIR)/plugin/alpheus/$(word 1,$(alpheus_SOURCES:.cc=.o)) \\
  $(OBJ_DIR)/main.o
	@echo function $(alpheus_FUNC)
	@echo sources $(alpheus_SOURCES)
	@echo libraries $(shell pkg-config --libs $(alpheus_PKGCONFIG_REQUIRES))
$(OBJ_DIR)/%%.o: %%.cc
	$(CXX) $(CXXFLAGS) -fsyntax-only $<
""" % WARNINGS


class RocksDbTreeTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.prefix = os.path.join(cls.temporary.name, "prefix")
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        cls.tree = os.path.join(cls.temporary.name, "tree")
        cls.folder = os.path.join(cls.tree, "plugin", "alpheus")
        os.makedirs(os.path.dirname(cls.folder))
        os.symlink(os.path.join(cls.prefix, "share", "alpheus", "rocksdb"),
                   cls.folder)
        for name, text in (("CMakeLists.txt", LISTS), ("main.cc", MAIN),
                           ("Makefile", MAKEFILE)):
            with open(os.path.join(cls.tree, name), "w",
                      encoding="utf-8") as file:
                file.write(text)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def sources(self):
        folder = os.path.join(self.folder, "api", "rocksdb")
        return sorted(
            os.path.relpath(os.path.join(path, name), self.folder)
            for path, _, names in os.walk(folder) for name in names
            if name.endswith(".cc"))

    def test_cmake_makes_it_a_part_of_rocksdb(self):
        build = os.path.join(self.temporary.name, "build")
        run("cmake", "-S", self.tree, "-B", build, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={CXX}")
        # With a compiler launcher (CMAKE_CXX_COMPILER_LAUNCHER) that keeps
        # objects, the next run compiles nothing, in any folder.
        run("cmake", "--build", build,
            env=dict(os.environ, CCACHE_BASEDIR=self.temporary.name,
                     CCACHE_NOHASHDIR="1"))
        with tempfile.TemporaryDirectory() as folder:
            program = (os.path.join(build, "program"),
                       f"alpheus://{folder}/wal?create=1MiB", f"{folder}/db")
            # The first run's put is only in the log.
            self.assertEqual(run(*program), "i OK\n")
            self.assertEqual(run(*program), "ii OK\n")
            self.assertTrue(os.path.exists(f"{folder}/wal"))

    def test_make_is_told_the_same(self):
        packages = [path for path, _, files in os.walk(self.prefix)
                    if "alpheus-cxx.pc" in files]
        for objects in (".", "jl"):
            output = run("make", "--no-print-directory", f"CXX={CXX}",
                         f"OBJ_DIR={objects}", cwd=self.tree,
                         env=dict(os.environ, PKG_CONFIG_PATH=packages[0]))
        lines = output.splitlines()
        self.assertIn("function alpheus_register_rocksdb_plugin", lines)
        (found,) = (line.split()[1:] for line in lines
                    if line.startswith("sources "))
        self.assertEqual(sorted(found), self.sources())
        (libraries,) = (line.split() for line in lines
                        if line.startswith("libraries "))
        self.assertIn("-lalpheus", libraries)
        self.assertIn("-labsl_strings", libraries)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
