#include "ph_json.h"

#include <string.h>

#define DEEPEST 64

typedef struct {
    const char *at;
    const char *end;
    int depth;
} reader;

static bool skip_value(reader *r, ph_json *value);

static void skip_space(reader *r) {
    while (r->at < r->end && strchr(" \t\n\r", *r->at) != NULL && *r->at != 0) r->at++;
}

static bool next_is(reader *r, char wanted) {
    if (r->at >= r->end || *r->at != wanted) return false;
    r->at++;
    return true;
}

static bool is_digit(reader *r) { return r->at < r->end && *r->at >= '0' && *r->at <= '9'; }

static bool skip_digits(reader *r) {
    if (!is_digit(r)) return false;
    while (is_digit(r)) r->at++;
    return true;
}

static bool skip_number(reader *r) {
    next_is(r, '-');
    if (!next_is(r, '0') && !skip_digits(r)) return false;
    if (next_is(r, '.') && !skip_digits(r)) return false;
    if (next_is(r, 'e') || next_is(r, 'E')) {
        if (!next_is(r, '+')) next_is(r, '-');
        return skip_digits(r);
    }
    return true;
}

static int hex(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Four hexadecimal digits. */
static bool read_unit(reader *r, uint32_t *unit) {
    *unit = 0;
    for (int digits = 0; digits < 4; digits++, r->at++) {
        int digit = r->at < r->end ? hex(*r->at) : -1;
        if (digit < 0) return false;
        *unit = *unit * 16 + (uint32_t)digit;
    }
    return true;
}

/* What follows `\u`: one unit, or two that belong together. */
static bool read_escaped(reader *r, uint32_t *point) {
    uint32_t low;
    if (!read_unit(r, point)) return false;
    if (*point < 0xD800 || *point > 0xDFFF) return true;
    if (*point > 0xDBFF || !next_is(r, '\\') || !next_is(r, 'u') || !read_unit(r, &low)) return false;
    if (low < 0xDC00 || low > 0xDFFF) return false;
    *point = 0x10000 + ((*point - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

typedef struct {
    char *text; /* NULL: nothing is kept */
    size_t room;
    size_t len;
} writer;

static void put(writer *w, uint32_t byte) {
    if (w->text != NULL && w->len < w->room) w->text[w->len] = (char)byte;
    w->len++;
}

static void put_point(writer *w, uint32_t point) {
    if (point < 0x80) {
        put(w, point);
        return;
    }
    int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    static const uint32_t leads[] = {0, 0xC0, 0xE0, 0xF0};
    put(w, leads[more] | point >> (6 * more));
    while (more-- > 0) put(w, 0x80 | (point >> (6 * more) & 0x3F));
}

static bool read_escape(reader *r, writer *w) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (r->at >= r->end || *r->at == 0) return false;
    char name = *r->at++;
    if (name == 'u') {
        uint32_t point;
        if (!read_escaped(r, &point)) return false;
        put_point(w, point);
        return true;
    }
    const char *found = strchr(names, name);
    if (found == NULL) return false;
    put(w, (uint32_t)values[found - names]);
    return true;
}

static bool read_string(reader *r, writer *w) {
    if (!next_is(r, '"')) return false;
    while (r->at < r->end) {
        unsigned char byte = (unsigned char)*r->at++;
        if (byte == '"') return true;
        if (byte < 0x20) return false;
        if (byte != '\\') put(w, byte);
        else if (!read_escape(r, w)) return false;
    }
    return false;
}

static bool skip_string(reader *r) {
    writer nowhere = {NULL, 0, 0};
    return read_string(r, &nowhere);
}

static bool skip_word(reader *r, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

static bool skip_array(reader *r) {
    if (!next_is(r, '[')) return false;
    skip_space(r);
    if (next_is(r, ']')) return true;
    do {
        ph_json ignored;
        if (!skip_value(r, &ignored)) return false;
    } while (next_is(r, ','));
    return next_is(r, ']');
}

/* Whether a string of the text, which stands there with its quotes, is this name. */
static bool names(ph_text string, const char *name) {
    char kept[128];
    ph_json value = {PH_JSON_STRING, string};
    return ph_json_text(&value, kept, sizeof kept) && strcmp(kept, name) == 0;
}

/* Skips an object, and notes the member of a name. */
static bool skip_object(reader *r, const char *name, ph_json *member, bool *found) {
    if (!next_is(r, '{')) return false;
    skip_space(r);
    if (next_is(r, '}')) return true;
    do {
        skip_space(r);
        const char *key = r->at;
        if (!skip_string(r)) return false;
        ph_text string = {key, (size_t)(r->at - key)};
        skip_space(r);
        ph_json value;
        if (!next_is(r, ':') || !skip_value(r, &value)) return false;
        if (name != NULL && names(string, name)) {
            *member = value;
            *found = true;
        }
    } while (next_is(r, ','));
    return next_is(r, '}');
}

static bool skip_kind(reader *r, ph_json_kind *kind) {
    switch (r->at < r->end ? *r->at : 0) {
    case '{': *kind = PH_JSON_OBJECT; return skip_object(r, NULL, NULL, NULL);
    case '[': *kind = PH_JSON_ARRAY; return skip_array(r);
    case '"': *kind = PH_JSON_STRING; return skip_string(r);
    case 't': *kind = PH_JSON_BOOL; return skip_word(r, "true");
    case 'f': *kind = PH_JSON_BOOL; return skip_word(r, "false");
    case 'n': *kind = PH_JSON_NULL; return skip_word(r, "null");
    default: *kind = PH_JSON_NUMBER; return skip_number(r);
    }
}

static bool skip_value(reader *r, ph_json *value) {
    skip_space(r);
    const char *start = r->at;
    if (++r->depth > DEEPEST || !skip_kind(r, &value->kind)) return false;
    r->depth--;
    value->raw = (ph_text){start, (size_t)(r->at - start)};
    skip_space(r);
    return true;
}

bool ph_json_is_object(ph_text text) {
    reader r = {text.data, text.data + text.len, 0};
    ph_json value;
    return skip_value(&r, &value) && value.kind == PH_JSON_OBJECT && r.at == r.end;
}

bool ph_json_member(ph_text object, const char *name, ph_json *value) {
    reader r = {object.data, object.data + object.len, 0};
    bool found = false;
    skip_space(&r);
    return skip_object(&r, name, value, &found) && found;
}

bool ph_json_number(const ph_json *value, uint64_t *number) {
    if (value->kind != PH_JSON_NUMBER) return false;
    *number = 0;
    for (size_t at = 0; at < value->raw.len; at++) {
        char digit = value->raw.data[at];
        if (digit < '0' || digit > '9') return false;
        if (*number > (UINT64_MAX - 9) / 10) return false;
        *number = *number * 10 + (uint64_t)(digit - '0');
    }
    return true;
}

bool ph_json_text(const ph_json *value, char *text, size_t room) {
    if (value->kind != PH_JSON_STRING || room == 0) return false;
    reader r = {value->raw.data, value->raw.data + value->raw.len, 0};
    writer w = {text, room - 1, 0};
    if (!read_string(&r, &w) || w.len > w.room) return false;
    text[w.len] = 0;
    return memchr(text, 0, w.len) == NULL;
}
