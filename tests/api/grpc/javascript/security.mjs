// SPDX-License-Identifier: Apache-2.0
// security: certificates and tokens of a cluster, made by openssl and alpheus
// when the tests run.
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync }
  from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import * as grpc from "@grpc/grpc-js";

import { run } from "./cluster.mjs";

const kKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
  "-noenc"];

async function must(program, ...args) {
  const ran = await run(program, ...args);
  assert.equal(ran.status, 0, `${program} ${args.join(" ")}: ${ran.stderr}`);
  return ran.stdout;
}

// An authority.
export class Authority {
  #folder;
  #name;

  static async make(folder, name) {
    const authority = new Authority(folder, name);
    await must("openssl", "req", "-x509", ...kKey, "-keyout",
      authority.#path("key"), "-out", authority.file, "-subj", `/CN=${name}`);
    return authority;
  }

  constructor(folder, name) {
    this.#folder = folder;
    this.#name = name;
  }

  get file() {
    return this.#path("pem");
  }

  // Makes a certificate, for this number if there is one. Returns its file and
  // that of its key.
  async issue(name, host) {
    const [certificate, key, request, extensions] =
      ["pem", "key", "csr", "ext"].map((end) => this.#path(`${name}.${end}`));
    writeFileSync(extensions, host ? `subjectAltName=IP:${host}\n` : "");
    await must("openssl", "req", ...kKey, "-keyout", key, "-out", request,
      "-subj", `/CN=${name}`);
    await must("openssl", "x509", "-req", "-in", request, "-CA", this.file,
      "-CAkey", this.#path("key"), "-CAcreateserial", "-extfile", extensions,
      "-out", certificate);
    chmodSync(key, 0o600);
    return [certificate, key];
  }

  #path(end) {
    return join(this.#folder, `${this.#name}.${end}`);
  }
}

// Nodes have certificates of `authority` and ask for tokens, and for
// certificates of clients if `asksForCertificates`.
export class Security {
  #folder;
  #asksForCertificates;

  static async make(asksForCertificates) {
    const security = new Security(asksForCertificates);
    security.authority = await Authority.make(security.#folder, "authority");
    security.other = await Authority.make(security.#folder, "other");
    const own = await security.authority.issue("own");
    const token = readFileSync(await security.addToken("own", "read"), "utf8");
    security.credentials = grpc.credentials.combineChannelCredentials(
      grpc.credentials.createSsl(...[security.authority.file, own[1], own[0]]
        .map((file) => readFileSync(file))),
      grpc.credentials.createFromMetadataGenerator((_, give) => {
        const metadata = new grpc.Metadata();
        metadata.set("authorization", `Bearer ${token.trim()}`);
        give(null, metadata);
      }));
    return security;
  }

  constructor(asksForCertificates) {
    this.#asksForCertificates = asksForCertificates;
    this.#folder = mkdtempSync(join(tmpdir(), "alpheus-secure-"));
  }

  // Options of alpheusd.
  async optionsOf(node, host) {
    const [certificate, key] = await this.authority.issue(`node-${node}`, host);
    return ["--tls-certificate", certificate, "--tls-key", key,
      "--tokens", this.#path("tokens.toml"),
      ...(this.#asksForCertificates
        ? ["--tls-client-ca", this.authority.file] : [])];
  }

  // Makes a token. Returns the file that has it.
  async addToken(name, ...roles) {
    const file = this.#path(`${name}.token`);
    writeFileSync(file, await must(process.argv[2], "token", "new", name,
      ...roles.flatMap((role) => ["--role", role]),
      "--file", this.#path("tokens.toml")));
    return file;
  }

  close() {
    rmSync(this.#folder, { recursive: true });
  }

  #path(name) {
    return join(this.#folder, name);
  }
}
