//! The macro for a family's table of finding codes.

/// Makes one `static` per code and the list `ALL`: `codes! { "family"; /// doc NAME = "kebab-name", Cause; }`.
///
/// A macro, because `include_str!` takes a literal only: the page of each code is part of the
/// binary, and a code without a page does not compile. Pages are below `pages/codes` in the folder of the crate
/// that calls the macro, where `pages` has links to `docs`, so that a package of the crate has them too.
#[doc(hidden)]
#[macro_export]
macro_rules! __codes {
    ($family:literal; $($(#[$doc:meta])* $ident:ident = $name:literal, $cause:ident;)+) => {
        $(
            $(#[$doc])*
            pub static $ident: $crate::finding::Code = $crate::finding::Code {
                name: concat!($family, "/", $name),
                cause: $crate::finding::Cause::$cause,
                page: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/pages/codes/", $family, "/", $name, ".md")),
            };
        )+

        /// Every code of the family.
        pub static ALL: [&$crate::finding::Code; [$($name),+].len()] = [$(&$ident),+];
    };
}
pub use crate::__codes as codes;
