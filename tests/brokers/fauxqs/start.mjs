// Starts fauxqs on loopback: its own entry points listen on every interface.
// Usage: node start.mjs PORT
import { buildApp } from "fauxqs";
import { S3Store } from "./node_modules/fauxqs/dist/s3/s3Store.js";
import { SnsStore } from "./node_modules/fauxqs/dist/sns/snsStore.js";
import { SqsStore } from "./node_modules/fauxqs/dist/sqs/sqsStore.js";

const sqsStore = new SqsStore();
// Without a host of its own it answers queue URLs with the address that was asked, which needs no DNS.
sqsStore.host = "";

const stores = { sqsStore, snsStore: new SnsStore(), s3Store: new S3Store() };
const app = buildApp({ logger: false, stores });
await app.listen({ host: "127.0.0.1", port: Number(process.argv[2]) });
