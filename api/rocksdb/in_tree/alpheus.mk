# SPDX-License-Identifier: Apache-2.0
# The plugin as a part of RocksDB, for its Makefile. Its CMakeLists.txt looks
# here for the line of the function, and must not find another one of sources or
# libraries: hence no `=` with spaces on both sides there.
alpheus_FUNC = alpheus_register_rocksdb_plugin
alpheus_SOURCES := $(patsubst plugin/alpheus/%,%,$(wildcard plugin/alpheus/api/rocksdb/*/*.cc))
alpheus_CXXFLAGS := -Iplugin/alpheus
alpheus_PKGCONFIG_REQUIRES := alpheus-cxx absl_strings
# Behind the standard of RocksDB itself, which stays what it is.
$(addprefix %,$(alpheus_SOURCES:.cc=.o)): CXXFLAGS += -std=c++20
