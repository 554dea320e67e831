// SPDX-License-Identifier: Apache-2.0
// gRPC's own protocol of health, by a client that knows nothing of this project:
// what the primary and its backups say of themselves, and that they tell when
// the role moves.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";

import * as grpc from "@grpc/grpc-js";
import health from "grpc-health-check";

import { call, Cluster, inTime, kLog } from "./cluster.mjs";

const kAppend = `alpheus/${kLog}/append`;
const Health = grpc.makeGenericClientConstructor(health.service, "health");

let cluster;
let clients;
before(async () => {
  cluster = await Cluster.start(3);
  clients = cluster.addresses.map(
    (address) => new Health(address, grpc.credentials.createInsecure()));
});
after(async () => {
  for (const client of clients ?? []) client.close();
  await cluster?.close();
});

function client(node) {
  return clients[node - 1];
}

async function check(node, service) {
  return (await call(client(node), "Check", { service })).status;
}

// What a node says of a service, as it comes.
class Watch {
  constructor(node, service) {
    this.node = node;
    this.service = service;
    this.stream = client(node).Watch({ service });
    this.stream.on("data", ({ status }) => (this.status = status));
    this.stream.on("error", () => {}); // it is cancelled, or its node ends
  }

  // Waits until the node says so, in its own time.
  async until(status) {
    while (this.status !== status) {
      await inTime(once(this.stream, "data"),
        `node ${this.node} says ${status} of "${this.service}"`,
        () => cluster.story());
    }
  }

  end() {
    this.stream.cancel();
  }
}

test("each node is alive, and the primary alone takes requests", async () => {
  const primary = await cluster.primary();
  for (const node of cluster.nodes) {
    const watch = new Watch(node, kAppend);
    await watch.until(node === primary ? "SERVING" : "NOT_SERVING");
    watch.end();
    assert.equal(await check(node, ""), "SERVING");
    assert.equal(await check(node, kAppend),
      node === primary ? "SERVING" : "NOT_SERVING");
  }
});

test("a service that is not there is not found, or unknown", async () => {
  const service = "alpheus/missing/append";
  await assert.rejects(check(1, service), { code: grpc.status.NOT_FOUND });
  const watch = new Watch(1, service);
  await watch.until("SERVICE_UNKNOWN");
  watch.end();
});

test("watches tell that a drained primary hands over", async () => {
  await cluster.awaitAllInSync();
  const before = await cluster.primary();
  const watches = cluster.nodes.map((node) => new Watch(node, kAppend));
  const alive = new Watch(before, "");
  await watches[before - 1].until("SERVING");
  const next = watches.filter(({ node }) => node !== before);
  const elected = Promise.any(next.map(async (watch) => {
    await watch.until("SERVING");
    return watch.node;
  }));
  await cluster.alpheus("drain", "--log", kLog, String(before));
  await watches[before - 1].until("NOT_SERVING");
  assert.equal(await elected, await cluster.primary());
  await alive.until("SERVING"); // the process goes on
  for (const watch of [...watches, alive]) watch.end();
});

test("a watch tells that a killed primary has a successor", async () => {
  await cluster.awaitAllInSync();
  const killed = await cluster.primary();
  const watches = cluster.nodes.filter((node) => node !== killed)
    .map((node) => new Watch(node, kAppend));
  const elected = Promise.any(watches.map(async (watch) => {
    await watch.until("SERVING");
    return watch.node;
  }));
  await cluster.kill(killed);
  assert.equal(await elected, await cluster.primary());
  for (const watch of watches) watch.end();
});
