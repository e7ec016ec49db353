/** Rejects the message: it can never be handled. */
export class Unacceptable extends Error {}
/** Rejects the message: it is fine, and handling it failed for good. */
export class DeliveryError extends Error {}

/** What becomes of the message. */
export type Outcome =
  | { tag: "ack" }
  | { tag: "defer"; val: number | null }
  | { tag: "reject"; val: { reason: "unacceptable" | "delivery-error" | "none"; description: string } };

/** Done: the message is removed. */
export function ack(): Outcome;
/** Not now: it comes back after so many milliseconds, or after the subscription's backoff. */
export function defer(milliseconds?: number | null): Outcome;
/** Never, without a reason. The text is for people. */
export function reject(description: string): Outcome;

export interface Fields {
  id: string;
  source: string;
  deliveryCount: number;
  headers: [string, string][];
  contentType: string | null;
  orderingKey: string | null;
  publishedAt: number | null;
  body: Uint8Array | string;
}

/** One delivery of one message. */
export class Message {
  constructor(fields?: Partial<Fields>);
  readonly id: string;
  readonly source: string;
  /** The deliveries before this one: 0 the first time. */
  readonly deliveryCount: number;
  /** Pairs of name and value, in the broker's order. */
  readonly headers: [string, string][];
  readonly contentType: string | null;
  readonly orderingKey: string | null;
  /** Milliseconds since 1970, or null. */
  readonly publishedAt: number | null;
  /** The bytes as sent. */
  readonly body: Uint8Array;
  /** The value of the first header of that name. */
  header(name: string): string | undefined;
  /** The body as text. What is no UTF-8 is unacceptable. */
  text(): string;
  /** The body as JSON. What is none is unacceptable. */
  json(): unknown;
}

/** The component's export: `export const incomingHandler = handler(handle)`. */
export function handler(handle: (message: Message) => Outcome): { handle(fields: Partial<Fields>): Outcome };
