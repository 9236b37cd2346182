//! Borrowed views of just the JSON fields that decisions read.
//!
//! A view is made in one pass over the text. Fields that it does not name are skipped without being stored and
//! without recursion, so neither their size nor their depth matters. Lists and maps are kept up to a limit, which
//! ends the decision. JSON is read as in Go: of several equal keys of a map the last wins, `null` is absent, and keys are
//! compared after unescaping. In a review, and in a pod as a whole, a repeated field is an error: their types in Go have the
//! field, so both values count there.
//!
//! A `tree` reads by a table of fields and keeps a copy that may outlive the text. Views are apart from it because nearly
//! every review is about a pod: their fields are known to the compiler, and nothing is copied.

mod reading;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

pub use self::reading::{Element, Place, Quota, Reading, View, read};

/// The label by which a pod or a namespace opts out of injection, or a pod requires it.
pub const INJECT_LABEL: &str = "memgate.dev/inject";

/// How an error about a repeated field begins.
pub const REPEATED: &str = "a repeated field";

/// An error about a repeated field.
#[doc(hidden)]
#[cold]
pub fn repeated<T, E: Error>() -> Result<T, E> {
    Err(E::custom(REPEATED))
}

/// A string, borrowed unless it holds an escape.
///
/// A type of its own, because serde borrows a `Cow` only directly in a field and silently copies
/// it inside an `Option`, a list or a map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

// serde's own reader of a `Cow` also accepts bytes, and is called for each key.
impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowed;

        impl<'de> Visitor<'de> for Borrowed {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            #[inline]
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Borrowed)
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Makes views of types that serde reads as they are.
macro_rules! plain_views {
    ($($type:ty),*) => {
        $(impl<'de: 'a, 'a> View<'de> for $type {
            fn read<D: Deserializer<'de>>(deserializer: D, _place: &Place<'_>) -> Result<Self, D::Error> {
                Self::deserialize(deserializer)
            }
        })*
    };
}
plain_views!(Text<'a>, &'a RawValue, bool);

/// Makes view types: `view! { Container { name: Text<'a> = "name", … } … }`
///
/// `null` reads as a view without fields. With `element` in front of the name, `null` is an error: nothing can be
/// patched into a list element that is `null`. A quota in front limits how many of these views a list keeps.
#[doc(hidden)]
#[macro_export]
macro_rules! __view {
    () => {};
    ($(#[$meta:meta])* in $quota:ident element $name:ident $fields:tt $($rest:tt)*) => {
        $crate::view::view! { @ Err(E::custom("null where an object belongs")), [$quota] $(#[$meta])* $name $fields }
        $crate::view::view! { $($rest)* }
    };
    ($(#[$meta:meta])* in $quota:ident $name:ident $fields:tt $($rest:tt)*) => {
        $crate::view::view! { @ Ok($name::default()), [$quota] $(#[$meta])* $name $fields }
        $crate::view::view! { $($rest)* }
    };
    ($(#[$meta:meta])* $name:ident $fields:tt $($rest:tt)*) => {
        $crate::view::view! { @ Ok($name::default()), [] $(#[$meta])* $name $fields }
        $crate::view::view! { $($rest)* }
    };
    (@ $null:expr, [$($quota:ident)?] $(#[$meta:meta])* $name:ident {
        $($(#[$doc:meta])* $field:ident : $type:ty = $key:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default)]
        #[allow(unreachable_pub, reason = "some views are for one module only")]
        pub struct $name<'a> {
            $($(#[$doc])* pub $field: Option<$type>,)*
        }

        impl<'de: 'a, 'a> $crate::view::View<'de> for $name<'a> {
            $(const QUOTA: $crate::view::Quota = $crate::view::Quota::$quota;)?

            fn read<D: serde::Deserializer<'de>>(
                deserializer: D,
                place: &$crate::view::Place<'_>,
            ) -> Result<Self, D::Error> {
                struct Fields<'a, 'p>(
                    &'p $crate::view::Place<'p>,
                    std::marker::PhantomData<&'a ()>,
                );

                impl<'de: 'a, 'a> serde::de::Visitor<'de> for Fields<'a, '_> {
                    type Value = $name<'a>;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
                        $null
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        let mut view = $name::default();
                        let mut fields = 0;
                        while let Some(key) = map.next_key::<$crate::view::Text<'de>>()? {
                            fields += 1;
                            match &*key {
                                $($key => {
                                    if view.$field.is_some() && self.0.is_strict() {
                                        return $crate::view::repeated();
                                    }
                                    let place = self.0.key($key);
                                    view.$field = map.next_value_seed(
                                        $crate::view::Element::<Option<$type>>::at(&place),
                                    )?;
                                })*
                                _ => {
                                    map.next_value::<serde::de::IgnoredAny>()?;
                                }
                            }
                        }
                        self.0.count_fields(fields);
                        Ok(view)
                    }
                }

                deserializer.deserialize_any(Fields(place, std::marker::PhantomData))
            }
        }
    };
}
pub use crate::__view as view;

/// A map of strings such as labels; the last of several equal keys wins.
#[derive(Debug, Clone, Default)]
pub struct Texts<'a>(Vec<(Text<'a>, Option<Text<'a>>)>);

impl Texts<'_> {
    /// All keys, in document order; a repeated key comes more than once.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| &**key)
    }

    /// All keys with their values, in document order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().map(|(key, value)| (&**key, value.as_deref()))
    }

    /// The value of `key`; a `null` reads as the empty string, as in Go.
    pub fn get(&self, key: &str) -> Option<&str> {
        let (_, value) = self.0.iter().rev().find(|(known, _)| &**known == key)?;
        Some(value.as_deref().unwrap_or_default())
    }
}

impl<'de: 'a, 'a> View<'de> for Texts<'a> {
    fn read<D: Deserializer<'de>>(deserializer: D, place: &Place<'_>) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(|_: &str| true, place, &mut None)).map(Texts)
    }
}

/// The annotations that memgate reads. All others stay unread, since they can be long.
#[derive(Debug, Clone, Default)]
pub struct Annotations<'a> {
    read: Texts<'a>,
    others: Others<'a>,
}

/// The entries of a map that nothing but policies asks for: up to [`MAX_ENTRIES`](memgate_primitives::budget::MAX_ENTRIES), or
/// none.
type Others<'a> = Option<Vec<(Text<'a>, &'a RawValue)>>;

impl PartialEq for Annotations<'_> {
    fn eq(&self, other: &Self) -> bool {
        let entries = |it: &Self| -> BTreeMap<String, String> {
            let entries = it.read.entries();
            entries.map(|(key, value)| (key.to_owned(), value.unwrap_or_default().to_owned())).collect()
        };
        entries(self) == entries(other)
    }
}

impl Annotations<'_> {
    /// The value of `key`, if it is among those that memgate reads.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.read.get(key)
    }

    /// All annotations with their texts, where they have one. A repeated key comes more than once, and its last value counts.
    /// `None` if they are too many to be kept.
    pub fn all(&self) -> Option<impl Iterator<Item = (&str, Option<Cow<'_, str>>)>> {
        let others = self.others.as_ref()?.iter();
        let others = others.map(|(key, raw)| (&**key, read::<Text<'_>>(raw.get()).ok().map(|text| text.0)));
        Some(self.read.entries().map(|(key, value)| (key, value.map(Cow::Borrowed))).chain(others))
    }

    /// Whether memgate reads the annotation `key`.
    fn reads(key: &str) -> bool {
        key.starts_with("memgate.dev/") || OF_OTHERS.contains(&key)
    }
}

/// The annotation that the kubelet gives the API object of a static pod.
/// Source: Kubernetes reference, well-known annotations, `kubernetes.io/config.mirror`.
pub const MIRROR_POD: &str = "kubernetes.io/config.mirror";

/// The annotation in which Istio says what it added to a pod.
/// Source: istio, pkg/kube/inject, `SidecarInjectionStatus`.
pub const ISTIO_STATUS: &str = "sidecar.istio.io/status";

/// The annotation with the SCC that admitted a pod. Source: OpenShift documentation, managing security context constraints.
pub const SCC: &str = "openshift.io/scc";

/// The annotations of others that memgate reads.
const OF_OTHERS: [&str; 11] = [
    MIRROR_POD,
    ISTIO_STATUS,
    SCC,
    "sidecar.istio.io/inject",
    "traffic.sidecar.istio.io/excludeOutboundPorts",
    "traffic.sidecar.istio.io/excludeInboundPorts",
    "config.linkerd.io/skip-outbound-ports",
    "consul.hashicorp.com/transparent-proxy-status",
    "consul.hashicorp.com/transparent-proxy-exclude-outbound-ports",
    "kuma.io/sidecar-injected",
    "traffic.kuma.io/exclude-outbound-ports",
];

impl<'de: 'a, 'a> View<'de> for Annotations<'a> {
    fn read<D: Deserializer<'de>>(deserializer: D, place: &Place<'_>) -> Result<Self, D::Error> {
        let mut others = Some(Vec::new());
        let read = deserializer.deserialize_map(Entries(Self::reads, place, &mut others)).map(Texts)?;
        Ok(Self { read, others })
    }
}

/// Reads the entries of a map whose keys pass a test, up to [`MAX_ENTRIES`](memgate_primitives::budget::MAX_ENTRIES).
struct Entries<'p, 'a, F>(F, &'p Place<'p>, &'p mut Others<'a>);

impl<'de: 'a, 'a, F: Fn(&str) -> bool> Visitor<'de> for Entries<'_, 'a, F> {
    type Value = Vec<(Text<'de>, Option<Text<'de>>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Self(reads, place, others) = self;
        let quota = Text::QUOTA;
        let mut entries: Self::Value = Vec::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if !reads(&key) {
                match others {
                    Some(others) if others.len() < quota.most => others.push((key, map.next_value()?)),
                    _ => {
                        map.next_value::<IgnoredAny>()?;
                        *others = None;
                    }
                }
            } else if place.has_room(quota, entries.len()) {
                place.keep(quota);
                entries.push((key, map.next_value()?));
            } else if *key == *INJECT_LABEL {
                // The inject label decides whether a pod may start without its memory, so it is kept behind the limit
                // too.
                let value = map.next_value()?;
                entries.truncate(quota.most);
                entries.push((key, value));
                place.end(quota.limit);
            } else {
                map.next_value::<IgnoredAny>()?;
                place.end(quota.limit);
            }
        }
        Ok(entries)
    }
}
