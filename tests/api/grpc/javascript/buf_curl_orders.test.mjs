// SPDX-License-Identifier: Apache-2.0
// buf curl gives an administrator's orders: the command that
// docs/use/operating.md shows, by TLS and with a token.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { buf } from "./buf.mjs";
import { Cluster, inTime, kLog } from "./cluster.mjs";
import { Security } from "./security.mjs";

let security;
let cluster;
let token;
before(async () => {
  security = await Security.make(false);
  token = readFileSync(await security.addToken("operator", "admin"), "utf8").trim();
  cluster = await Cluster.start(1, security);
  await cluster.primary();
});
after(async () => {
  await cluster?.close();
  security?.close();
});

function curl(method, shown = token) {
  return buf("curl", "--header", `authorization: Bearer ${shown}`,
    "--reflect-header", "*", "--cacert", security.authority.file,
    "--protocol", "grpc", "-d", JSON.stringify({ log: kLog }),
    `https://${cluster.address(1)}/alpheus.v1.AdminService/${method}`);
}

async function answer(method) {
  const ran = await curl(method);
  assert.equal(ran.status, 0, ran.stderr + cluster.story());
  return JSON.parse(ran.stdout);
}

test("an administrator gives orders by hand", async () => {
  const { primary } = await answer("Elect");
  assert.equal(primary.node, "1");
  const { replicas } = await answer("Scrub");
  assert.equal(replicas.length, 1);
  assert.equal(replicas[0].code ?? 0, 0, replicas[0].message);
});

test("an order that can't be obeyed says why", async () => {
  const drained = await curl("Drain");
  assert.notEqual(drained.status, 0);
  const { code, message } = JSON.parse(drained.stderr);
  assert.equal(code, "failed_precondition");
  assert.match(message, /nobody but node 1 stands/);
});

test("a token of another role gives no orders", async () => {
  const reading =
    readFileSync(await security.addToken("reading", "read"), "utf8").trim();
  cluster.reload(1);
  const refused = await inTime(refusedOnceKnown(reading), "the token is known",
    () => cluster.story());
  assert.match(refused.stderr, /permission_denied/);
});

// Tries until the node has read its tokens again.
async function refusedOnceKnown(shown) {
  for (;;) {
    const refused = await curl("Elect", shown);
    assert.notEqual(refused.status, 0);
    if (!refused.stderr.includes("unauthenticated")) return refused;
  }
}
