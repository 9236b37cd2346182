//! The macro for a family's table of finding codes.

/// Makes one `static` per code and the list `ALL`: `codes! { "family"; /// doc NAME = "kebab-name", Cause; }`.
///
/// Pages are below `pages/codes` in the folder of the crate that calls the macro, where `pages` has links to `docs`, so
/// that a package of the crate has them too, and the build script packs them into the `PAGES` of the crate.
#[doc(hidden)]
#[allow(clippy::crate_in_macro_def, reason = "the pages are those of the calling crate")]
#[macro_export]
macro_rules! __codes {
    ($family:literal; $($(#[$doc:meta])* $ident:ident = $name:literal, $cause:ident;)+) => {
        $(
            $(#[$doc])*
            pub static $ident: $crate::finding::Code = $crate::finding::Code {
                name: concat!($family, "/", $name),
                cause: $crate::finding::Cause::$cause,
                page: $crate::page::Page(|| crate::PAGES.page(concat!("codes/", $family, "/", $name, ".md"))),
            };
        )+

        /// Every code of the family.
        pub static ALL: [&$crate::finding::Code; [$($name),+].len()] = [$(&$ident),+];
    };
}
pub use crate::__codes as codes;
