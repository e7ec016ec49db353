/* A message handler for Pumphouse, in C.
 *
 * Define `handle`. It is called once for every delivery; what it is given lives until it returns. Where texts end is
 * in their length: they are not closed by a zero.
 *
 * The sources need nothing but a C99 compiler and its library: they compile natively for tests (`ph_log` then prints to
 * standard error), and with a WebAssembly target into a module that `pumphouse wrap` makes a component of. */
#ifndef PUMPHOUSE_H
#define PUMPHOUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* UTF-8. `data` is NULL where an optional text is not there. */
typedef struct {
    const char *data;
    size_t len;
} ph_text;

typedef struct {
    ph_text name;
    ph_text value; /* a binary value is in base64, a number in digits */
} ph_header;

/* One delivery of one message. */
typedef struct {
    ph_text id;              /* the broker's, the same over every redelivery */
    ph_text source;          /* as the configuration spells it */
    uint32_t delivery_count; /* the deliveries before this one: 0 the first time */
    const ph_header *headers;
    size_t header_count;
    ph_text content_type; /* optional */
    ph_text ordering_key; /* optional */
    bool has_published_at;
    uint64_t published_at; /* milliseconds since 1970 */
    const uint8_t *body;
    size_t body_len;
} ph_message;

typedef enum { PH_UNACCEPTABLE = 0, PH_DELIVERY_ERROR = 1, PH_NONE = 2 } ph_reason;

typedef enum { PH_ACK = 0, PH_DEFER = 1, PH_REJECT = 2 } ph_kind;

/* What becomes of the message. Made by the functions below. */
typedef struct {
    ph_kind kind;
    bool has_delay;
    uint64_t delay_ms;
    ph_reason reason;
    char description[512]; /* closed by a zero */
} ph_outcome;

/* Done: the message is removed. */
ph_outcome ph_ack(void);
/* Not now: it comes back after the subscription's backoff, or after so many milliseconds. */
ph_outcome ph_defer(void);
ph_outcome ph_defer_for(uint64_t ms);
/* Never. The text, as of printf, is for people; what is longer than 511 bytes is cut between two characters. */
ph_outcome ph_reject(ph_reason reason, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* The handler. Yours. */
ph_outcome handle(const ph_message *message);

/* The value of the first header of that name; `data` is NULL where there is none. */
ph_text ph_header_value(const ph_message *message, const char *name);
/* Whether a text is this one. */
bool ph_is(ph_text text, const char *other);
/* The body as text. False where it is no UTF-8. */
bool ph_body_text(const ph_message *message, ph_text *text);

typedef enum { PH_TRACE, PH_DEBUG, PH_INFO, PH_WARN, PH_ERROR, PH_CRITICAL } ph_level;

/* One line in the operator's log. A component that calls this needs `grants.logging = true`. */
void ph_log(ph_level level, const char *text);
/* A setting by name. False where there is none. A component that calls this needs `grants.config`. */
bool ph_config(const char *name, ph_text *value);
/* A secret by name. False where none is granted. A component that calls this needs `grants.secrets`. */
bool ph_secret(const char *name, ph_text *value);

#ifdef __cplusplus
}
#endif

#endif
