/* What a handler is given and gives, as plain C. How it crosses the boundary is in pumphouse_abi.c. */
#include "pumphouse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ph_outcome ph_ack(void) { return (ph_outcome){.kind = PH_ACK}; }

ph_outcome ph_defer(void) { return (ph_outcome){.kind = PH_DEFER}; }

ph_outcome ph_defer_for(uint64_t ms) {
    return (ph_outcome){.kind = PH_DEFER, .has_delay = true, .delay_ms = ms};
}

static bool continues(unsigned char byte) { return (byte & 0xC0) == 0x80; }

ph_outcome ph_reject(ph_reason reason, const char *format, ...) {
    ph_outcome outcome = {.kind = PH_REJECT, .reason = reason};
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(outcome.description, sizeof outcome.description, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof outcome.description) {
        size_t end = sizeof outcome.description - 1;
        /* Back to where the last character that was cut begins, if one was. */
        size_t start = end;
        while (start > 0 && continues((unsigned char)outcome.description[start - 1])) start--;
        unsigned char lead = start > 0 ? (unsigned char)outcome.description[start - 1] : 0;
        size_t whole = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
        if (start > 0 && end - (start - 1) < whole) outcome.description[start - 1] = 0;
    }
    return outcome;
}

bool ph_is(ph_text text, const char *other) {
    size_t length = strlen(other);
    return text.data != NULL && text.len == length && memcmp(text.data, other, length) == 0;
}

ph_text ph_header_value(const ph_message *message, const char *name) {
    for (size_t at = 0; at < message->header_count; at++) {
        if (ph_is(message->headers[at].name, name)) return message->headers[at].value;
    }
    return (ph_text){NULL, 0};
}

/* The bytes of the character that begins here; 0 where none does. */
static size_t character(const uint8_t *at, size_t left) {
    uint8_t lead = at[0];
    if (lead < 0x80) return 1;
    size_t whole = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || left < whole) return 0;
    for (size_t next = 1; next < whole; next++) {
        if (!continues(at[next])) return 0;
    }
    bool overlong = (lead == 0xE0 && at[1] < 0xA0) || (lead == 0xF0 && at[1] < 0x90);
    bool beyond = (lead == 0xED && at[1] > 0x9F) || (lead == 0xF4 && at[1] > 0x8F);
    return overlong || beyond ? 0 : whole;
}

bool ph_body_text(const ph_message *message, ph_text *text) {
    for (size_t at = 0; at < message->body_len;) {
        size_t bytes = character(message->body + at, message->body_len - at);
        if (bytes == 0) return false;
        at += bytes;
    }
    *text = (ph_text){(const char *)message->body, message->body_len};
    return true;
}
