//! Custom data types of attributes, kept beside the headers in one header ([`TYPES`]).

use std::collections::BTreeMap;

use pumphouse_contract::Headers;

use crate::TYPES;
use crate::attributes::{Attribute, fits};

/// Data types by the name of their attribute.
pub(crate) type Labels = BTreeMap<String, String>;

/// Puts the labels among the headers; nothing where there are none.
pub(crate) fn store(headers: &mut Headers, labels: &Labels) {
    if labels.is_empty() {
        return;
    }
    // A map of texts always has a JSON text.
    if let Ok(text) = serde_json::to_string(labels) {
        headers.set(TYPES, text);
    }
}

/// The headers as attributes, with the labels that they were received with. Duplicates of a name stay.
pub(crate) fn apply(headers: Headers) -> Vec<Attribute> {
    let labels = headers.text(TYPES).and_then(|text| serde_json::from_str::<Labels>(text).ok());
    headers
        .iter()
        .filter(|(name, _)| labels.is_none() || *name != TYPES)
        .map(|(name, value)| {
            let mut attribute = Attribute::new(name, value.clone());
            let label = labels.as_ref().and_then(|labels| labels.get(name));
            if let Some(label) = label.filter(|label| fits(label, value)) {
                attribute.data_type.clone_from(label);
            }
            attribute
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumphouse_contract::HeaderValue;

    #[test]
    fn labels_come_back_where_their_type_fits() {
        let mut headers: Headers = [
            ("id", HeaderValue::from("x")),
            ("n", HeaderValue::Number("1".into())),
            ("plain", HeaderValue::from("y")),
        ]
        .into_iter()
        .collect();
        let labels: Labels =
            [("id", "String.uuid"), ("n", "String.odd")].map(|(n, t)| (n.into(), t.into())).into();
        store(&mut headers, &labels);
        let types: Vec<_> =
            apply(headers).into_iter().map(|one| (one.name, one.data_type)).collect();
        let expected = [("id", "String.uuid"), ("n", "Number"), ("plain", "String")];
        assert_eq!(types, expected.map(|(n, t)| (n.to_owned(), t.to_owned())));
    }

    #[test]
    fn a_header_of_that_name_that_holds_no_labels_is_an_ordinary_one() {
        let headers: Headers = [(TYPES, "not json")].into_iter().collect();
        assert_eq!(apply(headers), [Attribute::new(TYPES, HeaderValue::from("not json"))]);
    }
}
