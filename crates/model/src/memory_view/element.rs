//! The elements of the lists of a view.

use std::fmt;

use super::{
    ContainerView, InlineView, OperationView, ReferenceView, SecretView, SharingConfigView, SharingView,
    SourceView, qualified,
};
use memgate_primitives::pointer::Pointer;

/// An element of a list of a view.
pub trait Element: fmt::Debug {
    /// Its place in the object.
    fn field(&self) -> &Pointer;

    /// The place of a part of it, where the parts do not stand together.
    fn field_of(&self, _part: &str) -> &Pointer {
        self.field()
    }

    /// The whole element without its place, for comparing it with one of the stored object. Never shown.
    fn whole(&self) -> String;
}

macro_rules! element {
    ($($view:ty, $it:ident => $whole:expr;)*) => {$(
        impl Element for $view {
            fn field(&self) -> &Pointer {
                &self.field
            }

            fn whole(&self) -> String {
                let $it = self;
                $whole
            }
        }
    )*};
}

element! {
    SecretView, it => format!("{}/{} {}", it.namespace, it.name, it.key.as_deref().unwrap_or_default());
    InlineView, it => it.digest.to_string();
    ReferenceView, it => format!("{} {}", it.kind, qualified(&it.namespace, &it.name));
    OperationView, it => it.name.clone();
    SharingView, it => it.configs.len().to_string();
    ContainerView, it => {
        let is = (it.init, it.native, it.added);
        format!("{} {} {is:?} {:?}", it.name, it.image, it.limits)
    };
    SourceView, it => it.view.path();
}

impl Element for SharingConfigView {
    fn field(&self) -> &Pointer {
        &self.field
    }

    fn field_of(&self, part: &str) -> &Pointer {
        match part {
            "name" => &self.name_field,
            "access" => &self.access_field,
            _ => &self.field,
        }
    }

    fn whole(&self) -> String {
        format!("{} {:?} {:?}", self.name, self.visibility, self.access)
    }
}
