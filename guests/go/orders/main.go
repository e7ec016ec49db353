// Orders takes orders that arrive as JSON: the rules of guests/vectors/README.md, in Go.
package main

import (
	"strconv"
	"time"

	"orders/pumphouse"
)

func init() { pumphouse.Handle(handle) }

// main is not called.
func main() {}

type order struct {
	ID        *string `json:"id"`
	Quantity  *uint32 `json:"quantity"`
	Cancelled bool    `json:"cancelled"`
	// AvailableIn is the seconds until the goods are there. None: they are there.
	AvailableIn *uint32 `json:"available_in"`
}

func handle(message *pumphouse.Message) error {
	if hold, _ := message.Header("hold"); hold == "yes" {
		return pumphouse.Defer()
	}
	var order order
	if err := message.JSON(&order); err != nil {
		return err
	}
	switch {
	case order.ID == nil || order.Quantity == nil:
		return pumphouse.Unacceptable("the body is no order")
	case *order.Quantity == 0:
		return pumphouse.Unacceptable("order %s is for nothing", *order.ID)
	case order.Cancelled:
		return pumphouse.Reject("order %s was cancelled", *order.ID)
	case isGivenUp(message):
		return pumphouse.DeliveryError("order %s was tried %d times", *order.ID, message.DeliveryCount)
	case order.AvailableIn != nil:
		return pumphouse.DeferFor(time.Duration(*order.AvailableIn) * time.Second)
	}
	return nil
}

// isGivenUp says whether the message came as often as its sender allows.
func isGivenUp(message *pumphouse.Message) bool {
	most, there := message.Header("give-up-after")
	deliveries, err := strconv.ParseUint(most, 10, 32)
	return there && err == nil && uint64(message.DeliveryCount) >= deliveries
}
