//! `#[derive(State)]`, `#[state(version = 2, upgrade_from(1 = Old, with = path))]`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{DeriveInput, LitInt, parse_quote};

use super::derive_tokens;
use crate::args::{Args, Kind};
use crate::errors::Errors;
use crate::spans::{alias_shown_as, call_shown_as, ends, shown_at};
use crate::upgrades::{self, Upgrade};

// Upgrades are taken out before; they stand here so that a misspelt one is recognized.
const SPEC: &[(&str, Kind)] = &[("version", Kind::Number), (upgrades::NAME, Kind::Path)];

pub(crate) fn state(item: TokenStream) -> TokenStream {
    let declared: DeriveInput = match syn::parse2(item) {
        Ok(declared) => declared,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    let tokens = derive_tokens(&declared.attrs, "state", &mut errors);
    let (mut upgrades, tokens) = upgrades::take(tokens, &mut errors);
    let args = Args::parse(tokens, SPEC, "state", &mut errors);
    let number = args.number("version");
    let version = number.and_then(|number| version(number, &mut errors));
    // A version with a mistake is one mistake.
    if number.is_some() == version.is_some() && (number.is_some() || !args.mentions("version")) {
        upgrades::check(&mut upgrades, version.zip(number), &mut errors);
    }
    if let Some(lifetime) = declared.generics.lifetimes().next() {
        errors.at(
            lifetime,
            "a state owns all it holds, since it is stored and read back: it can't have a lifetime",
        );
        return errors.to_tokens();
    }
    if let (Some(parameter), Some(_)) = (declared.generics.params.first(), upgrades.first()) {
        errors.at(
            parameter,
            "a generic state can't say how older versions are upgraded, since each of its types had versions of its own: \
             wrap the type in a struct without parameters, and derive `State` for that",
        );
    }
    let krate = &args.krate;
    let glue = quote!(#krate::glue);
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
    let upgrades = if errors.is_empty() { upgrades } else { vec![] };
    let old = old_types(&upgrades, ident, &glue);
    let upgrade = upgrade(&upgrades, ident, &glue);
    let version = version.map(|version| quote!(const VERSION: u32 = #version;));
    let errors = errors.to_tokens();
    quote! {
        #errors
        const _: () = {
            #old
            #head {
                #version
                const NAME: &'static str = #name;
                #upgrade
            }
        };
    }
}

fn version(number: &LitInt, errors: &mut Errors) -> Option<u32> {
    let version = number.base10_parse::<u32>().ok().filter(|version| *version > 0);
    if version.is_none() {
        let most = u32::MAX;
        errors.at(
            number,
            format!("a version is a number from 1 to {most}: raise it by one when the type changes"),
        );
    }
    version
}

/// The name that stands for an old type, once it is known to be a state.
fn alias(version: u32, ident: &Ident) -> Ident {
    format_ident!("__V{version}", span = ident.span())
}

/// The old types, each named once, and the checks that they are what they are said to be.
fn old_types(upgrades: &[Upgrade], ident: &Ident, glue: &TokenStream) -> TokenStream {
    let each = upgrades.iter().map(|Upgrade { version, old, .. }| {
        let (alias, given) = (alias(*version, ident), format_ident!("__Given{version}", span = ident.span()));
        let shown = alias_shown_as(old, glue, &given);
        let proof = call_shown_as(old, quote!(#glue::old_state), quote!(::<#shown>), quote!(()));
        let generics = shown_at(quote!(::<#alias>), ends(old).0);
        let check = call_shown_as(old, quote!(#glue::old_version), generics, quote!((#version)));
        quote! {
            type #given = #old;
            type #alias = <#given as #glue::CheckedBy<{ #proof }>>::It;
            const _: () = #check;
        }
    });
    quote!(#(#each)*)
}

/// Reads a state of any older version, through all steps that lead on from there.
fn upgrade(upgrades: &[Upgrade], ident: &Ident, glue: &TokenStream) -> Option<TokenStream> {
    let oldest = upgrades.first()?.version;
    let steps = upgrades.iter().enumerate().map(|(n, Upgrade { version, with, .. })| {
        let alias = alias(*version, ident);
        let next = match upgrades.get(n + 1) {
            Some(next) => {
                let next = self::alias(next.version, ident);
                quote!(#next)
            }
            None => quote!(Self),
        };
        let generics = shown_at(quote!(::<#alias, #next, _>), ends(with).0);
        let step = call_shown_as(with, quote!(#glue::step), generics, quote!((#with, stored, state)));
        quote! {
            let state = #glue::read::<#alias>(#version, stored, state)?;
            let state = #step?;
        }
    });
    Some(quote! {
        const OLDEST: u32 = #oldest;
        fn upgrade(version: u32, bytes: &[u8]) -> #glue::Tried<Self> {
            let stored = (version, bytes);
            let state = ::core::option::Option::None;
            #(#steps)*
            #glue::upgraded(stored, state)
        }
    })
}
