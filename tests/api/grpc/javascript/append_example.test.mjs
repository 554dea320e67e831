// SPDX-License-Identifier: Apache-2.0
// The example in JavaScript, as its users run it: it appends the lines of its
// input while primaries go. Afterwards the log has each line once, in order.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Cluster, inTime, kLog } from "./cluster.mjs";

// By the same link as this file, as that leads to the packages.
const kExample = fileURLToPath(
  new URL("../../../../api/grpc/examples/javascript/append.mjs",
    import.meta.url));
const kRounds = 3;
const kLinesOfRound = 1500; // more than may be without an answer

let cluster;
beforeEach(async () => {
  cluster = await Cluster.start(3);
});
afterEach(() => cluster?.close());

// The running example, and the lines that it was given.
class Example {
  lines = [];
  #said = "";
  #child;
  #ended;

  constructor(addresses) {
    this.#child = spawn(process.execPath, [kExample, kLog, ...addresses],
      { stdio: ["pipe", "pipe", "pipe"] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => (this.#said += text));
    }
    this.#child.stdin.on("error", () => {}); // its status tells
    this.#ended = once(this.#child, "close");
  }

  // Gives it lines, no faster than it takes them.
  async give(count) {
    for (let i = 0; i < count; ++i) {
      this.lines.push(`line ${this.lines.length}`);
      if (this.#child.stdin.write(`${this.lines.at(-1)}\n`)) continue;
      const taken = once(this.#child.stdin, "drain").catch(() => this.#ended);
      await this.#inTime(Promise.race([taken, this.#ended]),
        "the example takes lines");
      assert.equal(this.#child.exitCode, null, this.#said);
    }
  }

  // Ends its input. Returns what it says, once it has ended.
  async end() {
    this.#child.stdin.end();
    const [status] = await this.#inTime(this.#ended, "the example ends");
    assert.equal(status, 0, this.#said);
    return this.#said;
  }

  kill() {
    this.#child.kill("SIGKILL");
  }

  #inTime(promise, what) {
    return inTime(promise, what, () => this.#said + cluster.story());
  }
}

// Has the example append, while `interrupt` takes the primary away, once in each
// round. Requests are under way before, meanwhile and afterwards. Then `restore`
// makes the cluster whole.
async function appendThrough(interrupt, restore) {
  const example = new Example(cluster.addresses);
  try {
    for (let round = 0; round < kRounds; ++round) {
      await cluster.awaitAllInSync();
      const primary = await cluster.primary();
      const durable = (await cluster.status(primary)).durableLsn;
      let isDone = false;
      const interrupted = (async () => {
        await cluster.awaitTrue(
          async () => (await cluster.status(primary)).durableLsn > durable,
          "a line is durable");
        await interrupt(primary);
      })().finally(() => (isDone = true));
      while (!isDone) await example.give(100);
      await interrupted;
      await example.give(kLinesOfRound);
      assert.notEqual(await cluster.primary(), primary);
      await restore(primary);
    }
    const said = await example.end();
    assert.match(said, new RegExp(`^${example.lines.length} lines are durable`));
  } finally {
    example.kill();
  }
  const records = await cluster.readAll();
  assert.deepEqual(
    records.map(({ payloads }) => String(payloads[0])), example.lines);
  assert.deepEqual(
    records.map(({ sequence }) => sequence), example.lines.map((_, i) => i + 1));
}

test("a killed primary loses no line and doubles none", async () => {
  await appendThrough(
    (primary) => cluster.kill(primary),
    (primary) => cluster.startNode(primary),
  );
});

test("a drained primary loses no line and doubles none", async () => {
  await appendThrough(
    (primary) => cluster.alpheus("drain", "--log", kLog, String(primary)),
    async (primary) => {
      // It stands no longer until it is started again.
      await cluster.terminate(primary);
      await cluster.startNode(primary);
    },
  );
});

test("a primary that stands still is left", async () => {
  await appendThrough(
    (primary) => cluster.stop(primary),
    (primary) => cluster.goOn(primary),
  );
});
