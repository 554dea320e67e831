// SPDX-License-Identifier: Apache-2.0
// writer: a client in JavaScript without a library, as failover_rounds.py
// commands it. writer.cc says what it is told, and what it says.
//
//   node writer.mjs LOG STALL_MS ADDRESS...
//
// Unlike those of C++ and Python it never sends a record again. It asks what
// became of each one whose outcome is unknown (Resolve). The sequences of those
// that will never be in the log go to the records that follow. So a primary
// that appended one of them after all would be seen.
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const kProtos = fileURLToPath(
  new URL("../../../../api/grpc/proto", import.meta.url));
const kAnswerMs = 2000; // that a node has to answer one question
const kRestMs = 20; // before the next node is asked
const kDurable = "OUTCOME_DURABLE";
const kNever = "OUTCOME_NEVER";

const { LogService } = grpc.loadPackageDefinition(
  loadSync("alpheus/v1/log_service.proto", {
    includeDirs: [kProtos],
    longs: Number,
    enums: String,
    defaults: true,
    oneofs: true,
  }),
).alpheus.v1;

class Writer {
  #log;
  #stallMs;
  #nodes;
  #key = randomBytes(16); // by which it begins
  #client = null; // its name, once it has begun
  #epoch = 0; // the latest one in which anything was sent
  #resumption = 0;
  #nextSequence = 1;
  #nextNumber = 1;
  #lastNumber = 0; // up to which it is to append
  #sent = []; // {sequence, number}, without an answer, in order
  #unknown = 0; // outcomes, so far
  #stream = null;
  #heardAt = 0;
  #isEnding = false;

  constructor(log, stallMs, addresses) {
    this.#log = log;
    this.#stallMs = stallMs;
    this.#nodes = addresses.map((address) => new LogService(
      address, grpc.credentials.createInsecure(),
      { "grpc.initial_reconnect_backoff_ms": 100,
        "grpc.max_reconnect_backoff_ms": 100 }));
  }

  // Appends the records up to this one.
  appendThrough(number) {
    this.#lastNumber = number;
    this.#send();
  }

  // There are no more records.
  finish() {
    this.#isEnding = true;
    this.#endIfAllIsDone();
  }

  // Goes from primary to primary, until all is done.
  async run() {
    for (let at = 0; !this.#isDone(); ++at) {
      const node = this.#nodes[at % this.#nodes.length];
      try {
        await this.#begin(node);
        if (!this.#isDone()) await this.#serve(node);
        if (this.#isDone()) await this.#close(node);
        at -= 1; // the same one again
      } catch (error) {
        if (!Number.isInteger(error.code)) throw error;
        await pause(kRestMs);
      }
    }
    for (const node of this.#nodes) node.close();
  }

  #isDone() {
    return this.#isEnding && this.#sent.length === 0 &&
      this.#nextNumber > this.#lastNumber;
  }

  #endIfAllIsDone() {
    if (this.#isDone()) this.#stream?.end();
  }

  #call(node, method, request) {
    return new Promise((resolve, reject) =>
      node[method](
        { log: this.#log, ...request },
        { deadline: Date.now() + kAnswerMs },
        (error, answer) => (error ? reject(error) : resolve(answer)),
      ),
    );
  }

  // Begins the client, or learns what became of its records.
  async #begin(node) {
    if (this.#client === null) {
      // Each time the same key: an answer may have been lost.
      const opened = await this.#call(node, "OpenClient", { key: this.#key });
      this.#client = opened.client;
      this.#epoch = opened.epoch;
      return;
    }
    if (this.#sent.length === 0) {
      await this.#resume(node);
      return;
    }
    while (this.#sent.length > 0) await this.#resolve(node);
  }

  async #resume(node) {
    const resumed = await this.#call(node, "ResumeClient", {
      client: this.#client,
      lowestUnanswered: this.#nextSequence,
      lastEpoch: this.#epoch,
    });
    this.#expect(resumed.lastSequence < this.#nextSequence,
      `the log has ${resumed.lastSequence} requests; ` +
      `${this.#nextSequence - 1} were answered, and none is unknown`);
    this.#epoch = Math.max(this.#epoch, resumed.epoch);
    this.#resumption = resumed.resumption;
  }

  // Asks for the oldest record whose outcome is unknown.
  async #resolve(node) {
    const { sequence, number } = this.#sent[0];
    const resolved = await this.#call(node, "Resolve", {
      client: this.#client, sequence, lastEpoch: this.#epoch,
    });
    this.#epoch = Math.max(this.#epoch, resolved.epoch);
    this.#resumption = resolved.resumption;
    if (resolved.outcome === kDurable) {
      this.#sent.shift();
      this.#tellDurable(number, resolved.place);
      return;
    }
    this.#expect(resolved.outcome === kNever,
      `the outcome of record ${number} is ${resolved.outcome}`);
    // Those behind it were sent on the same stream: nor will they.
    this.#forgetFrom(sequence);
  }

  // No record of this sequence or a later one is in the log as it was sent, or
  // ever will be.
  #forgetFrom(sequence) {
    for (const one of this.#sent.filter((one) => one.sequence >= sequence)) {
      console.log(`never ${one.number} ${this.#unknown}`);
    }
    this.#sent = this.#sent.filter((one) => one.sequence < sequence);
    this.#nextSequence = sequence;
  }

  // Ends the client, so that it takes no room in the log.
  #close(node) {
    return this.#call(node, "CloseClient",
      { client: this.#client, epoch: this.#epoch }).catch(() => {});
  }

  // Appends by one stream, until that ends.
  async #serve(node) {
    const stream = node.AppendStream();
    this.#stream = stream;
    this.#heardAt = performance.now();
    const watch = setInterval(() => {
      const silence = performance.now() - this.#heardAt;
      if (this.#sent.length > 0 && silence > this.#stallMs) stream.cancel();
    }, this.#stallMs / 4);
    let lastAdmitted = Infinity; // as far as the primary has said
    const ended = new Promise((resolve) => {
      stream.on("error", resolve);
      stream.on("end", resolve);
    });
    stream.on("data", (answers) => {
      this.#heardAt = performance.now();
      for (const run of answers.done) this.#takeDone(run);
      if (answers.refused.length > 0) {
        // None of these is in the log. They are resolved like those that nobody
        // has answered.
        this.#stream = null;
        stream.cancel();
        return;
      }
      if (answers._lastAdmitted) {
        lastAdmitted = answers.lastAdmitted;
        this.#stream = null;
        stream.end();
      }
      this.#send();
      this.#endIfAllIsDone();
    });
    stream.write({ begin: {
      log: this.#log,
      epoch: this.#epoch,
      client: this.#client,
      durability: "DURABILITY_QUORUM",
      resumption: this.#resumption,
    } });
    this.#send();
    this.#endIfAllIsDone();
    await ended;
    clearInterval(watch);
    this.#stream = null;
    this.#lose(lastAdmitted);
  }

  // The stream has ended. What its primary said that it has not admitted will
  // never be in the log; what became of the others is unknown.
  #lose(lastAdmitted) {
    const unadmitted =
      this.#sent.find(({ sequence }) => sequence > lastAdmitted);
    if (unadmitted) this.#forgetFrom(unadmitted.sequence);
    this.#unknown += this.#sent.length;
  }

  #send() {
    if (!this.#stream || this.#nextNumber > this.#lastNumber) return;
    if (this.#sent.length === 0) this.#heardAt = performance.now();
    const payloads = [];
    const first = { sequence: this.#nextSequence,
      lowestUnanswered: this.#sent[0]?.sequence ?? this.#nextSequence };
    while (this.#nextNumber <= this.#lastNumber) {
      payloads.push({ data: Buffer.from(`js ${this.#nextNumber}`) });
      this.#sent.push(
        { sequence: this.#nextSequence++, number: this.#nextNumber++ });
    }
    this.#stream.write({ requests: { first, payloads } });
  }

  #takeDone({ firstSequence, count, first }) {
    for (let i = 0; i < count; ++i) {
      // Mostly the oldest one, but answers come in any order.
      const at = this.#sent.findIndex(
        ({ sequence }) => sequence === firstSequence + i);
      this.#expect(at >= 0,
        `request ${firstSequence + i} is answered, and has no record`);
      const [{ number }] = this.#sent.splice(at, 1);
      this.#tellDurable(
        number, first && { epoch: first.epoch, lsn: first.lsn + i });
    }
  }

  #tellDurable(number, place) {
    console.log(`durable ${number} ${place?.epoch ?? 0} ${place?.lsn ?? 0} ` +
      `${this.#unknown}`);
  }

  #expect(isTrue, what) {
    if (isTrue) return;
    throw new Error(`client ${JSON.stringify(this.#client)}: ${what}`);
  }
}

const [log, stallMs, ...addresses] = process.argv.slice(2);
if (addresses.length === 0) {
  console.error("usage: node writer.mjs LOG STALL_MS ADDRESS...");
  process.exit(2);
}
const writer = new Writer(log, Number(stallMs), addresses);
const runs = writer.run();
for await (const line of createInterface({ input: process.stdin })) {
  writer.appendThrough(Number(line));
}
writer.finish();
await runs;
console.log("end");
