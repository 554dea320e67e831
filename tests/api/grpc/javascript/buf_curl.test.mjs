// SPDX-License-Identifier: Apache-2.0
// buf curl, which has no proto file and asks the node for it: the command that
// docs/use/operating.md shows, and a record that is appended by hand.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { buf } from "./buf.mjs";
import { Cluster, kLog } from "./cluster.mjs";

let cluster;
before(async () => {
  cluster = await Cluster.start(1);
  await cluster.primary();
});
after(() => cluster?.close());

function curl(method, request) {
  return buf("curl", "--http2-prior-knowledge", "--protocol", "grpc",
    "-d", JSON.stringify({ log: kLog, ...request }),
    `http://${cluster.address(1)}/alpheus.v1.LogService/${method}`);
}

async function answer(method, request) {
  const ran = await curl(method, request);
  assert.equal(ran.status, 0, ran.stderr + cluster.story());
  return JSON.parse(ran.stdout);
}

test("a record is appended by hand, and read", async () => {
  const { isPrimary, epoch } = await answer("GetStatus");
  assert.equal(isPrimary, true);
  const opened = await answer("OpenClient");
  assert.equal(opened.epoch, epoch);
  const data = Buffer.from("by hand").toString("base64");
  const { place } = await answer("Append", {
    epoch,
    client: opened.client,
    number: { sequence: "1", lowestUnanswered: "1" },
    payload: { data },
  });
  const { records } = await answer("Read", { fromLsn: place.lsn });
  assert.deepEqual(records,
    [{ place, client: opened.client, sequence: "1", payloads: [data] }]);
});

test("an error says what a client needs to go on", async () => {
  const ran = await curl("Append", { epoch: "1", client: { epoch: "1", lsn: "1" },
    number: { sequence: "1", lowestUnanswered: "1" }, payload: {} });
  assert.notEqual(ran.status, 0);
  const { code, details } = JSON.parse(ran.stderr);
  assert.equal(code, "failed_precondition");
  assert.equal(details[0].type, "alpheus.v1.RequestError");
});
