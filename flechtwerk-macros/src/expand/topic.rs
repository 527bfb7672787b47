//! `#[topic("name", key = Codec, value = Codec)]`.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Fields, ItemStruct, LitStr};

use crate::args::{Args, Kind};
use crate::errors::Errors;
use crate::item::cfgs;
use crate::names;
use crate::spans::{call_shown_as, written};

const EXAMPLE: &str = "`#[topic(\"words\", key = Utf8, value = Utf8)]`";

pub(crate) fn topic(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let (name, rest) = split_name(arguments, &mut errors);
    let args = Args::parse(rest, &[("key", Kind::Codec), ("value", Kind::Codec)], "topic", &mut errors);
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
    // A codec that is missing or has a mistake is an error found above. As the value of the proof it makes the codec an
    // error that rustc knows to be reported, so that nothing which uses it is an error as well.
    let broken = (args.ty("key").is_none() || args.ty("value").is_none()).then(|| {
        let error = errors.take_one();
        quote!(const __BROKEN: usize = #error;)
    });
    let codec = |part: &str, proof: Ident| match args.ty(part) {
        Some(ty) => {
            let check = call_shown_as(ty, quote!(#krate::glue::codec), quote!(::<#ty>), quote!(()));
            let check = quote!(const #proof: usize = #check;);
            (check, quote!(<#ty as #krate::glue::CheckedBy<#proof>>::It), written(ty))
        }
        None => (TokenStream::new(), quote!(<() as #krate::glue::CheckedBy<__BROKEN>>::It), String::new()),
    };
    let (key_check, key, key_text) = codec("key", format_ident!("__KEY"));
    let (value_check, value, value_text) = codec("value", format_ident!("__VALUE"));
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
            #broken
            #key_check
            #value_check
            impl #of #krate::glue::Topic for #ident #types {
                type KeyCodec = #key;
                type ValueCodec = #value;
                const NAME: &'static str = #name;
                const INFO: &'static #krate::glue::TopicInfo = &#krate::glue::TopicInfo {
                    name: #name,
                    id: concat!(module_path!(), "::", #id),
                    key_codec: #key_text,
                    value_codec: #value_text,
                    key_nullable: <Self::KeyCodec as #krate::glue::Codec>::NULLABLE,
                };
            }
        };
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
