//! Whether a stage's function may look at the headers of its input. Taking headers apart costs more than all the rest of a
//! record, so they are not read for a function that can't see them: one that names its record only to get at its other
//! fields. What is not plain counts as looking.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, Pat};

use crate::item::Function;

/// The fields of a record that are not its headers.
const OTHERS: &[&str] = &["key", "value", "timestamp", "partition", "offset"];
/// Attributes that leave a function's body as it is.
const INERT: &[&str] =
    &["allow", "cfg", "deny", "deprecated", "doc", "expect", "forbid", "inline", "must_use", "warn"];

/// True unless it is plain that the function does not.
pub(crate) fn may_look(function: &Function) -> bool {
    let rewritten = |attribute: &Attribute| !INERT.iter().any(|inert| attribute.path().is_ident(inert));
    if function.attributes.iter().any(rewritten) {
        return true;
    }
    let Some(FnArg::Typed(first)) = function.signature.inputs.first() else { return true };
    match &*first.pat {
        Pat::Wild(_) => false,
        Pat::Ident(named) if named.subpat.is_none() => looks(function.body(), &named.ident),
        _ => true,
    }
}

fn looks(tokens: &TokenStream, record: &Ident) -> bool {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    tokens.iter().enumerate().any(|(n, token)| match token {
        // What a macro makes of its tokens is its own affair.
        TokenTree::Group(group) if n > 0 && is(&tokens[n - 1], '!') => mentions(&group.stream(), record),
        TokenTree::Group(group) => looks(&group.stream(), record),
        TokenTree::Ident(ident) => ident.unraw() == record.unraw() && !reads_another_field(&tokens[n + 1..]),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// A field that is not the headers, and no call of a method of its name.
fn reads_another_field(behind: &[TokenTree]) -> bool {
    let [dot, TokenTree::Ident(field), rest @ ..] = behind else { return false };
    let called =
        matches!(rest.first(), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
    is(dot, '.') && OTHERS.iter().any(|other| field == other) && !called
}

fn mentions(tokens: &TokenStream, record: &Ident) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Group(group) => mentions(&group.stream(), record),
        TokenTree::Ident(ident) => ident.unraw() == record.unraw(),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

fn is(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == punct)
}

#[cfg(test)]
mod tests {
    use super::may_look;
    use crate::item::function;

    fn looks(source: &str) -> bool {
        may_look(&function(&source.parse().unwrap(), "transformer").unwrap())
    }

    #[test]
    fn other_fields_are_no_headers() {
        for body in [
            "",
            "out.send(word.key, word.value.len());",
            "if word.timestamp.is_some() { inner(|| (word.offset, word.partition)) }",
            "let headers = 1; other.headers; log!(\"headers\", out);",
        ] {
            assert!(
                !looks(&format!(
                    "async fn f(word: Record<Words>, out: &mut Out<X>) -> R {{ {body} Ok(()) }}"
                )),
                "{body}"
            );
        }
        assert!(!looks("async fn f(_: Record<Words>) -> R { Ok(()) }"));
        assert!(!looks(
            "#[doc = \"x\"] #[allow(unused)] async fn f(mut r#in: Record<Words>) -> R { r#in.key; Ok(()) }"
        ));
    }

    #[test]
    fn what_is_not_plain_may_look() {
        for body in [
            "word.headers.len();",
            "helper(word);",
            "helper(&word);",
            "let word = word;",
            "match word { Record { headers, .. } => {} }",
            "word.with_offset(1);",
            "word.key();",
            "async { { word } };",
            "log!(\"{}\", word.key);",
            "log!({ (word.key) });",
            "word. r#headers;",
        ] {
            assert!(looks(&format!("async fn f(word: Record<Words>) -> R {{ {body} Ok(()) }}")), "{body}");
        }
        assert!(looks("async fn f(Record { key, .. }: Record<Words>) -> R { Ok(()) }"));
        assert!(looks("async fn f(word @ _: Record<Words>) -> R { Ok(()) }"));
        assert!(looks("#[instrument] async fn f(word: Record<Words>) -> R { Ok(()) }"));
        assert!(looks("async fn f(r#word: Record<Words>) -> R { word; Ok(()) }"));
    }
}
