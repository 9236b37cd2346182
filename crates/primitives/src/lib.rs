#![doc = include_str!("../README.md")]

pub mod budget;
pub mod credential;
pub mod duration;
pub mod fix;
pub mod glob;
pub mod members;
pub mod name;
pub mod number;
pub mod percent;
pub mod plain_text;
pub mod pointer;
pub mod quantity;
pub mod suggest;
