// SPDX-License-Identifier: Apache-2.0
// The example in JavaScript against a scripted primary, which gives the answers
// that a real one gives rarely.
import assert from "node:assert/strict";
import { test } from "node:test";

import * as grpc from "@grpc/grpc-js";

import { inTime, LogService } from "./cluster.mjs";
import { Example } from "./example.mjs";

const kLines = ["a", "", "b\u2028c\r", "d"];

// A primary that takes everything, but for what `script` does in its place.
class ScriptedPrimary {
  payloads = []; // of the log
  #resumption = 0;
  #server = new grpc.Server();

  static async start(script) {
    const primary = new ScriptedPrimary();
    const calls = {
      OpenClient: (call, answer) =>
        answer(null, { client: { epoch: 1, lsn: 1 }, epoch: 1 }),
      ResumeClient: (call, answer) => answer(null, {
        epoch: 1,
        resumption: ++primary.#resumption,
        lastSequence: primary.payloads.length,
      }),
      CloseClient: (call, answer) => answer(null, {}),
      AppendStream: (stream) => primary.#append(stream, script),
    };
    primary.#server.addService(LogService.service, calls);
    primary.address = await new Promise((resolve, reject) =>
      primary.#server.bindAsync("127.0.0.1:0",
        grpc.ServerCredentials.createInsecure(),
        (error, port) => error ? reject(error) : resolve(`127.0.0.1:${port}`)));
    return primary;
  }

  // Takes requests. Returns the answer.
  take({ first, payloads }) {
    const sequence = Number(first.sequence);
    assert.equal(sequence, this.payloads.length + 1);
    this.payloads.push(...payloads.map(({ data }) => String(data)));
    return { done: [{ firstSequence: sequence, count: payloads.length,
      first: { epoch: 1, lsn: sequence + 1 } }] };
  }

  end() {
    this.#server.forceShutdown();
  }

  #append(stream, script) {
    let resumption;
    stream.on("data", ({ begin, requests }) => {
      if (begin) resumption = Number(begin.resumption);
      if (!requests || resumption !== this.#resumption) return;
      if (!script(this, stream, requests, resumption)) {
        stream.write(this.take(requests));
      }
    });
    stream.on("end", () => stream.end());
    stream.on("error", () => {});
  }
}

// Has the example append to a primary that follows the script, and end.
async function append(script) {
  const primary = await ScriptedPrimary.start(script);
  const example = new Example([primary.address], () => "");
  try {
    for (const line of kLines) await example.give(line);
    const said = await example.end();
    assert.match(said, new RegExp(`^${kLines.length} lines are durable`));
    assert.deepEqual(primary.payloads, kLines);
  } finally {
    example.kill();
    primary.end();
  }
}

function fail(stream, code) {
  stream.emit("error", { code, details: "scripted" });
}

function refuse(stream, requests, code, error) {
  const sequence = Number(requests.first.sequence);
  stream.write({ refused: requests.payloads.map((_, i) => (
    { sequence: sequence + i, code, message: "scripted", error })) });
}

test("a line may be any bytes, also none", () => append(() => false));

// Its last lines are in the log, and the answer is lost: it learns that by
// resuming, and has nothing to send any more.
test("it ends when a resumption says that all is durable", async () => {
  await append((primary, stream, requests) => {
    primary.take(requests);
    fail(stream, grpc.status.UNAVAILABLE);
    return true;
  });
});

test("a request for another opening is sent again", async () => {
  await append((_, stream, requests, resumption) => {
    if (resumption > 0) return false;
    refuse(stream, requests, grpc.status.FAILED_PRECONDITION,
      { wrongEpoch: { epoch: 2 } });
    return true;
  });
});

test("a stream for another opening is begun again", async () => {
  await append((_, stream, requests, resumption) => {
    if (resumption > 0) return false;
    fail(stream, grpc.status.FAILED_PRECONDITION);
    return true;
  });
});

test("a request for which there is no room is sent again", async () => {
  let refusals = 0;
  await append((_, stream, requests) => {
    if (++refusals > 3) return false;
    refuse(stream, requests, grpc.status.RESOURCE_EXHAUSTED);
    return true;
  });
});

test("a request that can never be appended ends it", async () => {
  const primary = await ScriptedPrimary.start((_, stream, requests) => {
    refuse(stream, requests, grpc.status.INVALID_ARGUMENT);
    return true;
  });
  const example = new Example([primary.address], () => "");
  try {
    await example.give("a");
    await assert.rejects(example.end(), /scripted/);
  } finally {
    example.kill();
    primary.end();
  }
});
