//! Borrowed views of just the JSON fields that decisions read.
//!
//! A view is made in one pass over the text. Fields that it does not name are skipped without
//! being stored and without recursion, so neither their size nor their depth matters. As Go reads
//! JSON: the last of several equal keys wins, `null` is absent, and keys are compared after
//! unescaping. serde's own derive refuses repeated keys, hence the macro.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// A string, borrowed unless it holds an escape.
///
/// A type of its own, because serde borrows a `Cow` only directly in a field and silently copies
/// it inside an `Option`, a list or a map.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Makes a view type: `view!(Container { name: Text<'a> = "name", … });`
///
/// `null` reads as a view without fields. With `element` in front of its name it is an error: into a
/// list element that is `null` nothing can be patched.
macro_rules! view {
    ($(#[$meta:meta])* element $name:ident $fields:tt) => {
        view! { @ Err(E::custom("null where an object belongs")), $(#[$meta])* $name $fields }
    };
    ($(#[$meta:meta])* $name:ident $fields:tt) => {
        view! { @ Ok($name::default()), $(#[$meta])* $name $fields }
    };
    (@ $null:expr, $(#[$meta:meta])* $name:ident {
        $($(#[$doc:meta])* $field:ident : $type:ty = $key:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        pub struct $name<'a> {
            $($(#[$doc])* pub $field: Option<$type>,)*
        }

        impl<'de: 'a, 'a> serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields<'a>(std::marker::PhantomData<&'a ()>);

                impl<'de: 'a, 'a> serde::de::Visitor<'de> for Fields<'a> {
                    type Value = $name<'a>;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
                        $null
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        let mut view = $name::default();
                        while let Some(key) = map.next_key::<$crate::model::view::Text<'de>>()? {
                            match &*key {
                                $($key => view.$field = map.next_value()?,)*
                                _ => {
                                    map.next_value::<serde::de::IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(view)
                    }
                }

                deserializer.deserialize_any(Fields(std::marker::PhantomData))
            }
        }
    };
}
pub(crate) use view;

/// A map of strings such as labels; the last of several equal keys wins.
#[derive(Debug, Default)]
pub struct Texts<'a>(Vec<(Text<'a>, Option<Text<'a>>)>);

impl Texts<'_> {
    /// All keys, in document order; one that is repeated comes more than once.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| &**key)
    }

    /// The value of `key`; a `null` reads as the empty string, as in Go.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let (_, value) = self.0.iter().rev().find(|(known, _)| &**known == key)?;
        Some(value.as_deref().unwrap_or_default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Texts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(|_: &str| true)).map(Texts)
    }
}

/// The annotations that memgate reads; all others are skipped, since they can be long.
#[derive(Debug, Default)]
pub struct Annotations<'a>(Texts<'a>);

impl Annotations<'_> {
    /// The value of `key`, if it is among those that memgate reads.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)
    }

    /// Whether memgate reads the annotation `key`.
    fn reads(key: &str) -> bool {
        key.starts_with("memgate.dev/") || key == MIRROR_POD
    }
}

/// The annotation that the kubelet gives the API object of a static pod.
/// Source: Kubernetes reference, well-known annotations, `kubernetes.io/config.mirror`.
pub const MIRROR_POD: &str = "kubernetes.io/config.mirror";

impl<'de: 'a, 'a> Deserialize<'de> for Annotations<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(Self::reads)).map(Texts).map(Annotations)
    }
}

/// Reads the entries of a map whose keys pass a test.
struct Entries<F>(F);

impl<'de, F: Fn(&str) -> bool> Visitor<'de> for Entries<F> {
    type Value = Vec<(Text<'de>, Option<Text<'de>>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if (self.0)(&key) {
                entries.push((key, map.next_value()?));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(entries)
    }
}
