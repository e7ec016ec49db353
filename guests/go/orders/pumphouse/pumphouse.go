// Package pumphouse is what a message handler for Pumphouse is given and gives.
//
// The package compiles natively, for tests, and for wasip1, where it is the handler's boundary: build with
// GOOS=wasip1 GOARCH=wasm and -buildmode=c-shared, then make a component of the module with `pumphouse wrap`.
package pumphouse

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Header is a name with its value. A binary value is in base64, a number in digits.
type Header struct {
	Name  string
	Value string
}

// Message is one delivery of one message. What it holds may be kept after the call.
type Message struct {
	// ID is the broker's, the same over every redelivery.
	ID string
	// Source is the source as the configuration spells it.
	Source string
	// DeliveryCount is how many deliveries came before this one: 0 the first time.
	DeliveryCount uint32
	// Headers are in the broker's order.
	Headers []Header
	// ContentType is empty where the sender named none.
	ContentType string
	// OrderingKey is empty where no order is kept.
	OrderingKey string
	// PublishedAt is zero where the broker does not tell.
	PublishedAt time.Time
	// Body is what was sent, byte for byte.
	Body []byte
}

// Header returns the value of the first header of that name, and whether there is one.
func (m *Message) Header(name string) (string, bool) {
	for _, header := range m.Headers {
		if header.Name == name {
			return header.Value, true
		}
	}
	return "", false
}

// JSON reads the body into a value. Its error makes the message unacceptable.
func (m *Message) JSON(value any) error {
	if !utf8.Valid(m.Body) {
		return Unacceptable("the body is not UTF-8")
	}
	if err := json.Unmarshal(m.Body, value); err != nil {
		return Unacceptable("the body is not the JSON that is expected: %v", err)
	}
	return nil
}

// Reason decides where a rejected message goes.
type Reason uint8

// The reasons, in the order of the interface.
const (
	// ReasonUnacceptable says that the message itself can never be handled.
	ReasonUnacceptable Reason = iota
	// ReasonDeliveryError says that handling it failed for good.
	ReasonDeliveryError
	// ReasonNone gives none.
	ReasonNone
)

// Rejection is the error that rejects a message. Its text is for people.
type Rejection struct {
	Reason      Reason
	Description string
}

// Error is the description.
func (r *Rejection) Error() string { return r.Description }

// Unacceptable rejects a message that can never be handled.
func Unacceptable(format string, arguments ...any) error {
	return &Rejection{ReasonUnacceptable, fmt.Sprintf(format, arguments...)}
}

// DeliveryError rejects a message that is fine and whose handling failed for good.
func DeliveryError(format string, arguments ...any) error {
	return &Rejection{ReasonDeliveryError, fmt.Sprintf(format, arguments...)}
}

// Reject rejects a message without a reason.
func Reject(format string, arguments ...any) error {
	return &Rejection{ReasonNone, fmt.Sprintf(format, arguments...)}
}

// Deferral is the error that has a message come back, after a delay or after the subscription's backoff.
type Deferral struct {
	// After is how long, where HasDelay says that it counts.
	After    time.Duration
	HasDelay bool
}

// Error says when.
func (d *Deferral) Error() string {
	if d.HasDelay {
		return fmt.Sprintf("deferred for %v", d.After)
	}
	return "deferred"
}

// Defer has the message come back after the subscription's backoff.
func Defer() error { return &Deferral{} }

// DeferFor has the message come back after a delay.
func DeferFor(delay time.Duration) error { return &Deferral{After: delay, HasDelay: true} }

// Level says how much a line of the log matters.
type Level uint8

// The levels, in the order of the interface.
const (
	Trace Level = iota
	Debug
	Info
	Warn
	Error
	Critical
)

// Handler handles one message. No error acknowledges it; a Rejection rejects it; a Deferral has it come back, and so
// does any other error, which is taken for a passing trouble and logged.
type Handler func(*Message) error

var handler Handler

// Handle says which function handles messages. Call it in an init function: main is not called.
func Handle(function Handler) { handler = function }

type outcome struct {
	kind        uint8
	hasDelay    bool
	delayMillis uint64
	reason      Reason
	description string
}

const (
	ack = iota
	deferred
	rejected
)

// decide turns what a handler returned into what the host is told.
func decide(err error) outcome {
	var rejection *Rejection
	var deferral *Deferral
	switch {
	case err == nil:
		return outcome{kind: ack}
	case errors.As(err, &rejection):
		return outcome{kind: rejected, reason: rejection.Reason, description: rejection.Description}
	case errors.As(err, &deferral):
		delay := max(deferral.After.Milliseconds(), 0)
		return outcome{kind: deferred, hasDelay: deferral.HasDelay, delayMillis: uint64(delay)}
	default:
		println("deferred:", err.Error())
		return outcome{kind: deferred}
	}
}
