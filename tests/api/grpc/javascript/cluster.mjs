// SPDX-License-Identifier: Apache-2.0
// cluster: nodes of the real alpheusd that stand for a log and serve it.
//
// As tests/api/client/python/cluster.py: all files are in one temporary folder,
// and each cluster has loopback addresses of its own, drawn at random. So
// concurrent clusters don't meet, and a node that is started again gets its port
// back.
//
// Only processes that were started here get a signal, and none outlives this
// process. Waits have a deadline; their errors have the nodes' output.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomInt, randomUUID } from "node:crypto";
import { once } from "node:events";
import { accessSync, constants, mkdirSync, mkdtempSync, realpathSync, rmSync,
  writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

export const kLog = "main";
export const kPatienceMs = 60_000;
// This file may have been reached by a link.
export const kRoot = join(
  dirname(realpathSync(fileURLToPath(import.meta.url))), "../../../..");
const kAskAgainMs = 20; // between two questions of one wait
const kPort = 7401;
const kServicePort = 7411;
const kSaidMax = 100_000;
const kStoryMax = 1500;

export const { LogService } = grpc.loadPackageDefinition(
  loadSync("alpheus/v1/log_service.proto", {
    includeDirs: [join(kRoot, "api/grpc/proto")],
    longs: Number,
    defaults: true,
  }),
).alpheus.v1;

// Calls a method that has one answer.
export function call(client, method, request) {
  return new Promise((resolve, reject) =>
    client[method](
      request,
      { deadline: Date.now() + kPatienceMs },
      (error, answer) => (error ? reject(error) : resolve(answer)),
    ),
  );
}

// Resolves as the promise does, but for one that takes too long.
export async function inTime(promise, what, story = () => "") {
  const timer = new AbortController();
  const late = pause(
    kPatienceMs, null, { ref: false, signal: timer.signal }).then(
    () => assert.fail(`in vain until ${what}: ${story()}`),
    () => {},
  );
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer.abort();
  }
}

// Runs a program to its end. Returns its status and its output.
export async function run(program, ...args) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  const ran = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) {
    child[name].setEncoding("utf8").on("data", (text) => (ran[name] += text));
  }
  [ran.status] = await once(child, "close");
  return ran;
}

// An address of the loopback network, drawn anew at each call.
function ownHost() {
  return `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;
}

export class Cluster {
  #alpheus;
  #alpheusd;
  #security;
  #hosts;
  #folder;
  #processes = new Map(); // by node, those that run
  #stopped = new Set();
  #said = new Map();
  #clients = new Map();

  // Starts so many nodes, all of which run at first. The programs are those that
  // the test's command line names. `security`: how nodes and clients know each
  // other, as a Security of security.mjs.
  static async start(nodes, security = null) {
    const cluster = new Cluster(nodes, security);
    try {
      await cluster.#begin();
    } catch (error) {
      await cluster.close();
      throw error;
    }
    return cluster;
  }

  constructor(nodes, security) {
    this.#security = security;
    [this.#alpheus, this.#alpheusd] = process.argv.slice(2);
    assert.ok(this.#alpheusd, "usage: node TEST.test.mjs ALPHEUS ALPHEUSD");
    this.nodes = Array.from({ length: nodes }, (_, i) => i + 1);
    this.#hosts = this.nodes.map(ownHost);
    this.addresses = this.#hosts.map((host) => `${host}:${kServicePort}`);
    this.#folder = mkdtempSync(join(memory(), "alpheus-javascript-"));
  }

  address(node) {
    return this.addresses[node - 1];
  }

  // A client of grpc-js, of one node.
  client(node) {
    if (!this.#clients.has(node)) {
      this.#clients.set(node, new LogService(
        this.address(node),
        this.#security?.credentials ?? grpc.credentials.createInsecure(),
        // A node that is started again is found at once.
        { "grpc.initial_reconnect_backoff_ms": 100,
          "grpc.max_reconnect_backoff_ms": 100 },
      ));
    }
    return this.#clients.get(node);
  }

  // Starts a node, and waits until it listens. One that stands serves the log.
  async startNode(node, stands = true) {
    const standing = ["--stand", kLog, "--serve", this.address(node),
      // A busy machine must not decide who is primary.
      "--silence-ms", "2000",
      ...(await this.#security?.optionsOf(node, this.#hosts[node - 1]) ?? [])];
    const child = spawn(
      "setpriv",
      ["--pdeathsig", "KILL", this.#alpheusd,
        "--cluster", this.#path("cluster.toml"), "--node", String(node),
        "--directory", this.#path(`node-${node}`),
        ...(stands ? standing : [])],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    this.#processes.set(node, child);
    const listens = new Promise((resolve, reject) => {
      const hear = (text) => {
        const said = (this.#said.get(node) ?? "") + text;
        this.#said.set(node, said.slice(-kSaidMax));
        if (said.includes(`node ${node} listens on `)) resolve();
      };
      this.#said.set(node, "");
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", hear);
      }
      child.once("error", reject);
      child.once("exit", () => reject(new Error(
        `node ${node} does not listen: ${this.story()}`)));
    });
    await this.#inTime(listens, `node ${node} listens`);
  }

  // Has a node read its files again.
  reload(node) {
    this.#processes.get(node).kill("SIGHUP");
  }

  // Sends SIGKILL, and waits for the end.
  async kill(node) {
    await this.#end(node, "SIGKILL");
  }

  // Ends a node with SIGTERM, in good order.
  async terminate(node) {
    const status = await this.#end(node, "SIGTERM");
    assert.equal(status, 0, `node ${node} ended: ${this.story()}`);
  }

  // Stops a node, whose connections stay open.
  stop(node) {
    this.#processes.get(node).kill("SIGSTOP");
    this.#stopped.add(node);
  }

  // Lets a node that was stopped go on.
  goOn(node) {
    this.#processes.get(node).kill("SIGCONT");
    this.#stopped.delete(node);
  }

  // `alpheus COMMAND --cluster FILE ARGUMENTS...`: returns its output.
  async alpheus(command, ...args) {
    const ran = await this.#runAlpheus(command, ...args);
    assert.equal(ran.status, 0,
      `alpheus ${command}: ${ran.stderr}${this.story()}`);
    return ran.stdout;
  }

  // Waits until all nodes are in sync: only then may any of them go.
  async awaitAllInSync() {
    await this.awaitTrue(async () => {
      const ran = await this.#runAlpheus("status", "--log", kLog, "--json");
      try {
        const { in_sync: inSync } = JSON.parse(ran.stdout);
        return inSync.length === this.nodes.length;
      } catch {
        return false;
      }
    }, "all nodes are in sync");
  }

  // Waits for a primary among the nodes that run. Returns its number.
  async primary() {
    let found;
    await this.awaitTrue(async () => {
      for (const node of this.#processes.keys()) {
        if (this.#stopped.has(node)) continue;
        if ((await this.status(node))?.isPrimary) found = node;
      }
      return found !== undefined;
    }, "a node is primary");
    return found;
  }

  // The state of the log as a node knows it; null if it does not answer.
  async status(node) {
    try {
      return await call(this.client(node), "GetStatus", { log: kLog });
    } catch {
      return null;
    }
  }

  // Returns all records, from the primary.
  async readAll() {
    const records = [];
    const reading = this.client(await this.primary()).Read({ log: kLog });
    for await (const answer of reading) records.push(...answer.records);
    return records;
  }

  // Waits for what only the nodes know, by asking again.
  async awaitTrue(isTrue, what) {
    const end = performance.now() + kPatienceMs;
    while (!(await isTrue())) {
      if (performance.now() > end) {
        assert.fail(`in vain until ${what}: ${this.story()}`);
      }
      await pause(kAskAgainMs);
    }
  }

  // The words of the nodes, for reports of failures.
  story() {
    return this.nodes
      .map((node) => `\n--- node ${node} said:\n` +
        (this.#said.get(node) ?? "").slice(-kStoryMax))
      .join("");
  }

  // Ends all nodes, and removes the files.
  async close() {
    for (const client of this.#clients.values()) client.close();
    for (const node of [...this.#processes.keys()]) await this.kill(node);
    rmSync(this.#folder, { recursive: true });
  }

  async #begin() {
    await this.#writeFiles();
    // A node that stands opens a new log at once, also while `format` still
    // talks to it.
    for (const node of this.nodes) await this.startNode(node, false);
    await this.alpheus("format", "--log", kLog, "--size", "32MiB");
    for (const node of this.nodes) {
      await this.terminate(node);
      await this.startNode(node);
    }
  }

  async #end(node, signal) {
    const child = this.#processes.get(node);
    this.#processes.delete(node);
    this.#stopped.delete(node);
    if (child.exitCode !== null || child.signalCode !== null) {
      return child.exitCode;
    }
    const ended = once(child, "exit");
    child.kill(signal);
    const [status] = await this.#inTime(ended, `node ${node} ends`);
    return status;
  }

  #runAlpheus(command, ...args) {
    const ran = run(this.#alpheus, command, "--cluster",
      this.#path("cluster.toml"), ...args);
    return this.#inTime(ran, `alpheus ${command} ends`);
  }

  async #writeFiles() {
    const key = this.#path("cluster.key");
    assert.equal((await run(this.#alpheus, "key", "new", key)).status, 0);
    const lines = [`cluster_id = "${randomUUID()}"`, `key_file = "${key}"`];
    for (const node of this.nodes) {
      mkdirSync(this.#path(`node-${node}`));
      lines.push("[[member]]", `node = ${node}`,
        `address = "${this.#hosts[node - 1]}:${kPort}"`);
    }
    writeFileSync(this.#path("cluster.toml"), lines.join("\n") + "\n");
  }

  #inTime(promise, what) {
    return inTime(promise, what, () => this.story());
  }

  #path(name) {
    return join(this.#folder, name);
  }
}

// The folder of files that need to outlive nothing.
function memory() {
  try {
    accessSync("/dev/shm", constants.W_OK);
    return "/dev/shm";
  } catch {
    return tmpdir();
  }
}
