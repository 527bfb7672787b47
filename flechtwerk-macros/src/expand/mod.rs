//! From what was read to generated code; one file per macro.

mod extractor;
mod input;
mod invalid;
mod pipeline;
mod resource;
mod state;
mod timers;
mod topic;
mod transformer;

pub(crate) use extractor::extractor;
pub(crate) use input::input;
pub(crate) use pipeline::pipeline;
pub(crate) use resource::resource;
pub(crate) use state::state;
pub(crate) use topic::topic;
pub(crate) use transformer::transformer;

use syn::Attribute;

use crate::args::{Args, Kind};
use crate::errors::Errors;

/// The arguments of a derive's helper attribute: `#[state(version = 2)]`.
fn derive_args(
    attributes: &[Attribute],
    name: &'static str,
    spec: &[(&'static str, Kind)],
    errors: &mut Errors,
) -> Args {
    Args::parse(derive_tokens(attributes, name, errors), spec, name, errors)
}

/// The tokens of all helper attributes of this name, in one list.
fn derive_tokens(
    attributes: &[Attribute],
    name: &'static str,
    errors: &mut Errors,
) -> proc_macro2::TokenStream {
    let mut tokens = proc_macro2::TokenStream::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
        match attribute.meta.require_list() {
            Ok(list) => {
                let list = &list.tokens;
                tokens.extend(quote::quote!(#list,));
            }
            Err(_) => errors
                .at(attribute, format!("`#[{name}]` says nothing without arguments: add one, or remove it")),
        }
    }
    tokens
}
