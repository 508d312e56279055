import { Redis } from "ioredis";
import { createClient } from "redis";
import { ItemError } from "rollcall-redis";
import { rollcall } from "rollcall-redis/ioredis";
import { modules } from "rollcall-redis/node-redis";

/** Adds by both clients, and returns the replies. */
export async function used(): Promise<(number | boolean | ItemError)[]> {
  const [client, io] = [createClient({ url: process.env["ROLLCALL_URL"]!, modules }), new Redis(process.env["ROLLCALL_URL"]!)];
  await client.connect();
  const replies = [client.lc.add("used", "ann"), rollcall(io).lc.add("used", "ben")];
  const values = await Promise.all(replies);
  await Promise.all([client.close(), io.quit()]);
  return values;
}
