//go:build wasip1

package pumphouse

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"
	"unsafe"
)

// The canonical ABI of pumphouse:handler@1.0.0, by hand. An address has 32 bits there, and a Go pointer 64.

type abiText struct {
	data uint32
	len  uint32
}

type abiOptionalText struct {
	there uint8
	text  abiText
}

type abiOptionalNumber struct {
	there  uint8
	number uint64
}

type abiHeader struct{ name, value abiText }

type abiMessage struct {
	id, source    abiText
	deliveryCount uint32
	headers       uint32
	headerCount   uint32
	contentType   abiOptionalText
	orderingKey   abiOptionalText
	publishedAt   abiOptionalNumber
	body          abiText
}

type abiDeferral struct {
	kind  uint8
	delay abiOptionalNumber
}

type abiRejection struct {
	kind        uint8
	_           [7]uint8
	reason      uint8
	description abiText
}

// What does not have the layout of the ABI does not compile.
var (
	_ [unsafe.Sizeof(abiMessage{}) - 80]struct{}
	_ [80 - unsafe.Sizeof(abiMessage{})]struct{}
	_ [24 - unsafe.Sizeof(abiDeferral{})]struct{}
	_ [unsafe.Sizeof(abiDeferral{}) - 24]struct{}
	_ [unsafe.Offsetof(abiRejection{}.description) - 12]struct{}
)

// startup is what the adapter of wasip1 asks for before the runtime is there: two pages.
var startup struct {
	memory [3 * 65536]byte
	taken  uintptr
	over   bool
}

// kept holds what the host wrote for a call, until the call is over.
var kept [][]byte

func init() {
	startup.over = true
	debug.SetGCPercent(-1)
}

// Collecting garbage asks for the time, which no component may do while the host writes a message into it: it would
// trap. So the collector never begins by itself, but here, at the beginning of a call.

// As in Go itself: nothing is collected below it, and then when the heap has doubled.
const leastHeap = 4 << 20

var (
	heap      = []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	collectAt = uint64(leastHeap)
)

func collect() {
	if heapSize() < collectAt {
		return
	}
	runtime.GC()
	collectAt = max(2*heapSize(), leastHeap)
}

func heapSize() uint64 {
	metrics.Read(heap)
	return heap[0].Value.Uint64()
}

//go:wasmexport cabi_realloc
//go:nosplit
func realloc(_ unsafe.Pointer, _, align, size uint32) unsafe.Pointer {
	if startup.over {
		return allocate(align, size)
	}
	base := uintptr(unsafe.Pointer(&startup.memory))
	at := (base+startup.taken+uintptr(align)-1)&^(uintptr(align)-1) - base
	startup.taken = at + uintptr(size)
	return unsafe.Pointer(&startup.memory[at])
}

func allocate(align, size uint32) unsafe.Pointer {
	if size == 0 {
		return unsafe.Pointer(uintptr(align))
	}
	// What is asked for is aligned to 8 at most, and so is every block of 8 bytes or more.
	block := make([]byte, max(size, 8))
	kept = append(kept, block)
	return unsafe.Pointer(&block[0])
}

func pointer(address uint32) unsafe.Pointer { return unsafe.Pointer(uintptr(address)) }

func textOf(text string) abiText {
	return abiText{uint32(uintptr(unsafe.Pointer(unsafe.StringData(text)))), uint32(len(text))}
}

// Copies: the handler may keep what it is given.

func (t abiText) string() string {
	if t.len == 0 {
		return ""
	}
	return strings.Clone(unsafe.String((*byte)(pointer(t.data)), t.len))
}

func (t abiOptionalText) string() string {
	if t.there == 0 {
		return ""
	}
	return t.text.string()
}

func (m *abiMessage) message() *Message {
	made := &Message{
		ID:            m.id.string(),
		Source:        m.source.string(),
		DeliveryCount: m.deliveryCount,
		ContentType:   m.contentType.string(),
		OrderingKey:   m.orderingKey.string(),
		Body:          []byte(m.body.string()),
	}
	if m.publishedAt.there != 0 {
		made.PublishedAt = time.UnixMilli(int64(m.publishedAt.number))
	}
	if m.headerCount > 0 {
		for _, header := range unsafe.Slice((*abiHeader)(pointer(m.headers)), m.headerCount) {
			made.Headers = append(made.Headers, Header{header.name.string(), header.value.string()})
		}
	}
	return made
}

// answer is what the host reads, until it says that the call is over.
var answer struct {
	deferral    abiDeferral
	rejection   abiRejection
	description string
}

//go:wasmexport pumphouse:handler/incoming-handler@1.0.0#handle
func handle(from unsafe.Pointer) unsafe.Pointer {
	if handler == nil {
		panic("no handler was named: call pumphouse.Handle in an init function")
	}
	collect()
	outcome := decide(handler((*abiMessage)(from).message()))
	if outcome.kind == rejected {
		answer.description = strings.ToValidUTF8(outcome.description, "\uFFFD")
		answer.rejection = abiRejection{
			kind:        rejected,
			reason:      uint8(outcome.reason),
			description: textOf(answer.description),
		}
		return unsafe.Pointer(&answer.rejection)
	}
	answer.deferral = abiDeferral{kind: outcome.kind}
	if outcome.hasDelay {
		answer.deferral.delay = abiOptionalNumber{1, outcome.delayMillis}
	}
	return unsafe.Pointer(&answer.deferral)
}

//go:wasmexport cabi_post_pumphouse:handler/incoming-handler@1.0.0#handle
func post(unsafe.Pointer) {
	kept, answer.description = nil, ""
}

//go:wasmimport wasi:logging/logging@0.1.0-draft log
func abiLog(level uint32, context unsafe.Pointer, contextLen uint32, text unsafe.Pointer, len uint32)

// Log writes a line to the operator's log. A component that calls this needs `grants.logging = true`.
func Log(level Level, text string) {
	abiLog(uint32(level), nil, 0, unsafe.Pointer(unsafe.StringData(text)), uint32(len(text)))
}

type abiSetting struct {
	failed uint8
	value  struct {
		there uint8
		text  abiText
	}
}

//go:wasmimport wasi:config/store@0.2.0-rc.1 get
func abiConfig(name unsafe.Pointer, len uint32, to unsafe.Pointer)

// Config returns a setting by name, and whether there is one. A component that calls this needs `grants.config`.
func Config(name string) (string, bool) {
	setting := new(abiSetting)
	abiConfig(unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), unsafe.Pointer(setting))
	if setting.failed != 0 || setting.value.there == 0 {
		return "", false
	}
	return setting.value.text.string(), true
}

//go:wasmimport pumphouse:secrets/store@1.0.0 get
func abiSecret(name unsafe.Pointer, len uint32, to unsafe.Pointer)

// Secret returns a secret by name, and whether one is granted. A component that calls this needs `grants.secrets`.
func Secret(name string) (string, bool) {
	secret := new(abiOptionalText)
	abiSecret(unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), unsafe.Pointer(secret))
	return secret.string(), secret.there != 0
}
