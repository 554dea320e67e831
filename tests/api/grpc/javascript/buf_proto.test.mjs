// SPDX-License-Identifier: Apache-2.0
// The API's proto file by buf: its style, and that no change breaks clients of
// the last release.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync }
  from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { buf } from "./buf.mjs";
import { kRoot, run } from "./cluster.mjs";

const kProtos = "api/grpc/proto";
const kField = "  uint64 durable_lsn = 3;\n";

let folder;
before(() => (folder = mkdtempSync(join(tmpdir(), "alpheus-buf-"))));
after(() => rmSync(folder, { recursive: true }));

function git(...args) {
  // The clone may belong to another user than the one that runs this.
  return run("git", "-c", "safe.directory=*", "-C", kRoot, ...args);
}

test("the proto file is in good style", async () => {
  const ran = await buf("lint", join(kRoot, kProtos));
  assert.equal(ran.status, 0, ran.stdout + ran.stderr);
});

test("a field that is taken away is seen", async () => {
  const copy = join(folder, "copy");
  cpSync(join(kRoot, kProtos), copy, { recursive: true });
  const file = join(copy, "alpheus/v1/log_service.proto");
  const text = readFileSync(file, "utf8");
  assert.ok(text.includes(kField));
  writeFileSync(file, text.replace(kField, ""));
  const ran = await buf("breaking", copy, "--against", join(kRoot, kProtos));
  assert.notEqual(ran.status, 0);
  assert.match(ran.stdout, /field "3" with name "durable_lsn"/);
});

// Until there is a release, everything may change.
test("clients of the last release go on", async (t) => {
  const skip = (why) => {
    console.log(`skipped: buf breaking, because ${why}`);
    t.skip(why);
  };
  const { status, stdout } = await git("describe", "--tags", "--abbrev=0");
  if (status !== 0) return skip("no tag of a release is in this clone");
  const tag = stdout.trim();
  const archive = join(folder, "release.tar");
  const archived = await git("archive", "-o", archive, tag, kProtos);
  if (archived.status !== 0) return skip(`release ${tag} has no ${kProtos}`);
  const ran = await buf("breaking", join(kRoot, kProtos),
    "--against", `${archive}#subdir=${kProtos}`);
  assert.equal(ran.status, 0,
    `compared with release ${tag}:\n${ran.stdout}${ran.stderr}`);
});
