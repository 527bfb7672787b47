//! The function under an attribute. Its body is never parsed: it stays the user's tokens, so that what is wrong in it is
//! rustc's to say, and an editor finds its way in it whatever the attribute says.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, Result, Signature, Visibility};

/// A function without its body.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
}

impl Parse for Function {
    fn parse(stream: ParseStream<'_>) -> Result<Self> {
        let function = Function {
            attributes: stream.call(Attribute::parse_outer)?,
            visibility: stream.parse()?,
            signature: stream.parse()?,
        };
        stream.parse::<TokenStream>()?;
        Ok(function)
    }
}

/// Parses the item; what is no function is one error.
pub(crate) fn function(item: &TokenStream, macro_name: &str) -> Result<Function> {
    syn::parse2(item.clone()).map_err(|error| {
        let other = ["struct", "enum", "union", "impl", "mod", "trait", "type", "const", "static", "use"];
        let keyword = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if other.iter().any(|other| word == other));
        let words: Vec<_> = item.clone().into_iter().take_while(|token| !matches!(token, TokenTree::Ident(word) if word == "fn")).collect();
        match words.iter().find(|token| keyword(token)) {
            // `const fn` and the like do not get here: they parse.
            Some(token) if words.len() == item.clone().into_iter().count() => {
                Error::new(token.span(), format!("`#[{macro_name}]` goes on an `async fn`, not on a `{token}`"))
            }
            _ => error,
        }
    })
}

/// The attributes that decide whether an item exists; they are copied to what is generated beside it.
pub(crate) fn cfgs(attributes: &[Attribute]) -> Vec<&Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect()
}
