//! Where errors are shown. rustc marks an expression from its first to its last token, if both come from the user's
//! source; so generated code that may turn out wrong begins with a token at the first, and ends with one at the last
//! token of what it is about. Names in it are still looked up where the macro is defined (`located_at`).

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;

/// The spans of the first and the last token.
pub(crate) fn ends(tokens: impl ToTokens) -> (Span, Span) {
    let mut tokens = tokens.into_token_stream().into_iter();
    let first = tokens.next();
    let last = tokens.last();
    let first = first.map_or_else(Span::call_site, |token| token.span());
    (first, last.map_or(first, |token| token.span()))
}

/// `tokens`, shown at `span`.
pub(crate) fn shown_at(tokens: TokenStream, span: Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) => {
                let mut shown = proc_macro2::Group::new(group.delimiter(), shown_at(group.stream(), span));
                shown.set_span(group.span().located_at(span));
                shown.into()
            }
            mut token => {
                token.set_span(token.span().located_at(span));
                token
            }
        })
        .collect()
}

/// The call `function generics arguments`, shown as the whole of `subject`. In `generics` there may be tokens of the
/// user's, which stay where they are.
pub(crate) fn call_shown_as(
    subject: impl ToTokens,
    function: TokenStream,
    generics: TokenStream,
    arguments: TokenStream,
) -> TokenStream {
    let (first, last) = ends(subject);
    let mut path: Vec<TokenTree> = shown_at(function, first).into_iter().chain(generics).collect();
    if let Some(end) = path.last_mut() {
        end.set_span(end.span().located_at(last));
    }
    path.into_iter().chain(shown_at(arguments, last)).collect()
}

/// The type alias `alias`, shown as the whole of the type that it stands for.
pub(crate) fn alias_shown_as(subject: &Type, glue: &TokenStream, alias: &Ident) -> TokenStream {
    passed_shown_as(subject, shown_at(quote!(#alias as #glue::Same), ends(subject).0), "T")
}

/// The constant `<subject as trait>::name`. Where the subject does not have the trait, that is shown at the subject.
pub(crate) fn constant_of(subject: &TokenStream, of: &TokenStream, name: &str, span: Span) -> TokenStream {
    let name = Ident::new(name, span);
    let of = shown_at(of.clone(), span);
    quote_spanned!(span=> <#subject as #of>::#name)
}

/// `<projection>::name`, which passes a type on, shown as the whole of `subject`.
pub(crate) fn passed_shown_as(subject: &Type, projection: TokenStream, name: &str) -> TokenStream {
    let (first, last) = ends(subject);
    let open = quote_spanned!(first=> <);
    let end = Ident::new(name, last);
    quote!(#open #projection>::#end)
}

/// Tokens as a person would write them.
pub(crate) fn written(tokens: impl ToTokens) -> String {
    let mut text = String::new();
    write(tokens.into_token_stream(), &mut text);
    text
}

fn write(tokens: TokenStream, text: &mut String) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    proc_macro2::Delimiter::Parenthesis => ("(", ")"),
                    proc_macro2::Delimiter::Brace => ("{", "}"),
                    proc_macro2::Delimiter::Bracket => ("[", "]"),
                    proc_macro2::Delimiter::None => ("", ""),
                };
                text.push_str(open);
                write(group.stream(), text);
                text.push_str(close);
            }
            TokenTree::Punct(punct) => {
                match punct.as_char() {
                    '=' | '+' => text.push(' '),
                    _ => {}
                }
                text.push(punct.as_char());
                match punct.as_char() {
                    ',' | ';' | '=' | '+' => text.push(' '),
                    ':' if punct.spacing() == proc_macro2::Spacing::Alone && !text.ends_with("::") => {
                        text.push(' ');
                    }
                    _ => {}
                }
            }
            word => {
                if text.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                    text.push(' ');
                }
                text.push_str(&word.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_types_as_people_do() {
        for text in [
            "Record<Words>",
            "&mut State<Count>",
            "&'a u8",
            "word: Record<a::b::Words>",
            "Json<Vec<(u8, String)>>",
            "a::B<dyn C + D>",
        ] {
            let tokens: TokenStream = text.parse().unwrap();
            assert_eq!(written(tokens), text);
        }
    }
}
