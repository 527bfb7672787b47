//! `#[derive(State)]`, `#[state(version = 2)]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{DeriveInput, parse_quote};

use super::derive_args;
use crate::args::Kind;
use crate::errors::Errors;

pub(crate) fn state(item: TokenStream) -> TokenStream {
    let declared: DeriveInput = match syn::parse2(item) {
        Ok(declared) => declared,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    let args = derive_args(&declared.attrs, "state", &[("version", Kind::Number)], &mut errors);
    let version = args.number("version").map(|number| match number.base10_parse::<u32>() {
        Ok(version) if version > 0 => quote!(const VERSION: u32 = #version;),
        _ => {
            let most = u32::MAX;
            errors.at(
                number,
                format!("a version is a number from 1 to {most}: raise it by one when the type changes"),
            );
            TokenStream::new()
        }
    });
    if let Some(lifetime) = declared.generics.lifetimes().next() {
        errors.at(
            lifetime,
            "a state owns all it holds, since it is stored and read back: it can't have a lifetime",
        );
        return errors.to_tokens();
    }
    let krate = &args.krate;
    let ident = &declared.ident;
    let name = ident.unraw().to_string();
    let mut generics = declared.generics.clone();
    if generics.type_params().next().is_some() {
        let clause = generics.make_where_clause();
        clause.predicates.push(parse_quote!(Self: #krate::glue::Storable + ::core::marker::Send + 'static));
    }
    let (of, types, clause) = generics.split_for_impl();
    // The bounds of the trait are checked at the type's name, where the derive is missing its companions.
    let head = quote_spanned!(ident.span()=> impl #of #krate::glue::StateValue for #ident #types #clause);
    let errors = errors.to_tokens();
    quote! {
        #errors
        const _: () = {
            #head {
                #version
                const NAME: &'static str = #name;
            }
        };
    }
}
