#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/mutants/weave.py with small sources and tables, and with those of
the product: without a mutant, woven sources say what the sources say."""

import importlib.util
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
SPEC = importlib.util.spec_from_file_location(
    "weave", os.path.join(ROOT, "tools", "mutants", "weave.py"))
weave = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(weave)

SOURCE = """// A source.
int F(int a, int b) {
  const MutexLock lock(mutex_);
  if (a < b && b > 0) return 1;  // TRP1
  G(a);
  const int sum = a + b;
  H(sum, a);
  for (;;) {
    G(b);
  }
}
"""
ENTRY = """mutant: kOne
hole: P-L5
what: something is wrong
test: a_test:*.A
file: log/a.cc
"""


def entry(body, name="kOne"):
    return ENTRY.replace("kOne", name) + body


def is_mutant(name="kOne"):
    return f'::alpheus::IsMutant("{name}")'


def without_mutants(tokens):
    """The tokens, with each guard replaced by what it guards."""
    out, i = [], 0
    while i < len(tokens):
        begin = guard_of(tokens, i)
        if begin is None:
            out.append(tokens[i])
            i += 1
        else:
            kept, i = what_is_kept(tokens, i, begin)
            out += without_mutants(kept)
    return out


def guard_of(tokens, i):
    """The index of IsMutant, if a guard begins at i."""
    for form in (["("], ["{", "if", "("], ["{", "if", "(", "!"]):
        head = form + ["::", "alpheus", "::", "IsMutant"]
        if tokens[i:i + len(head)] == head:
            return i + len(head) - 1
    return None


def closing(tokens, i):
    """The index behind the bracket that closes the one at i."""
    depth = 0
    while True:
        depth += (tokens[i] in "([{") - (tokens[i] in ")]}")
        i += 1
        if depth == 0:
            return i


def what_is_kept(tokens, i, at):
    """Tokens that run without a mutant at guard i, and the index behind it."""
    end = closing(tokens, i)
    behind = closing(tokens, at + 1)
    if tokens[i] == "(":
        first = closing(tokens, behind + 1)  # behind `? (NEW)`
        return tokens[first + 2:end - 2], end  # `: (OLD))`
    first = closing(tokens, behind + 1)  # behind `) {...}`
    if tokens[at - 4] == "!":
        return tokens[behind + 2:first - 1], end
    if tokens[first] == "else":
        return tokens[first + 2:end - 2], end
    return [], end


class WeaveTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, "root")
        self.out = os.path.join(folder.name, "build", "woven")
        self.put("log/a.cc", SOURCE)

    def put(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def woven(self, *entries):
        self.put("tests/mutants/a.mutants", "# Comment.\n\n" + "\n".join(entries))
        weave.write_all(self.root, self.out)
        return weave.read(os.path.join(self.out, "log", "a.cc"))

    def line(self, number, *entries):
        """A line of the woven source, by its number in the source."""
        return self.woven(*entries).split("\n")[number + 1].strip()

    def refused(self, *entries):
        with self.assertRaises(weave.WeaveError) as caught:
            self.woven(*entries)
        return str(caught.exception)

    def test_statement_is_replaced_removed_or_added(self):
        for body, woven in (
                ("- G(a);\n+ H(a, a);\n",
                 f"{{ if ({is_mutant()}) {{ H(a, a); }} else {{ G(a); }} }}"),
                ("- G(a);\n", f"{{ if (!{is_mutant()}) {{ G(a); }} }}"),
                ("- G(a);\n+ H(b, b);\n+ G(a);\n",
                 f"{{ if ({is_mutant()}) {{ H(b, b); }} }} G(a);"),
                ("- G(a);\n- const int\n+ G(a);\n+ return 0;\n+ const int\n",
                 "G(a);")):
            with self.subTest(body=body):
                self.assertEqual(self.line(5, entry(body)), woven)

    def test_statement_is_whole(self):
        self.assertEqual(
            self.line(4, entry("- return 1;\n+ return 2;\n")),
            f"if (a < b && b > 0) {{ if ({is_mutant()}) {{ return 2; }} else "
            "{ return 1; } }  // TRP1")
        self.assertEqual(
            self.line(4, entry("- if (a < b && b > 0) return 1;\n")),
            f"{{ if (!{is_mutant()}) {{ if (a < b && b > 0) return 1; }} }}  "
            "// TRP1")
        self.assertIn("neither", self.refused(entry("- for (;;) {\n")))

    def test_body_without_braces_takes_no_other_statement(self):
        self.assertIn("neither", self.refused(
            entry("- return 1\n+ G(a); return 1\n")))

    def test_expression_is_whole(self):
        for number, body, woven in (
                (4, "- if (a < b && b > 0)\n+ if (a < b)\n",
                 f"if (({is_mutant()} ? (a < b) : (a < b && b > 0))) return 1;"
                 "  // TRP1"),
                (7, "- H(sum, a)\n+ H(sum, b)\n",
                 f"H(sum, ({is_mutant()} ? (b) : (a)));"),
                (6, "- const int sum = a + b;\n+ const int sum = a;\n",
                 f"const int sum = ({is_mutant()} ? (a) : (a + b));"),
                (3, "- const MutexLock lock(mutex_);\n"
                    "+ const MutexLock lock(other_);\n",
                 f"const MutexLock lock(({is_mutant()} ? (other_) : "
                 "(mutex_)));")):
            with self.subTest(body=body):
                self.assertEqual(self.line(number, entry(body)), woven)

    def test_declaration_is_no_statement(self):
        for body in ("- const MutexLock lock(mutex_);\n",
                     "- const int sum = a + b;\n+ G(a);\n"):
            self.assertIn("neither", self.refused(entry(body)))
        for text, expected in (
                ("Foo foo;", True), ("Foo foo(a);", True), ("Foo& f = a;", True),
                ("a::b<c> d{e};", True), ("typename A<B>::C c;", True),
                ("auto [a, b] = c;", True), ("G(a); Foo foo;", True),
                ("ASSIGN(const int a, F());", True), ("foo = a;", False),
                ("return a;", False), ("delete a;", False), ("a.b(c);", False),
                ("a->b = c;", False), ("break;", False), ("++a;", False),
                ("if (a) { Foo foo; }", False), ("else { Foo foo; }", False)):
            with self.subTest(text=text):
                self.assertEqual(weave.declares(weave.Text(text).tokens),
                                 expected)

    def test_white_space_and_comments_do_not_count(self):
        self.assertIn("kOne", self.woven(entry(
            "- if (a <\n-     b && b > 0)  return 1 ;\n- G(a);\n+ G(a);\n")))
        self.assertIn("comment", self.refused(
            entry("- G(a);\n+ G(b);  // why\n")))

    def test_anchor_that_is_not_there_once_is_told(self):
        self.assertIn("is not in log/a.cc; the nearest is line 5: G(a);",
                      self.refused(entry("- G(c);\n")))
        self.assertIn("stands in log/a.cc 2 times: lines 5, 9",
                      self.refused(entry("- G(\n+ H(\n")))

    def test_changes_nest_in_the_order_of_the_table(self):
        whole = "- if (a < b && b > 0)\n+ if (false)\n"
        part = "- if (a < b && b > 0)\n+ if (a < b)\n"
        around = "- if (a < b && b > 0) return 1;\n"
        self.assertEqual(
            self.line(4, entry(part, "kB"), entry(around), entry(whole, "kA")),
            f"{{ if (!{is_mutant()}) {{ if (({is_mutant('kB')} ? (a < b) : "
            f"(({is_mutant('kA')} ? (false) : (a < b && b > 0))))) return 1; "
            "} }  // TRP1")
        self.assertIn("kB and kOne overlap in part", self.refused(
            entry("- return 1;\n- G(a);\n+ G(a);\n+ return 1;\n", "kB"),
            entry("- if (a < b && b > 0) return 1;\n")))

    def test_mutant_may_have_several_places(self):
        woven = self.woven(entry("- G(a);\nfile: log/a.cc\n- G(b);\n"))
        self.assertEqual(woven.count(is_mutant()), 2)

    def test_lines_stay_where_they_are(self):
        woven = self.woven(entry("- G(a);\n- const int\n+ G(a);\n+ return\n+ 0;\n"
                                 "+ const int\n"))
        self.assertTrue(woven.startswith(
            '#include "tools/mutants/mutant.h"\n#line 1 "../root/log/a.cc"\n'))
        self.assertEqual(woven.count("\n"), SOURCE.count("\n") + 2)
        self.assertIn("{ return 0; }", woven)

    def test_only_what_changes_is_written(self):
        self.woven(entry("- G(a);\n"))
        path = os.path.join(self.out, "log", "a.cc")
        names = os.path.join(self.out, weave.NAMES)
        self.assertEqual(weave.read(names), "ALPHEUS_MUTANT(kOne)\n")
        os.utime(path, (1, 1))
        self.woven(entry("- G(a);\n"))
        self.assertEqual(os.stat(path).st_mtime, 1)
        self.woven(entry("- G(b);\n"))
        self.assertNotEqual(os.stat(path).st_mtime, 1)
        self.put("log/b.cc", SOURCE)
        self.put("tests/mutants/a.mutants",
                 entry("- G(b);\n").replace("a.cc", "b.cc"))
        weave.write_all(self.root, self.out)
        self.assertFalse(os.path.exists(path))

    def test_entry_in_another_form_is_refused(self):
        for bad in (entry(""), entry("+ G(b);\n"), entry("G(a);\n"),
                    entry("- G(a);\n+ G(b);\n- G(b);\n"),
                    entry("- G(a);\n").replace("hole: P-L5\n", ""),
                    entry("- G(a);\n").replace("P-L5", ""),
                    entry("- G(a);\n").replace("file: log/a.cc\n", ""),
                    entry("- G(a);\n", "One")):
            with self.subTest(bad=bad):
                self.assertRegex(self.refused(bad),
                                 r"^tests/mutants/a\.mutants:3: ")
        self.assertIn("kOne is in tests/mutants/a.mutants:3 already",
                      self.refused(entry("- G(a);\n"), entry("- G(b);\n")))

    def test_without_a_mutant_all_is_as_it_was(self):
        weave.write_all(ROOT, self.out)
        files = weave.by_file(weave.read_tables())
        self.assertGreater(len(files), 100)
        for file in files:
            with self.subTest(file=file):
                woven = weave.read(os.path.join(self.out, file))
                text = woven.split("\n", 2)[2]
                self.assertEqual(
                    without_mutants(weave.Text(text).tokens),
                    weave.Text(weave.read(os.path.join(ROOT, file))).tokens)


if __name__ == "__main__":
    unittest.main()
