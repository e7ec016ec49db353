// What a message handler for Pumphouse is given and gives. Plain JavaScript: it runs in Node, for tests, and in a
// component.

/** Rejects the message: it can never be handled. */
export class Unacceptable extends Error {}

/** Rejects the message: it is fine, and handling it failed for good. */
export class DeliveryError extends Error {}

/** Done: the message is removed. */
export const ack = () => ({ tag: "ack" });

/** Not now: it comes back after so many milliseconds, or after the subscription's backoff. */
export const defer = (milliseconds = null) => ({ tag: "defer", val: milliseconds });

/** Never, without a reason. The text is for people. */
export const reject = (description) => rejection("none", description);

const rejection = (reason, description) => ({ tag: "reject", val: { reason, description: String(description) } });

/** One delivery of one message. */
export class Message {
  constructor(fields = {}) {
    const body = fields.body ?? "";
    this.id = fields.id ?? "test-1";
    this.source = fields.source ?? "test";
    // QuickJS is given numbers of 32 bits with a sign.
    /** The deliveries before this one: 0 the first time. */
    this.deliveryCount = (fields.deliveryCount ?? 0) >>> 0;
    /** Pairs of name and value, in the broker's order. */
    this.headers = fields.headers ?? [];
    this.contentType = fields.contentType ?? null;
    this.orderingKey = fields.orderingKey ?? null;
    /** Milliseconds since 1970, or null. */
    this.publishedAt = fields.publishedAt ?? null;
    /** The bytes as sent. */
    this.body = typeof body === "string" ? encode(body) : body;
  }

  /** The value of the first header of that name; undefined where there is none. */
  header(name) {
    return this.headers.find(([found]) => found === name)?.[1];
  }

  /** The body as text. What is no UTF-8 is unacceptable. */
  text() {
    return decode(this.body);
  }

  /** The body as JSON. What is none is unacceptable. */
  json() {
    const text = this.text();
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new Unacceptable(`the body is no JSON: ${error.message}`);
    }
  }
}

/**
 * The component's export: `export const incomingHandler = handler(handle)`.
 *
 * What `handle` returns is the outcome. What it throws is a rejection where it says so, and otherwise a passing trouble:
 * its text goes to standard error, the message is deferred.
 */
export function handler(handle) {
  return { handle: (fields) => answer(handle, new Message(fields)) };
}

function answer(handle, message) {
  try {
    const outcome = handle(message);
    if (typeof outcome?.tag === "string") return outcome;
    throw new TypeError("the handler returned no outcome");
  } catch (error) {
    if (error instanceof Unacceptable) return rejection("unacceptable", error.message);
    if (error instanceof DeliveryError) return rejection("delivery-error", error.message);
    globalThis.console?.error?.(`deferred: ${error?.stack ?? error}`);
    return defer();
  }
}

function encode(text) {
  const escaped = encodeURIComponent(text);
  const bytes = [];
  for (let at = 0; at < escaped.length; at++) {
    if (escaped[at] === "%") {
      bytes.push(parseInt(escaped.slice(at + 1, at + 3), 16));
      at += 2;
    } else {
      bytes.push(escaped.charCodeAt(at));
    }
  }
  return Uint8Array.from(bytes);
}

// A component has no TextDecoder. What `decodeURIComponent` takes is UTF-8, strictly.
function decode(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) {
    text += String.fromCharCode.apply(null, bytes.subarray(at, at + CHUNK));
  }
  if (!/[\x80-\xff]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replace(/[%\x80-\xff]/g, (byte) => ESCAPES[byte.charCodeAt(0)]));
  } catch {
    throw new Unacceptable("the body is not UTF-8");
  }
}

const CHUNK = 8192;
const ESCAPES = Array.from({ length: 256 }, (_, byte) => "%" + byte.toString(16).padStart(2, "0"));
