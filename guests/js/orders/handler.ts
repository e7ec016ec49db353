// Takes orders that arrive as JSON: the rules of guests/vectors/README.md, in TypeScript.
import {
  DeliveryError,
  type Message,
  type Outcome,
  Unacceptable,
  ack,
  defer,
  handler,
  reject,
} from "../pumphouse.js";

interface Order {
  id: string;
  quantity: number;
  cancelled?: boolean;
  /** Seconds until the goods are there. */
  available_in?: number | null;
}

const MOST = 0xffffffff;
const isWhole = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0;

function isOrder(value: unknown): value is Order {
  if (value === null || typeof value !== "object") return false;
  const { id, quantity, available_in: wait } = value as Partial<Order>;
  return typeof id === "string" && isWhole(quantity) && quantity <= MOST && (wait == null || isWhole(wait));
}

/** Whether the message came as often as its sender allows. */
function isGivenUp(message: Message): boolean {
  const most = message.header("give-up-after");
  return most !== undefined && message.deliveryCount >= Number(most);
}

function handle(message: Message): Outcome {
  if (message.header("hold") === "yes") return defer();
  const order = message.json();
  if (!isOrder(order)) throw new Unacceptable("the body is no order");
  if (order.quantity === 0) throw new Unacceptable(`order ${order.id} is for nothing`);
  if (order.cancelled) return reject(`order ${order.id} was cancelled`);
  if (isGivenUp(message)) {
    throw new DeliveryError(`order ${order.id} was tried ${message.deliveryCount} times`);
  }
  return order.available_in == null ? ack() : defer(order.available_in * 1000);
}

export const incomingHandler = handler(handle);
