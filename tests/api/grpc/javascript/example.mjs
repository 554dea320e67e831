// SPDX-License-Identifier: Apache-2.0
// example: api/grpc/examples/javascript/append.mjs, running.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import { inTime, kLog } from "./cluster.mjs";

// By the same link as this file, as that leads to the packages.
const kExample = fileURLToPath(
  new URL("../../../../api/grpc/examples/javascript/append.mjs",
    import.meta.url));

export class Example {
  #said = ""; // by both of its streams
  #output = "";
  #story;
  #child;
  #ended;
  #heard = () => {};

  // Starts it. `story`: what others said, for reports of failures.
  constructor(addresses, story, ...options) {
    this.#story = story;
    this.#child = spawn(process.execPath,
      [kExample, ...options, kLog, ...addresses],
      { stdio: ["pipe", "pipe", "pipe"] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        this.#said += text;
        if (stream === this.#child.stdout) this.#output += text;
        this.#heard();
      });
    }
    this.#child.stdin.on("error", () => {}); // its status tells
    this.#ended = once(this.#child, "close");
  }

  // Gives it a line, no sooner than it takes it.
  async give(line) {
    if (this.#child.stdin.write(`${line}\n`)) return;
    const taken = once(this.#child.stdin, "drain").catch(() => this.#ended);
    await this.#inTime(Promise.race([taken, this.#ended]),
      "the example takes lines");
    assert.equal(this.#child.exitCode, null, this.#said);
  }

  // Ends its input. Returns what it says, once it has ended.
  async end() {
    assert.equal(await this.endInVain(), 0, this.#said);
    return this.#output;
  }

  // The same, and returns its status.
  async endInVain() {
    this.#child.stdin.end();
    const [status] = await this.#inTime(this.#ended, "the example ends");
    return status;
  }

  get said() {
    return this.#said;
  }

  // Waits until it says something like that.
  async says(pattern) {
    await this.#inTime((async () => {
      while (!pattern.test(this.#said)) {
        await new Promise((resolve) => (this.#heard = resolve));
      }
    })(), `the example says ${pattern}`);
  }

  kill() {
    this.#child.kill("SIGKILL");
  }

  #inTime(promise, what) {
    return inTime(promise, what, () => this.#said + this.#story());
  }
}
