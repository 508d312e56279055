// The ways of using the package: clients, protocols, and kinds of calls, on the server or cluster at ROLLCALL_URL.

import { Cluster, Redis } from "ioredis";
import { createClient, createCluster, MultiErrorReply, RESP_TYPES } from "redis";
import { rollcall as ofIoredis } from "rollcall-redis/ioredis";
import { modules, rollcall as ofNodeRedis } from "rollcall-redis/node-redis";

export const url = process.env["ROLLCALL_URL"]!;
export const isCluster = process.env["ROLLCALL_CLUSTER"] === "yes";
const { hostname: host, port } = new URL(url);
const node = { host, port: Number(port) };

export type Family = "bf" | "lc";
export type Methods = Record<Family, Record<string, (...args: unknown[]) => any>>;

/** A client in one variant. `invoke` calls a method, and returns the reply or rejects with the error. */
export interface Variant {
  invoke(family: Family, method: string, args: unknown[]): Promise<unknown>;
  /** Whether members are text: in MULTI, and in pipelines on clusters, node-redis 6.3.1 has no buffers in replies. */
  isText?: boolean;
  close(): Promise<unknown>;
}

/** A client of node-redis, whose keys have a prefix. */
export async function nodeRedis(RESP: 2 | 3, keyPrefix = "") {
  const client = isCluster
    ? createCluster({ rootNodes: [{ url }], RESP, modules, keyPrefix })
    : createClient({ url, RESP, modules, keyPrefix });
  await client.connect();
  return client;
}

/** A client of ioredis, whose keys have a prefix. */
export function ioredis(protocol: 2 | 3, replyMapping: "legacy" | "resp3" = "legacy", keyPrefix = "") {
  const options = { protocol, replyMapping, keyPrefix } as const;
  return isCluster ? new Cluster([node], { redisOptions: options, keyPrefix }) : new Redis({ ...node, ...options });
}

async function ofNode(RESP: 2 | 3, way: "call" | "pipeline" | "MULTI", keyPrefix: string): Promise<Variant> {
  const client = await nodeRedis(RESP, keyPrefix);
  const binary = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  const calls = ofNodeRedis(binary) as unknown as Methods;
  return {
    async invoke(family, method, args) {
      if (way === "call") return calls[family][method]!(...args);
      const multi = (binary.multi() as unknown as Methods)[family][method]!(...args);
      try {
        return (await multi.exec(way === "pipeline"))[0];
      } catch (error) {
        throw error instanceof MultiErrorReply ? error.replies[0] : error;
      }
    },
    close: () => client.close(),
    isText: way === "MULTI" || (way === "pipeline" && isCluster),
  };
}

async function ofIo(
  way: "call" | "pipeline" | "MULTI",
  keyPrefix: string,
  ...protocol: [2 | 3, ("legacy" | "resp3")?]
): Promise<Variant> {
  const client = ioredis(protocol[0], protocol[1], keyPrefix);
  const calls = ofIoredis(client, { buffers: true }) as unknown as Methods;
  return {
    async invoke(family, method, args) {
      if (way === "call") return calls[family][method]!(...args);
      const queue = way === "MULTI" ? client.multi() : client.pipeline();
      (ofIoredis(queue, { buffers: true }) as unknown as Methods)[family][method]!(...args);
      const [[error, reply]] = (await queue.exec()) as [[Error | null, unknown]];
      if (error) throw error;
      return reply;
    },
    close: () => client.quit(),
  };
}

/** All variants by their titles. */
export const VARIANTS: Record<string, (keyPrefix: string) => Promise<Variant>> = {};
for (const protocol of [2, 3] as const) {
  for (const way of ["call", "pipeline", "MULTI"] as const) {
    VARIANTS[`node-redis RESP${protocol} ${way}`] = (keyPrefix) => ofNode(protocol, way, keyPrefix);
    VARIANTS[`ioredis RESP${protocol} ${way}`] = (keyPrefix) => ofIo(way, keyPrefix, protocol);
  }
}
VARIANTS["ioredis RESP3 as RESP3 call"] = (keyPrefix) => ofIo("call", keyPrefix, 3, "resp3");
VARIANTS["ioredis RESP3 as RESP3 MULTI"] = (keyPrefix) => ofIo("MULTI", keyPrefix, 3, "resp3");
