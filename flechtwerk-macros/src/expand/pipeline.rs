//! `pipeline!(pub NAME = "name": [stage, stage], resources = [resource])`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Ident, LitStr, Path, Result, Token, Visibility, bracketed, token};

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
    resources: Punctuated<Entry, Token![,]>,
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
    let resources = if stream.is_empty() { Punctuated::new() } else { resources(stream)? };
    if stages.is_empty() {
        return Err(Error::new(
            brackets.span.join(),
            format!("a pipeline has at least one stage: {EXAMPLE}"),
        ));
    }
    Ok(Declared { attributes, visibility, ident, name, stages, resources })
}

/// `resources = [http, db]`
fn resources(stream: ParseStream<'_>) -> Result<Punctuated<Entry, Token![,]>> {
    const AFTER: &str = "after the stages come the resources, if there are any: `resources = [http]`";
    if !stream.peek(Ident) || stream.fork().parse::<Ident>()? != "resources" {
        return Err(stream.error(AFTER));
    }
    let word = stream.parse::<Ident>()?;
    if !(stream.peek(Token![=]) && stream.peek2(token::Bracket)) {
        return Err(Error::new(word.span(), "`resources` is a list: `resources = [http]`"));
    }
    stream.parse::<Token![=]>()?;
    let content;
    bracketed!(content in stream);
    let resources = content.parse_terminated(Entry::parse, Token![,])?;
    stream.parse::<Option<Token![,]>>()?;
    if !stream.is_empty() {
        return Err(stream.error("nothing comes after the resources"));
    }
    Ok(resources)
}

/// What the parser says, and how it should be.
fn with_example(error: Error) -> Error {
    match error.to_string() {
        text if text.contains(EXAMPLE) || text.contains("resources") => error,
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
    let Declared { attributes, visibility, ident, name, stages, resources } = &declared;
    let stages_listed = list(stages, "__S", |n, alias, span| {
        let listed = shown_at(quote!(#glue::Listable), span);
        let listed = quote_spanned!(span=> <#alias as #listed>::LISTED);
        let check = shown_at(quote!(__TABLE.entry), span);
        let ordinal = quote_spanned!(span=> (#n));
        (quote!(#glue::Entry { ordinal: #n, listed: #listed }), quote!(#check #ordinal))
    });
    let resources_listed = list(resources, "__R", |n, alias, span| {
        let listed = shown_at(quote!(#glue::ListableResource), span);
        let listed = quote_spanned!(span=> <#alias as #listed>::LISTED);
        let check = shown_at(quote!(#glue::resource), span);
        let arguments = quote_spanned!(span=> (__RESOURCES, #n));
        (quote!(#glue::ResourceEntry { ordinal: #n, listed: #listed }), quote!(#check #arguments))
    });
    let Listed { aliases, entries, checks } = stages_listed;
    let Listed { aliases: resource_aliases, entries: resource_entries, checks: resource_checks } =
        resources_listed;
    let written = stages.len();
    quote! {
        #(#attributes)*
        #visibility static #ident: #glue::Pipeline = {
            #errors
            #(#aliases)*
            #(#resource_aliases)*
            const __ENTRIES: &[#glue::Entry] = &[#(#entries),*];
            const __RESOURCES: &[#glue::ResourceEntry] = &[#(#resource_entries),*];
            const __TABLE: &#glue::Table<#written> =
                &#glue::check::<#written, { #glue::places(__ENTRIES) }>(#name, __ENTRIES, __RESOURCES);
            #(#checks)*
            #(#resource_checks)*
            #glue::Pipeline {
                name: #name,
                stages: &#glue::stages::<{ __ENTRIES.len() }>(__ENTRIES),
                resources: __RESOURCES,
            }
        };
    }
}

/// A list of paths, each under an alias.
#[derive(Default)]
struct Listed {
    aliases: Vec<TokenStream>,
    entries: Vec<TokenStream>,
    checks: Vec<TokenStream>,
}

/// Each path is named once, in its alias; `make` gives its entry, and the check that is shown at it.
fn list(
    paths: &Punctuated<Entry, Token![,]>,
    prefix: &str,
    make: impl Fn(usize, &Ident, Span) -> (TokenStream, TokenStream),
) -> Listed {
    let mut listed = Listed::default();
    for (n, entry) in paths.iter().enumerate() {
        let (cfgs, path) = (&entry.attributes, &entry.path);
        let span = path.segments.last().map_or_else(Span::call_site, |segment| segment.ident.span());
        let mut alias = format_ident!("{prefix}{n}");
        alias.set_span(span);
        let (item, check) = make(n, &alias, span);
        listed.aliases.push(quote! {
            #(#cfgs)*
            #[allow(non_camel_case_types)]
            type #alias = #path;
        });
        listed.entries.push(quote!(#(#cfgs)* #item));
        listed.checks.push(quote!(#(#cfgs)* const _: () = #check;));
    }
    listed
}
