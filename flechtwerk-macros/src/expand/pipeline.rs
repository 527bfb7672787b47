//! `pipeline!(pub NAME = "name": [stage, stage])`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Ident, LitStr, Path, Result, Token, Visibility, bracketed};

use crate::errors::Errors;
use crate::names;
use crate::spans::shown_at;

const EXAMPLE: &str = "`pipeline!(pub DEMO = \"demo\": [first, second])`";

struct Entry {
    attributes: Vec<Attribute>,
    path: Path,
}

impl Parse for Entry {
    fn parse(stream: ParseStream<'_>) -> Result<Self> {
        Ok(Entry {
            attributes: stream.call(Attribute::parse_outer)?,
            path: stream.call(Path::parse_mod_style)?,
        })
    }
}

struct Declared {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    ident: Ident,
    name: LitStr,
    stages: Punctuated<Entry, Token![,]>,
}

fn parse(stream: ParseStream<'_>) -> Result<Declared> {
    let attributes = stream.call(Attribute::parse_outer)?;
    let visibility = stream.parse()?;
    let ident = stream.parse()?;
    stream.parse::<Token![=]>()?;
    let name = stream.parse()?;
    stream.parse::<Token![:]>()?;
    let content;
    let brackets = bracketed!(content in stream);
    let stages = content.parse_terminated(Entry::parse, Token![,])?;
    stream.parse::<Option<Token![,]>>()?;
    if !stream.is_empty() {
        return Err(stream.error(format!("nothing comes after the stages: {EXAMPLE}")));
    }
    if stages.is_empty() {
        return Err(Error::new(
            brackets.span.join(),
            format!("a pipeline has at least one stage: {EXAMPLE}"),
        ));
    }
    Ok(Declared { attributes, visibility, ident, name, stages })
}

/// What the parser says, and how it should be.
fn with_example(error: Error) -> Error {
    match error.to_string() {
        text if text.contains(EXAMPLE) => error,
        text => Error::new(error.span(), format!("{text}; a pipeline is written {EXAMPLE}")),
    }
}

/// The first two tokens are `@` and the path of the crate.
pub(crate) fn pipeline(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().skip(1);
    let krate = tokens.next();
    let glue = quote!(#krate::glue);
    let declared = match parse.parse2(tokens.collect()) {
        Ok(declared) => declared,
        Err(error) => return with_example(error).into_compile_error(),
    };
    let mut errors = Errors::default();
    names::check_part("a pipeline's name", &declared.name, &mut errors);
    let errors = errors.to_tokens();
    let Declared { attributes, visibility, ident, name, stages } = &declared;
    let mut entries = vec![];
    let mut listings = vec![];
    let mut checks = vec![];
    for (n, entry) in stages.iter().enumerate() {
        let (cfgs, path) = (&entry.attributes, &entry.path);
        let span =
            path.segments.last().map_or_else(proc_macro2::Span::call_site, |segment| segment.ident.span());
        let mut alias = format_ident!("__S{n}");
        alias.set_span(span);
        let listed = shown_at(quote!(#glue::Listable), span);
        let listed = quote_spanned!(span=> <#alias as #listed>::LISTED);
        entries.push(quote! {
            #(#cfgs)*
            #[allow(non_camel_case_types)]
            type #alias = #path;
        });
        listings.push(quote!(#(#cfgs)* #glue::Entry { ordinal: #n, listed: #listed }));
        let check = shown_at(quote!(__TABLE.entry), span);
        let ordinal = quote_spanned!(span=> (#n));
        checks.push(quote!(#(#cfgs)* const _: () = #check #ordinal;));
    }
    let written = stages.len();
    quote! {
        #(#attributes)*
        #visibility static #ident: #glue::Pipeline = {
            #errors
            #(#entries)*
            const __ENTRIES: &[#glue::Entry] = &[#(#listings),*];
            const __TABLE: &#glue::Table<#written> =
                &#glue::check::<#written, { #glue::places(__ENTRIES) }>(#name, __ENTRIES);
            #(#checks)*
            #glue::Pipeline { name: #name, stages: &#glue::stages::<{ __ENTRIES.len() }>(__ENTRIES) }
        };
    }
}
