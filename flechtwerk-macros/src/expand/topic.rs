//! `#[topic("name", key = Codec, value = Codec)]`.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::{Fields, ItemStruct, LitStr, Type, parse_quote};

use crate::args::{Args, Kind};
use crate::errors::Errors;
use crate::item::cfgs;
use crate::names;
use crate::spans::{call_shown_as, ends, shown_at, written};

const EXAMPLE: &str = "`#[topic(\"words\", key = Utf8, value = Utf8)]`";

const SPEC: &[(&str, Kind)] = &[
    ("key", Kind::Codec),
    ("value", Kind::Codec),
    ("row", Kind::Type),
    ("enrich", Kind::Path),
    ("empty_is_delete", Kind::Word(&["true", "false"])),
    ("on_invalid", Kind::Path),
];

pub(crate) fn topic(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let (name, rest) = split_name(arguments, &mut errors);
    let args = Args::parse(rest, SPEC, "topic", &mut errors);
    let Ok(declared) = syn::parse2::<ItemStruct>(item.clone()) else {
        let first =
            item.clone().into_iter().find(|token| matches!(token, TokenTree::Ident(word) if word != "pub"));
        let at = first.map_or_else(Span::call_site, |token| token.span());
        errors.span(
            at,
            "`#[topic]` goes on a unit struct, which then stands for the topic: `pub struct Words;`",
        );
        let errors = errors.to_tokens();
        return quote!(#item #errors);
    };
    if !matches!(declared.fields, Fields::Unit) {
        errors.at(
            &declared.fields,
            "a topic is a unit struct, it holds nothing itself: what its records hold goes into `key = ..` and `value = ..`",
        );
    }
    if let Some(parameter) = declared.generics.params.first() {
        errors.at(
            parameter,
            "a topic can't be generic, since it has one name in Kafka: declare one topic for each type",
        );
    }
    let krate = &args.krate;
    for part in ["key", "value"] {
        if !args.mentions(part) {
            let message =
                format!("a topic says how its {part}s are written: add `{part} = Utf8`, or another codec");
            errors.span(Span::call_site(), message);
        }
    }
    let unit: Type = parse_quote!(());
    let (key, value) = (args.ty("key").unwrap_or(&unit), args.ty("value").unwrap_or(&unit));
    // What is no codec is an error of this constant, once. The codecs pass only with the constant's value, so that for
    // whatever uses the topic they are an error that rustc knows to be reported, and it says no more.
    let proof = match (args.ty("key"), args.ty("value")) {
        (Some(key), Some(value)) => quote!(#krate::glue::codecs::<#key, #value>()),
        // Missing, or given with a mistake: an error found above.
        _ => errors.take_one(),
    };
    let row = row(&args, krate, &mut errors);
    let (key_text, value_text) = (written(key), written(value));
    let ident = &declared.ident;
    let id = ident.unraw().to_string();
    let cfgs = cfgs(&declared.attrs);
    let errors_found = errors.to_tokens();
    let generics = (!declared.generics.params.is_empty()).then(|| declared.generics.split_for_impl());
    let (of, types) = match &generics {
        Some((of, types, _)) => (quote!(#of), quote!(#types)),
        None => Default::default(),
    };
    quote! {
        #item
        #errors_found
        #(#cfgs)*
        const _: () = {
            type __Codecs = <(#key, #value) as #krate::glue::CheckedBy<{ #proof }>>::It;
            impl #of #krate::glue::Topic for #ident #types {
                type KeyCodec = <__Codecs as #krate::glue::Pair>::First;
                type ValueCodec = <__Codecs as #krate::glue::Pair>::Second;
                const INFO: &'static #krate::glue::TopicInfo = &#krate::glue::TopicInfo {
                    name: #name,
                    id: concat!(module_path!(), "::", #id),
                    key_codec: #key_text,
                    value_codec: #value_text,
                    key_nullable: <Self::KeyCodec as #krate::glue::Codec>::NULLABLE,
                    schemas: [
                        <Self::KeyCodec as #krate::glue::Codec>::SCHEMA,
                        <Self::ValueCodec as #krate::glue::Codec>::SCHEMA,
                    ],
                };
                #row
            }
        };
    }
}

/// What the rows of a table of this topic are.
fn row(args: &Args, krate: &syn::Path, errors: &mut Errors) -> TokenStream {
    let (ty, enrich) = (args.ty("row"), args.path("enrich"));
    if let (Some(ty), false) = (ty, args.mentions("enrich")) {
        let message = "`row` says what `enrich` makes: add `enrich = path::to::fn`, or remove it";
        errors.at(ty, message);
    }
    if let (Some(enrich), false) = (enrich, args.mentions("row")) {
        errors.at(enrich, "the type that `enrich` makes has to be named: add `row = SomeType`");
    }
    let glue = quote!(#krate::glue);
    let value = quote!(<<Self as #glue::Topic>::ValueCodec as #glue::Codec>::Item);
    let (ty, enriched, made) = match (ty, enrich) {
        (Some(ty), Some(path)) => {
            let call = call_shown_as(
                path,
                quote!(#glue::enrich),
                shown_at(quote!(::<Self, _>), ends(path).0),
                quote!((#path, key, value)),
            );
            (
                quote!(#ty),
                quote!(
                    const ENRICHED: bool = true;
                ),
                call,
            )
        }
        _ => (value.clone(), quote!(), quote!(#glue::Ok(value))),
    };
    let empty = (args.word("empty_is_delete").as_deref() == Some("true")).then(|| {
        quote!(
            const EMPTY_IS_DELETE: bool = true;
        )
    });
    let on_invalid = args.path("on_invalid").map(|path| {
        let generics = shown_at(quote!(::<#glue::NoDeadLetters, _>), ends(path).0);
        let call = call_shown_as(path, quote!(#glue::on_invalid), generics, quote!((#path, record)));
        quote! {
            const ON_INVALID: ::core::option::Option<fn(&#glue::Invalid<'_>) -> #glue::Answer> =
                ::core::option::Option::Some(|record| #call);
        }
    });
    quote! {
        type Row = #ty;
        #empty
        #on_invalid
        #enriched
        fn row(
            key: &<<Self as #glue::Topic>::KeyCodec as #glue::Codec>::Item,
            value: #value,
        ) -> #glue::Result<Self::Row> {
            #made
        }
    }
}

/// The name comes first and without a key.
fn split_name(arguments: TokenStream, errors: &mut Errors) -> (String, TokenStream) {
    let mut tokens = arguments.into_iter().peekable();
    let literal = match tokens.peek() {
        Some(TokenTree::Literal(_)) => tokens.next(),
        _ => None,
    };
    let name = match literal {
        Some(literal) => match syn::parse2::<LitStr>(TokenStream::from(literal.clone())) {
            Ok(name) => {
                names::check_topic(&name, errors);
                name.value()
            }
            Err(_) => {
                errors.span(literal.span(), format!("a topic's name is a text: {EXAMPLE}"));
                String::new()
            }
        },
        None => {
            let mut ahead = tokens.clone();
            match (ahead.next(), ahead.next()) {
                (Some(TokenTree::Ident(word)), Some(TokenTree::Punct(comma))) if comma.as_char() == ',' => {
                    errors.span(word.span(), format!("a topic's name is a text, in quotes: `\"{word}\"`"));
                    tokens.next();
                }
                _ => errors
                    .span(Span::call_site(), format!("a topic has a name, and it comes first: {EXAMPLE}")),
            }
            String::new()
        }
    };
    if matches!(tokens.peek(), Some(TokenTree::Punct(comma)) if comma.as_char() == ',') {
        tokens.next();
    }
    (name, tokens.collect())
}
