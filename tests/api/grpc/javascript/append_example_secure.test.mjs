// SPDX-License-Identifier: Apache-2.0
// The example in JavaScript by TLS, mutual TLS and tokens.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Cluster } from "./cluster.mjs";
import { Example } from "./example.mjs";
import { Security } from "./security.mjs";

const kLines = 3000; // more than may be without an answer

const kOwn = fileURLToPath(import.meta.url);

let security;
let cluster;
let token; // file with a token that may append

function useCluster(asksForCertificates) {
  before(async () => {
    security = await Security.make(asksForCertificates);
    token = await security.addToken("writing", "append");
    cluster = await Cluster.start(3, security);
  });
  after(async () => {
    await cluster?.close();
    security?.close();
  });
}

// Starts the example with these options, has `use` use it, and ends it.
async function withExample(options, use) {
  const example = new Example(
    cluster.addresses, () => cluster.story(), ...options);
  try {
    await use(example);
  } finally {
    example.kill();
  }
}

// It goes on asking, and says why.
async function expectNoNode(pattern, ...options) {
  await withExample(options, async (example) => {
    await example.give("a");
    await example.says(pattern);
  });
}

async function append(count, interrupt, ...options) {
  const before = (await cluster.readAll()).length;
  const lines = Array.from({ length: count }, (_, i) => `line ${i}`);
  await withExample(options, async (example) => {
    for (const [i, line] of lines.entries()) {
      if (i === count / 2) await interrupt();
      await example.give(line);
    }
    assert.match(await example.end(), new RegExp(`^${count} lines are durable`));
  });
  const records = (await cluster.readAll()).slice(before);
  assert.deepEqual(records.map(({ payloads }) => String(payloads[0])), lines);
}

describe("TLS and tokens", () => {
  useCluster(false);

  test("lines are appended by TLS with a token while a primary goes", async () => {
    await cluster.awaitAllInSync();
    const primary = await cluster.primary();
    await append(kLines, () => cluster.kill(primary),
      "--tls-ca", security.authority.file, "--token-file", token);
    await cluster.startNode(primary);
  });

  test("a token without the role is refused", async () => {
    const reading = await security.addToken("reading", "read");
    for (const node of cluster.nodes) cluster.reload(node);
    const options =
      ["--tls-ca", security.authority.file, "--token-file", reading];
    // Until a node has read it, it knows no such token.
    await cluster.awaitTrue(async () => {
      let said;
      await withExample(options, async (example) => {
        await example.give("a");
        assert.notEqual(await example.endInVain(), 0);
        said = example.said;
      });
      assert.match(said, /UNAUTHENTICATED|PERMISSION_DENIED/);
      return said.includes('PERMISSION_DENIED: token "reading" has the role ' +
        "read, and this call takes append");
    }, "the nodes know the token");
  });

  test("a call without a token is refused", async () => {
    await withExample(["--tls-ca", security.authority.file],
      async (example) => {
        await example.give("a");
        assert.notEqual(await example.endInVain(), 0);
        assert.match(example.said, /UNAUTHENTICATED: the call has no token/);
      });
  });

  test("nodes of another authority are not trusted", async () => {
    const unknown = /UNAVAILABLE.*certificate/;
    await expectNoNode(unknown,
      "--tls-ca", security.other.file, "--token-file", token);
    await expectNoNode(unknown, "--tls", "--token-file", token);
  });

  test("a client without TLS reaches no node", () =>
    expectNoNode(/UNAVAILABLE/, "--token-file", token));
});

describe("mutual TLS", () => {
  useCluster(true);

  test("a client shows its certificate", async () => {
    const [certificate, key] = await security.authority.issue("client");
    await append(10, () => {}, "--tls-ca", security.authority.file,
      "--tls-certificate", certificate, "--tls-key", key,
      "--token-file", token);
  });

  test("a client without a good certificate reaches no node", async () => {
    const trusting =
      ["--tls-ca", security.authority.file, "--token-file", token];
    await expectNoNode(/UNAVAILABLE/, ...trusting);
    const [certificate, key] = await security.other.issue("client");
    await expectNoNode(/UNAVAILABLE/, ...trusting,
      "--tls-certificate", certificate, "--tls-key", key);
  });
});

describe("command lines that are refused", () => {
  before(async () => (security = await Security.make(false)));
  after(() => security?.close());

  const refused = (pattern, addresses, ...options) => async () => {
    const example = new Example(addresses, () => "", ...options);
    try {
      assert.equal(await example.endInVain(), 2, example.said);
      assert.match(example.said, pattern);
      assert.match(example.said, /^usage: /m);
    } finally {
      example.kill();
    }
  };
  const here = ["127.0.0.1:1"];

  test("no address", refused(/no address/, []));
  test("an unknown option", refused(/--other/, here, "--other"));
  test("a file that is not there",
    refused(/--tls-ca: ENOENT.*nowhere/, here, "--tls-ca", "/nowhere"));
  test("a certificate without its key",
    refused(/give both/, here, "--tls", "--tls-certificate", kOwn));
  test("a certificate without TLS",
    refused(/by TLS only/, here, "--tls-certificate", kOwn,
      "--tls-key", kOwn));
  test("a file that has no token",
    refused(/has no token/, here, "--token-file", kOwn));
  test("a token that would leave the machine without TLS", async () => {
    const file = await security.addToken("writing", "append");
    for (const address of ["10.0.0.1:1", "127.example.com:1", "127.0.0.256:1"]) {
      await refused(new RegExp(`on the way to ${address} could read`),
        [...here, address], "--token-file", file)();
    }
  });
});
