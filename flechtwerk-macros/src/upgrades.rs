//! The `upgrade_from(1 = Old, with = path)` of a state: how the states of older versions are read.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Error, LitInt, Path, Result, Token, Type};

use crate::args::split;
use crate::errors::{Errors, nearest};
use crate::spans::written;

pub(crate) const NAME: &str = "upgrade_from";
const EXAMPLE: &str = "`upgrade_from(1 = OldType, with = path::to::function)`";

/// One step, from a version to the next.
pub(crate) struct Upgrade {
    number: LitInt,
    pub(crate) version: u32,
    pub(crate) old: Type,
    pub(crate) with: Path,
}

/// Takes the upgrades out of the arguments; gives them and the other arguments.
pub(crate) fn take(tokens: TokenStream, errors: &mut Errors) -> (Vec<Upgrade>, TokenStream) {
    let (mut upgrades, mut others) = (vec![], TokenStream::new());
    for argument in split(tokens) {
        let mut words = argument.clone().into_iter();
        match words.next() {
            Some(TokenTree::Ident(word)) if word == NAME => match one(&word, words.collect()) {
                Ok(upgrade) => upgrades.push(upgrade),
                Err(error) => errors.push(error),
            },
            _ => others.extend(quote::quote!(#argument,)),
        }
    }
    (upgrades, others)
}

fn one(name: &Ident, rest: TokenStream) -> Result<Upgrade> {
    let mut tokens = rest.clone().into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == proc_macro2::Delimiter::Parenthesis => {
            if group.stream().is_empty() {
                return Err(Error::new(group.span(), format!("which version, and how? {EXAMPLE}")));
            }
            (|stream: ParseStream<'_>| contents(stream, group.span_close())).parse2(group.stream())
        }
        (None, _) => Err(Error::new(
            name.span(),
            format!("`{NAME}` names a version, its type and a function: {EXAMPLE}"),
        )),
        _ => Err(Error::new_spanned(rest, format!("`{NAME}` has its arguments in parentheses: {EXAMPLE}"))),
    }
}

/// `1 = OldType, with = path`
fn contents(stream: ParseStream<'_>, end: Span) -> Result<Upgrade> {
    let Ok(number) = stream.parse::<LitInt>() else {
        let first: TokenTree = stream.parse()?;
        stream.parse::<TokenStream>()?;
        return Err(Error::new(first.span(), format!("the version comes first, as a number: {EXAMPLE}")));
    };
    let version = match number.base10_parse::<u32>() {
        Ok(version) if version > 0 => version,
        _ => {
            stream.parse::<TokenStream>()?;
            return Err(Error::new(number.span(), format!("a version is a number from 1 to {}", u32::MAX)));
        }
    };
    let missing = |stream: ParseStream<'_>, what: String| {
        // A parser must come to its end, or its own complaint is the one that shows.
        stream.parse::<TokenStream>()?;
        Err(Error::new(number.span(), what))
    };
    if stream.parse::<Token![=]>().is_err() {
        return missing(
            stream,
            format!("version {version} lacks the type that it was: `{version} = OldType`"),
        );
    }
    let Ok(old) = stream.parse::<Type>() else {
        let rest: TokenStream = stream.parse()?;
        let span = rest.into_iter().next().map_or(end, |token| token.span());
        return Err(Error::new(
            span,
            format!("what stood in version {version} is a type: `{version} = OldType`"),
        ));
    };
    let lacks = format!(
        "nothing says how version {version} becomes version {}: add `with = path::to::function`, a function that takes a \
         `{}`",
        version.saturating_add(1),
        written(&old),
    );
    if stream.parse::<Token![,]>().is_err() || stream.is_empty() {
        return missing(stream, lacks);
    }
    let key = stream.call(Ident::parse_any)?;
    if key != "with" {
        stream.parse::<TokenStream>()?;
        let hint = match nearest(&key.to_string(), ["with"]) {
            Some(_) => "did you mean `with`?".to_owned(),
            None => format!("write {EXAMPLE}"),
        };
        return Err(Error::new(key.span(), format!("`{key}` is not an argument of `{NAME}`; {hint}")));
    }
    stream.parse::<Token![=]>()?;
    let rest = stream.fork().parse::<TokenStream>()?;
    let with = stream.call(Path::parse_mod_style);
    let _ = stream.parse::<Token![,]>();
    match with {
        Ok(with) if stream.is_empty() => Ok(Upgrade { number, version, old, with }),
        _ => {
            stream.parse::<TokenStream>()?;
            Err(Error::new_spanned(rest, "`with` is the path of a function: `with = path::to::function`"))
        }
    }
}

/// Sorts the steps, and checks that they lead to the current version without a gap.
pub(crate) fn check(upgrades: &mut [Upgrade], current: Option<(u32, &LitInt)>, errors: &mut Errors) {
    let Some(first) = upgrades.first() else { return };
    let Some((current, _)) = current else {
        let (next, number) = (first.version.saturating_add(1), &first.number);
        errors.at(number, format!("the version that is written now is not named: add `version = {next}`"));
        return;
    };
    // The sort is stable: of two steps from one version the second is one too many.
    upgrades.sort_by_key(|upgrade| upgrade.version);
    for (n, upgrade) in upgrades.iter().enumerate() {
        let (version, number) = (upgrade.version, &upgrade.number);
        let next = upgrades.get(n + 1).map_or(current, |next| next.version);
        if version >= current {
            errors.at(
                number,
                format!(
                    "version {version} is not older than the current one, which is {current}: an upgrade leads from an \
                     older version"
                ),
            );
        } else if n > 0 && upgrades[n - 1].version == version {
            errors.at(number, format!("version {version} is upgraded twice: keep one"));
        } else if next > version + 1 && next <= current {
            let gap = version + 1;
            errors.at(
                number,
                format!(
                    "each step leads to the next version, here from {version} to {gap}, and none leads on from there: add \
                     `{NAME}({gap} = .., with = ..)`"
                ),
            );
        }
    }
}
