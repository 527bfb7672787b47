//! The function under an attribute. Its body is never parsed: it stays the user's tokens, so that what is wrong in it is
//! rustc's to say, and an editor finds its way in it whatever the attribute says.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, FnArg, Result, Signature, Type, Visibility, parse_quote};

/// A function without its body.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    /// The body, or whatever stands there.
    rest: TokenStream,
}

impl Function {
    /// The tokens of the body.
    pub(crate) fn body(&self) -> &TokenStream {
        &self.rest
    }

    /// The function with the parameters as they were meant: by `&mut` what a stage writes to, by value its input. It stands
    /// in for one whose parameters are wrong, so that nothing in the body is an error only because of them. `None` where
    /// they are right.
    pub(crate) fn with_parameters_as_meant(&self) -> Option<TokenStream> {
        let mut signature = self.signature.clone();
        let mut changed = false;
        // Where another one comes by value, it may be the input, and this one stands in its place.
        let first_is_input = self.signature.inputs.iter().skip(1).all(is_by_reference);
        for (n, parameter) in signature.inputs.iter_mut().enumerate() {
            let FnArg::Typed(parameter) = parameter else { return None };
            let input = || Some(&*parameter.ty).filter(|_| n == 0 && first_is_input).and_then(input_as_meant);
            if let Some(meant) = meant(n, &parameter.ty).or_else(input) {
                *parameter.ty = meant;
                changed = true;
            }
        }
        let (attributes, visibility, rest) = (&self.attributes, &self.visibility, &self.rest);
        changed.then(|| quote!(#(#attributes)* #[allow(unused_mut)] #visibility #signature #rest))
    }
}

/// What the type of the parameter with this number was meant to be, where that is plain and it is not that.
pub(crate) fn meant(n: usize, ty: &Type) -> Option<Type> {
    let (inner, by_mut) = match ty {
        Type::Reference(reference) => (&*reference.elem, reference.mutability.is_some()),
        ty => (ty, false),
    };
    let Type::Path(path) = inner else { return None };
    let head = path.path.segments.last()?.ident.to_string();
    match head.as_str() {
        "State" | "Out" | "Timers" if n > 0 && !by_mut => Some(parse_quote!(&mut #inner)),
        "Record" if n == 0 && matches!(ty, Type::Reference(_)) => Some(inner.clone()),
        _ => None,
    }
}

fn is_by_reference(parameter: &FnArg) -> bool {
    matches!(parameter, FnArg::Typed(parameter) if matches!(&*parameter.ty, Type::Reference(_)))
}

/// An input of the user's own by `&`: its own type.
fn input_as_meant(ty: &Type) -> Option<Type> {
    let Type::Reference(reference) = ty else { return None };
    let Type::Path(path) = &*reference.elem else { return None };
    let head = path.path.segments.last()?.ident.to_string();
    let is_other = ["State", "Out", "Timers", "Table", "Res"].contains(&head.as_str());
    (!is_other && reference.mutability.is_none()).then(|| (*reference.elem).clone())
}

impl Parse for Function {
    fn parse(stream: ParseStream<'_>) -> Result<Self> {
        Ok(Function {
            attributes: stream.call(Attribute::parse_outer)?,
            visibility: stream.parse()?,
            signature: stream.parse()?,
            rest: stream.parse()?,
        })
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
