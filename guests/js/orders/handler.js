// Takes orders that arrive as JSON: the rules of guests/vectors/README.md, in JavaScript.
import { DeliveryError, Unacceptable, ack, defer, handler, reject } from "../pumphouse.js";

export const incomingHandler = handler(handle);

const MOST = 0xffffffff;
const isWhole = (value) => Number.isInteger(value) && value >= 0;

function read(message) {
  const order = message.json();
  const fits =
    order !== null &&
    typeof order === "object" &&
    typeof order.id === "string" &&
    isWhole(order.quantity) &&
    order.quantity <= MOST &&
    (order.available_in == null || isWhole(order.available_in));
  if (!fits) throw new Unacceptable("the body is no order");
  return order;
}

/** Whether the message came as often as its sender allows. */
function isGivenUp(message) {
  const most = message.header("give-up-after");
  return most !== undefined && message.deliveryCount >= Number(most);
}

function handle(message) {
  if (message.header("hold") === "yes") return defer();
  const order = read(message);
  if (order.quantity === 0) throw new Unacceptable(`order ${order.id} is for nothing`);
  if (order.cancelled) return reject(`order ${order.id} was cancelled`);
  if (isGivenUp(message)) {
    throw new DeliveryError(`order ${order.id} was tried ${message.deliveryCount} times`);
  }
  return order.available_in == null ? ack() : defer(order.available_in * 1000);
}
