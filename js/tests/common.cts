import ioredis = require("ioredis");
import redis = require("redis");
import { rollcall } from "rollcall-redis/ioredis";
import nodeRedis = require("rollcall-redis/node-redis");

/** Adds by both clients, and returns the replies. */
export async function used(): Promise<number[]> {
  const client = redis.createClient({ url: process.env["ROLLCALL_URL"]!, modules: nodeRedis.modules });
  const io = new ioredis.Redis(process.env["ROLLCALL_URL"]!);
  await client.connect();
  const values = await Promise.all([client.lc.add("used", "ann"), rollcall(io).lc.add("used", "ben")]);
  await Promise.all([client.close(), io.quit()]);
  return values;
}
