//! The digest of JSON text, by which large values are compared without keeping them.
//!
//! Its keys are random, so that a user cannot prepare two values with one digest. It is never shown or stored.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::LazyLock;

use serde::de::{Error, MapAccess, SeqAccess};

use crate::view::Text;
use memgate_primitives::json::{Reader, Scalar, Seed, parse};

/// The digest of a JSON text. The order of fields does not matter, nor does a field at the top that is `null`; the
/// last of equal keys counts. `None` for a text that is not JSON or nests too deep.
pub fn of(text: &str) -> Option<u64> {
    parse(text, Seed(Hashing { drop_nulls: true })).ok()
}

/// Reads a value. The JSON type is part of the digest. The entries of an object are sorted by the hashes of their
/// keys.
#[derive(Clone, Copy)]
struct Hashing {
    /// Whether `null` fields of this object do not count.
    drop_nulls: bool,
}

const BELOW: Seed<Hashing> = Seed(Hashing { drop_nulls: false });

static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

fn one(value: impl Hash) -> u64 {
    KEYS.hash_one(value)
}

impl<'de> Reader<'de> for Hashing {
    type Value = u64;

    #[inline]
    fn scalar<E: Error>(self, scalar: Scalar<'de>) -> Result<u64, E> {
        Ok(match scalar {
            Scalar::Null => one(0_u8),
            Scalar::Boolean(value) => one((1_u8, value)),
            // By themselves, 0 and 0.0 have the same hash.
            Scalar::Number(number) => one((2_u8, number.is_i64(), number.is_u64(), number)),
            Scalar::Text(text) => one((5_u8, &*text)),
        })
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<u64, A::Error> {
        let mut all = one(6_u8);
        while let Some(element) = list.next_element_seed(BELOW)? {
            all = one((all, element));
        }
        Ok(all)
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<u64, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = object.next_key::<Text<'de>>()? {
            entries.push((one(&*key), object.next_value_seed(BELOW)?));
        }
        // As in Go, the last of several entries with equal keys counts.
        entries.reverse();
        entries.sort_by_key(|(key, _)| *key);
        entries.dedup_by_key(|(key, _)| *key);
        let null = one(0_u8);
        entries.retain(|(_, value)| !self.drop_nulls || *value != null);
        Ok(one((7_u8, entries)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_values_apart_but_not_orders() {
        let values = [
            "null", "true", "false", "0", "0.0", "1", "-1", "18446744073709551615", "1.0", "1.5", "\"\"",
            "\"a\"", "[]", "{}", "[[]]", "[1,2]", "[2,1]", "[[1],2]", "{\"a\":1}", "{\"a\":2}", "{\"b\":1}",
            "{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}", "{\"a\":{\"b\":1}}", "{\"a\":[{}]}",
        ];
        for (index, one) in values.iter().enumerate() {
            for other in &values[index + 1..] {
                assert_ne!(of(one), of(other), "{one} {other}");
            }
        }
        let ordered = of("{\"a\":[1,{\"c\":3,\"d\":4}],\"b\":\"x\"}");
        assert_eq!(of(" { \"b\" : \"\\u0078\", \"a\":[1, {\"d\":4,\"c\":3}]}"), ordered);
    }

    #[test]
    fn gives_up_where_it_nests_too_deep() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!((of(&deep), of("{"), of("1 2")), (None, None, None));
    }
}
