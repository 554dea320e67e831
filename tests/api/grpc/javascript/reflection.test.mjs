// SPDX-License-Identifier: Apache-2.0
// A client without a proto file: it gets the API from the node itself.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import * as grpc from "@grpc/grpc-js";
import reflection from "grpc-js-reflection-client";

import { call, Cluster, kLog } from "./cluster.mjs";

const kService = "alpheus.v1.LogService";

let cluster;
let reflected;
before(async () => {
  cluster = await Cluster.start(1);
  await cluster.primary();
  reflected = new reflection.GrpcReflection(
    cluster.address(1), grpc.credentials.createInsecure(), {}, "v1alpha");
});
after(() => cluster?.close());

test("a node lists its services", async () => {
  const services = await reflected.listServices();
  for (const service of [kService, "alpheus.v1.AdminService"]) {
    assert.ok(services.includes(service), services.join());
  }
});

test("a node lists the methods of a service", async () => {
  const methods = await reflected.listMethods(kService);
  assert.deepEqual(methods.map(({ name }) => name).sort(),
    Object.keys(Object.getPrototypeOf(cluster.client(1)))
      .filter((name) => /^[A-Z]/.test(name)).sort());
});

// Fields have the names of the proto file here.
test("a client without a proto file appends and reads", async () => {
  const descriptor = await reflected.getDescriptorBySymbol(kService);
  const { LogService } = descriptor.getPackageObject(
    { longs: Number, defaults: true, enums: String }).alpheus.v1;
  const client = new LogService(
    cluster.address(1), grpc.credentials.createInsecure());
  const { client: name, epoch } =
    await call(client, "OpenClient", { log: kLog });
  const { place } = await call(client, "Append", {
    log: kLog,
    epoch,
    client: name,
    number: { sequence: 1, lowest_unanswered: 1 },
    payload: { data: Buffer.from("reflected") },
    durability: "DURABILITY_QUORUM",
  });
  const records = [];
  for await (const answer of client.Read({ log: kLog, from_lsn: place.lsn })) {
    records.push(...answer.records);
  }
  client.close();
  assert.deepEqual(records.map((record) => record.place), [place]);
  assert.equal(String(records[0].payloads[0]), "reflected");
});
