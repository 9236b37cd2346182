//! A hash of JSON text that does not depend on the order of keys, for comparing large values without keeping
//! them.
//!
//! Its keys are new for each comparison, so nobody can look for two values with one hash.

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::model::view::Text;

/// What hashes the values of one comparison.
#[derive(Debug, Default)]
pub(super) struct ContentHash(RandomState);

impl ContentHash {
    /// The hash of a JSON value; `None` for a text that cannot be read, or nests too deep.
    #[must_use]
    pub(super) fn of(&self, text: &str) -> Option<u64> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let hash = Hashing(&self.0).deserialize(&mut deserializer).ok()?;
        deserializer.end().ok().map(|()| hash)
    }

    /// The hash of one entry of an object.
    #[must_use]
    pub(super) fn entry(&self, key: &str, value: u64) -> u64 {
        self.0.hash_one((key, value))
    }
}

/// Reads a value. Each type has a number of its own; the entries of an object are sorted by the hashes of their keys.
#[derive(Clone, Copy)]
struct Hashing<'h>(&'h RandomState);

impl Hashing<'_> {
    fn one(self, value: impl Hash) -> u64 {
        self.0.hash_one(value)
    }
}

impl<'de> DeserializeSeed<'de> for Hashing<'_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Hashing<'_> {
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
        Ok(self.one((4_u8, value.to_bits())))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<u64, E> {
        Ok(self.one((5_u8, value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u64, A::Error> {
        let mut all = self.0.hash_one(6_u8);
        while let Some(element) = list.next_element_seed(self)? {
            all = self.0.hash_one((all, element));
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            entries.push((self.0.hash_one(&*key), map.next_value_seed(self)?));
        }
        // Of entries with equal keys the last one counts, as for Go.
        entries.reverse();
        entries.sort_by_key(|(key, _)| *key);
        entries.dedup_by_key(|(key, _)| *key);
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
        let hash = ContentHash::default();
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
        let hash = ContentHash::default();
        assert_eq!((hash.of(&deep), hash.of("{"), hash.of("1 2")), (None, None, None));
    }
}
