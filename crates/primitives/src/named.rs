//! The macro for closed sets of words.

/// Makes an enum whose values have stable names, with `ALL`, `name` and `from_name`:
/// `named! { /// doc pub enum Name { /// doc Variant = "word", } }`.
#[doc(hidden)]
#[macro_export]
macro_rules! __named {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word that users read and machines match on.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The value of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    };
}

pub use crate::__named as named;
