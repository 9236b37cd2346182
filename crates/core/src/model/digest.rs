//! The digest of a JSON object, by which objects are compared without keeping them.
//!
//! Nobody gains from two objects of one digest: where they must not differ, they pass as equal.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The digest of a JSON text: the same for two that say the same, in whatever order their fields stand. Of equal
/// keys the last one counts, and at the top a field that is `null` does not. `None` for what is no JSON or nests
/// too deep.
#[must_use]
pub fn of(text: &str) -> Option<u64> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Reader { is_top: true }.deserialize(&mut deserializer).ok()?
}

/// Reads one value: its digest, or `None` for a `null`.
#[derive(Clone, Copy)]
struct Reader {
    is_top: bool,
}

/// The digest of content of a JSON type, which the first letter of its name stands for.
fn digest(json_type: char, content: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    (json_type, content).hash(&mut hasher);
    hasher.finish()
}

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Option<u64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(digest('b', value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(digest('i', value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(digest('u', value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Some(digest('f', if value == 0.0 { 0 } else { value.to_bits() })))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Some(digest('s', value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut hasher = DefaultHasher::new();
        'a'.hash(&mut hasher);
        while let Some(element) = list.next_element_seed(Self { is_top: false })? {
            element.hash(&mut hasher);
        }
        Ok(Some(hasher.finish()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields: Vec<(Option<u64>, Option<u64>)> = Vec::new();
        while let Some(key) = map.next_key_seed(Self { is_top: false })? {
            fields.push((key, map.next_value_seed(Self { is_top: false })?));
        }
        // Of equal keys, the last one ends up in front.
        fields.reverse();
        fields.sort_by_key(|(key, _)| *key);
        fields.dedup_by_key(|(key, _)| *key);
        fields.retain(|(_, value)| !self.is_top || value.is_some());
        Ok(Some(digest('o', fields)))
    }
}
