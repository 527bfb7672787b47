//! The macros of flechtwerk; use them through that crate, which documents what a pipeline is.
//!
//! This file is the front: documentation and forwarding. The work is done on `proc_macro2` tokens, by functions that
//! tests can call: [`args`] reads the arguments, [`item`] the function (its body stays opaque), [`model`] puts the two
//! together and finds mistakes, [`expand`] writes code. Mistakes are collected by [`errors`], and where errors of rustc
//! will show is decided in [`spans`].

mod args;
mod errors;
mod expand;
mod item;
mod model;
mod names;
mod spans;

#[cfg(test)]
mod snapshots;

use proc_macro::TokenStream;

/// Makes a unit struct a topic.
#[proc_macro_attribute]
pub fn topic(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::topic(arguments.into(), item.into()).into()
}

/// Makes an async function a stage.
#[proc_macro_attribute]
pub fn transformer(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::transformer(arguments.into(), item.into()).into()
}

/// Makes an enum the input of stages that read several topics.
#[proc_macro_derive(Input, attributes(input))]
pub fn input(item: TokenStream) -> TokenStream {
    expand::input(item.into()).into()
}

/// Makes a type that serde knows a state.
#[proc_macro_derive(State, attributes(state))]
pub fn state(item: TokenStream) -> TokenStream {
    expand::state(item.into()).into()
}

#[doc(hidden)]
#[proc_macro]
pub fn pipeline(tokens: TokenStream) -> TokenStream {
    expand::pipeline(tokens.into()).into()
}
