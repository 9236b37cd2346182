//! A hash of JSON text that does not depend on the order of keys, for comparing large values without keeping
//! them.

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::view::Text;

/// Hashes the values of one comparison. By default with random keys, so that a user cannot prepare two values with
/// one hash.
#[derive(Debug, Default)]
pub(super) struct ContentHash<S = RandomState>(S);

impl<S: BuildHasher> ContentHash<S> {
    /// The hash of a JSON value; `None` for a text that is not JSON, or nests too deep.
    #[must_use]
    pub(super) fn of(&self, text: &str) -> Option<u64> {
        self.hash(text, false)
    }

    /// The same without fields at the top that are `null`.
    #[must_use]
    pub(super) fn without_null_fields(&self, text: &str) -> Option<u64> {
        self.hash(text, true)
    }

    fn hash(&self, text: &str, drop_nulls: bool) -> Option<u64> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let hash = Hashing { state: &self.0, drop_nulls }.deserialize(&mut deserializer).ok()?;
        deserializer.end().ok().map(|()| hash)
    }

    /// The hash of one entry of an object.
    #[must_use]
    pub(super) fn entry(&self, key: &str, value: u64) -> u64 {
        self.0.hash_one((key, value))
    }
}

/// Reads a value. Each JSON type has a number of its own; the entries of an object are sorted by the hashes of their
/// keys.
struct Hashing<'h, S> {
    state: &'h S,
    drop_nulls: bool,
}

impl<S: BuildHasher> Hashing<'_, S> {
    fn one(&self, value: impl Hash) -> u64 {
        self.state.hash_one(value)
    }

    fn below(&self) -> Self {
        Self { state: self.state, drop_nulls: false }
    }
}

impl<'de, S: BuildHasher> DeserializeSeed<'de> for Hashing<'_, S> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, S: BuildHasher> Visitor<'de> for Hashing<'_, S> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        Ok(self.one(0_u8))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<u64, E> {
        Ok(self.one((1_u8, value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        Ok(self.one((2_u8, value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(self.one((3_u8, value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
        Ok(self.one((4_u8, if value == 0.0 { 0 } else { value.to_bits() })))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<u64, E> {
        Ok(self.one((5_u8, value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u64, A::Error> {
        let mut all = self.one(6_u8);
        while let Some(element) = list.next_element_seed(self.below())? {
            all = self.one((all, element));
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            entries.push((self.one(&*key), map.next_value_seed(self.below())?));
        }
        // Of entries with equal keys the last one counts, as for Go.
        entries.reverse();
        entries.sort_by_key(|(key, _)| *key);
        entries.dedup_by_key(|(key, _)| *key);
        let null = self.one(0_u8);
        entries.retain(|(_, value)| !self.drop_nulls || *value != null);
        Ok(self.one((7_u8, entries)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_values_apart_but_not_orders() {
        let values = [
            "null",
            "true",
            "false",
            "0",
            "1",
            "-1",
            "1.0",
            "1.5",
            "\"\"",
            "\"a\"",
            "[]",
            "{}",
            "[[]]",
            "[1,2]",
            "[2,1]",
            "[[1],2]",
            "{\"a\":1}",
            "{\"a\":2}",
            "{\"b\":1}",
            "{\"a\":1,\"b\":2}",
            "{\"a\":2,\"b\":1}",
            "{\"a\":{\"b\":1}}",
            "{\"a\":null}",
            "{\"a\":[{}]}",
        ];
        let hash = ContentHash::<RandomState>::default();
        for (index, one) in values.iter().enumerate() {
            for other in &values[index + 1..] {
                assert_ne!(hash.of(one), hash.of(other), "{one} {other}");
            }
        }
        let ordered = hash.of("{\"a\":[1,{\"c\":3,\"d\":4}],\"b\":\"x\"}");
        assert_eq!(hash.of(" { \"b\" : \"\\u0078\", \"a\":[1, {\"d\":4,\"c\":3}]}"), ordered);
    }

    #[test]
    fn gives_up_where_it_nests_too_deep() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        let hash = ContentHash::<RandomState>::default();
        assert_eq!((hash.of(&deep), hash.of("{"), hash.of("1 2")), (None, None, None));
    }
}
