//! What an extractor is, once attribute and signature are known to go together as far as tokens can tell. It is a
//! stage like a transformer, but for its first parameter and the rhythm in which it is called.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{FnArg, LitStr, PatType, ReturnType, Type};

use crate::args::{Args, Kind};
use crate::errors::Errors;
use crate::item::Function;
use crate::model::{self, Parameters, Polling, Stage, by_mut_or_value, head, impl_trait, record_of};
use crate::names;
use crate::spans::written;

const SPEC: &[(&str, Kind)] = &[
    ("config", Kind::Topics),
    ("state", Kind::Type),
    ("poll_interval", Kind::Text),
    ("suspended", Kind::Path),
    ("key", Kind::Path),
    ("name", Kind::Text),
    ("application_id", Kind::Text),
];

/// The parameters that an extractor may have after its config.
const POSSIBLE: &str =
    "`&mut State<S>`, `&mut Out<T>`, `&Table<T>`, `&Res<R>`, and your own types made of these";

/// Reads the attribute.
pub(crate) fn arguments(attribute: TokenStream, errors: &mut Errors) -> Args {
    Args::parse(attribute, SPEC, "extractor", errors)
}

/// Puts attribute and signature together. `None` if there are mistakes.
pub(crate) fn stage(args: &Args, function: &Function, errors: &mut Errors) -> Option<Stage> {
    let signature = &function.signature;
    model::check_kind(function, errors);
    let name = model::name(args, &signature.ident, errors);
    if let Some(id) = args.text("application_id") {
        names::check_part("an application id", id, errors);
    }
    let interval = interval(args, errors);
    let config = config(args, errors);
    let parameters: Vec<&PatType> = signature
        .inputs
        .iter()
        .filter_map(|parameter| match parameter {
            FnArg::Typed(typed) => Some(typed),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let sorted = match args.mentions("config") {
        true => with_config(&parameters, function, errors),
        false => {
            without_config(args, errors);
            others(&parameters, &parameters, errors)
        }
    };
    let returns = match &signature.output {
        ReturnType::Type(_, ty) => Some((**ty).clone()),
        ReturnType::Default => {
            errors.at(
                &signature.ident,
                "an extractor says when it is to be polled again: add `-> flechtwerk::Result<Next>`, and \
                 `Ok(Next::Idle)` at the end",
            );
            None
        }
    };
    if !errors.is_empty() {
        return None;
    }
    let input = match config.is_empty() {
        true => syn::parse_quote!(()),
        false => sorted.input?,
    };
    Some(Stage {
        name,
        application_id: args.text("application_id").cloned(),
        inputs: config,
        state: args.ty("state").cloned(),
        key: args.path("key").cloned(),
        order: "Inputs",
        start: "Earliest",
        headers: true,
        input,
        slots: sorted.slots,
        shared: sorted.shared,
        by_mut: sorted.by_mut,
        returns: returns?,
        on_invalid: None,
        dead_letters: None,
        on_timer: None,
        polling: Some(Polling { interval: interval?, suspended: args.path("suspended").cloned() }),
    })
}

/// The interval in milliseconds.
fn interval(args: &Args, errors: &mut Errors) -> Option<u64> {
    let Some(text) = args.text("poll_interval") else {
        if !args.mentions("poll_interval") {
            errors.span(
                Span::call_site(),
                "an extractor says how long it rests when its source has nothing new: `poll_interval = \"30s\"`",
            );
        }
        return None;
    };
    match parse_interval(text) {
        Ok(millis) => Some(millis),
        Err(fault) => {
            errors.at(text, fault);
            None
        }
    }
}

fn parse_interval(text: &LitStr) -> Result<u64, String> {
    let Ok(interval) = humantime::parse_duration(&text.value()) else {
        return Err("this is not a time: `poll_interval` is written like \"500ms\", \"30s\", \"5min\" or \"1h 30min\""
            .to_owned());
    };
    match u64::try_from(interval.as_millis()) {
        Ok(0) => {
            Err("`poll_interval` is at least \"1ms\"; where there is more to fetch, an extractor returns \
                      `Next::Again` and is polled at once"
                .to_owned())
        }
        Ok(millis) if millis <= LONGEST => Ok(millis),
        _ => Err("`poll_interval` is longer than \"10years\", so the extractor would never be polled again"
            .to_owned()),
    }
}

/// Ten years in milliseconds.
const LONGEST: u64 = 10 * 366 * 24 * 60 * 60 * 1000;

fn config(args: &Args, errors: &mut Errors) -> Vec<Type> {
    let Some((types, brackets)) = args.types("config") else { return vec![] };
    if types.is_empty() {
        errors.span(
            brackets,
            "`config` names at least one topic: `config = Topic`; an extractor that needs no configs leaves it out",
        );
    }
    for (n, ty) in types.iter().enumerate() {
        if types[..n].contains(ty) {
            errors
                .at(ty, format!("`{}` stands in `config` twice; a stage reads each topic once", written(ty)));
        }
    }
    types.to_vec()
}

/// The first parameter is the config record, by `&`; all others are `&mut`.
fn with_config(parameters: &[&PatType], function: &Function, errors: &mut Errors) -> Parameters {
    let signature = &function.signature;
    let Some((first, rest)) = parameters.split_first() else {
        if signature.receiver().is_none() {
            errors.span(
                signature.paren_token.span.join(),
                format!(
                    "an extractor with `config` takes its config record first: `async fn {}(config: &Record<Topic>, ..)`",
                    signature.ident
                ),
            );
        }
        return Parameters::default();
    };
    let mut input = None;
    if let Some(part) = impl_trait(&first.ty) {
        errors.at(
            part,
            "a stage can't be generic, since the pipeline runs it as it stands: write the type out",
        );
    } else {
        match &*first.ty {
            Type::Reference(reference) if reference.mutability.is_none() => input = Some((*reference.elem).clone()),
            // Where the config only stands at the wrong place, it is enough to say so there.
            Type::Reference(_) if rest.iter().any(|other| is_config(&other.ty)) => {}
            Type::Reference(reference) if is_slot(&reference.elem) => errors.at(
                &first.ty,
                format!(
                    "the first parameter is the config record, since the attribute says `config`: put `{}` behind a \
                     `config: &Record<Topic>`",
                    written(*first)
                ),
            ),
            Type::Reference(reference) => errors.at(
                &first.ty,
                format!("a config is only looked at, its topic belongs to others: write `&{}`", written(&reference.elem)),
            ),
            ty => errors.at(
                ty,
                format!("a config is polled again and again, so it comes by reference: write `&{}`", written(ty)),
            ),
        }
    }
    Parameters { input, ..others(rest, parameters, errors) }
}

fn is_config(ty: &Type) -> bool {
    matches!(ty, Type::Reference(reference) if record_of(&reference.elem).is_some())
}

fn is_slot(ty: &Type) -> bool {
    matches!(head(ty).as_str(), "State" | "Out")
}

/// What needs a config is not there, and a state is.
fn without_config(args: &Args, errors: &mut Errors) {
    for name in ["suspended", "key"] {
        if let Some(path) = args.path(name) {
            errors.at(
                path,
                format!(
                    "`{name}` is a function of a config record, and this extractor has none: add `config = Topic`, or \
                     remove it"
                ),
            );
        }
    }
    if !args.mentions("state") {
        errors.span(
            Span::call_site(),
            "an extractor without `config` keeps a cursor, and its instances share the work by the changelog: add \
             `state = Type` and a `&mut State<Type>`",
        );
    }
}

/// All of these are `&mut` or `&`. `all` are those of the function.
fn others(parameters: &[&PatType], all: &[&PatType], errors: &mut Errors) -> Parameters {
    let mut sorted = Parameters::default();
    let has_config = parameters.len() < all.len();
    for parameter in parameters {
        if let Some(cfg) = parameter.attrs.iter().find(|attribute| attribute.path().is_ident("cfg")) {
            errors.at(
                cfg,
                "a parameter of a stage can't depend on a `cfg`: write two functions, each with its own",
            );
            continue;
        }
        let ty = &*parameter.ty;
        match ty {
            _ if impl_trait(ty).is_some() => errors.at(
                impl_trait(ty).map(ToTokens::to_token_stream),
                "a stage can't be generic, since the pipeline runs it as it stands: write the type out",
            ),
            Type::Reference(reference) if reference.mutability.is_some() => {
                sorted.slots.push((*reference.elem).clone());
                sorted.by_mut.push(true);
            }
            Type::Reference(reference) if !by_mut_or_value(&reference.elem) => {
                sorted.shared.push((*reference.elem).clone());
                sorted.by_mut.push(false);
            }
            _ if has_config && is_config(ty) && !is_config(&all[0].ty) => {
                errors.at(ty, format!("the config comes first: move `{}` to the front", written(*parameter)))
            }
            _ => errors.at(ty, not_a_slot(ty, has_config)),
        }
    }
    sorted
}

/// What is wrong with a parameter that is not passed as such a type is.
fn not_a_slot(ty: &Type, has_config: bool) -> String {
    let inner = match ty {
        Type::Reference(reference) => &*reference.elem,
        ty => ty,
    };
    let shown = written(inner);
    match (head(inner).as_str(), record_of(inner)) {
        ("Res" | "Table", _) => format!("all configs share one, so it is taken by `&`: write `&{shown}`"),
        ("State" | "Out", _) => {
            format!("a stage writes to it, so it is taken by `&mut`: write `&mut {shown}`")
        }
        (_, Some(topic)) if !has_config => {
            format!("the attribute says nothing of a config: add `config = {topic}`, or remove the parameter")
        }
        (_, Some(_)) => {
            "an extractor takes one config record at a time; for several config topics, make the first \
                         parameter a `&` of an enum with `#[derive(Input)]`"
                .into()
        }
        _ if has_config => {
            format!("a stage can't be given a `{}`: after the config come {POSSIBLE}", written(ty))
        }
        _ => format!(
            "a stage can't be given a `{}`: without `config`, its parameters are {POSSIBLE}",
            written(ty)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<u64, String> {
        parse_interval(&LitStr::new(text, Span::call_site()))
    }

    #[test]
    fn intervals_are_written_as_settings_are() {
        assert_eq!(parsed("1ms"), Ok(1));
        assert_eq!(parsed("30s"), Ok(30_000));
        assert_eq!(parsed("1h 30min"), Ok(5_400_000));
        for wrong in ["", "30", "soon", "0s", "100us", "-1s", "11years", "99999999999999y"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
