//! Certificates of memgate's own making: the Secret, the leaf and both `caBundle`s, as the
//! apiserver sees them. Each trial has a memgate, a namespace and configurations of its own.

mod installation;
mod load;
mod trials;
mod wipes;

pub(crate) use trials::trials;
