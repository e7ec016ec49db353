/* How a message comes in and an outcome goes out: the canonical ABI of `pumphouse:handler@1.0.0`, by hand. */
#include "pumphouse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __wasm__

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define HANDLE "pumphouse:handler/incoming-handler@1.0.0#handle"

/* What the host wrote for a call is freed when the call is over. */
typedef struct block {
    struct block *next;
    max_align_t memory[];
} block;

static block *blocks;

static void *take(size_t size) {
    block *made = malloc(sizeof(block) + size);
    if (made == NULL) abort();
    made->next = blocks;
    blocks = made;
    return made->memory;
}

EXPORT("cabi_realloc")
void *ph_abi_realloc(void *old, size_t old_size, size_t align, size_t size) {
    if (size == 0) return (void *)align;
    (void)align; /* never more than 8 here, and malloc gives as much */
    void *memory = take(size);
    if (old_size > 0) memcpy(memory, old, old_size < size ? old_size : size);
    return memory;
}

typedef struct {
    const char *data;
    uint32_t len;
} abi_text;

typedef struct {
    uint8_t there;
    abi_text text;
} abi_optional_text;

typedef struct {
    uint8_t there;
    uint64_t number;
} abi_optional_number;

typedef struct {
    abi_text name, value;
} abi_header;

typedef struct {
    abi_text id, source;
    uint32_t delivery_count;
    const abi_header *headers;
    uint32_t header_count;
    abi_optional_text content_type, ordering_key;
    abi_optional_number published_at;
    const uint8_t *body;
    uint32_t body_len;
} abi_message;

typedef struct {
    uint8_t kind;
    union {
        abi_optional_number delay;
        struct {
            uint8_t reason;
            abi_text description;
        } rejection;
    } of;
} abi_outcome;

_Static_assert(sizeof(abi_message) == 80, "the layout of the record");
_Static_assert(sizeof(abi_outcome) == 24, "the layout of the variant");

static ph_text text(abi_text from) { return (ph_text){from.data, from.len}; }

static ph_text optional(const abi_optional_text *from) {
    return from->there ? text(from->text) : (ph_text){NULL, 0};
}

static const ph_header *headers(const abi_message *from) {
    if (from->header_count == 0) return NULL;
    ph_header *made = take(from->header_count * sizeof(ph_header));
    for (uint32_t at = 0; at < from->header_count; at++) {
        made[at] = (ph_header){text(from->headers[at].name), text(from->headers[at].value)};
    }
    return made;
}

static void write_outcome(const ph_outcome *outcome, abi_outcome *to) {
    memset(to, 0, sizeof *to);
    to->kind = (uint8_t)outcome->kind;
    if (outcome->kind == PH_DEFER) {
        to->of.delay = (abi_optional_number){outcome->has_delay, outcome->delay_ms};
    } else if (outcome->kind == PH_REJECT) {
        to->of.rejection.reason = (uint8_t)outcome->reason;
        abi_text description = {outcome->description, (uint32_t)strlen(outcome->description)};
        to->of.rejection.description = description;
    }
}

EXPORT(HANDLE)
abi_outcome *ph_abi_handle(const abi_message *from) {
    static ph_outcome outcome;
    static abi_outcome answer;
    ph_message message = {
        .id = text(from->id),
        .source = text(from->source),
        .delivery_count = from->delivery_count,
        .headers = headers(from),
        .header_count = from->header_count,
        .content_type = optional(&from->content_type),
        .ordering_key = optional(&from->ordering_key),
        .has_published_at = from->published_at.there,
        .published_at = from->published_at.number,
        .body = from->body,
        .body_len = from->body_len,
    };
    outcome = handle(&message);
    write_outcome(&outcome, &answer);
    return &answer;
}

EXPORT("cabi_post_" HANDLE)
void ph_abi_post(abi_outcome *answer) {
    (void)answer;
    while (blocks != NULL) {
        block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
}

IMPORT("wasi:logging/logging@0.1.0-draft", "log")
void ph_abi_log(uint32_t level, const char *context, size_t context_len, const char *text, size_t len);

void ph_log(ph_level level, const char *text) {
    ph_abi_log((uint32_t)level, "", 0, text, strlen(text));
}

typedef struct {
    uint8_t failed;
    abi_optional_text value; /* or the error: its kind and its text */
} abi_setting;

IMPORT("wasi:config/store@0.2.0-rc.1", "get")
void ph_abi_config(const char *name, size_t len, abi_setting *to);

bool ph_config(const char *name, ph_text *value) {
    abi_setting setting;
    ph_abi_config(name, strlen(name), &setting);
    if (setting.failed || !setting.value.there) return false;
    *value = text(setting.value.text);
    return true;
}

IMPORT("pumphouse:secrets/store@1.0.0", "get")
void ph_abi_secret(const char *name, size_t len, abi_optional_text *to);

bool ph_secret(const char *name, ph_text *value) {
    abi_optional_text secret;
    ph_abi_secret(name, strlen(name), &secret);
    if (secret.there) *value = text(secret.text);
    return secret.there;
}

#else /* natively, for tests */

void ph_log(ph_level level, const char *text) { fprintf(stderr, "%d: %s\n", (int)level, text); }

bool ph_config(const char *name, ph_text *value) {
    const char *found = getenv(name);
    if (found != NULL) *value = (ph_text){found, strlen(found)};
    return found != NULL;
}

bool ph_secret(const char *name, ph_text *value) { return ph_config(name, value); }

#endif
