/* Takes orders that arrive as JSON: the rules of guests/vectors/README.md, in C. */
#include "ph_json.h"

typedef struct {
    char id[200];
    uint64_t quantity;
    bool cancelled;
    bool waits;
    uint64_t available_in; /* seconds until the goods are there */
} order;

static bool read_order(ph_text body, order *to) {
    ph_json id, quantity, cancelled, available;
    if (!ph_json_is_object(body)) return false;
    if (!ph_json_member(body, "id", &id) || !ph_json_text(&id, to->id, sizeof to->id)) return false;
    if (!ph_json_member(body, "quantity", &quantity)) return false;
    if (!ph_json_number(&quantity, &to->quantity) || to->quantity > UINT32_MAX) return false;
    to->cancelled = ph_json_member(body, "cancelled", &cancelled) && ph_is(cancelled.raw, "true");
    to->waits = ph_json_member(body, "available_in", &available) && available.kind != PH_JSON_NULL;
    return !to->waits || ph_json_number(&available, &to->available_in);
}

/* Whether the message came as often as its sender allows. */
static bool is_given_up(const ph_message *message) {
    ph_text most = ph_header_value(message, "give-up-after");
    ph_json number = {PH_JSON_NUMBER, most};
    uint64_t deliveries;
    return most.len > 0 && ph_json_number(&number, &deliveries) && message->delivery_count >= deliveries;
}

ph_outcome handle(const ph_message *message) {
    ph_text body;
    order order;
    if (ph_is(ph_header_value(message, "hold"), "yes")) return ph_defer();
    if (!ph_body_text(message, &body) || !read_order(body, &order)) {
        return ph_reject(PH_UNACCEPTABLE, "the body is no order");
    }
    if (order.quantity == 0) {
        return ph_reject(PH_UNACCEPTABLE, "order %s is for nothing", order.id);
    }
    if (order.cancelled) return ph_reject(PH_NONE, "order %s was cancelled", order.id);
    if (is_given_up(message)) {
        unsigned tries = message->delivery_count;
        return ph_reject(PH_DELIVERY_ERROR, "order %s was tried %u times", order.id, tries);
    }
    return order.waits ? ph_defer_for(order.available_in * 1000) : ph_ack();
}
