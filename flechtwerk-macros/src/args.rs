//! The arguments of an attribute: `key = value, ..`. Each bad argument is one error, and the others are still read.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Error, LitInt, LitStr, Path, Result, Token, Type, bracketed, parse_quote, parse2};

use crate::errors::{Errors, nearest};
use crate::spans::{ends, written};

/// What kind of value an argument has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `[A, B]`
    Types,
    /// `A`, or `[A, B]`
    Topics,
    /// `SomeType`
    Type,
    /// `Utf8`
    Codec,
    /// `".."`
    Text,
    /// `3`
    Number,
    /// `path::to::it`
    Path,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Kind {
    fn example(self) -> String {
        match self {
            Kind::Types => "[Topic]".into(),
            Kind::Topics => "Topic".into(),
            Kind::Type => "SomeType".into(),
            Kind::Codec => "Utf8".into(),
            Kind::Text => "\"..\"".into(),
            Kind::Number => "2".into(),
            Kind::Path => "path::to::it".into(),
            Kind::Word(words) => words.join(" | "),
        }
    }
}

enum Value {
    Types(Vec<Type>, Span),
    Type(Type),
    Text(LitStr),
    Number(LitInt),
    Path(Path),
    Word(Ident),
}

/// The arguments that were given.
pub(crate) struct Args {
    values: Vec<(Ident, Value)>,
    /// Arguments that were given with a mistake: nobody should call them missing as well.
    broken: Vec<String>,
    /// The path of the flechtwerk crate.
    pub(crate) krate: Path,
}

impl Args {
    /// Reads the arguments of `macro_name`, which knows those of `spec` and `crate`.
    pub(crate) fn parse(
        tokens: TokenStream,
        spec: &[(&'static str, Kind)],
        macro_name: &str,
        errors: &mut Errors,
    ) -> Args {
        let mut args = Args { values: Vec::new(), broken: Vec::new(), krate: parse_quote!(::flechtwerk) };
        for argument in split(tokens) {
            // Which argument this is, or was probably meant to be.
            let mut meant = String::new();
            let words: Vec<String> = argument.clone().into_iter().map(|token| token.to_string()).collect();
            match (|stream: ParseStream<'_>| parse_one(stream, spec, macro_name, &mut meant)).parse2(argument)
            {
                Ok((key, Value::Path(path))) if key == "crate" => args.krate = path,
                Ok((key, _)) if args.values.iter().any(|(other, _)| *other == key) => {
                    errors.at(&key, format!("`{key}` is given twice; keep one"));
                }
                Ok(value) => args.values.push(value),
                Err(error) => {
                    args.broken.push(meant);
                    args.broken.extend(words);
                    errors.push(error);
                }
            }
        }
        args
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// True if it was given, rightly or not.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        self.get(name).is_some() || self.broken.iter().any(|broken| broken == name)
    }

    /// A list and where its brackets are.
    pub(crate) fn types(&self, name: &str) -> Option<(&[Type], Span)> {
        match self.get(name) {
            Some(Value::Types(types, span)) => Some((types, *span)),
            _ => None,
        }
    }

    pub(crate) fn ty(&self, name: &str) -> Option<&Type> {
        match self.get(name) {
            Some(Value::Type(ty)) => Some(ty),
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&LitStr> {
        match self.get(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn number(&self, name: &str) -> Option<&LitInt> {
        match self.get(name) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn path(&self, name: &str) -> Option<&Path> {
        match self.get(name) {
            Some(Value::Path(path)) => Some(path),
            _ => None,
        }
    }

    pub(crate) fn word(&self, name: &str) -> Option<String> {
        match self.get(name) {
            Some(Value::Word(word)) => Some(word.to_string()),
            _ => None,
        }
    }
}

fn parse_one(
    stream: ParseStream<'_>,
    spec: &[(&'static str, Kind)],
    macro_name: &str,
    meant: &mut String,
) -> Result<(Ident, Value)> {
    if !stream.peek(Ident::peek_any) {
        let rest: TokenStream = stream.parse()?;
        let shown = written(&rest);
        // A list can only be the one argument that is a list.
        let list = spec.iter().find(|(_, kind)| *kind == Kind::Types).filter(|_| shown.starts_with('['));
        let mend = match list {
            Some((name, _)) => {
                *meant = (*name).to_owned();
                format!("the argument lacks its name: `{name} = {shown}`")
            }
            None => format!("arguments of `{macro_name}` are `name = value`, not `{shown}`"),
        };
        return Err(Error::new_spanned(rest, mend));
    }
    let key = stream.call(Ident::parse_any)?;
    let name = key.to_string();
    *meant = name.clone();
    let known = || spec.iter().map(|(name, _)| *name).chain(["crate"]);
    let Some(kind) = spec
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, kind)| *kind)
        .or((name == "crate").then_some(Kind::Path))
    else {
        stream.parse::<TokenStream>()?;
        let hint = match nearest(&name, known()) {
            Some(near) => {
                *meant = near.to_owned();
                format!("did you mean `{near}`?")
            }
            None => {
                format!("it knows {}", known().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
            }
        };
        return Err(Error::new(key.span(), format!("`{name}` is not an argument of `{macro_name}`; {hint}")));
    };
    if !stream.peek(Token![=]) {
        stream.parse::<TokenStream>()?;
        return Err(Error::new(key.span(), format!("`{name}` needs a value: `{name} = {}`", kind.example())));
    }
    stream.parse::<Token![=]>()?;
    let rest = stream.fork().parse::<TokenStream>()?;
    match parse_value(stream, kind) {
        Ok(value) if stream.is_empty() => Ok((key, value)),
        Ok(_) if stream.peek(Ident::peek_any) && stream.peek2(Token![=]) => {
            let next = stream.call(Ident::parse_any)?;
            stream.parse::<TokenStream>()?;
            Err(Error::new(next.span(), format!("a comma is missing in front of `{next}`")))
        }
        _ => {
            stream.parse::<TokenStream>()?;
            let mend = match kind {
                Kind::Types if parse2::<Type>(rest.clone()).is_ok_and(|ty| matches!(ty, Type::Path(_))) => {
                    format!("`{name}` is a list: `{name} = [{}]`", written(&rest))
                }
                Kind::Types => format!("`{name}` is a list of topics: `{name} = [One, Another]`"),
                Kind::Topics => {
                    format!(
                        "`{name}` is a topic, or a list of them: `{name} = Topic`, `{name} = [One, Another]`"
                    )
                }
                Kind::Codec => format!("`{name}` is a codec: `{name} = Utf8`"),
                Kind::Type => format!("`{name}` is a type: `{name} = SomeType`"),
                Kind::Text => format!("`{name}` is a text: `{name} = \"..\"`"),
                Kind::Number => format!("`{name}` is a number: `{name} = 2`"),
                Kind::Path => format!("`{name}` is a path: `{name} = path::to::it`"),
                Kind::Word(words) => {
                    let words: Vec<_> = words.iter().map(|word| format!("`{name} = {word}`")).collect();
                    format!("`{name}` is either {}", words.join(" or "))
                }
            };
            Err(if rest.is_empty() { Error::new(key.span(), mend) } else { Error::new_spanned(rest, mend) })
        }
    }
}

fn parse_value(stream: ParseStream<'_>, kind: Kind) -> Result<Value> {
    Ok(match kind {
        Kind::Topics if !stream.peek(syn::token::Bracket) => {
            let ty = stream.parse::<Type>()?;
            let span = ends(&ty).0;
            Value::Types(vec![ty], span)
        }
        Kind::Types | Kind::Topics => {
            let content;
            let brackets = bracketed!(content in stream);
            let types = content.parse_terminated(Type::parse, Token![,])?;
            Value::Types(types.into_iter().collect(), brackets.span.join())
        }
        Kind::Type | Kind::Codec => Value::Type(stream.parse()?),
        Kind::Text => Value::Text(stream.parse()?),
        Kind::Number => Value::Number(stream.parse()?),
        Kind::Path => Value::Path(stream.call(Path::parse_mod_style)?),
        Kind::Word(words) => {
            let word = stream.call(Ident::parse_any)?;
            if !words.iter().any(|known| word == known) {
                return Err(Error::new(word.span(), "unknown word"));
            }
            Value::Word(word)
        }
    })
}

/// Splits at commas that stand outside of angle brackets; other brackets are one token each.
pub(crate) fn split(tokens: TokenStream) -> Vec<TokenStream> {
    let mut arguments = vec![];
    let mut current = vec![];
    let mut depth = 0;
    for token in tokens {
        if let TokenTree::Punct(punct) = &token {
            match punct.as_char() {
                '<' => depth += 1,
                '>' => depth -= 1,
                ',' if depth <= 0 => {
                    arguments.push(std::mem::take(&mut current));
                    continue;
                }
                _ => {}
            }
        }
        current.push(token);
    }
    arguments.push(current);
    arguments
        .into_iter()
        .filter(|tokens| !tokens.is_empty())
        .map(|tokens| tokens.into_iter().collect())
        .collect()
}
