// SPDX-License-Identifier: Apache-2.0
// buf: runs the program of that name, of the package @bufbuild/buf.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import { run } from "./cluster.mjs";

const kBuf = join(
  dirname(createRequire(import.meta.url).resolve("@bufbuild/buf/package.json")),
  "bin/buf");

// Returns its status and its output.
export function buf(...args) {
  return run(process.execPath, kBuf, ...args);
}
