//! What a stage is, once attribute and signature are known to go together as far as tokens can tell.

use proc_macro2::{Ident, Span, TokenStream};
use syn::ext::IdentExt;
use syn::{
    FnArg, GenericArgument, GenericParam, LitStr, Pat, PatType, Path, PathArguments, ReturnType, Type,
};

use crate::args::{Args, Kind};
use crate::errors::Errors;
use crate::headers;
use crate::item::{Function, meant};
use crate::names;
use crate::spans::written;

const SPEC: &[(&str, Kind)] = &[
    ("inputs", Kind::Types),
    ("state", Kind::Type),
    ("key", Kind::Path),
    ("name", Kind::Text),
    ("application_id", Kind::Text),
    ("order", Kind::Word(&["inputs", "timestamp"])),
    ("start", Kind::Word(&["earliest", "latest"])),
    ("on_invalid", Kind::Path),
    ("dead_letters", Kind::Type),
    ("on_timer", Kind::Path),
];

/// A stage without mistakes, as far as tokens can tell.
pub(crate) struct Stage {
    pub(crate) name: String,
    pub(crate) application_id: Option<LitStr>,
    pub(crate) inputs: Vec<Type>,
    pub(crate) state: Option<Type>,
    pub(crate) key: Option<Path>,
    /// `Inputs` or `Timestamp`.
    pub(crate) order: &'static str,
    /// `Earliest` or `Latest`.
    pub(crate) start: &'static str,
    /// The function that decides about records which don't decode, and where it may send them.
    pub(crate) on_invalid: Option<Path>,
    pub(crate) dead_letters: Option<Type>,
    /// The function that is called for timers.
    pub(crate) on_timer: Option<Path>,
    /// Whether anything of it may look at the headers of its input.
    pub(crate) headers: bool,
    /// The first parameter's type.
    pub(crate) input: Type,
    /// What the parameters by `&mut` refer to.
    pub(crate) slots: Vec<Type>,
    /// What those by `&` refer to.
    pub(crate) shared: Vec<Type>,
    /// For each parameter after the first, whether it is by `&mut`.
    pub(crate) by_mut: Vec<bool>,
    pub(crate) returns: Type,
    /// What only an extractor has.
    pub(crate) polling: Option<Polling>,
}

/// How an extractor is polled.
pub(crate) struct Polling {
    /// The interval in milliseconds.
    pub(crate) interval: u64,
    /// Says which configs are not polled.
    pub(crate) suspended: Option<Path>,
}

/// Reads the attribute.
pub(crate) fn arguments(attribute: TokenStream, errors: &mut Errors) -> Args {
    Args::parse(attribute, SPEC, "transformer", errors)
}

/// Puts attribute and signature together. `None` if there are mistakes.
pub(crate) fn stage(args: &Args, function: &Function, errors: &mut Errors) -> Option<Stage> {
    let signature = &function.signature;
    // What is wrong with the signature alone.
    let mut wrong = Errors::default();
    check_kind(function, &mut wrong);
    let name = name(args, &signature.ident, errors);
    if let Some(id) = args.text("application_id") {
        names::check_part("an application id", id, errors);
    }
    let parameters: Vec<&PatType> = signature
        .inputs
        .iter()
        .filter_map(|parameter| match parameter {
            FnArg::Typed(typed) => Some(typed),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let inputs = inputs(args, &parameters, errors);
    check_dead_letters(args, errors);
    let Parameters { input, slots, shared, by_mut } =
        check_parameters(&parameters, &signature.ident, signature, &mut wrong);
    let returns = match &signature.output {
        ReturnType::Type(_, ty) => Some((**ty).clone()),
        ReturnType::Default => {
            let message =
                "a stage says whether it succeeded: add `-> flechtwerk::Result`, and `Ok(())` at the end";
            wrong.at(&signature.ident, message);
            None
        }
    };
    errors.append(as_one(wrong, function, &parameters));
    if !errors.is_empty() {
        return None;
    }
    Some(Stage {
        name,
        application_id: args.text("application_id").cloned(),
        inputs,
        state: args.ty("state").cloned(),
        key: args.path("key").cloned(),
        order: if args.word("order").as_deref() == Some("timestamp") { "Timestamp" } else { "Inputs" },
        start: if args.word("start").as_deref() == Some("latest") { "Latest" } else { "Earliest" },
        on_invalid: args.path("on_invalid").cloned(),
        dead_letters: args.ty("dead_letters").cloned(),
        on_timer: args.path("on_timer").cloned(),
        // The function of `key` gets the record, and that of `on_invalid` all that it holds.
        headers: args.mentions("key") || args.mentions("on_invalid") || headers::may_look(function),
        input: input?,
        slots,
        shared,
        by_mut,
        returns: returns?,
        polling: None,
    })
}

/// Several mistakes of which each is one of forgetting what a stage looks like are one: here is what it looks like.
fn as_one(wrong: Errors, function: &Function, parameters: &[&PatType]) -> Errors {
    let signature = &function.signature;
    let mendable =
        parameters.iter().enumerate().filter(|(n, parameter)| meant(*n, &parameter.ty).is_some()).count()
            + usize::from(signature.asyncness.is_none())
            + usize::from(matches!(signature.output, ReturnType::Default));
    if mendable < 2 || wrong.count() != mendable {
        return wrong;
    }
    let parameters: Vec<String> = parameters
        .iter()
        .enumerate()
        .map(|(n, parameter)| {
            let name = match &*parameter.pat {
                Pat::Ident(pattern) => pattern.ident.to_string(),
                pattern => written(pattern),
            };
            format!("{name}: {}", written(meant(n, &parameter.ty).unwrap_or_else(|| (*parameter.ty).clone())))
        })
        .collect();
    let returns = match &signature.output {
        ReturnType::Type(_, ty) => written(&**ty),
        ReturnType::Default => "flechtwerk::Result".into(),
    };
    let name = &signature.ident;
    let mut one = Errors::default();
    one.at(
        name,
        format!(
            "a stage is `async`, takes its input by value and what it writes to by `&mut`, and says whether it succeeded: \
             write `async fn {name}({}) -> {returns}`, and `Ok(())` at the end",
            parameters.join(", ")
        ),
    );
    one
}

/// The function is async, free, not generic.
pub(crate) fn check_kind(function: &Function, errors: &mut Errors) {
    let signature = &function.signature;
    if let Some(receiver) = signature.receiver() {
        errors.at(
            receiver,
            "a stage is a free function, since the pipeline has no object to call it on: move it out of the `impl`",
        );
    }
    if signature.asyncness.is_none() {
        errors.at(
            signature.fn_token,
            format!(
                "a stage is `async`, so that the records of other keys go on while one waits: write `async fn {}`",
                signature.ident
            ),
        );
    }
    if let Some(unsafety) = &signature.unsafety {
        errors.at(unsafety, "a stage can't be `unsafe`: the pipeline calls it with any record that arrives");
    }
    if let Some(abi) = &signature.abi {
        errors.at(abi, "a stage is a plain Rust function: remove the ABI");
    }
    if let Some(generic) = signature.generics.params.first() {
        let what = match generic {
            GenericParam::Lifetime(_) => {
                "a stage needs no lifetime parameters, its references are its own: remove them"
            }
            _ => {
                "a stage can't be generic, since the pipeline runs it as it stands: write the type out, or call a generic function from it"
            }
        };
        errors.at(generic, what);
    } else if let Some(clause) = &signature.generics.where_clause {
        errors.at(
            clause,
            "a stage can't be generic, so there is nothing for a `where` clause to say: remove it",
        );
    }
}

pub(crate) fn name(args: &Args, function: &Ident, errors: &mut Errors) -> String {
    if let Some(name) = args.text("name") {
        names::check_part("a stage's name", name, errors);
        return name.value();
    }
    let name = function.unraw().to_string();
    if !args.mentions("name")
        && let Some(fault) = names::fault("a stage's name", &name, names::LONGEST)
    {
        errors.at(
            function,
            format!("{fault}; the stage is named after the function unless you set `name = \"..\"`"),
        );
    }
    name
}

fn inputs(args: &Args, parameters: &[&PatType], errors: &mut Errors) -> Vec<Type> {
    let Some((types, brackets)) = args.types("inputs") else {
        if !args.mentions("inputs") {
            let topic = parameters.first().and_then(|first| record_of(&first.ty)).unwrap_or("Topic".into());
            errors.span(
                Span::call_site(),
                format!("a transformer says which topics it reads: `#[transformer(inputs = [{topic}])]`"),
            );
        }
        return vec![];
    };
    if types.is_empty() {
        errors.span(brackets, "a transformer reads at least one topic: `inputs = [Topic]`");
    }
    for (n, ty) in types.iter().enumerate() {
        if types[..n].contains(ty) {
            errors
                .at(ty, format!("`{}` stands in `inputs` twice; a stage reads each topic once", written(ty)));
        }
    }
    types.to_vec()
}

/// Dead letters need somebody who sends them.
fn check_dead_letters(args: &Args, errors: &mut Errors) {
    if let Some(topic) = args.ty("dead_letters")
        && !args.mentions("on_invalid")
    {
        errors.at(
            topic,
            "nothing would send records to this topic, since a stage crashes at those that don't decode: add \
             `on_invalid = flechtwerk::invalid::dead_letter`, or a function of your own that decides",
        );
    }
}

/// The parameters, by their ways of being passed.
#[derive(Default)]
pub(crate) struct Parameters {
    pub(crate) input: Option<Type>,
    pub(crate) slots: Vec<Type>,
    pub(crate) shared: Vec<Type>,
    pub(crate) by_mut: Vec<bool>,
}

/// The first parameter is the input, by value; all others are `&mut` or `&`.
fn check_parameters(
    parameters: &[&PatType],
    name: &Ident,
    signature: &syn::Signature,
    errors: &mut Errors,
) -> Parameters {
    if parameters.is_empty() && signature.receiver().is_none() {
        errors.span(
            signature.paren_token.span.join(),
            format!("a stage takes its input first: `async fn {name}(record: Record<Topic>, ..)`"),
        );
    }
    let mut sorted = Parameters::default();
    for (n, parameter) in parameters.iter().enumerate() {
        if let Some(cfg) = parameter.attrs.iter().find(|attribute| attribute.path().is_ident("cfg")) {
            errors.at(
                cfg,
                "a parameter of a stage can't depend on a `cfg`: write two functions, each with its own",
            );
            continue;
        }
        let ty = &*parameter.ty;
        if let Some(part) = impl_trait(ty) {
            errors.at(
                part,
                "a stage can't be generic, since the pipeline runs it as it stands: write the type out",
            );
            continue;
        }
        match (n, ty) {
            (0, Type::Reference(reference)) => {
                // Where the input only stands at the wrong place, it is enough to say so there.
                if parameters[1..].iter().all(|other| matches!(&*other.ty, Type::Reference(_))) {
                    let shown = written(&reference.elem);
                    errors.at(ty, match reference.mutability {
                        None => format!("the input comes by value, it is the function's own: write `{shown}`"),
                        Some(_) => format!("the first parameter is the input, by value: `Record<Topic>`; put `{}` behind it", written(ty)),
                    });
                }
            }
            (0, ty) => sorted.input = Some(ty.clone()),
            (_, Type::Reference(reference)) if reference.mutability.is_some() => {
                sorted.slots.push((*reference.elem).clone());
                sorted.by_mut.push(true);
            }
            (_, Type::Reference(reference)) if !by_mut_or_value(&reference.elem) => {
                sorted.shared.push((*reference.elem).clone());
                sorted.by_mut.push(false);
            }
            (_, ty) => errors.at(ty, misplaced(parameters[0], parameter)),
        }
    }
    sorted
}

/// What surely is not taken by `&`.
pub(crate) fn by_mut_or_value(ty: &Type) -> bool {
    ["State", "Out", "Timers", "Record"].contains(&head(ty).as_str())
}

/// What is wrong with a later parameter that is not passed as such a type is.
fn misplaced(first: &PatType, parameter: &PatType) -> String {
    const POSSIBLE: &str = "after the input come `&mut State<S>`, `&mut Out<T>`, `&mut Timers`, `&Table<T>`, `&Res<R>`, and your own types made of these";
    let ty = match &*parameter.ty {
        Type::Reference(reference) => &*reference.elem,
        ty => ty,
    };
    let shown = written(ty);
    match head(ty).as_str() {
        "State" | "Out" | "Timers" => format!("a stage writes to it, so it is taken by `&mut`: write `&mut {shown}`"),
        "Res" | "Table" => format!("all records share one, so it is taken by `&`: write `&{shown}`"),
        "Record" if matches!(&*first.ty, Type::Reference(_)) => {
            format!("the input comes first: move `{}` to the front", written(parameter))
        }
        "Record" => {
            "a stage takes one record at a time; to read several topics, make the first parameter an enum with `#[derive(Input)]`"
                .into()
        }
        _ if matches!(&*first.ty, Type::Reference(_)) && !matches!(&*parameter.ty, Type::Reference(_)) => {
            format!("the input comes first: move `{}` to the front", written(parameter))
        }
        _ => format!("a stage can't be given a `{}`: {POSSIBLE}", written(&*parameter.ty)),
    }
}

/// `impl Trait` in a parameter's type, at its top or behind a reference.
pub(crate) fn impl_trait(ty: &Type) -> Option<&Type> {
    match ty {
        Type::ImplTrait(_) => Some(ty),
        Type::Reference(reference) => impl_trait(&reference.elem),
        _ => None,
    }
}

/// The last name in a path: `State` of `flechtwerk::State<Count>`.
pub(crate) fn head(ty: &Type) -> String {
    match ty {
        Type::Path(path) => {
            path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// `Words` of `Record<Words>`.
pub(crate) fn record_of(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Record")?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(topic) => Some(written(topic)),
        _ => None,
    }
}
