// SPDX-License-Identifier: Apache-2.0
// The example in JavaScript, as its users run it: it appends the lines of its
// input while primaries go. Afterwards the log has each line once, in order.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { Cluster, kLog } from "./cluster.mjs";
import { Example } from "./example.mjs";

const kRounds = 3;
const kLinesOfRound = 1500; // more than may be without an answer

let cluster;
beforeEach(async () => {
  cluster = await Cluster.start(3);
});
afterEach(() => cluster?.close());

// Has the example append, while `interrupt` takes the primary away, once in each
// round. Requests are under way before, meanwhile and afterwards. Then `restore`
// makes the cluster whole.
async function appendThrough(interrupt, restore) {
  const example = new Example(cluster.addresses, () => cluster.story());
  const lines = [];
  const give = async (count) => {
    for (let i = 0; i < count; ++i) {
      lines.push(`line ${lines.length}`);
      await example.give(lines.at(-1));
    }
  };
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
      while (!isDone) await give(100);
      await interrupted;
      await give(kLinesOfRound);
      assert.notEqual(await cluster.primary(), primary);
      await restore(primary);
    }
    const said = await example.end();
    assert.match(said, new RegExp(`^${lines.length} lines are durable`));
  } finally {
    example.kill();
  }
  const records = await cluster.readAll();
  assert.deepEqual(
    records.map(({ payloads }) => String(payloads[0])), lines);
  assert.deepEqual(
    records.map(({ sequence }) => sequence), lines.map((_, i) => i + 1));
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
