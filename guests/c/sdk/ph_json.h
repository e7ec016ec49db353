/* A small reader of JSON objects, without allocating. */
#ifndef PH_JSON_H
#define PH_JSON_H

#include "pumphouse.h"

typedef enum {
    PH_JSON_NULL,
    PH_JSON_BOOL,
    PH_JSON_NUMBER,
    PH_JSON_STRING,
    PH_JSON_ARRAY,
    PH_JSON_OBJECT
} ph_json_kind;

/* A value, as it stands in the text. */
typedef struct {
    ph_json_kind kind;
    ph_text raw;
} ph_json;

/* Whether a text is one JSON object and nothing else. */
bool ph_json_is_object(ph_text text);
/* A member of an object for which `ph_json_is_object` holds; the last one where the name stands there twice. */
bool ph_json_member(ph_text object, const char *name, ph_json *value);
/* The value as a whole number from 0 on. */
bool ph_json_number(const ph_json *value, uint64_t *number);
/* The value as text, closed by a zero. False where it is none, or needs more room than there is. */
bool ph_json_text(const ph_json *value, char *text, size_t room);

#endif
