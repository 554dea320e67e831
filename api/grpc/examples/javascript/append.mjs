// SPDX-License-Identifier: Apache-2.0
// Appends each line of the standard input to a log, exactly once, and says the
// place of the last one. Follows the log from primary to primary.
//
//   npm install
//   node append.mjs [OPTIONS] LOG ADDRESS... < lines
//
//   --tls                   by TLS; the authorities are those of Node.js
//   --tls-ca FILE           by TLS; authorities of the nodes' certificates, PEM
//   --tls-certificate FILE  own certificate, for nodes with --tls-client-ca
//   --tls-key FILE          its key, without a passphrase
//   --token-file FILE       with the token that `alpheus token new` prints, for
//                           nodes with --tokens
//
// A token leaves this machine through TLS only. docs/use/operating.md says how
// to make certificates and tokens.
//
// docs/design/service.md says why nothing is sent again before ResumeClient.
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const kProtos = fileURLToPath(new URL("../../proto", import.meta.url));
const kUnansweredMax = 1000; // the service keeps 1,024 places
const kPerMessage = 100;
const kRestMs = 50; // before the nodes are asked again
const kStallMs = 2000; // a node that says nothing for so long is left
const { RESOURCE_EXHAUSTED, UNAVAILABLE } = grpc.status;
// Asking again does not help.
const kFinal = [
  grpc.status.INVALID_ARGUMENT,
  grpc.status.NOT_FOUND,
  grpc.status.PERMISSION_DENIED,
  grpc.status.UNAUTHENTICATED,
  grpc.status.UNIMPLEMENTED,
];

const definition = loadSync("alpheus/v1/log_service.proto", {
  includeDirs: [kProtos],
  longs: String,
  defaults: true,
  oneofs: true,
});
const { LogService } = grpc.loadPackageDefinition(definition).alpheus.v1;

const kUsage = "usage: node append.mjs [--tls] [--tls-ca FILE] " +
  "[--tls-certificate FILE --tls-key FILE] [--token-file FILE] LOG ADDRESS... " +
  "< lines";
// An address of this machine by its spelling; a name may lead anywhere tomorrow.
const kByte = "(?:[1-9]?[0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])";
const kLoopback = new RegExp(
  `^(?:localhost|\\[::1\\]|127\\.${kByte}\\.${kByte}\\.${kByte}):[0-9]+$`, "i");

// The command line can never be right.
function refuse(why) {
  console.error(`${why}\n${kUsage}`);
  process.exit(2);
}

function readOptions() {
  const file = { type: "string" };
  const options = {
    "tls": { type: "boolean" },
    "tls-ca": file,
    "tls-certificate": file,
    "tls-key": file,
    "token-file": file,
  };
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return refuse(error.message);
  }
}

// Reads the file that an option names; null if there is none.
function readFileOf(values, name) {
  if (values[name] === undefined) return null;
  try {
    return readFileSync(values[name]);
  } catch (error) {
    return refuse(`--${name}: ${error.message}`);
  }
}

function credentialsOf(values) {
  const ca = readFileOf(values, "tls-ca");
  const certificate = readFileOf(values, "tls-certificate");
  const key = readFileOf(values, "tls-key");
  if ((certificate === null) !== (key === null)) {
    refuse("a certificate and its key belong together: give both, " +
      "--tls-certificate and --tls-key");
  }
  if (values.tls || ca !== null) {
    return grpc.credentials.createSsl(ca, key, certificate);
  }
  if (certificate !== null) {
    refuse("a certificate is shown by TLS only: give --tls or --tls-ca, too");
  }
  return grpc.credentials.createInsecure();
}

// How the client and the nodes know each other.
function securityOf(values, addresses) {
  const credentials = credentialsOf(values);
  const isTls = Boolean(values.tls) || values["tls-ca"] !== undefined;
  const metadata = metadataOf(values, addresses, isTls);
  const leavesMachine = isTls || values["token-file"] === undefined;
  return { credentials, metadata, leavesMachine };
}

// Each call shows the token, if there is one.
function metadataOf(values, addresses, isTls) {
  const metadata = new grpc.Metadata();
  const token = readFileOf(values, "token-file")?.toString("latin1").trim();
  if (token === undefined) return metadata;
  if (!/^[!-~]+$/.test(token)) {
    refuse(`--token-file: ${values["token-file"]} has no token, or more than one`);
  }
  const far = addresses.find((address) => !kLoopback.test(address));
  if (!isTls && far !== undefined) {
    refuse(`without TLS everybody on the way to ${far} could read the token: ` +
      "give --tls or --tls-ca");
  }
  metadata.set("authorization", `Bearer ${token}`);
  return metadata;
}

class Appender {
  constructor(log, addresses, { credentials, metadata, leavesMachine }) {
    this.log = log;
    this.addresses = addresses;
    this.nodes = addresses.map(
      // A proxy of the environment is another machine.
      (address) => new LogService(address, credentials,
        { "grpc.enable_http_proxy": leavesMachine ? 1 : 0 }),
    );
    this.metadata = metadata; // of each call
    this.said = ""; // by the last node that was of no use
    this.key = randomBytes(16); // by which it begins
    this.client = null; // its name, once it has begun
    this.epoch = "0"; // the latest one in which anything was sent
    this.nextSequence = 1n;
    this.unanswered = []; // {sequence, data, isSent}, in order
    this.heardAt = 0; // when the node said something, or owed nothing
    this.isResting = false; // sends nothing for a moment
    this.last = null; // place of the last record
    this.wake = () => {};
  }

  // Appends a line. Waits while too many have no answer.
  async append(data) {
    while (this.unanswered.length >= kUnansweredMax) await this.change();
    if (this.unanswered.length === 0) this.heardAt = performance.now();
    this.unanswered.push({ sequence: this.nextSequence++, data, isSent: false });
    // Not at once: lines that come together go together.
    if (!this.isSending) setImmediate(() => this.send());
    this.isSending = true;
  }

  // Waits until all lines are durable.
  async finish() {
    while (this.unanswered.length > 0) await this.change();
    this.isFinished = true;
    this.stream?.end();
    await this.runs;
    for (const node of this.nodes) node.close();
  }

  start() {
    this.runs = this.run();
  }

  change() {
    return new Promise((resolve) => (this.wake = resolve));
  }

  // Goes from primary to primary.
  async run() {
    for (let at = 0; !this.isFinished; ++at) {
      const node = this.nodes[at % this.nodes.length];
      try {
        const resumption = await this.begin(node);
        // It may have said that all lines are durable.
        if (!this.isFinished) await this.serve(node, resumption);
        if (this.isFinished) await this.close(node);
        at -= 1; // the same one again
      } catch (error) {
        const isStatus = Number.isInteger(error.code);
        if (!isStatus || kFinal.includes(error.code)) throw error;
        this.tell(this.addresses[at % this.nodes.length], error);
        await sleep(kRestMs);
      }
    }
  }

  // Says why a node is of no use, but not the same again and again.
  tell(address, error) {
    const said = `node ${address}: ${error.message}`;
    if (said !== this.said) console.error(`${said}; asks the next one`);
    this.said = said;
  }

  call(node, method, request) {
    return new Promise((resolve, reject) =>
      node[method](
        { log: this.log, ...request },
        this.metadata,
        { deadline: Date.now() + kStallMs },
        (error, response) => (error ? reject(error) : resolve(response)),
      ),
    );
  }

  // Begins the client, or resumes it. Returns the number that its requests
  // carry.
  async begin(node) {
    if (this.client === null) {
      // Each time the same key: an answer may have been lost.
      const opened = await this.call(node, "OpenClient", { key: this.key });
      this.client = opened.client;
      this.epoch = opened.epoch;
      return "0";
    }
    const resumed = await this.call(node, "ResumeClient", {
      client: this.client,
      lowestUnanswered: String(
        this.unanswered[0]?.sequence ?? this.nextSequence,
      ),
      lastEpoch: this.epoch,
    });
    for (const run of resumed.places) this.done(run);
    // All up to the last one are in the log; the rest never will be, as sent.
    this.answer(1n, BigInt(resumed.lastSequence));
    for (const request of this.unanswered) request.isSent = false;
    this.epoch = resumed.epoch;
    return resumed.resumption;
  }

  // Ends the client, so that it takes no room in the log. No line depends on it.
  close(node) {
    const client = { epoch: this.epoch, client: this.client };
    return this.call(node, "CloseClient", client).catch(() => {});
  }

  // Appends by one stream, until it ends.
  serve(node, resumption) {
    return new Promise((resolve, reject) => {
      const stream = node.AppendStream(this.metadata);
      this.stream = stream;
      this.heardAt = performance.now();
      let failure = null; // why this side ends it
      const fail = (why) => {
        failure ??= Object.assign(new Error(why.message), why);
        this.stream = null;
        stream.cancel();
      };
      const watch = setInterval(() => {
        const silence = performance.now() - this.heardAt;
        if (this.unanswered.length > 0 && silence > kStallMs) {
          fail({ code: UNAVAILABLE, message: "it says nothing" });
        }
      }, kStallMs / 4);
      stream.write({
        begin: {
          log: this.log,
          epoch: this.epoch,
          client: this.client,
          durability: "DURABILITY_QUORUM",
          resumption,
        },
      });
      stream.on("data", (answers) => {
        this.heardAt = performance.now();
        for (const run of answers.done) this.done(run);
        for (const refusal of answers.refused) {
          if (refusal.code === RESOURCE_EXHAUSTED) this.rest();
          else if (refusal.error?.kind !== "outOfOrder") return fail(refusal);
          this.setBack(BigInt(refusal.sequence));
        }
        if (answers._lastAdmitted) {
          this.stream = null; // it ends in good order
          stream.end();
        }
        this.send();
      });
      stream.on("error", (error) => {
        this.stream = null;
        clearInterval(watch);
        reject(failure ?? error);
      });
      stream.on("end", () => {
        this.stream = null;
        clearInterval(watch);
        resolve();
      });
      this.send();
    });
  }

  // There is no room in the log: waits for a moment.
  rest() {
    if (this.isResting) return;
    this.isResting = true;
    setTimeout(() => {
      this.isResting = false;
      this.send();
    }, kRestMs);
  }

  // Sends what was not sent, in runs of consecutive sequences.
  send() {
    this.isSending = false;
    if (!this.stream || this.isResting) return;
    for (;;) {
      const first = this.unanswered.findIndex((request) => !request.isSent);
      if (first < 0) return;
      const run = [];
      for (const request of this.unanswered.slice(first, first + kPerMessage)) {
        if (request.isSent) break;
        request.isSent = true;
        run.push(request);
      }
      this.stream.write({
        requests: {
          first: {
            sequence: String(run[0].sequence),
            lowestUnanswered: String(this.unanswered[0].sequence),
          },
          payloads: run.map((request) => ({ data: request.data })),
        },
      });
    }
  }

  setBack(sequence) {
    const request = this.unanswered.find((one) => one.sequence === sequence);
    if (request) request.isSent = false;
  }

  done(run) {
    const first = BigInt(run.firstSequence);
    const last = first + BigInt(run.count) - 1n;
    if (run.first) {
      const lsn = BigInt(run.first.lsn) + BigInt(run.count) - 1n;
      this.last = { epoch: run.first.epoch, lsn: String(lsn) };
    }
    this.answer(first, last);
  }

  answer(first, last) {
    this.unanswered = this.unanswered.filter(
      ({ sequence }) => sequence < first || sequence > last,
    );
    this.wake();
  }
}

// The lines of a stream, whatever bytes they have.
async function* linesOf(input) {
  let rest = "";
  for await (const text of input.setEncoding("latin1")) {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) yield Buffer.from(line, "latin1");
  }
  if (rest !== "") yield Buffer.from(rest, "latin1");
}

const { values, positionals: [log, ...addresses] } = readOptions();
if (addresses.length === 0) refuse("no address: name a node that serves the log");
const appender = new Appender(log, addresses, securityOf(values, addresses));
appender.start();
let lines = 0;
for await (const line of linesOf(process.stdin)) {
  await appender.append(line);
  ++lines;
}
await appender.finish();
console.log(`${lines} lines are durable`, appender.last ?? "");
